

#include "../unit.h"
#include "gpu/checksum.h"

/* The definition, word by word. */
static cm_checksum reference(const uint8_t *p, size_t nbytes)
{
    cm_checksum c = {0};
    for (size_t i = 0; i * 4 < nbytes; i++) {
        uint32_t w = 0;
        for (size_t k = 0; k < 4 && i * 4 + k < nbytes; k++)
            w |= (uint32_t)p[i * 4 + k] << 8 * k;
        c.sum += w;
        c.weighted += (uint64_t)w * (i + 1);
    }
    return c;
}

static void fill(uint8_t *p, size_t nbytes, uint64_t seed)
{
    for (size_t i = 0; i < nbytes; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        p[i] = (uint8_t)(seed >> 56);
    }
}

static void test_golden(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 0, 0, 0, 0xff};
    const cm_checksum c = cm_checksum_of(bytes, sizeof bytes);
    assert_int_equal(c.sum, 0x04030201 + 5 + 255);
    assert_int_equal(c.weighted, 0x04030201 + 2 * 5 + 3 * 255);
    const cm_checksum none = cm_checksum_of(NULL, 0);
    assert_true(none.sum == 0 && none.weighted == 0);
}

static void test_every_length_and_alignment(void **state)
{
    (void)state;
    uint8_t buf[1200];
    fill(buf, sizeof buf, 7);
    for (size_t shift = 0; shift < 4; shift++)
        for (size_t n = 0; n + shift <= sizeof buf; n++)
            assert_true(
                cm_checksum_equal(cm_checksum_of(buf + shift, n), reference(buf + shift, n)));
}

/* Longer than one run, and all bits set, so that a lane that overflows would be seen. */
static void test_long(void **state)
{
    (void)state;
    const size_t nbytes = (size_t)9 << 20 | 3;
    uint8_t *buf = malloc(nbytes);
    assert_non_null(buf);
    memset(buf, 0xff, nbytes);
    assert_true(cm_checksum_equal(cm_checksum_of(buf, nbytes), reference(buf, nbytes)));
    fill(buf, nbytes, 3);
    assert_true(cm_checksum_equal(cm_checksum_of(buf, nbytes), reference(buf, nbytes)));
    free(buf);
}

static void test_finds_every_flip_and_swap(void **state)
{
    (void)state;
    uint8_t buf[256];
    fill(buf, sizeof buf, 11);
    const cm_checksum good = cm_checksum_of(buf, sizeof buf);
    for (size_t bit = 0; bit < sizeof buf * 8; bit++) {
        buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(cm_checksum_equal(good, cm_checksum_of(buf, sizeof buf)));
        /* A second flip of the same weight elsewhere does not make up for it. */
        for (size_t other = bit % 32; other < sizeof buf * 8; other += 32) {
            if (other == bit)
                continue;
            buf[other / 8] ^= (uint8_t)(1 << other % 8);
            assert_false(cm_checksum_equal(good, cm_checksum_of(buf, sizeof buf)));
            buf[other / 8] ^= (uint8_t)(1 << other % 8);
        }
        buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    memcpy(buf + 4, buf + 8, 4);
    assert_false(cm_checksum_equal(good, cm_checksum_of(buf, sizeof buf)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_every_length_and_alignment),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_finds_every_flip_and_swap),
    };
    return cmocka_run_group_tests_name("checksum", tests, NULL, NULL);
}
