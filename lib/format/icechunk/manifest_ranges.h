/*
 * How the chunks of a large array are divided among manifests: ranges along the first dimensions,
 * of which each has one, and those of an array that is changed that are to be written anew.
 */
#ifndef CM_FORMAT_ICECHUNK_MANIFEST_RANGES_H
#define CM_FORMAT_ICECHUNK_MANIFEST_RANGES_H

#include "format/icechunk/kept.h"

enum {
    CM_ICE_MANIFEST_REFS = 1 << 16 /* of one manifest, at most */
};

typedef struct cm_ice_range {
    cm_ice_extent extent;
    uint64_t first; /* the number of its first chunk */
    size_t n;       /* of chunks */
    bool dirty;     /* its manifest is written */
} cm_ice_range;

typedef struct cm_ice_ranges {
    unsigned rank;
    cm_ice_range *item;
    size_t n, capacity;
} cm_ice_ranges;

/* The ranges of a grid of SHAPE chunks, all dirty.  R is zeroed, and to be released in any case. */
int cm_ice_ranges_make(cm_ice_ranges *r, unsigned rank, const uint64_t *shape, cm_error *err);
/*
 * A manifest of WAS, the array as it was, of which a part is written anew goes: all ranges that it
 * meets become dirty, for no two manifests may tell of one chunk.
 */
int cm_ice_ranges_spread(cm_ice_ranges *r, const cm_fb_table *was, cm_error *err);
/* Whether EXTENT meets a range that is dirty. */
bool cm_ice_ranges_meet(const cm_ice_ranges *r, const cm_ice_extent *extent);
void cm_ice_ranges_release(cm_ice_ranges *r);

#endif
