/*
 * What travels to a device that decodes: how large it can be, and what the planned loader puts into
 * which load (load/batches/carry.h).
 */
#include <inttypes.h>
#include <string.h>

#include "load/run.h"
#include "plan/meetings.h"

/* As a worker will have them, for the geometry alone. */
static cm_load_arrays arrays_of(const cm_load_run *l)
{
    const cm_load_space *s = &l->shared.space;
    return (cm_load_arrays){.array = l->shared.data.array,
                            .narrays = l->shared.data.narrays,
                            .space = &s->space,
                            .part = s->part,
                            .part_nbytes = s->part_nbytes,
                            .nparts = s->nparts};
}

int cm_load_pack_bounds(cm_load_run *l, cm_error *err)
{
    const cm_load_arrays in = arrays_of(l);
    return cm_pack_find_bounds(&in, l->proof, l->batch, &l->bounds, err);
}

/* ---- the planned loader -------------------------------------------------------------------- */

static int bounds_of(const cm_load_run *l, const cm_pack_tally *most, uint64_t frames_nbytes,
                     cm_pack_bounds *out, cm_error *err)
{
    const cm_load_arrays in = arrays_of(l);
    int rc = cm_pack_tally_bounds(most, &in, l->proof, l->batch, out, err);
    if (rc == CM_OK &&
        !cm_add_size(out->limits.scratch_nbytes, frames_nbytes, &out->limits.scratch_nbytes))
        rc = cm_fail(err, CM_EBUDGET, "chunks that several batches need have too many bytes");
    return rc;
}

/* A quarter more, for epochs that are not looked at. */
static uint64_t with_room(uint64_t n)
{
    return cm_add_sat(n, n / 4);
}

static void make_room(cm_pack_tally *t, uint64_t *frames_nbytes)
{
    t->stored_nbytes = with_room(t->stored_nbytes);
    t->decoded_nbytes = with_room(t->decoded_nbytes);
    t->scratch_nbytes = with_room(t->scratch_nbytes);
    t->all_streams = with_room(t->all_streams);
    t->nblocks = with_room(t->nblocks);
    t->nuses = with_room(t->nuses);
    for (int c = 0; c < CM_PARCEL_NCODECS; c++)
        t->nstreams[c] = with_room(t->nstreams[c]);
    *frames_nbytes = with_room(*frames_nbytes);
}

/* What EPOCH of R from batch FIRST on needs more than was seen before. */
static int look_at(cm_load_run *l, const cm_load_rank *r, uint64_t epoch, uint64_t first,
                   cm_pack_tally *most, uint64_t *frames_nbytes, cm_error *err)
{
    const cm_load_arrays in = arrays_of(l);
    cm_epoch_plan plan;
    cm_carry carry = {0};
    int rc = cm_load_plan_epoch(l, r, epoch, &plan, err);
    if (rc == CM_OK && first > 0)
        cm_epoch_plan_skip(&plan, first * r->share.batch);
    if (rc == CM_OK)
        rc = cm_carry_make(&plan, &r->share, first, &in, l->proof, &carry, err);
    if (rc == CM_OK) {
        const uint64_t nbytes = cm_add_sat(cm_load_plan_nbytes(&plan), cm_carry_nbytes(&plan));
        l->plan_nbytes = nbytes > l->plan_nbytes ? nbytes : l->plan_nbytes;
        cm_pack_tally_most(most, &carry.most);
        *frames_nbytes =
            carry.frames_nbytes > *frames_nbytes ? carry.frames_nbytes : *frames_nbytes;
    }
    cm_carry_release(&carry);
    cm_epoch_plan_release(&plan);
    return rc;
}

int cm_load_carry_bounds(cm_load_run *l, cm_error *err)
{
    cm_pack_tally most = {0};
    uint64_t frames_nbytes = 0;
    int rc = CM_OK;
    for (unsigned r = 0; r < l->setting.ranks && rc == CM_OK; r++)
        for (uint64_t i = 0; i < l->options->epochs && rc == CM_OK; i++)
            rc = look_at(l, &l->rank[r], l->first_epoch + i, 0, &most, &frames_nbytes, err);
    if (rc == CM_OK && l->first_batch > 0)
        rc = look_at(l, &l->rank[0], l->first_epoch, l->first_batch, &most, &frames_nbytes, err);
    if (l->apart)
        make_room(&most, &frames_nbytes);
    return rc == CM_OK ? bounds_of(l, &most, frames_nbytes, &l->bounds, err) : rc;
}

static bool fits(const cm_pack_bounds *need, const cm_pack_bounds *have)
{
    const cm_decoder_limits *n = &need->limits, *h = &have->limits;
    bool all = need->slot_nbytes <= have->slot_nbytes && n->scratch_nbytes <= h->scratch_nbytes;
    for (int c = 0; c < CM_PARCEL_NCODECS; c++)
        all = all && n->nstreams[c] <= h->nstreams[c];
    return all;
}

int cm_load_carry_make(cm_load_rank *r, uint64_t first, cm_error *err)
{
    const cm_load_run *l = r->run;
    const cm_load_arrays in = arrays_of(l);
    cm_pack_bounds need;
    cm_carry_release(&r->carry);
    int rc = cm_carry_make(&r->plan, &r->share, first, &in, l->proof, &r->carry, err);
    if (rc == CM_OK)
        rc = bounds_of(l, &r->carry.most, r->carry.frames_nbytes, &need, err);
    if (rc == CM_OK && !fits(&need, &l->bounds))
        rc = cm_fail(err, CM_EBUDGET, "the plan of an epoch needs more memory than those before");
    return rc;
}

void cm_load_carry_lose(cm_load_rank *r, const cm_load_batch *batch, const cm_error *why)
{
    if (batch->carries)
        cm_carry_lose(&r->carry, batch->load, why->status != CM_OK ? why->status : CM_EIO,
                      why->text);
}
