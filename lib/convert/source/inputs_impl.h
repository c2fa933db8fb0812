/*
 * Digests of the files that a job reads, for its certificate and for the ledger.
 */
#ifndef CM_CONVERT_SOURCE_INPUTS_IMPL_H
#define CM_CONVERT_SOURCE_INPUTS_IMPL_H

#include "convert/job.h"
#include "format/multi/multi.h"

typedef enum cm_inputs_kind {
    CM_INPUTS_SHA256,
    CM_INPUTS_XXH128
} cm_inputs_kind;

/* The joined dataset's specification; NULL: the job reads one file. */
const cm_multi_spec *cm_inputs_spec(const cm_job *job);
/*
 * Digests of N files from FIRST on, by all threads; *OUT, one text for each, "" for a store, is to
 * be freed.
 */
int cm_inputs_digest(const cm_job *job, cm_inputs_kind kind, size_t first, size_t n,
                     char (**out)[65], cm_error *err);

#endif
