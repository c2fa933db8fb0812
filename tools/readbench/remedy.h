/* The commands that act on a diagnosis, a finding, or a proposal. */
#ifndef CM_TOOLS_READBENCH_REMEDY_H
#define CM_TOOLS_READBENCH_REMEDY_H

#include "readbench.h"

/*
 * The command that tells more of WHAT, the name of a rule or of a cause, found in S of RUN, with
 * the names of this store; NULL: there is no such command, or no memory.  free() releases it.
 */
char *readbench_remedy(const readbench_run *run, const cm_readbench_session *s, const char *what);

/*
 * The command for the proposal of S, with the names of this store: nothing is to be filled in.
 * NULL: no proposal, or no memory.  free() releases it.
 */
char *readbench_proposed_command(const readbench_run *run, const cm_readbench_session *s);

/*
 * After a tuning: the command line that S was run by, without the tuning; NULL: none, or no
 * memory.  free() releases it.
 */
char *readbench_tuned_command(const readbench_run *run, const cm_readbench_session *s);

#endif
