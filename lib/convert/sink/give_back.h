/* The end of a call: what others wait for. */
#ifndef CM_CONVERT_SINK_GIVE_BACK_H
#define CM_CONVERT_SINK_GIVE_BACK_H

#include "convert/job.h"
#include "convert/sink/store/output.h"

/*
 * Gives the lock of OUT, or of the store that grows, back.  A warning where the lock, or a journal
 * of what is complete, could not be removed: it stops the next run.
 */
int cm_job_give_back(cm_job *job, cm_output *out, cm_error *err);

#endif
