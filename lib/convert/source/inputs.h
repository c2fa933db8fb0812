/*
 * The files that a job reads: one, or those of a joined dataset.
 */
#ifndef CM_CONVERT_SOURCE_INPUTS_H
#define CM_CONVERT_SOURCE_INPUTS_H

#include <time.h>

#include "convert/beside/ledger.h"
#include "convert/job.h"
#include "format/multi/multi.h"

/* Adds to J, a run's fingerprint, which files these are and when they were changed last. */
int cm_job_inputs_fingerprint(cm_json *j, const cm_job *job, cm_error *err);
/* A point in time for people, in UTC. */
cm_json *cm_job_time_json(time_t when);
/* One object for each file, for a certificate. */
int cm_job_inputs_json(const cm_job *job, const char *path, cm_json **out, cm_error *err);
/*
 * One object for each file, for the ledger of the store; files that have elements of DIMENSION
 * (NULL: none counts) from END on are left out.
 */
int cm_job_inputs_ledger(const cm_job *job, const char *dimension, uint64_t end, cm_json **out,
                         cm_error *err);
/* Lines of all files, put into LEDGER: of many, this takes far less memory. */
int cm_job_inputs_ledger_lines(const cm_job *job, cm_ledger_writer *ledger, cm_error *err);
/* Their paths, borrowed; the list is the caller's to free. */
int cm_job_inputs_paths(const cm_job *job, const char *path, const char ***out, size_t *n,
                        cm_error *err);
/* True when a file lies in FOLDER, a path without links, or is it. */
int cm_job_inputs_lie_in(const cm_job *job, const char *folder, bool *out, cm_error *err);

#endif
