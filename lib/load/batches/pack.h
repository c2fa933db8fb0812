/*
 * Batches packed into parcels (gpu/parcel.h) for a device that decodes them: the chunks
 * that a batch meets are fetched, each once, held against their proof, taken apart into
 * streams, and the boxes of the samples become copies for the device.
 *
 * Only chunks that the host has decoded (proof.h) are packed, before or as they are met.
 * Elements travel as they are: there is no feed.
 */
#ifndef CM_LOAD_BATCHES_PACK_H
#define CM_LOAD_BATCHES_PACK_H

#include "gpu/decode.h"
#include "load/batches/load_source.h"
#include "load/batches/proof.h"

/* What parcels of batches of NBATCH samples take at most. */
typedef struct cm_pack_bounds {
    size_t slot_nbytes; /* the parcel and what stays here of it */
    uint64_t nuses;     /* of chunks by parts of samples */
    cm_decoder_limits limits;
} cm_pack_bounds;

/* What one parcel has, at most. */
typedef struct cm_pack_tally {
    size_t stored_nbytes, decoded_nbytes, scratch_nbytes;
    size_t nstreams[CM_PARCEL_NCODECS], all_streams, nblocks;
    size_t nuses;
} cm_pack_tally;

/* N chunks of array I more; false: too many to count. */
bool cm_pack_tally_add(cm_pack_tally *tally, const cm_load_arrays *in, const cm_proof *proof,
                       size_t i, uint64_t n);
/* Of each member the larger one, into TO. */
void cm_pack_tally_most(cm_pack_tally *to, const cm_pack_tally *from);
/*
 * Of batches of NBATCH samples that have TALLY at most.  CM_EBUDGET: too much to count.  Of IN only
 * arrays and parts are looked at.
 */
int cm_pack_tally_bounds(const cm_pack_tally *tally, const cm_load_arrays *in,
                         const cm_proof *proof, uint64_t nbatch, cm_pack_bounds *out,
                         cm_error *err);
/* Of batches whose samples may lie anywhere. */
int cm_pack_find_bounds(const cm_load_arrays *in, const cm_proof *proof, uint64_t nbatch,
                        cm_pack_bounds *out, cm_error *err);

typedef struct cm_packer cm_packer;

/* One thread's.  IN and PROOF are borrowed. */
int cm_packer_create(const cm_load_arrays *in, cm_proof *proof, cm_packer **out, cm_error *err);
void cm_packer_free(cm_packer *packer); /* NULL accepted */

/*
 * A task of kind CM_LOAD_BATCH into the SLOT_NBYTES at SLOT, a multiple of 16, which are the
 * bounds' or more; fills in counts and nbytes.  A chunk that is damaged, or not what was
 * proven, fails the
 * batch with a sentence: store, array, chunk, reason.
 */
int cm_packer_run(cm_packer *packer, const cm_load_task *task, uint8_t *slot, size_t slot_nbytes,
                  cm_load_result *result, cm_error *err);

#endif
