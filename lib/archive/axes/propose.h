#ifndef CM_ARCHIVE_AXES_PROPOSE_H
#define CM_ARCHIVE_AXES_PROPOSE_H

#include "archive/join.h"

enum {
    CM_MOST_PROPOSED = 512 /* characters of a pattern of names */
};

/* Proposes an option for F, which says that no coordinate tells how files follow each other. */
int cm_join_propose(const cm_join_input *in, const cm_join_tables *tables,
                    cm_join_findings *findings, cm_finding *f, cm_error *err);

/*
 * apart.c: the value of the option BY that keeps all of files which have the same steps: `new_dim`
 * or `along`, with which they lie side by side, or `order`, one behind the other; to be freed.
 * NULL: nothing tells them apart, and BY is as before.
 */
char *cm_join_propose_apart(const cm_join_input *in, const cm_join_tables *tables,
                            const cm_join_axes *axes, cm_decider *by);
/* Whether AT, one value or text a file, is one for each member of it, or of each place. */
bool cm_join_value_splits(const cm_join_input *in, const cm_join_tables *tables,
                          const cm_join_axes *axes, uint32_t at);
/* Two scalars, *A counting time, that give each file its place together, as runs and lead times. */
bool cm_join_find_pair(const cm_join_input *in, const cm_join_tables *tables, uint32_t *a,
                       uint32_t *b);

/*
 * A pattern of dates that the names or folders of all files have, each another one, into OUT,
 * CM_MOST_PROPOSED characters; of a store that grows only its new files are asked.
 */
bool cm_join_find_dates(const cm_join_input *in, char *out);

/* The common beginning and end of files' names; digits are part of what differs. */
typedef struct cm_join_ends {
    const char *first;     /* the name of the first file */
    size_t length;         /* of it */
    size_t before, behind; /* characters of it that all names begin and end with */
} cm_join_ends;

/*
 * Of the N files FILE (NULL: of the first N), or of their WHOLE paths.  False: nothing lies between
 * the ends.
 */
bool cm_join_find_ends(const cm_join_input *in, const uint32_t *file, size_t n, bool whole,
                       cm_join_ends *out);

/* Proposes an option for F: values of AT, which lacks the joined dimension, differ. */
int cm_join_propose_promotion(const cm_join_input *in, const cm_join_tables *tables,
                              const cm_join_axes *axes, uint32_t at, cm_finding *f, cm_error *err);

#endif
