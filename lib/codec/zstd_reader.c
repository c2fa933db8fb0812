#include "codec/zstd_reader.h"

#include <zstd.h>

/* Room for at least one more block; twice as much as there was. */
static int make_room(cm_buf *out, cm_error *err)
{
    size_t more;
    if (out->capacity - out->nbytes >= ZSTD_DStreamOutSize())
        return CM_OK;
    if (!cm_add_size(2 * out->capacity, ZSTD_DStreamOutSize(), &more))
        return cm_fail(err, CM_ENOMEM, "no memory for a zstd frame");
    return cm_buf_reserve(out, more, err);
}

static int read_all(ZSTD_DCtx *d, ZSTD_inBuffer *in, uint64_t most, cm_buf *out, cm_error *err)
{
    size_t left = 1;
    bool full = true;
    while (in->pos < in->size || (left > 0 && full)) {
        int rc = make_room(out, err);
        if (rc != CM_OK)
            return rc;
        ZSTD_outBuffer to = {out->data, out->capacity, out->nbytes};
        left = ZSTD_decompressStream(d, &to, in);
        if (ZSTD_isError(left))
            return cm_fail(err, CM_EFORMAT, "a zstd frame is damaged (%s)",
                           ZSTD_getErrorName(left));
        full = to.pos == to.size;
        out->nbytes = to.pos;
        if (out->nbytes > most)
            return cm_fail(err, CM_EFORMAT, "decodes to more than %llu bytes",
                           (unsigned long long)most);
    }
    return left == 0 ? CM_OK : cm_fail(err, CM_EFORMAT, "a zstd frame is cut short");
}

int cm_zstd_read(const void *data, size_t nbytes, uint64_t most, cm_buf *out, cm_error *err)
{
    ZSTD_DCtx *d = ZSTD_createDCtx();
    ZSTD_inBuffer in = {data, nbytes, 0};
    int rc = d == NULL ? cm_fail(err, CM_ENOMEM, "no memory for a zstd decoder")
                       : read_all(d, &in, most, out, err);
    ZSTD_freeDCtx(d);
    return rc;
}
