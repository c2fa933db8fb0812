/* How the parts of a store stand: of a plan that was read, and what is noted at the end. */
#ifndef CM_JOB_PARTS_STATUS_H
#define CM_JOB_PARTS_STATUS_H

#include <chunkmill/parts.h>

#include "job/transform/parts/parts_files.h"

/* Looks at every part of PLAN, in the folder B, which is open. */
int cm_parts_look(const cm_beside *b, const cm_parts_plan *plan, cm_parts_report *out,
                  cm_error *err);

/* Of a complete store: removes what its parts left, unless somebody holds its lock, who does. */
void cm_parts_tidy(cm_beside *b);

/*
 * A bucket does not tell who began an upload that was never finished.  When all parts are done,
 * nobody writes any more: such uploads come from killed parts, and are aborted.
 */
int cm_parts_abort_uploads(cm_store *store, cm_error *err);

#endif
