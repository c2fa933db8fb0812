/*
 * A target: where the chunks of one array go.  The engine moves chunks into it and does not
 * know what becomes of them.
 */
#ifndef CM_FORMAT_TARGET_H
#define CM_FORMAT_TARGET_H

#include "codec/codec.h"
#include "model/box.h"

typedef struct cm_put {
    uint64_t number;
    const void *data; /* encoded */
    size_t nbytes;
} cm_put;

/* A chunk that was handed over: it is being put or, where it was left out, removed. */
typedef struct cm_sent {
    uint64_t number;
    size_t nbytes;
    bool omitted;
    void *state; /* the target's */
} cm_sent;

struct cm_target_ops;

typedef struct cm_target {
    const struct cm_target_ops *ops;
    cm_grid grid;    /* the chunks that are put and skipped: inner ones where there are shards */
    cm_grid outer;   /* of shards; the same as GRID where there are none */
    cm_chain *chain; /* that encodes a chunk */
    bool sends;      /* cm_target_begin may be called */
    size_t shard_nbytes; /* that one shard in assembly holds in memory; 0 without shards */
    size_t sent_nbytes;  /* of them, what the store keeps of it until it is sent */
    uint64_t first_chunk[CM_MAX_RANK]; /* of GRID in the array, of which it may be a part */
} cm_target;

/* The chunk at COORD of the grid, as the array counts its chunks: what messages say. */
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
    /* NULL, all, where no target sends.  PUT->data NULL: left out. */
    int (*begin)(cm_target *t, const cm_put *put, cm_sent *out, cm_error *err);
    bool (*is_done)(const cm_sent *sent);
    int (*end)(cm_target *t, const cm_sent *sent, cm_error *err);
} cm_target_ops;

/*
 * Chunks that are encoded.  Each chunk is put or skipped exactly once, from any thread.  Those
 * that follow each other here and in memory go into a shard with one request.
 */
static inline int cm_target_put(cm_target *t, const cm_put *put, size_t n, cm_error *err)
{
    return t->ops->put(t, put, n, err);
}

/* Chunk NUMBER holds only the fill value and is left out; an object that is there goes. */
static inline int cm_target_skip(cm_target *t, uint64_t number, cm_error *err)
{
    return t->ops->omit(t, number, err);
}

/*
 * One chunk put, or skipped where PUT->data is NULL, in two steps: what is put stays until the end
 * was called, which waits.  A failure to begin needs no end.
 */
static inline int cm_target_begin(cm_target *t, const cm_put *put, cm_sent *out, cm_error *err)
{
    return t->ops->begin(t, put, out, err);
}

/* Whether the end need not wait. */
static inline bool cm_target_is_done(const cm_target *t, const cm_sent *sent)
{
    return t->ops->is_done(sent);
}

static inline int cm_target_end(cm_target *t, const cm_sent *sent, cm_error *err)
{
    return t->ops->end(t, sent, err);
}

/* True once chunk NUMBER was put or skipped, now or by a run before, or is another's to make. */
static inline bool cm_target_is_delivered(const cm_target *t, uint64_t number)
{
    return t->ops->is_delivered(t, number);
}

#endif
