/*
 * A parcel: what travels to a device instead of a batch, when chunks are decoded there.
 *
 * It holds the compressed streams of all chunks that a batch meets, and tables that
 * say how the batch is made of them.  The device has three pieces of memory: the
 * parcel itself, a scratch, and the batch.
 *
 *     streams    each is decoded from the parcel into the scratch
 *     first      copies from the parcel into the scratch: streams that are stored as they are
 *     tiles      planes of bytes in the scratch become elements at another place of it
 *     last       copies from scratch or parcel into the batch, which they fill wholly
 *
 * in that order.  A *place* is an offset in the scratch where its upper bit is set, in
 * the parcel otherwise; other offsets are in the memory that is named.  The kernels of
 * kernels.ptx read copies and tiles as they stand here; streams stay on the host.
 */
#ifndef CM_GPU_PARCEL_H
#define CM_GPU_PARCEL_H

#include "base/mem.h"

enum {
    CM_PARCEL_ALIGN = 16,    /* where streams and tables begin */
    CM_PARCEL_DIMS = 5,      /* of a copy, besides its runs */
    CM_PARCEL_UNITS = 65536, /* of a copy, at most: a block of threads has its share */
    CM_PARCEL_TILE_NELEM = 8192,
    CM_PARCEL_SCRATCH_ALIGN = 256 /* of what cm_parcel_scratch gives */
};

#define CM_PARCEL_IN_SCRATCH (UINT64_C(1) << 63)

typedef enum cm_parcel_codec {
    CM_PARCEL_ZSTD,
    CM_PARCEL_LZ4,
    CM_PARCEL_DEFLATE,
    CM_PARCEL_NCODECS
} cm_parcel_codec;

/* Streams stand by codec. */
typedef struct cm_parcel_stream {
    uint32_t codec;
    uint32_t array; /* and chunk: for messages */
    uint64_t chunk;
    uint64_t src, src_nbytes; /* of the parcel */
    uint64_t dst, dst_nbytes; /* of the scratch */
} cm_parcel_stream;

/*
 * For all i[k] below count[k]: `run` units from src + sum of i[k] * src_stride[k] to
 * dst + sum of i[k] * dst_stride[k].  Everything is a multiple of `unit` bytes.
 */
typedef struct cm_parcel_copy {
    uint64_t src; /* a place */
    uint64_t dst; /* of the scratch, or of the batch */
    uint64_t src_stride[CM_PARCEL_DIMS], dst_stride[CM_PARCEL_DIMS];
    uint32_t count[CM_PARCEL_DIMS]; /* 1 where a dimension is not needed */
    uint32_t run;
    uint32_t unit; /* 1, 2, 4, 8 or 16 bytes */
    uint32_t reserved;
} cm_parcel_copy;

/* Byte j of element e is at src + j * plane + e, and goes to dst + e * typesize + j. */
typedef struct cm_parcel_tile {
    uint64_t src; /* a place */
    uint64_t dst; /* of the scratch */
    uint64_t plane;
    uint32_t typesize, nelem;
} cm_parcel_tile;

_Static_assert(sizeof(cm_parcel_copy) == 128 && sizeof(cm_parcel_tile) == 32,
               "kernels.ptx counts on these sizes");

/* At the beginning of a parcel. */
typedef struct cm_parcel {
    uint64_t nbytes;         /* that travel: header, streams, copies and tiles */
    uint64_t batch_nbytes;   /* what becomes of it */
    uint64_t scratch_nbytes; /* what that takes */
    uint64_t decoded_nbytes; /* of all streams */
    uint64_t first_at, tiles_at, last_at, streams_at; /* tables; streams_at is nbytes */
    uint32_t nfirst, ntiles, nlast;
    uint32_t nstreams[CM_PARCEL_NCODECS];
} cm_parcel;

/* ---- writing one ---------------------------------------------------------------------------- */

/* One worker's; zeroed before its first use.  Its lists grow to what a batch needs, and stay. */
typedef struct cm_parcel_writer {
    uint8_t *data; /* the parcel, CAPACITY bytes at a multiple of 16 */
    size_t capacity, used;
    uint64_t scratch_nbytes, decoded_nbytes;
    cm_parcel_stream *stream;
    cm_parcel_copy *first, *last;
    cm_parcel_tile *tile;
    size_t nstreams, nfirst, nlast, ntiles;
    size_t room[4]; /* of the lists */
} cm_parcel_writer;

void cm_parcel_writer_release(cm_parcel_writer *w);
void cm_parcel_begin(cm_parcel_writer *w, void *data, size_t capacity);

/* Copies NBYTES into the parcel; *PLACE is where. */
int cm_parcel_put(cm_parcel_writer *w, const void *src, size_t nbytes, uint64_t *place,
                  cm_error *err);
/* So many bytes of the scratch; their place. */
uint64_t cm_parcel_scratch(cm_parcel_writer *w, size_t nbytes);

/* STREAM's src and dst are offsets in parcel and scratch. */
int cm_parcel_add_stream(cm_parcel_writer *w, const cm_parcel_stream *stream, cm_error *err);
/* NBYTES of the parcel at SRC to the scratch at DST, before elements are unshuffled. */
int cm_parcel_add_bytes(cm_parcel_writer *w, uint64_t src, uint64_t dst, size_t nbytes,
                        cm_error *err);
/* The same NBYTES of the parcel at SRC, N times, side by side. */
int cm_parcel_add_repeated(cm_parcel_writer *w, uint64_t src, uint64_t dst, size_t nbytes,
                           uint64_t n, cm_error *err);
/*
 * The block of NBYTES at the place SRC, planes of elements of TYPESIZE, to the scratch at DST;
 * what follows the last whole element is copied, and lies in the scratch.
 */
int cm_parcel_add_shuffled(cm_parcel_writer *w, uint64_t src, uint64_t dst, uint32_t typesize,
                           size_t nbytes, cm_error *err);

/*
 * A box, outermost dimension first; strides are bytes, RUN_NBYTES lie side by side on both
 * sides.
 */
typedef struct cm_parcel_box {
    uint64_t src; /* a place */
    uint64_t dst; /* of the batch */
    unsigned rank;
    const uint64_t *shape, *src_stride, *dst_stride;
    size_t run_nbytes;
} cm_parcel_box;

int cm_parcel_add_box(cm_parcel_writer *w, const cm_parcel_box *box, cm_error *err);

/*
 * Writes header and tables.  *NBYTES are those of the slot that are used, the streams' table
 * among them.
 */
int cm_parcel_end(cm_parcel_writer *w, uint64_t batch_nbytes, size_t *nbytes, cm_error *err);

/*
 * What a parcel takes at most besides the bytes of its streams: NBOXES boxes of at most
 * CM_PARCEL_DIMS dimensions and BOX_NBYTES, NSTREAMS streams, NBLOCKS shuffled blocks, all of
 * them NBYTES decoded.
 * UINT64_MAX: too many to count.
 */
uint64_t cm_parcel_tables_bound(uint64_t nboxes, uint64_t box_nbytes, uint64_t nstreams,
                                uint64_t nblocks, uint64_t nbytes);

/* CM_EINTERNAL unless header and tables of the NBYTES at DATA lie in them. */
int cm_parcel_check(const void *data, size_t nbytes, cm_error *err);

#endif
