/* The inside of a Zarr array, shared by reader.c, fetch_many.c and chunk_place.c. */
#ifndef CM_FORMAT_ZARR_READER_H
#define CM_FORMAT_ZARR_READER_H

#include <pthread.h>

#include "format/zarr/open.h"
#include "format/zarr/shapes.h"
#include "format/zarr/shard_cache.h"
#include "store/io.h"

typedef struct cm_zarr_array {
    cm_array base;
    cm_store *store;
    char *prefix;            /* of chunk keys: "" or "a/b/" */
    cm_zarr_meta keys;       /* only its grid, and the members needed by cm_zarr_chunk_key */
    cm_grid outer;           /* of objects: shards, or the chunks themselves */
    cm_zarr_shapes *shapes;  /* NULL: all objects have one shape */
    cm_shard_layout *layout; /* of the largest shard */
    cm_shard_cache *cache;   /* NULL: not sharded */

    pthread_mutex_t lock; /* guards idle */
    cm_codec_ctx *idle;   /* one context kept between calls of read_strings */
} cm_zarr_array;

enum {
    CM_ZARR_KEY_SIZE = 4096 /* of a chunk key; longer ones are refused */
};

/* Tries to read a shard, as a store that grows replaces its shards while they are read. */
enum {
    CM_ZARR_TRIES = 4
};

/* ---- chunk_place.c ---- */

/* The key of outer chunk COORD in BUF of CM_ZARR_KEY_SIZE. */
int cm_zarr_object_key(const cm_zarr_array *z, const uint64_t *coord, char *buf, cm_error *err);
/* Splits inner chunk NUMBER of the array into its shard and its number within. */
void cm_zarr_locate(const cm_zarr_array *z, uint64_t number, uint64_t *shard_coord,
                    uint64_t *local);
/* The layout of the shard at COORD. */
int cm_zarr_layout_of(const cm_zarr_array *z, const uint64_t *coord, const cm_shard_layout **out,
                      cm_error *err);
/* The chain of chunk NUMBER; NULL: the array's. */
int cm_zarr_chain_of(const cm_zarr_array *z, uint64_t number, const cm_chain **out, cm_error *err);
/* Upper bound for a stored chunk. */
uint64_t cm_zarr_max_stored(const cm_zarr_array *z);
/* Finds inner chunk LOCAL; *present is false if it is missing. */
int cm_zarr_find_inner(const cm_zarr_array *z, const cm_shard *shard, uint64_t local, bool *present,
                       cm_shard_entry *out, cm_error *err);
/* Puts "array a/b: chunk 3/0/1: " before ERR, unless RC is CM_OK; returns RC. */
int cm_zarr_prefix_chunk(cm_error *err, const cm_zarr_array *z, uint64_t number, int rc);

/* ---- fetch_many.c ---- */

/* cm_array_ops.fetch_many of arrays with chunks as objects, and of sharded ones. */
int cm_zarr_fetch_objects(cm_array *a, cm_fetch_many *many, cm_error *err);
int cm_zarr_fetch_inner(cm_array *a, cm_fetch_many *many, cm_error *err);
/* cm_array_ops.fetch_begin and fetch_end for both. */
bool cm_zarr_begin_objects(cm_array *a, cm_fetch_many *many);
int cm_zarr_end_objects(cm_array *a, cm_fetch_many *many, cm_error *err);
bool cm_zarr_begin_inner(cm_array *a, cm_fetch_many *many);
int cm_zarr_end_inner(cm_array *a, cm_fetch_many *many, cm_error *err);
void cm_zarr_unwant(cm_array *a, cm_fetch_many *many);

#endif
