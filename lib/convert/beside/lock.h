/*
 * The lock of an output: one run at a time writes into it.  Processes that make one store as parts
 * hold it in turn, to publish their plan and to finish the store; each also holds the lock of its
 * own part.
 *
 * The lock is the file "lock" in the folder beside the output.  It is created in one step that
 * fails if the file exists (link(), or the file system's substitute; NFS supports it too).  It
 * names host, boot, process and the start time of the process: a reused process number is not
 * mistaken for the run.  A lock whose process has ended may be taken over; who does so holds
 * flock() on that very file while replacing it, so only one of several wins.  The holder touches
 * the file every few seconds; a holder on another host that has not for five minutes counts as
 * ended, when it has been watched for some more (silence.h): clocks may be set meanwhile.
 *
 * In a bucket the lock is an object of that name with the same text.  It is put only where none
 * is, or in place of the very object that was judged stale.  The holder puts it again three times
 * a minute; its age is told by the server's clock.
 */
#ifndef CM_CONVERT_BESIDE_LOCK_H
#define CM_CONVERT_BESIDE_LOCK_H

#include "convert/beside/beside.h"

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
/* The process that has ended and whose lock this one took over; 0: none.  NULL accepted. */
int64_t cm_lock_replaced(const cm_lock *lock);
/*
 * CM_EEXIST: LOCK is not held any more, for another run has broken it or taken its holder for
 * ended; what the two wrote may be mixed.  NULL accepted.
 */
int cm_lock_check(cm_lock *lock, const cm_beside *b, cm_error *err);
/* The lock of an output. */
#define CM_LOCK_OUTPUT "lock"

typedef struct cm_lock_request {
    const char *name; /* of the file */
    bool of_part;     /* held by one of several processes that make a store: others wait */
    bool breaks;
} cm_lock_request;

/* Takes any lock in the folder, as cm_lock_take does that of the output. */
int cm_lock_take_as(cm_beside *b, const cm_lock_request *request, cm_lock **out, char **note,
                    cm_error *err);

typedef enum cm_lock_state {
    CM_LOCK_FREE,    /* or to be taken over */
    CM_LOCK_OF_PART, /* held by a process that gives it back soon, or makes that part */
    CM_LOCK_OF_RUN   /* held by a run without parts, or nobody knows by whom or for how long */
} cm_lock_state;

typedef struct cm_lock_holder {
    cm_lock_state state;
    bool there;       /* the file is; with FREE, of a holder that has ended */
    char who[320];    /* "process 17 on host", where it is there */
    int64_t silent_s; /* since its last beat */
    bool unwatched;   /* by the age of its beat alone it is FREE */
} cm_lock_holder;

/*
 * The holder of the lock NAME in B, which is open.  Touches nothing.  Watches one that looks silent
 * until that is certain; CM_ECANCELED by B's stop.
 */
int cm_lock_look(const cm_beside *b, const char *name, cm_lock_holder *out, cm_error *err);
/* The same at once, for people to see: it may be UNWATCHED. */
int cm_lock_glance(const cm_beside *b, const char *name, cm_lock_holder *out, cm_error *err);

/*
 * Gives it back, with temporaries that killed runs left in the folder, and the folder if it is
 * empty then; one of a part leaves both to others.  B->stays tells where it could not be removed.
 * NULL accepted.
 */
void cm_lock_release(cm_lock *lock, cm_beside *b);

#endif
