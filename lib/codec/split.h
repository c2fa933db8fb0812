/*
 * Takes a stored chunk apart into its compressed streams, for a device that decodes them.
 *
 * A chunk decodes to NBYTES; each stream gives a part of them.  Where elements are shuffled, each
 * run of BLOCK_NBYTES (the last may be shorter) is then unshuffled by itself.  The result are the
 * chunk's elements in the stored byte order (cm_chain_split_swap).
 *
 * Splitting checks the checksums around the compressor and every stored length.  It does not
 * look at the bytes within a stream.
 */
#ifndef CM_CODEC_SPLIT_H
#define CM_CODEC_SPLIT_H

#include "codec/codec.h"

typedef enum cm_split_kind {
    CM_SPLIT_STORED, /* as they are */
    CM_SPLIT_ZSTD,   /* one frame, RFC 8878 */
    CM_SPLIT_LZ4,    /* one raw block */
    CM_SPLIT_DEFLATE /* RFC 1951, without header and checksum */
} cm_split_kind;

enum {
    CM_SPLIT_NKINDS = CM_SPLIT_DEFLATE + 1
};

typedef struct cm_split_stream {
    cm_split_kind kind;
    size_t src, src_nbytes; /* of the stored bytes */
    size_t dst, dst_nbytes; /* of what the chunk becomes */
} cm_split_stream;

/* Zeroed before its first use, reused from chunk to chunk. */
typedef struct cm_chunk_streams {
    cm_split_stream *stream;
    size_t nstreams, capacity;
    uint32_t typesize; /* to be unshuffled, of elements of so many bytes; 0: not shuffled */
    size_t block_nbytes;
    size_t nbytes;
} cm_chunk_streams;

void cm_chunk_streams_release(cm_chunk_streams *split);

/*
 * CM_OK where chunks of CHAIN can be taken apart, else CM_EUNSUPPORTED with the
 * codec that stands against it: there are at most a shuffle, zstd, gzip, zlib, lz4 or
 * blosc of these, and checksums after them.
 */
int cm_chain_can_split(const cm_chain *chain, cm_error *err);

/*
 * Elements come out in their stored byte order: each run of so many bytes is to be reversed; 0:
 * none is.
 */
uint32_t cm_chain_split_swap(const cm_chain *chain);

/* Of one chunk, at most. */
typedef struct cm_split_most {
    size_t stored_nbytes;
    size_t nstreams[CM_SPLIT_NKINDS];
    size_t stream_nbytes[CM_SPLIT_NKINDS]; /* decoded */
    size_t all_streams;
    size_t nblocks; /* that are unshuffled */
} cm_split_most;

/*
 * What follows from a chain that can be split, before any chunk is seen.  Chunks whose stored bytes
 * are longer are not taken: no encoder of these codecs makes them.
 */
void cm_chain_split_most(const cm_chain *chain, cm_split_most *out);

/* A chunk has no more streams than that; one that has is CM_EUNSUPPORTED. */
size_t cm_chain_split_bound(const cm_chain *chain);

/*
 * Of a chain that can be split; SKIP as in cm_chain_decode.  CM_EFORMAT where lengths or
 * checksums are wrong.
 */
int cm_chain_split(const cm_chain *chain, const void *src, size_t src_nbytes, uint32_t skip,
                   cm_chunk_streams *out, cm_error *err);

#endif
