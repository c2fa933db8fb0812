/*
 * Codecs: how the elements of a chunk become stored bytes and come back.
 *
 * A list of cm_codec_spec, in encoding order, is prepared once for one element
 * type and chunk shape into a cm_chain; all sizes are checked and bounded
 * there.  A chain is immutable and shared by all threads; a cm_codec_ctx holds
 * one worker's library contexts and scratch.
 *
 *     array -> array    transpose delta fixedscaleoffset scale_offset cast_value ...
 *     array -> bytes    bytes, or vlen-utf8, vlen-bytes, or sharding_indexed: exactly one
 *     bytes -> bytes    gzip zlib zstd blosc lz4 bz2 shuffle crc32c fletcher32 ...
 *
 * HDF5's filter pipeline is such a list too: bytes, then the pipeline's filters
 * in their stored order.  Codecs see bytes, never files and never JSON.
 *
 * Stored bytes are hostile: decoding checks every length it reads, never
 * allocates by a claimed size beyond the bound that the chain prepared, and
 * returns CM_EFORMAT with the codec's name and what is wrong.
 */
#ifndef CM_CODEC_CODEC_H
#define CM_CODEC_CODEC_H

#include "model/box.h"
#include "model/strings.h"

typedef enum cm_codec_id {
    CM_CODEC_NONE = 0,
    /* array -> array */
    CM_CODEC_TRANSPOSE,
    CM_CODEC_DELTA,            /* numcodecs */
    CM_CODEC_FIXEDSCALEOFFSET, /* numcodecs */
    CM_CODEC_QUANTIZE,         /* numcodecs; decode only changes the type */
    CM_CODEC_BITROUND,
    CM_CODEC_ASTYPE, /* numcodecs */
    CM_CODEC_SCALE_OFFSET,
    CM_CODEC_CAST_VALUE,
    CM_CODEC_PACKBITS, /* numcodecs */
    /* array -> bytes */
    CM_CODEC_BYTES,
    CM_CODEC_VLEN_UTF8,
    CM_CODEC_VLEN_BYTES,
    CM_CODEC_SHARDING,
    /* bytes -> bytes */
    CM_CODEC_GZIP,
    CM_CODEC_ZLIB,
    CM_CODEC_ZSTD,
    CM_CODEC_BLOSC,
    CM_CODEC_LZ4, /* numcodecs: u32 LE size, one raw block */
    CM_CODEC_BZ2,
    CM_CODEC_SHUFFLE,
    CM_CODEC_CRC32C,
    CM_CODEC_CRC32,   /* numcodecs */
    CM_CODEC_ADLER32, /* numcodecs */
    CM_CODEC_FLETCHER32,
    CM_CODEC_SZIP,      /* HDF5 filter 4 */
    CM_CODEC_HDF5_LZ4,  /* HDF5 filter 32004 */
    CM_CODEC_LZF,       /* HDF5 filter 32000 */
    CM_CODEC_BITSHUFFLE /* HDF5 filter 32008 */
} cm_codec_id;

typedef enum cm_codec_class {
    CM_CODEC_ARRAY_ARRAY,
    CM_CODEC_ARRAY_BYTES,
    CM_CODEC_BYTES_BYTES
} cm_codec_class;

typedef enum cm_blosc_shuffle {
    CM_BLOSC_NOSHUFFLE = 0,
    CM_BLOSC_SHUFFLE = 1,
    CM_BLOSC_BITSHUFFLE = 2
} cm_blosc_shuffle;

typedef struct cm_codec_spec cm_codec_spec;

/* sharding_indexed; the spec owns everything here. */
typedef struct cm_shard_spec {
    unsigned rank;
    uint64_t chunk[CM_MAX_RANK]; /* inner chunk shape */
    cm_codec_spec *codecs;       /* of an inner chunk */
    size_t ncodecs;
    cm_codec_spec *index_codecs; /* of the index: bytes, usually crc32c */
    size_t nindex_codecs;
    bool index_at_start;
    /* One element of the type of the chain's array, for inner chunks that are missing; NULL: zeros.
     * Only decoding a whole shard through a chain reads it.  Nested shards take the outer one's. */
    uint8_t *fill;
    size_t fill_nbytes;
} cm_shard_spec;

typedef struct cm_cast_pair { /* one entry of a cast_value scalar_map */
    uint8_t from[16];
    uint8_t to[16];
} cm_cast_pair;

typedef struct cm_cast_spec {
    cm_dtype to;
    enum {
        CM_ROUND_NEAREST_EVEN,
        CM_ROUND_TOWARDS_ZERO,
        CM_ROUND_UP,
        CM_ROUND_DOWN,
        CM_ROUND_NEAREST_AWAY
    } rounding;
    enum {
        CM_RANGE_ERROR,
        CM_RANGE_CLAMP,
        CM_RANGE_WRAP
    } out_of_range;
    cm_cast_pair *encode_map; /* owned */
    size_t nencode_map;
    cm_cast_pair *decode_map; /* owned */
    size_t ndecode_map;
} cm_cast_spec;

/* One codec and its configuration.  Zeroed members not used by ID. */
struct cm_codec_spec {
    cm_codec_id id;
    int level;                   /* gzip zlib zstd bz2; lz4: acceleration */
    bool checksum;               /* zstd */
    bool big_endian;             /* bytes */
    bool at_start;               /* crc32c and friends: checksum in front of the data */
    uint32_t elementsize;        /* shuffle; blosc: typesize, 0: that of the elements */
    uint32_t keepbits;           /* bitround; quantize: digits */
    unsigned order[CM_MAX_RANK]; /* transpose: encoded dimension i is decoded dimension order[i] */
    struct {
        char cname[12]; /* "zstd", "lz4", "lz4hc", "zlib", "blosclz", "snappy" */
        cm_blosc_shuffle shuffle;
        uint32_t blocksize; /* 0: automatic; CM_BLOSC_ONE_BLOCK: the whole chunk */
    } blosc;
    double scale, offset;    /* fixedscaleoffset */
    uint8_t exact_scale[16]; /* scale_offset: in the array's own type, 1 where none is given */
    uint8_t exact_offset[16];
    cm_dtype dtype,
        astype; /* delta, fixedscaleoffset, quantize, astype: decoded and encoded type */
    bool dtype_big_endian, astype_big_endian; /* as written; the stored order is that of `bytes` */
    uint32_t szip[4];       /* options mask, pixels a block, bits a pixel, pixels a scanline */
    uint32_t bitshuffle[3]; /* element size, block (0: automatic), 0 none | 2 lz4 | 3 zstd */
    cm_cast_spec *cast;     /* cast_value, owned */
    cm_shard_spec *shard;   /* sharding_indexed, owned */
};

#define CM_BLOSC_ONE_BLOCK UINT32_MAX

/* "zstd", "sharding_indexed", ...: the name used in messages and on the command line. */
const char *cm_codec_name(cm_codec_id id);
/* The names of N codecs, to be freed. */
int cm_codec_names(const cm_codec_spec *spec, size_t n, char **out, cm_error *err);
cm_codec_class cm_codec_class_of(cm_codec_id id);

/* Deep copies; release frees what specs own (NULL accepted). */
int cm_codec_specs_copy(const cm_codec_spec *specs, size_t n, cm_codec_spec **out, cm_error *err);
void cm_codec_specs_free(cm_codec_spec *specs, size_t n);

typedef struct cm_chain cm_chain;
typedef struct cm_codec_ctx cm_codec_ctx;

/* One per worker thread; NULL when there is no memory. */
cm_codec_ctx *cm_codec_ctx_create(cm_error *err);
void cm_codec_ctx_free(cm_codec_ctx *ctx);

/*
 * Prepares SPECS (copied) for chunks of SHAPE elements of TYPE.  CM_EFORMAT
 * when the list breaks the order above or does not fit the type (a list
 * without an array->bytes codec gets `bytes`, little-endian); CM_EUNSUPPORTED,
 * naming the codec, when it cannot be decoded here; CM_EBUDGET when a chunk
 * decodes to more than 2^40 bytes.
 */
int cm_chain_create(const cm_codec_spec *specs, size_t nspecs, const cm_dtype *type, unsigned rank,
                    const uint64_t *shape, cm_chain **out, cm_error *err);
void cm_chain_free(cm_chain *chain);

/* True when both have the same codecs, for chunks of any shape; false where it is not known. */
bool cm_chain_same_codecs(const cm_chain *a, const cm_chain *b);
/* CM_OK, or CM_EUNSUPPORTED with a sentence that names the codec that has no encoder. */
int cm_chain_can_encode(const cm_chain *chain, cm_error *err);

size_t cm_chain_decoded_nbytes(const cm_chain *chain); /* 0 when elements are variable-length */
/* No encoded chunk is longer, whatever the values; 0 when elements are variable-length. */
size_t cm_chain_encoded_bound(const cm_chain *chain);
/*
 * Upper bound for a worker's ctx after decoding (or encoding) with CHAIN, library contexts
 * included.
 */
size_t cm_chain_decode_memory(const cm_chain *chain);
size_t cm_chain_encode_memory(const cm_chain *chain);
/* True when decoding is a plain copy: one `bytes` codec that swaps nothing. */
bool cm_chain_is_raw(const cm_chain *chain);

/*
 * DST gets exactly decoded_nbytes.  Bit i of SKIP leaves out the i-th
 * bytes->bytes codec, as an HDF5 chunk's filter mask does.  SRC is not
 * modified.
 */
int cm_chain_decode(const cm_chain *chain, cm_codec_ctx *ctx, const void *src, size_t src_nbytes,
                    uint32_t skip, void *dst, cm_error *err);
/* cm_chain_decode if DST is not read soon: the last step may bypass the caches. */
int cm_chain_decode_far(const cm_chain *chain, cm_codec_ctx *ctx, const void *src,
                        size_t src_nbytes, uint32_t skip, void *dst, cm_error *err);
/* True when the last codec is a checksum, which covers the bytes as they are stored. */
bool cm_chain_ends_in_checksum(const cm_chain *chain);
/* Compares the checksums that are the last codecs, without decoding what they cover. */
int cm_chain_check_stored(const cm_chain *chain, const void *src, size_t src_nbytes, cm_error *err);
/* DST has room for encoded_bound bytes; SRC is not modified and does not overlap DST. */
int cm_chain_encode(const cm_chain *chain, cm_codec_ctx *ctx, const void *src, void *dst,
                    size_t *dst_nbytes, cm_error *err);

/*
 * Decoding and encoding of variable-length elements.  OUT is reset; its arena's maximum limits the
 * decoded size.
 */
int cm_chain_decode_strings(const cm_chain *chain, cm_codec_ctx *ctx, const void *src,
                            size_t src_nbytes, cm_strings *out, cm_error *err);
int cm_chain_encode_strings(const cm_chain *chain, cm_codec_ctx *ctx, const cm_strings *src,
                            cm_buf *out, cm_error *err);

#endif
