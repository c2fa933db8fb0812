/* The share of one process in a variable, where several make one store: part_cut.c decides. */
#ifndef CM_CONVERT_PLAN_SHARE_H
#define CM_CONVERT_PLAN_SHARE_H

#include "plan/parts.h"
#include "plan/sweep.h"

typedef struct cm_share {
    bool is_part;    /* some of it is another's */
    cm_part_run run; /* objects of the writer's outer grid */
    cm_sweep *sweep; /* NSWEEPS, of the boxes that these are; where chunks stay there is none */
    unsigned nsweeps;
} cm_share;

#endif
