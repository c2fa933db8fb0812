/*
 * Crashes of libraries over damaged files in this process: one sentence that names the file,
 * instead of a signal.  A child has tried the file before, so they are rare.
 */
#ifndef CM_TOOLS_CRASH_H
#define CM_TOOLS_CRASH_H

/*
 * From now on; once.  Only where a library is at work, or malloc finds its heap damaged after one
 * opened a file; any other crash stays what it is.
 */
void cm_crash_catch(const char *tool);

#endif
