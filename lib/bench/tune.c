#include "bench/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/rules.h"

enum {
    USUAL_PREFETCH = 2, /* DataLoader's default; a shorter one cannot absorb a late batch */
    MAX_PREFETCH = 16,
    THREADS_PER_CPU = 4 /* reading threads: those that wait for storage leave the CPU to others */
};

/* Settings that tuning may change. */
typedef struct choice {
    unsigned workers; /* of a pool; 0: the step's own thread reads */
    unsigned worker_threads;
    unsigned prefetch;
    bool planned;
} choice;

typedef struct attempt {
    choice choice;
    size_t session; /* session of the report; SIZE_MAX: it could not be run */
    char label[96];
} attempt;

struct cm_tuner {
    const cm_readbench_options *options;
    attempt attempt[CM_TUNE_SETTINGS];
    size_t n;
    size_t close[CM_TUNE_MOST_TUNED]; /* attempts to be run again, in turn */
    size_t nclose, nagain;
    bool settled; /* close was found */
};

int cm_tuner_create(const cm_readbench_options *options, cm_tuner **out, cm_error *err)
{
    cm_tuner *tuner = cm_calloc(1, sizeof(*tuner), err);

    *out = tuner;
    if (tuner == NULL)
        return CM_ENOMEM;
    tuner->options = options;
    return CM_OK;
}

void cm_tuner_free(cm_tuner *tuner)
{
    free(tuner);
}

/* ---- settings ------------------------------------------------------------------------------ */

static bool is_word(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

static unsigned pools(const cm_readbench_options *o)
{
    return is_word(o->pool, "shared") || o->accelerators == 0 ? 1 : o->accelerators;
}

/* The user's setting if it asks for workers; otherwise DataLoader's default. */
static choice baseline(const cm_readbench_options *o)
{
    return (choice){.workers = is_word(o->mode, "sync") ? 0 : o->workers,
                    .worker_threads = o->worker_threads > 0 ? o->worker_threads : 1,
                    .prefetch = o->prefetch,
                    .planned = is_word(o->loader, "planned")};
}

static choice advised(const cm_readbench_options *o, const cm_readbench_advice *advice)
{
    choice c = baseline(o);

    c.workers = advice->workers > 0 ? advice->workers : 1;
    if (is_word(o->pool, "shared") && o->accelerators > 1)
        c.workers *= o->accelerators;
    if (o->worker_threads == 0 && advice->threads > 0)
        c.worker_threads = advice->threads;
    const uint64_t each = (uint64_t)pools(o) * c.worker_threads;
    if (o->nthreads > 0 && each * c.workers > o->nthreads)
        c.workers = (unsigned)(o->nthreads / each);
    return c;
}

/* Whether the user's limits and the CPUs allow a choice, and the other options go with it. */
static bool is_allowed(const cm_tuner *t, const cm_readbench_report *report, const choice *c)
{
    const cm_readbench_options *o = t->options;
    const uint64_t threads = (uint64_t)pools(o) * c->workers * c->worker_threads;
    const unsigned cpus = report->advice.cpus > 0 ? report->advice.cpus : 1;

    if (c->workers == 0 || c->prefetch == 0 || c->prefetch > MAX_PREFETCH)
        return false;
    if (o->nthreads > 0 && threads > o->nthreads)
        return false;
    if (threads > (uint64_t)cpus * THREADS_PER_CPU)
        return false;
    return !c->planned || ((o->engine == NULL || is_word(o->engine, "native")) && !o->unordered);
}

static bool is_same(const choice *a, const choice *b)
{
    if (a->workers != b->workers || a->planned != b->planned)
        return false;
    return a->workers == 0 ||
           (a->worker_threads == b->worker_threads && a->prefetch == b->prefetch);
}

static bool was_tried(const cm_tuner *t, const choice *c)
{
    for (size_t i = 0; i < t->n; i++)
        if (is_same(&t->attempt[i].choice, c))
            return true;
    return false;
}

/* ---- steps --------------------------------------------------------------------------------- */

static uint64_t nthreads(const choice *c)
{
    return (uint64_t)c->workers * c->worker_threads;
}

static double rate(const cm_readbench_report *report, const attempt *a)
{
    if (a->session >= report->nsessions)
        return 0;
    const cm_readbench_session *s = &report->session[a->session];
    return s->counts.failed_batches == 0 ? cm_readbench_rate(s) : 0;
}

/* The best so far: it moves for a clear gain, or for as much with fewer threads. */
static size_t centre(const cm_tuner *t, const cm_readbench_report *report)
{
    size_t best = 0;
    double top = 0;

    for (size_t i = 0; i < t->n; i++) {
        const double r = rate(report, &t->attempt[i]), b = rate(report, &t->attempt[best]);
        top = r > top ? r : top;
        if (r >= b * (1 + CM_RULE_GAIN) ||
            (r >= top * (1 - CM_TUNE_NOISE) &&
             nthreads(&t->attempt[i].choice) < nthreads(&t->attempt[best].choice)))
            best = i;
    }
    return best;
}

enum { /* steps, in the order in which they are tried */
    MORE_WORKERS,
    FEWER_WORKERS,
    LONGER_PREFETCH,
    OTHER_LOADER,
    MORE_THREADS,
    SHORTER_PREFETCH,
    NMOVES
};

/* The steps around C; some of them are not allowed. */
static void make_moves(const choice *c, choice *move)
{
    for (size_t m = 0; m < NMOVES; m++)
        move[m] = *c;
    move[MORE_WORKERS].workers = c->workers == 0 ? 1 : c->workers * 2;
    move[FEWER_WORKERS].workers = c->workers / 2;
    move[LONGER_PREFETCH].prefetch = c->prefetch * 2;
    move[OTHER_LOADER].planned = !c->planned;
    move[OTHER_LOADER].workers = c->workers == 0 ? 1 : c->workers * c->worker_threads;
    move[OTHER_LOADER].worker_threads = 1; /* the planned loader's workers are threads */
    move[MORE_THREADS].worker_threads = c->worker_threads * 2;
    move[MORE_THREADS].workers = (c->workers + 1) / 2;
    move[SHORTER_PREFETCH].prefetch = c->prefetch > USUAL_PREFETCH ? c->prefetch / 2 : c->prefetch;
}

static bool has_finding(const cm_readbench_session *s, const char *rule)
{
    for (size_t i = 0; i < s->nfindings; i++)
        if (strcmp(s->finding[i].rule, rule) == 0)
            return true;
    return false;
}

/*
 * Where steps do not wait only fewer workers can be a gain, where all CPUs are busy more
 * threads are none.
 */
static bool may_gain(const cm_readbench_session *s, unsigned move)
{
    const double most = s->wait_share < 1 ? s->wait_share / (1 - s->wait_share) : 1;

    if (most < CM_RULE_GAIN)
        return move == FEWER_WORKERS;
    return (move != MORE_WORKERS && move != MORE_THREADS) || !has_finding(s, "cpu-bound");
}

static bool choose_step(const cm_tuner *t, const cm_readbench_report *report, choice *out)
{
    const attempt *a = &t->attempt[centre(t, report)];
    choice move[NMOVES];

    if (rate(report, a) <= 0)
        return false;
    const cm_readbench_session *s = &report->session[a->session];
    /* Chunks that are decoded again and again: the other loader is what changes most. */
    const unsigned first =
        s->amplification[0] > CM_RULE_AMPLIFICATION && !a->choice.planned ? OTHER_LOADER : 0;
    make_moves(&a->choice, move);
    for (unsigned i = 0; i < NMOVES; i++) {
        const unsigned m = (first + i) % NMOVES;
        if (!may_gain(s, m) || !is_allowed(t, report, &move[m]) || was_tried(t, &move[m]))
            continue;
        *out = move[m];
        return true;
    }
    return false;
}

static bool choose(const cm_tuner *t, const cm_readbench_report *report, choice *out)
{
    if (t->n == 0) {
        *out = baseline(t->options);
        return true;
    }
    if (t->n == 1) {
        *out = advised(t->options, &report->advice);
        if (is_allowed(t, report, out) && !was_tried(t, out))
            return true;
    }
    return choose_step(t, report, out);
}

/* ---- the next ------------------------------------------------------------------------------ */

static void name_attempt(attempt *a, size_t number)
{
    const choice *c = &a->choice;
    char threads[32] = "";

    if (number == 0) {
        snprintf(a->label, sizeof(a->label), "baseline");
        return;
    }
    if (c->worker_threads > 1)
        snprintf(threads, sizeof(threads), ",worker-threads=%u", c->worker_threads);
    snprintf(a->label, sizeof(a->label), "workers=%u%s,prefetch=%u%s", c->workers, threads,
             c->prefetch, c->planned ? ",loader=planned" : "");
}

static void apply(const choice *c, const cm_readbench_options *base, cm_readbench_options *out)
{
    *out = *base;
    out->tune = false;
    out->workers = c->workers;
    out->worker_threads = c->worker_threads;
    out->prefetch = c->prefetch;
    out->loader = c->planned ? "planned" : "map";
    if (!c->planned)
        out->window = 0; /* which is refused with the other loader */
    if (c->workers == 0) {
        out->mode = "sync";
        out->worker_memory = 0; /* a limit of processes */
    } else if (is_word(base->mode, "sync")) {
        out->mode = "threads";
    }
}

bool cm_tuner_next(cm_tuner *tuner, const cm_readbench_report *report, cm_readbench_options *next,
                   const char **label)
{
    if (tuner->n == CM_TUNE_SETTINGS)
        return false;
    attempt *a = &tuner->attempt[tuner->n];
    if (!choose(tuner, report, &a->choice))
        return false;
    a->session = report->nsessions;
    name_attempt(a, tuner->n);
    tuner->n++;
    apply(&a->choice, tuner->options, next);
    *label = a->label;
    return true;
}

static size_t attempt_of(const cm_tuner *t, size_t session)
{
    size_t i = 0;
    while (i < t->n && t->attempt[i].session != session)
        i++;
    return i;
}

/* The best and its rival: the next best if that is close, else the baseline. */
static void find_close(cm_tuner *t, const cm_readbench_report *report)
{
    size_t session[CM_TUNE_MOST_TUNED];
    const size_t best = cm_readbench_best(report->session, report->nsessions);
    const size_t n = cm_readbench_close(report, session, CM_TUNE_MOST_TUNED);
    t->settled = true;
    if (best == SIZE_MAX || t->n < 2)
        return;
    if (n == CM_TUNE_MOST_TUNED) {
        for (size_t i = 0; i < n; i++)
            t->close[t->nclose++] = attempt_of(t, session[i]);
        return;
    }
    t->close[t->nclose++] = attempt_of(t, best);
    if (t->attempt[0].session != SIZE_MAX && t->attempt[0].session != best)
        t->close[t->nclose++] = 0;
}

bool cm_tuner_again(cm_tuner *tuner, const cm_readbench_report *report, cm_readbench_options *next,
                    size_t *session)
{
    if (!tuner->settled)
        find_close(tuner, report);
    if (tuner->nclose < 2 || tuner->nagain == tuner->nclose * (CM_READBENCH_ROUNDS - 1))
        return false;
    const attempt *a = &tuner->attempt[tuner->close[tuner->nagain++ % tuner->nclose]];
    *session = a->session;
    apply(&a->choice, tuner->options, next);
    return true;
}

void cm_tuner_refused(cm_tuner *tuner)
{
    if (tuner->n > 0)
        tuner->attempt[tuner->n - 1].session = SIZE_MAX;
}

int cm_tuner_judge(const cm_tuner *tuner, cm_readbench_report *report, cm_error *err)
{
    report->baseline = tuner->n > 0 ? tuner->attempt[0].session : SIZE_MAX;
    if (report->baseline >= report->nsessions)
        report->baseline = SIZE_MAX;
    return cm_readbench_judge_tuning(report, err);
}
