/*
 * Removing Zarr stores, and only those: the one place that decides which objects
 * belong to a store.
 *
 * What goes are regular files with names that the layout can have (metadata
 * documents of nodes; chunk keys inside an array's grid, in its key encoding;
 * temporaries that a killed run left beside them), reached through no symbolic
 * link, and folders that are empty then.  Everything else is somebody else's, is
 * left, counted and named.
 */
#ifndef CM_FORMAT_ZARR_ERASE_H
#define CM_FORMAT_ZARR_ERASE_H

#include "format/zarr/meta.h"
#include "store/store.h"

/* What was left because it is not the store's. */
typedef struct cm_zarr_left {
    uint64_t n;
    size_t nnamed;
    char names[240]; /* the first of them: "notes.txt, tas/README" */
} cm_zarr_left;

/*
 * Removes what a Zarr store holds at the root of STORE: the metadata and chunks of
 * every node.  CM_EFORMAT when it is no Zarr store.  The root, and then each node, first
 * becomes one that every reader refuses, and is still known here: an erasure that is
 * interrupted leaves nothing that opens, and can be taken up again.
 */
int cm_zarr_erase(cm_store *store, cm_error *err);
/* The arrays that cm_zarr_erase would remove, each with its path. */
typedef int cm_zarr_array_visit(void *context, const char *path, const cm_zarr_meta *meta,
                                cm_error *err);
int cm_zarr_each_array(cm_store *store, cm_zarr_array_visit *visit, void *context, cm_error *err);
/* Removes the chunks at PATH of an array that META describes. */
int cm_zarr_erase_chunks(cm_store *store, const char *path, const cm_zarr_meta *meta,
                         cm_error *err);
/*
 * Removes only temporaries that lie where those chunks would, or, META being NULL, a group's
 * metadata; where STORE is written by parts, those of its own part.  No folder goes.
 */
int cm_zarr_erase_temporaries(cm_store *store, const char *path, const cm_zarr_meta *meta,
                              cm_error *err);
/* Removes the metadata documents of the node PATH. */
int cm_zarr_erase_metadata(cm_store *store, const char *path, cm_error *err);

/* Counts and names what lies in STORE, folders apart. */
int cm_zarr_count_left(cm_store *store, cm_zarr_left *left, cm_error *err);

/*
 * CM_EEXIST, naming it, when a symbolic link or another special file, which no
 * erasure removes, has the name of a chunk or a document of the array META (NULL: a
 * group) at PATH, or of a folder on the way: writing would fail there.
 */
int cm_zarr_check_free(cm_store *store, const char *path, const cm_zarr_meta *meta, cm_error *err);

#endif
