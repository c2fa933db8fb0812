#include "format/icechunk/file_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <chunkmill/version.h>

#include "codec/zstd_writer.h"
#include "format/icechunk/schema.h"

enum {
    LEVEL = 3 /* of zstd; icechunk's own default */
};

struct cm_ice_file {
    cm_object_writer *object; /* NULL: OUT takes the bytes */
    cm_buf *out;
    cm_zstd_writer *zstd;
    uint64_t at;
};

static void make_header(cm_ice_kind kind, uint8_t header[CM_ICE_HEADER_NBYTES])
{
    char writer[CM_ICE_WRITER_NBYTES + 1];
    int n = snprintf(writer, sizeof(writer), "chunkmill-%s", cm_version());
    memset(header, ' ', CM_ICE_HEADER_NBYTES);
    memcpy(header, CM_ICE_MAGIC, CM_ICE_MAGIC_NBYTES);
    memcpy(header + CM_ICE_MAGIC_NBYTES, writer,
           (size_t)n < CM_ICE_WRITER_NBYTES ? (size_t)n : CM_ICE_WRITER_NBYTES);
    header[CM_ICE_HEADER_NBYTES - 3] = CM_ICE_VERSION;
    header[CM_ICE_HEADER_NBYTES - 2] = (uint8_t)kind;
    header[CM_ICE_HEADER_NBYTES - 1] = CM_ICE_ZSTD;
}

static int sink(void *context, const void *data, size_t nbytes, cm_error *err)
{
    cm_ice_file *f = context;
    int rc = f->out != NULL ? cm_buf_append(f->out, data, nbytes, err)
                            : cm_object_write(f->object, f->at, data, nbytes, err);
    f->at += nbytes;
    return rc;
}

static int begin(cm_ice_file *f, cm_ice_kind kind, uint64_t nbytes, cm_error *err)
{
    uint8_t header[CM_ICE_HEADER_NBYTES];
    make_header(kind, header);
    int rc = sink(f, header, sizeof(header), err);
    return rc == CM_OK ? cm_zstd_writer_open(LEVEL, nbytes, sink, f, &f->zstd, err) : rc;
}

int cm_ice_file_create(cm_store *store, const char *key, cm_ice_kind kind, uint64_t nbytes,
                       cm_ice_file **out, cm_error *err)
{
    const cm_object_form form = {.in_order = true};
    cm_ice_file *f = *out = cm_calloc(1, sizeof(*f), err);
    if (f == NULL)
        return CM_ENOMEM;
    int rc = cm_object_create(store, key, &form, &f->object, err);
    if (rc == CM_OK)
        rc = begin(f, kind, nbytes, err);
    if (rc != CM_OK) {
        cm_ice_file_abort(f);
        *out = NULL;
    }
    return rc;
}

int cm_ice_file_put(cm_ice_file *f, const void *data, size_t nbytes, cm_error *err)
{
    return cm_zstd_writer_put(f->zstd, data, nbytes, err);
}

int cm_ice_file_commit(cm_ice_file *f, uint64_t *stored, cm_error *err)
{
    int rc = cm_zstd_writer_end(f->zstd, err);
    if (rc == CM_OK && f->object != NULL) {
        rc = cm_object_commit(f->object, err);
        f->object = NULL;
    }
    if (stored != NULL)
        *stored = f->at;
    cm_ice_file_abort(f);
    return rc;
}

void cm_ice_file_abort(cm_ice_file *f)
{
    if (f == NULL)
        return;
    cm_object_abort(f->object);
    cm_zstd_writer_free(f->zstd);
    free(f);
}

int cm_ice_file_write(cm_store *store, const char *key, cm_ice_kind kind, const cm_buf *flat,
                      uint64_t *stored, cm_error *err)
{
    cm_ice_file *f;
    int rc = cm_ice_file_create(store, key, kind, flat->nbytes, &f, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_ice_file_put(f, flat->data, flat->nbytes, err);
    if (rc == CM_OK)
        return cm_ice_file_commit(f, stored, err);
    cm_ice_file_abort(f);
    return rc;
}

int cm_ice_file_seal(cm_ice_kind kind, const cm_buf *flat, cm_buf *out, cm_error *err)
{
    cm_ice_file f = {.out = out};
    out->nbytes = 0;
    int rc = begin(&f, kind, flat->nbytes, err);
    if (rc == CM_OK)
        rc = cm_zstd_writer_put(f.zstd, flat->data, flat->nbytes, err);
    if (rc == CM_OK)
        rc = cm_zstd_writer_end(f.zstd, err);
    cm_zstd_writer_free(f.zstd);
    return rc;
}
