/* Which array of a dataset a log of accesses (access.h) is about. */
#ifndef CM_CHUNKCALC_ACCESS_DATASET_H
#define CM_CHUNKCALC_ACCESS_DATASET_H

#include "format/dataset.h"
#include "watch/access.h"

/* V, as the log names it; false where it is not an array of a Zarr store. */
bool cm_access_array_of(const cm_variable *v, cm_access_array *out);

/*
 * The variable of DS that most bytes were read of, and its reads; NAME (NULL: any) is the only one
 * that may be chosen.  CM_EINVAL: the log has no reads of such a variable, or not of this one as
 * it is now.  READS are to be released whatever is returned.
 */
int cm_access_choose(const cm_access_log *log, const cm_dataset *ds, const char *name,
                     cm_variable **out, cm_access_reads *reads, cm_error *err);

/*
 * Compares up to MOST of the objects that LOG names with what STORE has: CM_OK with an empty text
 * in BUF, or with a sentence about the first that has another size or is gone.  CM_EIO and the like
 * where the store does not answer.
 */
int cm_access_compare(const cm_access_log *log, const cm_access_array *array, cm_store *store,
                      unsigned most, char *buf, size_t size, cm_error *err);

#endif
