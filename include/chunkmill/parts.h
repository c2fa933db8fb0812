/* How the parts of a store stand that several processes make. */
#ifndef CHUNKMILL_PARTS_H
#define CHUNKMILL_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include <chunkmill/error.h>
#include <chunkmill/net.h>

typedef enum cm_part_state {
    CM_PART_MISSING, /* nobody is at it; it may have been begun */
    CM_PART_STALE,   /* whoever was at it ended without a word, or is silent since five minutes */
    CM_PART_RUNNING,
    CM_PART_DONE
} cm_part_state;

typedef struct cm_part_status {
    cm_part_state state;
    bool begun;       /* MISSING, STALE: a journal is there, from which it goes on */
    char *who;        /* RUNNING, STALE: "process 17 on node3" */
    int64_t silent_s; /* the same: since its last beat */
    uint64_t done_nbytes, total_nbytes; /* decoded; 0: not known */
} cm_part_status;

typedef struct cm_parts_report {
    uint64_t nparts;
    bool complete;        /* the store has its metadata; PART is NULL then */
    char *launcher;       /* that the plan was made under: "srun", "a Slurm array"; NULL: by hand */
    uint64_t first, step; /* index of part 1, and from one to the next, of a launcher's array */
    char *command;        /* that made the plan, without the options that name a part */
    char *folder;         /* in which it was called */
    cm_part_status *part; /* NPARTS */
    uint64_t count[4];    /* by state */
} cm_parts_report;

/*
 * Of the store TARGET; NET, which may be NULL, reaches a bucket.  CM_ENOTFOUND where nothing tells
 * of parts.  REPORT is valid, and to be released, whatever is returned.
 */
int cm_parts_status(const char *target, cm_net *net, cm_parts_report *report, cm_error *err);
void cm_parts_report_release(cm_parts_report *report);

/* The numbers, from 1, of the parts in a state of STATES (1 << state): "3,7-9"; to be freed. */
char *cm_parts_list(const cm_parts_report *report, unsigned states, cm_error *err);

#endif
