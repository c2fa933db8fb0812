#include "plan/block_order.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "plan/shuffle.h"

int cm_block_order_make(const cm_blocks *blocks, uint64_t window, cm_block_order *out,
                        cm_error *err)
{
    *out = (cm_block_order){.blocks = blocks, .window = window};
    if (window < 1 || window > blocks->nblocks)
        return cm_fail(err, CM_EINVAL, "a window of %llu of %llu blocks",
                       (unsigned long long)window, (unsigned long long)blocks->nblocks);
    out->nsteps = blocks->nblocks - window + 1;
    out->id = cm_calloc(window, sizeof(out->id[0]), err);
    out->nsamples = out->id == NULL ? NULL : cm_calloc(window, sizeof(out->nsamples[0]), err);
    out->before = out->nsamples == NULL ? NULL : cm_calloc(window, sizeof(out->before[0]), err);
    return out->before != NULL ? CM_OK : CM_ENOMEM;
}

void cm_block_order_release(cm_block_order *o)
{
    free(o->id);
    free(o->nsamples);
    free(o->before);
    *o = (cm_block_order){0};
}

/* ---- steps ---- */

/* The steps in which block K is in the window: the first of them, and how many. */
static uint64_t steps_of(const cm_block_order *o, uint64_t k, uint64_t *first)
{
    const uint64_t last = k < o->nsteps - 1 ? k : o->nsteps - 1;
    *first = k < o->window ? 0 : k - o->window + 1;
    return last - *first + 1;
}

static uint64_t nsamples_of(const cm_block_order *o, uint64_t k)
{
    return o->nsamples[k % o->window];
}

/*
 * Samples of block K that come in the first I of its STEPS steps: as evenly as can be, and where
 * it has fewer samples than steps, at another phase than the other blocks.
 */
static uint64_t share_before(const cm_block_order *o, uint64_t k, uint64_t steps, uint64_t i)
{
    const uint64_t n = nsamples_of(o, k);
    const uint64_t phase = cm_mix64(o->step_key ^ o->id[k % o->window]) % steps;
    return n / steps * i + (n % steps * i + phase) / steps;
}

/* Samples of block K in front of STEP; those of one that has left the window: all. */
static uint64_t done_before(const cm_block_order *o, uint64_t k, uint64_t step)
{
    uint64_t first;
    const uint64_t steps = steps_of(o, k, &first);
    return step <= first ? 0 : share_before(o, k, steps, step - first);
}

static void look_at_block(cm_block_order *o)
{
    const uint64_t k = o->known++, at = k % o->window;
    o->id[at] = cm_permute(o->blocks->nblocks, o->block_key, k);
    o->nsamples[at] = cm_block_nsamples(o->blocks, o->id[at]);
}

/* The places of the step, whose blocks are known. */
static void count_step(cm_block_order *o)
{
    o->nplaces = 0;
    for (uint64_t i = 0; i < o->window; i++) {
        const uint64_t k = o->step + i;
        o->before[i] = o->nplaces;
        o->nplaces += done_before(o, k, o->step + 1) - done_before(o, k, o->step);
    }
}

static void next_step(cm_block_order *o)
{
    o->first += o->nplaces;
    o->step++;
    look_at_block(o);
    count_step(o);
}

static void restart(cm_block_order *o)
{
    o->step = o->first = o->known = 0;
    while (o->known < o->window)
        look_at_block(o);
    count_step(o);
}

/*
 * Passes over steps whose blocks all end in front of PLACE: then so do the steps, and nothing but
 * the sizes of the blocks has to be added up.
 */
static void skip_to(cm_block_order *o, uint64_t place)
{
    if (place - o->first < 2 * o->nplaces || o->step + 1 >= o->nsteps)
        return;
    uint64_t whole = o->first; /* places of all blocks that are known, were they served whole */
    for (uint64_t k = o->step; k < o->known; k++)
        whole += nsamples_of(o, k) - done_before(o, k, o->step);
    uint64_t passed = o->step;
    while (passed + 1 < o->nsteps && whole <= place) {
        look_at_block(o);
        whole += nsamples_of(o, o->known - 1);
        passed++;
    }
    o->step = passed;
    o->first = whole;
    for (uint64_t k = o->step; k < o->known; k++)
        o->first -= nsamples_of(o, k) - done_before(o, k, o->step);
    count_step(o);
}

void cm_block_order_begin(cm_block_order *o, uint64_t seed, uint64_t epoch)
{
    o->block_key = cm_shuffle_key(seed, epoch, CM_SHUFFLE_BLOCKS);
    o->within_key = cm_shuffle_key(seed, epoch, CM_SHUFFLE_WITHIN_BLOCKS);
    o->step_key = cm_shuffle_key(seed, epoch, CM_SHUFFLE_STEPS);
    restart(o);
}

/* ---- places ---- */

/* The last block of the window that begins at or in front of place I of the step. */
static uint64_t find_block(const cm_block_order *o, uint64_t i)
{
    uint64_t low = 0, high = o->window;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (o->before[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The number in C order of all samples of sample I of block ID. */
static uint64_t number_in_space(const cm_blocks *b, uint64_t id, uint64_t i)
{
    uint64_t first[CM_MAX_RANK], n[CM_MAX_RANK], number = 0, scale = 1;
    cm_block_positions(b, id, first, n);
    for (unsigned j = b->space->rank; j-- > 0; i /= n[j], scale *= b->space->count[j])
        number += (first[j] + i % n[j]) * scale;
    return number;
}

void cm_block_order_at(cm_block_order *o, uint64_t place, cm_block_sample *out)
{
    if (place < o->first)
        restart(o);
    skip_to(o, place);
    while (place - o->first >= o->nplaces)
        next_step(o);
    const uint64_t i = cm_permute(o->nplaces, cm_mix64(o->step_key + o->step), place - o->first);
    const uint64_t in_window = find_block(o, i), k = o->step + in_window;
    const uint64_t id = o->id[k % o->window];
    const uint64_t within = done_before(o, k, o->step) + (i - o->before[in_window]);
    const uint64_t sample = cm_permute(nsamples_of(o, k), cm_mix64(o->within_key + id), within);
    *out = (cm_block_sample){.number = number_in_space(o->blocks, id, sample), .block = k};
}

double cm_block_order_mixed(const cm_blocks *blocks, uint64_t window, uint64_t n)
{
    const double w = (double)(window < blocks->nblocks ? window : blocks->nblocks);
    return w * (1 - pow(1 - 1 / w, (double)n));
}
