#include "plan/touch.h"

#include <inttypes.h>

#include "base/number.h"

typedef unsigned __int128 u128;

#define MAX_LENGTH (UINT64_C(1) << 62) /* sums of two lengths fit a signed 64-bit number */
#define MAX_STEPS  (UINT64_C(1) << 24)

/*
 * The reduction of Euclid's algorithm on the lines below a lattice; oracle/chunk_maths.py has
 * it in short.
 */
u128 cm_floor_sum(uint64_t n, uint64_t m, uint64_t a, uint64_t b)
{
    u128 total = 0;

    while (n > 0) {
        total += (u128)n * (n - 1) / 2 * (a / m);
        a %= m;
        total += (u128)n * (b / m);
        b %= m;
        u128 y = (u128)a * n + b;
        if (y < m)
            break;
        uint64_t old_m = m;
        n = (uint64_t)(y / m);
        b = (uint64_t)(y % m);
        m = a;
        a = old_m;
    }
    return total;
}

/* How many of the offsets 0, every, ..., (n-1)*every have offset mod c >= c - b; b < c. */
static uint64_t count_crossing(uint64_t n, uint64_t c, uint64_t every, uint64_t b)
{
    if (every == 1) {
        uint64_t rest = n % c;
        return n / c * b + (rest > c - b ? rest - (c - b) : 0);
    }
    /* floor((x + b) / c) - floor(x / c) is 1 exactly there. */
    return (uint64_t)(cm_floor_sum(n, c, every % c, b) - cm_floor_sum(n, c, every % c, 0));
}

/* A window on a grid of C: BASE units are met, one more where offset mod C >= C - rest. */
typedef struct grid_view {
    uint64_t c, base, rest;
} grid_view;

static grid_view view(const cm_touch_axis *a, uint64_t c)
{
    if (a->step > c)
        return (grid_view){c, a->sample, 0};
    uint64_t span = (a->sample - 1) * a->step;
    return (grid_view){c, span / c + 1, span % c};
}

static uint64_t every_of(const cm_touch_axis *a)
{
    switch (a->align) {
    case CM_ALIGN_CHUNK:
        return a->chunk;
    case CM_ALIGN_EVERY:
        return a->every;
    case CM_ALIGN_RANDOM:
        break;
    }
    return 1;
}

int cm_touch_check_axis(const cm_touch_axis *a, cm_error *err)
{
    uint64_t span;

    if (a->sample == 0 || a->step == 0 || a->chunk == 0 ||
        (a->align == CM_ALIGN_EVERY && a->every == 0))
        return cm_fail(err, CM_EINVAL, "sample, step, chunk and alignment must be at least 1");
    if (a->length > MAX_LENGTH || a->chunk > MAX_LENGTH || a->shard > MAX_LENGTH ||
        (a->align == CM_ALIGN_EVERY && a->every > MAX_LENGTH))
        return cm_fail(err, CM_EINVAL, "a length exceeds 2^62");
    if (!cm_mul_u64(a->sample - 1, a->step, &span) || span >= MAX_LENGTH)
        return cm_fail(err, CM_EINVAL, "the sample spans more than 2^62 elements");
    if (a->length != 0 && span >= a->length)
        return cm_fail(err, CM_EINVAL,
                       "the sample spans %" PRIu64 " elements, the array has only %" PRIu64,
                       span + 1, a->length);
    if (a->shard % a->chunk != 0)
        return cm_fail(err, CM_EINVAL,
                       "the shard length %" PRIu64
                       " is not a multiple of the chunk length %" PRIu64,
                       a->shard, a->chunk);
    return CM_OK;
}

/* Offsets that are looked at: all that fit, or one period of an endless array. */
static uint64_t count_offsets(const cm_touch_axis *a, uint64_t every)
{
    if (a->length != 0)
        return (a->length - 1 - (a->sample - 1) * a->step) / every + 1;
    uint64_t unit = a->shard != 0 ? a->shard : a->chunk;
    return unit / cm_gcd_u64(unit, every % unit);
}

/*
 * How many of the first N offsets meet one more chunk and one more shard.  A
 * period of offsets is the multiples of g = gcd(every, shard) below the shard's
 * length, in some order; those that meet one more shard are its end, where the
 * chunks are counted as before.
 */
static int count_both(const grid_view *chunk, const grid_view *shard, uint64_t n, uint64_t every,
                      uint64_t *both, cm_error *err)
{
    uint64_t g = cm_gcd_u64(shard->c, every % shard->c);
    uint64_t period = shard->c / g, rest = n % period;
    uint64_t from = cm_div_ceil(shard->c - shard->rest, g);
    uint64_t one = count_crossing(period, chunk->c, g, chunk->rest) -
                   count_crossing(from, chunk->c, g, chunk->rest);

    *both = n / period * one;
    if (every == 1) {
        if (rest > from)
            *both += count_crossing(rest, chunk->c, 1, chunk->rest) -
                     count_crossing(from, chunk->c, 1, chunk->rest);
        return CM_OK;
    }
    if (rest > MAX_STEPS)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "samples every %" PRIu64 " elements in shards of %" PRIu64
                       " take too long to count",
                       every, shard->c);
    for (uint64_t i = 0, at = 0; i < rest; i++) {
        if (at >= shard->c - shard->rest && at % chunk->c >= chunk->c - chunk->rest)
            ++*both;
        at = (uint64_t)(((u128)at + every) % shard->c);
    }
    return CM_OK;
}

int cm_touch_count_axis(const cm_touch_axis *axis, cm_touch_count *out, cm_error *err)
{
    int rc = cm_touch_check_axis(axis, err);

    if (rc != CM_OK)
        return rc;
    uint64_t every = every_of(axis);
    uint64_t n = count_offsets(axis, every);
    grid_view chunk = view(axis, axis->chunk);
    uint64_t more_chunks = count_crossing(n, chunk.c, every, chunk.rest);
    *out = (cm_touch_count){.chunks = chunk.base, .total = n};
    if (axis->shard == 0) {
        out->weight[0][0] = n - more_chunks;
        out->weight[1][0] = more_chunks;
        return CM_OK;
    }
    grid_view shard = view(axis, axis->shard);
    uint64_t more_shards = count_crossing(n, shard.c, every, shard.rest);
    uint64_t both = 0;
    if (more_chunks == n)
        both = more_shards;
    else if (more_shards == n)
        both = more_chunks;
    else if (more_chunks != 0 && more_shards != 0)
        rc = count_both(&chunk, &shard, n, every, &both, err);
    if (rc != CM_OK)
        return rc;
    out->shards = shard.base;
    out->weight[1][1] = both;
    out->weight[1][0] = more_chunks - both;
    out->weight[0][1] = more_shards - both;
    out->weight[0][0] = n - more_chunks - more_shards + both;
    return CM_OK;
}

double cm_touch_mean(const cm_touch_axis *axis)
{
    grid_view chunk = view(axis, axis->chunk);

    if (chunk.rest == 0)
        return (double)chunk.base;
    if (axis->length == 0 && axis->align == CM_ALIGN_RANDOM)
        return (double)chunk.base + (double)chunk.rest / (double)chunk.c;
    uint64_t every = every_of(axis);
    uint64_t n = count_offsets(axis, every);
    return (double)chunk.base + (double)count_crossing(n, chunk.c, every, chunk.rest) / (double)n;
}

double cm_touch_places_mean(const cm_touch_place *place, size_t n, uint64_t chunk)
{
    double sum = 0, weight = 0;

    for (size_t i = 0; i < n; i++) {
        const uint64_t last = place[i].first + (place[i].count - 1);
        sum += (double)place[i].weight * (double)(last / chunk - place[i].first / chunk + 1);
        weight += (double)place[i].weight;
    }
    return sum / weight;
}
