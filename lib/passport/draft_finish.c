/* The end of a draft: sums become statistics, and these are judged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "passport/draft_impl.h"

static double shown(const cm_draft_entry *e, double stored)
{
    return stored * e->scale + e->offset;
}

/* ---- statistics ---- */

static cm_passport_step step_of(const cm_draft_entry *e, const cm_bin *b)
{
    cm_passport_step s = {.count = b->count, .missing = b->missing};
    if (b->count == 0)
        return s;
    const double n = (double)b->count, low = shown(e, b->min), high = shown(e, b->max);
    const bool is_finite = !isinf(b->min) && !isinf(b->max);
    const double mean = (b->sum.high + b->sum.low) / n;
    /* The square of the sum over n, in two doubles: the rest of the division counts. */
    const double rest = (fma(-mean, n, b->sum.high) + b->sum.low) / n;
    const double product = mean * b->sum.high;
    const double lost = fma(mean, b->sum.high, -product) + mean * b->sum.low + rest * b->sum.high;
    const double square = (b->square.high - product) + (b->square.low - lost);
    s.min = e->scale < 0 ? high : low;
    s.max = e->scale < 0 ? low : high;
    s.std = !is_finite ? NAN : square > 0 ? sqrt(square / n) * fabs(e->scale) : 0;
    /* Of values that are infinite the sum is, too; of both signs it is no number. */
    s.mean = is_finite                   ? shown(e, mean)
             : isinf(low) && isinf(high) ? low + high
             : isinf(low)                ? low
                                         : high;
    /* Rounding may not leave a mean outside of the values. */
    s.mean = s.mean < s.min ? s.min : s.mean > s.max ? s.max : s.mean;
    return s;
}

static cm_passport_step sum_of(const cm_passport_step *step, size_t n)
{
    cm_passport_step all = {.min = INFINITY, .max = -INFINITY};
    double m2 = 0;
    for (size_t i = 0; i < n; i++) {
        const cm_passport_step *s = &step[i];
        all.missing += s->missing;
        if (s->count == 0)
            continue;
        const double count = (double)s->count, total = (double)all.count + count;
        const bool is_finite = isfinite(s->mean) && isfinite(all.mean);
        const double moved = is_finite ? s->mean - all.mean : NAN;
        m2 += s->std * s->std * count + moved * moved * (double)all.count * count / total;
        all.mean = is_finite ? all.mean + moved * count / total : all.mean + s->mean;
        all.count += s->count;
        all.min = fmin(all.min, s->min);
        all.max = fmax(all.max, s->max);
    }
    all.std = all.count > 0 ? sqrt(m2 / (double)all.count) : 0;
    return all;
}

static int take_pictures(cm_draft_entry *e, cm_error *err)
{
    cm_passport_variable *v = e->v;
    const cm_counter *c = e->counter;
    v->picture_is_whole = c->whole;
    for (unsigned i = 0; i < c->npictures; i++) {
        cm_passport_picture *p = &v->picture[i];
        unsigned x = v->rank - 1, y;
        if (!c->whole && x == v->step_dim)
            x--;
        y = x - 1;
        if (!c->whole && y == v->step_dim)
            y--;
        /* Others have one sample each, so that points are rows of columns. */
        p->step = c->pictured[i];
        p->width = c->grid.count[x];
        p->height = c->grid.count[y];
        p->value = cm_calloc(c->grid.npoints, sizeof(p->value[0]), err);
        if (p->value == NULL)
            return CM_ENOMEM;
        v->npictures++;
        for (size_t k = 0; k < c->grid.npoints; k++)
            p->value[k] = (float)shown(e, c->picture[(size_t)i * c->grid.npoints + k]);
    }
    return CM_OK;
}

static int take_counts(cm_draft_entry *e, cm_error *err)
{
    cm_passport_variable *v = e->v;
    const cm_counter *c = e->counter;
    v->nsteps = c->nsteps;
    v->together = c->together;
    v->step = cm_calloc(c->nbins + 1, sizeof(v->step[0]), err);
    if (v->step == NULL)
        return CM_ENOMEM;
    v->nstep = c->nbins;
    for (size_t i = 0; i < v->nstep; i++)
        v->step[i] = step_of(e, &c->bin[i]);
    v->all = sum_of(v->step, v->nstep);
    for (uint64_t k = 0; k < c->nbins * c->sketch.npoints && e->packed; k++)
        c->sample[k] = shown(e, c->sample[k]);
    return take_pictures(e, err);
}

/* ---- findings ---- */

/* All values of a coordinate; NULL: too many are there, or they were not counted. */
static const double *values_of(const cm_draft_entry *e)
{
    const cm_counter *c = e->counter;
    return c != NULL && e->v->rank == 1 && c->together == 1 ? c->sample : NULL;
}

static int find_in_variable(const cm_draft *d, const cm_draft_entry *e, cm_findings *out,
                            cm_error *err)
{
    const cm_passport_variable *v = e->v;
    const cm_counter *c = e->counter;
    uint64_t *hash = cm_calloc(v->nstep + 1, sizeof(hash[0]), err);
    if (hash == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < v->nstep; i++)
        hash[i] = c->bin[i].hash;
    cm_series s = {.name = v->name,
                   .is_time = v->is_time,
                   .is_float = c->o.rule.type.kind == CM_KIND_FLOAT,
                   .nbytes = c->o.rule.type.nbytes,
                   .is_packed = e->packed,
                   .together = v->together,
                   .n = v->nstep,
                   .step = v->step,
                   .hash = hash,
                   .sample = c->sample,
                   .nx = 1,
                   .ny = 1,
                   .nz = 1,
                   .columns = 1,
                   .y_name = "its rows",
                   .x_name = "its columns",
                   .has_low = e->has_low,
                   .has_high = e->has_high,
                   .low = e->low,
                   .high = e->high};
    unsigned nth = 0;
    for (unsigned j = v->rank; j-- > 0;) {
        if (j == v->step_dim)
            continue;
        const char *name = v->dim_name[j];
        if (nth == 0) {
            s.nx = c->sketch.count[j];
            s.columns = v->shape[j];
            s.x_name = name != NULL ? name : s.x_name;
        } else if (nth == 1) {
            s.ny = c->sketch.count[j];
            s.y_name = name != NULL ? name : s.y_name;
        } else {
            s.nz *= c->sketch.count[j];
        }
        nth++;
    }
    (void)d;
    int rc = cm_find_in_series(&s, out, err);
    free(hash);
    return rc;
}

static int find_in_coordinate(const cm_draft_entry *e, cm_findings *out, cm_error *err)
{
    const double *value = values_of(e);
    const size_t n = (size_t)e->v->nsteps;
    if (value == NULL)
        return CM_OK;
    if (e->is_timely)
        return cm_find_in_times(e->v->name, value, n, out, err);
    if (e->is_latitude || e->is_longitude)
        return cm_find_in_positions(e->v->name, value, n, e->is_longitude, out, err);
    return CM_OK;
}

/* ---- steps by their coordinate ---- */

/* "1980-01-13", "1980-01-13T06:00:00", or the number; NULL: no memory. */
static char *label_of(const cm_draft_entry *e, double value, cm_error *err)
{
    char text[40];
    const double us = value * (double)e->axis.unit_us / (double)e->axis.per_us;
    if (!e->is_axis || !(fabs(us) < 4e18))
        return cm_asprintf(err, "%.9g", value);
    /* Numbers of floats lie beside whole seconds by less than a millisecond. */
    const double second = 1e6, whole = round(us / second) * second;
    cm_time_axis_text(&e->axis, (int64_t)(fabs(us - whole) < 1e3 ? whole : us), text, sizeof text);
    char *midnight = strstr(text, "T00:00:00");
    if (midnight != NULL && midnight[9] == '\0')
        *midnight = '\0';
    return cm_strdup(text, err);
}

static const cm_draft_entry *entry_named(const cm_draft *d, const char *name)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->entry[i].v->name, name) == 0)
            return &d->entry[i];
    return NULL;
}

/* The coordinate of V's steps, with its values; NULL: there is none. */
static const cm_draft_entry *steps_of(const cm_draft *d, const cm_passport_variable *v)
{
    const cm_draft_entry *c = v->is_counted ? cm_draft_coordinate(d, v, v->step_dim) : NULL;
    return c != NULL && values_of(c) != NULL ? c : NULL;
}

static int label_finding(const cm_draft *d, cm_passport_finding *f, cm_error *err)
{
    const cm_draft_entry *e = entry_named(d, f->variable);
    if (e == NULL || !f->has_steps)
        return CM_OK;
    if (f->last >= e->v->nsteps && e->v->nsteps > 0)
        f->last = e->v->nsteps - 1;
    const cm_draft_entry *c = steps_of(d, e->v);
    if (c == NULL)
        return CM_OK;
    f->from = label_of(c, values_of(c)[f->first], err);
    f->to = label_of(c, values_of(c)[f->last], err);
    return f->from == NULL || f->to == NULL ? CM_ENOMEM : CM_OK;
}

static int label_variable(const cm_draft *d, cm_passport_variable *v, cm_error *err)
{
    const cm_draft_entry *c = steps_of(d, v);
    if (c == NULL || v->nsteps == 0)
        return CM_OK;
    v->first_label = label_of(c, values_of(c)[0], err);
    v->last_label = label_of(c, values_of(c)[v->nsteps - 1], err);
    if (v->first_label == NULL || v->last_label == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < v->npictures && !v->picture_is_whole; i++)
        if ((v->picture[i].label = label_of(c, values_of(c)[v->picture[i].step], err)) == NULL)
            return CM_ENOMEM;
    return CM_OK;
}

/* From the first to the last time of the longest time coordinate. */
static int find_period(cm_draft *d, cm_error *err)
{
    const cm_draft_entry *longest = NULL;
    for (size_t i = 0; i < d->n; i++) {
        const cm_draft_entry *e = &d->entry[i];
        if (e->is_axis && e->v->is_coordinate && values_of(e) != NULL && e->v->nsteps > 0 &&
            e->v->all.count > 0 && (longest == NULL || e->v->nsteps > longest->v->nsteps))
            longest = e;
    }
    if (longest == NULL)
        return CM_OK;
    d->passport->first_time = label_of(longest, longest->v->all.min, err);
    d->passport->last_time = label_of(longest, longest->v->all.max, err);
    return d->passport->first_time == NULL || d->passport->last_time == NULL ? CM_ENOMEM : CM_OK;
}

/* Which way up pictures are shown. */
static void find_north(const cm_draft *d, cm_passport_variable *v)
{
    v->north_is_up = true;
    if (v->npictures == 0)
        return;
    unsigned y = v->rank - 1, left = 1;
    if (!v->picture_is_whole)
        for (y = v->rank; y-- > 0;)
            if (y != v->step_dim && left-- == 0)
                break;
    if (v->picture_is_whole)
        y = 0;
    const cm_draft_entry *c = cm_draft_coordinate(d, v, y);
    const double *value = c != NULL && c->is_latitude ? values_of(c) : NULL;
    v->has_latitude = value != NULL;
    if (value != NULL && c->v->nsteps > 1)
        v->north_is_up = value[0] > value[c->v->nsteps - 1];
}

static int judge(cm_draft *d, cm_findings *f, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < d->n && rc == CM_OK; i++) {
        const cm_draft_entry *e = &d->entry[i];
        if (e->counter == NULL)
            continue;
        rc = e->v->is_coordinate ? find_in_coordinate(e, f, err) : find_in_variable(d, e, f, err);
    }
    for (size_t i = 0; i < f->n && rc == CM_OK; i++)
        rc = label_finding(d, &f->item[i], err);
    return rc;
}

int cm_draft_finish(cm_draft *d, cm_passport **out, cm_error *err)
{
    cm_findings f = {0};
    int rc = CM_OK;
    for (size_t i = 0; i < d->n && rc == CM_OK; i++) {
        const cm_draft_entry *e = &d->entry[i];
        if (e->counter == NULL)
            continue;
        d->passport->seconds += (double)e->counter->ns * 1e-9;
        rc = take_counts(&d->entry[i], err);
    }
    if (rc == CM_OK)
        rc = judge(d, &f, err);
    if (rc == CM_OK)
        rc = find_period(d, err);
    for (size_t i = 0; i < d->n && rc == CM_OK; i++) {
        find_north(d, d->entry[i].v);
        rc = label_variable(d, d->entry[i].v, err);
    }
    if (rc != CM_OK) {
        cm_findings_release(&f);
        return rc;
    }
    d->passport->finding = f.item;
    d->passport->nfindings = f.n;
    d->passport->nleft_out = f.left_out;
    *out = d->passport;
    for (size_t i = 0; i < d->n; i++)
        cm_counter_free(d->entry[i].counter);
    d->n = 0;
    d->passport = NULL;
    return CM_OK;
}
