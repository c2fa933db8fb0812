/* Which of several sessions is the best, why, and what it is called in PyTorch. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "bench/cause.h"
#include "bench/rules.h"
#include "bench/tune.h"

static double sample_nbytes(const cm_readbench_session *s)
{
    return s->batch > 0 ? (double)s->batch_nbytes / (double)s->batch : 0;
}

static bool is_candidate(const cm_readbench_session *s)
{
    return s->counts.failed_batches == 0 && s->device.mismatches == 0 && s->rates.samples > 0;
}

/* Samples of different sizes are compared by their bytes. */
static bool differ_in_size(const cm_readbench_session *session, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (sample_nbytes(&session[i]) != sample_nbytes(&session[0]))
            return true;
    return false;
}

/* The slowest round of S over its rate. */
static double slowest(const cm_readbench_session *s)
{
    double found = s->nrounds > 0 ? s->round[0] : s->rates.samples;
    for (unsigned i = 1; i < s->nrounds; i++)
        if (s->round[i] < found)
            found = s->round[i];
    return found / cm_readbench_rate(s);
}

static double rate_of(const cm_readbench_session *s, bool by_bytes)
{
    if (!is_candidate(s))
        return 0;
    return cm_readbench_rate(s) * (by_bytes ? sample_nbytes(s) : 1);
}

/* Whether the slower S equals TOP within the spread of the measurement. */
static bool is_alike(const cm_readbench_session *s, const cm_readbench_session *top, bool by_bytes)
{
    const double rate = rate_of(s, by_bytes), best = rate_of(top, by_bytes);
    if (rate >= best * (1 - CM_TUNE_NOISE))
        return true;
    return s->nrounds > 1 && top->nrounds > 1 && rate >= best * slowest(top);
}

/* DataLoader has no planned loader, and no workers with threads of their own. */
static bool is_a_data_loader(const cm_readbench_session *s)
{
    return !cm_readbench_is_planned(s) && (cm_readbench_is_sync(s) || s->worker_threads <= 1);
}

static uint64_t threads_of(const cm_readbench_session *s)
{
    return cm_readbench_is_sync(s) ? 0 : (uint64_t)s->pool_workers * s->worker_threads;
}

static bool is_cheaper(const cm_readbench_session *a, const cm_readbench_session *b)
{
    if (threads_of(a) != threads_of(b))
        return threads_of(a) < threads_of(b);
    return !cm_readbench_is_sync(a) && a->prefetch < b->prefetch;
}

static size_t fastest(const cm_readbench_session *session, size_t n, size_t but, bool by_bytes)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < n; i++)
        if (i != but && is_candidate(&session[i]) &&
            (found == SIZE_MAX ||
             rate_of(&session[i], by_bytes) > rate_of(&session[found], by_bytes)))
            found = i;
    return found;
}

size_t cm_readbench_best(const cm_readbench_session *session, size_t n)
{
    const bool by_bytes = differ_in_size(session, n);
    const size_t top = fastest(session, n, SIZE_MAX, by_bytes);
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < n && top != SIZE_MAX; i++) {
        if (!is_candidate(&session[i]) || !is_alike(&session[i], &session[top], by_bytes))
            continue;
        if (best == SIZE_MAX || is_cheaper(&session[i], &session[best]))
            best = i;
    }
    return best;
}

size_t cm_readbench_close(const cm_readbench_report *report, size_t *out, size_t most)
{
    const cm_readbench_session *session = report->session;
    const bool by_bytes = differ_in_size(session, report->nsessions);
    const size_t top = fastest(session, report->nsessions, SIZE_MAX, by_bytes);
    size_t n = 0;
    for (size_t i = 0; i < report->nsessions && top != SIZE_MAX; i++) {
        const double rate = rate_of(&session[i], by_bytes);
        if (rate < rate_of(&session[top], by_bytes) * (1 - CM_TUNE_CLOSE))
            continue;
        size_t at = n < most ? n++ : most;
        for (; at > 0 && rate > rate_of(&session[out[at - 1]], by_bytes); at--)
            if (at < most)
                out[at] = out[at - 1];
        if (at < most)
            out[at] = i;
    }
    return n > 1 ? n : 0;
}

/* ---- sentences ----------------------------------------------------------------------------- */

static char *rate_text(double rate, bool by_bytes, char *buf, size_t size)
{
    if (by_bytes)
        return cm_format_rate(rate, buf, size);
    snprintf(buf, size, rate < 100 ? "%.1f samples/s" : "%.0f samples/s", rate);
    return buf;
}

static char *sweep_reason(const cm_readbench_report *r, cm_error *err)
{
    const bool by_bytes = differ_in_size(r->session, r->nsessions);
    const cm_readbench_session *best = &r->session[r->best];
    const size_t other = fastest(r->session, r->nsessions, r->best, by_bytes);
    const double rate = rate_of(best, by_bytes);
    const bool repeated = best->nrounds > 1;
    char buf[48];

    rate_text(rate, by_bytes, buf, sizeof(buf));
    if (other == SIZE_MAX)
        return cm_asprintf(err, "%s gives %s, and nothing else could be measured", best->label,
                           buf);
    const cm_readbench_session *next = &r->session[other];
    const double gain = rate / rate_of(next, by_bytes) - 1;
    if (repeated && next->nrounds > 1 &&
        is_alike(gain < 0 ? best : next, gain < 0 ? next : best, by_bytes))
        return cm_asprintf(err, "%s gives %s; %s is as fast within the spread of %u rounds%s",
                           best->label, buf, next->label, best->nrounds,
                           is_cheaper(best, next) ? ", with more threads or batches" : "");
    if (gain < CM_TUNE_NOISE && is_cheaper(best, next))
        return cm_asprintf(err, "%s gives %s, within %.0f %% of %s and with less", best->label, buf,
                           CM_TUNE_NOISE * 100, next->label);
    if (gain < CM_TUNE_NOISE)
        return cm_asprintf(err, "%s gives %s, but %s is within %.0f %% of it", best->label, buf,
                           next->label, CM_TUNE_NOISE * 100);
    return cm_asprintf(err, "%s gives %s, %.0f %% more than the next, %s", best->label, buf,
                       gain * 100, next->label);
}

static char *tuning_reason(const cm_readbench_report *r, cm_error *err)
{
    const cm_readbench_session *best = &r->session[r->best];
    const cm_readbench_session *base = r->baseline == SIZE_MAX ? best : &r->session[r->baseline];
    char mine[48], theirs[48], waits[96] = "";
    const long before = lround(base->wait_share * 100), after = lround(best->wait_share * 100);

    rate_text(cm_readbench_rate(best), false, mine, sizeof(mine));
    rate_text(cm_readbench_rate(base), false, theirs, sizeof(theirs));
    if (after < before)
        snprintf(waits, sizeof(waits), ": steps wait %ld %% of the time instead of %ld %%", after,
                 before);
    if (r->best == r->baseline)
        return cm_asprintf(err,
                           "the baseline gives %s with steps waiting %.0f %% of the time, and none "
                           "of %zu other %s gains %.0f %%",
                           mine, base->wait_share * 100, r->nsessions - 1,
                           cm_of_count(r->nsessions - 1, "setting", "settings"),
                           CM_TUNE_NOISE * 100);
    if (!is_candidate(base))
        return cm_asprintf(err, "%s gives %s, the baseline failed", best->label, mine);
    return cm_asprintf(err, "%s gives %s, %.2f times the baseline's %s%s%s", best->label, mine,
                       cm_readbench_rate(best) / cm_readbench_rate(base), theirs, waits,
                       is_a_data_loader(best)
                           ? ""
                           : "; DataLoader cannot do this, its line is the best that it can");
}

/*
 * A few batches are not an epoch of the planned loader: where a whole one is foreseen to be faster
 * than the best that was measured, REASON goes on with that.  Takes REASON over.
 */
static char *with_whole_epoch(const cm_readbench_report *r, char *reason, cm_error *err)
{
    const cm_readbench_session *best = &r->session[r->best], *found = NULL;
    double most = cm_readbench_rate(best) * (1 + CM_RULE_GAIN);
    char first[48], whole[48];
    if (best->epoch_rate > most) {
        found = best;
        most = best->epoch_rate;
    }
    for (size_t i = 0; found != best && i < r->nsessions; i++)
        if (is_candidate(&r->session[i]) && r->session[i].epoch_rate > most) {
            found = &r->session[i];
            most = found->epoch_rate;
        }
    if (reason == NULL || found == NULL)
        return reason;
    rate_text(cm_readbench_rate(found), false, first, sizeof(first));
    rate_text(most, false, whole, sizeof(whole));
    char *all =
        cm_asprintf(err,
                    "%s; %s gave %s in these few batches, and would make up to %s over a whole "
                    "epoch, which decodes each chunk for all its samples",
                    reason, found->label, first, whole);
    free(reason);
    return all;
}

/* ---- PyTorch ------------------------------------------------------------------------------- */

/* Only a copy from page-locked memory runs beside the step. */
static bool is_gpu(const cm_readbench_session *s)
{
    return s->device.used && s->device.driver != NULL && s->device.driver[0] != '\0';
}

/*
 * Its constructor refuses prefetching and persistence without workers.  A process that has threads,
 * as one with CUDA or with an open store, is not forked safely: workers come from a server.
 */
char *cm_readbench_data_loader(const cm_readbench_session *s, cm_error *err)
{
    if (cm_readbench_is_sync(s))
        return cm_asprintf(err, "DataLoader(num_workers=0%s)",
                           is_gpu(s) ? ", pin_memory=True" : "");
    return cm_asprintf(err,
                       "DataLoader(num_workers=%u, prefetch_factor=%u, persistent_workers=%s, "
                       "multiprocessing_context=\"forkserver\"%s)",
                       s->workers, s->prefetch,
                       strcmp(cm_readbench_setting_of(s, "persistent"), "false") == 0 ? "False"
                                                                                      : "True",
                       is_gpu(s) ? ", pin_memory=True" : "");
}

/* The line is that of the best setting that was run and that PyTorch has; none was: no line. */
static int add_data_loader(cm_readbench_report *r, cm_error *err)
{
    size_t found = r->best;

    if (!is_a_data_loader(&r->session[found])) {
        double top = 0;
        found = SIZE_MAX;
        for (size_t i = 0; i < r->nsessions; i++)
            if (is_candidate(&r->session[i]) && is_a_data_loader(&r->session[i]) &&
                cm_readbench_rate(&r->session[i]) > top) {
                top = cm_readbench_rate(&r->session[i]);
                found = i;
            }
    }
    if (found == SIZE_MAX)
        return CM_OK;
    free(r->data_loader);
    r->data_loader = cm_readbench_data_loader(&r->session[found], err);
    return r->data_loader != NULL ? CM_OK : CM_ENOMEM;
}

/* ---- verdicts ------------------------------------------------------------------------------ */

static int judge(cm_readbench_report *r, char *(*reason)(const cm_readbench_report *, cm_error *),
                 cm_error *err)
{
    free(r->reason);
    r->reason = NULL;
    r->best = cm_readbench_best(r->session, r->nsessions);
    int rc = cm_readbench_explain_workers(r->session, r->nsessions, err);
    if (rc != CM_OK || r->best == SIZE_MAX)
        return rc;
    r->reason = with_whole_epoch(r, reason(r, err), err);
    if (r->reason == NULL)
        return CM_ENOMEM;
    return add_data_loader(r, err);
}

int cm_readbench_judge_sweep(cm_readbench_report *report, cm_error *err)
{
    report->baseline = SIZE_MAX;
    return judge(report, sweep_reason, err);
}

int cm_readbench_judge_tuning(cm_readbench_report *report, cm_error *err)
{
    return judge(report, tuning_reason, err);
}
