/*
 * Chunks and shards chosen without knowing how the array will be read.
 *
 * The rule, in plain words.  An array that fits the target stays whole.  A
 * larger one is cut into about K = bytes / target pieces.  Two opposite reads
 * must both stay bearable: a map (one index of the first dimension, all of the
 * others) and a series (all of the first dimension, one index of each other).
 * They meet equally many chunks when the first dimension is cut into sqrt(K)
 * pieces and the others share the other sqrt(K) evenly, which is Russ Rew's
 * balance ("Chunking Data: Choosing Shapes", Unidata 2013) for any rank.
 * Dimensions of length 1 do not take part; one that is too short to be cut so
 * often is cut into single elements and the others take its share.
 *
 * Around that ideal the lengths are moved to integers that cost least, counted
 * in squared octaves away from the ideal plus penalties: for bytes that the
 * edge chunks waste, for an edge chunk that is a sliver, for chunks smaller
 * than the target, and for lengths that neither divide nor are a multiple of
 * the source's chunk length, which would make a source chunk straddle target
 * chunks.
 *
 * Pure arithmetic, deterministic, any thread.
 */
#ifndef CM_PLAN_AUTOCHUNK_H
#define CM_PLAN_AUTOCHUNK_H

#include <stdint.h>

#include "model/dtype.h"

/*
 * CHUNK gets RANK lengths, each at least 1 (also where SHAPE is 0) and, where
 * free, at most the dimension's.  FIXED (RANK entries, NULL: all 0) gives
 * lengths that are not to be chosen; 0 is free.  SOURCE_CHUNK (NULL: contiguous)
 * has the chunks of the source.  ITEMSIZE is in bytes; for variable-length
 * elements the caller passes an estimate.
 *
 * An array (its fixed dimensions at their fixed lengths) of at most
 * TARGET_NBYTES stays whole.  Otherwise a chunk holds between half of
 * TARGET_NBYTES and TARGET_NBYTES, unless already the fixed lengths, or one
 * element, exceed it: then every free length is 1.
 *
 * CM_EINVAL: ITEMSIZE or TARGET_NBYTES is 0, the rank exceeds CM_MAX_RANK, or
 * the fixed lengths overflow 64 bits.
 */
int cm_autochunk(unsigned rank, const uint64_t *shape, uint32_t itemsize, uint64_t target_nbytes,
                 const uint64_t *fixed, const uint64_t *source_chunk, uint64_t *chunk,
                 cm_error *err);

/*
 * SHARD gets RANK lengths, each a multiple of CHUNK's that covers the array by
 * less than one chunk too much.  The grid of chunks is cut by the same rule, so
 * a shard holds between half of TARGET_NBYTES and TARGET_NBYTES where the array
 * is that large, and one chunk where a chunk exceeds TARGET_NBYTES.
 *
 * FIXED as above, in elements: CM_EINVAL when it is no multiple of CHUNK.
 */
int cm_autoshard(unsigned rank, const uint64_t *shape, uint32_t itemsize, const uint64_t *chunk,
                 uint64_t target_nbytes, const uint64_t *fixed, uint64_t *shard, cm_error *err);
/* How many shards cover an array where cm_autoshard chooses all their lengths. */
int cm_autoshard_count(unsigned rank, const uint64_t *shape, uint32_t itemsize,
                       const uint64_t *chunk, uint64_t target_nbytes, uint64_t *nshards,
                       cm_error *err);

#endif
