/* Slots, stash and buffers within the memory that the process may take. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "job/readbench.h"
#include "job/sentences.h"

enum {
    SLOT_ALIGN = 4096,
    DEFAULT_WINDOW = 64
};
/* Code, libraries and their own heaps, of each process: 9 to 14 MiB resident were seen. */
#define PROCESS_NBYTES ((uint64_t)20 << 20)
#define DEFAULT_SLOT   ((uint64_t)16 << 20)

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- what is needed ------------------------------------------------------------------------ */

/* What one thread holds while it reads one sample. */
static uint64_t thread_nbytes(const cm_bench *b)
{
    const cm_bench_space *s = &b->shared.space;
    uint64_t total = 0;
    for (size_t p = 0; p < s->nparts; p++)
        if (p == 0 || s->part[p].array != s->part[p - 1].array) /* lags share a reader's buffers */
            total += cm_reader_memory(b->shared.data.array[s->part[p].array], &s->feed[p]);
    return total;
}

static uint64_t workers_nbytes(const cm_bench *b)
{
    const cm_bench_setting *t = &b->setting;
    const uint64_t workers = (uint64_t)b->npools * t->workers;
    const uint64_t caches = t->mode == CM_POOL_PROCESSES ? workers : 1;
    uint64_t fixed = 0;
    for (size_t i = 0; i < b->shared.space.nfixed; i++) {
        const cm_array *a = b->shared.data.array[b->shared.space.fixed[i].array];
        uint64_t n = a->dtype.nbytes;
        for (unsigned d = 0; d < a->rank; d++)
            n *= a->shape[d];
        fixed += n;
    }
    return workers * t->worker_threads * thread_nbytes(b) + caches * b->options->cache_nbytes +
           workers * fixed + PROCESS_NBYTES * (t->mode == CM_POOL_PROCESSES ? workers + 1 : 1);
}

static uint64_t rank_nbytes(const cm_bench *b, unsigned nslots, uint64_t nstash)
{
    return nslots * (uint64_t)b->slot_nbytes +
           round_up(nstash * b->shared.space.sample_nbytes, SLOT_ALIGN);
}

static uint64_t arena_nbytes(const cm_bench *b, unsigned nslots, uint64_t nstash)
{
    return b->setting.ranks * rank_nbytes(b, nslots, nstash);
}

static uint64_t total_nbytes(const cm_bench *b, unsigned nslots, uint64_t nstash)
{
    return arena_nbytes(b, nslots, nstash) + workers_nbytes(b);
}

/* ---- the map loader ------------------------------------------------------------------------ */

static int too_large(const cm_bench *b, uint64_t need, cm_error *err)
{
    return cm_fail(err, CM_EBUDGET,
                   "%" PRIu64 " workers and a batch of %zu bytes take %" PRIu64
                   " MiB, the memory allowed is %" PRIu64
                   " MiB: fewer --workers, a smaller --batch, or a larger --memory",
                   (uint64_t)b->npools * b->setting.workers, b->slot_nbytes, (need >> 20) + 1,
                   b->memory_limit >> 20);
}

/* One slot for each batch under way, and one that the step holds; one more where the next is copied meanwhile. */
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
                                      .max_meetings = b->memory_limit / 64};
    return cm_epoch_plan_make(&request, plan, err);
}

/* The most that any epoch of any rank will need. */
static int find_needs(cm_bench *b, cm_loader_needs *most, cm_error *err)
{
    int rc = CM_OK;
    *most = (cm_loader_needs){.nslots = 1};
    for (unsigned r = 0; r < b->setting.ranks; r++)
        for (uint64_t e = 0; e < b->options->epochs && rc == CM_OK; e++) {
            cm_epoch_plan plan;
            cm_loader_needs needs;
            rc = cm_bench_plan_epoch(b, &b->rank[r], e, &plan, err);
            if (rc == CM_OK)
                rc = cm_loader_plan_needs(&plan, &b->rank[r].share, &needs, err);
            cm_epoch_plan_release(&plan);
            if (rc != CM_OK)
                return rc;
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
                b->shared.data.path, a->name);
    }
    return CM_OK;
}

/* A smaller window where the batches of one do not fit; a window that the user gave is not changed. */
static int planned_slots(cm_bench *b, cm_error *err)
{
    const uint64_t given = b->options->window;
    cm_loader_needs needs;
    uint64_t need = 0;
    int rc = refuse_unchunked(b, err);
    b->window = given != 0 ? given : DEFAULT_WINDOW;
    const uint64_t left =
        b->memory_limit > workers_nbytes(b) ? b->memory_limit - workers_nbytes(b) : 0;
    b->max_stash = left / 2 / b->setting.ranks / (b->shared.space.sample_nbytes + 1);
    for (; rc == CM_OK; b->window /= 2) {
        rc = find_needs(b, &needs, err);
        if (rc != CM_OK)
            break;
        /* Chunks of the next window are read while the batches of this one are taken. */
        b->nslots = needs.nslots < UINT32_MAX - 2 ? (unsigned)needs.nslots + 2 : UINT32_MAX;
        b->nstash = needs.nstash;
        b->max_pieces = needs.max_pieces > b->batch ? needs.max_pieces : b->batch;
        need = total_nbytes(b, b->nslots, b->nstash);
        if (need <= b->memory_limit)
            return CM_OK;
        if (given != 0 || b->window <= 1)
            break;
    }
    return rc != CM_OK ? rc : too_large(b, need, err);
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
        b->options->memory != 0 ? b->options->memory : cm_memory_available() / 2 / b->nsharing;
    b->batch = largest_batch(b);
    if (!cm_mul_size(s->sample_nbytes, b->batch, &nbytes) || nbytes > (size_t)1 << 46)
        return cm_fail(err, CM_EINVAL, "--batch %" PRIu64 ": a batch has too many bytes",
                       b->options->batch);
    b->session->batch_nbytes = nbytes;
    b->slot_nbytes = round_up(nbytes, SLOT_ALIGN);
    b->max_pieces = b->batch;
    int rc = check_slot_size(b, err);
    if (rc == CM_OK)
        rc = b->setting.planned ? planned_slots(b, err) : map_slots(b, err);
    if (rc != CM_OK)
        return rc;
    b->rank_nbytes = rank_nbytes(b, b->nslots, b->nstash);
    b->session->memory_limit = b->memory_limit;
    b->session->memory_planned = total_nbytes(b, b->nslots, b->nstash);
    b->session->batches_in_flight = b->nslots * b->setting.ranks;
    b->session->in_flight_nbytes = (uint64_t)b->nslots * b->slot_nbytes * b->setting.ranks;
    b->session->window = b->setting.planned ? b->window : 0;
    return cm_arena_create(arena_nbytes(b, b->nslots, b->nstash),
                           b->setting.mode == CM_POOL_PROCESSES, &b->arena, err);
}
