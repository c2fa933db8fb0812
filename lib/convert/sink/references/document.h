/* The document of references, which stands where a store would. */
#ifndef CM_CONVERT_SINK_REFERENCES_DOCUMENT_H
#define CM_CONVERT_SINK_REFERENCES_DOCUMENT_H

#include "convert/layout/refer.h"

/* Writes the document, the target of JOB, which is described. */
int cm_job_refer_write(cm_job *job, cm_error *err);

#endif
