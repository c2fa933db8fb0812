/*
 * Progress on standard error while a job runs: a bar on a terminal, a plain line
 * every 10 s elsewhere.  A thread of its own takes snapshots of the monitor; the
 * job is not slowed.  Where nothing moved for 60 s it says what is waited for.
 */
#ifndef CM_TOOLS_PROGRESS_H
#define CM_TOOLS_PROGRESS_H

#include <chunkmill/monitor.h>

#include "options.h"

typedef struct cm_progress cm_progress;

/*
 * Starts watching MONITOR, which must outlive the result.  Returns NULL when nothing
 * is to be shown, also for lack of a thread: a job does not fail for that.
 * CM_PROGRESS_ALWAYS
 * draws at once, however short the job; without a terminal it adds a line when a
 * phase begins, and one at the end.
 */
cm_progress *cm_progress_start(const char *tool, cm_monitor *monitor, cm_progress_mode mode);

/*
 * Removes the bar and frees; says that all is done only where the run ended WELL.  NULL is
 * accepted.
 */
void cm_progress_stop(cm_progress *progress, bool well);

#endif
