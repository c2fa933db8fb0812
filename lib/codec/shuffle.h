/* Byte shuffle: the first bytes of all elements, then the second ones, and so on. */
#ifndef CM_CODEC_SHUFFLE_H
#define CM_CODEC_SHUFFLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cpu.h"

/*
 * NBYTES from SRC to DST, which do not overlap.  Bytes after the last whole
 * element are copied as they are.  SIMD is the best instruction set that may be
 * used; the result is the same with any.  FAR: nobody reads DST soon, so it may go past the
 * caches.  Pure, any thread.
 */
void cm_shuffle(cm_simd simd, size_t elementsize, void *dst, const void *src, size_t nbytes);
void cm_unshuffle(cm_simd simd, size_t elementsize, void *dst, const void *src, size_t nbytes,
                  bool far);

#endif
