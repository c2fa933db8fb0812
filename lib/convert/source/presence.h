/*
 * Which chunks of a Zarr array are stored, without reading their data.
 */
#ifndef CM_CONVERT_SOURCE_PRESENCE_H
#define CM_CONVERT_SOURCE_PRESENCE_H

#include "base/stop.h"
#include "format/zarr/census_tally.h"
#include "store/store.h"

typedef struct cm_presence {
    uint64_t
        *bit; /* one for each chunk, inner ones where there are shards; NULL: too many to ask for */
    uint64_t nchunks;    /* of the grid */
    uint64_t npresent;   /* chunks */
    uint64_t nobjects;   /* there */
    uint64_t nbytes;     /* of them, indices counted */
    uint64_t max_nbytes; /* of the longest chunk */
    bool listed;         /* the tally was told of every object */
} cm_presence;

/*
 * Looks at every object of the array at PATH, which META describes: its size and, of a
 * shard, its index.
 * By up to NTHREADS at once, because storage may take its time for each.  TALLY, which may be NULL,
 * is told of all that is there, and of its holes but absent objects, so that a census needs no
 * listing of its own.  CM_ECANCELED when STOP wants it.
 */
int cm_presence_find(cm_store *store, const char *path, const cm_zarr_meta *meta, unsigned nthreads,
                     const cm_stop *stop, cm_census_tally *tally, cm_presence *out, cm_error *err);
void cm_presence_release(cm_presence *p);

#endif
