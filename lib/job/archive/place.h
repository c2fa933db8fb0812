/*
 * Which file gives which elements, for a set of files and the joined dimensions that a
 * variable has.  Variables of the same files and dimensions share one.
 */
#ifndef CM_JOB_ARCHIVE_PLACE_H
#define CM_JOB_ARCHIVE_PLACE_H

#include "job/archive/join.h"

/* Elements that two files have. */
typedef struct cm_placed_twice {
    cm_multi_part part[2]; /* the first is what the array has */
} cm_placed_twice;

typedef struct cm_placement {
    unsigned naxes;
    unsigned axis[CM_MULTI_MAX_AXES]; /* joined dimensions, by number */
    cm_digest files;                  /* of the list of files and the axes */
    cm_multi_part *part;
    size_t nparts;
    cm_placed_twice *twice;
    size_t ntwice;
    uint64_t nrepeated;               /* elements that more than one file has */
    uint64_t nholes;                  /* that no file has */
    uint64_t hole[CM_MULTI_MAX_AXES]; /* the first */
} cm_placement;

/*
 * OUT has its axes set: those that V has.
 */
int cm_place(cm_join *j, const cm_join_var *v, cm_placement *out, cm_error *err);
void cm_placement_release(cm_placement *p);

#endif
