/*
 * A command of the user that answers lines with lines.
 */
#ifndef CM_LOAD_WORKERS_CHILD_H
#define CM_LOAD_WORKERS_CHILD_H

#include <sys/types.h>

#include "base/mem.h"

enum {
    CM_CHILD_MAX_LINE = 1 << 20 /* bytes of an answer */
};

/* Zeroed memory is a command that was not begun. */
typedef struct cm_child {
    pid_t pid; /* and its process group's; 0: none */
    int in;    /* its standard input */
    int out;   /* its standard output */
    cm_buf buf;
    size_t taken; /* bytes of buf that were handed out */
} cm_child;

/* Begins COMMAND with "sh -c", its standard error being ours, in a process group of its own. */
int cm_child_begin(cm_child *child, const char *command, cm_error *err);
/*
 * Closes the command's input, gives it half a second to end if PATIENT, then kills its process
 * group.  No-op for a command that was not begun.
 */
void cm_child_end(cm_child *child, bool patient);

/* Limits of a wait for the command. */
typedef struct cm_child_patience {
    uint64_t deadline_ns;            /* CLOCK_MONOTONIC */
    bool (*canceled)(void *context); /* asked a few times a second; NULL: never */
    void *context;
} cm_child_patience;

/* Writes all NBYTES to the command's input.  After an error, end the command. */
int cm_child_write(cm_child *child, const void *data, size_t nbytes,
                   const cm_child_patience *patience, cm_error *err);
/*
 * Reads the next line of its output: without the newline, NUL-terminated, valid until the next
 * call.
 */
int cm_child_read_line(cm_child *child, const cm_child_patience *patience, const char **line,
                       size_t *nbytes, cm_error *err);
/* CPU time of its own process so far; 0 when that cannot be had. */
uint64_t cm_child_cpu_ns(const cm_child *child);

#endif
