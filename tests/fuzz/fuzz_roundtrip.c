/*
 * Any chain of codecs decodes its own output to the same elements, in as many bytes as
 * it said; another chain's output is read or refused.
 */
#include "codec/codec.h"
#include "fuzz.h"

enum {
    MAX_CODECS = 6
};

static const cm_dtype types[] = {
    {.kind = CM_KIND_FLOAT, .nbytes = 4}, {.kind = CM_KIND_FLOAT, .nbytes = 8},
    {.kind = CM_KIND_INT, .nbytes = 2},   {.kind = CM_KIND_UINT, .nbytes = 1},
    {.kind = CM_KIND_INT, .nbytes = 8},   {.kind = CM_KIND_BOOL, .nbytes = 1},
    {.kind = CM_KIND_FLOAT, .nbytes = 2}, {.kind = CM_KIND_UINT, .nbytes = 4}};

/* Codecs that lose nothing. */
static const cm_codec_id ids[] = {
    CM_CODEC_TRANSPOSE,  CM_CODEC_DELTA,   CM_CODEC_BYTES,       CM_CODEC_GZIP,
    CM_CODEC_ZLIB,       CM_CODEC_ZSTD,    CM_CODEC_BLOSC,       CM_CODEC_LZ4,
    CM_CODEC_BZ2,        CM_CODEC_SHUFFLE, CM_CODEC_CRC32C,      CM_CODEC_CRC32,
    CM_CODEC_ADLER32,    CM_CODEC_LZF,     CM_CODEC_FLETCHER32,  CM_CODEC_HDF5_LZ4,
    CM_CODEC_BITSHUFFLE, CM_CODEC_SZIP,    CM_CODEC_SCALE_OFFSET};

static void fill_spec(cm_codec_spec *s, fuzz_input *in, const cm_dtype *type, unsigned rank)
{
    static const char *const cname[] = {"zstd", "lz4", "lz4hc", "zlib", "blosclz", "snappy"};
    const unsigned a = (unsigned)fuzz_number(in, 1), b = (unsigned)fuzz_number(in, 1);
    s->level = (int)(a % 12);
    s->checksum = b & 1;
    s->big_endian = b & 2;
    s->at_start = b & 4;
    s->elementsize = b >> 3;
    for (unsigned i = 0; i < rank; i++)
        s->order[i] = (i + a) % rank;
    strcpy(s->blosc.cname, cname[a % 6]);
    s->blosc.shuffle = (cm_blosc_shuffle)(b % 3);
    s->dtype = s->astype = *type;
    s->exact_scale[0] = 1;
    for (size_t i = 0; i < 3; i++)
        s->bitshuffle[i] = i == 0 ? type->nbytes : i == 1 ? b / 8 * 8 : b % 4;
    s->szip[0] = b;
    s->szip[1] = a;
    s->szip[2] = 8 * type->nbytes;
    s->szip[3] = 32;
}

static bool is_lossy(const cm_codec_spec *s, const cm_dtype *type)
{
    /* Sums and differences of floats round. */
    return (s->id == CM_CODEC_DELTA || s->id == CM_CODEC_SCALE_OFFSET) &&
           type->kind == CM_KIND_FLOAT;
}

static void round_trip(const cm_chain *chain, fuzz_input *in, bool lossy)
{
    const size_t nbytes = cm_chain_decoded_nbytes(chain), bound = cm_chain_encoded_bound(chain);
    cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
    uint8_t *src = calloc(1, nbytes), *dst = malloc(bound > 0 ? bound : 1), *back = malloc(nbytes);
    size_t n = 0;
    cm_error err;
    REQUIRE(ctx != NULL && src != NULL && dst != NULL && back != NULL);
    for (size_t i = 0; i < nbytes && in->nbytes > 0; i++)
        src[i] = in->data[i % in->nbytes];
    if (cm_chain_encode(chain, ctx, src, dst, &n, &err) == CM_OK) {
        REQUIRE(n <= bound);
        uint8_t *stored = fuzz_copy(dst, n);
        REQUIRE(cm_chain_decode(chain, ctx, stored, n, 0, back, &err) == CM_OK);
        REQUIRE(lossy || memcmp(src, back, nbytes) == 0);
        /* Cut off and changed, it is refused or read, but never beyond what is there. */
        if (n > 0) {
            stored[in->nbytes % n] ^= 0x40;
            (void)cm_chain_decode(chain, ctx, stored, n - (in->nbytes & 1), 0, back, &err);
        }
        free(stored);
    }
    free(src);
    free(dst);
    free(back);
    cm_codec_ctx_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    fuzz_input in = {data, nbytes};
    const cm_dtype *type = &types[fuzz_number(&in, 1) % (sizeof types / sizeof *types)];
    const unsigned rank = (unsigned)fuzz_number(&in, 1) % 4;
    const size_t nspecs = fuzz_number(&in, 1) % (MAX_CODECS + 1);
    cm_codec_spec specs[MAX_CODECS] = {0};
    uint64_t shape[3];
    bool lossy = false;
    cm_chain *chain;
    cm_error err;
    for (unsigned i = 0; i < rank; i++)
        shape[i] = 1 + fuzz_number(&in, 1) % 12;
    for (size_t i = 0; i < nspecs; i++) {
        specs[i].id = ids[fuzz_number(&in, 1) % (sizeof ids / sizeof *ids)];
        fill_spec(&specs[i], &in, type, rank);
        lossy |= is_lossy(&specs[i], type);
    }
    if (cm_chain_create(specs, nspecs, type, rank, shape, &chain, &err) != CM_OK)
        return 0;
    if (cm_chain_can_encode(chain, &err) == CM_OK)
        round_trip(chain, &in, lossy || type->kind == CM_KIND_BOOL);
    cm_chain_free(chain);
    return 0;
}
