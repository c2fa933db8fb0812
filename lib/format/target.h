/* A target: receives the chunks of one array.  The engine does not know where they end up. */
#ifndef CM_FORMAT_TARGET_H
#define CM_FORMAT_TARGET_H

#include "codec/codec.h"
#include "model/box.h"

typedef struct cm_put {
    uint64_t number;
    const void *data; /* encoded */
    size_t nbytes;
} cm_put;

/* A chunk on its way: being put or, where it is left out, being removed. */
typedef struct cm_sent {
    uint64_t number;
    size_t nbytes;
    bool omitted;
    void *state; /* the target's */
} cm_sent;

struct cm_target_ops;

typedef struct cm_target {
    const struct cm_target_ops *ops;
    /* of the chunks that are put and skipped: inner chunks where there are shards */
    cm_grid grid;
    cm_grid outer;       /* of shards; equal to GRID without shards */
    cm_chain *chain;     /* encodes a chunk: the largest, where they differ in shape */
    bool sends;          /* cm_target_begin may be called */
    size_t shard_nbytes; /* that one shard in assembly holds in memory; 0 without shards */
    size_t sent_nbytes;  /* part of SHARD_NBYTES that the store keeps until it is sent */
    /* in chunks of GRID: the target's origin in the array, of which it may be a part */
    uint64_t first_chunk[CM_MAX_RANK];
} cm_target;

/* Coordinates of chunk COORD in the whole array, for messages. */
static inline char *cm_target_chunk_text(const cm_target *t, const uint64_t *coord, char *buf,
                                         size_t size)
{
    uint64_t there[CM_MAX_RANK];
    for (unsigned j = 0; j < t->grid.rank; j++)
        there[j] = t->first_chunk[j] + coord[j];
    return cm_coord_text(t->grid.rank, there, buf, size);
}

typedef struct cm_target_ops {
    int (*put)(cm_target *t, const cm_put *put, size_t n, cm_error *err);
    int (*omit)(cm_target *t, uint64_t number, cm_error *err);
    bool (*is_delivered)(const cm_target *t, uint64_t number);
    /* Asynchronous puts; NULL, all three: not supported.  PUT->data NULL: leave the chunk out. */
    int (*begin)(cm_target *t, const cm_put *put, cm_sent *out, cm_error *err);
    bool (*is_done)(const cm_sent *sent);
    int (*end)(cm_target *t, const cm_sent *sent, cm_error *err);
    /* The chain of chunk NUMBER, where they differ in shape; NULL: not supported. */
    int (*chain_of)(cm_target *t, uint64_t number, const cm_chain **out, cm_error *err);
} cm_target_ops;

/* The chain that encodes chunk NUMBER. */
static inline int cm_target_chain(cm_target *t, uint64_t number, const cm_chain **out,
                                  cm_error *err)
{
    *out = t->chain;
    return cm_grid_is_cut(&t->grid) ? t->ops->chain_of(t, number, out, err) : CM_OK;
}

/*
 * Puts encoded chunks.  Each chunk is put or skipped exactly once, from any thread.  Consecutive
 * chunks that are also adjacent in memory go into a shard with one request.
 */
static inline int cm_target_put(cm_target *t, const cm_put *put, size_t n, cm_error *err)
{
    return t->ops->put(t, put, n, err);
}

/* Leaves out chunk NUMBER, which holds only the fill value; an existing object is removed. */
static inline int cm_target_skip(cm_target *t, uint64_t number, cm_error *err)
{
    return t->ops->omit(t, number, err);
}

/*
 * Puts one chunk, or skips it where PUT->data is NULL, without waiting: its data must stay until
 * cm_target_end, which waits.  No end after a failed begin.
 */
static inline int cm_target_begin(cm_target *t, const cm_put *put, cm_sent *out, cm_error *err)
{
    return t->ops->begin(t, put, out, err);
}

/* True when cm_target_end need not wait. */
static inline bool cm_target_is_done(const cm_target *t, const cm_sent *sent)
{
    return t->ops->is_done(sent);
}

static inline int cm_target_end(cm_target *t, const cm_sent *sent, cm_error *err)
{
    return t->ops->end(t, sent, err);
}

/*
 * True once chunk NUMBER was put or skipped, by this run or an earlier one, or belongs to another
 * part.
 */
static inline bool cm_target_is_delivered(const cm_target *t, uint64_t number)
{
    return t->ops->is_delivered(t, number);
}

#endif
