/* From counts along each dimension to statistics of the whole read. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "plan/touch_cut.h"

typedef unsigned __int128 u128;

enum {
    MAX_OUTCOMES = 1 << 20
};

/* Probabilities are sums of products of ratios of 62-bit counts: this covers their rounding. */
#define SLACK 1e-14L

static int compare_requests(const void *a, const void *b)
{
    const cm_touch_outcome *x = a, *y = b;
    uint64_t rx = x->chunks + x->shards, ry = y->chunks + y->shards;
    return (rx > ry) - (rx < ry);
}

/* LIST (N outcomes) times the NALONG that one more dimension brings; *out is new. */
static int multiply(const cm_touch_outcome *list, size_t n, const cm_touch_outcome *along,
                    size_t nalong, cm_touch_outcome **out, size_t *nout, cm_error *err)
{
    size_t k = 0, all;

    if (n > MAX_OUTCOMES || !cm_mul_size(n, nalong, &all) || all > 4 * MAX_OUTCOMES)
        return cm_fail(err, CM_EUNSUPPORTED, "the distribution has more than 2^20 distinct values");
    cm_touch_outcome *next = cm_calloc(all, sizeof *next, err);
    if (next == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++)
        for (size_t w = 0; w < nalong; w++) {
            u128 chunks = (u128)list[i].chunks * along[w].chunks;
            u128 shards = (u128)list[i].shards * along[w].shards;
            u128 nelem = (u128)list[i].nelem * along[w].nelem;
            if (chunks + shards > UINT64_MAX || nelem > UINT64_MAX) {
                free(next);
                return cm_fail(err, CM_EINVAL, "a read would meet more than 2^64 %s",
                               chunks + shards > UINT64_MAX ? "chunks" : "elements");
            }
            next[k].chunks = (uint64_t)chunks;
            next[k].shards = (uint64_t)shards;
            next[k].nelem = (uint64_t)nelem;
            next[k++].p = list[i].p * along[w].p;
        }
    *nout = cm_touch_merge(next, k);
    *out = next;
    return CM_OK;
}

/* Means along one dimension, or of all together. */
typedef struct means {
    double chunks, shards, nelem;
} means;

/* The outcomes of chunks of one length. */
static int regular_axis(const cm_touch_axis *axis, cm_touch_outcome list[4], size_t *n, means *mean,
                        cm_error *err)
{
    cm_touch_count c;
    int rc = cm_touch_count_axis(axis, &c, err);
    if (rc != CM_OK)
        return rc;
    *n = 0;
    for (unsigned w = 0; w < 4; w++) {
        const uint64_t weight = c.weight[w >> 1][w & 1], chunks = c.chunks + (w >> 1);
        uint64_t nelem;
        if (weight == 0)
            continue;
        if (!cm_mul_u64(chunks, axis->chunk, &nelem))
            return cm_fail(err, CM_EINVAL, "a read would meet more than 2^64 elements");
        list[(*n)++] = (cm_touch_outcome){.chunks = chunks,
                                          .shards = c.shards + (w & 1),
                                          .nelem = nelem,
                                          .p = (long double)weight / (long double)c.total};
    }
    const double total = (double)c.total;
    mean->chunks = (double)c.chunks + (double)(c.weight[1][0] + c.weight[1][1]) / total;
    mean->shards = (double)c.shards + (double)(c.weight[0][1] + c.weight[1][1]) / total;
    mean->nelem = mean->chunks * (double)axis->chunk;
    return CM_OK;
}

static int cut_axis(const cm_touch_axis *axis, cm_touch_outcome **list, size_t *n, means *mean,
                    cm_error *err)
{
    long double chunks = 0, shards = 0, nelem = 0;
    int rc = cm_touch_check_axis(axis, err);
    if (rc == CM_OK)
        rc = cm_touch_cut_axis(axis, list, n, err);
    if (rc != CM_OK)
        return rc;
    for (size_t i = 0; i < *n; i++) {
        const cm_touch_outcome *o = &(*list)[i];
        chunks += o->p * (long double)o->chunks;
        shards += o->p * (long double)o->shards;
        nelem += o->p * (long double)o->nelem;
    }
    *mean = (means){(double)chunks, (double)shards, (double)nelem};
    return CM_OK;
}

typedef enum what {
    CHUNKS,
    SHARDS,
    REQUESTS,
    ELEMENTS
} what;

static uint64_t value_of(const cm_touch_outcome *o, what w)
{
    return w == CHUNKS     ? o->chunks
           : w == SHARDS   ? o->shards
           : w == ELEMENTS ? o->nelem
                           : o->chunks + o->shards;
}

/* LIST is sorted by W. */
static cm_touch_stat summarise(const cm_touch_outcome *list, size_t n, what w, double mean)
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
    const cm_touch_outcome *x = a, *y = b;
    return (x->shards > y->shards) - (x->shards < y->shards);
}

static int compare_elements(const void *a, const void *b)
{
    const cm_touch_outcome *x = a, *y = b;
    return (x->nelem > y->nelem) - (x->nelem < y->nelem);
}

static int finish(cm_touch_outcome *list, size_t n, bool sharded, uint64_t itemsize,
                  const means *mean, cm_touch_stats *out, cm_error *err)
{
    memset(out, 0, sizeof *out);
    out->chunks = summarise(list, n, CHUNKS, mean->chunks);
    out->requests = out->chunks;
    if (sharded) {
        qsort(list, n, sizeof *list, compare_shards);
        out->shards = summarise(list, n, SHARDS, mean->shards);
        qsort(list, n, sizeof *list, compare_requests);
        out->requests = summarise(list, n, REQUESTS, mean->chunks + mean->shards);
    }
    qsort(list, n, sizeof *list, compare_elements);
    out->bytes = summarise(list, n, ELEMENTS, mean->nelem * (double)itemsize);
    uint64_t *const bytes[] = {&out->bytes.min, &out->bytes.max, &out->bytes.p50, &out->bytes.p95};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (!cm_mul_u64(*bytes[i], itemsize, bytes[i]))
            return cm_fail(err, CM_EINVAL, "a read would take more than 2^64 bytes");
    return CM_OK;
}

/* ITEMSIZE times the chunk's lengths; false above 2^64. */
static bool chunk_size(unsigned rank, const cm_touch_axis *axis, uint64_t itemsize)
{
    for (unsigned j = 0; j < rank; j++)
        if (!cm_mul_u64(itemsize, axis[j].chunk, &itemsize))
            return false;
    return true;
}

/* Multiplies *LIST and *MEAN by what AXIS brings; *ALONG gets its own means. */
static int take_axis(const cm_touch_axis *axis, cm_touch_outcome **list, size_t *n, means *along,
                     cm_error *err)
{
    cm_touch_outcome regular[4], *cut = NULL, *next = NULL;
    const bool is_cut = axis->cuts != NULL || axis->shard_cuts != NULL;
    size_t count = 0;
    int rc = is_cut ? cut_axis(axis, &cut, &count, along, err)
                    : regular_axis(axis, regular, &count, along, err);
    if (rc == CM_OK)
        rc = multiply(*list, *n, is_cut ? cut : regular, count, &next, n, err);
    if (rc == CM_OK) {
        free(*list);
        *list = next;
    }
    if (is_cut && count > 0)
        free(cut);
    return rc;
}

int cm_touch_read(unsigned rank, const cm_touch_axis *axis, uint64_t itemsize, cm_touch_stats *out,
                  cm_error *err)
{
    bool sharded = rank > 0 && axis[0].shard != 0;
    means mean = {1, sharded ? 1 : 0, 1};
    double runs = 1;
    unsigned last = rank; /* the last dimension that a shard has more than one chunk of */
    cm_touch_outcome *list = cm_calloc(1, sizeof *list, err);
    size_t n = 1;
    int rc = list == NULL ? CM_ENOMEM : CM_OK;

    if (rc == CM_OK)
        list[0] = (cm_touch_outcome){.chunks = 1, .shards = sharded, .nelem = 1, .p = 1};
    for (unsigned j = 0; sharded && j < rank; j++)
        last = axis[j].shard > axis[j].chunk ? j : last;
    for (unsigned j = 0; rc == CM_OK && j < rank; j++) {
        means along = {0};
        if ((axis[j].shard != 0) != sharded)
            rc = cm_fail(err, CM_EINVAL, "a shard needs a length in every dimension");
        else
            rc = take_axis(&axis[j], &list, &n, &along, err);
        mean.chunks *= along.chunks;
        mean.shards *= along.shards;
        mean.nelem *= along.nelem;
        runs *= j == last ? along.shards : along.chunks;
    }
    if (rc == CM_OK && !chunk_size(rank, axis, itemsize))
        rc = cm_fail(err, CM_EINVAL, "a chunk exceeds 2^64 bytes");
    if (rc == CM_OK)
        rc = finish(list, n, sharded, itemsize, &mean, out, err);
    if (rc == CM_OK)
        out->runs = sharded ? runs : mean.chunks;
    free(list);
    return rc;
}
