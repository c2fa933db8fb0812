/* Memory that the plan leaves to a target behind a network: pieces of shards, and requests. */
#ifndef CM_CONVERT_PLAN_PLAN_SEND_H
#define CM_CONVERT_PLAN_PLAN_SEND_H

#include "convert/job.h"
#include "engine/plan.h"

/* As many as are asked for, or what keeps CPUs and the network busy. */
unsigned cm_send_threads(const cm_job *job, const cm_store *store);
/*
 * STORE sends by its pieces of size I, those on their way are added to what is held, and all
 * writers know what a shard takes.  False: smaller pieces go better with the memory.
 */
bool cm_send_try(cm_job *job, cm_store *store, unsigned i);
/*
 * How many chunks each of NTHREADS workers that have NEED may have on their way while it goes on,
 * of FREE bytes of memory.
 */
unsigned cm_send_chunks(const cm_job *job, unsigned nthreads, const cm_worker_need *need,
                        size_t free);
/* A worker with so many of them. */
size_t cm_send_worker_nbytes(const cm_job *job, const cm_worker_need *need, unsigned ahead);
/*
 * The slots of a worker beyond what the route holds: one, so that one can fill while another
 * empties, and those that it has sent.
 */
size_t cm_send_slots_nbytes(const cm_job_var *v, unsigned ahead);
/* The memory with which more pieces would make it faster. */
size_t cm_send_ahead(const cm_job *job);
/* STORE keeps to what was planned. */
void cm_send_limit(cm_job *job, cm_store *store);

#endif
