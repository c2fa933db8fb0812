/* What the plan leaves to a target that sends what is written: pieces of shards, and requests. */
#ifndef CM_JOB_PLAN_SEND_H
#define CM_JOB_PLAN_SEND_H

#include "job/transform/job.h"

/* As many as are asked for, or what keeps CPUs and the network busy. */
unsigned cm_send_threads(const cm_job *job, const cm_store *store);
/*
 * STORE sends by its pieces of size I, those on their way are added to what is held, and all
 * writers know what a shard takes.  False: smaller pieces go better with the memory.
 */
bool cm_send_try(cm_job *job, cm_store *store, unsigned i);
/* What more of them would make it faster. */
size_t cm_send_ahead(const cm_job *job);
/* STORE keeps to what was planned. */
void cm_send_limit(cm_job *job, cm_store *store);

#endif
