/*
 * The copy of one object in a file of a cache: its key, a checksum for each block, and the bytes.
 * The file is not trusted: its sizes follow from the object it should be a copy of.
 */
#ifndef CM_STORE_CACHE_COPY_H
#define CM_STORE_CACHE_COPY_H

#include "store/cache_dir.h"
#include "store/impl.h"

enum {
    /* Smallest read while a block is unchecked: checking one costs 10 microseconds. */
    CM_CACHE_BLOCK = 64 << 10
};

/* Identifies the original of a copy. */
typedef struct cm_cache_key {
    const char *store; /* its name */
    const char *key;
    cm_identity identity;
} cm_cache_key;

void cm_cache_name(const cm_cache_key *k, char *name); /* of CM_CACHE_NAME_SIZE */

/* In front of the bytes: a header, the names, the checksums. */
uint64_t cm_cache_head_nbytes(const cm_cache_key *k);

/* Fills HEAD, of cm_cache_head_nbytes, except for the checksums at its end ... */
void cm_cache_head_fill(const cm_cache_key *k, uint8_t *head);
/* ... sets those of the NBYTES at OFFSET, a multiple of the block ... */
void cm_cache_head_sum(const cm_cache_key *k, uint8_t *head, uint64_t offset, const void *data,
                       size_t nbytes);
/* ... and closes it with a checksum of its own. */
void cm_cache_head_seal(const cm_cache_key *k, uint8_t *head);

/* True when HEAD is an undamaged head for K. */
bool cm_cache_head_check(const cm_cache_key *k, const uint8_t *head);
/* True when the NBYTES at OFFSET, a multiple of the block, match their checksums. */
bool cm_cache_head_holds(const cm_cache_key *k, const uint8_t *head, uint64_t offset,
                         const void *data, size_t nbytes);

/* Opens the copy of K in DIR and marks it as used; -1: no copy of that size. */
int cm_cache_open_copy(const cm_cache_dir *dir, const cm_cache_key *k);

#endif
