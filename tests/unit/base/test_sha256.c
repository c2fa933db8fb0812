/* The examples of FIPS 180-4, and what `sha256sum` says of lengths around a block's. */

#include "../unit.h"
#include "base/sha256.h"

static const struct {
    const char *text;
    size_t times;
    const char *digest;
} rows[] = {
    {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    {"x", 55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"},
    {"x", 56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"},
    {"x", 63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2"},
    {"x", 64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"},
    {"x", 65, "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"},
    {"x", 119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c"},
    {"x", 120, "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98"},
    {"x", 128, "24da1b81d0b16df6428eee73c69fcb2a93c76bc6df706f0c6670fe6bfe800464"},
};

static void test_digests(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cm_sha256 sha;
        char text[65];
        cm_sha256_begin(&sha);
        for (size_t k = 0; k < rows[i].times; k++)
            cm_sha256_add(&sha, rows[i].text, strlen(rows[i].text));
        assert_string_equal(cm_sha256_text(&sha, text), rows[i].digest);
    }
}

/* With the processor's own instructions, where it has them, and without: pieces of any length. */
static void test_both_ways_are_one(void **state)
{
    enum {
        MOST = 5000
    };
    static uint8_t data[MOST];
    uint32_t x = 1;
    (void)state;
    for (size_t i = 0; i < MOST; i++)
        data[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
    for (size_t n = 0; n < MOST; n += n < 300 ? 1 : 97) {
        cm_sha256 a, b;
        char fast[65], plain[65];
        cm_sha256_begin(&a);
        cm_sha256_begin_plain(&b);
        cm_sha256_add(&a, data, n);
        for (size_t at = 0, step = 1; at < n; at += step, step = step * 2 % 251) {
            step = step < n - at ? step : n - at;
            cm_sha256_add(&b, data + at, step);
        }
        assert_string_equal(cm_sha256_text(&a, fast), cm_sha256_text(&b, plain));
    }
}

/* Several at once say what each says alone, wherever a block was left, with all kinds mixed. */
static void test_together(void **state)
{
    enum {
        N = CM_SHA256_LANES,
        MOST = 1000
    };
    static uint8_t data[N * MOST + N];
    uint32_t x = 7;
    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
    for (unsigned kind = 0; kind < 3; kind++)
        for (size_t n = 0; n < MOST; n += n < 200 ? 1 : 61) {
            cm_sha256 each[N];
            const void *from[N];
            for (unsigned k = 0; k < N; k++) {
                if (kind == 1 && k == 1)
                    cm_sha256_begin_plain(&each[k]);
                else
                    cm_sha256_begin(&each[k]);
                if (kind == 2)
                    cm_sha256_add(&each[k], data, k);
                from[k] = data + k * MOST + k;
            }
            cm_sha256_add_each(each, from, n);
            cm_sha256_add_each(each, from, n / 2);
            for (unsigned k = 0; k < N; k++) {
                cm_sha256 alone;
                char got[65], want[65];
                cm_sha256_begin_plain(&alone);
                if (kind == 2)
                    cm_sha256_add(&alone, data, k);
                cm_sha256_add(&alone, from[k], n);
                cm_sha256_add(&alone, from[k], n / 2);
                assert_string_equal(cm_sha256_text(&each[k], got), cm_sha256_text(&alone, want));
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_digests),
                                       cmocka_unit_test(test_both_ways_are_one),
                                       cmocka_unit_test(test_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
