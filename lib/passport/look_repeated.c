/* Fields that are equal, element for element, to that of an earlier step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "passport/look.h"

enum {
    FEW_ELEMENTS = 16 /* that may be equal by chance */
};

typedef struct field {
    uint64_t hash;
    size_t step;
} field;

static int compare(const void *a, const void *b)
{
    const field *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

/* Equal samples, too: fingerprints of small integers are sums that other fields may have. */
static bool are_equal(const cm_series *s, const field *a, const field *b)
{
    const size_t points = (size_t)s->nx * s->ny * s->nz;
    return a->hash == b->hash && memcmp(s->sample + a->step * points, s->sample + b->step * points,
                                        points * sizeof(s->sample[0])) == 0;
}

/* EARLIER[i]: the last step before I that has its field, plus 1; 0: none has. */
static size_t find_earlier(const cm_look *l, field *f, size_t *earlier)
{
    size_t n = 0, same = 0;
    for (size_t k = 0; k < l->nat; k++) {
        const size_t i = l->at[k];
        const cm_passport_step *p = &l->s->step[i];
        if (p->count >= FEW_ELEMENTS && p->min < p->max)
            f[n++] = (field){l->s->hash[i], i};
    }
    qsort(f, n, sizeof(f[0]), compare);
    for (size_t k = 1; k < n; k++)
        if (are_equal(l->s, &f[k], &f[k - 1])) {
            earlier[f[k].step] = f[k - 1].step + 1;
            same++;
        }
    return same;
}

/* The last step of a run from I on that repeats what lies as far behind it. */
static size_t run_end(const cm_series *s, const size_t *earlier, size_t i)
{
    const size_t lag = i + 1 - earlier[i];
    while (i + 1 < s->n && earlier[i + 1] != 0 && i + 2 - earlier[i + 1] == lag)
        i++;
    return i;
}

static int tell(const cm_look *l, const size_t *earlier, cm_error *err)
{
    const cm_series *s = l->s;
    size_t nruns = 0;
    int rc = CM_OK;
    for (size_t i = 0; i < s->n; i++)
        if (earlier[i] != 0) {
            nruns++;
            i = run_end(s, earlier, i);
        }
    if (nruns > 3 + s->n / 50)
        return CM_OK;
    for (size_t i = 0; i < s->n && rc == CM_OK; i++) {
        if (earlier[i] == 0)
            continue;
        const size_t last = run_end(s, earlier, i), from = earlier[i] - 1;
        const double of = (double)(from * s->together);
        if (from + 1 == i)
            rc = cm_look_add(l, "stuck", i, last, of, NAN, err,
                             "the same field as in step %.0f, element for element", of);
        else
            rc = cm_look_add(l, "repeated", i, last, of, NAN, err,
                             "the same fields as from step %.0f on, element for element", of);
        i = last;
    }
    return rc;
}

int cm_look_repeated(cm_look *l, cm_error *err)
{
    const size_t n = l->s->n;
    field *f = cm_calloc(n, sizeof(f[0]), err);
    size_t *earlier = f != NULL ? cm_calloc(n, sizeof(earlier[0]), err) : NULL;
    int rc = earlier == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && l->nat >= 4 && (double)find_earlier(l, f, earlier) <= 0.3 * (double)l->nat)
        rc = tell(l, earlier, err);
    free(earlier);
    free(f);
    return rc;
}
