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

static int too_large(const char *name, uint64_t most, cm_error *err)
{
    return cm_fail(err, CM_EBUDGET,
                   "%s: does not fit the memory: there are %llu MiB for it; raise `memory`", name,
                   (unsigned long long)(most >> 20));
}

/* Into OUT, which has no more room than that. */
static int decode(const cm_buf *stored, const char *name, uint64_t most, cm_buf *out, cm_error *err)
{
    const uint8_t *body = stored->data + CM_ICE_HEADER_NBYTES;
    const size_t nbytes = stored->nbytes - CM_ICE_HEADER_NBYTES;
    cm_buf flat = {0};
    if (body[-1] != CM_ICE_ZSTD)
        return cm_buf_append(out, body, nbytes, err);
    int rc = cm_zstd_read(body, nbytes, most, &flat, err);
    if (rc == CM_OK)
        rc = cm_buf_append(out, flat.data, flat.nbytes, err);
    else if (flat.nbytes > most && most < MOST_NBYTES)
        rc = too_large(name, most, err);
    else
        cm_error_prefix(err, "%s", name);
    cm_buf_release(&flat);
    return rc;
}

static int load(cm_store *store, const char *key, cm_ice_kind kind, cm_ice_read *out, cm_error *err)
{
    const uint64_t memory = cm_store_document_memory(store);
    const uint64_t most = memory < MOST_NBYTES ? memory : MOST_NBYTES;
    *out = (cm_ice_read){0};
    int rc = cm_store_get(store, key, most, &out->stored, err);
    if (rc == CM_OK)
        rc = check_header(&out->stored, key, kind, &out->version, err);
    return rc == CM_OK ? decode(&out->stored, key, most, &out->flat, err) : rc;
}

int cm_ice_file_load(cm_store *store, const char *key, cm_ice_kind kind, cm_buf *out, cm_error *err)
{
    cm_ice_read r;
    int rc = load(store, key, kind, &r, err);
    if (rc == CM_OK) {
        *out = r.flat;
        r.flat = (cm_buf){0};
    }
    cm_ice_read_release(&r);
    return rc;
}

int cm_ice_file_read(cm_store *store, const char *key, cm_ice_kind kind, const cm_fb_schema *schema,
                     cm_ice_read *out, cm_error *err)
{
    int rc = load(store, key, kind, out, err);
    if (rc == CM_OK)
        rc = cm_fb_read(out->flat.data, out->flat.nbytes, schema, key, &out->tree, err);
    if (rc != CM_OK)
        cm_ice_read_release(out);
    return rc;
}

int cm_ice_file_view(cm_store *store, const char *key, cm_ice_kind kind, const cm_fb_schema *schema,
                     cm_ice_read *out, cm_error *err)
{
    int rc = load(store, key, kind, out, err);
    cm_buf_release(&out->stored);
    if (rc == CM_OK)
        rc = cm_fb_read_known(out->flat.data, out->flat.nbytes, schema, key,
                              (size_t)cm_store_document_memory(store), &out->tree, err);
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
