/* The inside of the plan: plan.c chooses, plan_counts.c and plan_send.c count for it. */
#ifndef CM_CONVERT_PLAN_PLAN_H
#define CM_CONVERT_PLAN_PLAN_H

#include "base/budget.h"
#include "convert/job.h"

/* V's elements go through the engine. */
bool cm_job_has_transfer(const cm_job_var *v);
/* plan_counts.c: V's counts by its route. */
int cm_job_predict(const cm_job *job, cm_job_var *v, cm_error *err);

#endif
