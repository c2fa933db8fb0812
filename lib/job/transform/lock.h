/*
 * One run at a time writes into an output: a file that says which.
 *
 * The lock is the file "lock" in the folder beside the output, made in one step
 * that fails where there is one (link(), or what the file system has instead,
 * which NFS keeps too).  It names host, boot, process and the time at which the
 * process was started, so that a number that the system gave again is not taken
 * for the run.  A lock whose process has ended is taken over: whoever does holds
 * flock() on that very file while it is replaced, so of several one wins.
 */
#ifndef CM_JOB_LOCK_H
#define CM_JOB_LOCK_H

#include "job/transform/beside.h"

typedef struct cm_lock cm_lock;

/* Fails as cm_lock_take does where another run holds the lock of B's output.  Touches nothing. */
int cm_lock_peek(cm_beside *b, bool breaks, cm_error *err);
/*
 * Takes it, making the folder.  CM_EEXIST: another run writes, or may: one on
 * another host, or of whom the file does not tell; with BREAKS that is taken over,
 * a running process of this host never.  *note: on the heap, whose lock was taken
 * over, or NULL.
 */
int cm_lock_take(cm_beside *b, bool breaks, cm_lock **out, char **note, cm_error *err);
/*
 * Gives it back, with temporaries that killed runs left in the folder, and the folder if it is
 * empty then; NULL accepted.
 */
void cm_lock_release(cm_lock *lock, cm_beside *b);

#endif
