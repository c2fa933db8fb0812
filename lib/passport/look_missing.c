/* Steps without values, and steps with more or fewer missing ones than the others. */
#include <math.h>
#include <string.h>

#include "passport/look.h"

static bool is_empty(const cm_series *s, size_t i)
{
    return s->step[i].count == 0 && s->step[i].missing > 0;
}

static int find_empty(cm_look *l, cm_error *err)
{
    const cm_series *s = l->s;
    size_t n = 0;
    int rc = CM_OK;
    for (size_t i = 0; i < s->n; i++)
        n += is_empty(s, i);
    const bool few = s->is_time && s->n >= 3 && n <= cm_look_most(s->n);
    for (size_t i = 0; i < s->n && rc == CM_OK; i++) {
        if (s->step[i].count > 0)
            continue;
        size_t last = i;
        while (last + 1 < s->n && is_empty(s, last + 1))
            last++;
        for (size_t k = i; k <= last; k++)
            l->skip[k] = true;
        if (few && is_empty(s, i))
            rc = cm_look_add(l, "missing-step", i, last, (double)s->step[i].missing, NAN, err,
                             "every value is missing");
        i = last;
    }
    return rc;
}

/* Steps whose number of missing values is far from the usual one. */
static int find_partial(cm_look *l, cm_error *err)
{
    const cm_series *s = l->s;
    double *away = l->work, *sorted = l->work + s->n;
    if (!s->is_time || l->nat < 4)
        return CM_OK;
    for (size_t k = 0; k < l->nat; k++)
        sorted[k] = (double)s->step[l->at[k]].missing;
    cm_sort(sorted, l->nat);
    const double usual = cm_quantile(sorted, l->nat, 0.5);
    for (size_t k = 0; k < l->nat; k++)
        away[k] = fabs((double)s->step[l->at[k]].missing - usual);
    const cm_passport_step *one = &s->step[l->at[0]];
    const double nelem = (double)(one->count + one->missing);
    const double from = cm_look_outstanding(away, l->nat, fmax(0.5, 0.002 * nelem), sorted);
    int rc = CM_OK;
    for (size_t k = 0; k < l->nat && rc == CM_OK; k++) {
        const size_t i = l->at[k];
        if (away[k] < from)
            continue;
        l->skip[i] = true;
        rc = cm_look_add(l, "missing-values", i, i, (double)s->step[i].missing, usual, err,
                         "%.0f of %.0f values are missing; usual are %.0f",
                         (double)s->step[i].missing,
                         (double)(s->step[i].count + s->step[i].missing), usual);
    }
    return rc;
}

int cm_look_missing(cm_look *l, bool *nothing, cm_error *err)
{
    const cm_series *s = l->s;
    uint64_t count = 0, missing = 0;
    for (size_t i = 0; i < s->n; i++) {
        count += s->step[i].count;
        missing += s->step[i].missing;
    }
    *nothing = count == 0;
    if (count == 0)
        return missing == 0 ? CM_OK
                            : cm_findings_add(l->out, s->name,
                                              &(cm_passport_finding){.kind = "all-missing",
                                                                     .value = (double)missing,
                                                                     .expected = NAN},
                                              err, "every value of the variable is missing");
    int rc = find_empty(l, err);
    cm_look_again(l);
    if (rc == CM_OK)
        rc = find_partial(l, err);
    cm_look_again(l);
    return rc;
}
