/*
 * Watching and stopping a job from outside.
 *
 * The caller creates a monitor, hands it to a job, and may take snapshots from
 * another thread while the job runs.  cm_monitor_cancel is safe in a signal
 * handler; the job then stops between chunks and returns CM_ECANCELED.
 */
#ifndef CHUNKMILL_MONITOR_H
#define CHUNKMILL_MONITOR_H

#include <stdint.h>

#include <chunkmill/error.h>

typedef struct cm_monitor cm_monitor;

typedef enum cm_phase {
    CM_PHASE_OPENING,
    CM_PHASE_SURVEYING, /* files of an archive are looked at: done and total count them */
    CM_PHASE_PLANNING,
    CM_PHASE_WORKING,   /* chunks are moving: done and total count decoded bytes of the output */
    CM_PHASE_MEASURING, /* batches are taken: done and total count their bytes */
    CM_PHASE_FINISHING,
    CM_PHASE_VERIFYING, /* done and total count bytes compared */
    CM_PHASE_DONE
} cm_phase;

typedef struct cm_snapshot {
    cm_phase phase;
    uint64_t done_nbytes;
    uint64_t total_nbytes;
    uint64_t phase_ns;        /* since this phase began */
    uint64_t since_change_ns; /* since done_nbytes last grew */
    /* Where this is one of several parts, and the one that tells of all: */
    uint64_t nparts, parts_done; /* 0: it is not */
    uint64_t all_done_nbytes, all_total_nbytes;
    char what[256]; /* what is being worked on or waited for: "tas: reading chunk 17" */
} cm_snapshot;

cm_monitor *cm_monitor_create(cm_error *err);
void cm_monitor_free(cm_monitor *monitor);
void cm_monitor_cancel(cm_monitor *monitor);
void cm_monitor_snapshot(cm_monitor *monitor, cm_snapshot *out);
const char *cm_phase_name(cm_phase phase); /* "opening", "planning", "converting", ... */

#endif
