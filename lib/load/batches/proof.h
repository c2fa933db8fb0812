/*
 * Protects a decoder that gives no guarantee for damaged streams: the host decodes each chunk once
 * and keeps the checksum of its stored bytes; only bytes with that checksum reach the device.
 *
 * Either all chunks are decoded in advance, with all threads, which also measures how fast this
 * machine decodes; or each chunk is decoded when it is first met.
 */
#ifndef CM_LOAD_BATCHES_PROOF_H
#define CM_LOAD_BATCHES_PROOF_H

#include <stdatomic.h>

#include "codec/split.h"
#include "format/array.h"

typedef enum cm_proof_state {
    CM_PROOF_MISSING, /* not stored */
    CM_PROOF_WHOLE,
    CM_PROOF_DAMAGED /* it could not be read or decoded */
} cm_proof_state;

typedef struct cm_proof_chunk {
    uint64_t number;
    uint32_t crc32c; /* of the stored bytes */
    uint32_t state;
} cm_proof_chunk;

typedef struct cm_proof_array {
    cm_proof_chunk *chunk; /* by number; NULL where chunks are proven when they are met */
    _Atomic uint64_t *met; /* then of each chunk of the grid; 0: it was not met */
    size_t nchunks;        /* that may be met */
    cm_split_most most;    /* of a chunk, all 0 when none is stored */
} cm_proof_array;

typedef struct cm_proof {
    cm_proof_array *array;
    size_t narrays;
    bool as_met;
    /* What follows is of proofs that are made before. */
    uint64_t nwhole, nmissing, ndamaged;
    uint64_t stored_nbytes, decoded_nbytes; /* of whole ones */
    uint64_t decode_ns;                     /* decoding them, of all threads together */
    unsigned nthreads;
} cm_proof;

typedef struct cm_proof_options {
    const char *store; /* for messages, or NULL */
    cm_array *const *array;
    size_t narrays;
    const uint64_t *const *wanted; /* of each array a bit for each chunk of its grid; NULL: none */
    unsigned nthreads;
    bool (*canceled)(void *context); /* NULL: never */
    void *context;
} cm_proof_options;

/* CM_OK where chunks of A can be decoded elsewhere, else CM_EUNSUPPORTED: its name, and why not. */
int cm_proof_check(const cm_array *a, cm_error *err);

/* CM_EUNSUPPORTED names a chunk that is whole and cannot be taken apart; CM_ECANCELED. */
int cm_proof_make(const cm_proof_options *options, cm_proof **out, cm_error *err);
/*
 * Nothing is known yet: cm_proof_keep tells of each chunk that was decoded.  ARRAYS that are NULL
 * are not met.  CM_EUNSUPPORTED as above.
 */
int cm_proof_begin(cm_array *const *array, size_t narrays, cm_proof **out, cm_error *err);
void cm_proof_free(cm_proof *proof); /* NULL accepted */
/* What a proof that is made as chunks are met takes of NCHUNKS chunks. */
uint64_t cm_proof_nbytes(uint64_t nchunks);

/* False: nothing is known of that chunk.  Any thread, as for the next. */
bool cm_proof_find(const cm_proof_array *array, uint64_t number, cm_proof_chunk *out);
/* Stored bytes of that checksum were decoded whole, of a proof that is made as chunks are met. */
void cm_proof_keep(cm_proof_array *array, uint64_t number, uint32_t crc32c);

#endif
