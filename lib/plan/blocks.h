/*
 * Blocks of sample positions, for a loader that decodes each chunk for many samples.
 *
 * The positions where samples start are cut, along each dimension, where chunks begin, also where
 * the space begins within a chunk: a
 * block is a box of whole cells of that grid, and its samples need a box of chunks of each
 * array, with a halo where samples reach into the next chunks.  The halo is decoded again by
 * the neighbouring blocks: larger blocks decode less, smaller ones mix better and take less
 * memory.  Numbers of blocks, of a block's samples and of its chunks are arithmetic; there
 * is no list.
 *
 * The decoded chunks of one block lie in a *frame*: strip after strip, each a C-order grid
 * of chunks, and behind them one byte for each chunk, which says that it is missing.
 *
 * Pure arithmetic, any thread.
 */
#ifndef CM_PLAN_BLOCKS_H
#define CM_PLAN_BLOCKS_H

#include "plan/samples.h"

enum {
    CM_BLOCKS_MAX_GROWN = 15,   /* a block is at most 2^15 cells long */
    CM_BLOCKS_MAX_GROWING = 16, /* along the first 16 dimensions, and one along the others */
    CM_BLOCK_NO_STRIP = UINT32_MAX
};

/* The chunks of one array that a block needs, for parts whose lags are close together. */
typedef struct cm_block_strip {
    const cm_grid *grid; /* borrowed */
    uint32_t array;
    uint32_t rank;
    int axis[CM_MAX_RANK];            /* as in cm_sample_part */
    uint64_t least_lag, greatest_lag; /* elements along the dimension with lags */
    size_t chunk_nbytes;              /* of a decoded chunk in the frame, as delivered; aligned */

    /* Set by cm_blocks_grow. */
    uint64_t most[CM_MAX_RANK]; /* chunks along each dimension of the array, in any block */
    uint64_t nchunks;           /* their product */
    uint64_t first;             /* number in the frame of its first chunk */
    size_t offset;              /* and where that lies */
} cm_block_strip;

typedef struct cm_blocks {
    const cm_sample_space *space; /* borrowed */
    cm_block_strip *strip;
    uint32_t nstrips;
    uint32_t *strip_of; /* by part; CM_BLOCK_NO_STRIP: its array has no chunks */
    size_t nparts;
    uint64_t cell[CM_MAX_RANK]; /* elements of the space; a multiple of the step of positions */

    /* Set by cm_blocks_grow. */
    uint8_t grown[CM_MAX_RANK];   /* a block is 2^grown cells long */
    uint64_t length[CM_MAX_RANK]; /* of a block, elements */
    uint64_t count[CM_MAX_RANK];  /* blocks along each dimension */
    uint64_t nblocks;
    uint64_t frame_nchunks;
    size_t frame_nbytes; /* SIZE_MAX: more than there can be */
} cm_blocks;

typedef struct cm_blocks_request {
    const cm_sample_space *space;
    const cm_sample_part *part;
    size_t nparts;
    const cm_grid *const *grid;     /* of each array; NULL: it has no chunks */
    const uint32_t *element_nbytes; /* of each part, as delivered */
} cm_blocks_request;

/* Blocks of one cell.  OUT is to be released whatever is returned. */
int cm_blocks_make(const cm_blocks_request *request, cm_blocks *out, cm_error *err);
void cm_blocks_release(cm_blocks *blocks); /* zeroed memory is fine */

/* Makes the blocks 2^GROWN[j] cells long along dimension j. */
void cm_blocks_grow(cm_blocks *blocks, const uint8_t *grown);

typedef struct cm_blocks_budget {
    uint64_t nbytes;        /* for frames */
    uint64_t window;        /* blocks that are mixed; 0: to be chosen */
    uint64_t nsamples;      /* of an epoch that one rank is given */
    uint64_t batch;         /* samples */
    uint64_t under_way;     /* samples that are prepared at once */
    uint64_t sample_nbytes; /* as delivered */
} cm_blocks_budget;

/* Grows the blocks as long as that decodes clearly less, and enough of them fit the budget. */
void cm_blocks_grow_within(cm_blocks *blocks, const cm_blocks_budget *budget);

typedef struct cm_blocks_fitted {
    uint64_t window;  /* blocks that are mixed */
    uint64_t nframes; /* the window, and blocks begun before it has moved */
    uint64_t need;    /* bytes, of the fewest frames with which it goes on */
} cm_blocks_fitted;

/* CM_EBUDGET, without a sentence: the fewest frames do not fit, or not with the window given. */
int cm_blocks_fit(const cm_blocks *blocks, const cm_blocks_budget *budget, cm_blocks_fitted *out);

/* Elements between neighbouring positions along dimension J. */
uint64_t cm_block_step(const cm_sample_space *space, unsigned j);
/* Positions of block ID along each dimension: the first of them, and how many. */
void cm_block_positions(const cm_blocks *blocks, uint64_t id, uint64_t *first, uint64_t *n);
uint64_t cm_block_nsamples(const cm_blocks *blocks, uint64_t id);

/*
 * The chunks of strip S that the samples of the block around SAMPLE (as cm_sample_at gives it)
 * need: coordinates of the first, and how many along each dimension.
 */
void cm_block_chunks(const cm_blocks *blocks, uint32_t s, const cm_box *sample, uint64_t *first,
                     uint64_t *count);
/* The number in the frame of the chunk at COORD of strip S, whose box begins at FIRST. */
uint64_t cm_block_chunk(const cm_blocks *blocks, uint32_t s, const uint64_t *first,
                        const uint64_t *coord);
/* Chunks of a strip that a part of a sample meets, in C order, with their numbers in the frame. */
typedef struct cm_block_walk {
    const cm_blocks *blocks;
    uint32_t strip;
    uint64_t of_block[CM_MAX_RANK]; /* coordinates of the first chunk of the block */
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], next[CM_MAX_RANK];
    uint64_t left;
    uint64_t coord[CM_MAX_RANK]; /* of the chunk that _next found */
} cm_block_walk;

/* BOX is what the part takes of SAMPLE (cm_sample_part_box). */
void cm_block_walk_begin(cm_block_walk *walk, const cm_blocks *blocks, uint32_t strip,
                         const cm_box *sample, const cm_box *box);
/* The next one's number in the frame; false: there is none. */
bool cm_block_walk_next(cm_block_walk *walk, uint64_t *number);
/* Where chunk NUMBER of strip S lies in the frame, and the byte that says that it is missing. */
size_t cm_block_chunk_offset(const cm_blocks *blocks, uint32_t s, uint64_t number);
size_t cm_block_flag_offset(const cm_blocks *blocks, uint64_t number);

/* Chunks decoded in an epoch of all samples, and how many different ones they are. */
typedef struct cm_blocks_count {
    double decoded, distinct;
} cm_blocks_count;
cm_blocks_count cm_blocks_decodes(const cm_blocks *blocks);

#endif
