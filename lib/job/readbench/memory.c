/* Slots, stash and buffers within the memory that the process may take. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "job/common/sentences.h"
#include "job/readbench/readbench.h"
#include "plan/meetings.h"

enum {
    SLOT_ALIGN = 4096,
    DEFAULT_WINDOW = 64,
    MOST_AHEAD = 2,
    LEAST_MEETINGS = 1 << 20
};
#define DEFAULT_SLOT ((uint64_t)16 << 20)

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- what is needed ------------------------------------------------------------------------ */

static uint64_t rank_nbytes(const cm_bench *b, uint64_t nslots, uint64_t nstash)
{
    const uint64_t stash = cm_mul_sat(nstash, b->shared.space.sample_nbytes);
    return cm_add_sat(cm_mul_sat(nslots, b->slot_nbytes),
                      stash < UINT64_MAX - SLOT_ALIGN ? round_up(stash, SLOT_ALIGN) : UINT64_MAX);
}

static uint64_t arena_nbytes(const cm_bench *b, uint64_t nslots, uint64_t nstash)
{
    return cm_mul_sat(b->setting.ranks, rank_nbytes(b, nslots, nstash));
}

static uint64_t total_nbytes(const cm_bench *b, uint64_t nslots, uint64_t nstash)
{
    const uint64_t plans = cm_mul_sat(b->setting.ranks, b->plan_nbytes);
    return cm_add_sat(cm_add_sat(plans, b->fixed_nbytes), arena_nbytes(b, nslots, nstash));
}

/* ---- the map loader ------------------------------------------------------------------------ */

/*
 * One MiB more than is needed now: a process does not have the same each time.  Stores that
 * are measured in turn share.
 */
static int too_large(const cm_bench *b, uint64_t need, cm_error *err)
{
    const uint64_t workers = (uint64_t)b->npools * b->setting.workers;
    const bool by_slot = b->slot_nbytes == round_up(b->options->slot_nbytes, SLOT_ALIGN);
    return cm_fail(err, CM_EBUDGET,
                   "%" PRIu64 " worker%s and %s of %zu bytes take %" PRIu64
                   " MiB, the memory allowed is %" PRIu64
                   " MiB: %sa smaller %s, or a larger --memory",
                   workers, workers == 1 ? "" : "s", by_slot ? "slots" : "a batch", b->slot_nbytes,
                   b->nsharing * ((need >> 20) + 2), b->nsharing * b->memory_limit >> 20,
                   workers > 1 ? "fewer --workers, " : "", by_slot ? "--slot-size" : "--batch");
}

/*
 * One slot for each batch under way, and one that the step holds; one more where the next is
 * copied meanwhile.
 */
static int map_slots(cm_bench *b, cm_error *err)
{
    const cm_bench_setting *t = &b->setting;
    const unsigned held = t->uses_device ? 2 : 1;
    const unsigned own = t->mode == CM_POOL_SYNC ? 1 : t->workers;
    const unsigned wanted = (t->mode == CM_POOL_SYNC ? 0 : own * t->prefetch) + held;
    unsigned n = wanted;
    if (b->options->slots != 0 && b->options->slots < n)
        n = b->options->slots;
    while (n > held && total_nbytes(b, n, 0) > b->memory_limit)
        n--;
    if (total_nbytes(b, n, 0) > b->memory_limit)
        return too_large(b, total_nbytes(b, n, 0), err);
    if (n < held)
        return cm_fail(err, CM_EINVAL,
                       "--slots %u: a batch that is stepped on and one on its way "
                       "take 2 slots",
                       b->options->slots);
    b->nslots = n;
    if (n < wanted)
        return cm_bench_note(b, err,
                             "%u batches are held at most, not the %u that workers and prefetch "
                             "would: %s",
                             n, wanted, n == b->options->slots ? "--slots" : "--memory");
    return CM_OK;
}

/* ---- the planned loader -------------------------------------------------------------------- */

int cm_bench_plan_epoch(const cm_bench *b, const cm_bench_rank *r, uint64_t epoch,
                        cm_epoch_plan *plan, cm_error *err)
{
    const cm_grid *grid[CM_BENCH_MAX_PARTS];
    for (size_t i = 0; i < b->shared.data.narrays; i++)
        grid[i] = &b->shared.data.array[i]->grid;
    const cm_epoch_request request = {.space = &b->shared.space.space,
                                      .share = &r->share,
                                      .epoch = epoch,
                                      .part = b->shared.space.part,
                                      .nparts = b->shared.space.nparts,
                                      .grid = grid,
                                      .narrays = b->shared.data.narrays,
                                      .window = b->window,
                                      .max_stash = b->max_stash,
                                      .max_meetings = b->max_meetings};
    return cm_epoch_plan_make(&request, plan, err);
}

/* The most that any epoch of any rank will need, and the peak of its stash. */
static int find_needs(cm_bench *b, cm_batcher_needs *most, uint64_t *peak, cm_error *err)
{
    int rc = CM_OK;
    *peak = 0;
    *most = (cm_batcher_needs){.nslots = 1};
    for (unsigned r = 0; r < b->setting.ranks; r++)
        for (uint64_t e = 0; e < b->options->epochs && rc == CM_OK; e++) {
            cm_epoch_plan plan;
            cm_batcher_needs needs;
            rc = cm_bench_plan_epoch(b, &b->rank[r], e, &plan, err);
            if (rc == CM_OK)
                rc = cm_batcher_plan_needs(&plan, &b->rank[r].share, &needs, err);
            const uint64_t nbytes = cm_bench_plan_nbytes(&plan);
            *peak = plan.peak_stash > *peak ? plan.peak_stash : *peak;
            cm_epoch_plan_release(&plan);
            if (rc != CM_OK)
                return rc;
            b->plan_nbytes = nbytes > b->plan_nbytes ? nbytes : b->plan_nbytes;
            most->nslots = needs.nslots > most->nslots ? needs.nslots : most->nslots;
            most->nstash = needs.nstash > most->nstash ? needs.nstash : most->nstash;
            most->max_pieces =
                needs.max_pieces > most->max_pieces ? needs.max_pieces : most->max_pieces;
        }
    return rc;
}

static int refuse_unchunked(const cm_bench *b, cm_error *err)
{
    for (size_t p = 0; p < b->shared.space.nparts; p++) {
        const cm_array *a = b->shared.data.array[b->shared.space.part[p].array];
        if (!a->chunked)
            return cm_fail(
                err, CM_EUNSUPPORTED,
                "%s: variable %s has no chunks, so there is nothing to plan: --loader map",
                b->shared.data.path, cm_bench_array_name(a));
    }
    return CM_OK;
}

/*
 * Batches beyond those that the plan needs: chunks of the next ones are read while these are
 * taken.
 */
static unsigned least_ahead(const cm_bench *b)
{
    return b->setting.uses_device && !b->options->no_overlap
               ? 1
               : 0; /* held while the next is waited for */
}

/* What was found while looking for a plan that fits. */
typedef struct search {
    bool fits;
    uint64_t need;  /* bytes, of the least that was tried; UINT64_MAX: none had an order */
    uint64_t stash; /* samples, the least peak of a window's order */
    uint64_t slots; /* the least that --slots was too few for; 0: it was not */
} search;

/* Slots for NEEDS, and for more batches where there is room. */
static void try_needs(cm_bench *b, const cm_batcher_needs *needs, search *s)
{
    const uint64_t least = needs->nslots + least_ahead(b);
    const uint64_t given = b->options->slots;
    if (given != 0 && given < least) {
        s->slots = s->slots == 0 || least < s->slots ? least : s->slots;
        return;
    }
    const uint64_t need = total_nbytes(b, given != 0 ? given : least, needs->nstash);
    s->need = need < s->need ? need : s->need;
    b->nstash = needs->nstash;
    b->max_pieces = needs->max_pieces > b->batch ? needs->max_pieces : b->batch;
    uint64_t n = given != 0 ? given : needs->nslots + MOST_AHEAD;
    while (n > least && total_nbytes(b, n, b->nstash) > b->memory_limit)
        n--;
    s->fits = n <= UINT32_MAX && total_nbytes(b, n, b->nstash) <= b->memory_limit;
    b->nslots = (unsigned)n;
}

/*
 * A smaller window where the batches of one do not fit; a window that the user gave is not
 * changed.
 */
static int try_windows(cm_bench *b, search *s, cm_error *err)
{
    const uint64_t given = b->options->window;
    int rc = CM_OK;
    s->stash = UINT64_MAX;
    for (b->window = given != 0 ? given : DEFAULT_WINDOW; b->window > 0; b->window /= 2) {
        cm_batcher_needs needs;
        uint64_t peak;
        rc = find_needs(b, &needs, &peak, err);
        if (rc != CM_OK)
            return rc;
        s->stash = peak < s->stash ? peak : s->stash;
        try_needs(b, &needs, s);
        if (s->fits || given != 0)
            break;
    }
    return CM_OK;
}

/* No order's stash fits: says what the least would take. */
static int refuse_stash(cm_bench *b, search *s, const cm_error *why, cm_error *err)
{
    cm_error ignored;
    int rc = CM_EBUDGET;
    while (rc == CM_EBUDGET && b->max_stash < b->rank[0].share.per_rank) {
        b->max_stash = 2 * b->max_stash + 1;
        rc = try_windows(b, s, &ignored);
    }
    return s->need != UINT64_MAX ? too_large(b, s->need, err)
                                 : cm_fail(err, CM_EBUDGET, "--loader planned: %s", why->text);
}

/* Orders with less in the stash follow where those with more leave no room for batches. */
static int planned_slots(cm_bench *b, cm_error *err)
{
    const uint64_t left = b->memory_limit > b->fixed_nbytes ? b->memory_limit - b->fixed_nbytes : 0;
    const uint64_t each = left / b->setting.ranks;
    search s = {.need = UINT64_MAX};
    cm_error inner = {0};
    int rc = refuse_unchunked(b, err);
    if (rc != CM_OK)
        return rc;
    b->max_stash = each / (b->shared.space.sample_nbytes + 1);
    b->max_meetings = each / CM_BENCH_MEETING_NBYTES;
    if (b->max_meetings < LEAST_MEETINGS) /* so that what is refused can be counted */
        b->max_meetings = LEAST_MEETINGS;
    rc = try_windows(b, &s, &inner);
    while (rc == CM_OK && !s.fits && s.stash > 0) {
        b->max_stash = s.stash - 1;
        rc = try_windows(b, &s, &inner);
    }
    if (rc != CM_OK && rc != CM_EBUDGET) {
        if (err != NULL)
            *err = inner;
        return rc;
    }
    if (s.fits)
        return CM_OK;
    if (s.slots != 0)
        return cm_fail(err, CM_EINVAL,
                       "--slots %u: the planned loader has %" PRIu64 " batches under way at once",
                       b->options->slots, s.slots);
    return s.need != UINT64_MAX ? too_large(b, s.need, err) : refuse_stash(b, &s, &inner, err);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int check_slot_size(cm_bench *b, cm_error *err)
{
    const uint64_t size = b->options->slot_nbytes != 0 ? b->options->slot_nbytes : DEFAULT_SLOT;
    if (!b->setting.uses_device)
        return CM_OK;
    if (b->options->slot_nbytes == 0 && size < b->slot_nbytes)
        return cm_bench_note(b, err, "a batch of %zu bytes is staged in slots of that size",
                             b->slot_nbytes);
    if (size < b->slot_nbytes)
        return cm_fail(err, CM_EINVAL, "--slot-size: a batch has %zu bytes, a slot %" PRIu64,
                       b->slot_nbytes, size);
    if (b->options->slot_nbytes != 0)
        b->slot_nbytes = round_up(size, SLOT_ALIGN);
    return CM_OK;
}

static uint64_t largest_batch(const cm_bench *b)
{
    const cm_epoch_share *share = &b->rank[0].share; /* all ranks deliver as many */
    return share->batch < share->per_rank ? share->batch : share->per_rank;
}

int cm_bench_memory(cm_bench *b, cm_error *err)
{
    const cm_bench_space *s = &b->shared.space;
    size_t nbytes;
    b->memory_limit =
        (b->options->memory != 0 ? b->options->memory : cm_memory_available() / 2) / b->nsharing;
    b->batch = largest_batch(b);
    if (!cm_mul_size(s->sample_nbytes, b->batch, &nbytes) || nbytes > (size_t)1 << 46)
        return cm_fail(err, CM_EINVAL, "--batch %" PRIu64 ": a batch has too many bytes",
                       b->options->batch);
    b->session->batch_nbytes = nbytes;
    b->max_pieces = b->batch;
    int rc = cm_bench_pack_bounds(b, err);
    b->slot_nbytes =
        round_up(b->setting.device_decode ? b->bounds.slot_nbytes : nbytes, SLOT_ALIGN);
    if (rc == CM_OK)
        rc = cm_bench_check_worker_memory(b, err);
    if (rc == CM_OK)
        rc = check_slot_size(b, err);
    b->fixed_nbytes = cm_add_sat(cm_bench_workers_nbytes(b), cm_bench_other_nbytes(b));
    if (rc == CM_OK)
        rc = b->setting.planned ? planned_slots(b, err) : map_slots(b, err);
    if (rc != CM_OK)
        return rc;
    b->rank_nbytes = rank_nbytes(b, b->nslots, b->nstash);
    b->session->memory_limit = b->memory_limit;
    b->session->memory_free = cm_memory_available();
    b->session->memory_planned = total_nbytes(b, b->nslots, b->nstash);
    b->session->batches_in_flight = b->nslots * b->setting.ranks;
    b->session->in_flight_nbytes = (uint64_t)b->nslots * b->slot_nbytes * b->setting.ranks;
    b->session->window = b->setting.planned ? b->window : 0;
    return cm_arena_create(arena_nbytes(b, b->nslots, b->nstash),
                           b->setting.mode == CM_POOL_PROCESSES, &b->arena, err);
}
