/* The examples of RFC 1321, and what `md5sum` says of lengths around a block's. */

#include <stdio.h>

#include "../unit.h"
#include "base/md5.h"

static const struct {
    const char *text;
    size_t times;
    const char *digest;
} rows[] = {
    {"", 1, "d41d8cd98f00b204e9800998ecf8427e"},
    {"a", 1, "0cc175b9c0f1b6a831c399e269772661"},
    {"abc", 1, "900150983cd24fb0d6963f7d28e17f72"},
    {"message digest", 1, "f96b697d7cb7938d525a2f31aaf161d0"},
    {"abcdefghijklmnopqrstuvwxyz", 1, "c3fcd3d76192e4007dfb496cca67e13b"},
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 1,
     "d174ab98d277d9f5a5611c2c9f419d9f"},
    {"1234567890", 8, "57edf4a22be3c955ac49da2e2107b67a"},
    {"x", 55, "04364420e25c512fd958a70738aa8f72"},
    {"x", 56, "668a72d5ba17f08e62dabcafad6db14b"},
    {"x", 63, "7dc2ca208106a2f703567bdff99d8981"},
    {"x", 64, "c1bb4f81d892b2d57947682aeb252456"},
    {"x", 65, "1bc932052302d074bdec39795fe00cf6"},
    {"x", 119, "ab347a5f68c8a443cfcddc633f12c24f"},
    {"x", 120, "fb98667f98096de92620b64f46e1c5b5"},
    {"x", 128, "d69cb61a6ee87200676eb0d4b90edbcb"},
    {"ab", 50000, "b83899a1f07ebb6ada125d4923122302"},
};

static void test_digests(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t n = strlen(rows[i].text);
        char *all = malloc(n * rows[i].times + 1), text[2 * CM_MD5_NBYTES + 1];
        uint8_t digest[CM_MD5_NBYTES];
        assert_non_null(all);
        for (size_t k = 0; k < rows[i].times; k++)
            memcpy(all + k * n, rows[i].text, n);
        cm_md5(all, n * rows[i].times, digest);
        for (int k = 0; k < CM_MD5_NBYTES; k++)
            snprintf(text + 2 * k, 3, "%02x", digest[k]);
        assert_string_equal(text, rows[i].digest);
        free(all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_digests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
