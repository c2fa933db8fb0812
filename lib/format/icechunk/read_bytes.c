/* The bytes of a snapshot's objects: in it, in its manifests, or in files of the repository. */
#include <stdlib.h>
#include <string.h>

#include "format/icechunk/key.h"
#include "format/icechunk/read_impl.h"

typedef struct reader {
    cm_object_reader base;
    cm_ice_found found;
    cm_object_reader *file; /* NULL: INLINE */
} reader;

static int open_file(cm_ice_store *s, const cm_ice_chunk *ref, const char *key,
                     cm_object_reader **out, cm_error *err)
{
    char name[CM_ICE_KEY_SIZE];
    cm_ice_key("chunks", ref->id, name);
    int rc = cm_object_open(s->root, name, out, err);
    if (rc == CM_ENOTFOUND)
        return cm_fail(err, CM_EFORMAT, "%s: its file %s is missing", key, name);
    if (rc == CM_OK && ref->offset + ref->nbytes > cm_object_nbytes(*out))
        return cm_fail(err, CM_EFORMAT, "%s: ends behind the end of its file %s", key, name);
    return rc;
}

static int open_found(cm_ice_store *s, const char *key, reader *r, cm_error *err)
{
    const cm_ice_chunk *ref = &r->found.ref;
    r->base.nbytes = ref->nbytes;
    if (ref->where == CM_ICE_OUTSIDE)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: lies in a file outside the repository (a virtual chunk), and those are "
                       "not read",
                       key);
    return ref->where == CM_ICE_IN_FILE ? open_file(s, ref, key, &r->file, err) : CM_OK;
}

int cm_ice_object_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    reader *r = cm_calloc(1, sizeof(*r), err);
    if (r == NULL)
        return CM_ENOMEM;
    r->base.store = store;
    r->base.key = cm_strdup(key, err);
    int rc =
        r->base.key == NULL ? CM_ENOMEM : cm_ice_find(cm_ice_store_of(store), key, &r->found, err);
    if (rc == CM_OK)
        rc = open_found(cm_ice_store_of(store), key, r, err);
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
    reader *r = (reader *)base;
    if (r->file != NULL)
        return cm_object_read(r->file, r->found.ref.offset + offset, dst, nbytes, err);
    memcpy(dst, r->found.ref.bytes + offset, nbytes); /* the range was checked against nbytes */
    return CM_OK;
}

void cm_ice_object_close(cm_object_reader *base)
{
    reader *r = (reader *)base;
    cm_object_close(r->file);
    cm_ice_found_release(cm_ice_store_of(base->store), &r->found);
    free(base->key);
    free(r);
}
