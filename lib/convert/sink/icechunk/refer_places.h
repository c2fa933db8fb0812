/* Places of a variable's chunks in the files that it is referred to in, by the chunk's number. */
#ifndef CM_CONVERT_SINK_ICECHUNK_REFER_PLACES_H
#define CM_CONVERT_SINK_ICECHUNK_REFER_PLACES_H

#include "convert/sink/icechunk/refer_urls.h"
#include "format/icechunk/places.h"

/* A part of the variable: a box of chunks in one file. */
typedef struct cm_refer_box {
    const struct cm_refer_part *part;
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK]; /* of the variable's grid */
    uint64_t low, high;                              /* its first and last number */
    uint64_t reach; /* the highest number of this box and all in front of it */
} cm_refer_box;

typedef struct cm_refer_places {
    const cm_job_var *v;
    const cm_refer_urls *urls;
    uint64_t shape[CM_MAX_RANK]; /* of the grid */
    cm_refer_box *box;           /* sorted by LOW */
    size_t nboxes;
    /* Of an array that is there: chunks below index NKEPT of dimension AXIS keep their places. */
    unsigned axis;
    uint64_t nkept;
} cm_refer_places;

/* URLS has the files of all parts. */
int cm_refer_places_create(const cm_job_var *v, const cm_refer_urls *urls, cm_refer_places *out,
                           cm_error *err);
void cm_refer_places_get(cm_refer_places *p, cm_ice_places *out);
void cm_refer_places_release(cm_refer_places *p); /* zeroed memory accepted */

#endif
