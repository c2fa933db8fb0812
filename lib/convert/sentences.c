/* The sentences of the report, collected on the way. */
#include "base/sentences.h"

#include "convert/job.h"

CM_DEFINE_SENTENCE(cm_job_warn, cm_job, warning, nwarnings)
CM_DEFINE_SENTENCE(cm_job_note, cm_job, note, nnotes)
CM_DEFINE_SENTENCE(cm_job_skip, cm_job, skipped, nskipped)
CM_DEFINE_SENTENCE(cm_job_differ, cm_job, difference, ndifferences)
