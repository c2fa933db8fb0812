/*
 * The census of a Zarr store: which of its chunks are there, as a value in reports.
 *
 * A chunk without an object reads as the fill value, so a store that lost data reads like one that
 * never had any.  A census tells the fact; only a record of the writer tells why a chunk is absent.
 */
#ifndef CHUNKMILL_CENSUS_H
#define CHUNKMILL_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>

typedef enum cm_census_hole {
    CM_CENSUS_ABSENT,      /* no object: readers get the fill value */
    CM_CENSUS_LEFT_OUT,    /* the same, and its writer recorded that it is all fill */
    CM_CENSUS_EMPTY,       /* an object of 0 bytes */
    CM_CENSUS_TRUNCATED,   /* shorter than it must be */
    CM_CENSUS_UNDECODABLE, /* its bytes, or those of the shard's index, make no chunk */
    CM_CENSUS_HOLES
} cm_census_hole;

/* The chunks with one kind of hole. */
typedef struct cm_census_count {
    uint64_t n;
    char **name; /* the first of them: "1/0/0", or "shard 0/1" where it is a whole shard */
    size_t nnames;
    bool more; /* not all of them are named */
    char *why; /* a sentence about the first of them; or NULL */
} cm_census_count;

/* An equal part of the first dimension. */
typedef struct cm_census_cell {
    uint64_t nchunks;
    uint64_t nholes; /* of them; chunks left out are none */
} cm_census_cell;

typedef struct cm_census_array {
    char *name;       /* "" for a store that is one array */
    char *unclear;    /* why its chunks were not counted; NULL: they were */
    char *undecoded;  /* why they were not decoded, where all were to be; NULL otherwise */
    uint64_t nchunks; /* of the grid, inner ones where there are shards */
    uint64_t npresent;
    bool no_fill; /* absent chunks read as zeros, for there is no fill value */
    cm_census_count hole[CM_CENSUS_HOLES];
    cm_census_cell *cell; /* along the first dimension; one for a scalar */
    size_t ncells;
} cm_census_array;

typedef struct cm_census_foreign {
    char *key;
    const char *why; /* "outside the grid", ... */
} cm_census_foreign;

/* Chunks of a snapshot of a repository that are not in its files of chunks. */
typedef struct cm_census_places {
    bool known;        /* the store is such a snapshot */
    uint64_t ninline;  /* in manifests */
    uint64_t noutside; /* virtual: in files outside the repository */
} cm_census_places;

typedef struct cm_census {
    char *unlisted; /* why there is none: the store cannot be listed; NULL: there is */
    cm_census_array *array;
    size_t narrays;
    cm_census_places places;
    bool whole;                 /* all objects were looked at, so these were counted: */
    uint64_t nforeign;          /* objects that belong to no node */
    cm_census_foreign *foreign; /* the first of them, by key */
    size_t nnamed;
    bool sized;   /* sizes, and the indices of shards, were looked at */
    bool decoded; /* every chunk was decoded */
} cm_census;

void cm_census_release(cm_census *census); /* zeroed memory is fine */
/* Chunks of all arrays with that kind of hole. */
uint64_t cm_census_count_holes(const cm_census *census, cm_census_hole kind);
/*
 * One line about the holes of an input: "t2m: 3 of 16 chunks are absent (1/0/0, 1/0/1, ...), read
 * as fill"; *out is NULL where it has none.  Chunks that were left out are none.
 */
int cm_census_line(const cm_census *census, char **out, cm_error *err);

#endif
