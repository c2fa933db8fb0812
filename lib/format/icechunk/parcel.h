/*
 * A parcel: records of some chunks, with the bytes of small ones, in one object.  A process that
 * has written a part of the chunks leaves it for the one that commits all of them.
 *
 *     8 bytes   what it is
 *     items     number of the chunk (8 bytes), its record (40), and the bytes of a small chunk
 *     the end   UINT64_MAX, the number of items, and a digest of their records (16)
 */
#ifndef CM_FORMAT_ICECHUNK_PARCEL_H
#define CM_FORMAT_ICECHUNK_PARCEL_H

#include "format/icechunk/records.h"
#include "store/store.h"

/* Numbers of chunks: FIRST to END - 1. */
typedef struct cm_ice_span {
    uint64_t first, end;
} cm_ice_span;

/* Puts what RECORDS know of the N spans, which ascend, into the object KEY of TO. */
int cm_ice_parcel_write(cm_store *to, const char *key, const cm_ice_records *records,
                        const cm_ice_span *span, size_t n, cm_error *err);
/*
 * Calls VISIT with each item of the object KEY in FROM; SMALL has the bytes of a small chunk.
 * CM_EFORMAT where it is not as it was written, or tells of a chunk that is in none of the N spans,
 * which ascend.
 */
typedef int cm_ice_parcel_visit(void *context, uint64_t number, const cm_ice_record *record,
                                const uint8_t *small, cm_error *err);
int cm_ice_parcel_read(cm_store *from, const char *key, const cm_ice_span *span, size_t n,
                       cm_ice_parcel_visit *visit, void *context, cm_error *err);

#endif
