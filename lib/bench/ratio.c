/* The rate of a setting, and how several stores compare that were measured in turn, by epochs. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "bench/tune.h"

double cm_readbench_rate(const cm_readbench_session *s)
{
    double round[CM_READBENCH_ROUNDS];
    if (s->nrounds == 0)
        return s->rates.samples;
    memcpy(round, s->round, sizeof(round));
    cm_sort_doubles(round, s->nrounds);
    return (round[(s->nrounds - 1) / 2] + round[s->nrounds / 2]) / 2;
}

/* Samples a second of EPOCH, from the first one wanted to the last one's step. */
static double epoch_rate(const cm_readbench_session *s, uint32_t epoch)
{
    double samples = 0;
    uint64_t from = UINT64_MAX, to = 0;
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *r = &s->record[i];
        if (r->epoch != epoch)
            continue;
        to = r->done_ns > to ? r->done_ns : to;
        from = r->want_ns < from ? r->want_ns : from;
        samples += r->failed ? 0 : r->nsamples;
    }
    return to > from && from != UINT64_MAX ? samples / ((double)(to - from) / 1e9) : 0;
}

/* PAIR has room for the epochs. */
static void compare_with_first(const cm_readbench_options *o, cm_readbench_report *r, size_t i,
                               double *pair)
{
    size_t n = 0;
    for (uint32_t e = 0; e < o->epochs; e++) {
        const double base = epoch_rate(&r->session[0], e);
        const double rate = epoch_rate(&r->session[i], e);
        if (base > 0 && rate > 0)
            pair[n++] = rate / base;
    }
    cm_sort_doubles(pair, n);
    if (n > 0) {
        r->ratio[i] = (pair[(n - 1) / 2] + pair[n / 2]) / 2;
        r->least_ratio[i] = pair[0];
        r->most_ratio[i] = pair[n - 1];
    }
    /* Stores measured one after the other have no pairs of epochs. */
    if ((o->tune || o->npoints > 0) && r->session[0].rates.samples > 0)
        r->ratio[i] = r->least_ratio[i] = r->most_ratio[i] =
            cm_readbench_rate(&r->session[i]) / cm_readbench_rate(&r->session[0]);
}

/* The session with the highest ratio to the first, or the first itself. */
static size_t fastest(const cm_readbench_report *r)
{
    size_t best = 0;
    for (size_t i = 1; i < r->nsessions; i++)
        if (r->ratio[i] > r->ratio[best])
            best = i;
    return best;
}

/* "weather.zarr: 2.9 times the samples a second of weather.nc (2.7 to 3.1 in 3 rounds)". */
static char *headline(const cm_readbench_options *o, const cm_readbench_report *r, cm_error *err)
{
    const size_t best = fastest(r), other = best != 0 ? 0 : 1;
    const char *name = r->session[best].label, *than = r->session[other].label;
    /* All ratios are to the first session; its own ratio to another is the inverse. */
    const bool turned = best == 0;
    const double ratio = turned ? 1 / r->ratio[other] : r->ratio[best];
    const double least = turned ? 1 / r->most_ratio[other] : r->least_ratio[best];
    const double most = turned ? 1 / r->least_ratio[other] : r->most_ratio[best];
    if (o->epochs > 1 && least <= 1)
        return cm_asprintf(err,
                           "%s and %s are equal within the spread: %.2f to %.2f times in %llu "
                           "rounds",
                           name, than, least, most, (unsigned long long)o->epochs);
    if (o->epochs > 1)
        return cm_asprintf(
            err, "%s: %.*f times the samples a second of %s (%.2f to %.2f in %llu rounds)", name,
            ratio < 10 ? 2 : 1, ratio, than, least, most, (unsigned long long)o->epochs);
    return cm_asprintf(
        err,
        "%s: %.*f times the samples a second of %s in one round, which says nothing of the spread",
        name, ratio < 10 ? 2 : 1, ratio, than);
}

static bool can_be_told(const cm_readbench_options *o, const cm_readbench_report *r)
{
    if (o->tune || o->npoints > 0 || r->nsessions < 2)
        return false;
    for (size_t i = 0; i < r->nsessions; i++)
        if (!(r->ratio[i] > 0) || r->session[i].counts.failed_batches > 0)
            return false;
    return true;
}

int cm_readbench_compare_sessions(const cm_readbench_options *o, cm_readbench_report *r,
                                  cm_error *err)
{
    double *pair = cm_calloc(o->epochs, sizeof *pair, err);
    r->ratio = cm_calloc(r->nsessions + 1, sizeof *r->ratio, err);
    r->least_ratio = cm_calloc(r->nsessions + 1, sizeof *r->least_ratio, err);
    r->most_ratio = cm_calloc(r->nsessions + 1, sizeof *r->most_ratio, err);
    int rc = pair == NULL || r->ratio == NULL || r->least_ratio == NULL || r->most_ratio == NULL
                 ? CM_ENOMEM
                 : CM_OK;
    for (size_t i = 0; i < r->nsessions && rc == CM_OK; i++)
        compare_with_first(o, r, i, pair);
    free(pair);
    if (rc == CM_OK && can_be_told(o, r) && (r->reason = headline(o, r, err)) == NULL)
        rc = CM_ENOMEM;
    return rc;
}
