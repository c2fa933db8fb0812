#include "codec/zstd_writer.h"

#include <stdlib.h>

#include <zstd.h>

#include "base/mem.h"

struct cm_zstd_writer {
    ZSTD_CCtx *c;
    cm_zstd_sink *sink;
    void *context;
    size_t room;
    uint8_t out[];
};

static int failed(size_t code, cm_error *err)
{
    return cm_fail(err, CM_EINTERNAL, "the zstd encoder failed (%s)", ZSTD_getErrorName(code));
}

int cm_zstd_writer_open(int level, uint64_t nbytes, cm_zstd_sink *sink, void *context,
                        cm_zstd_writer **out, cm_error *err)
{
    const size_t room = ZSTD_CStreamOutSize();
    cm_zstd_writer *w = *out = cm_calloc(1, sizeof(*w) + room, err);
    if (w == NULL)
        return CM_ENOMEM;
    w->sink = sink;
    w->context = context;
    w->room = room;
    if ((w->c = ZSTD_createCCtx()) == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for a zstd encoder");
    size_t rc = ZSTD_CCtx_setParameter(w->c, ZSTD_c_compressionLevel, level);
    if (!ZSTD_isError(rc))
        rc = ZSTD_CCtx_setPledgedSrcSize(w->c, nbytes);
    return ZSTD_isError(rc) ? failed(rc, err) : CM_OK;
}

static int step(cm_zstd_writer *w, ZSTD_inBuffer *in, ZSTD_EndDirective how, size_t *left,
                cm_error *err)
{
    ZSTD_outBuffer out = {w->out, w->room, 0};
    *left = ZSTD_compressStream2(w->c, &out, in, how);
    if (ZSTD_isError(*left))
        return failed(*left, err);
    return out.pos > 0 ? w->sink(w->context, w->out, out.pos, err) : CM_OK;
}

int cm_zstd_writer_put(cm_zstd_writer *w, const void *data, size_t nbytes, cm_error *err)
{
    ZSTD_inBuffer in = {data, nbytes, 0};
    size_t left;
    int rc = CM_OK;
    while (rc == CM_OK && in.pos < in.size)
        rc = step(w, &in, ZSTD_e_continue, &left, err);
    return rc;
}

int cm_zstd_writer_end(cm_zstd_writer *w, cm_error *err)
{
    ZSTD_inBuffer in = {NULL, 0, 0};
    size_t left = 1;
    int rc = CM_OK;
    while (rc == CM_OK && left > 0)
        rc = step(w, &in, ZSTD_e_end, &left, err);
    return rc;
}

void cm_zstd_writer_free(cm_zstd_writer *w)
{
    if (w == NULL)
        return;
    ZSTD_freeCCtx(w->c);
    free(w);
}
