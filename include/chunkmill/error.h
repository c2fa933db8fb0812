/*
 * Errors: a code to branch on and a sentence fit to print.
 *
 * Every call of the library that can fail returns a cm_status as int (0 is
 * success) and, when its cm_error argument is not NULL, leaves there one
 * sentence that names what failed: file, variable, chunk, reason, in that
 * order, without a final full stop.  The leaf states the fact; a caller adds
 * context in front only when it knows more (cm_error_prefix).  A setting is named by its field
 * in the options of the verb, between backquotes: "raise `memory`".
 *
 * A cm_error is owned by the caller, lives on its stack, needs no release and
 * must not be shared between threads.
 */
#ifndef CHUNKMILL_ERROR_H
#define CHUNKMILL_ERROR_H

#include <stdarg.h>

typedef enum cm_status {
    CM_OK = 0,
    CM_EINVAL,       /* the caller asked for something that has no meaning */
    CM_ENOMEM,       /* the system gave no memory */
    CM_EIO,          /* reading or writing failed */
    CM_ENOSPC,       /* no space, or no quota, is left where output goes */
    CM_ENOTFOUND,    /* a file, key, variable or dimension is not there */
    CM_EEXIST,       /* the output exists */
    CM_EFORMAT,      /* the input breaks its own format: corrupt or hostile */
    CM_EUNSUPPORTED, /* well-formed, but not something that this build handles */
    CM_EBUDGET,      /* does not fit the memory that the user set */
    CM_ECANCELED,    /* stopped by request */
    CM_EDIFFER,      /* verification found a difference */
    CM_EINTERNAL     /* our own fault */
} cm_status;

typedef struct cm_error {
    cm_status status;
    int placed; /* the text begins with the file or store that it is about */
    char text[1020];
    int passes; /* a network or a server failed: the same again may go well */
} cm_error;

/* Fills ERR (which may be NULL) and returns STATUS. */
int cm_fail(cm_error *err, cm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * cm_fail for a failed system call: appends ": " and the text of ERRNUM, and picks the status from
 * it (ENOENT, EEXIST, ENOSPC and EDQUOT, ENOMEM; CM_EIO for everything else).
 */
int cm_fail_errno(cm_error *err, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "CONTEXT: " in front of the text.  Does nothing when ERR is NULL. */
void cm_error_prefix(cm_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds to the end of the text, which goes on being about what it was about. */
void cm_error_suffix(cm_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The text is about PLACE, a file or a store, and begins with it, unless a call further
 * down has said already which one it is about.  Does nothing when ERR or PLACE is NULL.
 */
void cm_error_place(cm_error *err, const char *place);

/* A short name of STATUS for machines: "not-found", "format", ... */
const char *cm_status_name(cm_status status);

#endif
