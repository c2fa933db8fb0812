/*
 * Boxes and chunk grids over N-dimensional arrays.  Pure arithmetic.
 */
#ifndef CM_MODEL_BOX_H
#define CM_MODEL_BOX_H

#include "model/cuts.h"
#include "model/dtype.h"

/* The elements start[j] <= i_j < start[j] + shape[j].  Rank 0 holds one element. */
typedef struct cm_box {
    unsigned rank;
    uint64_t start[CM_MAX_RANK];
    uint64_t shape[CM_MAX_RANK];
} cm_box;

uint64_t cm_box_nelem(const cm_box *box); /* the caller guarantees that it fits 64 bits */
/* The part that A and B share; false, and *out undefined, when they share nothing. */
bool cm_box_intersect(const cm_box *a, const cm_box *b, cm_box *out);
bool cm_box_equal(const cm_box *a, const cm_box *b);

/*
 * An array cut into chunks of one shape, the last ones clipped at the edge, or along some
 * dimensions into chunks of several lengths.  Chunks are numbered in C order.
 */
typedef struct cm_grid {
    unsigned rank;
    uint64_t shape[CM_MAX_RANK]; /* of the array, elements */
    uint64_t chunk[CM_MAX_RANK]; /* of a chunk, elements, >= 1 */
    uint64_t count[CM_MAX_RANK]; /* chunks along each dimension; 0 where shape is 0 */
    uint64_t nchunks;
    uint64_t chunk_nelem;
    /*
     * Dimensions with chunks of several lengths: there `chunk` is the longest, and `count` the
     * number of pieces; NULL: as above.  Borrowed.
     */
    const cm_cuts *cuts[CM_MAX_RANK];
} cm_grid;

/*
 * CM_EFORMAT when a chunk length is zero, the rank exceeds CM_MAX_RANK, or a product overflows
 * 64 bits.
 */
int cm_grid_init(cm_grid *grid, unsigned rank, const uint64_t *shape, const uint64_t *chunk,
                 cm_error *err);
/*
 * The same with CUTS (borrowed): where an entry is not NULL, CHUNK need not be set along that
 * dimension, which SHAPE says as CUTS do.
 */
int cm_grid_init_cut(cm_grid *grid, unsigned rank, const uint64_t *shape, const uint64_t *chunk,
                     const cm_cuts *const *cuts, cm_error *err);
bool cm_grid_is_cut(const cm_grid *grid);
/* True when both have the same chunks. */
bool cm_grid_same_chunks(const cm_grid *a, const cm_grid *b);
void cm_grid_coord(const cm_grid *grid, uint64_t number, uint64_t *coord);
uint64_t cm_grid_number(const cm_grid *grid, const uint64_t *coord);
/* The part of the array that chunk COORD covers, clipped to the array. */
void cm_grid_box(const cm_grid *grid, const uint64_t *coord, cm_box *out);
/* The same of chunk NUMBER. */
void cm_grid_chunk_box(const cm_grid *grid, uint64_t number, cm_box *out);
/* The lengths of chunk COORD as it is stored, not clipped to the array. */
void cm_grid_chunk_shape(const cm_grid *grid, const uint64_t *coord, uint64_t *shape);
/*
 * GRID as it is around chunk COORD: with the lengths of that in `chunk`.  GRID itself where all
 * have one length, else *OWN.
 */
const cm_grid *cm_grid_around(const cm_grid *grid, const uint64_t *coord, cm_grid *own);
uint64_t cm_grid_chunk_nelem(const cm_grid *grid, const uint64_t *coord);
/* The chunk along dimension J that POSITION lies in, and where chunk K begins. */
uint64_t cm_grid_find(const cm_grid *grid, unsigned j, uint64_t position);
uint64_t cm_grid_first(const cm_grid *grid, unsigned j, uint64_t k);
/* True when COORD's chunk reaches past the array's edge. */
bool cm_grid_is_edge(const cm_grid *grid, const uint64_t *coord);
/* First chunk and number of chunks in each dimension that meet BOX (none of whose lengths is 0). */
void cm_grid_cover(const cm_grid *grid, const cm_box *box, uint64_t *first, uint64_t *count);
/* Elements of the COUNT chunks from FIRST on along each dimension, as they are stored. */
uint64_t cm_grid_stored_nelem(const cm_grid *grid, const uint64_t *first, const uint64_t *count);
/*
 * True when a chunk is a run of elements of a box of SHAPE: length 1 before the first dimension
 * that it does not fill.
 */
bool cm_grid_chunks_are_runs(const cm_grid *grid, const uint64_t *shape);

/* "3/0/1" ("" for rank 0 becomes "0"); for messages. */
char *cm_coord_text(unsigned rank, const uint64_t *coord, char *buf, size_t size);
/* Begins the message of ERR: "WHAT NAME: chunk 3/0/1"; NAME is "" for the root of a store. */
void cm_grid_explain(const cm_grid *grid, uint64_t number, const char *what, const char *name,
                     cm_error *err);
/* "16x128x128"; "scalar" for rank 0. */
char *cm_shape_text(unsigned rank, const uint64_t *shape, char *buf, size_t size);

#endif
