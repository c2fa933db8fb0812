/* One object of a snapshot that is open: in it, in a manifest, or in another object. */
#include <stdlib.h>
#include <string.h>

#include "format/icechunk/read_impl.h"

/* Opens its file in a folder; behind a network reading will show whether the object has it. */
static int open_source(cm_ice_store *s, cm_ice_reader *r, cm_error *err)
{
    const cm_ice_chunk *chunk = &r->found.chunk;
    int rc = cm_ice_source_find(s, r->base.key, &r->found, &r->source, err);
    if (rc != CM_OK || r->source.spot.is_net)
        return rc;
    return cm_ice_source_open(&r->source, r->base.key, chunk->offset + chunk->nbytes, &r->file,
                              err);
}

int cm_ice_object_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    cm_ice_store *s = cm_ice_store_of(store);
    cm_ice_reader *r = cm_calloc(1, sizeof(*r), err);
    if (r == NULL)
        return CM_ENOMEM;
    r->base.store = store;
    r->base.key = cm_strdup(key, err);
    int rc = r->base.key == NULL ? CM_ENOMEM : cm_ice_find(s, key, false, &r->found, err);
    r->base.nbytes = r->found.chunk.nbytes;
    if (rc == CM_OK && r->found.chunk.where != CM_ICE_INLINE)
        rc = open_source(s, r, err);
    if (rc != CM_OK) {
        cm_ice_object_close(&r->base);
        return rc;
    }
    *out = &r->base;
    return CM_OK;
}

int cm_ice_object_read(cm_object_reader *base, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err)
{
    cm_ice_reader *r = (cm_ice_reader *)base;
    const cm_ice_chunk *chunk = &r->found.chunk;
    if (r->file != NULL)
        return cm_object_read(r->file, chunk->offset + offset, dst, nbytes, err);
    if (chunk->where != CM_ICE_INLINE)
        return cm_ice_source_read(&r->source, base->key, chunk->offset + offset, dst, nbytes, err);
    memcpy(dst, chunk->bytes + offset, nbytes); /* the range was checked against nbytes */
    return CM_OK;
}

void cm_ice_object_close(cm_object_reader *base)
{
    cm_ice_reader *r = (cm_ice_reader *)base;
    cm_object_close(r->file);
    cm_ice_source_release(&r->source);
    cm_ice_found_release(cm_ice_store_of(base->store), &r->found);
    free(base->key);
    free(r);
}
