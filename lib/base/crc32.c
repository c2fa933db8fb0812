/*
 * CRC-32 of zip files: the reflected polynomial 0xedb88320, eight bytes at a time.
 *
 * Table K has the remainders of a byte that is followed by K others.  Being linear, each is the sum
 * of those of the byte's bits, so eight make all 256.
 */
#include "base/crc32.h"

#include "base/mem.h"

#define ENTRY(x, b0, b1, b2, b3, b4, b5, b6, b7)                                                   \
    (((x)&1 ? (b0) : 0) ^ ((x)&2 ? (b1) : 0) ^ ((x)&4 ? (b2) : 0) ^ ((x)&8 ? (b3) : 0) ^           \
     ((x)&16 ? (b4) : 0) ^ ((x)&32 ? (b5) : 0) ^ ((x)&64 ? (b6) : 0) ^ ((x)&128 ? (b7) : 0))
#define ENTRIES4(x, ...)                                                                           \
    ENTRY(x, __VA_ARGS__), ENTRY((x) + 1, __VA_ARGS__), ENTRY((x) + 2, __VA_ARGS__),               \
        ENTRY((x) + 3, __VA_ARGS__)
#define ENTRIES16(x, ...)                                                                          \
    ENTRIES4(x, __VA_ARGS__), ENTRIES4((x) + 4, __VA_ARGS__), ENTRIES4((x) + 8, __VA_ARGS__),      \
        ENTRIES4((x) + 12, __VA_ARGS__)
#define ENTRIES64(x, ...)                                                                          \
    ENTRIES16(x, __VA_ARGS__), ENTRIES16((x) + 16, __VA_ARGS__), ENTRIES16((x) + 32, __VA_ARGS__), \
        ENTRIES16((x) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        ENTRIES64(0, __VA_ARGS__), ENTRIES64(64, __VA_ARGS__), ENTRIES64(128, __VA_ARGS__),        \
            ENTRIES64(192, __VA_ARGS__)                                                            \
    }

static const uint32_t table[8][256] = {
    TABLE(0x77073096u, 0xee0e612cu, 0x076dc419u, 0x0edb8832u, 0x1db71064u, 0x3b6e20c8u, 0x76dc4190u,
          0xedb88320u),
    TABLE(0x191b3141u, 0x32366282u, 0x646cc504u, 0xc8d98a08u, 0x4ac21251u, 0x958424a2u, 0xf0794f05u,
          0x3b83984bu),
    TABLE(0x01c26a37u, 0x0384d46eu, 0x0709a8dcu, 0x0e1351b8u, 0x1c26a370u, 0x384d46e0u, 0x709a8dc0u,
          0xe1351b80u),
    TABLE(0xb8bc6765u, 0xaa09c88bu, 0x8f629757u, 0xc5b428efu, 0x5019579fu, 0xa032af3eu, 0x9b14583du,
          0xed59b63bu),
    TABLE(0x3d6029b0u, 0x7ac05360u, 0xf580a6c0u, 0x30704bc1u, 0x60e09782u, 0xc1c12f04u, 0x58f35849u,
          0xb1e6b092u),
    TABLE(0xcb5cd3a5u, 0x4dc8a10bu, 0x9b914216u, 0xec53826du, 0x03d6029bu, 0x07ac0536u, 0x0f580a6cu,
          0x1eb014d8u),
    TABLE(0xa6770bb4u, 0x979f1129u, 0xf44f2413u, 0x33ef4e67u, 0x67de9cceu, 0xcfbd399cu, 0x440b7579u,
          0x8816eaf2u),
    TABLE(0xccaa009eu, 0x4225077du, 0x844a0efau, 0xd3e51bb5u, 0x7cbb312bu, 0xf9766256u, 0x299dc2edu,
          0x533b85dau),
};

uint32_t cm_crc32(uint32_t crc, const void *data, size_t nbytes)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (; nbytes >= 8; nbytes -= 8, p += 8) {
        const uint64_t w = cm_load_le64(p) ^ crc;
        crc = table[7][w & 0xff] ^ table[6][w >> 8 & 0xff] ^ table[5][w >> 16 & 0xff] ^
              table[4][w >> 24 & 0xff] ^ table[3][w >> 32 & 0xff] ^ table[2][w >> 40 & 0xff] ^
              table[1][w >> 48 & 0xff] ^ table[0][w >> 56];
    }
    for (; nbytes > 0; nbytes--, p++)
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
    return ~crc;
}
