/*
 * loader-demo: what a guide to training at scale found for its loader ("Training at larger scale",
 * chapter "Optimizing the pipeline: Data", 2025, after the dataloader demo of Earthmover): 3 epochs
 * of 50 batches of 32 with a step of 100 ms, first as a DataLoader is without arguments, then
 * with workers that keep on and read ahead. "35 times faster than the baseline": 140 epochs in the
 * time of 4. Windows are those of Earthmover's demo: 3 steps of 48 by 48 points.
 */
#include "preset.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <chunkmill/chunkcalc.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/sentences.h"

#define BASELINE         "baseline"
#define PUBLISHED        35
#define PUBLISHED_EPOCHS 4
#define STEP_SECONDS     0.1

enum {
    BATCHES = 50,
    EPOCHS = 3,
    STEPS = 3,
    POINTS = 48,
    PREFETCH = 3,
    SETTINGS = 3
};

/* ---- what is read -------------------------------------------------------------------------- */

static const cm_chunkcalc_array *choose(const cm_chunkcalc_report *r, const char *name)
{
    const cm_chunkcalc_array *best = NULL;
    for (size_t i = 0; i < r->narrays; i++) {
        const cm_chunkcalc_array *a = &r->array[i];
        if (name != NULL && strcmp(a->name, name) != 0)
            continue;
        if (best == NULL || a->decoded_nbytes > best->decoded_nbytes)
            best = a;
    }
    return best;
}

/* A window of A, in order: some steps of the first dimension, points of the last two. */
static char *window_of(const cm_chunkcalc_array *a, cm_error *err)
{
    char *text = cm_strdup("", err);
    for (unsigned j = 0; j < a->rank && text != NULL; j++) {
        const uint64_t most = j + 2 >= a->rank ? POINTS : j == 0 ? STEPS : 1;
        char *longer = cm_asprintf(err, "%s%s%llu", text, j > 0 ? "x" : "",
                                   (unsigned long long)cm_min_u64(most, a->shape[j]));
        free(text);
        text = longer;
    }
    return text;
}

static int find_sample(const readbench_values *v, const cm_texts *paths, char **out, cm_error *err)
{
    const char *name = v->o.variables.n > 0 ? v->o.variables.text[0] : NULL;
    cm_chunkcalc_options o;
    cm_chunkcalc_report r;
    cm_chunkcalc_options_init(&o);
    o.store = paths->text[0];
    o.net = v->o.net;
    int rc = cm_chunkcalc(&o, &r, err);
    const cm_chunkcalc_array *a = rc == CM_OK ? choose(&r, name) : NULL;
    if (rc == CM_OK && (a == NULL || a->rank == 0))
        rc = cm_fail(err, CM_EINVAL,
                     "--preset loader-demo: %s has no array to take windows of; "
                     "name one with --variable, or --sample",
                     paths->text[0]);
    if (rc == CM_OK && (*out = window_of(a, err)) == NULL)
        rc = CM_ENOMEM;
    cm_chunkcalc_report_release(&r);
    return rc;
}

/* ---- its settings -------------------------------------------------------------------------- */

static bool given(const cm_common_options *common, const char *name)
{
    return cm_tool_given(&READBENCH, common, name);
}

static int refuse(const cm_common_options *common, cm_error *err)
{
    static const char *const at_odds[] = {"sweep",    "tune",          "replay",
                                          "mode",     "loader",        "workers",
                                          "prefetch", "no-persistent", "worker-threads"};
    for (size_t i = 0; i < sizeof at_odds / sizeof *at_odds; i++)
        if (given(common, at_odds[i]))
            return cm_fail(err, CM_EINVAL, "--preset loader-demo and --%s exclude each other",
                           at_odds[i]);
    return CM_OK;
}

static void set_common(readbench_values *v, const cm_common_options *common)
{
    if (!given(common, "batches"))
        v->o.batches = BATCHES;
    if (!given(common, "epochs"))
        v->o.epochs = EPOCHS;
    if (!given(common, "step-time")) {
        v->o.step_forward = STEP_SECONDS;
        v->o.step_backward = v->o.step_other = 0;
    }
}

/* Setting I of the measurement. */
static const char *set_point(unsigned i, cm_readbench_options *o)
{
    if (i == 0) { /* DataLoader(dataset, batch_size=32) */
        o->mode = "sync";
        o->no_persistent = true;
        return BASELINE;
    }
    o->prefetch = PREFETCH;
    if (i == 1)
        return "workers";
    o->loader = "planned";
    return "planned";
}

int readbench_preset_make(readbench_values *v, const cm_common_options *common,
                          const cm_texts *paths, readbench_sweep *out, char **sample, cm_error *err)
{
    int rc = refuse(common, err);
    if (rc == CM_OK && v->o.sample == NULL)
        rc = find_sample(v, paths, sample, err);
    if (rc != CM_OK)
        return rc;
    if (*sample != NULL)
        v->o.sample = *sample;
    set_common(v, common);
    out->point = cm_calloc(SETTINGS, sizeof *out->point, err);
    out->values = cm_calloc(SETTINGS, sizeof *out->values, err);
    if (out->point == NULL || out->values == NULL)
        return CM_ENOMEM;
    out->n = SETTINGS;
    for (unsigned i = 0; i < SETTINGS; i++) {
        out->values[i] = *v;
        out->point[i].label = cm_strdup(set_point(i, &out->values[i].o), err);
        out->point[i].options = &out->values[i].o;
        if (out->point[i].label == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

/* ---- what came of it ----------------------------------------------------------------------- */

static int add_note(cm_readbench_report *r, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int add_note(cm_readbench_report *r, cm_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = cm_sentences_add(&r->note, &r->nnotes, err, format, args);
    va_end(args);
    return rc;
}

int readbench_preset_judge(cm_readbench_report *r, cm_error *err)
{
    const cm_readbench_session *base = NULL, *best = NULL;
    char before[32], after[32];
    for (size_t i = 0; i < r->nsessions; i++) {
        const cm_readbench_session *s = &r->session[i];
        if (s->counts.samples == 0 || s->wall_seconds <= 0)
            continue;
        if (strncmp(s->label, BASELINE, strlen(BASELINE)) == 0)
            base = s;
        if (best == NULL || s->wall_seconds < best->wall_seconds)
            best = s;
    }
    if (base == NULL)
        return CM_OK;
    const double ratio = base->wall_seconds / best->wall_seconds;
    int rc =
        add_note(r, err,
                 "loader-demo: in the time of %d epochs with the baseline, %s makes %.0f: %.1f "
                 "times as many; published: %d, %d times",
                 PUBLISHED_EPOCHS, best->label, PUBLISHED_EPOCHS * ratio, ratio,
                 PUBLISHED_EPOCHS * PUBLISHED, PUBLISHED);
    if (rc == CM_OK && best != base)
        rc = add_note(r, err,
                      "loader-demo: a step waited %s for its batch with the baseline, %s with %s",
                      cm_format_time(base->wait.mean, before, sizeof before),
                      cm_format_time(best->wait.mean, after, sizeof after), best->label);
    return rc;
}
