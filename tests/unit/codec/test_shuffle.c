/* Byte shuffle by every instruction set against its definition; checksums against known values. */
#include <stdbool.h>

#include "../unit.h"
#include "codec/checksum.h"
#include "codec/shuffle.h"

static uint8_t *exact(size_t nbytes)
{
    uint8_t *p = malloc(nbytes ? nbytes : 1);
    assert_non_null(p);
    return p;
}

/* H5Zshuffle.c in a few words. */
static void define(size_t es, uint8_t *dst, const uint8_t *src, size_t nbytes)
{
    size_t n = es > 1 ? nbytes / es : 0;
    memcpy(dst, src, nbytes);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < es; j++)
            dst[j * n + i] = src[i * es + j];
}

/* Past the caches, to where vectors are aligned and to where they are not. */
static void check_far(cm_simd simd, size_t es, const uint8_t *shuffled, const uint8_t *want,
                      size_t nbytes)
{
    for (size_t at = 0; at < 64; at += 16) {
        uint8_t *room = aligned_alloc(64, (at + nbytes + 1 + 63) / 64 * 64);
        assert_non_null(room);
        room[at + nbytes] = 0x5a;
        cm_unshuffle(simd, es, room + at, shuffled, nbytes, true);
        if (memcmp(room + at, want, nbytes) || room[at + nbytes] != 0x5a)
            fail_msg("far, at %zu: elements of %zu, %zu bytes, instruction set %d", at, es, nbytes,
                     (int)simd);
        free(room);
    }
}

static void test_shuffle(void **state)
{
    (void)state;
    static const size_t elementsizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 300};
    static const size_t nelems[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 130, 1001};
    for (size_t e = 0; e < 13; e++) {
        for (size_t k = 0; k < 15; k++) {
            for (size_t extra = 0; extra < 5; extra += 2) {
                size_t es = elementsizes[e], nbytes = nelems[k] * (es ? es : 1) + extra;
                uint8_t *src = exact(nbytes), *want = exact(nbytes);
                for (size_t i = 0; i < nbytes; i++)
                    src[i] = (uint8_t)(i * 37 ^ i >> 7);
                define(es, want, src, nbytes);
                /* No more than this CPU has, and everything below it down to the portable loops. */
                for (int simd = CM_SIMD_NONE; simd <= (int)cm_cpu_simd(); simd++) {
                    uint8_t *out = exact(nbytes), *back = exact(nbytes);
                    cm_shuffle((cm_simd)simd, es, out, src, nbytes);
                    cm_unshuffle((cm_simd)simd, es, back, out, nbytes, false);
                    if (memcmp(out, want, nbytes) || memcmp(back, src, nbytes))
                        fail_msg("elements of %zu, %zu bytes, instruction set %d", es, nbytes,
                                 simd);
                    check_far((cm_simd)simd, es, out, src, nbytes);
                    free(out);
                    free(back);
                }
                free(src);
                free(want);
            }
        }
    }
}

static void test_crc32c(void **state)
{
    (void)state;
    /* RFC 3720, B.4 */
    uint8_t bytes[1000];
    for (int simd = CM_SIMD_NONE; simd <= (int)cm_cpu_simd(); simd++) {
        assert_int_equal(cm_crc32c((cm_simd)simd, "123456789", 9), 0xe3069283);
        memset(bytes, 0, 32);
        assert_int_equal(cm_crc32c((cm_simd)simd, bytes, 32), 0x8a9136aa);
        memset(bytes, 255, 32);
        assert_int_equal(cm_crc32c((cm_simd)simd, bytes, 32), 0x62a8ab43);
        assert_int_equal(cm_crc32c((cm_simd)simd, bytes, 0), 0);
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i);
    for (size_t n = 0; n < 300; n++)
        for (size_t from = 0; from < 9; from++)
            assert_int_equal(cm_crc32c(cm_cpu_simd(), bytes + from, n),
                             cm_crc32c(CM_SIMD_NONE, bytes + from, n));
}

/* Sums modulo 65535 of big-endian words, with 65535 for 0 unless all is 0 (H5checksum.c). */
static uint32_t define_fletcher(const uint8_t *p, size_t nbytes)
{
    uint64_t sum1 = 0, sum2 = 0;
    bool any = false;
    for (size_t i = 0; i < nbytes; i += 2) {
        uint64_t word = (uint64_t)p[i] << 8 | (i + 1 < nbytes ? p[i + 1] : 0);
        any = any || word;
        sum1 = (sum1 + word) % 65535;
        sum2 = (sum2 + sum1) % 65535;
    }
    sum1 = sum1 || !any ? sum1 : 65535;
    sum2 = sum2 || !any ? sum2 : 65535;
    return (uint32_t)(sum2 << 16 | sum1);
}

static void test_fletcher32(void **state)
{
    (void)state;
    static uint8_t bytes[100000];
    for (unsigned pattern = 0; pattern < 4; pattern++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = pattern == 0 ? 0 : pattern == 1 ? 255 : (uint8_t)(i * i >> pattern);
        for (size_t n = 0; n <= sizeof bytes; n += n < 140 ? 1 : 1499)
            assert_int_equal(cm_fletcher32(bytes, n), define_fletcher(bytes, n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shuffle),
                                       cmocka_unit_test(test_crc32c),
                                       cmocka_unit_test(test_fletcher32)};
    return cmocka_run_group_tests_name("shuffle and checksums", tests, NULL, NULL);
}
