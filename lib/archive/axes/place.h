/*
 * Which file gives which elements, for a set of files and the joined dimensions that a
 * variable has.  Variables of the same files and dimensions share one.
 */
#ifndef CM_ARCHIVE_AXES_PLACE_H
#define CM_ARCHIVE_AXES_PLACE_H

#include "archive/join.h"

/* Elements that two files have. */
typedef struct cm_placed_twice {
    cm_multi_part part[2]; /* the first is what the array has */
} cm_placed_twice;

typedef struct cm_placement {
    unsigned naxes;
    unsigned axis[CM_MULTI_MAX_AXES]; /* joined dimensions, by number */
    /* Of the coordinate of one of two: files that have its steps too are not listed. */
    bool given;
    cm_digest files; /* of the list of files and the axes */
    cm_multi_part *part;
    size_t nparts;
    cm_placed_twice *twice;
    size_t ntwice;
    uint64_t nrepeated;               /* elements that more than one file has */
    uint64_t nholes;                  /* that no file has */
    uint64_t hole[CM_MULTI_MAX_AXES]; /* the first */
} cm_placement;

/* The files that give each variable its elements; fields/fields.h finds them. */
typedef struct cm_field_source {
    const cm_placement *place; /* NULL: the variable has no joined dimension */
    uint32_t file;             /* then: the file that gives it */
    bool auxiliary;            /* others refer to it: bounds and the like */
} cm_field_source;

typedef struct cm_field_sources {
    cm_field_source *of; /* one for each variable of the join */
    size_t n;
    cm_placement **place; /* each is its own allocation */
    size_t nplaces;
    cm_multi_check *check;
    size_t nchecks;
    char *apart;         /* the option that would tell apart files with the same steps; or NULL */
    cm_decider apart_by; /* which it is */
    char *twice;         /* the end of a message about such files, naming it; NULL: not made yet */
} cm_field_sources;

/*
 * The most places (steps, or steps times those of a second joined dimension) that a join may have.
 * Each takes some bytes until its file is known, however little the files store.  IN may be NULL:
 * where memory does not matter.
 */
uint64_t cm_place_limit(const cm_join_input *in);

/* OUT has its axes set, those that V has, and `given`. */
int cm_place(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
             const cm_join_var *v, cm_placement *out, cm_error *err);
/* Whether P has fewer places than FILE where FILE lies: some of them are holes. */
bool cm_place_is_open(const cm_join_input *in, const cm_join_tables *tables,
                      const cm_join_axes *axes, const cm_placement *p, uint32_t file);
void cm_placement_release(cm_placement *p);

/* FOUND, about steps that several files have, proposes what keeps all of them, if anything does. */
int cm_place_propose_apart(const cm_field_sources *f, cm_finding *found, cm_error *err);

#endif
