/*
 * Stopping on SIGINT, SIGTERM and SIGHUP: the first cancels the job, which then stops
 * between chunks; a second one ends the process at once.
 */
#ifndef CM_TOOLS_SIGNALS_H
#define CM_TOOLS_SIGNALS_H

#include <chunkmill/monitor.h>

/*
 * From now on signals cancel MONITOR, which must live until the process ends or
 * cm_signals_release is called.  A signal that was ignored when the program started
 * (nohup) stays so.  Writing past a file size limit becomes an error of write()
 * instead of a signal.
 */
void cm_signals_catch(cm_monitor *monitor);

/* Back to the system's defaults. */
void cm_signals_release(void);

/* The signal that came, or 0. */
int cm_signals_caught(void);
const char *cm_signals_name(void);

/* Ends the process by the signal that came, so that its parent sees which; does not return. */
_Noreturn void cm_signals_end(void);

#endif
