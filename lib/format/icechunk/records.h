/*
 * Where a run has put its chunks: a record of 40 bytes for each chunk, by its number, in one file;
 * the bytes of those that will stand in a manifest in another; and the ids of all files that the
 * run made, in a third, written before the file is.  In files with names they survive the run, and
 * the next one goes on with them.
 *
 * A record has a checksum of its own, and one of the chunk: what a crash has left half written is
 * no record.
 */
#ifndef CM_FORMAT_ICECHUNK_RECORDS_H
#define CM_FORMAT_ICECHUNK_RECORDS_H

#include <stdatomic.h>

#include "format/icechunk/places.h"

typedef enum cm_ice_state {
    CM_ICE_UNKNOWN, /* not made yet */
    CM_ICE_EMPTY,   /* holds only the fill value, and is left out */
    CM_ICE_STORED,  /* in a file of the repository */
    CM_ICE_SMALL    /* will stand in the manifest */
} cm_ice_state;

typedef struct cm_ice_record {
    cm_ice_state state;
    bool summed; /* SUM is that of the bytes; a shard, which is written in pieces, has none */
    uint32_t sum;
    uint64_t offset, nbytes;
    uint8_t id[CM_ICE_ID];
} cm_ice_record;

enum {
    CM_ICE_RECORD_NBYTES = 40
};

/* A record as bytes, with a checksum; a damaged one is CM_ICE_UNKNOWN. */
void cm_ice_record_pack(const cm_ice_record *r, uint64_t number, uint8_t *out);
void cm_ice_record_unpack(const uint8_t *in, uint64_t number, cm_ice_record *out);

/* Descriptors, which stay the caller's. */
typedef struct cm_ice_records {
    int chunks, small, files;
    atomic_uint_fast64_t nsmall; /* bytes in SMALL */
    atomic_uint_fast64_t nfiles; /* entries in FILES */
} cm_ice_records;

/* Of a run that goes on; sizes of what is there. */
int cm_ice_records_open(cm_ice_records *r, int chunks, int small, int files, cm_error *err);
/* All functions: any thread. */
int cm_ice_records_set(cm_ice_records *r, uint64_t number, const cm_ice_record *record,
                       cm_error *err);
int cm_ice_records_get(const cm_ice_records *r, uint64_t first, size_t n, cm_ice_record *out,
                       cm_error *err);
/* Keeps the bytes of a small chunk, and its record. */
int cm_ice_records_keep(cm_ice_records *r, uint64_t number, const void *data, size_t nbytes,
                        cm_error *err);
/* The bytes of one. */
int cm_ice_records_small(const cm_ice_records *r, const cm_ice_record *record, void *out,
                         cm_error *err);

/* KIND: the first letter of the file's folder. */
int cm_ice_records_name(cm_ice_records *r, char kind, const uint8_t id[CM_ICE_ID], cm_error *err);
/*
 * Entry I of them; false: *KIND is 0 where none was written, and CM_ICE_UNREADABLE where one may
 * have been.
 */
enum {
    CM_ICE_UNREADABLE = '?'
};
bool cm_ice_records_named(const cm_ice_records *r, uint64_t i, char *kind, uint8_t id[CM_ICE_ID]);

#endif
