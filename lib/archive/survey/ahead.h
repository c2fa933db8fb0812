/*
 * Objects behind a network are fetched while child processes look at others: some threads take
 * their copies in the order of the survey, as many as there is room for.
 */
#ifndef CM_ARCHIVE_SURVEY_AHEAD_H
#define CM_ARCHIVE_SURVEY_AHEAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/copies.h"

enum {
    CM_AHEAD_THREADS = 4
};

/* Of each file, shared with the children, who wait for a change. */
typedef enum cm_ahead_state {
    CM_AHEAD_COMING,
    CM_AHEAD_HERE,
    CM_AHEAD_FAILED /* there is no copy, and the parent makes the record */
} cm_ahead_state;

typedef struct cm_ahead_failure {
    struct cm_ahead_failure *next;
    size_t at;
    cm_error why;
} cm_ahead_failure;

typedef struct cm_ahead {
    cm_copies *copies;
    cm_copy *const *copy; /* of each file; NULL: it needs none */
    size_t n;
    _Atomic uint32_t *state;
    bool *leased; /* its copy was taken, and is to be given back */
    /* Of one round: */
    const size_t *todo;
    size_t ntodo;
    pthread_mutex_t turn; /* whose it is takes NEXT, and waits for room */
    size_t next;
    atomic_bool stop;
    pthread_t thread[CM_AHEAD_THREADS];
    unsigned nthreads;
    pthread_mutex_t lock; /* guards: */
    cm_ahead_failure *failed;
    cm_status fatal; /* that of an error which is about no file; FATAL_WHY says which */
    cm_error fatal_why;
} cm_ahead;

/* COPY has N places; where none of them has one, nothing is made.  Before children are. */
int cm_ahead_init(cm_ahead *a, cm_copies *copies, cm_copy *const *copy, size_t n, cm_error *err);
void cm_ahead_release(cm_ahead *a);

/* Begins to fetch the objects whose numbers TODO lists. */
int cm_ahead_start(cm_ahead *a, const size_t *todo, size_t ntodo, cm_error *err);
/* Ends that, and gives back what nobody looked at. */
void cm_ahead_stop(cm_ahead *a);

/* In a child: waits for file AT; *PATH is where it lies.  False: there is nothing to look at. */
bool cm_ahead_wait(cm_ahead *a, size_t at, char path[CM_COPY_PATH_SIZE]);
/* In a child: whether it would have to wait. */
bool cm_ahead_must_wait(cm_ahead *a, size_t at);

/* The record of file AT is there: its copy may go. */
void cm_ahead_done(cm_ahead *a, size_t at);
/* Its process ended over it: it is fetched again when it is looked at again. */
void cm_ahead_undo(cm_ahead *a, size_t at);
/* The copies that failed since it was asked; to be freed one by one. */
cm_ahead_failure *cm_ahead_failed(cm_ahead *a);
/* Adds to ERR, where it is the network's and tells nothing of a file, what to do. */
void cm_ahead_advise(cm_error *err);
/* An error that ends the survey. */
int cm_ahead_check(cm_ahead *a, cm_error *err);

#endif
