/* Distinct chunks of a batch: chunks grouped by how many offsets meet them. */
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "plan/touch.h"

#define MAX_GROUPS (UINT64_C(1) << 22)

typedef struct group {
    uint64_t offsets; /* that meet each of these chunks */
    uint64_t nchunks;
} group;

typedef struct groups {
    group *list;
    size_t n;
    uint64_t total; /* offsets in all */
} groups;

typedef struct line { /* an axis, checked and prepared */
    uint64_t chunk, every, step, sample;
    int64_t last;   /* greatest offset that fits */
    int64_t window; /* length of the contiguous piece of the sample that is looked for */
} line;

/* Multiples of EVERY in [LOW, HIGH] cut to [0, last]. */
static uint64_t count_multiples(const line *l, int64_t low, int64_t high)
{
    low = low < 0 ? 0 : low;
    high = high > l->last ? l->last : high;
    if (high < low)
        return 0;
    int64_t every = (int64_t)l->every;
    return (uint64_t)(high / every - (low + every - 1) / every + 1);
}

/* Offsets whose sample meets chunk I. */
static uint64_t count_meeting(const line *l, uint64_t i)
{
    int64_t start = (int64_t)(i * l->chunk), end = start + (int64_t)l->chunk - 1;

    if (l->step <= l->chunk)
        return count_multiples(l, start - l->window + 1, end);
    /* Elements lie further apart than a chunk is long: at most one falls in. */
    uint64_t n = 0;
    for (uint64_t k = 0; k < l->sample; k++) {
        int64_t shift = (int64_t)(k * l->step);
        if (shift > end)
            break;
        n += count_multiples(l, start - shift, end - shift);
    }
    return n;
}

static int compare_groups(const void *a, const void *b)
{
    const group *x = a, *y = b;
    return (x->offsets > y->offsets) - (x->offsets < y->offsets);
}

static void merge_equal(groups *g)
{
    size_t last = 0;

    qsort(g->list, g->n, sizeof *g->list, compare_groups);
    for (size_t i = 1; i < g->n; i++) {
        if (g->list[i].offsets == g->list[last].offsets)
            g->list[last].nchunks += g->list[i].nchunks;
        else
            g->list[++last] = g->list[i];
    }
    g->n = g->n == 0 ? 0 : last + 1;
}

static int group_axis(const cm_touch_axis *a, groups *g, cm_error *err)
{
    uint64_t nchunks = cm_div_ceil(a->length, a->chunk);
    uint64_t inner_from = nchunks,
             inner_to = nchunks; /* chunks of equal count, away from the edges */
    line l = {a->chunk, 1, a->step, a->sample, 0, 0};

    if (a->align != CM_ALIGN_RANDOM)
        l.every = a->align == CM_ALIGN_CHUNK ? a->chunk : a->every;
    l.window = (int64_t)((a->sample - 1) * a->step + 1);
    l.last = (int64_t)a->length - l.window;
    g->total = (uint64_t)l.last / l.every + 1;
    if (l.step <= l.chunk && l.chunk % l.every == 0) {
        uint64_t from = cm_div_ceil((uint64_t)l.window - 1, a->chunk);
        uint64_t to = ((uint64_t)l.last + 1) / a->chunk;
        if (to > from) {
            inner_from = from;
            inner_to = to;
        }
    }
    uint64_t single = nchunks - (inner_to - inner_from);
    uint64_t work = l.step <= l.chunk ? 1 : a->sample;
    if (single > MAX_GROUPS / work)
        return cm_fail(err, CM_EUNSUPPORTED, "too many chunks to count one by one");
    g->list = cm_calloc(single + 1, sizeof *g->list, err);
    if (g->list == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < nchunks; i++) {
        group one = {count_meeting(&l, i), 1};
        if (i == inner_from) {
            one.nchunks = inner_to - inner_from;
            i = inner_to - 1;
        }
        g->list[g->n++] = one;
    }
    merge_equal(g);
    return CM_OK;
}

/* The sum over all combinations of groups from dimension J on. */
static double sum_from(const groups *g, unsigned rank, unsigned j, double p, double nchunks,
                       double batch)
{
    double sum = 0;

    if (j == rank)
        return nchunks * (p >= 1 ? 1 : -expm1(batch * log1p(-p)));
    for (size_t i = 0; i < g[j].n; i++)
        if (g[j].list[i].offsets != 0)
            sum += sum_from(g, rank, j + 1, p * ((double)g[j].list[i].offsets / (double)g[j].total),
                            nchunks * (double)g[j].list[i].nchunks, batch);
    return sum;
}

int cm_touch_batch(unsigned rank, const cm_touch_axis *axis, uint64_t batch, double *nchunks,
                   cm_error *err)
{
    groups g[CM_MAX_RANK] = {{0}};
    uint64_t combinations = 1;
    bool endless = false;
    double mean = 1;
    int rc = CM_OK;

    if (rank > CM_MAX_RANK)
        return cm_fail(err, CM_EINVAL, "%u dimensions are too many", rank);
    for (unsigned j = 0; j < rank; j++) {
        cm_touch_count count;
        if (axis[j].cuts != NULL)
            return cm_fail(err, CM_EUNSUPPORTED, "chunks of several lengths are not counted");
        rc = cm_touch_count_axis(&axis[j], &count, err);
        if (rc != CM_OK)
            return rc;
        mean *= cm_touch_mean(&axis[j]);
        endless = endless || axis[j].length == 0;
    }
    if (endless) {
        *nchunks = mean * (double)batch;
        return CM_OK;
    }
    for (unsigned j = 0; j < rank && rc == CM_OK; j++) {
        rc = group_axis(&axis[j], &g[j], err);
        if (rc == CM_OK &&
            (!cm_mul_u64(combinations, g[j].n, &combinations) || combinations > MAX_GROUPS))
            rc = cm_fail(err, CM_EUNSUPPORTED, "too many groups of chunks to count a batch");
    }
    if (rc == CM_OK)
        *nchunks = sum_from(g, rank, 0, 1, 1, (double)batch);
    for (unsigned j = 0; j < rank; j++)
        free(g[j].list);
    return rc;
}
