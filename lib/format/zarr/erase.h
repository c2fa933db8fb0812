/*
 * Removes Zarr stores, and nothing else: the one place that decides which objects belong to a
 * store.
 *
 * Removed are regular files with names that the layout allows (metadata documents of nodes; chunk
 * keys inside an array's grid, in its key encoding; temporaries next to them, left by a killed
 * run), reached through no symbolic link, and folders that are empty afterwards.  Everything else
 * is kept, counted and named.
 */
#ifndef CM_FORMAT_ZARR_ERASE_H
#define CM_FORMAT_ZARR_ERASE_H

#include "format/zarr/meta.h"
#include "store/store.h"

/* Files kept because they are not part of the store. */
typedef struct cm_zarr_left {
    uint64_t n;
    size_t nnamed;
    char names[240]; /* the first of them: "notes.txt, tas/README" */
} cm_zarr_left;

/*
 * Removes the Zarr store at the root of STORE: the metadata and chunks of every node.  CM_EFORMAT
 * when it is not a Zarr store.  The root, and then each node, is first marked so that every reader
 * refuses it while this function still recognises it: an interrupted erasure leaves nothing that
 * can be opened, and can be resumed.
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
 * Removes only temporaries from the places of those chunks or, META being NULL, of a group's
 * metadata; if STORE is written by parts, only its own part's.  Keeps all folders.
 */
int cm_zarr_erase_temporaries(cm_store *store, const char *path, const cm_zarr_meta *meta,
                              cm_error *err);
/* Removes the metadata documents of the node PATH. */
int cm_zarr_erase_metadata(cm_store *store, const char *path, cm_error *err);

/* Counts and names the files left in STORE. */
int cm_zarr_count_left(cm_store *store, cm_zarr_left *left, cm_error *err);

/*
 * CM_EEXIST, naming it, when a symbolic link or another special file, which no erasure removes, has
 * the name of a chunk or a document of the array META (NULL: a group) at PATH, or of a folder
 * above: writing would fail there.
 */
int cm_zarr_check_free(cm_store *store, const char *path, const cm_zarr_meta *meta, cm_error *err);

#endif
