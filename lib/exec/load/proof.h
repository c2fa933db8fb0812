/*
 * Chunks that were decoded once by the host, so that a decoder which promises nothing
 * for damaged streams is given none: of each chunk the checksum of its stored bytes is
 * kept, and bytes with that checksum are those that were decoded whole.
 *
 * On the way it is measured how fast this machine decodes them, all threads at once.
 */
#ifndef CM_EXEC_LOAD_PROOF_H
#define CM_EXEC_LOAD_PROOF_H

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

enum {
    CM_PROOF_NKINDS = CM_SPLIT_DEFLATE + 1
};

typedef struct cm_proof_array {
    cm_proof_chunk *chunk; /* by number */
    size_t nchunks;
    /* Of one chunk, at most; all 0 when none is stored. */
    size_t stored_nbytes;
    size_t nstreams[CM_PROOF_NKINDS];      /* by cm_split_kind */
    size_t stream_nbytes[CM_PROOF_NKINDS]; /* decoded */
    size_t all_streams;
    size_t nblocks; /* that are unshuffled */
} cm_proof_array;

typedef struct cm_proof {
    cm_proof_array *array;
    size_t narrays;
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
void cm_proof_free(cm_proof *proof); /* NULL accepted */

/* NULL: that chunk was not wanted. */
const cm_proof_chunk *cm_proof_find(const cm_proof_array *array, uint64_t number);

#endif
