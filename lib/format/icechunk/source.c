/* The objects that chunks lie in. */
#include <stdlib.h>
#include <string.h>

#include "format/icechunk/key.h"
#include "format/icechunk/read_impl.h"

int cm_ice_source_find(cm_ice_store *s, const char *key, const cm_ice_chunk *chunk,
                       cm_ice_source *out, cm_error *err)
{
    char name[CM_ICE_KEY_SIZE];
    *out = (cm_ice_source){.store = s->root, .is_net = s->is_net};
    if (chunk->where == CM_ICE_OUTSIDE)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: lies in a file outside the repository (a virtual chunk), and those are "
                       "not read",
                       key);
    cm_ice_key("chunks", chunk->id, name);
    return (out->key = cm_strdup(name, err)) != NULL ? CM_OK : CM_ENOMEM;
}

void cm_ice_source_release(cm_ice_source *source)
{
    free(source->key);
    *source = (cm_ice_source){0};
}

bool cm_ice_source_is_same(const cm_ice_chunk *a, const cm_ice_chunk *b)
{
    return a->where == CM_ICE_IN_FILE && b->where == CM_ICE_IN_FILE &&
           memcmp(a->id, b->id, CM_ICE_ID) == 0;
}

static int missing(const cm_ice_source *source, const char *key, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: its file %s is missing", key, source->key);
}

int cm_ice_source_open(const cm_ice_source *source, const char *key, uint64_t end,
                       cm_object_reader **out, cm_error *err)
{
    int rc = cm_object_open(source->store, source->key, out, err);
    if (rc == CM_ENOTFOUND)
        return missing(source, key, err);
    if (rc != CM_OK)
        return rc;
    if (end > cm_object_nbytes(*out)) {
        cm_object_close(*out);
        *out = NULL;
        return cm_fail(err, CM_EFORMAT, "%s: ends behind the end of its file %s", key, source->key);
    }
    return CM_OK;
}

cm_net_part cm_ice_source_part(const cm_ice_source *source, uint64_t offset, uint64_t nbytes)
{
    return (cm_net_part){
        .key = source->key, .shown = source->key, .offset = offset, .nbytes = nbytes};
}

int cm_ice_source_take(const cm_ice_source *source, const char *key, const cm_net_part *part,
                       cm_error *err)
{
    return part->rc == CM_ENOTFOUND ? missing(source, key, err) : CM_OK;
}

int cm_ice_source_read(const cm_ice_source *source, const char *key, uint64_t offset, void *dst,
                       size_t nbytes, cm_error *err)
{
    cm_net_part part = cm_ice_source_part(source, offset, nbytes);
    part.dst = dst;
    int rc = cm_net_read_parts(source->store, &part, 1, NULL, err);
    if (rc == CM_OK)
        return cm_ice_source_take(source, key, &part, err);
    cm_error_prefix(err, "%s", key);
    return rc;
}
