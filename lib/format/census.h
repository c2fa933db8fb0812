/*
 * Takes the census of a Zarr store (chunkmill/census.h): one listing, the indices of shards where
 * they are asked for, and every chunk where all are to be decoded.
 */
#ifndef CM_FORMAT_CENSUS_H
#define CM_FORMAT_CENSUS_H

#include <chunkmill/census.h>

#include "base/stop.h"
#include "format/dataset.h"

typedef enum cm_census_depth {
    CM_CENSUS_NAMES, /* the listing alone: absent chunks, and absent shards */
    CM_CENSUS_SIZES, /* and sizes, and the indices of shards */
    CM_CENSUS_DECODE /* and every chunk is decoded */
} cm_census_depth;

typedef struct cm_census_options {
    cm_census_depth depth;
    unsigned nthreads;
    uint64_t memory;      /* for decoding, bytes */
    uint64_t most_remote; /* objects of an array that are listed over a network; 0: any number */
    const cm_stop *stop;  /* or NULL */
} cm_census_options;

/*
 * Of all arrays of DS, a Zarr dataset, at NODE and below ("": all), and of the objects there that
 * belong to none.  OUT is valid, and to be released, whatever is returned.  A store that cannot be
 * listed is no error: OUT->unlisted says so.
 */
int cm_census_of_store(cm_dataset *ds, const char *node, const cm_census_options *options,
                       cm_census *out, cm_error *err);
/*
 * Of those of N variables that are Zarr arrays; each is listed by itself, and foreign objects are
 * not counted.
 */
int cm_census_of_arrays(cm_dataset *ds, cm_variable *const *var, size_t n,
                        const cm_census_options *options, cm_census *out, cm_error *err);

#endif
