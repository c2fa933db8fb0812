/*
 * Inner chunks that are encoded before those in front of them in their shard.
 *
 * They wait in memory up to a limit, and above it in an unlinked scratch file; chunks that fit into
 * neither do not wait.  All shards of a job share one.
 */
#ifndef CM_FORMAT_ZARR_EARLY_H
#define CM_FORMAT_ZARR_EARLY_H

#include "base/mem.h"

typedef struct cm_early cm_early;

/* With no limit, and no scratch file. */
int cm_early_create(cm_early **out, cm_error *err);
void cm_early_free(cm_early *early); /* NULL accepted */
/*
 * Limits memory to NBYTES, the rest goes to a file in FOLDER (NULL: no file).  Call it before
 * anything waits.
 */
int cm_early_limit(cm_early *early, size_t nbytes, const char *folder, cm_error *err);

typedef enum cm_early_place {
    CM_EARLY_NOWHERE,
    CM_EARLY_MEMORY,
    CM_EARLY_SCRATCH
} cm_early_place;

/*
 * Keeps a copy of DATA; *at is its address in memory, or its offset in the file.  Any thread, as
 * all below.
 */
cm_early_place cm_early_keep(cm_early *early, const void *data, size_t nbytes, uint64_t *at);
/* Reads from the scratch file. */
int cm_early_read(cm_early *early, uint64_t at, void *dst, size_t nbytes, cm_error *err);
/* Frees a copy. */
void cm_early_drop(cm_early *early, cm_early_place place, uint64_t at, size_t nbytes);

/* Totals of all copies kept, for tests and for measuring. */
typedef struct cm_early_counts {
    uint64_t memory_nbytes, scratch_nbytes;
    uint64_t refused; /* chunks */
} cm_early_counts;
cm_early_counts cm_early_count(const cm_early *early);
/* Disk space used by the scratch file now. */
uint64_t cm_early_scratch_nbytes(cm_early *early);

#endif
