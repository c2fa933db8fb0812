/* How one variable is moved within the memory: plan.c decides. */
#ifndef CM_CONVERT_PLAN_VAR_PLAN_H
#define CM_CONVERT_PLAN_VAR_PLAN_H

#include <chunkmill/transform.h>

#include "plan/rechunk.h"

typedef struct cm_var_plan {
    bool routed; /* false: nothing to plan */
    cm_route route;
    cm_plan_counts counts; /* foreseen */
} cm_var_plan;

#endif
