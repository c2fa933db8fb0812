/*
 * readbench's verb: which sessions are run, in which order, and what they say
 * together.
 *
 * Several stores are measured in turn, epoch by epoch (A B A B ...), so that a
 * change of the machine in between meets all of them.  The points of a sweep, and
 * those that tuning chooses, come one after the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/sentences.h"
#include "bench/readbench.h"
#include "bench/replay.h"
#include "bench/tune.h"
#include "options/shape_option.h"
#include "watch/monitor.h"

typedef struct verb {
    const cm_readbench_options *options;
    cm_monitor *monitor;
    cm_readbench_report *report;
    uint64_t origin_ns;
} verb;

static int warn(verb *v, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static CM_DEFINE_SENTENCE(warn, verb, warning, nwarnings)

/* ---- labels ------------------------------------------------------------------------------ */

/* Characters allowed in a folder's name. */
static void make_plain(char *label)
{
    for (char *p = label; *p != '\0'; p++)
        if (*p == '/' || *p == ' ' || *p == ':' || *p == ';' || (unsigned char)*p < ' ')
            *p = '_';
    if (label[0] == '.')
        label[0] = '_';
}

static bool is_taken(const cm_readbench_report *r, const char *label)
{
    for (size_t i = 0; i < r->nsessions; i++)
        if (r->session[i].label != NULL && strcmp(r->session[i].label, label) == 0)
            return true;
    return false;
}

/* "era5.zarr", "workers=4", "era5.zarr,workers=4"; a number behind it where that is taken. */
static char *make_label(const verb *v, const char *store, const char *point, cm_error *err)
{
    size_t n = strlen(store);
    while (n > 1 && store[n - 1] == '/')
        n--;
    size_t from = n;
    while (from > 0 && store[from - 1] != '/')
        from--;
    const bool both = point != NULL && v->options->store.n > 1;
    for (unsigned k = 1;; k++) {
        char suffix[16] = "";
        if (k > 1)
            snprintf(suffix, sizeof suffix, "-%u", k);
        char *label = point != NULL && !both
                          ? cm_asprintf(err, "%s%s", point, suffix)
                          : cm_asprintf(err, "%.*s%s%s%s", (int)(n - from), store + from,
                                        both ? "," : "", both ? point : "", suffix);
        if (label == NULL)
            return NULL;
        make_plain(label);
        if (!is_taken(v->report, label))
            return label;
        free(label);
    }
}

/* ---- one setting, all stores --------------------------------------------------------------- */

static int open_all(verb *v, const cm_readbench_options *o, const char *point, cm_bench **bench,
                    cm_error *err)
{
    cm_bench_sharing sharing = {.n = (unsigned)o->store.n};
    int rc = CM_OK;
    for (size_t i = 0; i < o->store.n && rc == CM_OK; i++) {
        cm_readbench_session *s = &v->report->session[v->report->nsessions];
        s->label = make_label(v, o->store.text[i], point, err);
        v->report->nsessions++;
        rc = s->label != NULL ? cm_bench_open(o, o->store.text[i], &sharing, v->monitor,
                                              v->origin_ns, v->report, s, &bench[i], err)
                              : CM_ENOMEM;
        if (rc == CM_OK)
            sharing.nbytes += bench[i]->load.arena.nbytes;
    }
    return rc;
}

static int run_epochs(verb *v, const cm_readbench_options *o, cm_bench **bench, cm_error *err)
{
    uint64_t nbytes = 0, checked = 0;
    int rc = CM_OK;
    for (size_t i = 0; i < o->store.n; i++) {
        nbytes += o->epochs * cm_bench_epoch_nbytes(bench[i]);
        if (bench[i]->setting.validate != CM_READBENCH_VALIDATE_NONE)
            checked += cm_bench_epoch_nbytes(bench[i]);
    }
    cm_monitor_phase(v->monitor, CM_PHASE_MEASURING, nbytes);
    for (uint64_t e = 0; e < o->epochs && rc == CM_OK; e++) {
        if (o->meet != NULL)
            rc = o->meet(o->meet_context, err);
        for (size_t i = 0; i < o->store.n && rc == CM_OK; i++)
            rc = cm_bench_epoch(bench[i], e, err);
    }
    if (checked > 0)
        cm_monitor_phase(v->monitor, CM_PHASE_VERIFYING, checked);
    for (size_t i = 0; i < o->store.n && rc == CM_OK; i++)
        rc = cm_bench_validate(bench[i], err);
    return rc;
}

/* The first bad news wins. */
static void keep_first(int *rc, int status, cm_error *err, const cm_error *inner)
{
    if (status == CM_OK || *rc != CM_OK)
        return;
    *rc = status;
    if (err != NULL)
        *err = *inner;
}

/*
 * Sessions are closed, and measured as far as they came, in any case.  All are
 * stopped first: probing the machine would show in what another one watches.
 */
static int run_setting(verb *v, const cm_readbench_options *o, const char *point, cm_error *err)
{
    cm_error inner = {0};
    cm_bench **bench = cm_calloc(o->store.n, sizeof(cm_bench *), err);
    if (bench == NULL)
        return CM_ENOMEM;
    int rc = open_all(v, o, point, bench, err);
    const bool opened = rc == CM_OK;
    if (opened)
        rc = run_epochs(v, o, bench, err);
    for (size_t i = 0; i < o->store.n && opened; i++)
        keep_first(&rc, cm_bench_stop(bench[i], &inner), err, &inner);
    for (size_t i = 0; i < o->store.n; i++)
        keep_first(&rc, cm_bench_close(bench[i], opened, &inner), err, &inner);
    free(bench);
    return rc;
}

static int reserve_sessions(verb *v, size_t n, cm_error *err)
{
    v->report->session = cm_calloc(n, sizeof *v->report->session, err);
    return v->report->session != NULL ? CM_OK : CM_ENOMEM;
}

/* ---- sweeps and tuning --------------------------------------------------------------------- */

static int check_shape(const char *text, cm_error *err)
{
    cm_shape_option shape;
    int rc = cm_shape_option_parse(text, &shape, err);
    if (rc == CM_OK)
        cm_shape_option_release(&shape);
    return rc;
}

/* Check all points first: an error in the last one is told before the first runs. */
static int check_point(const cm_readbench_point *point, cm_error *err)
{
    cm_load_options options;
    cm_bench_setting setting;
    int rc = cm_bench_setting_make(point->options, &options, &setting, err);
    if (rc == CM_OK && point->options->sample != NULL)
        rc = check_shape(point->options->sample, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s", point->label);
    return rc;
}

/* Sessions from FIRST on are as if they had not been begun. */
static void forget_sessions(verb *v, size_t first)
{
    while (v->report->nsessions > first)
        cm_bench_session_release(&v->report->session[--v->report->nsessions]);
}

/*
 * A point for which there is not enough memory is left out with a warning: the others are
 * worth having.
 */
static int run_point(verb *v, const cm_readbench_point *point, cm_error *err)
{
    const size_t before = v->report->nsessions;
    cm_error inner = {0};
    int rc = run_setting(v, point->options, point->label, &inner);
    if (rc == CM_EBUDGET) {
        forget_sessions(v, before);
        return warn(v, err, "%s was left out: %s", point->label, inner.text);
    }
    if (rc != CM_OK && err != NULL)
        *err = inner;
    return rc;
}

/*
 * Runs O once more, for the N sessions from FIRST on that it gave before: only their rates are
 * kept.  A setting that cannot be run again has fewer rounds.
 */
static int run_again(verb *v, const cm_readbench_options *o, size_t first, cm_error *err)
{
    cm_readbench_report *r = v->report;
    const size_t before = r->nsessions;
    int rc = run_setting(v, o, "again", err);
    for (size_t i = 0; rc == CM_OK && before + i < r->nsessions; i++) {
        cm_readbench_session *s = &r->session[first + i];
        if (s->nrounds < CM_READBENCH_ROUNDS)
            s->round[s->nrounds++] = r->session[before + i].rates.samples;
    }
    forget_sessions(v, before);
    return rc;
}

/* The points between which one round does not decide, in turn, until all have their rounds. */
static int repeat_points(verb *v, const size_t *first, cm_error *err)
{
    bool close[CM_TUNE_MOST_CLOSE] = {0};
    size_t point[CM_TUNE_MOST_CLOSE], session[CM_TUNE_MOST_CLOSE];
    const size_t nstores = v->options->store.n;
    const size_t n = cm_readbench_close(v->report, session, CM_TUNE_MOST_CLOSE);
    int rc = CM_OK;
    for (size_t i = 0; i < n; i++) {
        point[i] = 0;
        while (first[point[i]] == SIZE_MAX || session[i] < first[point[i]] ||
               session[i] >= first[point[i]] + nstores)
            point[i]++;
        close[i] = true;
        for (size_t k = 0; k < i; k++)
            close[i] = close[i] && point[k] != point[i];
    }
    for (unsigned round = 1; round < CM_READBENCH_ROUNDS; round++)
        for (size_t i = 0; i < n && rc == CM_OK; i++)
            if (close[i])
                rc = run_again(v, v->options->point[point[i]].options, first[point[i]], err);
    return rc;
}

static int run_points(verb *v, size_t *first, cm_error *err)
{
    const cm_readbench_point *point = v->options->point;
    int rc = CM_OK;
    for (size_t i = 0; i < v->options->npoints && rc == CM_OK; i++) {
        first[i] = v->report->nsessions;
        rc = run_point(v, &point[i], err);
        if (v->report->nsessions == first[i]) /* left out */
            first[i] = SIZE_MAX;
    }
    return rc == CM_OK ? repeat_points(v, first, err) : rc;
}

static int run_sweep(verb *v, cm_error *err)
{
    const cm_readbench_point *point = v->options->point;
    const size_t n = v->options->npoints;
    size_t *first = cm_calloc(n, sizeof(*first), err);
    int rc = first == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        rc = check_point(&point[i], err);
    if (rc == CM_OK)
        rc = reserve_sessions(v, (n + 1) * v->options->store.n, err);
    if (rc == CM_OK)
        rc = run_points(v, first, err);
    free(first);
    if (rc == CM_OK && v->report->nsessions == 0)
        rc = cm_fail(err, CM_EBUDGET, "%s", v->report->warning[0]);
    if (rc == CM_OK)
        rc = cm_readbench_judge_sweep(v->report, err);
    return rc;
}

static int run_tuning(verb *v, cm_error *err)
{
    cm_tuner *tuner;
    if (v->options->store.n != 1)
        return cm_fail(err, CM_EINVAL, "`tune` takes one store, not %zu", v->options->store.n);
    int rc = cm_tuner_create(v->options, &tuner, err);
    if (rc == CM_OK)
        rc = reserve_sessions(v, CM_TUNE_MAX_RUNS, err);
    while (rc == CM_OK) {
        cm_readbench_options next;
        const char *label;
        if (!cm_tuner_next(tuner, v->report, &next, &label))
            break;
        rc = run_setting(v, &next, label, err);
        const bool refused = rc == CM_EBUDGET || rc == CM_EINVAL || rc == CM_EUNSUPPORTED;
        if (refused && v->report->nsessions > 1) { /* a step too far, not an error */
            forget_sessions(v, v->report->nsessions - 1);
            cm_tuner_refused(tuner);
            rc = CM_OK;
        }
    }
    cm_readbench_options again;
    for (size_t session; rc == CM_OK && cm_tuner_again(tuner, v->report, &again, &session);)
        rc = run_again(v, &again, session, err);
    if (rc == CM_OK)
        rc = cm_tuner_judge(tuner, v->report, err);
    cm_tuner_free(tuner);
    return rc;
}

/* ---- the verb ------------------------------------------------------------------------------- */

/* An error of the measurement, as the verb's own status. */
static int verdict(const cm_readbench_report *r, cm_error *err)
{
    for (size_t i = 0; i < r->nsessions; i++) {
        const cm_readbench_session *s = &r->session[i];
        if (s->counts.failed_batches > 0)
            return cm_fail(err, CM_EFORMAT, "%s: %llu of %llu %s could not be read; the first: %s",
                           s->store, (unsigned long long)s->counts.failed_batches,
                           (unsigned long long)s->counts.batches,
                           cm_of_count(s->counts.batches, "batch", "batches"),
                           s->first_failure != NULL ? s->first_failure : "no reason is known");
        if (s->device.mismatches > 0)
            return cm_fail(err, CM_EDIFFER, "%s: validation found %llu %s; the first: %s", s->store,
                           (unsigned long long)s->device.mismatches,
                           cm_of_count(s->device.mismatches, "difference", "differences"),
                           s->first_failure != NULL ? s->first_failure : "no place is known");
    }
    return CM_OK;
}

static int run(verb *v, cm_error *err)
{
    const cm_readbench_options *o = v->options;
    if (o->store.n == 0)
        return cm_fail(err, CM_EINVAL, "no store");
    if (o->tune && o->npoints > 0)
        return cm_fail(err, CM_EINVAL, "`tune` and a list of settings to run exclude each other");
    if (o->tune)
        return run_tuning(v, err);
    if (o->npoints > 0)
        return run_sweep(v, err);
    int rc = reserve_sessions(v, o->store.n, err);
    return rc == CM_OK ? run_setting(v, o, NULL, err) : rc;
}

int cm_readbench(const cm_readbench_options *options, cm_monitor *monitor,
                 cm_readbench_report *report, cm_error *err)
{
    cm_readbench_options completed = *options; /* by what is replayed */
    verb v = {&completed, monitor, report, cm_now_ns()};
    cm_bench_replay *replay = NULL;
    int rc = CM_OK;
    memset(report, 0, sizeof *report);
    report->best = SIZE_MAX;
    report->baseline = SIZE_MAX;
    cm_monitor_phase(monitor, CM_PHASE_OPENING, 0);
    if (options->replay != NULL && options->store.n > 0)
        rc = cm_bench_replay_open(&completed, report, &replay, err);
    if (rc == CM_OK)
        rc = run(&v, err);
    cm_error inner = {0};
    if (cm_readbench_compare_sessions(options, report, &inner) != CM_OK && rc == CM_OK)
        rc = cm_fail(err, CM_ENOMEM, "%s", inner.text);
    if (rc == CM_OK)
        rc = verdict(report, err);
    cm_monitor_phase(monitor, CM_PHASE_DONE, 0);
    cm_bench_replay_free(replay);
    return rc;
}
