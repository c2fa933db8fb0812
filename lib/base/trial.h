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
    /* Seconds of CPU time; 0: no limit.  Waiting for storage, which may take long, does not
       count, and neither does what other processes do to the machine. */
    unsigned cpu_s;
    /* Seconds that pass, of all or of one answer; 0: no limit.  For storage that never answers. */
    unsigned wall_s;
    uint64_t memory; /* bytes of address space beyond what the process has; 0: no limit */
    uint64_t data;   /* bytes of private memory beyond what it has; 0: no limit */
    bool (*canceled)(void *context); /* asked several times a second; NULL: never */
    void *context;
} cm_trial_limits;

typedef enum cm_trial_end {
    CM_TRIAL_RETURNED, /* the function did */
    /* By SIGNAL, or, with 0, by calling exit; SIGABRT where the heap was damaged (heap.h). */
    CM_TRIAL_CRASHED,
    CM_TRIAL_ENDLESS, /* cpu_s were over */
    CM_TRIAL_LATE,    /* wall_s were */
    CM_TRIAL_CANCELED,
    CM_TRIAL_NONE /* there is no child: no process could be made */
} cm_trial_end;

typedef struct cm_trial_fate {
    cm_trial_end end;
    int signal;   /* CM_TRIAL_CRASHED */
    bool starved; /* it took so much memory that its limit of data may be why it failed */
} cm_trial_fate;

/* The caller receives the bytes appended to RECORD. */
typedef int cm_trial_fn(void *context, cm_buf *record, cm_error *err);

/*
 * FN(CONTEXT) in a child.  CM_TRIAL_RETURNED gives what it returned, with its sentence in
 * ERR, and RECORD (initialised, whose maximum bounds it; NULL: there is none).  All other
 * ends are CM_OK here, and FATE tells: the sentence is the caller's.
 */
int cm_trial_run(cm_trial_fn *fn, void *context, const cm_trial_limits *limits, cm_buf *record,
                 cm_trial_fate *fate, cm_error *err);

/* ---- a child that stays ---- */

typedef struct cm_trial_child {
    int pid;   /* 0: there is none */
    int fd;    /* a stream socket to the child */
    bool late; /* it gave no answer in time */
} cm_trial_child;

/* Runs in the child after FN has returned CM_OK, and speaks through FD; then the child ends. */
typedef void cm_trial_serve(void *context, int fd);

/*
 * As cm_trial_run, but where FN returns CM_OK the child goes on with SERVE, and KEPT is it.  It
 * finds the end of its stream when the parent ends.  The limits then hold until
 * cm_trial_renew_limits is called in it.
 */
int cm_trial_keep(cm_trial_fn *fn, cm_trial_serve *serve, void *context,
                  const cm_trial_limits *limits, cm_buf *record, cm_trial_fate *fate,
                  cm_trial_child *kept, cm_error *err);

/* When a trial that begins now is late: ns of the monotonic clock; UINT64_MAX: never. */
uint64_t cm_trial_deadline(const cm_trial_limits *limits);

/* In the child: from now on this much more CPU time, and memory of both kinds. */
void cm_trial_renew_limits(unsigned cpu_s, uint64_t memory);

/*
 * cm_fd_recv, which gives up also when the child is dead or late, or the caller not wanted any
 * more.
 */
bool cm_trial_receive(cm_trial_child *from, void *data, size_t nbytes,
                      const cm_trial_limits *limits);

/*
 * Waits for a child that has ended, or, with KILL or where it is late, ends it; tells how it came
 * to its end (CM_TRIAL_RETURNED: as it should).
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
