/* The share of each variable that one part makes, where several processes make one store. */
#ifndef CM_CONVERT_PLAN_PART_CUT_H
#define CM_CONVERT_PLAN_PART_CUT_H

#include "convert/job.h"

/*
 * out[i * MANY + k] is the run of variable i that part PART + k of NPARTS makes, where the
 * variables are as heavy as WEIGHTS, "variables" of the plan that the parts share, says.
 */
int cm_parts_runs(const cm_job *job, const cm_json *weights, uint64_t nparts, uint64_t part,
                  size_t many, cm_part_run *out, cm_error *err);
/*
 * Part PART of them: its runs in the job's variables, the writers' objects and the sweeps' windows;
 * after the plan of the whole.
 */
int cm_parts_narrow(cm_job *job, const cm_json *weights, uint64_t nparts, uint64_t part,
                    cm_error *err);
/* The share of V that the part makes, in elements; returns the number of boxes. */
unsigned cm_parts_areas(const cm_job_var *v, cm_box area[CM_PART_MAX_BOXES]);
/* Bytes of V's elements, as the source has them, that the part makes. */
uint64_t cm_parts_nbytes(const cm_job_var *v);

#endif
