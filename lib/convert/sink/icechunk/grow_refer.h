/*
 * A repository of references that grows by references: of each array that refers to other files,
 * new chunks stay in the files that are added, and a commit refers to them.  Arrays that the
 * repository holds converted grow as ever.
 */
#ifndef CM_CONVERT_SINK_ICECHUNK_GROW_REFER_H
#define CM_CONVERT_SINK_ICECHUNK_GROW_REFER_H

#include "convert/sink/growth/append.h"
#include "convert/sink/icechunk/refer_places.h"

/* An array that grows; REFERS is false where its new chunks are written. */
typedef struct cm_grown_refer {
    bool refers;
    cm_job_var whole; /* all of it, as it will be; borrows the layout of the window */
    cm_refer_places places;
} cm_grown_refer;

typedef struct cm_grow_refer {
    cm_refer_urls urls;
    cm_grown_refer *array; /* one for each array of the append's state, in its order */
    size_t n;
} cm_grow_refer;

/* R is zeroed.  The URLs of all new files. */
int cm_grow_refer_begin(cm_grow_refer *r, cm_job *job, cm_error *err);
/* A cm_append_state.fills: chunks of T are referred to, and so cannot grow later. */
int cm_grow_refer_fills(const cm_append_state *s, const cm_variable *t, bool *out, cm_error *err);
/*
 * Chooses the windows of S whose chunks are referred to.  CM_EUNSUPPORTED, naming the array and
 * the reason, where that is not possible; CM_EINVAL: Icechunk would not read the files.
 */
int cm_grow_refer_choose(cm_grow_refer *r, cm_job *job, const cm_append_state *s, cm_error *err);
/* Whether grown array I is referred to; then its places. */
bool cm_grow_refer_places(cm_grow_refer *r, size_t i, cm_ice_places *out);
void cm_grow_refer_release(cm_grow_refer *r); /* zeroed memory accepted */

/* The node of array NAME of the repository that grows; NULL: there is none. */
const cm_fb_table *cm_grow_refer_node(const cm_append *a, const char *name);
/*
 * Array T of the repository as it will be, LENGTH elements along AXIS (the rank of T: it stays),
 * with room for NPARTS parts.
 */
int cm_grow_refer_whole(const cm_variable *t, unsigned axis, uint64_t length, size_t nparts,
                        cm_job_var *out, cm_error *err);

/* ---- grow_agree.c ---- */

/*
 * Elements that the repository refers to in the same bytes of the same file need not be compared:
 * marks these checks of JOB's source.  CM_EFORMAT: the file has changed since, and no reader
 * takes what the repository refers to.  R is begun.
 */
int cm_grow_refer_agree(cm_grow_refer *r, cm_job *job, cm_error *err);

#endif
