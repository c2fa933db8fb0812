#include "bench/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "bench/cause.h"
#include "bench/propose.h"
#include "bench/sentence.h"
#include "bench/tune.h"

enum {
    SENTENCE_SIZE = 1024
};

static int add_finding(cm_readbench_session *s, const char *rule, const char *sentence,
                       cm_error *err)
{
    if (CM_GROW(s->finding, s->nfindings, err) != CM_OK)
        return CM_ENOMEM;
    cm_readbench_finding *f = &s->finding[s->nfindings++];
    f->rule = cm_strdup(rule, err);
    f->sentence = f->rule != NULL ? cm_strdup(sentence, err) : NULL;
    return f->sentence != NULL ? CM_OK : CM_ENOMEM;
}

/* ---- rules: each writes a sentence where it holds ------------------------------------------- */

typedef bool rule_holds(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                        size_t size);

static bool contended(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                      size_t size)
{
    snprintf(text, size,
             "contended: other programs kept %.1f of the %u CPUs busy, this run %.1f, which "
             "explains %.0f %% of the loader's time at most: its times are not those of this store "
             "alone",
             f->other_cpus, s->ncpus, f->own_cpus, f->others_explain * 100);
    return f->contended;
}

static bool loader_waits(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                         size_t size)
{
    snprintf(text, size, "steps waited %.0f %% of the time for data", s->wait_share * 100);
    return s->wait_share > CM_RULE_WAITS && !f->contended;
}

static bool io_bound(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                     size_t size)
{
    snprintf(text, size,
             "steps waited %.0f %% of the time, and storage took %.0f %% of the loader's: bound by "
             "I/O",
             s->wait_share * 100, f->stage_share[0] * 100);
    return s->wait_share > CM_RULE_IO_WAITS && f->stage_share[0] > CM_RULE_STORAGE &&
           !f->contended && !cm_readbench_by_library(s) && !cm_readbench_by_user(s);
}

/* Silent where more workers would not help. */
static bool one_core(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                     size_t size)
{
    char others[32] = "other was";
    if (s->ncpus != 2)
        snprintf(others, sizeof others, "other %u were", s->ncpus - 1);
    snprintf(text, size, "one CPU was busy above %.0f %% while the %s below %.0f %%",
             CM_RULE_CORE_BUSY * 100, others, CM_RULE_CORE_IDLE * 100);
    return f->one_core > CM_RULE_LOOKS && !f->contended &&
           (f->cause == CM_CAUSE_FEW_WORKERS || f->cause == CM_CAUSE_FEW_REQUESTS);
}

/* Silent where more workers help: then CPUs are busy beside the cause. */
static bool cpu_bound(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                      size_t size)
{
    snprintf(text, size,
             "all %u %s busy above %.0f %% with this loader and steps still waited %.0f %% "
             "of the time: more workers are no gain",
             s->ncpus, cm_of_count(s->ncpus, "CPU was", "CPUs were"), CM_RULE_ALL_BUSY * 100,
             s->wait_share * 100);
    return f->all_cores > CM_RULE_LOOKS && !f->contended &&
           (f->cause == CM_CAUSE_CPUS || f->cause == CM_CAUSE_CHUNK_SHAPE);
}

static bool memory_grows(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                         size_t size)
{
    char from[32], to[32];
    const bool caches = s->counts.cache_hits + s->counts.cache_misses > 0;
    snprintf(text, size, "resident memory rose with each epoch, from %s to %s: %s",
             cm_format_size(f->grew_from, from, sizeof(from)),
             cm_format_size(f->grew_to, to, sizeof(to)),
             caches ? "the cache still fills, or memory leaks" : "a leak, or a cache");
    return f->grows;
}

static bool amplification(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                          size_t size)
{
    if (f->excess > 0) {
        snprintf(text, size,
                 "%.1f bytes were decoded for each byte of a sample, %.1f times what the best "
                 "chunks for these samples would",
                 s->amplification[0], f->excess);
        return f->excess > CM_RULE_EXCESS && (f->spared < 0 || f->spared > CM_RULE_SPARED);
    }
    snprintf(text, size,
             "%.1f bytes were decoded for each byte of a sample: the chunks' shape does not suit "
             "these samples",
             s->amplification[0]);
    return s->amplification[0] > CM_RULE_AMPLIFICATION;
}

static bool decoded_again(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                          size_t size)
{
    const double samples = (double)s->counts.samples, shared = s->predicted.planned_per_sample;
    const double each = samples > 0 ? (double)s->counts.chunks / samples : 0;
    char many[32];
    (void)f;
    snprintf(many, sizeof(many), "%.3g", each);
    snprintf(
        text, size,
        "a sample decoded %s chunk%s for itself alone; with the planned loader, which decodes a "
        "chunk for all samples of a block and mixes blocks, it would be %s%.2g over a whole "
        "epoch, of which %.1f times the samples/s are foreseen; few batches gain less",
        many, strcmp(many, "1") == 0 ? "" : "s", shared < 0.01 ? "less than " : "",
        shared < 0.01 ? 0.01 : shared, s->proposal.planned_gain);
    return s->proposal.planned_gain >= 1 + CM_RULE_REWRITTEN;
}

/* Where residency is unknown, a store smaller than the free memory may be in the page cache. */
static bool fits_in_memory(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                           size_t size)
{
    char nbytes[32];
    const bool cold = cm_readbench_is_cold(s);
    const bool known = s->resident_after >= 0;
    (void)f;
    cm_format_size(s->store_nbytes, nbytes, sizeof(nbytes));
    if (known)
        snprintf(text, size,
                 "%.0f %% of the store's %s were in memory: this measured the page cache, not "
                 "storage",
                 s->resident_after * 100, nbytes);
    else
        snprintf(text, size,
                 "the store's %s fit in memory: this may have measured the page cache, not "
                 "storage",
                 nbytes);
    if (cold || s->store_nbytes == 0)
        return false;
    return known ? s->resident_after > CM_RULE_RESIDENT : s->store_nbytes < s->memory_free;
}

static bool missing_chunks(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                           size_t size)
{
    const cm_readbench_counts *c = &s->counts;
    (void)f;
    snprintf(text, size,
             "%" PRIu64 " of %" PRIu64 " %s met %s not stored: fill values cost no "
             "reading, and their bytes do not count as read",
             c->missing_chunks, c->chunks,
             cm_of_count(c->chunks, "chunk that was", "chunks that were"),
             cm_of_count(c->missing_chunks, "is", "are"));
    return c->missing_chunks > 0;
}

static bool failed_chunks(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                          size_t size)
{
    const cm_readbench_counts *c = &s->counts;
    (void)f;
    snprintf(text, size,
             "%" PRIu64 " chunk%s could not be read or decoded, %" PRIu64 " of %" PRIu64
             " %s failed%s%s",
             c->failed_chunks, cm_of_count(c->failed_chunks, "", "s"), c->failed_batches,
             c->batches, cm_of_count(c->batches, "batch", "batches"),
             s->first_failure != NULL ? ": " : "",
             s->first_failure != NULL ? s->first_failure : "");
    return c->failed_chunks > 0 || c->failed_batches > 0;
}

static bool workers_died(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                         size_t size)
{
    (void)f;
    snprintf(text, size, "workers died %" PRIu64 " %s and were started again", s->counts.deaths,
             cm_of_count(s->counts.deaths, "time", "times"));
    return s->counts.deaths > 0;
}

static bool validation(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                       size_t size)
{
    (void)f;
    snprintf(text, size, "validation found %" PRIu64 " difference%s %s", s->device.mismatches,
             cm_of_count(s->device.mismatches, "", "s"),
             s->device.used ? "on the device" : "from what the store holds");
    return s->device.mismatches > 0;
}

/* Threads that wait for storage, as behind a network, leave the CPUs to each other. */
static bool leave_cpus_idle(const cm_readbench_session *s, const cm_readbench_facts *f)
{
    const double own = s->wall_seconds > 0 ? s->cpu_seconds / s->wall_seconds : s->cpus;
    const double other = f->other_cpus > 0 ? f->other_cpus : 0;
    return f->stage_share[0] > CM_RULE_STORAGE && own + other < CM_RULE_IDLE * s->cpus;
}

static bool oversubscribed(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                           size_t size)
{
    snprintf(text, size,
             "%u worker%s with %u thread%s%s %s %" PRIu64 " threads on %u CPU%s: they take turns",
             s->pool_workers, cm_of_count(s->pool_workers, "", "s"), s->worker_threads,
             cm_of_count(s->worker_threads, "", "s"), cm_of_count(s->pool_workers, "", " each"),
             cm_of_count(s->pool_workers, "is", "are"), f->nthreads, s->cpus,
             cm_of_count(s->cpus, "", "s"));
    return s->cpus > 0 && f->nthreads > s->cpus && !leave_cpus_idle(s, f);
}

/* ---- their order ---------------------------------------------------------------------------- */

/* Ranks of rules: the share of the loader's time that they explain, or one of these. */
enum {
    WORTHLESS = 3, /* makes all other numbers worthless */
    FIRST = 2,
    GOOD_TO_KNOW = -1
};

typedef double rule_explains(const cm_readbench_session *s, const cm_readbench_facts *f);

static double explains_waits(const cm_readbench_session *s, const cm_readbench_facts *f)
{
    (void)s;
    (void)f;
    return 1;
}
/* First if contention is the cause; below any cause that lies in the data. */
static double explains_others(const cm_readbench_session *s, const cm_readbench_facts *f)
{
    (void)s;
    return f->cause == CM_CAUSE_CONTENTION ? FIRST : 0;
}
static double explains_storage(const cm_readbench_session *s, const cm_readbench_facts *f)
{
    (void)s;
    return f->stage_share[0];
}
static double explains_work(const cm_readbench_session *s, const cm_readbench_facts *f)
{
    (void)s;
    return f->largest_stage < 0 ? 0 : 1 - f->stage_share[0];
}

typedef struct rule {
    const char *name;
    rule_holds *holds;
    int place; /* where EXPLAINS is NULL */
    rule_explains *explains;
} rule;

static const rule rules[] = {
    {"failed-chunks", failed_chunks, WORTHLESS, NULL},
    {"validation", validation, WORTHLESS, NULL},
    {"workers-died", workers_died, WORTHLESS, NULL},
    {"contended", contended, 0, explains_others},
    {"loader-waits", loader_waits, 0, explains_waits},
    {"io-bound", io_bound, 0, explains_storage},
    {"amplification", amplification, 0, cm_readbench_shape_saves},
    {"decoded-again", decoded_again, 0, cm_readbench_shape_saves},
    {"one-core", one_core, 0, explains_work},
    {"cpu-bound", cpu_bound, 0, explains_work},
    {"oversubscribed", oversubscribed, 0, NULL},
    {"memory-grows", memory_grows, GOOD_TO_KNOW, NULL},
    {"fits-in-memory", fits_in_memory, GOOD_TO_KNOW, NULL},
    {"missing-chunks", missing_chunks, GOOD_TO_KNOW, NULL},
};

enum {
    NRULES = sizeof(rules) / sizeof(rules[0])
};

/* Rules by what they explain, the most first; those alike stay in the table's order. */
static void rank_rules(const cm_readbench_session *s, const cm_readbench_facts *f, size_t *order)
{
    double weight[NRULES];
    for (size_t r = 0; r < NRULES; r++) {
        weight[r] = rules[r].explains != NULL ? rules[r].explains(s, f) : rules[r].place;
        size_t at = r;
        for (; at > 0 && weight[order[at - 1]] < weight[r]; at--)
            order[at] = order[at - 1];
        order[at] = r;
    }
}

int cm_readbench_explain(cm_readbench_session *s, cm_error *err)
{
    char text[SENTENCE_SIZE];
    cm_readbench_facts facts;
    size_t order[NRULES];
    int rc = cm_readbench_facts_find(s, &facts, err);
    if (rc != CM_OK)
        return rc;
    facts.cause = cm_readbench_find_cause(s, &facts);
    s->cause = facts.cause;
    s->own_cpus = facts.own_cpus;
    s->other_cpus = facts.other_cpus;
    rc = cm_readbench_propose(s, &facts, &s->proposal, err);
    if (rc != CM_OK)
        return rc;
    rank_rules(s, &facts, order);
    for (size_t i = 0; i < NRULES && rc == CM_OK; i++)
        if (rules[order[i]].holds(s, &facts, text, sizeof(text)))
            rc = add_finding(s, rules[order[i]].name, text, err);
    if (rc != CM_OK)
        return rc;
    free(s->sentence);
    s->sentence = cm_readbench_sentence(s, &facts, err);
    return s->sentence != NULL ? CM_OK : CM_ENOMEM;
}

/* ---- more workers -------------------------------------------------------------------------- */

/* Settings that follow from the number of workers. */
static bool follows_workers(const char *name)
{
    static const char *const names[] = {"workers", "memory", "shuffle-window"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool same_but_workers(const cm_readbench_session *a, const cm_readbench_session *b)
{
    if (a->nsettings != b->nsettings || strcmp(a->store, b->store) != 0)
        return false;
    for (size_t i = 0; i < a->nsettings; i++)
        if (strcmp(a->setting[i].name, b->setting[i].name) != 0 ||
            (!follows_workers(a->setting[i].name) &&
             strcmp(a->setting[i].value, b->setting[i].value) != 0))
            return false;
    return true;
}

int cm_readbench_explain_workers(cm_readbench_session *session, size_t n, cm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        cm_readbench_session *s = &session[i];
        const cm_readbench_session *fewer = NULL;
        for (size_t j = 0; j < n; j++)
            if (session[j].workers < s->workers && same_but_workers(&session[j], s) &&
                (fewer == NULL || session[j].workers > fewer->workers))
                fewer = &session[j];
        if (fewer == NULL || cm_readbench_rate(fewer) <= 0)
            continue;
        const double gain = cm_readbench_rate(s) / cm_readbench_rate(fewer) - 1;
        if (gain >= CM_RULE_GAIN)
            continue;
        char text[SENTENCE_SIZE];
        snprintf(text, sizeof(text),
                 "%u worker%s gave %.1f %% %s samples/s than %u: saturated, more will not help",
                 s->workers, cm_of_count(s->workers, "", "s"), gain < 0 ? -gain * 100 : gain * 100,
                 gain < 0 ? "fewer" : "more", fewer->workers);
        int rc = add_finding(s, "saturated", text, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}
