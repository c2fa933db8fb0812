#include "codec/zstd_reader.h"

#include <stdlib.h>
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

/* ---- with a dictionary ---- */

struct cm_zstd_dict {
    ZSTD_DDict *dict;
};

int cm_zstd_dict_create(const void *data, size_t nbytes, cm_zstd_dict **out, cm_error *err)
{
    cm_zstd_dict *d = *out = cm_calloc(1, sizeof(*d), err);
    if (d == NULL)
        return CM_ENOMEM;
    d->dict = ZSTD_createDDict(data, nbytes);
    if (d->dict != NULL)
        return CM_OK;
    free(d);
    *out = NULL;
    return cm_fail(err, CM_EFORMAT, "its dictionary is damaged");
}

void cm_zstd_dict_free(cm_zstd_dict *d)
{
    if (d != NULL)
        ZSTD_freeDDict(d->dict);
    free(d);
}

int cm_zstd_dict_read(const cm_zstd_dict *dict, const void *data, size_t nbytes, void *dst,
                      size_t room, size_t *got, cm_error *err)
{
    ZSTD_DCtx *d = ZSTD_createDCtx();
    if (d == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for a zstd decoder");
    *got = ZSTD_decompress_usingDDict(d, dst, room, data, nbytes, dict != NULL ? dict->dict : NULL);
    ZSTD_freeDCtx(d);
    return ZSTD_isError(*got)
               ? cm_fail(err, CM_EFORMAT, "a zstd frame is damaged, or too long (%s)",
                         ZSTD_getErrorName(*got))
               : CM_OK;
}
