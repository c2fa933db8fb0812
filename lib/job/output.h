/*
 * The output folder: refusing what exists, making it, and leaving nothing behind
 * when the job fails.
 */
#ifndef CM_JOB_OUTPUT_H
#define CM_JOB_OUTPUT_H

#include "store/store.h"

typedef struct cm_output {
    char *path; /* without "file://" */
    cm_store *store;
    bool made;    /* the folder is ours */
    bool resumes; /* a run that was stopped is there, and is to be finished */
} cm_output;

/*
 * CM_EEXIST when PATH exists, unless OVERWRITE was asked for and it is a Zarr
 * store or one that was being made, or RESUME and it is the latter.  Touches
 * nothing.
 */
int cm_output_check(const char *path, bool overwrite, bool resume, cm_output *out, cm_error *err);
/* Makes the folder, or empties the store that is there; *foreign files that are not the store's stay. */
int cm_output_begin(cm_output *out, uint64_t *foreign, cm_error *err);
/* Removes what was written below the names PREFIX, and the folder if it is ours. */
void cm_output_discard(cm_output *out, const char *const *prefix, size_t n);
/* Removes all objects below PREFIX, as far as that can be done. */
void cm_output_remove_below(cm_store *store, const char *prefix);
void cm_output_release(cm_output *out);

#endif
