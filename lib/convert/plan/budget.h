/*
 * The memory of a job: the limit, and what it is planned for.
 *
 *     limit = held (the process as it is, and a reserve) + workers x what each needs
 *           + target chunks in flight + shards in assembly + what waits for others
 *           + what is on its way to a server
 */
#ifndef CM_CONVERT_PLAN_BUDGET_H
#define CM_CONVERT_PLAN_BUDGET_H

#include <chunkmill/transform.h>

#include "store/store.h"

typedef struct cm_budget {
    uint64_t limit_nbytes;
    uint64_t held_nbytes; /* the process before anything is moved, and its reserve */
    unsigned nthreads;
    unsigned ahead;          /* chunks that each worker has on their way to a server */
    size_t worker_nbytes;    /* of one */
    size_t request_nbytes;   /* of them, for what it asks a server */
    size_t put_nbytes;       /* and for the file that it fills (cm_store_put_nbytes) */
    size_t slots_nbytes;     /* target chunks in flight */
    size_t shards_nbytes;    /* those in assembly, beside the slots */
    size_t early_nbytes;     /* chunks that wait for others of their shards */
    size_t ahead_nbytes;     /* pieces on their way, beyond those in HELD */
    size_t piece_nbytes;     /* of what the target sends */
    bool last_pieces;        /* there are no smaller ones */
    size_t sent_nbytes;      /* of the shards in assembly, what the target keeps */
    cm_store_limits sending; /* how the target sends shards */
    size_t text_nbytes;      /* the longest chunk of strings that was moved */
} cm_budget;

/* The limit that was ASKED for; 0: half of what is free, or what the process has. */
void cm_budget_begin(cm_budget *b, uint64_t asked);
/* For everything but what is held. */
uint64_t cm_budget_free(const cm_budget *b);
/* All that is planned, with workers of WORKER_NBYTES. */
uint64_t cm_budget_used(const cm_budget *b, size_t worker_nbytes);
/* Puts the budget into the report, for -v, dry runs and --json. */
void cm_budget_report(const cm_budget *b, cm_transform_report *report);

#endif
