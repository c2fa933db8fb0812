/* Reversing the bytes of elements. */
#include "model/copy.h"

#include <string.h>

typedef uint16_t __attribute__((aligned(1), may_alias)) any_u16;
typedef uint32_t __attribute__((aligned(1), may_alias)) any_u32;
typedef uint64_t __attribute__((aligned(1), may_alias)) any_u64;

/*
 * Plain loops that the compiler turns into byte shuffles where the instruction
 * set has them (pshufb).  In place and apart are two loops: with one, the check
 * for overlap at run time would send work in place to scalar code.
 */
#define SWAP_LOOPS(type, swap)                                                                     \
    if (dst == src) {                                                                              \
        type *d = dst;                                                                             \
        for (uint64_t i = 0; i < n; i++)                                                           \
            d[i] = swap(d[i]);                                                                     \
    } else {                                                                                       \
        type *restrict d = dst;                                                                    \
        const type *restrict s = src;                                                              \
        for (uint64_t i = 0; i < n; i++)                                                           \
            d[i] = swap(s[i]);                                                                     \
    }

#define SWAP_FUNCTION(name, attributes)                                                            \
    attributes static void name(void *dst, const void *src, uint64_t n, uint32_t unit)             \
    {                                                                                              \
        if (unit == 2) {                                                                           \
            SWAP_LOOPS(any_u16, __builtin_bswap16)                                                 \
        } else if (unit == 4) {                                                                    \
            SWAP_LOOPS(any_u32, __builtin_bswap32)                                                 \
        } else {                                                                                   \
            SWAP_LOOPS(any_u64, __builtin_bswap64)                                                 \
        }                                                                                          \
    }

SWAP_FUNCTION(swap_portable, )
#if defined(__x86_64__)
SWAP_FUNCTION(swap_ssse3, __attribute__((target("ssse3"))))
SWAP_FUNCTION(swap_avx2, __attribute__((target("avx2"))))
#endif

void cm_swap_bytes(void *dst, const void *src, uint64_t nunits, uint32_t unit)
{
    if (unit <= 1) {
        if (dst != src && nunits)
            memcpy(dst, src, nunits);
        return;
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        swap_avx2(dst, src, nunits, unit);
        return;
    }
    if (__builtin_cpu_supports("ssse3")) {
        swap_ssse3(dst, src, nunits, unit);
        return;
    }
#endif
    swap_portable(dst, src, nunits, unit);
}
