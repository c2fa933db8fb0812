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
/*
 * The share of V that the job makes: all of it where nobody cut it.  Whether there is one; its
 * transfers, at most V's windows or 1; its boxes of elements, whose number is returned; and its
 * bytes, as the source has them.
 */
bool cm_parts_has(const cm_job_var *v);
unsigned cm_parts_transfers(const cm_job_var *v, cm_transfer *list);
unsigned cm_parts_areas(const cm_job_var *v, cm_box area[CM_PART_MAX_BOXES]);
uint64_t cm_parts_nbytes(const cm_job_var *v);

#endif
