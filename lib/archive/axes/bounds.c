/*
 * Makes bounds of steps that no file has: those of the step before, shifted by the distance of the
 * steps.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/values.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"

/* ---- instants as elements ---- */

/* The nearest number that a floating-point type has. */
static bool put_nearest(const cm_time_coding *to, int64_t us, uint8_t *dst)
{
    const long double number = ((long double)us - (long double)to->axis.origin_us) /
                               (long double)to->axis.unit_us * (long double)to->axis.per_us;
    const double wide = (double)number;
    const float narrow = (float)number;
    if (to->dtype.kind != CM_KIND_FLOAT || to->dtype.nbytes < 4)
        return false;
    memcpy(dst, to->dtype.nbytes == 4 ? (const void *)&narrow : &wide, to->dtype.nbytes);
    return true;
}

int cm_join_put_instant(const cm_time_coding *to, int64_t us, uint8_t *dst, cm_error *err)
{
    cm_time_coding from = {.axis = to->axis, .dtype = cm_dtype_make(CM_KIND_INT, 8)};
    uint64_t bad;
    from.axis.unit_us = from.axis.per_us = 1;
    us -= to->axis.origin_us;
    int rc = cm_time_rebase(&from, to, &us, dst, 1, &bad, err);
    /* No file has these bounds: the nearest number is as good as the instant. */
    return rc == CM_EINVAL && put_nearest(to, us + to->axis.origin_us, dst) ? CM_OK : rc;
}

/* ---- bounds ---- */

const cm_join_dim *cm_join_bounded(const cm_join_tables *tables, const cm_join_axes *axes,
                                   uint32_t at)
{
    static const char *const REFERRING[] = {"bounds", "climatology"};
    const cm_join_var *v = &tables->var[at];
    for (unsigned i = 0; i < axes->naxes; i++) {
        const cm_join_dim *d = &tables->dim[axes->axis[i]];
        if (d->nfilled == 0 || d->var == CM_JOIN_NONE || d->var == at || v->rank < 1 ||
            &tables->dim[v->dim[0]] != d || v->nlacking > 0 || !cm_dtype_is_number(&v->dtype))
            continue;
        for (size_t k = 0; k < 2; k++) {
            const char *name = cm_join_text(tables->var[d->var].like, REFERRING[k]);
            if (name != NULL && strcmp(name, v->name) == 0)
                return d;
        }
    }
    return NULL;
}

bool cm_join_has_bounds(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                        const cm_placement *p)
{
    const cm_join_var *v = &tables->var[at];
    cm_surveyed_var s;
    bool there = p != NULL && p->naxes == 1 && p->nparts > 0 &&
                 (v->rebased || (v->kinds & UINT32_C(1) << CM_FINDING_FILL) == 0);
    for (size_t i = 0; there && i < p->nparts; i++)
        there = cm_join_record(in, tables, at, p->part[i].file, &s) && s.has_values;
    return there;
}

typedef struct mover {
    const cm_join_dim *d;
    cm_time_coding coding; /* CM_KEY_TIME */
    cm_reading packed;     /* of numbers that stay packed: only where PACKED.packed */
    int64_t from, to;      /* keys */
} mover;

static int move_time(const mover *m, const uint8_t *src, uint8_t *dst, cm_error *err)
{
    cm_time_point point;
    int64_t us;
    if (!cm_time_coding_point(&m->coding, src, &point))
        return cm_fail(err, CM_EINVAL, "a bound is out of range");
    if (point.missing) {
        memcpy(dst, src, m->coding.dtype.nbytes);
        return CM_OK;
    }
    if (!cm_time_step_move(&m->d->step, m->from, m->to, point.us, &us))
        return cm_fail(err, CM_EUNSUPPORTED, "the bounds of missing steps cannot be told");
    return cm_join_put_instant(&m->coding, us, dst, err);
}

static int move_packed(const mover *m, const uint8_t *src, uint8_t *dst, cm_error *err)
{
    cm_meaning bound;
    cm_reading_means(&m->packed, src, &bound);
    if (bound.kind == CM_MEANS_NOTHING) {
        memcpy(dst, src, m->packed.dtype.nbytes);
        return CM_OK;
    }
    const double by = m->d->kind == CM_KEY_REAL ? cm_key_real(m->to) - cm_key_real(m->from)
                                                : (double)(m->to - m->from);
    return cm_reading_store_number(&m->packed, cm_meaning_number(&bound) + by, dst)
               ? CM_OK
               : cm_fail(err, CM_EUNSUPPORTED, "packed bounds of missing steps cannot be told");
}

static int move_number(const mover *m, const cm_dtype *type, const uint8_t *src, uint8_t *dst,
                       cm_error *err)
{
    if (m->packed.packed)
        return move_packed(m, src, dst, err);
    if (type->kind == CM_KIND_FLOAT && type->nbytes >= 4 && m->d->kind != CM_KEY_TIME) {
        const double by = m->d->kind == CM_KEY_REAL ? cm_key_real(m->to) - cm_key_real(m->from)
                                                    : (double)(m->to - m->from);
        double wide;
        float narrow;
        memcpy(type->nbytes == 4 ? (void *)&narrow : &wide, src, type->nbytes);
        narrow = type->nbytes == 4 ? (float)((double)narrow + by) : 0;
        wide = type->nbytes == 8 ? wide + by : 0;
        memcpy(dst, type->nbytes == 4 ? (const void *)&narrow : &wide, type->nbytes);
        return CM_OK;
    }
    if (m->d->kind != CM_KEY_INTEGER || type->kind == CM_KIND_FLOAT)
        return cm_fail(err, CM_EUNSUPPORTED, "the bounds of missing steps cannot be told");
    uint64_t bits = 0;
    memcpy(&bits, src, type->nbytes);
    bits += (uint64_t)(m->to - m->from); /* little-endian: the low bytes are kept */
    memcpy(dst, &bits, type->nbytes);
    return CM_OK;
}

static int coding_of(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                     cm_time_coding *out, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    cm_reading r;
    *out = v->coding;
    if (v->rebased)
        return CM_OK;
    if (!v->unpacked && cm_join_reading(in, tables, at, v->first, &r) && r.packed)
        return cm_fail(err, CM_EUNSUPPORTED, "packed bounds of missing steps cannot be told");
    int rc = cm_join_time_coding(in, tables, at, v->first, out, err);
    out->dtype = v->dtype;
    out->has_fill = v->has_fill_value;
    memcpy(out->fill, v->fill_value, sizeof(out->fill));
    return rc;
}

/* Steps that some file has; those of bounds that a file lacks are among them. */
static bool *find_steps(const cm_join_dim *d, cm_error *err)
{
    bool *there = cm_calloc(d->n + 1, 1, err);
    for (size_t i = 0; there != NULL && i < d->nvecs; i++)
        for (size_t k = 0; k < d->vec[i].nruns; k++)
            memset(there + d->vec[i].run[k].origin, true, d->vec[i].run[k].count);
    return there;
}

static int move_row(const cm_join_var *v, const mover *m, uint64_t row, const uint8_t *src,
                    uint8_t *dst, cm_error *err)
{
    int rc = CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i < row; i++) {
        const size_t at = (size_t)i * v->dtype.nbytes;
        rc = m->d->kind == CM_KEY_TIME ? move_time(m, src + at, dst + at, err)
                                       : move_number(m, &v->dtype, src + at, dst + at, err);
    }
    return rc;
}

int cm_join_fill_bounds(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                        const cm_join_dim *d, size_t nelem, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    mover m = {.d = d};
    uint8_t *values = v->values;
    const uint64_t row = nelem / d->n;
    const size_t nbytes = (size_t)row * v->dtype.nbytes;
    bool *there = find_steps(d, err);
    int rc = there == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && d->kind == CM_KEY_TIME)
        rc = coding_of(in, tables, at, &m.coding, err);
    else if (rc == CM_OK && !v->unpacked)
        (void)cm_join_reading(in, tables, at, v->first, &m.packed);
    uint64_t last = 0; /* gaps lie between steps: the first is there */
    for (uint64_t i = 0; rc == CM_OK && i < d->n; i++) {
        if (there[i]) {
            last = i;
            continue;
        }
        m.from = d->key[last];
        m.to = d->key[i];
        rc = move_row(v, &m, row, values + last * nbytes, values + i * nbytes, err);
    }
    free(there);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s", v->name);
    return rc;
}
