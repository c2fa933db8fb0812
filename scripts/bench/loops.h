/* The roofline's bare loops over bytes.  N counts elements, but in frames bytes. */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

/* HDF5's shuffle, and back. */
void loop_shuffle(uint8_t *out, const uint8_t *in, size_t n, size_t itemsize);
void loop_unshuffle(uint8_t *out, const uint8_t *in, size_t n, size_t itemsize);
/* Reverses the bytes of each element. */
void loop_swap(uint8_t *data, size_t n, size_t itemsize);

/*
 * A frame of c-blosc: zstd at level 2, byte shuffle, one block.  The bytes that
 * blosc_compress_ctx makes, without the context that it allocates at each call.
 * SCRATCH has room for N bytes, OUT for loop_frame_bound(N).  Returns its length.
 */
size_t loop_frame(ZSTD_CCtx *zstd, uint8_t *out, const uint8_t *data, size_t n, size_t itemsize,
                  uint8_t *scratch);
size_t loop_frame_bound(size_t n);

/*
 * Decodes a frame of c-blosc that holds N bytes in blocks of zstd.  SCRATCH has
 * room for N bytes.  False: it is something else.
 */
bool loop_unframe(ZSTD_DCtx *zstd, uint8_t *out, size_t n, const uint8_t *frame, uint8_t *scratch);

/* The checksum behind a shard's index. */
uint32_t loop_crc32c(const void *data, size_t n);

#endif
