/* Growing lists of what happened, and statistics over them. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "bench/readbench.h"

int cm_bench_event(cm_bench *b, const cm_readbench_event *event, cm_error *err)
{
    cm_readbench_session *s = b->session;
    int rc = CM_GROW(s->event, s->nevents, err);
    if (rc == CM_OK)
        s->event[s->nevents++] = *event;
    return rc;
}

cm_readbench_batch *cm_bench_record(cm_bench_rank *r, cm_error *err)
{
    if (CM_GROW(r->record, r->nrecords, err) != CM_OK)
        return NULL;
    cm_readbench_batch *record = &r->record[r->nrecords++];
    memset(record, 0, sizeof *record);
    return record;
}

cm_readbench_sample *cm_bench_log(cm_bench_rank *r, cm_error *err)
{
    if (CM_GROW(r->logged, r->nlogged, err) != CM_OK)
        return NULL;
    cm_readbench_sample *sample = &r->logged[r->nlogged++];
    memset(sample, 0, sizeof *sample);
    return sample;
}

/*
 * The least value that at least SHARE of them do not exceed; NaN where none lies above it: so few
 * values say nothing of what happens that rarely.
 */
static double quantile(const double *sorted, size_t n, double share)
{
    const double at = ceil(share * (double)n);
    if (at >= (double)n && share > 0.5)
        return NAN;
    return sorted[at < 1 ? 0 : (size_t)at - 1];
}

cm_readbench_times cm_bench_times(double *seconds, size_t n)
{
    cm_readbench_times t = {.n = n};
    if (n == 0)
        return t;
    cm_sort_doubles(seconds, n);
    for (size_t i = 0; i < n; i++)
        t.total += seconds[i];
    t.mean = t.total / (double)n;
    t.p50 = quantile(seconds, n, 0.5);
    t.p95 = quantile(seconds, n, 0.95);
    t.p99 = quantile(seconds, n, 0.99);
    t.p999 = quantile(seconds, n, 0.999);
    t.max = seconds[n - 1];
    return t;
}

uint64_t cm_bench_since(const cm_bench *b, uint64_t at_ns)
{
    return at_ns > b->origin_ns ? at_ns - b->origin_ns : 0;
}

uint64_t cm_bench_now(const cm_bench *b)
{
    return cm_bench_since(b, cm_now_ns());
}
