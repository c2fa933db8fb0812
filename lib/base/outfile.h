/*
 * A file that the user names for output: a trace, a certificate, a plot.
 *
 * It must not be an input, nor lie in a folder that is read or made.  An existing file is
 * replaced only if it is a document of the same kind, or if the user asked for that.  A link
 * stands for its file, which goes only if it is such a document; devices and pipes are written
 * into.  Any other file appears whole: an unnamed file is written and takes the name at the end.
 * The old file is first moved aside and checked again, so that a file that somebody put there
 * meanwhile is not lost.
 *
 *     claim -> open -> write -> commit, and release in any case
 */
#ifndef CM_BASE_OUTFILE_H
#define CM_BASE_OUTFILE_H

#include <stdio.h>
#include <sys/types.h>

#include "base/marks.h"
#include "base/outfile_guard.h"
#include "base/outstream.h"

typedef struct cm_outfile {
    char *path; /* as the user named it */
    char *real; /* where links lead; NULL: it is written in place */
    char *part; /* the document's name while it has one that is not its own */
    bool made;  /* it has that name, and loses it when it is released */
    bool in_place;
    bool linked; /* PATH is a symbolic link */
    bool sync;   /* to be set by who writes it: on the disk before it takes its place */
    int fd;      /* -1: not open */
    int errnum;  /* of the first write that failed, which a later one does not hide; 0: none did */
    cm_outstream stream;
    bool overwrite;
    const cm_document_kind *kind;
    cm_outfile_guard guard; /* own copies of its texts */
} cm_outfile;

/*
 * Looks whether PATH may be written as a document of KIND, and touches nothing:
 * CM_EINVAL when it is what GUARD names, CM_EEXIST when something else is there and
 * OVERWRITE is not set, or cannot be replaced.  Whatever is returned, release it.
 */
int cm_outfile_claim(cm_outfile *f, const char *path, const cm_document_kind *kind,
                     const cm_outfile_guard *guard, bool overwrite, cm_error *err);
/*
 * Opens it for writing; nothing where that was done.  A pipe that nobody reads is CM_EINVAL, and
 * one whose reader takes nothing is waited for until the guard cancels.
 */
int cm_outfile_open(cm_outfile *f, cm_error *err);
int cm_outfile_write(cm_outfile *f, const void *data, size_t nbytes, cm_error *err);
/* To print to until commit or release, which close it; NULL and an error. */
FILE *cm_outfile_stream(cm_outfile *f, cm_error *err);
/* CM_OK, or the error of the first write that failed: who prints much stops early. */
int cm_outfile_check(const cm_outfile *f, cm_error *err);
/* The document is whole, and takes its place; where a write failed, that is the error. */
int cm_outfile_commit(cm_outfile *f, cm_error *err);
/* Discards anything not committed. */
void cm_outfile_release(cm_outfile *f);

#endif
