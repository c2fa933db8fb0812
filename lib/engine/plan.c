/*
 * Tiny chunks are taken in batches, because a lock, a request to storage and a
 * look at the clock cost more than what is done with one of them.
 */
#include "engine/plan.h"

#include <string.h>

#include "base/number.h"
#include "codec/rewrap.h"
#include "engine/buffers.h"

enum {
    /* As long as a millisecond of decoding, so that all workers end together. */
    BATCH_NBYTES = 256 << 10,
    /* Stored bytes of a batch, with what lies between chunks that are read with one request. */
    BATCH_STORED = 512 << 10,
    BATCH_GAP = 4096,
    MAX_BATCH = 128
};

static size_t batch_of(size_t limit, size_t nbytes)
{
    size_t n = limit / cm_max_u64(nbytes, 1);
    return n < 1 ? 1 : n > MAX_BATCH ? MAX_BATCH : n;
}

/* A whole target chunk in the source's type. */
static size_t whole_nbytes(const cm_transfer *t)
{
    return t->target->grid.chunk_nelem * t->source->dtype.nbytes;
}

size_t cm_transfer_slot_nbytes(const cm_transfer *t)
{
    return cm_buffers_nbytes(whole_nbytes(t));
}

/* Sliceable: the source can be cut anywhere, because nothing is decoded in larger units. */
bool cm_transfer_is_sliceable(const cm_transfer *t)
{
    return !t->source->chunked && t->source->grid.nchunks <= 1;
}

static size_t stored_bound(const cm_array *source)
{
    size_t known = source->max_stored_nbytes;
    return known != 0 ? known : cm_chain_encoded_bound(source->chain);
}

size_t cm_transfer_source_batch(const cm_transfer *t)
{
    if (!t->source->chunked)
        return 1;
    size_t stored = stored_bound(t->source);
    if (stored > BATCH_STORED)
        return 1;
    size_t by_stored = batch_of(BATCH_STORED, stored + BATCH_GAP);
    size_t by_decoded = batch_of(BATCH_NBYTES, cm_array_decoded_nbytes(t->source));
    return by_stored < by_decoded ? by_stored : by_decoded;
}

/* The encoded bytes of a target chunk, at most. */
static size_t encoded_bound(const cm_transfer *t)
{
    const cm_chain *chain = t->target->chain;
    size_t nbytes = t->target->grid.chunk_nelem * t->target_type.nbytes;
    size_t bound = cm_chain_is_raw(chain) ? nbytes : cm_chain_encoded_bound(chain);
    if (t->pass == CM_PASS_GZIP)
        bound = cm_max_u64(bound, stored_bound(t->source) + CM_GZIP_OVERHEAD);
    return bound;
}

size_t cm_transfer_target_batch(const cm_transfer *t)
{
    size_t bound = encoded_bound(t);
    return bound > BATCH_NBYTES ? 1 : batch_of(BATCH_NBYTES, cm_max_u64(bound, whole_nbytes(t)));
}

bool cm_transfer_packs(const cm_transfer *t)
{
    return t->target->shard_nbytes > 0 && cm_transfer_target_batch(t) > 1;
}

/* Which buffers of a worker go to the outbox. */
static void raise_sent(const cm_transfer *t, cm_worker_need *need)
{
    const bool raw = cm_chain_is_raw(t->target->chain), direct = cm_transfer_is_direct(t);
    if (!t->target->sends)
        return;
    need->sends.encoded |= !raw || t->pass == CM_PASS_GZIP;
    need->sends.stored |= t->pass != CM_PASS_NOTHING;
    need->sends.converted |= raw && t->conversion != NULL;
    need->sends.decoded |= raw && (direct || t->clips);
    if (raw && !direct)
        need->sent_slot = cm_max_u64(need->sent_slot, cm_transfer_slot_nbytes(t));
}

void cm_transfer_worker_need(const cm_transfer *t, size_t piece_nbytes, cm_worker_need *need)
{
    const cm_array *source = t->source;
    const cm_chain *chain = t->target->chain;
    size_t decoded = piece_nbytes;
    if (source->chunked)
        decoded = cm_array_decoded_nbytes(source);
    else if (!cm_transfer_is_sliceable(t))
        decoded = source->grid.chunk_nelem * source->dtype.nbytes;
    if (!source->chunked)
        need->reading = cm_max_u64(need->reading, source->box_nbytes);
    /* Clipped chunks are padded in the buffer for decoded source chunks. */
    if (t->clips)
        decoded = cm_max_u64(decoded, whole_nbytes(t));
    need->decoded = cm_max_u64(need->decoded, decoded);
    if (source->chunked) {
        size_t batch = cm_transfer_source_batch(t), stored = stored_bound(source);
        need->stored = cm_max_u64(need->stored, stored);
        if (batch > 1)
            need->batch = cm_max_u64(need->batch, batch * (stored + BATCH_GAP));
        need->decoding = cm_max_u64(need->decoding, cm_array_decode_memory(source));
    }
    if (!cm_chain_is_raw(chain) || t->pass == CM_PASS_GZIP) {
        need->encoded = cm_max_u64(need->encoded, encoded_bound(t));
        need->encoding = cm_max_u64(need->encoding, cm_chain_encode_memory(chain));
        if (t->must_return)
            need->decoding = cm_max_u64(need->decoding, cm_chain_decode_memory(chain));
    }
    if (cm_transfer_packs(t))
        need->packed = cm_max_u64(need->packed, cm_transfer_target_batch(t) * encoded_bound(t));
    size_t chunk_nelem = t->target->grid.chunk_nelem;
    if (t->conversion != NULL || t->must_return)
        need->converted = cm_max_u64(need->converted, chunk_nelem * t->target_type.nbytes);
    raise_sent(t, need);
}

size_t cm_worker_sent_nbytes(const cm_worker_need *need)
{
    size_t most = need->sends.encoded ? need->encoded : 0;
    if (need->sends.stored)
        most = cm_max_u64(most, need->stored);
    if (need->sends.converted)
        most = cm_max_u64(most, need->converted);
    if (need->sends.decoded)
        most = cm_max_u64(most, need->decoded);
    return most;
}

size_t cm_worker_need_nbytes(const cm_worker_need *need)
{
    return need->stored + need->batch + need->decoded + need->encoded + need->packed +
           need->converted + need->spilled + need->decoding + need->encoding + need->reading;
}

/* True also where there are too many to ask for each: then each piece asks for its own. */
static bool has_absent_chunks(const cm_transfer *t)
{
    enum {
        MAX_ASKED = 1 << 24
    };
    if (t->present == NULL && (!t->source->chunked || t->source->ops->is_absent == NULL))
        return false;
    if (t->source->grid.nchunks > MAX_ASKED)
        return true;
    for (uint64_t i = 0; i < t->source->grid.nchunks; i++)
        if (cm_transfer_is_absent(t, i))
            return true;
    return false;
}

void cm_transfer_adopt(cm_transfer *t, const cm_sweep *sweep)
{
    t->sweep = *sweep;
    t->slot_nbytes = cm_transfer_slot_nbytes(t);
    if (!t->absence_known)
        t->may_be_absent = has_absent_chunks(t);
    t->absence_known = true;
}

uint64_t cm_transfer_open_shards(const cm_transfer *t, const cm_sweep *sweep, unsigned nthreads)
{
    const cm_grid *outer = &t->target->outer;
    if (!cm_transfer_is_direct(t))
        return cm_sweep_slots_for(sweep, outer->chunk);
    return outer->nchunks < nthreads ? outer->nchunks : nthreads; /* each worker has one */
}
