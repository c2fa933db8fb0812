/* The command that acts on a diagnosis or a finding. */
#ifndef CM_TOOLS_READBENCH_REMEDY_H
#define CM_TOOLS_READBENCH_REMEDY_H

#include "readbench.h"

/*
 * The command to type against WHAT, the name of a rule or of a cause, found in S of RUN, with the
 * names of this store; NULL: there is no such command, or no memory.  free() releases it.
 */
char *readbench_remedy(const readbench_run *run, const cm_readbench_session *s, const char *what);

/*
 * After a tuning: the command line that S was run by, without the tuning; NULL: none, or no
 * memory.  free() releases it.
 */
char *readbench_tuned_command(const readbench_run *run, const cm_readbench_session *s);

#endif
