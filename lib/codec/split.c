#include "codec/split.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "codec/blosc_frame.h"

enum {
    /* Blocks below this are not worth a decoder of their own; c-blosc's have 16 KiB and more. */
    LEAST_STREAM_NBYTES = 4096,
    FEW_STREAMS = 64,
    SLACK_NBYTES = 1024,
    ZLIB_HEADER = 2,
    ZLIB_TRAILER = 4,
    GZIP_HEADER = 10,
    GZIP_TRAILER = 8
};

/* One chunk. */
typedef struct splitting {
    const cm_chain *chain;
    const uint8_t *stored; /* where offsets count from */
    cm_chunk_streams *out;
} splitting;

void cm_chunk_streams_release(cm_chunk_streams *s)
{
    free(s->stream);
    *s = (cm_chunk_streams){0};
}

size_t cm_chain_split_bound(const cm_chain *chain)
{
    return FEW_STREAMS + chain->decoded_nbytes / LEAST_STREAM_NBYTES;
}

/* ---- what can be split ---- */

static bool is_checksum(cm_codec_id id)
{
    return id == CM_CODEC_CRC32C || id == CM_CODEC_CRC32 || id == CM_CODEC_ADLER32 ||
           id == CM_CODEC_FLETCHER32;
}

static bool is_compressor(const cm_codec_spec *spec)
{
    switch (spec->id) {
    case CM_CODEC_ZSTD:
    case CM_CODEC_GZIP:
    case CM_CODEC_ZLIB:
    case CM_CODEC_LZ4:
        return true;
    case CM_CODEC_BLOSC:
        return spec->blosc.shuffle != CM_BLOSC_BITSHUFFLE &&
               strcmp(spec->blosc.cname, "blosclz") != 0 &&
               strcmp(spec->blosc.cname, "snappy") != 0;
    default:
        return false;
    }
}

/*
 * In encoding order: shuffle, compressor, checksums; each step's place is not before that of
 * the one before.
 */
static int place_of(const cm_codec_spec *spec)
{
    if (spec->id == CM_CODEC_SHUFFLE)
        return 1;
    if (is_compressor(spec))
        return 2;
    return is_checksum(spec->id) ? 3 : 0;
}

int cm_chain_can_split(const cm_chain *chain, cm_error *err)
{
    int last = 0;
    if (cm_dtype_is_vlen(&chain->step[0].in.type))
        return cm_fail(err, CM_EUNSUPPORTED, "its elements have no fixed size");
    for (size_t i = 0; i < chain->nsteps; i++) {
        const cm_codec_step *step = &chain->step[i];
        const bool is_bytes = step->spec->id == CM_CODEC_BYTES;
        const int place = is_bytes ? 0 : place_of(step->spec);
        if (!is_bytes && place == 0)
            return cm_fail(err, CM_EUNSUPPORTED, "its chunks went through codec %s%s%s",
                           step->ops->name, step->spec->id == CM_CODEC_BLOSC ? " with " : "",
                           step->spec->id != CM_CODEC_BLOSC ? ""
                           : step->spec->blosc.shuffle == CM_BLOSC_BITSHUFFLE
                               ? "bit shuffle"
                               : step->spec->blosc.cname);
        if (place < last || (place == last && place < 3 && place > 0))
            return cm_fail(err, CM_EUNSUPPORTED, "codec %s stands after %s", step->ops->name,
                           step[-1].ops->name);
        last = place;
    }
    return CM_OK;
}

uint32_t cm_chain_split_swap(const cm_chain *chain)
{
    const cm_codec_step *bytes = &chain->step[0];
    return bytes->decode_is_view ? 0 : cm_dtype_swap_nbytes(&bytes->in.type);
}

static bool has_blosc(const cm_chain *chain)
{
    for (size_t i = 1; i < chain->nsteps; i++)
        if (chain->step[i].spec->id == CM_CODEC_BLOSC)
            return true;
    return false;
}

void cm_chain_split_most(const cm_chain *chain, cm_split_most *out)
{
    const size_t nbytes = chain->decoded_nbytes;
    /* A frame of blosc says itself how many blocks it has, and of which codec. */
    const size_t n = has_blosc(chain) ? cm_chain_split_bound(chain) : 1;
    /* What other libraries' encoders add to data that do not compress is of this order. */
    *out =
        (cm_split_most){.stored_nbytes = cm_chain_encoded_bound(chain) + nbytes / 64 + SLACK_NBYTES,
                        .all_streams = n,
                        .nblocks = n};
    for (int k = 0; k < CM_SPLIT_NKINDS; k++) {
        out->nstreams[k] = n;
        out->stream_nbytes[k] = nbytes;
    }
}

/* ---- streams ---- */

static int add(splitting *s, cm_split_kind kind, cm_span src, size_t at, size_t nbytes,
               cm_error *err)
{
    cm_chunk_streams *out = s->out;
    if (out->nstreams == cm_chain_split_bound(s->chain))
        return cm_fail(err, CM_EUNSUPPORTED, "it has blocks of less than %d bytes",
                       LEAST_STREAM_NBYTES);
    if (out->nstreams == out->capacity) {
        const size_t more = 2 * out->capacity + 16;
        cm_split_stream *grown = realloc(out->stream, more * sizeof *grown);
        if (grown == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for the streams of a chunk");
        out->stream = grown;
        out->capacity = more;
    }
    out->stream[out->nstreams++] = (cm_split_stream){.kind = kind,
                                                     .src = (size_t)(src.data - s->stored),
                                                     .src_nbytes = src.nbytes,
                                                     .dst = at,
                                                     .dst_nbytes = nbytes};
    return CM_OK;
}

static int wrong_length(cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "it is damaged: its length is not that of a chunk");
}

static int split_zstd(splitting *s, cm_span data, cm_error *err)
{
    const unsigned long long n = ZSTD_getFrameContentSize(data.data, data.nbytes);
    const size_t used = ZSTD_findFrameCompressedSize(data.data, data.nbytes);
    if (n == ZSTD_CONTENTSIZE_ERROR || ZSTD_isError(used) ||
        (n != ZSTD_CONTENTSIZE_UNKNOWN && used == data.nbytes && n != s->out->nbytes))
        return wrong_length(err);
    if (used != data.nbytes)
        return cm_fail(err, CM_EUNSUPPORTED, "it has several frames of zstd");
    return add(s, CM_SPLIT_ZSTD, data, 0, s->out->nbytes, err);
}

/* RFC 1950. */
static int inside_zlib(cm_span *data, cm_error *err)
{
    const uint8_t *p = data->data;
    const size_t least = ZLIB_HEADER + 1 + ZLIB_TRAILER;
    if (data->nbytes < least || (p[0] & 15) != 8 || (p[0] << 8 | p[1]) % 31 != 0 || p[1] & 32)
        return cm_fail(err, CM_EFORMAT, "it is damaged: it begins or ends unlike zlib");
    *data = (cm_span){p + ZLIB_HEADER, data->nbytes - ZLIB_HEADER - ZLIB_TRAILER};
    return CM_OK;
}

static int split_zlib(splitting *s, cm_span data, cm_error *err)
{
    int rc = inside_zlib(&data, err);
    return rc ? rc : add(s, CM_SPLIT_DEFLATE, data, 0, s->out->nbytes, err);
}

/* RFC 1952, a header without extras, as every library writes it. */
static int split_gzip(splitting *s, cm_span data, cm_error *err)
{
    const uint8_t *p = data.data;
    if (data.nbytes < GZIP_HEADER + 1 + GZIP_TRAILER || p[0] != 0x1f || p[1] != 0x8b || p[2] != 8)
        return cm_fail(err, CM_EFORMAT, "it is damaged: it begins or ends unlike gzip");
    if (p[3] != 0)
        return cm_fail(err, CM_EUNSUPPORTED, "its gzip header has fields that are seldom");
    if (cm_load_le32(p + data.nbytes - 4) != (uint32_t)s->out->nbytes)
        return wrong_length(err);
    const cm_span inside = {p + GZIP_HEADER, data.nbytes - GZIP_HEADER - GZIP_TRAILER};
    return add(s, CM_SPLIT_DEFLATE, inside, 0, s->out->nbytes, err);
}

static int split_lz4(splitting *s, cm_span data, cm_error *err)
{
    if (data.nbytes < 5 || cm_load_le32(data.data) != s->out->nbytes)
        return wrong_length(err);
    const cm_span block = {data.data + 4, data.nbytes - 4};
    return add(s, CM_SPLIT_LZ4, block, 0, s->out->nbytes, err);
}

static int add_blosc(void *context, cm_blosc_stream kind, cm_span src, size_t at, size_t nbytes,
                     cm_error *err)
{
    static const cm_split_kind kinds[] = {[CM_BLOSC_STORED] = CM_SPLIT_STORED,
                                          [CM_BLOSC_LZ4] = CM_SPLIT_LZ4,
                                          [CM_BLOSC_ZLIB] = CM_SPLIT_DEFLATE,
                                          [CM_BLOSC_ZSTD] = CM_SPLIT_ZSTD};
    int rc = kind == CM_BLOSC_ZLIB ? inside_zlib(&src, err) : CM_OK;
    return rc ? rc : add(context, kinds[kind], src, at, nbytes, err);
}

static int split_blosc(splitting *s, cm_span data, cm_error *err)
{
    static const cm_blosc_visit visit = {.stream = add_blosc};
    if (data.nbytes < CM_BLOSC_HEADER_NBYTES)
        return wrong_length(err);
    const cm_blosc_header h = cm_blosc_read_header(data.data);
    if (h.cbytes != data.nbytes || h.nbytes != s->out->nbytes)
        return wrong_length(err);
    if (!cm_blosc_takes(&h))
        return cm_fail(err, CM_EUNSUPPORTED, "its frame has bit shuffle or another compressor");
    if (cm_blosc_is_shuffled(&h)) {
        if (s->out->typesize)
            return cm_fail(err, CM_EUNSUPPORTED, "it is shuffled twice");
        s->out->typesize = h.typesize;
        s->out->block_nbytes = h.blocksize;
    }
    return cm_blosc_walk(&h, data, &visit, s, err);
}

static int split_compressed(splitting *s, cm_codec_id id, cm_span data, cm_error *err)
{
    switch (id) {
    case CM_CODEC_ZSTD:
        return split_zstd(s, data, err);
    case CM_CODEC_ZLIB:
        return split_zlib(s, data, err);
    case CM_CODEC_GZIP:
        return split_gzip(s, data, err);
    case CM_CODEC_LZ4:
        return split_lz4(s, data, err);
    default:
        return split_blosc(s, data, err);
    }
}

/* ---- chunks ---- */

/* The shuffle comes first in the chain, so that it is known here before the compressor is met. */
static void find_shuffle(const cm_chain *chain, uint32_t skip, cm_chunk_streams *out)
{
    for (size_t i = 1; i < chain->nsteps; i++) {
        const cm_codec_step *step = &chain->step[i];
        if (step->spec->id != CM_CODEC_SHUFFLE || cm_chain_skips(chain, i, skip))
            continue;
        out->typesize = step->spec->elementsize > 1 ? step->spec->elementsize : 0;
        out->block_nbytes = out->nbytes;
    }
}

int cm_chain_split(const cm_chain *chain, const void *src, size_t src_nbytes, uint32_t skip,
                   cm_chunk_streams *out, cm_error *err)
{
    splitting s = {.chain = chain, .stored = src, .out = out};
    cm_span data = {src, src_nbytes};
    out->nstreams = 0;
    out->typesize = 0;
    out->nbytes = out->block_nbytes = chain->decoded_nbytes;
    find_shuffle(chain, skip, out);
    for (size_t i = chain->nsteps; i-- > 1;) {
        const cm_codec_step *step = &chain->step[i];
        if (cm_chain_skips(chain, i, skip) || step->spec->id == CM_CODEC_SHUFFLE)
            continue;
        const bool is_sum = is_checksum(step->spec->id);
        int rc = is_sum ? step->ops->decode_view(step, &data, err)
                        : split_compressed(&s, step->spec->id, data, err);
        if (rc) {
            cm_error_prefix(err, "%s", step->ops->name);
            return rc;
        }
        if (!is_sum)
            return CM_OK;
    }
    return data.nbytes == out->nbytes ? add(&s, CM_SPLIT_STORED, data, 0, out->nbytes, err)
                                      : wrong_length(err);
}
