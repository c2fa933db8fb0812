/*
 * Several processes add to one store, as parts (convert/sink/part).
 *
 * Parts write chunks that begin behind the old end of the store, which no document tells of.
 * Whoever finds that all parts are done writes the rest as one process does that adds to a store:
 * chunks that the old dataset has too, coordinates, and the documents last.  While the plan is
 * there and not complete, nobody else changes the store.
 */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_PARTS_H
#define CM_CONVERT_SINK_GROWTH_APPEND_PARTS_H

#include "convert/sink/growth/append.h"

/*
 * With the lock: the plan of parts that have added all they had to goes, whoever was killed
 * before saying so.  With GIVES_UP, any plan of parts that add, of which none runs, goes too, and
 * A's reach is theirs.  *BUSY: such a plan is there still.
 */
int cm_append_settle_parts(cm_append *a, bool gives_up, bool *busy, cm_error *err);

/* append_open.c: removes temporaries of runs that were killed, if one left its mark. */
int cm_append_sweep(cm_append *a, cm_error *err);

#endif
