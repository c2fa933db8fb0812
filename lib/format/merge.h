/*
 * Merges reads of stored chunks that lie side by side in one object into one request.  Pure
 * arithmetic over offsets that were checked.
 */
#ifndef CM_FORMAT_MERGE_H
#define CM_FORMAT_MERGE_H

#include "format/array.h"

typedef struct cm_piece {
    uint64_t object; /* numbers the file or shard */
    uint64_t offset; /* in it; offset + nbytes does not overflow */
    uint64_t nbytes;
    size_t item;    /* of the cm_fetch_many */
    uint64_t local; /* for the caller's use */
    size_t at;      /* in the buffer of the cm_fetch_many */
} cm_piece;

/* One piece for each of MANY's items, allocated once and kept in MANY; NULL: no memory. */
cm_piece *cm_pieces_room(cm_fetch_many *many, cm_error *err);

/* By object, then by offset; allocates nothing. */
void cm_pieces_sort(cm_piece *piece, size_t n);

/*
 * How many of the N >= 1 sorted pieces, from the first, one request reads; it ends at offset *END.
 */
size_t cm_pieces_merge(const cm_piece *piece, size_t n, uint64_t *end);

/*
 * Assigns each sorted piece its place in one buffer, request after request; returns the buffer's
 * size, SIZE_MAX: too long.
 */
size_t cm_pieces_place(cm_piece *piece, size_t n);

/* Adds to MANY the requests for the sorted pieces, and their bytes. */
void cm_pieces_count(const cm_piece *piece, size_t n, cm_fetch_many *many);

/* Points the items of the pieces to their places in MANY's buffer. */
void cm_pieces_point(const cm_piece *piece, size_t n, cm_fetch_many *many);

/*
 * Called after fetching several chunks failed with RC: fetches each alone, so that the error names
 * the chunk.  If all succeed alone, returns RC with the error unchanged.
 */
int cm_fetch_blame(cm_array *a, cm_fetch_many *many, int rc, cm_error *err);

#endif
