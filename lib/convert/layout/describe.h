/* Shared by the two ways of describing an array. */
#ifndef CM_CONVERT_LAYOUT_DESCRIBE_H
#define CM_CONVERT_LAYOUT_DESCRIBE_H

#include "convert/job.h"

/* The chain of V's chunks, and its shards, into the document, whose old codecs it frees. */
int cm_job_set_codecs(const cm_job_var *v, cm_array_doc *doc, cm_error *err);

#endif
