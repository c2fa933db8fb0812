/* How the parts of a store stand: of a plan that was read, and what is noted at the end. */
#ifndef CM_CONVERT_SINK_PART_PARTS_STATUS_H
#define CM_CONVERT_SINK_PART_PARTS_STATUS_H

#include <chunkmill/parts.h>

#include "convert/beside/parts_files.h"

/*
 * Looks at every part of PLAN, in the folder B, which is open.  A plan that is found complete in
 * the end, whose parts' files go, is reported as that.
 */
int cm_parts_look(const cm_beside *b, const cm_parts_plan *plan, cm_parts_report *out,
                  cm_error *err);

/* Files beside a complete store that should not stay. */
typedef enum cm_left {
    CM_LEFT_NOTHING,
    CM_LEFT_OTHER, /* a lock, temporaries */
    CM_LEFT_FILES  /* of parts */
} cm_left;
cm_left cm_parts_left(const cm_beside *b);
/* Of a complete store, with its lock: removes what its parts left; B->stays tells what stayed. */
void cm_parts_tidy(cm_beside *b);

/*
 * A bucket does not tell who began an upload that was never finished.  When all parts are done,
 * nobody writes any more: such uploads come from killed parts, and are aborted.
 */
int cm_parts_abort_uploads(cm_store *store, cm_error *err);

#endif
