/*
 * A session of writing, as a store: whoever writes Zarr 3 into it makes the next snapshot of a
 * repository.  Documents stay in memory; chunks go into files of the repository that nothing refers
 * to until the commit.
 */
#ifndef CM_FORMAT_ICECHUNK_SESSION_H
#define CM_FORMAT_ICECHUNK_SESSION_H

#include "format/icechunk/places.h"
#include "format/icechunk/records.h"
#include "store/store.h"

enum {
    CM_ICE_INLINE_NBYTES = 512 /* smaller chunks stand in the manifest, as icechunk has it */
};

/*
 * Writes into the repository ROOT and notes in RECORDS, which both must outlive it; chunks are put
 * into files of up to FILE_NBYTES.
 */
int cm_ice_session_open(cm_store *root, cm_ice_records *records, uint64_t file_nbytes,
                        cm_store **out, cm_error *err);
/*
 * An array whose chunks will be written, of a grid of SHAPE chunks.  Records number the chunks of
 * all arrays in the order of these calls, which come before any chunk; *INDEX is the array's.
 */
int cm_ice_session_add(cm_store *session, const char *path, unsigned rank, const uint64_t *shape,
                       size_t *index, cm_error *err);
/*
 * Array INDEX is there in a snapshot already, which BEFORE reads, a store that outlives the
 * session: chunks that are not written stay what they are there.
 */
void cm_ice_session_keep(cm_store *session, size_t index, cm_store *before);
/*
 * For a run that goes on: records of chunks that are not there, or have changed, are taken back;
 * *NKEPT chunks are there.  Calls CANCELED now and then; true stops it.
 */
int cm_ice_session_check(cm_store *session, bool (*canceled)(void *), void *context,
                         uint64_t *nkept, cm_error *err);
/* The ids of all files that records name, sorted, each once; to be freed. */
int cm_ice_session_files(cm_store *session, uint8_t **id, size_t *n, cm_error *err);
/* All chunks are on their way: the last files take their names. */
int cm_ice_session_finish(cm_store *session, cm_error *err);
/* The documents, by their keys. */
cm_store *cm_ice_session_documents(cm_store *session);
/* Where the chunks of array INDEX lie; valid as long as the session. */
void cm_ice_session_places(cm_store *session, size_t index, cm_ice_places *out);
/* The array PATH: *INDEX; false: none of that path was added. */
bool cm_ice_session_find(cm_store *session, const char *path, size_t *index);
/* The number of its first chunk in the records. */
uint64_t cm_ice_session_first(cm_store *session, size_t index);
/* Its path; borrowed. */
const char *cm_ice_session_path(cm_store *session, size_t index);
uint64_t cm_ice_session_nfiles(const cm_store *session);

#endif
