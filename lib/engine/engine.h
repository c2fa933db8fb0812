/*
 * Moving transfers.
 *
 * Any number of transfers move with one set of workers, one after the other but
 * without a pause between them.  Work is a source piece (fetch, decode, scatter
 * into the target chunks that it meets: pieces.h), a target chunk whose last piece
 * has come (convert, pad, encode, put: deliver.h), or chunks that are the same on
 * both sides (direct.h).
 */
#ifndef CM_ENGINE_ENGINE_H
#define CM_ENGINE_ENGINE_H

#include "engine/plan.h"
#include "engine/stages.h"
#include "watch/monitor.h"
#include "watch/trace.h"

typedef struct cm_engine_options {
    unsigned nthreads; /* >= 1 */
    /* all slots together stay below; at least what the sweep of every transfer holds */
    size_t slots_nbytes;
    /* Chunks that a worker may have on their way while it goes on, where the target sends. */
    unsigned ahead;
    /*
     * Transfers are moved in so many rounds, each a share of every transfer (`together`), so that
     * those which read the same files read them at about the same time; 0: one.
     */
    uint64_t rounds;
    cm_monitor *monitor; /* or NULL */
    cm_trace *trace;     /* or NULL */
} cm_engine_options;

/*
 * Moves everything; the first error stops all workers and is returned, with the
 * array and the chunk in front.  CM_ECANCELED when the monitor says so.  Each
 * chunk of each target that its writer does not have yet is put or skipped, once.
 */
int cm_engine_run(const cm_transfer *transfer, size_t n, const cm_engine_options *options,
                  cm_engine_stats *stats, cm_error *err);

#endif
