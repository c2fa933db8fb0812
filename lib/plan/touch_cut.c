/*
 * Counts chunks of several lengths.  The numbers of the first and of the last chunk of a window
 * change only where one of its ends passes from chunk to chunk, so that the offsets between two
 * such places are counted together.
 */
#include "plan/touch_cut.h"

#include <stdlib.h>

#include "base/number.h"

#define MAX_STEPS (UINT64_C(1) << 24)

/* ---- outcomes ---- */

static int compare_outcomes(const void *a, const void *b)
{
    const cm_touch_outcome *x = a, *y = b;
    if (x->chunks != y->chunks)
        return x->chunks < y->chunks ? -1 : 1;
    if (x->shards != y->shards)
        return x->shards < y->shards ? -1 : 1;
    return (x->nelem > y->nelem) - (x->nelem < y->nelem);
}

size_t cm_touch_merge(cm_touch_outcome *list, size_t n)
{
    size_t last = 0;

    if (n == 0)
        return 0;
    qsort(list, n, sizeof *list, compare_outcomes);
    for (size_t i = 1; i < n; i++) {
        if (compare_outcomes(&list[last], &list[i]) == 0)
            list[last].p += list[i].p;
        else
            list[++last] = list[i];
    }
    return last + 1;
}

/* ---- chunks, or shards ---- */

/* Pieces of a dimension: CUTS, or LENGTH each. */
typedef struct pieces {
    const cm_cuts *cuts;
    uint64_t length; /* 0: there are none */
} pieces;

static uint64_t find(const pieces *p, uint64_t at)
{
    return p->cuts != NULL ? cm_cuts_find(p->cuts, at) : at / p->length;
}

static uint64_t first_of(const pieces *p, uint64_t k)
{
    return p->cuts != NULL ? cm_cuts_first(p->cuts, k) : k * p->length;
}

static uint64_t end_of(const pieces *p, uint64_t k)
{
    return p->cuts != NULL ? cm_cuts_end(p->cuts, k) : (k + 1) * p->length;
}

static uint64_t sum_of(const pieces *p, uint64_t lo, uint64_t hi)
{
    return p->cuts != NULL ? cm_cuts_sum(p->cuts, lo, hi) : (hi - lo) * p->length;
}

static uint64_t shortest_of(const pieces *p)
{
    return p->cuts != NULL ? cm_cuts_shortest(p->cuts) : p->length;
}

/* ---- counting ---- */

typedef struct counting {
    const cm_touch_axis *axis;
    pieces chunk, shard;
    uint64_t span; /* from the first element of a sample to its last */
    cm_touch_outcome *list;
    size_t n, room;
    uint64_t steps, total; /* offsets */
} counting;

static int add(counting *c, const cm_touch_outcome *o, uint64_t weight, cm_error *err)
{
    if (weight == 0)
        return CM_OK;
    if (c->n == c->room) {
        /* Few are different: only where that leaves no room the list grows. */
        c->n = cm_touch_merge(c->list, c->n);
        if (2 * c->n >= c->room) {
            cm_touch_outcome *more = cm_make_room(c->list, c->room, &c->room, sizeof(*more), 64);
            if (more == NULL)
                return cm_fail(err, CM_ENOMEM, "no memory to count chunks");
            c->list = more;
        }
    }
    c->list[c->n] = *o;
    c->list[c->n++].p = weight;
    c->total += weight;
    return CM_OK;
}

/* Offsets LO <= o < HI, within one chunk, at which a sample may lie. */
static uint64_t count_offsets(const counting *c, uint64_t lo, uint64_t hi)
{
    const cm_touch_axis *a = c->axis;
    if (a->align == CM_ALIGN_CHUNK)
        return first_of(&c->chunk, find(&c->chunk, lo)) == lo;
    return a->align == CM_ALIGN_EVERY ? cm_div_ceil(hi, a->every) - cm_div_ceil(lo, a->every)
                                      : hi - lo;
}

/* The next offset behind O at which the window meets others of the pieces P. */
static uint64_t change(const pieces *p, uint64_t o, uint64_t span)
{
    const uint64_t first = end_of(p, find(p, o)), last = end_of(p, find(p, o + span));
    return cm_min_u64(first, last - span);
}

static int slow(cm_error *err)
{
    return cm_fail(err, CM_EUNSUPPORTED,
                   "chunks of several lengths take too long to count: there are too many");
}

/* Elements lie no further apart than any chunk is long: all chunks of the window are met. */
static int count_windows(counting *c, cm_error *err)
{
    const uint64_t end = c->axis->length - c->span;
    int rc = CM_OK;
    for (uint64_t o = 0, next; rc == CM_OK && o < end; o = next) {
        const uint64_t first = find(&c->chunk, o), behind = find(&c->chunk, o + c->span) + 1;
        cm_touch_outcome one = {.chunks = behind - first,
                                .nelem = sum_of(&c->chunk, first, behind)};
        if (++c->steps > MAX_STEPS)
            return slow(err);
        next = cm_min_u64(change(&c->chunk, o, c->span), end);
        if (c->shard.length > 0) {
            next = cm_min_u64(next, change(&c->shard, o, c->span));
            one.shards = find(&c->shard, o + c->span) - find(&c->shard, o) + 1;
        }
        rc = add(c, &one, count_offsets(c, o, next), err);
    }
    return rc;
}

static void meet(counting *c, uint64_t o, cm_touch_outcome *one)
{
    const cm_touch_axis *a = c->axis;
    uint64_t chunk = UINT64_MAX, shard = UINT64_MAX;
    *one = (cm_touch_outcome){0};
    for (uint64_t i = 0; i < a->sample; i++) {
        const uint64_t k = find(&c->chunk, o + i * a->step);
        if (k != chunk) {
            one->chunks++;
            one->nelem += sum_of(&c->chunk, k, k + 1);
        }
        chunk = k;
        if (c->shard.length == 0)
            continue;
        const uint64_t s = find(&c->shard, o + i * a->step);
        one->shards += s != shard;
        shard = s;
    }
}

/* Chunks between elements are left out: one offset after the other. */
static int count_elements(counting *c, cm_error *err)
{
    const uint64_t end = c->axis->length - c->span;
    int rc = CM_OK;
    for (uint64_t o = 0; rc == CM_OK && o < end; o++) {
        cm_touch_outcome one;
        if (count_offsets(c, o, o + 1) == 0)
            continue;
        if ((c->steps += c->axis->sample) > MAX_STEPS)
            return slow(err);
        meet(c, o, &one);
        rc = add(c, &one, 1, err);
    }
    return rc;
}

int cm_touch_cut_axis(const cm_touch_axis *axis, cm_touch_outcome **list, size_t *n, cm_error *err)
{
    counting c = {.axis = axis,
                  .chunk = {axis->cuts, axis->chunk},
                  .shard = {axis->shard_cuts, axis->shard},
                  .span = (axis->sample - 1) * axis->step};
    uint64_t shortest = shortest_of(&c.chunk);
    if (c.shard.length > 0)
        shortest = cm_min_u64(shortest, shortest_of(&c.shard));
    int rc = axis->step <= shortest ? count_windows(&c, err) : count_elements(&c, err);
    if (rc == CM_OK && c.total == 0)
        rc = cm_fail(err, CM_EINVAL, "no chunk begins where the sample still fits");
    if (rc != CM_OK) {
        free(c.list);
        return rc;
    }
    *n = cm_touch_merge(c.list, c.n);
    for (size_t i = 0; i < *n; i++)
        c.list[i].p /= (long double)c.total;
    *list = c.list;
    return CM_OK;
}
