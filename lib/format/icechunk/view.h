/* A snapshot as it is read: its nodes by path, and which manifests may have a chunk. */
#ifndef CM_FORMAT_ICECHUNK_VIEW_H
#define CM_FORMAT_ICECHUNK_VIEW_H

#include "format/icechunk/file_read.h"
#include "model/box.h"

/* A manifest that an array is in: it has the chunks within a box of indices. */
typedef struct cm_ice_part {
    const uint8_t *id;
    const uint8_t *box; /* RANK pairs of numbers: from, and behind; borrowed */
    uint32_t from;      /* of the first dimension */
    uint32_t reach;     /* the greatest end in it of this part and those before */
} cm_ice_part;

typedef struct cm_ice_seen {
    char *path; /* "" for the root */
    const uint8_t *id;
    const cm_fb_value *document; /* its zarr.json */
    bool is_array;
    unsigned rank;
    cm_ice_part *part; /* of an array, sorted by FROM */
    size_t nparts;
} cm_ice_seen;

typedef struct cm_ice_view {
    uint8_t id[CM_ICE_ID];
    cm_ice_read file;
    cm_ice_seen *node; /* sorted by path */
    size_t nnodes;
    uint64_t nrefs, nmanifests; /* of all manifests that the snapshot names */
} cm_ice_view;

/* The snapshot ID of the repository ROOT.  Release OUT even after an error. */
int cm_ice_view_read(cm_store *root, const uint8_t id[CM_ICE_ID], cm_ice_view *out, cm_error *err);
void cm_ice_view_release(cm_ice_view *v);

/* The node with this PATH, NBYTES of it; NULL: there is none. */
const cm_ice_seen *cm_ice_view_find(const cm_ice_view *v, const char *path, size_t nbytes);
/* Whether INDEX is in the box of PART. */
bool cm_ice_part_has(const cm_ice_part *part, const uint32_t *index, unsigned rank);
/*
 * The next part of array NODE that may have the chunk INDEX; *NEXT begins as SIZE_MAX.  NULL: there
 * is no more.
 */
const cm_ice_part *cm_ice_seen_part(const cm_ice_seen *node, const uint32_t *index, size_t *next);

#endif
