/* Slots, stash and buffers within the memory that the process may take. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/number.h"
#include "base/sentences.h"
#include "load/run.h"
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

static uint64_t rank_nbytes(const cm_load_run *l, uint64_t nslots, uint64_t nstash)
{
    const uint64_t stash = cm_mul_sat(nstash, l->shared.space.sample_nbytes);
    return cm_add_sat(cm_mul_sat(nslots, l->slot_nbytes),
                      stash < UINT64_MAX - SLOT_ALIGN ? round_up(stash, SLOT_ALIGN) : UINT64_MAX);
}

static uint64_t arena_nbytes(const cm_load_run *l, uint64_t nslots, uint64_t nstash)
{
    return cm_mul_sat(l->setting.ranks, rank_nbytes(l, nslots, nstash));
}

static uint64_t total_nbytes(const cm_load_run *l, uint64_t nslots, uint64_t nstash)
{
    const uint64_t plans = cm_mul_sat(l->setting.ranks, l->plan_nbytes);
    return cm_add_sat(cm_add_sat(plans, l->fixed_nbytes), arena_nbytes(l, nslots, nstash));
}

/* ---- the map loader ------------------------------------------------------------------------ */

/*
 * One MiB more than is needed now: a process does not have the same each time.  Stores that
 * are measured in turn share.
 */
static int too_large(const cm_load_run *l, uint64_t need, cm_error *err)
{
    const uint64_t workers = (uint64_t)l->npools * l->setting.workers;
    const bool by_slot = l->slot_nbytes == round_up(l->options->slot_nbytes, SLOT_ALIGN);
    char size[32];
    return cm_fail(err, CM_EBUDGET,
                   "not enough memory: %" PRIu64 " worker%s and %s of %s take %" PRIu64
                   " MiB, the memory allowed is %" PRIu64
                   " MiB: %sa smaller %s, or a larger `memory`",
                   workers, workers == 1 ? "" : "s", by_slot ? "slots" : "a batch",
                   cm_format_size(l->slot_nbytes, size, sizeof size),
                   l->nsharing * ((need >> 20) + 2), l->nsharing * l->memory_limit >> 20,
                   workers > 1 ? "fewer `workers`, " : "", by_slot ? "`slot_nbytes`" : "`batch`");
}

/* One slot for each batch under way, and for those that the taker holds. */
static int map_slots(cm_load_run *l, cm_error *err)
{
    const cm_load_setting *t = &l->setting;
    const unsigned own = t->mode == CM_POOL_SYNC ? 1 : t->workers;
    const unsigned ahead = t->mode == CM_POOL_SYNC ? 0 : own * t->prefetch;
    const unsigned least = l->kept + 1; /* the next one is made meanwhile */
    const unsigned wanted = ahead + l->held > least ? ahead + l->held : least;
    unsigned n = wanted;
    if (l->options->slots != 0 && l->options->slots < n)
        n = l->options->slots;
    while (n > least && total_nbytes(l, n, 0) > l->memory_limit)
        n--;
    if (total_nbytes(l, n, 0) > l->memory_limit)
        return too_large(l, total_nbytes(l, n, 0), err);
    if (n < least)
        return cm_fail(err, CM_EINVAL,
                       "`slots` %u: a batch that is stepped on and one on its way "
                       "take 2 slots",
                       l->options->slots);
    l->nslots = n;
    if (n < wanted)
        return cm_load_note(l, err,
                            "%u %s held at most, not the %u that workers and prefetch would: %s", n,
                            cm_of_count(n, "batch is", "batches are"), wanted,
                            n == l->options->slots ? "`slots`" : "`memory`");
    return CM_OK;
}

/* ---- the planned loader -------------------------------------------------------------------- */

int cm_load_plan_epoch(const cm_load_run *l, const cm_load_rank *r, uint64_t epoch,
                       cm_epoch_plan *plan, cm_error *err)
{
    const cm_grid *grid[CM_LOAD_MAX_PARTS];
    for (size_t i = 0; i < l->shared.data.narrays; i++)
        grid[i] = &l->shared.data.array[i]->grid;
    const cm_epoch_request request = {.space = &l->shared.space.space,
                                      .share = &r->share,
                                      .epoch = epoch,
                                      .part = l->shared.space.part,
                                      .nparts = l->shared.space.nparts,
                                      .grid = grid,
                                      .narrays = l->shared.data.narrays,
                                      .window = l->window,
                                      .max_stash = l->max_stash,
                                      .max_meetings = l->max_meetings};
    return cm_epoch_plan_make(&request, plan, err);
}

/* The most that any epoch of any rank will need, and the peak of its stash. */
static int find_needs(cm_load_run *l, cm_batcher_needs *most, uint64_t *peak, cm_error *err)
{
    int rc = CM_OK;
    *peak = 0;
    *most = (cm_batcher_needs){.nslots = 1};
    for (unsigned r = 0; r < l->setting.ranks; r++)
        for (uint64_t i = 0; i < l->options->epochs && rc == CM_OK; i++) {
            const uint64_t e = l->first_epoch + i;
            cm_epoch_plan plan;
            cm_batcher_needs needs;
            rc = cm_load_plan_epoch(l, &l->rank[r], e, &plan, err);
            if (rc == CM_OK)
                rc = cm_batcher_plan_needs(&plan, &l->rank[r].share, &needs, err);
            const uint64_t nbytes = cm_load_plan_nbytes(&plan);
            *peak = plan.peak_stash > *peak ? plan.peak_stash : *peak;
            cm_epoch_plan_release(&plan);
            if (rc != CM_OK)
                return rc;
            l->plan_nbytes = nbytes > l->plan_nbytes ? nbytes : l->plan_nbytes;
            most->nslots = needs.nslots > most->nslots ? needs.nslots : most->nslots;
            most->nstash = needs.nstash > most->nstash ? needs.nstash : most->nstash;
            most->max_pieces =
                needs.max_pieces > most->max_pieces ? needs.max_pieces : most->max_pieces;
        }
    return rc;
}

static int refuse_unchunked(const cm_load_run *l, cm_error *err)
{
    for (size_t p = 0; p < l->shared.space.nparts; p++) {
        const cm_array *a = l->shared.data.array[l->shared.space.part[p].array];
        if (!a->chunked)
            return cm_fail(
                err, CM_EUNSUPPORTED,
                "%s: variable %s has no chunks, so there is nothing to plan: `loader` map",
                l->shared.data.path, cm_load_array_name(a));
    }
    return CM_OK;
}

/* What was found while looking for a plan that fits. */
typedef struct search {
    bool fits;
    uint64_t need;  /* bytes, of the least that was tried; UINT64_MAX: none had an order */
    uint64_t stash; /* samples, the least peak of a window's order */
    uint64_t slots; /* the least that --slots was too few for; 0: it was not */
} search;

/* A quarter more in the stash, and of pieces, where SLOTS leave room for that. */
static void make_room(cm_load_run *l, uint64_t slots)
{
    const uint64_t more = l->nstash + l->nstash / 4 + 1;
    l->max_pieces += l->max_pieces / 4;
    if (total_nbytes(l, slots, more) <= l->memory_limit)
        l->nstash = more;
}

/* Slots for NEEDS, and for more batches where there is room. */
static void try_needs(cm_load_run *l, const cm_batcher_needs *needs, search *s)
{
    const uint64_t least = needs->nslots + l->kept; /* a plan takes a batch for gone then */
    const uint64_t given = l->options->slots;
    if (given != 0 && given < least) {
        s->slots = s->slots == 0 || least < s->slots ? least : s->slots;
        return;
    }
    const uint64_t need = total_nbytes(l, given != 0 ? given : least, needs->nstash);
    s->need = need < s->need ? need : s->need;
    l->nstash = needs->nstash;
    l->max_pieces = needs->max_pieces > l->batch ? needs->max_pieces : l->batch;
    if (l->apart) /* epochs that were not looked at need a little more */
        make_room(l, given != 0 ? given : least);
    uint64_t n = given != 0 ? given : least + MOST_AHEAD;
    while (n > least && total_nbytes(l, n, l->nstash) > l->memory_limit)
        n--;
    s->fits = n <= UINT32_MAX && total_nbytes(l, n, l->nstash) <= l->memory_limit;
    l->nslots = (unsigned)n;
}

/*
 * A smaller window where the batches of one do not fit; a window that the user gave is not
 * changed.
 */
static int try_windows(cm_load_run *l, search *s, cm_error *err)
{
    const uint64_t given = l->kept_window != 0 ? l->kept_window : l->options->window;
    int rc = CM_OK;
    s->stash = UINT64_MAX;
    for (l->window = given != 0 ? given : DEFAULT_WINDOW; l->window > 0; l->window /= 2) {
        cm_batcher_needs needs;
        uint64_t peak;
        rc = find_needs(l, &needs, &peak, err);
        if (rc != CM_OK)
            return rc;
        s->stash = peak < s->stash ? peak : s->stash;
        try_needs(l, &needs, s);
        if (s->fits || given != 0)
            break;
    }
    return CM_OK;
}

/* No order's stash fits: says what the least would take. */
static int refuse_stash(cm_load_run *l, search *s, const cm_error *why, cm_error *err)
{
    cm_error ignored;
    int rc = CM_EBUDGET;
    while (rc == CM_EBUDGET && l->max_stash < l->rank[0].share.per_rank) {
        l->max_stash = 2 * l->max_stash + 1;
        rc = try_windows(l, s, &ignored);
    }
    return s->need != UINT64_MAX ? too_large(l, s->need, err)
                                 : cm_fail(err, CM_EBUDGET, "`loader` planned: %s", why->text);
}

/* What an order may take of the memory: a stash, and the meetings of samples and chunks. */
static void bound_order(cm_load_run *l)
{
    const uint64_t left = l->memory_limit > l->fixed_nbytes ? l->memory_limit - l->fixed_nbytes : 0;
    const uint64_t each = left / l->setting.ranks;
    l->max_stash = l->kept_window != 0 ? l->kept_stash : each / (l->shared.space.sample_nbytes + 1);
    if (l->max_stash > l->rank[0].share.per_rank) /* no more can wait */
        l->max_stash = l->rank[0].share.per_rank;
    l->max_meetings = each / CM_LOAD_MEETING_NBYTES;
    if (l->max_meetings < LEAST_MEETINGS) /* so that what is refused can be counted */
        l->max_meetings = LEAST_MEETINGS;
}

/* Orders with less in the stash follow where those with more leave no room for batches. */
static int planned_slots(cm_load_run *l, cm_error *err)
{
    search s = {.need = UINT64_MAX};
    cm_error inner = {0};
    int rc = refuse_unchunked(l, err);
    if (rc != CM_OK)
        return rc;
    bound_order(l);
    rc = try_windows(l, &s, &inner);
    while (rc == CM_OK && !s.fits && s.stash > 0 && l->kept_window == 0) {
        l->max_stash = s.stash - 1;
        rc = try_windows(l, &s, &inner);
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
                       "`slots` %u: the planned loader has %" PRIu64 " batches under way at once",
                       l->options->slots, s.slots);
    return s.need != UINT64_MAX ? too_large(l, s.need, err) : refuse_stash(l, &s, &inner, err);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int check_slot_size(cm_load_run *l, cm_error *err)
{
    const uint64_t size = l->options->slot_nbytes != 0 ? l->options->slot_nbytes : DEFAULT_SLOT;
    char batch[32], slot[32];
    if (!l->setting.uses_device)
        return CM_OK;
    if (l->options->slot_nbytes == 0 && size < l->slot_nbytes)
        return cm_load_note(l, err, "a batch of %s is staged in slots of that size",
                            cm_format_size(l->slot_nbytes, batch, sizeof batch));
    if (size < l->slot_nbytes)
        return cm_fail(err, CM_EINVAL, "`slot_nbytes`: a batch of %s does not fit a slot of %s",
                       cm_format_size(l->slot_nbytes, batch, sizeof batch),
                       cm_format_size(size, slot, sizeof slot));
    if (l->options->slot_nbytes != 0)
        l->slot_nbytes = round_up(size, SLOT_ALIGN);
    return CM_OK;
}

static uint64_t largest_batch(const cm_load_run *l)
{
    const cm_epoch_share *share = &l->rank[0].share; /* all ranks deliver as many */
    return share->batch < share->per_rank ? share->batch : share->per_rank;
}

int cm_load_memory(cm_load_run *l, cm_error *err)
{
    const cm_load_space *s = &l->shared.space;
    size_t nbytes;
    if (l->memory_limit == 0) /* it stays what it was when the run was opened */
        l->memory_limit =
            (l->options->memory != 0 ? l->options->memory : cm_memory_available() / 2) /
            l->nsharing;
    l->nahead = cm_load_lookahead_places(l);
    cm_load_lookahead_threads(l);
    l->batch = largest_batch(l);
    if (!cm_mul_size(s->sample_nbytes, l->batch, &nbytes) || nbytes > (size_t)1 << 46)
        return cm_fail(err, CM_EINVAL, "`batch` %" PRIu64 ": a batch has too many bytes",
                       l->options->batch);
    l->batch_nbytes = nbytes;
    l->max_pieces = l->batch;
    l->slot_nbytes = round_up(nbytes, SLOT_ALIGN);
    int rc = cm_load_check_worker_memory(l, err);
    if (rc == CM_OK)
        rc = check_slot_size(l, err);
    l->fixed_nbytes = cm_add_sat(cm_load_workers_nbytes(l), l->other_nbytes(l->owner));
    if (rc == CM_OK)
        rc = l->setting.planned ? planned_slots(l, err) : map_slots(l, err);
    if (rc != CM_OK)
        return rc;
    l->rank_nbytes = rank_nbytes(l, l->nslots, l->nstash);
    l->memory_free = cm_memory_available();
    l->memory_planned = total_nbytes(l, l->nslots, l->nstash);
    return cm_arena_create(arena_nbytes(l, l->nslots, l->nstash),
                           l->setting.mode == CM_POOL_PROCESSES, &l->arena, err);
}
