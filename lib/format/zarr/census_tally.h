/* One array of a census while its chunks are counted. */
#ifndef CM_FORMAT_ZARR_CENSUS_TALLY_H
#define CM_FORMAT_ZARR_CENSUS_TALLY_H

#include <pthread.h>

#include "codec/shard.h"
#include "format/census.h"
#include "format/zarr/chunk_name.h"

enum {
    CM_CENSUS_NAMED = 32,    /* chunks of each kind of hole, and foreign objects, by name */
    CM_CENSUS_CELLS = 240,   /* of a strip */
    CM_CENSUS_BITS = 1 << 24 /* objects of an array; of more, only the number is counted */
};

/* The lowest of many numbers, in order. */
typedef struct cm_lowest {
    uint64_t number[CM_CENSUS_NAMED];
    size_t n;
    bool more; /* numbers than these */
} cm_lowest;

typedef struct cm_census_tally {
    const char *path;
    const cm_zarr_meta *meta;
    cm_variable *var;
    cm_chunk_names names; /* its grid is that of objects */
    cm_grid grid;         /* of chunks: inner ones where there are shards */
    bool sharded;
    /* An object has so many bytes for each element and besides; the first is 0: sizes vary. */
    uint64_t element_nbytes, more_nbytes;
    uint64_t least_nbytes; /* of an object */
    uint64_t *seen;        /* a bit for each object; NULL: too many */
    uint64_t nseen;
    bool sized;           /* the listing told sizes, and they were judged */
    pthread_mutex_t lock; /* of what follows */
    cm_lowest chunks[CM_CENSUS_HOLES], shards[CM_CENSUS_HOLES];
    cm_census_array *out;
} cm_census_tally;

/* OUT, whose name is set, is filled in; its `unclear` where V's chunks cannot be counted. */
int cm_census_tally_init(cm_census_tally *t, cm_variable *v, cm_census_array *out, cm_error *err);
void cm_census_tally_release(cm_census_tally *t);
/* The object of COORD is there.  Any thread. */
void cm_census_tally_see(cm_census_tally *t, const uint64_t *coord);
bool cm_census_tally_saw(const cm_census_tally *t, uint64_t object);

/* Chunk NUMBER of the grid has such a hole.  WHY, which may be NULL, is copied.  Any thread. */
void cm_census_tally_chunk(cm_census_tally *t, cm_census_hole kind, uint64_t number,
                           const char *why);
/* All chunks of object NUMBER have. */
void cm_census_tally_object(cm_census_tally *t, cm_census_hole kind, uint64_t number,
                            const char *why);
/* Judges an object by its size alone; false: it has a hole. */
bool cm_census_tally_size(cm_census_tally *t, uint64_t object, uint64_t nbytes);
/* Counts objects that were not seen, and makes the names. */
int cm_census_tally_finish(cm_census_tally *t, cm_error *err);

/* Looks at every object that was seen, with threads. */
int cm_census_examine(cm_dataset *ds, cm_census_tally *t, const cm_census_options *options,
                      cm_error *err);

#endif
