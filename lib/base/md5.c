/*
 * RFC 1321.  Four rounds of sixteen steps; step i of a round reads word (a + b i) mod 16 of the
 * block, mixes by the round's function, adds floor(2^32 |sin(i + 1)|), and turns to the left.
 */
#include "base/md5.h"

#include <string.h>

#include "base/mem.h"

static const uint32_t SINE[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

static inline uint32_t turn(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

/* One step; unrolled, the roles of a, b, c and d go round by the order of the arguments. */
#define STEP(mix, a, b, c, d, i, word, n)                                                          \
    (a) = (b) + turn((a) + (mix) + SINE[i] + w[(word) % 16], n)

#define FOUR(f, i, stride, first, n0, n1, n2, n3)                                                  \
    STEP(f(b, c, d), a, b, c, d, i, (first) + (stride) * (i), n0);                                 \
    STEP(f(a, b, c), d, a, b, c, (i) + 1, (first) + (stride) * ((i) + 1), n1);                     \
    STEP(f(d, a, b), c, d, a, b, (i) + 2, (first) + (stride) * ((i) + 2), n2);                     \
    STEP(f(c, d, a), b, c, d, a, (i) + 3, (first) + (stride) * ((i) + 3), n3)

#define ROUND(f, i, stride, first, n0, n1, n2, n3)                                                 \
    FOUR(f, i, stride, first, n0, n1, n2, n3);                                                     \
    FOUR(f, (i) + 4, stride, first, n0, n1, n2, n3);                                               \
    FOUR(f, (i) + 8, stride, first, n0, n1, n2, n3);                                               \
    FOUR(f, (i) + 12, stride, first, n0, n1, n2, n3)

#define CHOOSE(x, y, z)  (((x) & (y)) | (~(x) & (z)))
#define SELECT(x, y, z)  (((x) & (z)) | ((y) & ~(z)))
#define PARITY(x, y, z)  ((x) ^ (y) ^ (z))
#define THE_ODD(x, y, z) ((y) ^ ((x) | ~(z)))

static void take_block(uint32_t state[4], const uint8_t *p)
{
    uint32_t w[16]; /* the host is little-endian, as they are */
    memcpy(w, p, sizeof(w));
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    ROUND(CHOOSE, 0, 1, 0, 7, 12, 17, 22);
    ROUND(SELECT, 16, 5, 1, 5, 9, 14, 20);
    ROUND(PARITY, 32, 3, 5, 4, 11, 16, 23);
    ROUND(THE_ODD, 48, 7, 0, 6, 10, 15, 21);
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void cm_md5(const void *data, size_t nbytes, uint8_t out[CM_MD5_NBYTES])
{
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    const uint8_t *p = data;
    uint8_t last[128] = {0};
    size_t left = nbytes;
    for (; left >= 64; left -= 64, p += 64)
        take_block(state, p);
    if (left > 0)
        memcpy(last, p, left);
    last[left] = 0x80;
    size_t n = left < 56 ? 64 : 128;
    cm_store_le64(last + n - 8, (uint64_t)nbytes * 8);
    for (size_t i = 0; i < n; i += 64)
        take_block(state, last + i);
    for (int i = 0; i < 4; i++)
        cm_store_le32(out + 4 * i, state[i]);
}
