/*
 * Steps where the mean or the spread of the field jumps, and where it jumps back.
 *
 * A jump is a change from one step to the next that stands out among all changes; these must be
 * like each other otherwise, so that fields which change by fits and starts, such as rain, have
 * none.  Two jumps that undo each other enclose the steps that are wrong.
 */
#include <math.h>

#include "passport/look.h"

enum {
    FEW_STEPS = 8,
    MOST_JUMPS = 8
};

/* One number of each step. */
typedef struct measure {
    bool spread; /* the logarithm of the standard deviation; else the mean */
    double least;
} measure;

static double value_of(const cm_look *l, const measure *m, size_t k)
{
    const cm_passport_step *p = &l->s->step[l->at[k]];
    return m->spread ? log(p->std) : p->mean;
}

/* The places K where the number differs from that at K - 1 as no other does. */
static size_t find_jumps(cm_look *l, const measure *m, size_t *jump)
{
    double *change = l->work, *sorted = l->work + l->s->n;
    size_t n = 0;
    for (size_t k = 1; k < l->nat; k++)
        change[k - 1] = fabs(value_of(l, m, k) - value_of(l, m, k - 1));
    const double from = cm_look_outstanding(change, l->nat - 1, m->least, sorted);
    for (size_t k = 1; k < l->nat; k++)
        if (change[k - 1] >= from) {
            if (n == MOST_JUMPS)
                return 0;
            jump[n++] = k;
        }
    return n;
}

/* Means over the places FIRST up to END. */
typedef struct level {
    double mean, std;
} level;

static level level_of(const cm_look *l, size_t first, size_t end)
{
    level v = {0, 0};
    for (size_t k = first; k < end; k++) {
        v.mean += l->s->step[l->at[k]].mean;
        v.std += l->s->step[l->at[k]].std;
    }
    v.mean /= (double)(end - first);
    v.std /= (double)(end - first);
    return v;
}

/* The steps from FIRST up to END, places in `at`, are not like those around them. */
static int tell(cm_look *l, size_t first, size_t end, cm_error *err)
{
    const size_t n = end - first, before = first > n ? first - n : 0;
    const size_t after = end + n < l->nat ? end + n : l->nat;
    const level in = level_of(l, first, end);
    level out = first > before ? level_of(l, before, first) : level_of(l, end, after);
    if (first > before && after > end) {
        const level other = level_of(l, end, after);
        out.mean = (out.mean + other.mean) / 2;
        out.std = (out.std + other.std) / 2;
    }
    const size_t a = l->at[first], b = l->at[end - 1];
    const double ratio = in.std / out.std, moved = in.mean - out.mean;
    const bool alike = out.std > 0 && fabs(ratio - 1) < 0.25;
    for (size_t k = first; k < end; k++)
        l->skip[l->at[k]] = true;
    if (alike && fabs(in.mean + out.mean) < 0.1 * fabs(out.mean))
        return cm_look_add(l, "sign-flip", a, b, in.mean, out.mean, err,
                           "the mean is %.6g, and %.6g around it", in.mean, out.mean);
    if (alike && fabs(fabs(moved) - 273.15) < 8)
        return cm_look_add(l, "units-jump", a, b, in.mean, out.mean, err,
                           "the mean is %.6g, and %.6g around it: %s, where the others are in %s",
                           in.mean, out.mean, moved < 0 ? "degrees Celsius" : "kelvin",
                           moved < 0 ? "kelvin" : "degrees Celsius");
    if (!alike && out.std > 0 && in.std > 0 &&
        (fabs(in.mean / out.mean / ratio - 1) < 0.25 || fabs(out.mean) < 2 * out.std))
        return cm_look_add(l, "scale", a, b, ratio, 1, err,
                           "values are %.4g times as large as those around them", ratio);
    return cm_look_add(l, "jump", a, b, in.mean, out.mean, err,
                       "the mean is %.6g and the standard deviation %.6g; around it %.6g and %.6g",
                       in.mean, in.std, out.mean, out.std);
}

/* A jump that nothing undoes: all that comes behind it must lie on another level. */
static bool is_lasting(cm_look *l, const measure *m, size_t at)
{
    double *sorted = l->work, *rest = l->work + l->s->n;
    for (size_t k = 0; k < at; k++)
        sorted[k] = value_of(l, m, k);
    for (size_t k = at; k < l->nat; k++)
        rest[k - at] = value_of(l, m, k);
    cm_sort(sorted, at);
    cm_sort(rest, l->nat - at);
    const double before = cm_quantile(sorted, at, 0.5);
    const double after = cm_quantile(rest, l->nat - at, 0.5);
    const double change = value_of(l, m, at) - value_of(l, m, at - 1);
    return fabs((after - before) / change - 1) < 0.3;
}

static int tell_jumps(cm_look *l, const measure *m, const size_t *jump, size_t n, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        const double here = value_of(l, m, jump[i]) - value_of(l, m, jump[i] - 1);
        if (i + 1 < n) {
            const double next = value_of(l, m, jump[i + 1]) - value_of(l, m, jump[i + 1] - 1);
            const bool back = here * next < 0 &&
                              fabs(here + next) < 0.5 * fmax(fabs(here), fabs(next)) &&
                              jump[i + 1] - jump[i] <= l->nat / 3;
            if (back) {
                rc = tell(l, jump[i], jump[i + 1], err);
                i++;
                continue;
            }
        }
        if (n == 1 && is_lasting(l, m, jump[i])) {
            const bool start = jump[i] < l->nat - jump[i];
            rc = start ? tell(l, 0, jump[i], err) : tell(l, jump[i], l->nat, err);
        }
    }
    return rc;
}

static double usual_std(cm_look *l)
{
    for (size_t k = 0; k < l->nat; k++)
        l->work[k] = l->s->step[l->at[k]].std;
    cm_sort(l->work, l->nat);
    return cm_quantile(l->work, l->nat, 0.5);
}

static bool has_spread(const cm_look *l)
{
    for (size_t k = 0; k < l->nat; k++)
        if (!(l->s->step[l->at[k]].std > 0))
            return false;
    return true;
}

int cm_look_jumps(cm_look *l, cm_error *err)
{
    size_t jump[MOST_JUMPS];
    int rc = CM_OK;
    for (int spread = 0; spread < 2 && rc == CM_OK; spread++) {
        if (l->nat < FEW_STEPS || (spread && !has_spread(l)))
            return CM_OK;
        const measure m = {spread, spread ? log(1.5) : 0.25 * usual_std(l)};
        const size_t n = find_jumps(l, &m, jump);
        rc = tell_jumps(l, &m, jump, n, err);
        cm_look_again(l);
    }
    return rc;
}
