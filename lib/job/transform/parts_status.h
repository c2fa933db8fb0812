/* How the parts of a store stand. */
#ifndef CM_JOB_PARTS_STATUS_H
#define CM_JOB_PARTS_STATUS_H

#include "job/transform/parts_files.h"

typedef struct cm_parts_count {
    uint64_t ndone, nrunning;
    char *missing; /* numbers from 1 of those that are neither: "3,7-9"; to be freed */
} cm_parts_count;

/* Looks at every part of PLAN. */
int cm_parts_count_all(const cm_beside *b, const cm_parts_plan *plan, cm_parts_count *out,
                       cm_error *err);

/* All parts of HASH's plan are done, and the metadata written. */
int cm_part_complete(const cm_beside *b, const char *hash, cm_error *err);
/* Of a complete store: removes the files of its parts, but for locks that are held. */
void cm_parts_tidy(const cm_beside *b);

#endif
