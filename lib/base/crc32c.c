/*
 * CRC-32C: the reflected polynomial 0x82f63b78.
 *
 * A CPU with AVX2 has SSE4.2 too, whose crc32 instruction takes eight bytes
 * every three cycles.  Elsewhere a table of remainders of single bytes; being
 * linear, each is the sum of those of the byte's bits, so the eight below make
 * all 256.
 */
#include "base/crc32c.h"

#include "base/mem.h"

#define ENTRY(b)                                                                                   \
    (((b)&1 ? 0xf26b8303u : 0) ^ ((b)&2 ? 0xe13b70f7u : 0) ^ ((b)&4 ? 0xc79a971fu : 0) ^           \
     ((b)&8 ? 0x8ad958cfu : 0) ^ ((b)&16 ? 0x105ec76fu : 0) ^ ((b)&32 ? 0x20bd8edeu : 0) ^         \
     ((b)&64 ? 0x417b1dbcu : 0) ^ ((b)&128 ? 0x82f63b78u : 0))
#define ENTRIES4(b)  ENTRY(b), ENTRY((b) + 1), ENTRY((b) + 2), ENTRY((b) + 3)
#define ENTRIES16(b) ENTRIES4(b), ENTRIES4((b) + 4), ENTRIES4((b) + 8), ENTRIES4((b) + 12)
#define ENTRIES64(b) ENTRIES16(b), ENTRIES16((b) + 16), ENTRIES16((b) + 32), ENTRIES16((b) + 48)

static const uint32_t table[256] = {ENTRIES64(0), ENTRIES64(64), ENTRIES64(128), ENTRIES64(192)};

#if defined(__x86_64__)

#include <nmmintrin.h>

__attribute__((target("sse4.2,crc32"))) static uint32_t crc_sse42(const uint8_t *p, size_t nbytes)
{
    uint64_t crc = UINT32_MAX;
    for (; nbytes >= 8; nbytes -= 8, p += 8)
        crc = _mm_crc32_u64(crc, cm_load_le64(p));
    uint32_t rest = (uint32_t)crc;
    for (; nbytes > 0; nbytes--, p++)
        rest = _mm_crc32_u8(rest, *p);
    return ~rest;
}

#endif

uint32_t cm_crc32c(cm_simd simd, const void *data, size_t nbytes)
{
#if defined(__x86_64__)
    if (simd == CM_SIMD_AVX2)
        return crc_sse42(data, nbytes);
#endif
    (void)simd;
    const uint8_t *p = data;
    uint32_t crc = UINT32_MAX;
    for (; nbytes > 0; nbytes--, p++)
        crc = crc >> 8 ^ table[(crc ^ *p) & 0xff];
    return ~crc;
}
