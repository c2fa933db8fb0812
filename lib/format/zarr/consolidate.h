/*
 * Makes consolidated metadata anew, from the documents of the nodes.
 *
 * Documents are copied as text (base/json_place.h): numbers, unknown members and NaN keep the form
 * in which they were written.
 */
#ifndef CM_FORMAT_ZARR_CONSOLIDATE_H
#define CM_FORMAT_ZARR_CONSOLIDATE_H

#include "store/store.h"

typedef struct cm_zarr_renewed {
    char *key;
    cm_buf text;
    cm_buf was; /* the text to replace; empty: none */
    bool same;  /* the object has this text already */
} cm_zarr_renewed;

typedef struct cm_zarr_consolidated {
    int zarr_format;
    size_t narrays, ngroups; /* number of nodes listed, the root included */
    /*
     * In the order in which to write them, each in one step: groups below the root with
     * consolidated metadata of their own (v3), the deepest first, and the root's.
     */
    cm_zarr_renewed *item;
    size_t n;
} cm_zarr_consolidated;

/*
 * Makes the consolidated metadata of STORE, without writing them.  CM_EFORMAT: not a store, or an
 * unreadable document, which is named; CM_EINVAL: the root is an array, or has no document.
 */
int cm_zarr_consolidate(cm_store *store, cm_zarr_consolidated *out, cm_error *err);
void cm_zarr_consolidated_release(cm_zarr_consolidated *c);

#endif
