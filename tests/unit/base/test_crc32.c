/* The check value of CRC-32/ISO-HDLC, and what gzip says of lengths around eight bytes. */
#include "../unit.h"
#include "base/crc32.h"

static const struct {
    const char *text;
    uint32_t crc;
} rows[] = {
    {"", 0},
    {"a", 0xe8b7be43},
    {"1234567", 0x5003699f},
    {"12345678", 0x9ae0daaf},
    {"123456789", 0xcbf43926},
    {"The quick brown fox jumps over the lazy dog", 0x414fa339},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t n = strlen(rows[i].text);
        assert_int_equal(cm_crc32(0, rows[i].text, n), rows[i].crc);
        for (size_t cut = 0; cut <= n; cut++)
            assert_int_equal(cm_crc32(cm_crc32(0, rows[i].text, cut), rows[i].text + cut, n - cut),
                             rows[i].crc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
