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

#endif
