/* Slots, frames and buffers within the memory that the process may take. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/number.h"
#include "base/sentences.h"
#include "load/run.h"
#include "plan/meetings.h"

enum {
    SLOT_ALIGN = 4096,
    SHAPE_SHARE = 2 /* of `memory` without the cache, for decoded chunks, the rest for batches and
                       workers */
};
#define DEFAULT_SLOT ((uint64_t)16 << 20)
#define USUAL_FRAMES ((uint64_t)1 << 30) /* bytes, of all ranks, where no memory is given */

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- what is needed ------------------------------------------------------------------------ */

static uint64_t arena_nbytes(const cm_load_run *l, uint64_t nslots)
{
    return cm_mul_sat(l->setting.ranks, cm_mul_sat(nslots, l->slot_nbytes));
}

static uint64_t total_nbytes(const cm_load_run *l, uint64_t nslots)
{
    return cm_add_sat(l->fixed_nbytes, arena_nbytes(l, nslots));
}

/*
 * Memory for FRAMES bytes of decoded chunks for each rank.  Chunks get up to 1 / SHAPE_SHARE of
 * what the cache leaves, and the larger block shape that this memory would choose fits as well.
 */
static uint64_t need_nbytes(const cm_load_run *l, uint64_t nslots, uint64_t frames)
{
    const uint64_t others = total_nbytes(l, nslots);
    const uint64_t both = cm_add_sat(others, cm_mul_sat(l->setting.ranks, frames));
    const uint64_t cache = l->options->cache_nbytes;
    const uint64_t shared =
        cm_add_sat(cm_mul_sat((others - cache) / (SHAPE_SHARE - 1), SHAPE_SHARE), cache);
    return !l->setting.planned || both > shared ? both : shared;
}

/* The cache, in front of what else takes memory. */
static const char *cache_words(const cm_load_run *l, char *buf, size_t nbuf)
{
    char size[32];
    buf[0] = '\0';
    if (l->options->cache_nbytes > 0)
        snprintf(buf, nbuf, "a cache of %s%s, ",
                 cm_format_size(l->options->cache_nbytes, size, sizeof size),
                 l->setting.mode == CM_POOL_PROCESSES ? " in each worker" : "");
    return buf;
}

static const char *cache_advice(const cm_load_run *l)
{
    return l->options->cache_nbytes > 0 ? "a smaller `cache_nbytes`, " : "";
}

/*
 * Tells one MiB more than is needed now, because processes differ from run to run.  Stores that are
 * measured in turn share the memory.
 */
static int too_large(const cm_load_run *l, uint64_t need, cm_error *err)
{
    const uint64_t workers = (uint64_t)l->npools * l->setting.workers;
    const bool by_slot = l->slot_nbytes == round_up(l->options->slot_nbytes, SLOT_ALIGN);
    char size[32], cache[64];
    return cm_fail(
        err, CM_EBUDGET,
        "not enough memory: %s%" PRIu64 " worker%s and %s of %s take %" PRIu64
        " MiB, the memory allowed is %" PRIu64 " MiB: %s%sa smaller %s, or a larger `memory`",
        cache_words(l, cache, sizeof cache), workers, cm_of_count(workers, "", "s"),
        by_slot ? "slots" : "a batch", cm_format_size(l->slot_nbytes, size, sizeof size),
        l->nsharing * ((need >> 20) + 2), l->nsharing * l->memory_limit >> 20, cache_advice(l),
        workers > 1 ? "fewer `workers`, " : "", by_slot ? "`slot_nbytes`" : "`batch`");
}

/* ---- slots --------------------------------------------------------------------------------- */

/* Batches take no more than half of the memory that decoded chunks share with them. */
static uint64_t slots_limit(const cm_load_run *l)
{
    const uint64_t limit = l->memory_limit;
    if (!l->setting.planned || limit <= l->fixed_nbytes)
        return limit;
    return l->fixed_nbytes + (limit - l->fixed_nbytes) / 2;
}

/* One slot for each batch under way, and for those that the taker holds. */
static int fit_slots(cm_load_run *l, cm_error *err)
{
    const cm_load_setting *t = &l->setting;
    const unsigned own = t->mode == CM_POOL_SYNC ? 1 : t->workers;
    const unsigned ahead = t->mode == CM_POOL_SYNC ? 0 : own * t->prefetch;
    const unsigned least = l->kept + 1; /* the next one is made meanwhile */
    const unsigned wanted = ahead + l->held > least ? ahead + l->held : least;
    unsigned n = wanted;
    if (l->options->slots != 0 && l->options->slots < n)
        n = l->options->slots;
    while (n > least && total_nbytes(l, n) > slots_limit(l))
        n--;
    const uint64_t frame = l->setting.planned ? l->blocks.frame_nbytes : 0;
    if (cm_add_sat(total_nbytes(l, n), cm_mul_sat(t->ranks, frame)) > l->memory_limit)
        return too_large(l, need_nbytes(l, n, frame), err);
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

/* ---- frames of decoded chunks: the planned loader ------------------------------------------ */

static int make_blocks(cm_load_run *l, cm_error *err)
{
    const cm_load_space *s = &l->shared.space;
    const cm_grid *grid[CM_LOAD_MAX_PARTS];
    uint32_t element_nbytes[CM_LOAD_MAX_PARTS];
    bool any = false;
    for (size_t i = 0; i < l->shared.data.narrays; i++)
        grid[i] = l->shared.data.array[i]->chunked ? &l->shared.data.array[i]->grid : NULL;
    for (size_t p = 0; p < s->nparts; p++) {
        element_nbytes[p] = cm_feed_nbytes(&s->feed[p]);
        any |= grid[s->part[p].array] != NULL;
    }
    if (!any)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: variable %s has no chunks, so there is nothing to plan: `loader` map",
                       l->shared.data.path,
                       cm_load_array_name(l->shared.data.array[s->part[0].array]));
    const cm_blocks_request request = {.space = &s->space,
                                       .part = s->part,
                                       .nparts = s->nparts,
                                       .grid = grid,
                                       .element_nbytes = element_nbytes};
    cm_blocks_release(&l->blocks);
    return cm_blocks_make(&request, &l->blocks, err);
}

static int no_frames(const cm_load_run *l, uint64_t frames_nbytes, cm_error *err)
{
    const uint64_t need = need_nbytes(l, l->nslots, frames_nbytes);
    char frames[32], cache[64];
    return cm_fail(
        err, CM_EBUDGET,
        "not enough memory: %s of decoded chunks%s, %sbatches and workers take %" PRIu64
        " MiB, the memory allowed is %" PRIu64 " MiB: %s%sa larger `memory`, or `loader` map",
        cm_format_size(frames_nbytes, frames, sizeof frames),
        l->setting.ranks > 1 ? " for each rank" : "", cache_words(l, cache, sizeof cache),
        l->nsharing * ((need >> 20) + 2), l->nsharing * l->memory_limit >> 20, cache_advice(l),
        l->options->window > 1 ? "a smaller `window`, " : "");
}

/*
 * Block shape and window, which decide the order, from the options alone: ranks on other machines,
 * with more memory or other workers, have to find the same.
 */
static void choose_shape(cm_load_run *l)
{
    const uint64_t memory = l->options->memory / l->nsharing, cache = l->options->cache_nbytes;
    const uint64_t nbytes = l->options->memory == 0 ? USUAL_FRAMES / l->nsharing
                            : memory > cache        ? (memory - cache) / SHAPE_SHARE
                                                    : 0;
    const cm_blocks_budget budget = {.nbytes = nbytes / l->setting.ranks,
                                     .window = l->options->window,
                                     .nsamples = l->rank[0].share.whole,
                                     .batch = l->options->batch,
                                     .sample_nbytes = l->shared.space.sample_nbytes};
    cm_blocks_fitted fitted;
    cm_blocks_grow_within(&l->blocks, &budget);
    (void)cm_blocks_fit(&l->blocks, &budget, &fitted); /* too little: one block, which may fit */
    l->shape.window = fitted.window;
    memcpy(l->shape.grown, l->blocks.grown, sizeof l->shape.grown);
}

int cm_load_planned_decodes(cm_load_run *l, double *out, cm_error *err)
{
    int rc = make_blocks(l, err);
    if (rc == CM_OK) {
        choose_shape(l);
        *out = cm_blocks_decodes(&l->blocks).decoded / (double)l->shared.space.space.nsamples;
    }
    l->shape.window = 0; /* not chosen: nothing is delivered in blocks */
    return rc;
}

static uint64_t bookkeeping_nbytes(const cm_load_run *l)
{
    return cm_mul_sat(l->blocks.frame_nchunks, CM_BATCHER_CHUNK_NBYTES);
}

/* Frames of one rank, with as many slots as there are now. */
static int fit_frames_beside(cm_load_run *l, cm_error *err)
{
    const uint64_t used = total_nbytes(l, l->nslots);
    const uint64_t left = l->memory_limit > used ? l->memory_limit - used : 0;
    const uint64_t each = cm_add_sat(l->blocks.frame_nbytes, bookkeeping_nbytes(l));
    const uint64_t most = left / l->setting.ranks / each;
    const cm_blocks_budget budget = {.nbytes = cm_mul_sat(most, l->blocks.frame_nbytes),
                                     .window = l->shape.window,
                                     .batch = l->batch,
                                     .under_way = cm_mul_sat(l->nslots, l->batch)};
    cm_blocks_fitted fitted;
    if (cm_blocks_fit(&l->blocks, &budget, &fitted) != CM_OK || fitted.nframes > UINT32_MAX)
        return no_frames(l, cm_mul_sat(fitted.need / l->blocks.frame_nbytes, each), err);
    l->nframes = (unsigned)fitted.nframes;
    return CM_OK;
}

static int fit_frames(cm_load_run *l, cm_error *err)
{
    int rc = fit_frames_beside(l, err);
    while (rc == CM_EBUDGET && l->nslots > l->kept + 1) {
        l->nslots--;
        rc = fit_frames_beside(l, err);
    }
    for (unsigned i = 0; i < l->setting.ranks && rc == CM_OK; i++) {
        cm_block_order_release(&l->rank[i].order);
        l->rank[i].order_of = UINT64_MAX;
        rc = cm_block_order_make(&l->blocks, l->shape.window, &l->rank[i].order, err);
    }
    return rc;
}

/* Blocks as they were chosen before, or are chosen now. */
static int set_blocks(cm_load_run *l, cm_error *err)
{
    int rc = make_blocks(l, err);
    if (rc == CM_OK && l->shape.window == 0)
        choose_shape(l);
    else if (rc == CM_OK)
        cm_blocks_grow(&l->blocks, l->shape.grown);
    if (rc == CM_OK && l->shape.window > l->blocks.nblocks)
        rc = cm_fail(err, CM_EINVAL, "a window of %" PRIu64 " of %" PRIu64 " blocks",
                     l->shape.window, l->blocks.nblocks);
    return rc;
}

/* Of the arena. */
static uint64_t rank_nbytes(const cm_load_run *l)
{
    const uint64_t frames = l->setting.planned ? cm_mul_sat(l->nframes, l->blocks.frame_nbytes) : 0;
    return round_up(cm_add_sat(cm_mul_sat(l->nslots, l->slot_nbytes), frames), SLOT_ALIGN);
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
    l->slot_nbytes = round_up(nbytes, SLOT_ALIGN);
    int rc = cm_load_check_worker_memory(l, err);
    if (rc == CM_OK)
        rc = check_slot_size(l, err);
    l->fixed_nbytes = cm_add_sat(cm_load_workers_nbytes(l), l->other_nbytes(l->owner));
    if (rc == CM_OK && l->setting.planned)
        rc = set_blocks(l, err);
    if (rc == CM_OK)
        rc = fit_slots(l, err);
    if (rc == CM_OK && l->setting.planned)
        rc = fit_frames(l, err);
    if (rc != CM_OK)
        return rc;
    l->rank_nbytes = rank_nbytes(l);
    l->memory_free = cm_memory_available();
    const uint64_t arena = cm_mul_sat(l->setting.ranks, l->rank_nbytes);
    l->memory_planned = cm_add_sat(l->fixed_nbytes, arena);
    if (l->setting.planned)
        l->memory_planned =
            cm_add_sat(l->memory_planned,
                       cm_mul_sat(cm_mul_sat(l->setting.ranks, l->nframes), bookkeeping_nbytes(l)));
    /* Decoded chunks may be far more than an epoch ever needs. */
    return cm_arena_create(arena, l->setting.mode == CM_POOL_PROCESSES, !l->setting.planned,
                           &l->arena, err);
}
