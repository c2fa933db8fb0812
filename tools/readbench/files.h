/* The contents of the data files of one session: what readbench_file_write is given. */
#ifndef CM_TOOLS_READBENCH_FILES_H
#define CM_TOOLS_READBENCH_FILES_H

#include <stdio.h>

#include "readbench.h"

/* CONTEXT is the cm_readbench_session of each. */
int readbench_batches_csv(const void *context, FILE *to, cm_error *err);
int readbench_samples_csv(const void *context, FILE *to, cm_error *err);
int readbench_events_log(const void *context, FILE *to, cm_error *err);
int readbench_worker_events_log(const void *context, FILE *to, cm_error *err);
int readbench_chrome_trace(const void *context, FILE *to, cm_error *err);

/* guide.c, for notebooks of others. */
typedef struct readbench_guide {
    const cm_readbench_session *session;
    double began; /* when time 0 of the session was: seconds since 1970 */
} readbench_guide;

/* CONTEXT is a readbench_guide of each. */
int readbench_guide_log(const void *context, FILE *to, cm_error *err);
int readbench_guide_workers_log(const void *context, FILE *to, cm_error *err);
int readbench_guide_timings_csv(const void *context, FILE *to, cm_error *err);
int readbench_guide_timings_yaml(const void *context, FILE *to, cm_error *err);

#endif
