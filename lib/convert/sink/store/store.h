/* Steps of sinks that make a store, whole or in part (store.c). */
#ifndef CM_CONVERT_SINK_STORE_STORE_H
#define CM_CONVERT_SINK_STORE_STORE_H

#include "convert/job.h"
#include "convert/sink/store/output.h"

/* The target's future content: arrays, by whose numbers the journal counts, then groups. */
int cm_job_list_made(cm_job *job, cm_made *made, cm_error *err);
/* The engine, and what moves strings, tell JOURNAL of chunks that are left out. */
void cm_job_use_journal(cm_job *job, const cm_output *out, cm_journal *journal);
/* Adds what the writers made to the report. */
void cm_job_sum_written(cm_job *job);
/* Warns of facts that only the data could tell. */
int cm_job_warn_of_data(cm_job *job, cm_error *err);
/* Makes ERR, with status RC, be about the source, unless it is said to be about the target. */
void cm_job_name_source(const cm_job *job, cm_error *err);

#endif
