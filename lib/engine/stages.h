/*
 * The stages of moving a chunk, and what all workers together did in each.
 */
#ifndef CM_ENGINE_STAGES_H
#define CM_ENGINE_STAGES_H

#include <stdint.h>

enum {
    CM_STAGE_READ,
    CM_STAGE_DECODE,
    CM_STAGE_SCATTER,
    CM_STAGE_ENCODE,
    CM_STAGE_WRITE,
    CM_STAGE_WAIT,
    CM_NSTAGES
};
extern const char *const cm_stage_names[CM_NSTAGES];

typedef struct cm_engine_stats {
    uint64_t stage_ns[CM_NSTAGES]; /* of all workers together */
    uint64_t stage_calls[CM_NSTAGES];
    uint64_t pieces;      /* source pieces read */
    uint64_t passed;      /* chunks whose stored bytes were passed on */
    uint64_t read_nbytes; /* stored bytes */
} cm_engine_stats;

/* Adds ONE to SUM. */
void cm_engine_stats_add(cm_engine_stats *sum, const cm_engine_stats *one);

#endif
