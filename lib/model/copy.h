/*
 * Strided copies between N-dimensional arrays in memory: scatter and gather.
 */
#ifndef CM_MODEL_COPY_H
#define CM_MODEL_COPY_H

#include "model/box.h"

/* Byte strides of a C-order array of SHAPE. */
void cm_strides_c(unsigned rank, const uint64_t *shape, size_t itemsize, int64_t *stride);

/*
 * Copies SHAPE elements of ITEMSIZE bytes from SRC to DST, each with its own
 * byte strides (which may be of any sign).  The two do not overlap.
 * Dimensions that lie together in both are merged first, so that contiguous
 * runs go through memcpy.  Any thread.
 */
void cm_copy_nd(unsigned rank, const uint64_t *shape, size_t itemsize, void *dst,
                const int64_t *dst_stride, const void *src, const int64_t *src_stride);

/* Sets SHAPE elements at DST to the ITEMSIZE bytes at VALUE; NULL: to zero bytes. */
void cm_fill_nd(unsigned rank, const uint64_t *shape, size_t itemsize, void *dst,
                const int64_t *dst_stride, const void *value);

/* Sets NELEM contiguous elements to VALUE; NULL: to zero bytes. */
void cm_fill(void *dst, uint64_t nelem, size_t itemsize, const void *value);

/*
 * True when all NELEM contiguous elements are VALUE, byte for byte.  Stops at the first that
 * is not.
 */
bool cm_all_equal(const void *data, uint64_t nelem, size_t itemsize, const void *value);

/*
 * Reverses the bytes of NUNITS units of UNIT (1, 2, 4, 8) bytes; DST may be SRC.  SIMD where
 * the CPU has it.
 */
void cm_swap_bytes(void *dst, const void *src, uint64_t nunits, uint32_t unit);

#endif
