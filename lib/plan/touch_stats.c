/* From counts along each dimension to statistics of the whole read. */
#include <stdlib.h>
#include <string.h>

#include "plan/touch.h"

typedef unsigned __int128 u128;

enum {
    MAX_OUTCOMES = 1 << 20
};

/* Probabilities are sums of products of ratios of 62-bit counts: this covers their rounding. */
#define SLACK 1e-14L

typedef struct outcome {
    uint64_t chunks, shards;
    long double p;
} outcome;

static int compare_outcomes(const void *a, const void *b)
{
    const outcome *x = a, *y = b;
    if (x->chunks != y->chunks)
        return x->chunks < y->chunks ? -1 : 1;
    if (x->shards != y->shards)
        return x->shards < y->shards ? -1 : 1;
    return 0;
}

static int compare_requests(const void *a, const void *b)
{
    const outcome *x = a, *y = b;
    uint64_t rx = x->chunks + x->shards, ry = y->chunks + y->shards;
    return (rx > ry) - (rx < ry);
}

static size_t merge_equal(outcome *list, size_t n)
{
    size_t last = 0;

    qsort(list, n, sizeof *list, compare_outcomes);
    for (size_t i = 1; i < n; i++) {
        if (compare_outcomes(&list[last], &list[i]) == 0)
            list[last].p += list[i].p;
        else
            list[++last] = list[i];
    }
    return n == 0 ? 0 : last + 1;
}

/* LIST (N outcomes) times what one more dimension brings; *out is new. */
static int multiply(const outcome *list, size_t n, const cm_touch_count *count, outcome **out,
                    size_t *nout, cm_error *err)
{
    outcome *next;
    size_t k = 0;

    if (n > MAX_OUTCOMES)
        return cm_fail(err, CM_EUNSUPPORTED, "the distribution has more than 2^20 distinct values");
    next = cm_calloc(n * 4, sizeof *next, err);
    if (next == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++)
        for (int w = 0; w < 4; w++) {
            uint64_t weight = count->weight[w >> 1][w & 1];
            if (weight == 0)
                continue;
            u128 chunks = (u128)list[i].chunks * (count->chunks + (unsigned)(w >> 1));
            u128 shards = (u128)list[i].shards * (count->shards + (unsigned)(w & 1));
            if (chunks + shards > UINT64_MAX) {
                free(next);
                return cm_fail(err, CM_EINVAL, "a read would meet more than 2^64 chunks");
            }
            next[k].chunks = (uint64_t)chunks;
            next[k].shards = (uint64_t)shards;
            next[k++].p = list[i].p * ((long double)weight / (long double)count->total);
        }
    *nout = merge_equal(next, k);
    *out = next;
    return CM_OK;
}

typedef enum what {
    CHUNKS,
    SHARDS,
    REQUESTS
} what;

static uint64_t value_of(const outcome *o, what w)
{
    return w == CHUNKS ? o->chunks : w == SHARDS ? o->shards : o->chunks + o->shards;
}

/* LIST is sorted by W. */
static cm_touch_stat summarise(const outcome *list, size_t n, what w, double mean)
{
    cm_touch_stat s = {.min = UINT64_MAX, .mean = mean};
    long double sum = 0;
    bool have50 = false, have95 = false;

    for (size_t i = 0; i < n; i++) {
        uint64_t v = value_of(&list[i], w);
        s.min = v < s.min ? v : s.min;
        s.max = v > s.max ? v : s.max;
        sum += list[i].p;
        if (!have50 && sum >= 0.5L - SLACK) {
            s.p50 = v;
            have50 = true;
        }
        if (!have95 && sum >= 0.95L - SLACK) {
            s.p95 = v;
            have95 = true;
        }
    }
    if (!have95)
        s.p95 = s.max;
    return s;
}

static int compare_shards(const void *a, const void *b)
{
    const outcome *x = a, *y = b;
    return (x->shards > y->shards) - (x->shards < y->shards);
}

static int finish(outcome *list, size_t n, bool sharded, u128 chunk_nbytes, double mean_chunks,
                  double mean_shards, cm_touch_stats *out, cm_error *err)
{
    memset(out, 0, sizeof *out);
    out->chunks = summarise(list, n, CHUNKS, mean_chunks);
    if (chunk_nbytes * out->chunks.max > UINT64_MAX)
        return cm_fail(err, CM_EINVAL, "a read would take more than 2^64 bytes");
    uint64_t nbytes = (uint64_t)chunk_nbytes;
    out->bytes.min = out->chunks.min * nbytes;
    out->bytes.max = out->chunks.max * nbytes;
    out->bytes.p50 = out->chunks.p50 * nbytes;
    out->bytes.p95 = out->chunks.p95 * nbytes;
    out->bytes.mean = mean_chunks * (double)nbytes;
    out->requests = out->chunks;
    if (!sharded)
        return CM_OK;
    qsort(list, n, sizeof *list, compare_shards);
    out->shards = summarise(list, n, SHARDS, mean_shards);
    qsort(list, n, sizeof *list, compare_requests);
    out->requests = summarise(list, n, REQUESTS, mean_chunks + mean_shards);
    return CM_OK;
}

/* ITEMSIZE times the chunk's lengths; false above 2^64. */
static bool chunk_size(unsigned rank, const cm_touch_axis *axis, uint64_t itemsize, u128 *nbytes)
{
    uint64_t total = itemsize;

    for (unsigned j = 0; j < rank; j++)
        if (!cm_mul_u64(total, axis[j].chunk, &total))
            return false;
    *nbytes = total;
    return true;
}

int cm_touch_read(unsigned rank, const cm_touch_axis *axis, uint64_t itemsize, cm_touch_stats *out,
                  cm_error *err)
{
    bool sharded = rank > 0 && axis[0].shard != 0;
    double mean_chunks = 1, mean_shards = sharded ? 1 : 0, runs = 1;
    unsigned along = rank; /* the last dimension that a shard has more than one chunk of */
    outcome *list = cm_calloc(1, sizeof *list, err), *next = NULL;
    size_t n = 1;
    u128 nbytes;
    int rc = CM_OK;

    if (list == NULL)
        return CM_ENOMEM;
    list[0] = (outcome){1, sharded ? 1 : 0, 1};
    for (unsigned j = 0; sharded && j < rank; j++)
        along = axis[j].shard > axis[j].chunk ? j : along;
    for (unsigned j = 0; j < rank; j++) {
        cm_touch_count count;
        if ((axis[j].shard != 0) != sharded) {
            rc = cm_fail(err, CM_EINVAL, "a shard needs a length in every dimension");
            goto out;
        }
        rc = cm_touch_count_axis(&axis[j], &count, err);
        if (rc != CM_OK)
            goto out;
        rc = multiply(list, n, &count, &next, &n, err);
        if (rc != CM_OK)
            goto out;
        free(list);
        list = next;
        double total = (double)count.total;
        const double chunks =
            (double)count.chunks + (double)(count.weight[1][0] + count.weight[1][1]) / total;
        const double shards =
            (double)count.shards + (double)(count.weight[0][1] + count.weight[1][1]) / total;
        mean_chunks *= chunks;
        mean_shards *= shards;
        runs *= j == along ? shards : chunks;
    }
    if (!chunk_size(rank, axis, itemsize, &nbytes))
        rc = cm_fail(err, CM_EINVAL, "a chunk exceeds 2^64 bytes");
    else
        rc = finish(list, n, sharded, nbytes, mean_chunks, mean_shards, out, err);
    if (rc == CM_OK)
        out->runs = sharded ? runs : mean_chunks;
out:
    free(list);
    return rc;
}
