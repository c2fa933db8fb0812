/* Chunk shapes by other people's rules, for comparison. */
#ifndef CM_PLAN_RULES_H
#define CM_PLAN_RULES_H

#include <stdint.h>

#include "model/dtype.h"

/*
 * Russ Rew's rule ("Chunking Data: Choosing Shapes", Unidata 2013, function
 * chunk_shape_3D): equally many chunks for a series and for a map, at most
 * MAX_NBYTES a chunk.  Written there for three dimensions; here K chunks are
 * K^(1/2) along the first dimension and K^(1/(2(rank-1))) along each other, which
 * is the same in three.  SHAPE has no zeros; lengths are at most the dimension's.
 */
int cm_rule_rew(unsigned rank, const uint64_t *shape, uint64_t itemsize, uint64_t max_nbytes,
                uint64_t *chunk, cm_error *err);

/*
 * The choice of zarr-python 3 for chunks="auto" (zarr/core/chunk_grids.py, _guess_chunks, after
 * h5py): halves the dimensions in turn until a chunk is near a target between 128 KiB and 64 MiB
 * that grows with the array.
 */
int cm_rule_zarr_python(unsigned rank, const uint64_t *shape, uint64_t itemsize, uint64_t *chunk,
                        cm_error *err);

#endif
