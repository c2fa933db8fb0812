/*
 * The files that a user means by paths, folders, patterns and lists.
 *
 * A path that exists literally is itself: a file, or a folder that is searched below for
 * names that end like NetCDF and HDF5 files.  Otherwise one with '*', '?' or '[]' is a
 * pattern (options/glob.h), "@LIST" a file with one path a line, and "@-" the same from
 * standard input.  Hidden files, and what lies in a Zarr store, are not found by searching.
 * URLs are inputs too, and what a bucket lists is searched as a folder is.
 */
#ifndef CM_ARCHIVE_SURVEY_INPUTS_H
#define CM_ARCHIVE_SURVEY_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <chunkmill/error.h>
#include <chunkmill/texts.h>

#include "base/paged.h"
#include "store/copies.h"

typedef struct cm_input {
    char *path;        /* in paged memory */
    uint64_t dev, ino; /* 0: it is not there */
    size_t given;      /* its place in the order given */
    cm_copy *copy;     /* of an object behind a network; NULL: it is a file */
    cm_status status;  /* CM_OK, or why nothing is known of such an object: */
    char *why;         /* in paged memory */
    /* While they are found: it is to be asked about; a list names it; it means what it holds. */
    bool remote, from_list, folder;
} cm_input;

typedef struct cm_inputs {
    cm_paged *paged; /* that paths lie in; borrowed */
    cm_input *item;
    size_t n;
    size_t nrepeated;    /* files that were named more than once: each counts once */
    char *repeated;      /* the first of them; or NULL */
    const char *avoid;   /* a folder that is not searched: what is made; borrowed, or NULL */
    FILE *standard;      /* what "@-" reads; NULL: there is none */
    bool zero;           /* lists are separated by NUL, not by newlines */
    cm_net *net;         /* for what lies behind a network; or NULL */
    const char *scratch; /* folder for copies of objects; NULL: that of the net */
    uint64_t max_nbytes; /* of them; 0: see store/copies.h */
    cm_copies *copies;   /* NULL: there are no objects; the caller's, released after all */
} cm_inputs;

/* Whether TEXT may name more than one file: a folder, a pattern or a list. */
bool cm_input_is_many(const char *text);
/* Whether FOLDER is a Zarr store. */
bool cm_input_is_store(const char *folder);

/*
 * Adds what TEXTS mean to OUT, which the caller initialised: sorted by name, each file once.
 * CM_ENOTFOUND for a path that is not there, and for a pattern or folder that holds nothing.
 */
int cm_inputs_find(const cm_texts *texts, cm_inputs *out, cm_error *err);
/* Frees the list; paths live as long as the paged memory, and copies stay. */
void cm_inputs_forget(cm_inputs *in);
void cm_inputs_release(cm_inputs *in);

#endif
