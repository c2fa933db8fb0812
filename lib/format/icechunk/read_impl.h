/* The inside of the store of a snapshot, which read_store.h opens. */
#ifndef CM_FORMAT_ICECHUNK_READ_IMPL_H
#define CM_FORMAT_ICECHUNK_READ_IMPL_H

#include "format/icechunk/shelf.h"
#include "format/icechunk/view.h"
#include "store/impl.h"

typedef struct cm_ice_store {
    cm_store base;
    cm_store_ops ops;
    cm_store *root;
    cm_ice_view view;
    cm_ice_shelf *shelf;
} cm_ice_store;

static inline cm_ice_store *cm_ice_store_of(const cm_store *store)
{
    return (cm_ice_store *)(uintptr_t)store;
}

/* ---- read_names.c ---- */

/* An object of the store.  Documents lie in the snapshot, INLINE. */
typedef struct cm_ice_found {
    cm_ice_chunk ref;
    const cm_ice_manifest_view *manifest; /* that REF borrows from, held; NULL: a document */
} cm_ice_found;

/* CM_ENOTFOUND when absent.  Release what was found. */
int cm_ice_find(cm_ice_store *s, const char *key, cm_ice_found *out, cm_error *err);
void cm_ice_found_release(cm_ice_store *s, cm_ice_found *found);

int cm_ice_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err);
int cm_ice_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err);
int cm_ice_walk(cm_store *store, const char *prefix, cm_store_visit_key *visit, void *context,
                cm_error *err);

/* ---- read_bytes.c ---- */

int cm_ice_object_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
int cm_ice_object_read(cm_object_reader *base, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err);
void cm_ice_object_close(cm_object_reader *base);

#endif
