/*
 * The file that a library is working on in this process, for a program's handler of crashes: a
 * child tries each file first (preflight.h), but a heap that is laid out otherwise may be damaged
 * in the parent alone.
 */
#ifndef CM_FORMAT_NC_AT_WORK_H
#define CM_FORMAT_NC_AT_WORK_H

#include <stdbool.h>

/*
 * In a handler of signals: the last file that a library opened in this process, as people may see
 * it; NULL: none.  *HERE: this thread is inside of a library now.
 */
const char *cm_nc_at_work(bool *here);

/* With the lock of lock.h: PATH is about to be opened. */
void cm_nc_work_on(const char *path);

#endif
