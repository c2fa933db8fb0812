/*
 * Consolidated metadata made anew, from the documents of the nodes.
 *
 * Documents are taken word by word (base/json_place.h): numbers, members that are not known here
 * and NaN stand in consolidated metadata as whoever wrote them wrote them.
 */
#ifndef CM_FORMAT_ZARR_CONSOLIDATE_H
#define CM_FORMAT_ZARR_CONSOLIDATE_H

#include "store/store.h"

typedef struct cm_zarr_renewed {
    char *key;
    cm_buf text;
    cm_buf was; /* the text that it replaces; empty: there was none */
    bool same;  /* the object has this text already */
} cm_zarr_renewed;

typedef struct cm_zarr_consolidated {
    int zarr_format;
    size_t narrays, ngroups; /* that are listed, the root counted */
    /*
     * In the order in which they are to be written, each in one step: groups below the root
     * that have consolidated metadata of their own (v3), the deepest first, and the root's.
     */
    cm_zarr_renewed *item;
    size_t n;
} cm_zarr_consolidated;

/*
 * What the consolidated metadata of STORE are to be.  Writes nothing.  CM_EFORMAT: no store, or
 * a document that cannot be read, which is named; CM_EINVAL: the root is an array, or has no
 * document.
 */
int cm_zarr_consolidate(cm_store *store, cm_zarr_consolidated *out, cm_error *err);
void cm_zarr_consolidated_release(cm_zarr_consolidated *c);

#endif
