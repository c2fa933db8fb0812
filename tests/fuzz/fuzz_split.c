/*
 * A stored chunk of hostile bytes taken apart for a device: what is described lies within the bytes
 * and fills the chunk once, within the bounds that follow from the chain alone; and what the host
 * decodes has streams that decode to the same elements.
 */
#include <libdeflate.h>
#include <lz4.h>
#include <zstd.h>

#include "codec/split.h"
#include "fuzz.h"
#include "model/copy.h"

enum {
    NELEM = 6000, /* a few blocks of blosc */
    MOST_NBYTES = 8 * NELEM
};

#define BIG                                                                                        \
    {                                                                                              \
        .id = CM_CODEC_BYTES, .big_endian = true                                                   \
    }
#define LITTLE                                                                                     \
    {                                                                                              \
        .id = CM_CODEC_BYTES                                                                       \
    }
#define BLOSC(name, how)                                                                           \
    {                                                                                              \
        .id = CM_CODEC_BLOSC, .level = 1, .blosc = {.cname = name, .shuffle = how }                \
    }
#define SHUFFLE                                                                                    \
    {                                                                                              \
        .id = CM_CODEC_SHUFFLE, .elementsize = 4                                                   \
    }

static const cm_codec_spec chains[][4] = {
    {LITTLE},
    {LITTLE, {.id = CM_CODEC_ZSTD, .level = 1}},
    {LITTLE, {.id = CM_CODEC_LZ4, .level = 1}},
    {LITTLE, {.id = CM_CODEC_ZLIB, .level = 1}},
    {LITTLE, {.id = CM_CODEC_GZIP, .level = 1}},
    {BIG, SHUFFLE, {.id = CM_CODEC_ZLIB, .level = 1}},
    {LITTLE, BLOSC("zstd", 1)},
    {BIG, BLOSC("lz4", 1)},
    {LITTLE, BLOSC("zlib", 0)},
    {LITTLE, {.id = CM_CODEC_ZSTD, .level = 1}, {.id = CM_CODEC_CRC32, .at_start = true}},
};

static uint8_t raw[MOST_NBYTES], back[MOST_NBYTES], decoded[MOST_NBYTES];

/* False: the stream is damaged. */
static bool decode(const cm_split_stream *s, const uint8_t *stored)
{
    const uint8_t *src = stored + s->src;
    uint8_t *dst = raw + s->dst;
    if (s->kind == CM_SPLIT_STORED)
        memcpy(dst, src, s->dst_nbytes);
    else if (s->kind == CM_SPLIT_ZSTD)
        return ZSTD_decompress(dst, s->dst_nbytes, src, s->src_nbytes) == s->dst_nbytes;
    else if (s->kind == CM_SPLIT_LZ4)
        return LZ4_decompress_safe((const char *)src, (char *)dst, (int)s->src_nbytes,
                                   (int)s->dst_nbytes) == (int)s->dst_nbytes;
    else {
        struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
        size_t n = 0;
        const bool whole = libdeflate_deflate_decompress(d, src, s->src_nbytes, dst, s->dst_nbytes,
                                                         &n) == LIBDEFLATE_SUCCESS &&
                           n == s->dst_nbytes;
        libdeflate_free_decompressor(d);
        return whole;
    }
    return true;
}

/* As the kernels do it. */
static void unshuffle(const cm_chunk_streams *s)
{
    if (s->typesize <= 1) {
        memcpy(back, raw, s->nbytes);
        return;
    }
    for (size_t at = 0; at < s->nbytes; at += s->block_nbytes) {
        const size_t left = s->nbytes - at;
        const size_t nbytes = left < s->block_nbytes ? left : s->block_nbytes;
        const size_t n = nbytes / s->typesize;
        for (size_t e = 0; e < n; e++)
            for (size_t j = 0; j < s->typesize; j++)
                back[at + e * s->typesize + j] = raw[at + j * n + e];
        memcpy(back + at + n * s->typesize, raw + at + n * s->typesize, nbytes - n * s->typesize);
    }
}

static void check_bounds(const cm_chain *chain, const cm_chunk_streams *s, size_t nbytes)
{
    size_t made = 0, of[CM_SPLIT_NKINDS] = {0};
    cm_split_most most;
    cm_chain_split_most(chain, &most);
    REQUIRE(s->nbytes == cm_chain_decoded_nbytes(chain) && s->nstreams <= most.all_streams);
    for (size_t i = 0; i < s->nstreams; i++) {
        const cm_split_stream *t = &s->stream[i];
        REQUIRE(t->src <= nbytes && t->src_nbytes <= nbytes - t->src);
        REQUIRE(t->dst == made && t->dst_nbytes <= s->nbytes - made);
        REQUIRE(t->dst_nbytes <= most.stream_nbytes[t->kind]);
        REQUIRE(++of[t->kind] <= most.nstreams[t->kind]);
        made += t->dst_nbytes;
    }
    REQUIRE(made == s->nbytes);
    if (s->typesize > 1) {
        REQUIRE(s->block_nbytes > 0);
        REQUIRE((s->nbytes + s->block_nbytes - 1) / s->block_nbytes <= most.nblocks);
    }
}

/* The first byte chooses the chain, the second the length, the third whether to encode the rest. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static cm_codec_ctx *ctx;
    if (nbytes < 3)
        return 0;
    if (ctx == NULL)
        REQUIRE((ctx = cm_codec_ctx_create(NULL)) != NULL);
    const cm_codec_spec *specs = chains[data[0] % (sizeof chains / sizeof *chains)];
    const uint64_t nelem = data[1] % 2 ? NELEM : 1 + data[1];
    const cm_dtype type = cm_dtype_make(CM_KIND_INT, data[1] % 4 < 2 ? 4 : 8);
    const bool encoded = data[2] % 2;
    size_t nspecs = 0;
    cm_chain *chain;
    cm_chunk_streams s = {0};
    while (nspecs < 4 && specs[nspecs].id != CM_CODEC_NONE)
        nspecs++;
    REQUIRE(cm_chain_create(specs, nspecs, &type, 1, &nelem, &chain, NULL) == CM_OK);
    REQUIRE(cm_chain_can_split(chain, NULL) == CM_OK);
    data += 3;
    nbytes -= 3;
    uint8_t *stored = malloc(cm_chain_encoded_bound(chain) + nbytes + 1);
    REQUIRE(stored != NULL);
    if (encoded) { /* a whole chunk, of which some bytes are others */
        const size_t n = cm_chain_decoded_nbytes(chain);
        for (size_t i = 0; i < n; i++)
            decoded[i] = nbytes > 0 ? data[i % nbytes] ^ (uint8_t)(i >> 9) : 0;
        size_t made = 0;
        REQUIRE(cm_chain_encode(chain, ctx, decoded, stored, &made, NULL) == CM_OK);
        for (size_t i = 0; i + 2 < nbytes && i < 12 && made > 0; i += 3)
            stored[(data[i] | data[i + 1] << 8) % made] ^= data[i + 2];
        nbytes = made;
    } else
        memcpy(stored, data, nbytes);
    /* Of its own length, so that a read beyond it is seen. */
    uint8_t *exact = malloc(nbytes + (nbytes == 0));
    REQUIRE(exact != NULL);
    memcpy(exact, stored, nbytes);
    const int rc = cm_chain_split(chain, exact, nbytes, 0, &s, NULL);
    const bool whole = cm_chain_decode(chain, ctx, exact, nbytes, 0, decoded, NULL) == CM_OK;
    if (rc == CM_OK)
        check_bounds(chain, &s, nbytes);
    if (rc == CM_OK && whole) {
        for (size_t i = 0; i < s.nstreams; i++)
            REQUIRE(decode(&s.stream[i], exact));
        unshuffle(&s);
        const uint32_t unit = cm_chain_split_swap(chain);
        if (unit > 1)
            cm_swap_bytes(back, back, s.nbytes / unit, unit);
        REQUIRE(memcmp(back, decoded, s.nbytes) == 0);
    }
    cm_chunk_streams_release(&s);
    cm_chain_free(chain);
    free(stored);
    free(exact);
    return 0;
}
