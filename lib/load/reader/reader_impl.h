/* Internals shared by the files of the reader. */
#ifndef CM_LOAD_READER_READER_IMPL_H
#define CM_LOAD_READER_READER_IMPL_H

#include "load/reader/feed_copy.h"
#include "load/reader/reader.h"

enum {
    /*
     * Stored bytes fetched at once, behind the first chunk: a second-level cache holds them.  With
     * 16 MiB, raw chunks of 128 KiB took a quarter longer than a loop over one buffer; with this, a
     * twentieth at most.
     */
    CM_READ_GROUP_NBYTES = 256 << 10,
    CM_READ_HOSTILE_NBYTES = 16 << 20 /* more than that, for a group of hostile chunks */
};

struct cm_reader {
    cm_reader_options options;
    cm_codec_ctx *ctx;
    cm_fetch_many many;
    cm_fetch_item item[CM_READ_GROUP_CHUNKS];
    cm_cached_chunk *entry[CM_READ_GROUP_CHUNKS]; /* of item, where the cache gave one; else NULL */
    uint64_t number[CM_READ_GROUP_CHUNKS];        /* chunks of the group */
    uint64_t busy[CM_READ_GROUP_CHUNKS];          /* of those, what another thread is reading */
    cm_buf decoded;
    cm_feed_scratch scratch;
    bool far;                 /* cm_reader_far */
    uint64_t last_ns;         /* where the last stage ended */
    cm_lookahead_list *ahead; /* NULL: nobody asked before */
    uint64_t box;             /* its number there */
};

/* One call: a box, or one chunk. */
typedef struct cm_read_call {
    cm_reader *reader;
    cm_array *array;
    const cm_feed *feed; /* NULL: elements pass unchanged */
    size_t itemsize, out_itemsize;
    cm_box box; /* that DST holds in C order */
    void *dst;
    cm_chunk_cache *cache; /* or NULL */
    bool count_only;       /* nothing is read */
    bool in_place;         /* a chunk that lies whole in the box can be decoded where it goes */
    cm_load_counts *counts;
    int status;
    cm_error *err;
} cm_read_call;

/* ---- reader_call.c ---- */

/* Ends stage WHICH: counts the time since the last stage ended as its own. */
void cm_read_stage(cm_read_call *c, int which);
/* Where the next error goes: only the first one's sentence is kept. */
cm_error *cm_read_next_error(const cm_read_call *c);
/*
 * Makes RC the call's status, with the store in front of its sentence, unless an error is
 * there already.
 */
void cm_read_keep_error(cm_read_call *c, int rc);

/* ---- reader_group.c ---- */

/* Brings chunks number[0 .. n - 1] of the reader into the box; keeps the first error. */
void cm_read_group(cm_read_call *c, size_t n);

/* ---- reader_scatter.c ---- */

/* Copies decoded chunk NUMBER, at DATA, to its places in the box. */
void cm_read_scatter(cm_read_call *c, uint64_t number, const uint8_t *data);
/* Puts fill values there instead, and counts the chunk as missing. */
void cm_read_fill(cm_read_call *c, uint64_t number);
/* Where chunk NUMBER, decoded, is exactly a run of bytes of the box; NULL: nowhere. */
void *cm_read_place(const cm_read_call *c, uint64_t number);

/* ---- reader_slice.c ---- */

/* Reads the box through read_box, and converts it as a whole. */
int cm_read_through_library(cm_read_call *c);

#endif
