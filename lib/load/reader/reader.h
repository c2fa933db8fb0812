/*
 * Reading boxes of an array as a training loader does: through a cache of decoded
 * chunks where there is one, with every chunk, request and byte counted, and
 * slowed down where a slower storage is to be imitated.
 *
 * The counts (cm_load_counts in load/workers/pool.h):
 *
 *   chunks          that the box meets, the arithmetic of chunkcalc, missing ones and
 *                   cache hits among them
 *   requests, stored_nbytes
 *                   what storage was asked for and gave, shard indices among them.
 *                   Of a sliceable array: the runs of bytes that lie side by side in
 *                   the array's C order, and the bytes of the box.  Of an array that
 *                   only its library reads, in chunks: a request for each chunk met,
 *                   and 0 bytes, which means not known
 *   decoded, decoded_nbytes
 *                   chunks whose elements were made of stored bytes, and their whole
 *                   size.  Of a sliceable array: none, and the bytes of the box
 *   logical_nbytes, missing_nbytes
 *                   in the array's own type, before any conversion
 *
 * Stages share out the whole time of a call: storage is also the delay of an
 * imitated storage, waiting for a thread that reads the same chunk, and all that
 * a library does in one call; assemble is also looking into the cache.
 */
#ifndef CM_LOAD_READER_READER_H
#define CM_LOAD_READER_READER_H

#include "format/array.h"
#include "load/reader/chunk_cache.h"
#include "load/reader/delay.h"
#include "load/reader/lookahead.h"
#include "load/workers/pool.h"
#include "model/feed.h"

typedef struct cm_reader_options {
    cm_chunk_cache *cache; /* or NULL */
    cm_delay *delay;       /* or NULL */
    bool library;          /* boxes by read_box, also of chunked arrays */
    const char *store;     /* put in front of errors, borrowed; or NULL */
    /*
     * Stored bytes that are fetched at once; 0: 256 KiB, what a second-level cache
     * holds.  More where storage is asked for many chunks at a time (io_uring).
     */
    size_t group_nbytes;
} cm_reader_options;

/*
 * One thread's.  Allocates when it meets an array or a feed for the first time, and not
 * afterwards.
 */
typedef struct cm_reader cm_reader;

int cm_reader_create(const cm_reader_options *options, cm_reader **out, cm_error *err);
void cm_reader_free(cm_reader *reader); /* NULL accepted */

/*
 * Bytes that a reader holds for A at most, the codec's contexts and FEED (or NULL)
 * included; group_nbytes are added to them.  Not included: the buffer of a box that
 * a library reads and a feed converts.
 */
size_t cm_reader_memory(const cm_array *a, const cm_feed *feed);

/* Of these, the stored bytes that one fetch brings. */
size_t cm_reader_stored_nbytes(const cm_array *a, size_t group_nbytes);

/* The next call's box is number BOX of LIST; NULL: of none, as before the first. */
void cm_reader_lookahead(cm_reader *reader, cm_lookahead_list *list, uint64_t box);

/* Whether what the next calls write is read so much later that no cache keeps it: no at first. */
void cm_reader_far(cm_reader *reader, bool far);

/*
 * BOX of A into DST, C order, through FEED (NULL: as it is), and adds to COUNTS.
 * A chunk that is missing gives fill values and is counted as missing.  A chunk
 * that cannot be read or decoded is counted as failed, the others are read all
 * the same, and the call fails with the first one's sentence: store, array,
 * chunk, reason.  Then what DST holds of that chunk has no meaning.
 */
int cm_reader_box(cm_reader *reader, cm_array *a, const cm_box *box, const cm_feed *feed, void *dst,
                  cm_load_counts *counts, cm_error *err);

/*
 * Counts the requests of cm_reader_box without a cache: adds its chunks, requests and stored bytes
 * (those that are known without asking storage) to COUNTS, and reads no data.
 */
int cm_reader_count(cm_reader *reader, cm_array *a, const cm_box *box, cm_load_counts *counts,
                    cm_error *err);

/* Chunks of A that a reader with this group_nbytes fetches at once, at most. */
size_t cm_reader_group(const cm_array *a, size_t group_nbytes);

/*
 * Reads and decodes chunk NUMBER of A, past the cache, into DST: the elements inside the array, in
 * C order, through FEED.
 */
int cm_reader_chunk(cm_reader *reader, cm_array *a, uint64_t number, const cm_feed *feed, void *dst,
                    cm_load_counts *counts, cm_error *err);

#endif
