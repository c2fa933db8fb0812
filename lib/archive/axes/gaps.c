/* Steps of a joined dimension that no file has. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"
#include "archive/tables/described.h"
#include "base/number.h"
#include "model/step.h"

enum {
    LISTED = 8 /* gaps that a finding lists */
};

typedef struct stepper {
    const cm_join_dim *d;
    bool known;
    cm_time_step time; /* CM_KEY_TIME */
    uint64_t whole;    /* CM_KEY_INTEGER */
    double number;     /* CM_KEY_REAL */
} stepper;

/* Numbers that tell one member of an ensemble from another: between 1 and 10 nothing is missing. */
static bool is_label(const cm_join_tables *tables, const cm_join_dim *d)
{
    const char *name =
        d->var == CM_JOIN_NONE ? NULL : cm_join_text(tables->var[d->var].like, "standard_name");
    return d->kind != CM_KEY_TIME &&
           (d->made || d->said_by != NULL || (name != NULL && strcmp(name, "realization") == 0));
}

static int infer(const cm_join_tables *tables, const cm_join_dim *d, stepper *s, cm_error *err)
{
    *s = (stepper){.d = d};
    if (d->descending || d->n < 3 || is_label(tables, d))
        return CM_OK;
    if (d->kind == CM_KEY_TIME) {
        s->known = cm_time_step_infer(d->axis.calendar, d->key, d->n, &s->time) &&
                   s->time.kind != CM_TIME_STEP_NONE;
        return CM_OK;
    }
    if (d->kind == CM_KEY_INTEGER)
        s->known = cm_integer_step_infer(d->key, d->n, &s->whole);
    if (d->kind != CM_KEY_REAL)
        return CM_OK;
    double *value = cm_calloc(d->n, sizeof(*value), err);
    if (value == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < d->n; i++)
        value[i] = cm_key_real(d->key[i]);
    s->known = cm_number_step_infer(value, d->n, &s->number);
    free(value);
    return CM_OK;
}

static uint64_t missing_after(const stepper *s, uint64_t i)
{
    const int64_t a = s->d->key[i], b = s->d->key[i + 1];
    return s->d->kind == CM_KEY_TIME ? cm_time_step_missing(&s->time, a, b)
           : s->d->kind == CM_KEY_INTEGER
               ? ((uint64_t)b - (uint64_t)a) / s->whole - 1
               : cm_number_step_missing(s->number, cm_key_real(a), cm_key_real(b));
}

/* The key N steps behind element I; false where it cannot be told. */
static bool step_from(const stepper *s, uint64_t i, uint64_t n, int64_t *out)
{
    const int64_t key = s->d->key[i];
    if (s->d->kind == CM_KEY_TIME)
        return cm_time_step_add(&s->time, key, n, out);
    *out = s->d->kind == CM_KEY_INTEGER ? (int64_t)((uint64_t)key + n * s->whole)
                                        : cm_key_of_real(cm_key_real(key) + (double)n * s->number);
    return true;
}

/* The file that has element I. */
static uint32_t file_of(const cm_join_dim *d, uint64_t i)
{
    for (size_t k = 0; k < d->nvecs; k++)
        for (size_t r = 0; r < d->vec[k].nruns; r++)
            if (i >= d->vec[k].run[r].origin &&
                i - d->vec[k].run[r].origin < d->vec[k].run[r].count)
                return d->vec[k].file;
    return 0;
}

static int list_gap(const cm_join_input *in, const stepper *s, uint64_t i, uint64_t n, cm_buf *text,
                    cm_error *err)
{
    char first[48], last[48];
    int64_t a, b;
    const char *comma = text->nbytes > 0 ? ", " : "";
    if (!step_from(s, i, 1, &a) || !step_from(s, i, n, &b))
        return cm_buf_printf(text, err, "%s%" PRIu64 " behind %s", comma, n,
                             cm_key_text(in, s->d, s->d->key[i], first, sizeof(first)));
    cm_key_text(in, s->d, a, first, sizeof(first));
    cm_key_text(in, s->d, b, last, sizeof(last));
    return n == 1 ? cm_buf_printf(text, err, "%s%s", comma, first)
                  : cm_buf_printf(text, err, "%s%s to %s", comma, first, last);
}

static int keep_gap(cm_join_dim *d, const stepper *s, uint64_t i, uint64_t n, cm_error *err)
{
    if (CM_GROW(d->gap, d->ngaps, err) != CM_OK)
        return CM_ENOMEM;
    cm_join_gap *gap = &d->gap[d->ngaps++];
    *gap = (cm_join_gap){.after = i, .n = n};
    gap->told = step_from(s, i, 1, &gap->first) && step_from(s, i, n, &gap->last);
    return CM_OK;
}

/* The missing steps take their places. */
static int fill(const cm_join_input *in, cm_join_dim *d, const stepper *s, uint64_t nmissing,
                cm_error *err)
{
    int64_t *key = cm_join_alloc(in, (size_t)(d->n + nmissing), sizeof(*key), err);
    uint64_t at = 0;
    if (key == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < d->n; i++) {
        key[at++] = d->key[i];
        uint64_t n = i + 1 < d->n ? missing_after(s, i) : 0;
        for (uint64_t k = 1; k <= n; k++) {
            if (!step_from(s, i, k, &key[at++]))
                return cm_fail(err, CM_EUNSUPPORTED,
                               "%s: the dates of its missing steps cannot be told", d->name);
        }
    }
    d->key = key;
    d->n = at;
    d->step = s->time;
    d->nfilled = nmissing;
    return cm_axis_find_runs(in, d, err);
}

static int report_gaps(const cm_join_input *in, cm_join_findings *findings, cm_join_dim *d,
                       const stepper *s, cm_archive_axis *report, cm_error *err)
{
    cm_buf text = {0};
    uint64_t ngaps = 0, nmissing = 0, first = 0, last = 0;
    int rc = CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i + 1 < d->n; i++) {
        uint64_t n = missing_after(s, i);
        if (n == 0)
            continue;
        if (ngaps == 0)
            first = i;
        last = i + 1;
        if (ngaps < LISTED)
            rc = list_gap(in, s, i, n, &text, err);
        if (rc == CM_OK && in->options->gaps != CM_GAPS_FILL)
            rc = keep_gap(d, s, i, n, err);
        ngaps++;
        nmissing += n;
    }
    report->nmissing = nmissing;
    bool filled = in->options->gaps == CM_GAPS_FILL;
    if (rc == CM_OK && ngaps > 0) {
        cm_finding *f = cm_join_find(
            findings, CM_FINDING_GAP,
            in->options->gaps == CM_GAPS_ERROR ? CM_WEIGHT_DECISION : CM_WEIGHT_WARNING, filled,
            d->name, file_of(d, first), err, "%" PRIu64 " step%s missing%s: %.*s%s", nmissing,
            cm_of_count(nmissing, " is", "s are"), filled ? " and filled" : "", (int)text.nbytes,
            (const char *)text.data, ngaps > LISTED ? ", ..." : "");
        if (f == NULL)
            rc = CM_ENOMEM;
        else {
            free(f->last);
            f->nfiles = ngaps;
            f->last = cm_strdup(in->file[file_of(d, last)]->path, err);
            rc = f->last == NULL ? CM_ENOMEM : CM_OK;
        }
    }
    cm_buf_release(&text);
    return rc == CM_OK && ngaps > 0 && filled ? fill(in, d, s, nmissing, err) : rc;
}

int cm_axis_find_gaps(const cm_join_input *in, const cm_join_tables *tables,
                      const cm_join_axes *axes, cm_join_findings *findings, cm_join_dim *d,
                      cm_archive_axis *report, cm_error *err)
{
    stepper s;
    char text[64];
    if (!cm_axis_has_steps(tables, axes, d) || cm_axis_in_order(in, d))
        return CM_OK;
    if (d->descending && d->n > 2 && in->options->gaps != CM_GAPS_KEEP)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: it descends, and missing steps are found only where it ascends",
                       d->name);
    int rc = infer(tables, d, &s, err);
    if (rc != CM_OK || !s.known)
        return rc;
    if (d->kind == CM_KEY_TIME)
        cm_time_step_text(&s.time, text, sizeof(text));
    else if (d->kind == CM_KEY_INTEGER)
        snprintf(text, sizeof(text), "%" PRIu64, s.whole);
    else
        cm_format_double(s.number, text, sizeof(text));
    if ((report->step = cm_strdup(text, err)) == NULL)
        return CM_ENOMEM;
    return report_gaps(in, findings, d, &s, report, err);
}
