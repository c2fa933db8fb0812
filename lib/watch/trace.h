/*
 * A Chrome trace (chrome://tracing, Perfetto): one complete event for every
 * stage of every chunk, a row for each worker.  Tiny chunks that are taken
 * together have one "read" or "write" event for the batch, under the number of
 * its first.  Written as it grows; any thread.
 */
#ifndef CM_WATCH_TRACE_H
#define CM_WATCH_TRACE_H

#include "base/outfile.h"

typedef struct cm_trace cm_trace;

/* Into FILE, claimed as CM_KIND_TRACE, which is borrowed. */
int cm_trace_open(cm_outfile *file, cm_trace **out, cm_error *err);
/* TRACE may be NULL.  An error in writing is kept and returned by close. */
void cm_trace_event(cm_trace *trace, unsigned worker, const char *stage, const char *name,
                    uint64_t chunk, uint64_t start_ns, uint64_t end_ns);
/* Finishes the file and frees TRACE; NULL accepted. */
int cm_trace_close(cm_trace *trace, cm_error *err);

#endif
