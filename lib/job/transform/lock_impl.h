/* A lock from inside: what lock.c (files) and lock_remote.c (objects) share. */
#ifndef CM_JOB_LOCK_IMPL_H
#define CM_JOB_LOCK_IMPL_H

#include "base/ticker.h"
#include "job/transform/holder.h"
#include "job/transform/lock.h"

struct cm_lock {
    int fd; /* of the file */
    char name[64];
    bool of_part;
    cm_ticker beats;
    int64_t replaced; /* the process whose lock was taken over; 0: none */
    char tag[136];    /* of the object, where it is one */
};

/* The sentence about a lock that stays with its holder.  CM_EEXIST. */
int cm_lock_refuse(const cm_beside *b, const cm_lock_request *r, cm_holder_state state,
                   const cm_holder *h, cm_error *err);

/*
 * The same locks in a bucket: an object that is made only where none is.  Where the server cannot
 * do that, two runs that begin in the same moment may not see each other; *note says so.
 */
int cm_lock_remote_peek(cm_beside *b, const cm_lock_request *r, cm_error *err);
int cm_lock_remote_take(cm_beside *b, const cm_lock_request *r, cm_lock **out, char **note,
                        cm_error *err);
void cm_lock_remote_release(cm_lock *lock, cm_beside *b);

#endif
