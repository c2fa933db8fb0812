/*
 * The codecs `vlen-utf8` and `vlen-bytes`: u32 LE number of elements, then for
 * each u32 LE bytes and the bytes (numcodecs/vlen.pyx; zarr-extensions,
 * codecs/vlen-utf8).
 */
#include "codec/impl.h"

static int prepare(cm_codec_step *step, cm_error *err)
{
    if (!cm_dtype_is_vlen(&step->in.type)) {
        char name[32];
        return cm_fail(err, CM_EFORMAT, "elements of %s have no variable length",
                       cm_dtype_name(&step->in.type, name, sizeof name));
    }
    if (step->in.nelem > UINT32_MAX) {
        return cm_fail(err, CM_EUNSUPPORTED, "a chunk of %llu elements, and %u is the most",
                       (unsigned long long)step->in.nelem, UINT32_MAX);
    }
    step->varying = true;
    step->out_bound = CM_CODEC_UNBOUNDED;
    return CM_OK;
}

int cm_vlen_decode(const cm_codec_step *step, cm_span src, cm_strings *out, cm_error *err)
{
    size_t nelem = (size_t)step->in.nelem;
    /* Every element has its length, so that this bounds what is allocated by what is there. */
    if (src.nbytes < 4 || (src.nbytes - 4) / 4 < nelem || cm_load_le32(src.data) != nelem) {
        return cm_fail(err, CM_EFORMAT, "%zu bytes that say %u elements, for a chunk of %zu",
                       src.nbytes, src.nbytes < 4 ? 0 : cm_load_le32(src.data), nelem);
    }
    int rc = cm_strings_reset(out, nelem, err);
    /* Everything besides the lengths is text: reserve it at once. */
    if (rc == CM_OK)
        rc = cm_buf_reserve(&out->arena, src.nbytes - 4 - 4 * nelem, err);
    size_t at = 4;
    for (size_t i = 0; i < nelem && rc == CM_OK; i++) {
        if (src.nbytes - at < 4)
            return cm_fail(err, CM_EFORMAT, "the chunk is cut short at element %zu", i);
        uint32_t n = cm_load_le32(src.data + at);
        at += 4;
        if (n > src.nbytes - at) {
            return cm_fail(err, CM_EFORMAT, "element %zu has %u bytes, where %zu are left", i, n,
                           src.nbytes - at);
        }
        rc = cm_strings_set(out, i, src.data + at, n, err);
        at += n;
    }
    if (rc == CM_OK && at != src.nbytes)
        return cm_fail(err, CM_EFORMAT, "%zu bytes after the last element", src.nbytes - at);
    return rc;
}

static int append_u32(cm_buf *out, uint32_t v, cm_error *err)
{
    uint8_t bytes[4];
    cm_store_le32(bytes, v);
    return cm_buf_append(out, bytes, sizeof bytes, err);
}

int cm_vlen_encode(const cm_codec_step *step, const cm_strings *src, cm_buf *out, cm_error *err)
{
    if (src->nelem != step->in.nelem) {
        return cm_fail(err, CM_EINTERNAL, "%zu elements for a chunk of %llu", src->nelem,
                       (unsigned long long)step->in.nelem);
    }
    out->nbytes = 0;
    int rc = append_u32(out, (uint32_t)src->nelem, err);
    for (size_t i = 0; i < src->nelem && rc == CM_OK; i++) {
        size_t n;
        const char *text = cm_strings_get(src, i, &n);
        if (n > UINT32_MAX) {
            return cm_fail(err, CM_EUNSUPPORTED, "element %zu has %zu bytes, and %u is the most", i,
                           n, UINT32_MAX);
        }
        rc = append_u32(out, (uint32_t)n, err);
        if (rc == CM_OK)
            rc = cm_buf_append(out, text, n, err);
    }
    return rc;
}

/* Never run by the runner for fixed sizes; strings.c calls the two functions above. */
static int refuse(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)step, (void)ctx, (void)src, (void)dst;
    return cm_fail(err, CM_EINTERNAL, "elements of variable length in a fixed buffer");
}

const cm_codec_ops cm_vlen_utf8_ops = {.name = "vlen-utf8",
                                       .kind = CM_CODEC_ARRAY_BYTES,
                                       .prepare = prepare,
                                       .decode = refuse,
                                       .encode = refuse};

const cm_codec_ops cm_vlen_bytes_ops = {.name = "vlen-bytes",
                                        .kind = CM_CODEC_ARRAY_BYTES,
                                        .prepare = prepare,
                                        .decode = refuse,
                                        .encode = refuse};
