/*
 * Steps whose values have lost digits: all are multiples of a larger number than those of any other
 * step, or few of them differ.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "passport/look.h"

enum {
    FEW_STEPS = 6,
    FEW_POINTS = 64,
    LOST_BITS = 2 /* archives that choose a precision for each field differ by one */
};

/* Bits that the samples of a step use. */
typedef struct bits {
    int lowest; /* the exponent of the lowest bit that any has; INT_MAX: too few samples */
    int most;   /* from the highest to the lowest bit of one sample */
} bits;

static bits bits_of(const cm_series *s, size_t i)
{
    const size_t points = (size_t)s->nx * s->ny * s->nz;
    size_t n = 0;
    bits b = {INT_MAX, 0};
    for (size_t k = 0; k < points; k++) {
        const double v = s->sample[i * points + k];
        int exponent;
        if (!isfinite(v) || v == 0)
            continue;
        n++;
        uint64_t whole = (uint64_t)ldexp(fabs(frexp(v, &exponent)), 53);
        const int zeros = __builtin_ctzll(whole);
        b.lowest = exponent - 53 + zeros < b.lowest ? exponent - 53 + zeros : b.lowest;
        b.most = 53 - zeros > b.most ? 53 - zeros : b.most;
    }
    if (n < FEW_POINTS)
        b.lowest = INT_MAX;
    return b;
}

/* The share of different values among the samples of step I; NaN: too few. */
static double distinct(const cm_series *s, size_t i, double *sorted)
{
    const size_t points = (size_t)s->nx * s->ny * s->nz;
    size_t n = 0, different = 0;
    for (size_t k = 0; k < points; k++)
        if (isfinite(s->sample[i * points + k]))
            sorted[n++] = s->sample[i * points + k];
    cm_sort(sorted, n);
    for (size_t k = 0; k < n; k++)
        different += k == 0 || sorted[k] != sorted[k - 1];
    return n >= FEW_POINTS ? (double)different / (double)n : NAN;
}

static int tell(const cm_look *l, const size_t *place, size_t n, const double *unit, double usual,
                cm_error *err)
{
    int rc = CM_OK;
    for (size_t k = 0; k < n && rc == CM_OK; k++) {
        const size_t i = place[k];
        if (isnan(unit[k]))
            rc = cm_look_add(l, "precision", i, i, NAN, NAN, err,
                             "far fewer different values than in other steps: digits are lost");
        else
            rc = cm_look_add(l, "precision", i, i, unit[k], usual, err,
                             "every value is a multiple of %.6g, in other steps of %.6g", unit[k],
                             usual);
    }
    return rc;
}

/*
 * Steps with larger units than all others, and with fewer bits: values near zero alone have small
 * ones.  Returns their number.
 */
static size_t by_bits(const cm_look *l, double *lowest, double *sorted, size_t *place, double *unit,
                      double *usual)
{
    size_t n = 0;
    int fewest = INT_MAX;
    for (size_t k = 0; k < l->nat; k++) {
        const bits b = bits_of(l->s, l->at[k]);
        if (b.lowest == INT_MAX)
            return 0;
        lowest[k] = sorted[k] = b.lowest;
    }
    cm_sort(sorted, l->nat);
    size_t m = cm_look_most(l->nat);
    while (m > 0 && sorted[l->nat - m] < sorted[l->nat - m - 1] + LOST_BITS)
        m--;
    if (m == 0)
        return 0;
    const double next = sorted[l->nat - m - 1];
    for (size_t k = 0; k < l->nat; k++)
        if (lowest[k] <= next) {
            const int most = bits_of(l->s, l->at[k]).most;
            fewest = most < fewest ? most : fewest;
        }
    for (size_t k = 0; k < l->nat; k++)
        if (lowest[k] > next && bits_of(l->s, l->at[k]).most + LOST_BITS <= fewest) {
            place[n] = l->at[k];
            unit[n++] = ldexp(1, (int)lowest[k]);
        }
    *usual = ldexp(1, (int)next);
    return n;
}

static size_t by_count(const cm_look *l, double *share, double *sorted, double *scratch,
                       size_t *place, double *unit)
{
    size_t n = 0;
    for (size_t k = 0; k < l->nat; k++) {
        share[k] = sorted[k] = distinct(l->s, l->at[k], scratch);
        if (isnan(share[k]))
            return 0;
    }
    cm_sort(sorted, l->nat);
    for (size_t m = cm_look_most(l->nat); m > 0; m--)
        if (sorted[m - 1] < 0.25 && sorted[m] > 0.6) {
            for (size_t k = 0; k < l->nat; k++)
                if (share[k] <= sorted[m - 1]) {
                    place[n] = l->at[k];
                    unit[n++] = NAN;
                }
            break;
        }
    return n;
}

int cm_look_precision(cm_look *l, cm_error *err)
{
    const size_t points = (size_t)l->s->nx * l->s->ny * l->s->nz;
    const size_t most = cm_look_most(l->s->n) + 1;
    double usual = NAN;
    if (l->nat < FEW_STEPS || points < FEW_POINTS || !l->s->is_float)
        return CM_OK;
    size_t *place = cm_calloc(most, sizeof(place[0]), err);
    double *unit = place != NULL ? cm_calloc(most + points, sizeof(unit[0]), err) : NULL;
    int rc = unit == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK) {
        double *value = l->work, *sorted = l->work + l->s->n;
        size_t n = by_bits(l, value, sorted, place, unit, &usual);
        if (n == 0)
            n = by_count(l, value, sorted, unit + most, place, unit);
        rc = tell(l, place, n, unit, usual, err);
    }
    free(unit);
    free(place);
    return rc;
}
