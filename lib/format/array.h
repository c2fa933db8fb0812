/*
 * An opened array, whatever holds it: NetCDF, HDF5 or Zarr.
 *
 * A chunked array has a grid and a codec chain and gives stored bytes by chunk
 * number (fetch); the caller decodes.  A sliceable one (contiguous, classic, or
 * readable only through its own library) gives any box (read_box).  One of
 * variable-length elements gives boxes of strings (read_strings).  An array may
 * offer both fetch and read_box; `chunked` says which is meant for bulk work.
 *
 * All three calls may come from many threads at once; what needs a lock takes
 * it inside.
 */
#ifndef CM_FORMAT_ARRAY_H
#define CM_FORMAT_ARRAY_H

#include "base/json.h"
#include "codec/codec.h"
#include "model/box.h"
#include "model/strings.h"

typedef struct cm_array cm_array;

typedef struct cm_fetch {
    bool present;   /* false: nothing is stored, every element is the fill value */
    uint32_t skip;  /* filter mask: bytes->bytes codecs that were not applied */
    uint64_t io_ns; /* time spent waiting for storage */
    /*
     * requests to storage: one for an object or a part of one, present or not; one more for a
     * shard's index that was not cached
     */
    uint32_t nrequests;
    uint64_t nbytes;       /* bytes read from storage, indices included */
    const cm_chain *chain; /* decodes these bytes; NULL: the array's chain */
} cm_fetch;

/*
 * Several chunks read at once: chunks that lie side by side in one object come
 * with one request.  One MANY may go from array to array; it belongs to one thread.
 */
typedef struct cm_fetch_item {
    uint64_t number; /* set by the caller */
    bool present;
    uint32_t skip;
    const uint8_t *data; /* the stored bytes, not aligned, valid until the next fetch into the
                            same cm_fetch_many; NULL where nothing is stored */
    size_t nbytes;
    const cm_chain *chain; /* as in cm_fetch */
} cm_fetch_item;

typedef struct cm_fetch_many {
    cm_fetch_item *item; /* the caller's, any order */
    size_t n;
    /*
     * Plan and count the requests, but read no chunk: items get no data.  nbytes is 0 where only
     * storage knows it (chunks that are objects); a shard's index that is not cached is read.
     */
    bool count_only;
    uint64_t io_ns;
    uint64_t nrequests;
    uint64_t nbytes; /* bytes read from storage, gaps between merged chunks included */
    cm_buf buf;      /* zero-initialised once, reused from call to call */
    void *state;     /* owned by the kind of array; reused too, and freed by release_state */
    void (*release_state)(void *state);
} cm_fetch_many;

typedef struct cm_array_ops {
    /* Stored bytes of chunk NUMBER into BUF (resized; its capacity is reused). */
    int (*fetch)(cm_array *a, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err);
    /*
     * Stored bytes of all items.  NULL: cm_array_fetch_many fetches one by one.  An error names the
     * chunk; then no item is valid.
     */
    int (*fetch_many)(cm_array *a, cm_fetch_many *many, cm_error *err);
    /*
     * fetch_many in two steps, for cm_array_fetch_begin; NULL, all three: not supported.  Once
     * _begin returned true, MANY's state belongs to this kind of array.
     */
    bool (*fetch_begin)(cm_array *a, cm_fetch_many *many);
    void (*fetch_unwant)(cm_array *a, cm_fetch_many *many);
    int (*fetch_end)(cm_array *a, cm_fetch_many *many, cm_error *err);
    /* True when the chunk is known, without I/O on data, to hold only fill values. */
    bool (*is_absent)(cm_array *a, uint64_t number);
    /*
     * Arrays with cuts that are not those of stored chunks (else NULL): the ORIGIN and SHAPE of
     * chunk COORD once it is decoded.  ORIGIN may lie before the array's first element (and wraps
     * around).
     */
    void (*place)(cm_array *a, const uint64_t *coord, uint64_t *origin, uint64_t *shape);
    /* BOX as little-endian elements in C order. */
    int (*read_box)(cm_array *a, const cm_box *box, void *dst, cm_error *err);
    /* BOX of a variable-length array in C order; OUT is reset. */
    int (*read_strings)(cm_array *a, const cm_box *box, cm_strings *out, cm_error *err);
    /* Arrays of many files: the file that has chunk NUMBER, or NULL. */
    const char *(*file_of)(cm_array *a, uint64_t number);
    void (*free)(cm_array *a); /* NULL: its owner frees it */
} cm_array_ops;

struct cm_array {
    const cm_array_ops *ops;
    char *name;        /* full path in its file or store, without a leading '/': "group/tas" */
    const char *place; /* that file or store, for messages; outlives the array; or NULL */
    cm_dtype dtype;
    unsigned rank;
    uint64_t shape[CM_MAX_RANK];
    char *dim_name[CM_MAX_RANK]; /* NULL: no name */
    uint8_t *fill;   /* dtype.nbytes bytes: value of unwritten elements; NULL: undefined */
    char *fill_text; /* the same for variable-length types */
    cm_json *attrs;  /* user attributes, an object; never NULL */

    bool chunked; /* fetch and chain are valid */
    /*
     * Stored chunks; its cuts are borrowed from the kind of array.  Sliceable arrays: one chunk,
     * the array, or the chunks that its library reads at once.
     */
    cm_grid grid;
    cm_chain *chain;
    size_t max_stored_nbytes; /* upper bound for a stored chunk; 0 when not known */
    /* Arrays with several chains: the maximum over all of them; else 0. */
    size_t max_decoded_nbytes, max_decode_memory;
    size_t box_nbytes; /* memory that read_box of a chunk takes besides its destination */
    bool serial;       /* read_box runs under a lock: more threads do not help */
};

/* The name in messages: "/" for the root of a store. */
static inline const char *cm_array_label(const cm_array *a)
{
    return a->name[0] != '\0' ? a->name : "/";
}
/* The chain of a chunk that was fetched with OWN; NULL: the array's. */
static inline const cm_chain *cm_array_chain(const cm_array *a, const cm_chain *own)
{
    return own != NULL ? own : a->chain;
}
/* The file or store that chunk NUMBER is in, for messages; or NULL. */
const char *cm_array_place(cm_array *a, uint64_t number);
/* True when chunks are of several lengths along some dimension. */
bool cm_array_is_cut(const cm_array *a);
/* Where chunk COORD lies once it is decoded: ORIGIN of its first element, and SHAPE. */
void cm_array_chunk_place(cm_array *a, const uint64_t *coord, uint64_t *origin, uint64_t *shape);
/* Of any chunk of a chunked array, at most. */
size_t cm_array_decoded_nbytes(const cm_array *a);
size_t cm_array_decode_memory(const cm_array *a);

/*
 * Convenience for small reads, verification and tests: any BOX, by fetch or read_box.  Decodes with
 * CTX; allocates.
 */
int cm_array_read(cm_array *a, cm_codec_ctx *ctx, const cm_box *box, void *dst, cm_error *err);
int cm_array_read_strings(cm_array *a, const cm_box *box, cm_strings *out, cm_error *err);
/* fetch_many, or one fetch after the other.  Any thread, each with its own MANY. */
int cm_array_fetch_many(cm_array *a, cm_fetch_many *many, cm_error *err);
/*
 * cm_array_fetch_many in two steps, so that a network works meanwhile.  False: A cannot, or not for
 * these chunks now (the place of one is not known); nothing was begun.  MANY and its items stay
 * where they are until _end, which waits and must always be called.  _unwant, before it, cancels
 * requests that were not sent yet; _end may then fail.
 */
bool cm_array_fetch_begin(cm_array *a, cm_fetch_many *many);
void cm_array_fetch_unwant(cm_array *a, cm_fetch_many *many);
int cm_array_fetch_end(cm_array *a, cm_fetch_many *many, cm_error *err);
void cm_fetch_many_release(cm_fetch_many *many); /* NULL accepted; the items are the caller's */
/* For a kind of array that finds another kind's state in MANY. */
void cm_fetch_many_drop_state(cm_fetch_many *many);
void cm_array_free(cm_array *a); /* NULL accepted */

#endif
