/*
 * Threads of one worker, kept from task to task.
 */
#ifndef CM_BASE_TEAM_H
#define CM_BASE_TEAM_H

#include "base/threads.h"

typedef struct cm_team cm_team;

/*
 * N threads in all, including the caller's; N of 1 starts none.  Signals stay with the caller's
 * threads.
 */
int cm_team_create(unsigned n, cm_team **out, cm_error *err);
void cm_team_free(cm_team *team); /* NULL accepted */

/*
 * Calls FN(CONTEXT, 0 .. N-1), number 0 in the caller's thread, and returns when all have.
 * One caller at a time.
 */
void cm_team_run(cm_team *team, cm_thread_fn *fn, void *context);

#endif
