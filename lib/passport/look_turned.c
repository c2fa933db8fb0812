/*
 * Fields that are upside down, turned along the last dimension, or of the other sign: they
 * resemble the step before once that is undone, and not as they are.
 */
#include <math.h>

#include "passport/look.h"

enum {
    FEW_STEPS = 6,
    FEW_POINTS = 24,
    MOST_TURNS = 6
};

typedef enum turn {
    AS_IT_IS,
    UPSIDE_DOWN,
    OTHER_SIGN,
    SHIFTED
} turn;

/* How far A and B are from being alike: 1 minus their correlation, B turned. */
static double unlike(const cm_series *s, size_t a, size_t b, turn t, unsigned shift)
{
    const size_t points = (size_t)s->nx * s->ny * s->nz;
    const double *x = s->sample + a * points, *y = s->sample + b * points;
    double n = 0, sx = 0, sy = 0, xx = 0, yy = 0, xy = 0;
    const double ox = x[0], oy = y[0]; /* sums of differences keep their digits */
    for (size_t z = 0; z < s->nz; z++)
        for (size_t r = 0; r < s->ny; r++)
            for (size_t c = 0; c < s->nx; c++) {
                const size_t row = t == UPSIDE_DOWN ? s->ny - 1 - r : r;
                const size_t column = t == SHIFTED ? (c + shift) % s->nx : c;
                const double u = x[(z * s->ny + r) * s->nx + c] - (isfinite(ox) ? ox : 0);
                const double v = y[(z * s->ny + row) * s->nx + column] - (isfinite(oy) ? oy : 0);
                if (!isfinite(u) || !isfinite(v))
                    continue;
                n += 1;
                sx += u;
                sy += v;
                xx += u * u;
                yy += v * v;
                xy += u * v;
            }
    const double vx = xx - sx * sx / n, vy = yy - sy * sy / n;
    if (n < FEW_POINTS || !(vx > 0) || !(vy > 0))
        return NAN;
    const double r = (xy - sx * sy / n) / sqrt(vx * vy);
    return 1 - (t == OTHER_SIGN ? -r : r);
}

/* The means have different signs, or say nothing. */
static bool signs_differ(const cm_series *s, size_t a, size_t b)
{
    const cm_passport_step *p = &s->step[a], *q = &s->step[b];
    if (fabs(p->mean) < 0.5 * p->std)
        return true;
    return fabs(p->mean + q->mean) < 0.25 * fabs(p->mean - q->mean);
}

typedef struct edge {
    size_t at; /* in the list of steps: differs from the one before */
    turn turn;
    unsigned shift;
} edge;

/* The turn that explains why A and B differ by WORST: almost nothing may be left. */
static edge explain(const cm_series *s, size_t a, size_t b, double worst, double usual)
{
    edge e = {.turn = AS_IT_IS};
    double best = fmin(worst / 4, 3 * usual + 0.02);
    const double down = unlike(s, a, b, UPSIDE_DOWN, 0);
    if (down < best) {
        best = down;
        e.turn = UPSIDE_DOWN;
    }
    const double sign = signs_differ(s, a, b) ? unlike(s, a, b, OTHER_SIGN, 0) : NAN;
    if (sign < best) {
        best = sign;
        e.turn = OTHER_SIGN;
    }
    for (unsigned k = 1; k < s->nx; k++) {
        const double u = unlike(s, a, b, SHIFTED, k);
        if (u < best) {
            best = u;
            e.turn = SHIFTED;
            e.shift = k;
        }
    }
    return e;
}

static int tell(cm_look *l, const edge *e, size_t first, size_t end, cm_error *err)
{
    const cm_series *s = l->s;
    const size_t a = l->at[first], b = l->at[end - 1];
    for (size_t k = first; k < end; k++)
        l->skip[l->at[k]] = true;
    if (e->turn == UPSIDE_DOWN)
        return cm_look_add(l, "upside-down", a, b, NAN, NAN, err,
                           "the field is upside down along %s, compared with the steps around it",
                           s->y_name);
    if (e->turn == OTHER_SIGN)
        return cm_look_add(l, "sign-flip", a, b, s->step[a].mean, NAN, err,
                           "the field has the other sign than the steps around it");
    const double columns = (double)e->shift / s->nx * (double)s->columns;
    return cm_look_add(l, "shifted", a, b, columns, 0, err,
                       "the field is turned along %s by about %.0f of %.0f columns", s->x_name,
                       columns, (double)s->columns);
}

static int tell_all(cm_look *l, const edge *e, size_t n, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        const size_t at = e[i].at;
        if (i + 1 < n && e[i + 1].turn == e[i].turn) {
            rc = tell(l, &e[i], at, e[i + 1].at, err);
            i++;
        } else if (at < l->nat - at) {
            rc = tell(l, &e[i], 0, at, err);
        } else {
            rc = tell(l, &e[i], at, l->nat, err);
        }
    }
    return rc;
}

int cm_look_turned(cm_look *l, cm_error *err)
{
    const cm_series *s = l->s;
    double *change = l->work, *sorted = l->work + s->n;
    edge found[MOST_TURNS];
    size_t n = 0, m = 0;
    if (s->nx < 8 || s->ny < 4 || l->nat < FEW_STEPS)
        return CM_OK;
    for (size_t k = 1; k < l->nat; k++) {
        change[k - 1] = unlike(s, l->at[k - 1], l->at[k], AS_IT_IS, 0);
        if (!isnan(change[k - 1]))
            sorted[m++] = change[k - 1];
    }
    cm_sort(sorted, m);
    const double usual = cm_quantile(sorted, m, 0.6);
    for (size_t k = 1; k < l->nat && m > 0; k++) {
        if (!(change[k - 1] > 0.05) || change[k - 1] < 4 * usual)
            continue;
        edge e = explain(s, l->at[k - 1], l->at[k], change[k - 1], usual);
        if (e.turn == AS_IT_IS)
            continue;
        if (n == MOST_TURNS || n == cm_look_most(l->nat))
            return CM_OK;
        e.at = k;
        found[n++] = e;
    }
    int rc = tell_all(l, found, n, err);
    cm_look_again(l);
    return rc;
}
