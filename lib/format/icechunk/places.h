/* Where the chunks of an array lie, for who writes manifests. */
#ifndef CM_FORMAT_ICECHUNK_PLACES_H
#define CM_FORMAT_ICECHUNK_PLACES_H

#include "format/icechunk/schema.h"
#include "model/box.h"

typedef enum cm_ice_where {
    CM_ICE_NOWHERE, /* the fill value */
    CM_ICE_IN_FILE, /* of the repository */
    CM_ICE_INLINE,  /* in the manifest */
    CM_ICE_OUTSIDE, /* in a file that is not the repository's */
    CM_ICE_KEPT     /* as the snapshot has it that the commit changes */
} cm_ice_where;

typedef struct cm_ice_place {
    cm_ice_where where;
    bool tagged;       /* OUTSIDE: its location has a tag, and no time */
    uint32_t location; /* OUTSIDE: its number */
    uint64_t offset, nbytes;
    uint8_t id[CM_ICE_ID]; /* IN_FILE */
    const uint8_t *bytes;  /* INLINE; valid until the next call */
} cm_ice_place;

/* In the number of a location: it is one of the snapshot before (kept.h). */
#define CM_ICE_LOCATION_KEPT (UINT32_C(1) << 31)

/*
 * A URL, and its time of modification in seconds since 1970, rounded up, 0: not known; or a tag of
 * its content.
 */
typedef struct cm_ice_location {
    const char *url;
    const char *etag; /* or NULL */
    uint32_t modified_s;
} cm_ice_location;

/* The chunks of an array. */
typedef struct cm_ice_places {
    unsigned rank;
    uint64_t shape[CM_MAX_RANK]; /* of the grid, in chunks */
    /* The places of N chunks from number FIRST on, in the order of the grid. */
    int (*find)(void *context, uint64_t first, size_t n, cm_ice_place *out, cm_error *err);
    /* NULL: no chunk lies outside. */
    int (*locate)(void *context, uint32_t number, cm_ice_location *out, cm_error *err);
    void *context;
} cm_ice_places;

#endif
