/* How large parcels can be. */
#include <string.h>

#include "load/batches/pack_impl.h"

/* Chunks that one sample's PART meets at most. */
static bool chunks_met(const cm_array *a, const cm_sample_part *part, const cm_sample_space *space,
                       uint64_t *out)
{
    *out = 1;
    for (unsigned j = 0; j < a->rank; j++) {
        const uint64_t n = part->axis[j] >= 0 ? space->sample[part->axis[j]] : a->shape[j];
        const uint64_t all = (a->shape[j] + a->grid.chunk[j] - 1) / a->grid.chunk[j];
        uint64_t met = n == 0 ? 0 : (n - 1) / a->grid.chunk[j] + 2;
        met = met < all ? met : all;
        if (!cm_mul_u64(*out, met, out))
            return false;
    }
    return true;
}

static bool add_product(size_t *to, uint64_t a, uint64_t b)
{
    uint64_t n;
    return cm_mul_u64(a, b, &n) && cm_add_size(*to, n, to);
}

bool cm_pack_tally_add(cm_pack_tally *t, const cm_load_arrays *in, const cm_proof *proof, size_t i,
                       uint64_t n)
{
    static const cm_split_kind kinds[CM_PARCEL_NCODECS] = {[CM_PARCEL_ZSTD] = CM_SPLIT_ZSTD,
                                                           [CM_PARCEL_LZ4] = CM_SPLIT_LZ4,
                                                           [CM_PARCEL_DEFLATE] = CM_SPLIT_DEFLATE};
    const cm_split_most *most = &proof->array[i].most;
    const size_t decoded = cm_chain_decoded_nbytes(in->array[i]->chain);
    const size_t scratch = decoded + CM_PARCEL_SCRATCH_ALIGN;
    bool fits = add_product(&t->stored_nbytes, n, most->stored_nbytes) &&
                add_product(&t->all_streams, n, most->all_streams) &&
                add_product(&t->nblocks, n, most->nblocks) &&
                add_product(&t->decoded_nbytes, n, decoded) &&
                add_product(&t->scratch_nbytes, n, scratch * (most->nblocks > 0 ? 2 : 1));
    for (int c = 0; c < CM_PARCEL_NCODECS && fits; c++)
        fits = add_product(&t->nstreams[c], n, most->nstreams[kinds[c]]);
    return fits;
}

void cm_pack_tally_most(cm_pack_tally *to, const cm_pack_tally *from)
{
#define KEEP(member) to->member = from->member > to->member ? from->member : to->member
    KEEP(stored_nbytes);
    KEEP(all_streams);
    KEEP(nblocks);
    KEEP(decoded_nbytes);
    KEEP(scratch_nbytes);
    KEEP(nuses);
    for (int c = 0; c < CM_PARCEL_NCODECS; c++)
        KEEP(nstreams[c]);
#undef KEEP
}

static void limit_streams(const cm_load_arrays *in, const cm_proof *proof, cm_decoder_limits *out)
{
    static const cm_split_kind kinds[CM_PARCEL_NCODECS] = {[CM_PARCEL_ZSTD] = CM_SPLIT_ZSTD,
                                                           [CM_PARCEL_LZ4] = CM_SPLIT_LZ4,
                                                           [CM_PARCEL_DEFLATE] = CM_SPLIT_DEFLATE};
    out->as_they_come = proof->as_met;
    for (size_t i = 0; i < in->narrays; i++)
        for (int c = 0; c < CM_PARCEL_NCODECS; c++) {
            const size_t n = proof->array[i].most.stream_nbytes[kinds[c]];
            out->stream_nbytes[c] = n > out->stream_nbytes[c] ? n : out->stream_nbytes[c];
        }
}

int cm_pack_tally_bounds(const cm_pack_tally *t, const cm_load_arrays *in, const cm_proof *proof,
                         uint64_t nbatch, cm_pack_bounds *out, cm_error *err)
{
    size_t box_nbytes = 0, nboxes = t->nuses;
    *out = (cm_pack_bounds){.slot_nbytes = t->stored_nbytes, .nuses = t->nuses};
    for (size_t p = 0; p < in->nparts; p++)
        box_nbytes = in->part_nbytes[p] > box_nbytes ? in->part_nbytes[p] : box_nbytes;
    /* A clipped sample leaves zeros. */
    bool fits =
        add_product(&nboxes, in->nparts, nbatch) &&
        add_product(&out->slot_nbytes, in->narrays + 1, CM_PACK_VALUE_NBYTES + CM_PARCEL_ALIGN);
    const uint64_t tables = fits ? cm_parcel_tables_bound(nboxes, box_nbytes, t->all_streams,
                                                          t->nblocks, t->decoded_nbytes)
                                 : UINT64_MAX;
    if (tables == UINT64_MAX ||
        !cm_add_size(out->slot_nbytes, tables + 2 * CM_PARCEL_ALIGN, &out->slot_nbytes) ||
        out->nuses > INT32_MAX / 2)
        return cm_fail(err, CM_EBUDGET, "a batch meets too many chunks to be packed");
    out->limits.parcel_nbytes = out->slot_nbytes;
    out->limits.scratch_nbytes = t->scratch_nbytes;
    memcpy(out->limits.nstreams, t->nstreams, sizeof t->nstreams);
    limit_streams(in, proof, &out->limits);
    return CM_OK;
}

int cm_pack_find_bounds(const cm_load_arrays *in, const cm_proof *proof, uint64_t nbatch,
                        cm_pack_bounds *out, cm_error *err)
{
    cm_pack_tally t = {0};
    bool fits = true;
    for (size_t i = 0; i < in->narrays && fits; i++) {
        size_t all = 0;
        for (size_t p = 0; p < in->nparts && fits; p++) {
            uint64_t met = 0;
            if (in->part[p].array != i)
                continue;
            fits = chunks_met(in->array[i], &in->part[p], in->space, &met) &&
                   add_product(&all, met, nbatch) && add_product(&t.nuses, met, nbatch);
        }
        const uint64_t n = all < proof->array[i].nchunks ? all : proof->array[i].nchunks;
        fits = fits && cm_pack_tally_add(&t, in, proof, i, n);
    }
    if (!fits)
        return cm_fail(err, CM_EBUDGET, "a batch meets too many chunks to be packed");
    return cm_pack_tally_bounds(&t, in, proof, nbatch, out, err);
}
