/* The digests that `xxhsum -H2` prints, of lengths around those where the method changes. */

#include "../unit.h"
#include "base/xxh128.h"

static const struct {
    size_t nbytes; /* each an x */
    const char *digest;
} rows[] = {
    {0, "99aa06d3014798d86001c324468d497f"},      {1, "5c7401c0ec22eeeeeaf06c6480b2cd11"},
    {3, "8467ca65b94d45f975920d64d617a183"},      {4, "2645053829747c5af436909ed57deb81"},
    {8, "a2560a4ef6cd547b926874e5432bc207"},      {9, "cf04e239ea3464d1d369c0e02d279352"},
    {16, "ceb3fbd8af7001ac76ba55acf0be061e"},     {17, "9e8a29b5dfc13013416e526dfb687d89"},
    {128, "fd990d088a9365ae7813452547ab9912"},    {129, "e7f1abc92bce4135ae9ec8f29e5baa27"},
    {240, "bfede978870834bedf2b586ca80bb7aa"},    {241, "586c2f1b13edf30f14da9e5c301a6a1d"},
    {1024, "445dcf97d7880d62fc56a7ce85b3164a"},   {65536, "02da4b9c5a75caad3688558138047f8a"},
    {200000, "cef4e9bfab1383027d16afd1aef7e39c"},
};

static void add_in_steps(cm_xxh128 *x, const uint8_t *data, size_t nbytes, size_t step)
{
    for (size_t at = 0; at < nbytes; at += step)
        cm_xxh128_add(x, data + at, nbytes - at < step ? nbytes - at : step);
}

static void test_digests(void **state)
{
    static uint8_t data[200000];
    static const size_t steps[] = {1, 255, 256, 4097, sizeof data};
    (void)state;
    memset(data, 'x', sizeof data);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
            cm_xxh128 x;
            char text[CM_XXH128_TEXT];
            cm_xxh128_begin(&x);
            add_in_steps(&x, data, rows[i].nbytes, steps[k]);
            assert_string_equal(cm_xxh128_text(&x, text), rows[i].digest);
            assert_string_equal(cm_xxh128_text(&x, text), rows[i].digest);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
