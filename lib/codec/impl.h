/*
 * Inside the codec layer: what a codec is, and what a worker keeps for it.
 *
 * A chain is a row of steps in encoding order.  cm_chain_create fills in each
 * step from front to back: the codec's prepare checks the specification against
 * what comes in and says what goes out, so that every size is known or bounded
 * before the first chunk.  The steps are then only read.
 *
 * A step's work comes in three forms.  A transform reads one buffer and writes
 * another.  A view needs no writing: `bytes` without a swap, or a checksum that
 * is verified and cut off.  An append adds to the end of the data where they
 * lie.  The runner (run.c) places transforms so that the last one writes into
 * the caller's buffer.
 */
#ifndef CM_CODEC_IMPL_H
#define CM_CODEC_IMPL_H

#include "base/cpu.h"
#include "codec/codec.h"

/* Bound of the steps of a chain of variable-length elements. */
#define CM_CODEC_UNBOUNDED SIZE_MAX

/* No chunk decodes to more (codec.h). */
#define CM_CODEC_MAX_NBYTES ((size_t)1 << 40)

typedef struct cm_span {
    const uint8_t *data;
    size_t nbytes;
} cm_span;

typedef struct cm_room {
    uint8_t *data;
    size_t capacity;
    size_t nbytes; /* written */
    bool far;      /* nobody reads it soon: it may go past the caches */
} cm_room;

/* The array that one array->array codec passes to the next. */
typedef struct cm_codec_array {
    cm_dtype type;
    unsigned rank;
    uint64_t shape[CM_MAX_RANK];
    uint64_t nelem;
    size_t nbytes; /* 0 when elements are variable-length */
} cm_codec_array;

typedef struct cm_codec_ops cm_codec_ops;

typedef struct cm_codec_step {
    const cm_codec_ops *ops;
    const cm_codec_spec *spec; /* in the chain's copy */
    const uint8_t *fill; /* one element of IN, for codecs that leave out chunks; may be NULL */
    cm_codec_array in;   /* up to the array->bytes codec; after it, what that codec was given */
    cm_codec_array out;  /* array->array only */
    size_t in_bound;     /* decoded bytes, exact up to the first codec of varying size */
    size_t out_bound;    /* encoded bytes */
    cm_simd simd;        /* best instruction set of this CPU, chosen here once */
    bool decode_is_view;
    bool decode_trims; /* a view that cuts something off */
    bool encode_is_view;
    bool encode_appends;
    bool encode_writes; /* fills a new buffer: a transform, or an append to what the caller gave */
    bool varying;       /* the encoded size depends on the values */
    size_t decode_memory; /* library contexts and buffers besides the scratch */
    size_t encode_memory;
    void *state; /* owned through ops->release */
} cm_codec_step;

/*
 * A codec.  Its functions run in any thread; a step is constant once prepared.
 *
 * decode and encode set dst->nbytes.  A decoder that finds dst->capacity too
 * small returns CM_EBUDGET and nothing else does: the runner then grows the
 * room where it may, and makes it CM_EFORMAT where the size is known.
 */
struct cm_codec_ops {
    const char *name;
    cm_codec_class kind;
    int (*prepare)(cm_codec_step *step, cm_error *err); /* NULL: nothing to check */
    void (*release)(cm_codec_step *step);
    /* bytes->bytes: most encoded bytes of NBYTES; false when that overflows. */
    bool (*bound)(const cm_codec_step *step, size_t nbytes, size_t *out);
    int (*decode)(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err);
    int (*decode_view)(const cm_codec_step *step, cm_span *data, cm_error *err);
    int (*encode)(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err); /* NULL: this codec only decodes */
    int (*append)(const cm_codec_step *step, cm_room *data, cm_error *err);
    /* NULL, or says why this configuration cannot be encoded. */
    int (*can_encode)(const cm_codec_step *step, cm_error *err);
};

extern const cm_codec_ops cm_transpose_ops, cm_delta_ops, cm_fixedscaleoffset_ops, cm_quantize_ops,
    cm_bitround_ops, cm_astype_ops, cm_scale_offset_ops, cm_cast_value_ops, cm_packbits_ops,
    cm_bytes_ops, cm_vlen_utf8_ops, cm_vlen_bytes_ops, cm_sharding_ops, cm_gzip_ops, cm_zlib_ops,
    cm_zstd_ops, cm_blosc_ops, cm_lz4_ops, cm_bz2_ops, cm_shuffle_ops, cm_crc32c_ops, cm_crc32_ops,
    cm_adler32_ops, cm_fletcher32_ops, cm_szip_ops, cm_hdf5_lz4_ops, cm_lzf_ops, cm_bitshuffle_ops;

/* NULL when ID is none. */
const cm_codec_ops *cm_codec_ops_of(cm_codec_id id);

struct cm_chain {
    cm_codec_spec *specs;
    size_t nsteps;
    cm_codec_step *step;
    size_t nfirst; /* steps in front of the first bytes->bytes codec; the last is array->bytes */
    uint8_t *fill; /* one element as it enters the array->bytes codec, or NULL */
    size_t encode_target; /* the step that writes to the caller's buffer; nsteps: none */
    size_t decoded_nbytes;
    size_t encoded_bound;
    size_t decode_scratch, encode_scratch; /* bytes of one scratch buffer */
    size_t decode_memory, encode_memory;
};

/* cm_chain_create, with one element of TYPE that stands for chunks left out (NULL: zero). */
int cm_chain_create_filled(const cm_codec_spec *specs, size_t nspecs, const cm_dtype *type,
                           unsigned rank, const uint64_t *shape, const uint8_t *fill,
                           cm_chain **out, cm_error *err);

/*
 * The step that decodes into the caller's buffer when SKIP is left out: the last
 * transform, unless something is cut off its result.  nsteps: none does, and
 * what comes out at the end is copied.
 */
size_t cm_chain_decode_target(const cm_chain *chain, uint32_t skip);

/* Sets TYPE, SHAPE and what follows from them; CM_EBUDGET above CM_CODEC_MAX_NBYTES. */
int cm_codec_array_init(cm_codec_array *a, const cm_dtype *type, unsigned rank,
                        const uint64_t *shape, cm_error *err);

/* step->out is step->in with elements of TYPE. */
int cm_codec_retype(cm_codec_step *step, const cm_dtype *type, cm_error *err);

/* Views that leave the data as they are. */
int cm_codec_view_all(const cm_codec_step *step, cm_span *data, cm_error *err);

/* CM_EBUDGET: dst is too small for NBYTES. */
int cm_codec_no_room(const cm_room *dst, size_t nbytes, cm_error *err);

struct cm_codec_ctx {
    cm_buf scratch[2]; /* between the steps of a chain */
    cm_buf work;       /* within one step */
    cm_buf index;      /* within one step: entries of a shard */
    struct libdeflate_decompressor *inflater;
    struct libdeflate_compressor *deflater;
    int deflate_level;
    struct ZSTD_DCtx_s *zstd_decoder;
    struct ZSTD_CCtx_s *zstd_encoder;
    cm_codec_ctx *inner; /* of the chains within a shard */
};

/* The library contexts, made when first asked for; NULL and an error when there is no memory. */
struct libdeflate_decompressor *cm_ctx_inflater(cm_codec_ctx *ctx, cm_error *err);
struct libdeflate_compressor *cm_ctx_deflater(cm_codec_ctx *ctx, int level, cm_error *err);
struct ZSTD_DCtx_s *cm_ctx_zstd_decoder(cm_codec_ctx *ctx, cm_error *err);
struct ZSTD_CCtx_s *cm_ctx_zstd_encoder(cm_codec_ctx *ctx, cm_error *err);
cm_codec_ctx *cm_ctx_inner(cm_codec_ctx *ctx, cm_error *err);

/* Memory of a ZSTD_CCtx for chunks of NBYTES at LEVEL, and of a ZSTD_DCtx. */
size_t cm_zstd_encode_memory(int level, size_t nbytes);
size_t cm_zstd_decode_memory(void);

/* Where the inner chunks of a shard lie: made in sharding.c, read in shard.c. */
struct cm_shard_layout {
    cm_grid grid;
    cm_chain *index;
    bool index_at_start;
};

/* The array->bytes codecs of variable-length elements. */
int cm_vlen_decode(const cm_codec_step *step, cm_span src, cm_strings *out, cm_error *err);
int cm_vlen_encode(const cm_codec_step *step, const cm_strings *src, cm_buf *out, cm_error *err);

#endif
