#include "format/icechunk/file_read.h"

#include <string.h>

#include "codec/zstd_reader.h"

#define MOST_NBYTES (UINT64_C(2) << 30)

static int check_header(const cm_buf *stored, const char *name, cm_ice_kind kind, unsigned *version,
                        cm_error *err)
{
    const uint8_t *header = stored->data;
    if (stored->nbytes < CM_ICE_HEADER_NBYTES ||
        memcmp(header, CM_ICE_MAGIC, CM_ICE_MAGIC_NBYTES) != 0)
        return cm_fail(err, CM_EFORMAT, "%s: is not a file of Icechunk", name);
    header += CM_ICE_MAGIC_NBYTES + CM_ICE_WRITER_NBYTES;
    *version = header[0];
    if (*version < 1 || *version > CM_ICE_VERSION)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: is of version %u of Icechunk's format", name,
                       *version);
    if (header[1] != kind)
        return cm_fail(err, CM_EFORMAT, "%s: is a file of another kind (%u)", name, header[1]);
    if (header[2] > CM_ICE_ZSTD)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: its compression %u is not known", name,
                       header[2]);
    return CM_OK;
}

static int decode(cm_ice_read *r, const char *name, cm_error *err)
{
    const uint8_t *body = r->stored.data + CM_ICE_HEADER_NBYTES;
    const size_t nbytes = r->stored.nbytes - CM_ICE_HEADER_NBYTES;
    if (body[-1] != CM_ICE_ZSTD)
        return cm_buf_append(&r->flat, body, nbytes, err);
    int rc = cm_zstd_read(body, nbytes, MOST_NBYTES, &r->flat, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s", name);
    return rc;
}

int cm_ice_file_read(cm_store *store, const char *key, cm_ice_kind kind, const cm_fb_schema *schema,
                     cm_ice_read *out, cm_error *err)
{
    *out = (cm_ice_read){0};
    int rc = cm_store_get(store, key, MOST_NBYTES, &out->stored, err);
    if (rc == CM_OK)
        rc = check_header(&out->stored, key, kind, &out->version, err);
    if (rc == CM_OK)
        rc = decode(out, key, err);
    if (rc == CM_OK)
        rc = cm_fb_read(out->flat.data, out->flat.nbytes, schema, key, &out->tree, err);
    if (rc != CM_OK)
        cm_ice_read_release(out);
    return rc;
}

void cm_ice_read_release(cm_ice_read *r)
{
    cm_fb_release(&r->tree);
    cm_buf_release(&r->stored);
    cm_buf_release(&r->flat);
}
