/*
 * Least and largest values that lie far from all others: numbers that other programs write for
 * missing data, outliers, infinities, and values that the attributes call invalid.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passport/look.h"

enum {
    FEW_VALUES = 16, /* too few to say what is usual */
    FEW_ELEMENTS = 3 /* an outlier, not a fill value */
};

/* Numbers that people write for "missing". */
static bool is_sentinel(double v)
{
    static const double VALUES[] = {
        999,        9999,   99999,        999999,       999.9,
        9999.9,     -99.99, 1e10,         1e15,         1e20,
        1e30,       1e34,   1e35,         1e36,         1e37,
        32767,      32768,  2147483647.0, 2147483648.0, 9.969209968386869e36,
        9.96921e36, 999.99, 888888,       9e20,         3.4028234663852886e38};
    for (size_t i = 0; i < sizeof(VALUES) / sizeof(VALUES[0]); i++)
        if (fabs(v) == fabs(VALUES[i]) || fabs(v) == (double)fabsf((float)VALUES[i]))
            return true;
    return false;
}

/* The values on one side. */
typedef struct side {
    bool high;
    double extreme;
    double edge;   /* of the other values in the sample */
    double spread; /* of these */
    double middle;
} side;

static double extreme_of(const cm_passport_step *p, bool high)
{
    return high ? p->max : p->min;
}

/* False: the sample holds too little beside the extreme itself. */
static bool find_usual(const cm_look *l, side *s)
{
    size_t first = 0, n = l->nvalues;
    while (s->high && n > 0 && l->value[n - 1] == s->extreme)
        n--;
    while (!s->high && first < n && l->value[first] == s->extreme)
        first++;
    if (n - first < FEW_VALUES)
        return false;
    s->edge = s->high ? l->value[n - 1] : l->value[first];
    s->spread = l->value[n - 1] - l->value[first];
    s->middle = cm_quantile(l->value + first, n - first, 0.5);
    return s->spread > 0;
}

/*
 * How many elements of step P have the extreme value, from what they do to the mean: in the values
 * of the steps without one, the mean is about MIDDLE.
 */
static double elements(const cm_passport_step *p, const side *s)
{
    return fmax(1, round((p->mean - s->middle) * (double)p->count / (s->extreme - s->middle)));
}

/* The largest value of the steps that lie on this side of LIMIT; NaN: none does. */
static double next_below(const cm_look *l, const side *s, double limit)
{
    double found = NAN;
    for (size_t k = 0; k < l->nat; k++) {
        const double v = extreme_of(&l->s->step[l->at[k]], s->high);
        if (s->high ? v >= limit : v <= limit)
            continue;
        if (isnan(found) || (s->high ? v > found : v < found))
            found = v;
    }
    return found;
}

static int tell(cm_look *l, const side *s, double limit, bool sentinel, cm_error *err)
{
    double total = 0;
    for (size_t k = 0; k < l->nat; k++) {
        const cm_passport_step *p = &l->s->step[l->at[k]];
        const double v = extreme_of(p, s->high);
        if (s->high ? v >= limit : v <= limit)
            total += elements(p, s);
    }
    int rc = CM_OK;
    for (size_t k = 0; k < l->nat && rc == CM_OK; k++) {
        size_t last = k;
        const size_t i = l->at[k];
        const double v = extreme_of(&l->s->step[i], s->high);
        if (s->high ? v < limit : v > limit)
            continue;
        for (; last + 1 < l->nat && l->at[last + 1] == l->at[last] + 1; last++) {
            const double w = extreme_of(&l->s->step[l->at[last + 1]], s->high);
            if (s->high ? w < limit : w > limit)
                break;
        }
        for (size_t m = k; m <= last; m++)
            l->skip[l->at[m]] = true;
        if (sentinel && total > FEW_ELEMENTS)
            rc = cm_look_add(l, "undeclared-fill", i, l->at[last], v, s->edge, err,
                             "values are %.9g, as if missing, which no attribute says; others %s "
                             "%.6g",
                             v, s->high ? "end at" : "begin at", s->edge);
        else
            rc = cm_look_add(l, isinf(v) ? "infinite" : "outlier", i, l->at[last], v, s->edge, err,
                             "a value is %.9g; others %s about %.6g", v,
                             s->high ? "end at" : "begin at", s->edge);
        k = last;
    }
    return rc;
}

static int find_side(cm_look *l, bool high, cm_error *err)
{
    side s = {.high = high, .extreme = high ? -INFINITY : INFINITY};
    for (size_t k = 0; k < l->nat; k++) {
        const double v = extreme_of(&l->s->step[l->at[k]], high);
        s.extreme = high ? fmax(s.extreme, v) : fmin(s.extreme, v);
    }
    if (l->nat == 0 || !find_usual(l, &s))
        return CM_OK;
    const double beyond = fabs(s.extreme - s.edge);
    if (is_sentinel(s.extreme) && beyond > 1.5 * s.spread)
        return tell(l, &s, s.extreme, true, err);
    const double far = s.edge + (high ? 20 : -20) * s.spread;
    if (high ? s.extreme <= far : s.extreme >= far)
        return CM_OK;
    /* A sample of a field with a long tail does not reach its end: other steps' ends do. */
    const double next = next_below(l, &s, far);
    const bool stands_out = !isnan(next) && fabs(s.extreme - next) > 20 * fabs(next - s.middle);
    return stands_out || beyond > 1e6 * s.spread ? tell(l, &s, far, false, err) : CM_OK;
}

static int find_invalid(cm_look *l, bool high, cm_error *err)
{
    const cm_series *s = l->s;
    const double bound = high ? s->high : s->low, margin = 1e-6 * (fabs(bound) + 1e-30);
    int rc = CM_OK;
    if (high ? !s->has_high : !s->has_low)
        return CM_OK;
    for (size_t i = 0; i < s->n && rc == CM_OK; i++) {
        double worst = bound;
        size_t end = i;
        for (; end < s->n && s->step[end].count > 0; end++) {
            const double v = extreme_of(&s->step[end], high);
            if (high ? v <= bound + margin : v >= bound - margin)
                break;
            worst = high ? fmax(worst, v) : fmin(worst, v);
        }
        if (end == i)
            continue;
        rc = cm_look_add(l, "outside-valid-range", i, end - 1, worst, bound, err,
                         "a value is %.9g, and the attributes say that %s %.9g is not valid", worst,
                         high ? "more than" : "less than", bound);
        i = end - 1;
    }
    return rc;
}

int cm_look_extremes(cm_look *l, cm_error *err)
{
    int rc = find_invalid(l, false, err);
    if (rc == CM_OK)
        rc = find_invalid(l, true, err);
    /* Small integers are flags and classes. */
    for (int high = 0; high < 2 && rc == CM_OK && (l->s->is_float || l->s->nbytes > 1); high++) {
        /* Both of a fill value and of an outlier, one after the other. */
        for (int again = 0; again < 2 && rc == CM_OK; again++) {
            rc = find_side(l, high, err);
            cm_look_again(l);
        }
    }
    return rc;
}
