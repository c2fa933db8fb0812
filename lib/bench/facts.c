#include "bench/facts.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "bench/rules.h"

typedef struct span { /* an epoch, all ranks */
    uint64_t start_ns, end_ns;
    uint64_t rss_nbytes; /* resident, its peak */
    size_t nlooks;
} span;

/* The epochs by their events; *OUT has *N of them, none without events. */
static int find_epochs(const cm_readbench_session *s, span **out, size_t *n, cm_error *err)
{
    uint32_t last = 0;

    *n = 0;
    for (size_t i = 0; i < s->nevents; i++)
        if (s->event[i].kind == CM_EVENT_EPOCH && s->event[i].epoch < s->nevents) {
            last = s->event[i].epoch > last ? s->event[i].epoch : last;
            *n = (size_t)last + 1;
        }
    *out = cm_calloc(*n + 1, sizeof(**out), err);
    if (*out == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < s->nevents; i++) {
        const cm_readbench_event *e = &s->event[i];
        if (e->kind != CM_EVENT_EPOCH || e->epoch >= *n)
            continue;
        span *epoch = &(*out)[e->epoch];
        if (epoch->end_ns == 0 || e->start_ns < epoch->start_ns)
            epoch->start_ns = e->start_ns;
        if (e->end_ns > epoch->end_ns)
            epoch->end_ns = e->end_ns;
    }
    return CM_OK;
}

/* The epoch of a sample of the machine; N: none. */
static size_t epoch_of(const span *epoch, size_t n, uint64_t at_ns)
{
    size_t e = 0;
    while (e < n && (at_ns < epoch[e].start_ns || at_ns > epoch[e].end_ns))
        e++;
    return e;
}

/*
 * Others take CPU time that this run would have used where no CPU was free, and much of it
 * memory bandwidth where they keep a quarter of the machine busy.
 */
static bool is_contended(double own, double other, unsigned ncpus)
{
    return other > CM_RULE_OTHERS * ncpus ||
           (other > CM_RULE_OTHERS_FULL * ncpus && own + other > CM_RULE_FULL * ncpus);
}

static void look_at_cores(const cm_readbench_session *s, const span *epoch, size_t nepochs,
                          cm_readbench_facts *out)
{
    size_t nlooks = 0, one = 0, all = 0;
    double busy_cpus = 0, own = 0;

    for (size_t i = 0; i < s->nlooks; i++) {
        const cm_readbench_look *look = &s->look[i];
        unsigned busy = 0, idle = 0, loaded = 0;
        if (look->cpu == NULL || s->ncpus == 0 ||
            (nepochs > 0 && epoch_of(epoch, nepochs, look->at_ns) == nepochs))
            continue;
        for (unsigned c = 0; c < s->ncpus; c++) {
            busy += look->cpu[c] > CM_RULE_CORE_BUSY;
            idle += look->cpu[c] < CM_RULE_CORE_IDLE;
            loaded += look->cpu[c] > CM_RULE_ALL_BUSY;
            busy_cpus += (double)look->cpu[c];
        }
        nlooks++;
        own += (double)look->process_cpu;
        one += busy == 1 && idle > 0 && busy + idle == s->ncpus;
        all += loaded == s->ncpus;
    }
    if (nlooks == 0)
        return;
    out->one_core = (double)one / (double)nlooks;
    out->all_cores = (double)all / (double)nlooks;
    out->own_cpus = own / (double)nlooks;
    const double other = busy_cpus / (double)nlooks - out->own_cpus;
    out->other_cpus = other > 0 ? other : 0;
    out->contended =
        nlooks >= CM_RULE_LEAST_LOOKS && is_contended(out->own_cpus, out->other_cpus, s->ncpus);
}

/* True when each of N epochs has clearly more than the one before, and enough in all. */
static bool always_rises(const span *epoch, size_t n, cm_readbench_facts *out)
{
    for (size_t i = 0; i < n; i++)
        if (epoch[i].nlooks == 0 ||
            (i > 0 && (double)epoch[i].rss_nbytes <=
                          (double)epoch[i - 1].rss_nbytes * (1 + CM_RULE_EPOCH_GROWTH)))
            return false;
    /* The first epoch allocates what the others use. */
    out->grew_from = epoch[1].rss_nbytes;
    out->grew_to = epoch[n - 1].rss_nbytes;
    return out->grew_to - out->grew_from > CM_RULE_GROWTH_NBYTES;
}

static void follow_epochs(const cm_readbench_session *s, span *epoch, size_t n,
                          cm_readbench_facts *out)
{
    for (size_t i = 0; i < s->nlooks; i++) {
        const size_t e = epoch_of(epoch, n, s->look[i].at_ns);
        if (e == n)
            continue;
        epoch[e].nlooks++;
        if (s->look[i].rss_nbytes > epoch[e].rss_nbytes)
            epoch[e].rss_nbytes = s->look[i].rss_nbytes;
    }
    out->grows = always_rises(epoch, n, out);
}

static void compare_stages(const cm_readbench_session *s, cm_readbench_facts *out)
{
    double total = 0;

    out->largest_stage = -1;
    for (int k = 0; k < CM_READBENCH_STAGES; k++)
        total += s->stage[k].total;
    if (total <= 0)
        return;
    out->largest_stage = 0;
    for (int k = 0; k < CM_READBENCH_STAGES; k++) {
        out->stage_share[k] = s->stage[k].total / total;
        if (s->stage[k].total > s->stage[out->largest_stage].total)
            out->largest_stage = k;
    }
}

/*
 * Threads that wait for an emulated storage or a disk need no CPU; the rest of the loader's time
 * may be longer by the CPU share of other programs.
 */
static void blame_others(const cm_readbench_session *s, cm_readbench_facts *out)
{
    const bool cached = !s->emulated && s->resident_after > CM_RULE_RESIDENT;
    const double on_cpus = cached ? 1 : 1 - out->stage_share[0];
    if (out->contended)
        out->others_explain = on_cpus * fmin(1, out->other_cpus / s->ncpus);
}

/* Bytes decoded for a sample against those of the best chunks. */
static void compare_chunks(const cm_readbench_session *s, cm_readbench_facts *out)
{
    const double best = s->predicted.best_decoded_nbytes * (double)s->counts.samples;
    const double now = s->predicted.read_seconds, then = s->predicted.best_read_seconds;
    if (best > 0)
        out->excess = (double)s->counts.decoded_nbytes / best;
    out->spared = now > 0 && then > 0 ? 1 - then / now : -1;
}

int cm_readbench_facts_find(const cm_readbench_session *s, cm_readbench_facts *out, cm_error *err)
{
    span *epoch;
    size_t nepochs;

    *out = (cm_readbench_facts){.nthreads = (uint64_t)s->pool_workers * s->worker_threads,
                                .own_cpus = -1,
                                .other_cpus = -1};
    int rc = find_epochs(s, &epoch, &nepochs, err);
    if (rc != CM_OK)
        return rc;
    compare_stages(s, out);
    compare_chunks(s, out);
    look_at_cores(s, epoch, nepochs, out);
    blame_others(s, out);
    if (nepochs >= CM_RULE_EPOCHS)
        follow_epochs(s, epoch, nepochs, out);
    free(epoch);
    return CM_OK;
}
