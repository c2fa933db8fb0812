/* All rules for one series, one after the other. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "passport/look.h"

enum {
    MOST_VALUES = 16384 /* in the sample of all steps */
};

/* An even sample of all steps' samples. */
static int sample_all(cm_look *l, cm_error *err)
{
    const cm_series *s = l->s;
    const size_t points = (size_t)s->nx * s->ny * s->nz, all = s->n * points;
    const size_t by = all / MOST_VALUES + 1;
    l->value = cm_calloc(all / by + 2, sizeof(l->value[0]), err);
    if (l->value == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < all; i += by)
        if (isfinite(s->sample[i]))
            l->value[l->nvalues++] = s->sample[i];
    cm_sort(l->value, l->nvalues);
    return CM_OK;
}

static int look(cm_look *l, cm_error *err)
{
    bool nothing;
    int rc = cm_look_missing(l, &nothing, err);
    if (rc != CM_OK || nothing)
        return rc;
    rc = sample_all(l, err);
    if (rc == CM_OK)
        rc = cm_look_extremes(l, err);
    if (rc == CM_OK)
        rc = cm_look_constant(l, err);
    if (rc != CM_OK || !l->s->is_time)
        return rc;
    rc = cm_look_repeated(l, err);
    if (rc == CM_OK)
        rc = cm_look_jumps(l, err);
    if (rc == CM_OK)
        rc = cm_look_turned(l, err);
    return rc == CM_OK ? cm_look_precision(l, err) : rc;
}

int cm_find_in_series(const cm_series *s, cm_findings *out, cm_error *err)
{
    cm_look l = {.s = s, .out = out};
    if (s->n == 0)
        return CM_OK;
    l.skip = cm_calloc(s->n, sizeof(l.skip[0]), err);
    l.at = l.skip != NULL ? cm_calloc(s->n, sizeof(l.at[0]), err) : NULL;
    l.work = l.at != NULL ? cm_calloc(2 * s->n, sizeof(l.work[0]), err) : NULL;
    int rc = l.work != NULL ? look(&l, err) : CM_ENOMEM;
    free(l.value);
    free(l.work);
    free(l.at);
    free(l.skip);
    return rc;
}
