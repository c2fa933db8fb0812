/*
 * Blosc frames without c-blosc, where that is faster: its context functions
 * allocate three blocks and a compressor's context for every call.
 */
#ifndef CM_CODEC_BLOSC_FRAME_H
#define CM_CODEC_BLOSC_FRAME_H

#include "codec/impl.h"

/* The header of a frame, which is this many bytes. */
enum {
    CM_BLOSC_HEADER_NBYTES = 16
};

typedef struct cm_blosc_header {
    uint8_t version, flags, typesize;
    uint32_t nbytes, blocksize, cbytes;
} cm_blosc_header;

cm_blosc_header cm_blosc_read_header(const uint8_t *frame);

/* True for frames that cm_blosc_decode_frame takes: zstd, LZ4 or zlib, and no bit shuffle. */
bool cm_blosc_takes(const cm_blosc_header *h);

/* SRC is a frame of h->cbytes; DST has room for h->nbytes. */
int cm_blosc_decode_frame(const cm_codec_step *step, cm_codec_ctx *ctx, const cm_blosc_header *h,
                          cm_span src, cm_room *dst, cm_error *err);

/* c-blosc's level of zstd for its own level. */
int cm_blosc_zstd_level(int level);

/*
 * SRC as one block of CNAME, "zstd" (byte for byte what c-blosc makes of it) or
 * "lz4"; data that would not shrink are stored as they are.  DST has room for 16
 * bytes more than SRC, whose length is a multiple of TYPESIZE and from 128 bytes to
 * BLOSC_MAX_BLOCKSIZE.
 */
int cm_blosc_encode_block(const cm_codec_step *step, cm_codec_ctx *ctx, const char *cname,
                          uint32_t typesize, cm_span src, cm_room *dst, cm_error *err);

#endif
