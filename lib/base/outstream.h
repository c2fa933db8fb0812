/*
 * A stream for output that remembers why it failed.
 *
 * stdio knows that a write failed, not why: errno belongs to the last call, and after a full disk
 * a flush with nothing left to write succeeds.  So a stream keeps the errno of its first failed
 * write, and writes nothing behind the gap.
 */
#ifndef CM_BASE_OUTSTREAM_H
#define CM_BASE_OUTSTREAM_H

#include <stddef.h>
#include <stdio.h>

/* Takes all NBYTES: 0, or an errno. */
typedef int cm_outstream_write(void *context, const void *data, size_t nbytes);

typedef struct cm_outstream {
    FILE *file; /* for printing; NULL: not open */
    cm_outstream_write *write;
    void *context;
    int fd;     /* -1: none, or borrowed */
    int errnum; /* of the first failed write; 0: none */
} cm_outstream;

/*
 * Open S, which must not move until it is closed.  Return 0, or an errno.  cm_outstream_open takes
 * FD, and closes it with the stream or on failure; cm_outstream_borrow leaves FD open;
 * cm_outstream_wrap writes by a function.
 */
int cm_outstream_open(cm_outstream *s, int fd);
int cm_outstream_borrow(cm_outstream *s, int fd);
int cm_outstream_wrap(cm_outstream *s, cm_outstream_write *write, void *context);

/* Writes buffered data.  0, or the errno of the first failed write since opening. */
int cm_outstream_flush(cm_outstream *s);
/* Flushes and closes; 0 if nothing is open. */
int cm_outstream_close(cm_outstream *s);

/* A text in memory, complete or NULL: open_memstream silently truncates it when memory runs out. */
typedef struct cm_outtext {
    cm_outstream stream;
    char *text;
    size_t nbytes, capacity;
} cm_outtext;

/* A stream for printing; NULL: no memory.  T must not move until it is closed. */
FILE *cm_outtext_open(cm_outtext *t);
/* The text, to be freed; NULL: no memory. */
char *cm_outtext_close(cm_outtext *t);

#endif
