/* Faults of coordinates: times that are missing, twice there or out of order. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "passport/look.h"

enum {
    MOST_GAPS = 4 /* more of one length are how the data are made: each summer, each Monday */
};

static int add(cm_findings *out, const char *name, const char *kind, size_t first, size_t last,
               double value, cm_error *err, const char *sentence)
{
    const cm_passport_finding f = {.kind = kind,
                                   .has_steps = true,
                                   .first = first,
                                   .last = last,
                                   .value = value,
                                   .expected = NAN};
    return cm_findings_add(out, name, &f, err, "%s", sentence);
}

/* The direction of most steps: 1 or -1. */
static double direction(const double *value, size_t n)
{
    size_t up = 0, down = 0;
    for (size_t i = 1; i < n; i++) {
        up += value[i] > value[i - 1];
        down += value[i] < value[i - 1];
    }
    return up >= down ? 1 : -1;
}

static int find_order(const char *name, const double *value, size_t n, cm_findings *out,
                      cm_error *err)
{
    const double up = direction(value, n);
    double latest = value[0] * up;
    int rc = CM_OK;
    for (size_t i = 1; i < n && rc == CM_OK; i++) {
        const double v = value[i] * up;
        size_t last = i;
        if (v > latest) {
            latest = v;
            continue;
        }
        if (value[i] == value[i - 1]) {
            while (last + 1 < n && value[last + 1] == value[i])
                last++;
            rc = add(out, name, "duplicate-time", i, last, value[i], err,
                     "the same time as the step before");
        } else {
            while (last + 1 < n && value[last + 1] * up <= latest && value[last + 1] != value[last])
                last++;
            rc = add(out, name, "out-of-order", i, last, value[i], err,
                     "the time lies before that of an earlier step");
        }
        i = last;
    }
    return rc;
}

/* Steps of the sorted times that are longer than the usual one, which most have. */
typedef struct spacing {
    double usual;
    size_t ngaps;
    double shortest, longest; /* of the gaps */
} spacing;

static bool find_spacing(const double *sorted, size_t n, double *change, spacing *s)
{
    size_t m = 0, regular = 0;
    *s = (spacing){.shortest = INFINITY};
    for (size_t i = 1; i < n; i++)
        if (sorted[i] > sorted[i - 1])
            change[m++] = sorted[i] - sorted[i - 1];
    if (m < 3)
        return false;
    cm_sort(change, m);
    s->usual = cm_quantile(change, m, 0.5);
    for (size_t i = 0; i < m; i++) {
        regular += fabs(change[i] / s->usual - 1) <= 0.12;
        if (change[i] <= 1.5 * s->usual)
            continue;
        s->ngaps++;
        s->shortest = fmin(s->shortest, change[i]);
        s->longest = fmax(s->longest, change[i]);
    }
    const bool pattern = s->ngaps >= MOST_GAPS && s->longest < 1.2 * s->shortest;
    return !pattern && (double)regular >= 0.6 * (double)m && s->ngaps <= cm_look_most(m) &&
           regular + s->ngaps + cm_look_most(m) >= m;
}

static size_t index_of(const double *value, size_t n, double v)
{
    size_t i = 0;
    while (i + 1 < n && value[i] != v)
        i++;
    return i;
}

static int find_gaps(const char *name, const double *value, size_t n, cm_findings *out,
                     cm_error *err)
{
    double *sorted = cm_calloc(2 * n, sizeof(sorted[0]), err);
    spacing s;
    int rc = CM_OK;
    if (sorted == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i] = value[i];
    cm_sort(sorted, n);
    const bool regular = find_spacing(sorted, n, sorted + n, &s);
    for (size_t i = 1; regular && i < n && rc == CM_OK; i++) {
        const double length = (sorted[i] - sorted[i - 1]) / s.usual;
        if (length <= 1.5)
            continue;
        const size_t a = index_of(value, n, sorted[i - 1]), b = index_of(value, n, sorted[i]);
        const cm_passport_finding f = {.kind = "gap",
                                       .has_steps = true,
                                       .first = a < b ? a : b,
                                       .last = a < b ? b : a,
                                       .value = round(length) - 1,
                                       .expected = 0};
        rc = cm_findings_add(out, name, &f, err, "about %.0f steps are missing between these two",
                             fmax(1, round(length) - 1));
    }
    free(sorted);
    return rc;
}

int cm_find_in_times(const char *name, const double *value, size_t n, cm_findings *out,
                     cm_error *err)
{
    if (n < 2)
        return CM_OK;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(value[i]))
            return add(out, name, "missing-time", i, i, NAN, err, "the step has no time");
    int rc = find_order(name, value, n, out, err);
    return rc == CM_OK && n >= 4 ? find_gaps(name, value, n, out, err) : rc;
}

int cm_find_in_positions(const char *name, const double *value, size_t n, bool may_wrap,
                         cm_findings *out, cm_error *err)
{
    bool wrapped = !may_wrap;
    const double up = n > 1 ? direction(value, n) : 1;
    for (size_t i = 1; i < n; i++) {
        if ((value[i] - value[i - 1]) * up > 0)
            continue;
        if (!wrapped && fabs(value[i] - value[i - 1]) > 180) {
            wrapped = true;
            continue;
        }
        return add(out, name, "coordinate-order", i, i, value[i], err,
                   "the coordinate turns back here: it neither rises nor falls throughout");
    }
    return CM_OK;
}
