/* Steps whose field has one value everywhere, between steps that have not. */
#include <math.h>

#include "passport/look.h"

enum {
    FEW_ELEMENTS = 8
};

static bool is_constant(const cm_passport_step *p)
{
    return p->count >= FEW_ELEMENTS && p->min == p->max;
}

/* The share of step I's samples that are VALUE. */
static double share_of(const cm_series *s, size_t i, double value)
{
    const size_t points = (size_t)s->nx * s->ny * s->nz;
    size_t n = 0, same = 0;
    for (size_t k = 0; k < points; k++) {
        const double v = s->sample[i * points + k];
        n += !isnan(v);
        same += v == value;
    }
    return n > 0 ? (double)same / (double)n : 1;
}

/* A field that fades into one value, as radiation at dusk or snow in spring, is in order. */
static bool is_abrupt(const cm_look *l, size_t first, size_t last, double usual, double value)
{
    const cm_series *s = l->s;
    const bool has[2] = {first > 0, last + 1 < l->nat};
    for (int side = 0; side < 2; side++) {
        if (!has[side])
            continue;
        const size_t i = l->at[side == 0 ? first - 1 : last + 1];
        if (s->step[i].std < 0.25 * usual || share_of(s, i, value) > 0.5)
            return false;
    }
    return has[0] || has[1];
}

static double usual_std(cm_look *l, size_t *nconstant)
{
    size_t n = 0;
    *nconstant = 0;
    for (size_t k = 0; k < l->nat; k++) {
        const cm_passport_step *p = &l->s->step[l->at[k]];
        if (is_constant(p))
            ++*nconstant;
        else
            l->work[n++] = p->std;
    }
    cm_sort(l->work, n);
    return cm_quantile(l->work, n, 0.5);
}

/* All of the variable has one value. */
static int find_all(const cm_look *l, cm_error *err)
{
    const cm_series *s = l->s;
    for (size_t k = 1; k < l->nat; k++)
        if (s->step[l->at[k]].min != s->step[l->at[0]].min)
            return CM_OK;
    if (l->nat < 4 || !s->is_time || !s->is_float)
        return CM_OK;
    const double value = s->step[l->at[0]].min;
    return cm_findings_add(
        l->out, s->name,
        &(cm_passport_finding){.kind = "constant", .value = value, .expected = NAN}, err,
        "every value of the variable is %.9g", value);
}

int cm_look_constant(cm_look *l, cm_error *err)
{
    size_t n;
    const double usual = usual_std(l, &n);
    int rc = CM_OK;
    if (n > 0 && n == l->nat)
        return find_all(l, err);
    if (!l->s->is_time || l->nat < 4 || n > cm_look_most(l->nat))
        return CM_OK;
    for (size_t k = 0; k < l->nat && rc == CM_OK; k++) {
        size_t last = k;
        if (!is_constant(&l->s->step[l->at[k]]))
            continue;
        const double value = l->s->step[l->at[k]].min;
        while (last + 1 < l->nat && is_constant(&l->s->step[l->at[last + 1]]) &&
               l->s->step[l->at[last + 1]].min == value)
            last++;
        const bool told = is_abrupt(l, k, last, usual, value);
        if (told)
            rc = cm_look_add(l, value == 0 ? "zeros" : "constant", l->at[k], l->at[last], value,
                             NAN, err, "every value is %.9g", value);
        for (size_t m = k; m <= last; m++)
            l->skip[l->at[m]] = true;
        k = last;
    }
    cm_look_again(l);
    return rc;
}
