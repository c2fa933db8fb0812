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
    char *real; /* with links resolved; NULL: written in place */
    char *part; /* temporary name, until commit */
    bool made;  /* the file PART exists, and release removes it */
    bool in_place;
    bool linked; /* PATH is a symbolic link */
    bool sync;   /* set by the caller: sync to disk before renaming */
    int fd;      /* -1: not open */
    int errnum;  /* of the first failed write, kept despite later ones; 0: none */
    cm_outstream stream;
    bool overwrite;
    const cm_document_kind *kind;
    cm_outfile_guard guard; /* own copies of its texts */
} cm_outfile;

/*
 * Checks that PATH may be written as a document of KIND, without touching it: CM_EINVAL if GUARD
 * forbids it, CM_EEXIST if another file exists and OVERWRITE is not set, or it cannot be replaced.
 * Release F in any case.
 */
int cm_outfile_claim(cm_outfile *f, const char *path, const cm_document_kind *kind,
                     const cm_outfile_guard *guard, bool overwrite, cm_error *err);
/*
 * Opens it for writing, unless it is open.  A pipe without a reader is CM_EINVAL; a reader that
 * does not read is waited for until the guard cancels.
 */
int cm_outfile_open(cm_outfile *f, cm_error *err);
int cm_outfile_write(cm_outfile *f, const void *data, size_t nbytes, cm_error *err);
/* A stream for printing until commit or release, which close it; NULL and an error. */
FILE *cm_outfile_stream(cm_outfile *f, cm_error *err);
/* CM_OK, or the error of the first failed write, so that long output can stop early. */
int cm_outfile_check(const cm_outfile *f, cm_error *err);
/* Completes the document and renames it; gives the error of any failed write. */
int cm_outfile_commit(cm_outfile *f, cm_error *err);
/* Discards anything not committed. */
void cm_outfile_release(cm_outfile *f);

#endif
