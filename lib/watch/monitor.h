/*
 * The inner side of chunkmill/monitor.h: what jobs and workers report.  Any thread; NULL
 * monitors are accepted.
 */
#ifndef CM_WATCH_MONITOR_H
#define CM_WATCH_MONITOR_H

#include <stdbool.h>

#include <chunkmill/monitor.h>

/* Begins PHASE, of TOTAL bytes of work (0: not known). */
void cm_monitor_phase(cm_monitor *m, cm_phase phase, uint64_t total_nbytes);
void cm_monitor_add(cm_monitor *m, uint64_t nbytes);
/*
 * Reports the present step.  NAME is copied; STAGE is a literal; CHUNK is a number, or CM_NO_CHUNK.
 */
#define CM_NO_CHUNK UINT64_MAX
void cm_monitor_at(cm_monitor *m, const char *name, uint64_t chunk, const char *stage);
/* Of NPARTS processes DONE have ended; all together have moved so many bytes of TOTAL. */
void cm_monitor_parts(cm_monitor *m, uint64_t nparts, uint64_t done, uint64_t done_nbytes,
                      uint64_t total_nbytes);
bool cm_monitor_canceled(const cm_monitor *m);
bool cm_monitor_cancels(void *m); /* the same, as layers below ask it: a callback's context */

#endif
