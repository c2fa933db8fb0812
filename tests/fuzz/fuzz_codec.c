/*
 * Decoding of hostile chunks.  The first byte chooses a chain, the second the
 * filters that are skipped; the rest is the chunk.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"

#define I2                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_INT, .nbytes = 2                                                           \
    }
#define F4                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_FLOAT, .nbytes = 4                                                         \
    }

static cm_codec_spec inner[] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_GZIP}};
static cm_codec_spec index_codecs[] = {{.id = CM_CODEC_BYTES}};
static cm_shard_spec shard = {.rank = 2,
                              .chunk = {4, 8},
                              .codecs = inner,
                              .ncodecs = 2,
                              .index_codecs = index_codecs,
                              .nindex_codecs = 1};

static const cm_codec_spec chains[][4] = {
    {{.id = CM_CODEC_BYTES, .big_endian = true}},
    {{.id = CM_CODEC_FLETCHER32},
     {.id = CM_CODEC_SHUFFLE, .elementsize = 4},
     {.id = CM_CODEC_ZLIB}},
    {{.id = CM_CODEC_GZIP}},
    {{.id = CM_CODEC_ZSTD}},
    {{.id = CM_CODEC_BLOSC}},
    {{.id = CM_CODEC_LZ4}},
    {{.id = CM_CODEC_BZ2}},
    {{.id = CM_CODEC_LZF}},
    {{.id = CM_CODEC_HDF5_LZ4}},
    {{.id = CM_CODEC_BITSHUFFLE, .bitshuffle = {4, 0, 0}}},
    {{.id = CM_CODEC_BITSHUFFLE, .bitshuffle = {4, 16, 2}}},
    {{.id = CM_CODEC_BITSHUFFLE, .bitshuffle = {4, 16, 3}}},
    {{.id = CM_CODEC_SZIP, .szip = {169, 8, 32, 60}}},
    {{.id = CM_CODEC_SZIP, .szip = {141, 16, 16, 128}}},
    {{.id = CM_CODEC_SHARDING, .shard = &shard}},
    {{.id = CM_CODEC_TRANSPOSE, .order = {1, 0}}, {.id = CM_CODEC_CRC32C}},
    {{.id = CM_CODEC_DELTA, .dtype = F4, .astype = I2}, {.id = CM_CODEC_SHUFFLE, .elementsize = 3}},
    {{.id = CM_CODEC_VLEN_UTF8}, {.id = CM_CODEC_ZSTD}},
    {{.id = CM_CODEC_VLEN_UTF8}, {.id = CM_CODEC_BLOSC}},
    {{.id = CM_CODEC_VLEN_BYTES}, {.id = CM_CODEC_LZ4}, {.id = CM_CODEC_GZIP}},
};

enum {
    NCHAINS = sizeof chains / sizeof chains[0]
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const uint64_t shape[] = {16, 32};
    if (nbytes < 2)
        return 0;
    const cm_codec_spec *specs = chains[data[0] % NCHAINS];
    size_t n = 0;
    while (n < 4 && specs[n].id != CM_CODEC_NONE)
        n++;
    bool is_text = specs[0].id == CM_CODEC_VLEN_UTF8 || specs[0].id == CM_CODEC_VLEN_BYTES;
    cm_dtype type = is_text ? (cm_dtype){.kind = CM_KIND_STRING} : (cm_dtype)F4;
    cm_chain *chain;
    cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
    if (!ctx || cm_chain_create(specs, n, &type, 2, shape, &chain, NULL))
        abort();
    /* Copies of just that size, so that a sanitizer sees what lies beyond. */
    uint8_t *src = malloc(nbytes - 2 ? nbytes - 2 : 1);
    memcpy(src, data + 2, nbytes - 2);
    cm_error err;
    if (is_text) {
        cm_strings out;
        cm_strings_init(&out, 1 << 20);
        (void)cm_chain_decode_strings(chain, ctx, src, nbytes - 2, &out, &err);
        cm_strings_release(&out);
    } else {
        uint8_t *dst = malloc(cm_chain_decoded_nbytes(chain));
        (void)cm_chain_decode(chain, ctx, src, nbytes - 2, data[1], dst, &err);
        free(dst);
    }
    free(src);
    cm_chain_free(chain);
    cm_codec_ctx_free(ctx);
    return 0;
}
