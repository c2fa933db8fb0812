/*
 * A snapshot of a repository as a read-only store: documents of its nodes, chunks by its manifests.
 *
 * "icechunk:PATH", "...@BRANCH", "...@tag:NAME", "...@SNAPSHOT", each of these with "::GROUP", or
 * the plain path of a repository in a folder, which means its branch main.  Anything else goes to
 * cm_store_open.
 */
#ifndef CM_FORMAT_ICECHUNK_READ_STORE_H
#define CM_FORMAT_ICECHUNK_READ_STORE_H

#include "store/open.h"

/* Chunks that a snapshot has, of them those in manifests and those outside the repository. */
typedef struct cm_ice_counts {
    uint64_t nchunks, ninline, noutside;
} cm_ice_counts;

/* Whether STORE is a snapshot of a repository; then the chunks of arrays below NODE ("": all). */
bool cm_ice_store_is(const cm_store *store);
int cm_ice_store_count(cm_store *store, const char *node, cm_ice_counts *out, cm_error *err);

int cm_ice_store_open(const char *url, const cm_store_options *options, cm_store **out,
                      cm_error *err);

/*
 * The folder of this machine that has the chunks of STORE, a snapshot, and of the others, to be
 * freed; *OUT NULL: there is none.
 */
int cm_ice_store_chunks(const cm_store *store, char **out, cm_error *err);

/* The id of the snapshot that STORE is; NULL: it is another kind of store. */
const uint8_t *cm_ice_store_snapshot(const cm_store *store);

/*
 * For STORE at URL, behind a network, which could not be opened as a Zarr store for RC: what to
 * open in its place if a repository is there, to be freed.  NULL: there is none.
 */
char *cm_ice_repository_at(int rc, const char *url, cm_store *store);

#endif
