/* A lock from inside: what lock.c (files) and lock_remote.c (objects) share. */
#ifndef CM_CONVERT_BESIDE_LOCK_IMPL_H
#define CM_CONVERT_BESIDE_LOCK_IMPL_H

#include "base/ticker.h"
#include "convert/beside/holder.h"
#include "convert/beside/lock.h"

struct cm_lock {
    int fd; /* of the file */
    char name[64];
    bool of_part;
    cm_ticker beats;
    int64_t replaced; /* the process whose lock was taken over; 0: none */
    cm_store *in;     /* of one in a bucket: what it lies in, */
    cm_buf text;      /* and what it says */
};

/* The sentence about a lock that stays with its holder.  CM_EEXIST. */
int cm_lock_refuse(const cm_beside *b, const cm_lock_request *r, cm_holder_state state,
                   const cm_holder *h, cm_error *err);

/* The state of H, which holds NAME and has beaten AGE_S seconds ago by the clock of the place. */
cm_holder_state cm_lock_judge(const cm_beside *b, const char *name, const cm_holder *h,
                              int64_t age_s);
/* A pause between two looks at a lock that is watched.  CM_ECANCELED. */
int cm_lock_watch(const cm_beside *b, cm_error *err);

/* Fills OUT by what a lock that is there says. */
void cm_lock_describe(cm_holder_state state, const cm_holder *h, int64_t silent_s,
                      cm_lock_holder *out);

/*
 * Locks in a bucket: an object that is created only where none exists.  Where the server cannot do
 * that, two runs that begin at the same moment may not see each other; *note says so.
 */
int cm_lock_remote_peek(cm_beside *b, const cm_lock_request *r, cm_error *err);
int cm_lock_remote_look(const cm_beside *b, const char *name, cm_lock_holder *out, cm_error *err);
int cm_lock_remote_take(cm_beside *b, const cm_lock_request *r, cm_lock **out, char **note,
                        cm_error *err);
/* CM_EEXIST without a sentence where it is not held any more. */
int cm_lock_remote_check(cm_lock *lock, const cm_beside *b, cm_error *err);
/* Says that the holder is alive; false: the lock is another's. */
bool cm_lock_remote_beat(cm_lock *lock);
/* Removes it, and frees LOCK; WHY it could not, if not CM_OK. */
int cm_lock_remote_release(cm_lock *lock, cm_error *why);

#endif
