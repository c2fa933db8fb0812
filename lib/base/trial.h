/*
 * A function tried in a child process: what may crash, never return or ask for all
 * memory does so there, and the caller gets a sentence about it.
 *
 * The child is a fork of this process.  It has one thread, its output goes nowhere, the
 * signals of a terminal do not reach it, it leaves no core file, and it dies with its
 * parent.  Locks that another thread held stay locked in it: a library whose lock the
 * function takes has a pthread_atfork handler (format/nc/lock.c).  Any thread may try,
 * and several at once.
 */
#ifndef CM_BASE_TRIAL_H
#define CM_BASE_TRIAL_H

#include <sys/types.h>

#include "base/fd.h"
#include "base/mem.h"

typedef struct cm_trial_limits {
    /*
     * Seconds of CPU time; 0: no limit.  Neither waiting for slow storage nor the load of other
     * processes counts.
     */
    unsigned cpu_s;
    /*
     * Seconds of elapsed time, in all or for one answer; 0: no limit.  For storage that never
     * answers.
     */
    unsigned wall_s;
    uint64_t memory; /* bytes of address space beyond the present size; 0: no limit */
    uint64_t data;   /* bytes of private memory beyond the present size; 0: no limit */
    bool (*canceled)(void *context); /* asked several times a second; NULL: never */
    void *context;
} cm_trial_limits;

typedef enum cm_trial_end {
    CM_TRIAL_RETURNED, /* the function did */
    /* By SIGNAL, or, with 0, by calling exit; SIGABRT where the heap was damaged (heap.h). */
    CM_TRIAL_CRASHED,
    CM_TRIAL_ENDLESS, /* exceeded cpu_s */
    CM_TRIAL_LATE,    /* exceeded wall_s */
    CM_TRIAL_CANCELED,
    CM_TRIAL_NONE /* no child: no process could be started */
} cm_trial_end;

typedef struct cm_trial_fate {
    cm_trial_end end;
    int signal;   /* CM_TRIAL_CRASHED */
    bool starved; /* it may have failed because of its limit of data */
} cm_trial_fate;

/* The caller receives the bytes appended to RECORD. */
typedef int cm_trial_fn(void *context, cm_buf *record, cm_error *err);

/*
 * Runs FN(CONTEXT) in a child.  CM_TRIAL_RETURNED gives its result, its message in ERR, and RECORD
 * (initialised, limited by its maximum; NULL: none).  All other ends return CM_OK with FATE, and
 * the caller makes the message.
 */
int cm_trial_run(cm_trial_fn *fn, void *context, const cm_trial_limits *limits, cm_buf *record,
                 cm_trial_fate *fate, cm_error *err);

/* ---- a child that stays ---- */

typedef struct cm_trial_child {
    int pid;   /* 0: none */
    int fd;    /* a stream socket to the child */
    bool late; /* it did not answer in time */
} cm_trial_child;

/* Runs in the child after FN has returned CM_OK, and speaks through FD; then the child ends. */
typedef void cm_trial_serve(void *context, int fd);

/*
 * cm_trial_run, but if FN returns CM_OK the child continues with SERVE, and is stored in KEPT.  Its
 * stream ends when the parent ends.  The limits hold until it calls cm_trial_renew_limits.
 */
int cm_trial_keep(cm_trial_fn *fn, cm_trial_serve *serve, void *context,
                  const cm_trial_limits *limits, cm_buf *record, cm_trial_fate *fate,
                  cm_trial_child *kept, cm_error *err);

/*
 * The time at which a trial that begins now is late: ns of the monotonic clock; UINT64_MAX: never.
 */
uint64_t cm_trial_deadline(const cm_trial_limits *limits);

/* In the child: allows this much CPU time and memory of both kinds from now on. */
void cm_trial_renew_limits(unsigned cpu_s, uint64_t memory);

/* cm_fd_recv that also gives up when the child is dead or late, or the caller is cancelled. */
bool cm_trial_receive(cm_trial_child *from, void *data, size_t nbytes,
                      const cm_trial_limits *limits);

/*
 * Waits for a child that has ended, or, with KILL or if it is late, ends it; returns its fate
 * (CM_TRIAL_RETURNED: a normal end).
 */
cm_trial_fate cm_trial_part(cm_trial_child *child, bool kill);
/* cm_trial_part for any child of this process. */
cm_trial_fate cm_trial_reap(pid_t pid, bool kill);
/*
 * The first act of a child that was forked otherwise, of the process PARENT: it falls silent,
 * takes no signal of a terminal, dies with its parent, and has the limits of a trial.
 */
void cm_trial_settle(pid_t parent, const cm_trial_limits *limits);

#endif
