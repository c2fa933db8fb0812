/*
 * Puts chunks one behind the other into files of about the same size.  A thread fills one file at a
 * time, so that chunks it makes in turn are neighbours; a file takes its name when it is full, and
 * only then its chunks are recorded.
 */
#ifndef CM_FORMAT_ICECHUNK_PACK_H
#define CM_FORMAT_ICECHUNK_PACK_H

#include "format/icechunk/records.h"
#include "store/store.h"

typedef struct cm_ice_packs cm_ice_packs;

/* Into ROOT, which must outlive it, as RECORDS must; files of up to FILE_NBYTES. */
int cm_ice_packs_create(cm_store *root, cm_ice_records *records, uint64_t file_nbytes,
                        cm_ice_packs **out, cm_error *err);
/* Chunk NUMBER of the records.  Any thread. */
int cm_ice_packs_put(cm_ice_packs *p, uint64_t number, const void *data, size_t nbytes,
                     cm_error *err);
/* All files that are begun take their names.  No other thread. */
int cm_ice_packs_finish(cm_ice_packs *p, cm_error *err);
/* Memory of a thread that fills a file, of NCHUNKS chunks in all. */
size_t cm_ice_packs_thread_nbytes(const cm_ice_packs *p, uint64_t nchunks);
uint64_t cm_ice_packs_nfiles(const cm_ice_packs *p);
/* Drops what is not finished.  NULL accepted. */
void cm_ice_packs_free(cm_ice_packs *p);

#endif
