#ifndef CM_JOB_ARCHIVE_PROPOSE_H
#define CM_JOB_ARCHIVE_PROPOSE_H

#include "job/archive/join.h"

/* What decides F, which says that no coordinate tells how files follow each other. */
int cm_join_propose(const cm_join *j, cm_finding *f, cm_error *err);

#endif
