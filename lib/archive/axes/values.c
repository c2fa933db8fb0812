#include "archive/axes/values.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"
#include "archive/tables/described.h"
#include "archive/tables/fills.h"
#include "archive/tables/reading.h"
#include "model/convert.h"

/* ---- a coordinate along a joined dimension ---- */

/* Makes a value of a coordinate that stays packed. */
static int make_packed(const cm_join_dim *d, int64_t key, cm_reading *r, uint8_t *dst,
                       cm_error *err)
{
    const double number = d->kind == CM_KEY_TIME
                              ? cm_time_axis_number(&r->axis, key - r->axis.origin_us)
                              : cm_key_real(key);
    r->is_time = false;
    return cm_reading_store_number(r, number, dst)
               ? CM_OK
               : cm_fail(err, CM_EUNSUPPORTED,
                         "%s: no packed number is exactly that of a missing step", d->name);
}

int cm_join_put_key(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                    int64_t key, uint8_t *dst, cm_error *err)
{
    const cm_join_var *v = &tables->var[d->var];
    cm_reading r;
    if (v->made == NULL && !v->unpacked && cm_join_reading(in, tables, d->var, v->first, &r) &&
        r.packed)
        return make_packed(d, key, &r, dst, err);
    if (d->kind == CM_KEY_TIME) {
        cm_time_axis axis = v->rebased || v->made != NULL ? v->coding.axis : d->axis;
        const cm_time_coding to = {.axis = axis, .dtype = v->dtype};
        return cm_join_put_instant(&to, key, dst, err);
    }
    if (d->kind == CM_KEY_INTEGER || d->kind == CM_KEY_REAL) {
        const double x = d->kind == CM_KEY_REAL ? cm_key_real(key) : 0;
        const cm_dtype from =
            cm_dtype_make(d->kind == CM_KEY_REAL ? CM_KIND_FLOAT : CM_KIND_INT, 8);
        const cm_conversion c = {.src = from, .dst = v->dtype};
        uint64_t bad;
        return cm_conversion_run(&c, dst, d->kind == CM_KEY_REAL ? (const void *)&x : &key, 1, &bad,
                                 err);
    }
    return cm_fail(err, CM_EUNSUPPORTED, "%s: a missing step has no value", tables->dim[0].name);
}

/* A dimension made of texts. */
static int give_said(cm_join_var *v, const cm_join_dim *d, cm_error *err)
{
    int rc = cm_strings_reset(&v->texts, (size_t)d->n, err);
    for (size_t i = 0; rc == CM_OK && i < d->nvecs; i++) {
        const char *text = d->said[d->vec[i].file];
        if (d->vec[i].nruns > 0)
            rc =
                cm_strings_set(&v->texts, (size_t)d->vec[i].run[0].origin, text, strlen(text), err);
    }
    return rc;
}

/* Values of a store stay as they are, whatever number a file has for the same instant. */
static cm_join_run without_base(const cm_join_input *in, const cm_join_dim *d,
                                const cm_join_vec *vec, cm_join_run r)
{
    if (!in->has_base || d->at[0] == CM_JOIN_NONE || vec == &d->vec[d->at[0]])
        return r;
    uint64_t n = d->vec[d->at[0]].n, past = r.origin < n ? n - r.origin : 0;
    past = past < r.count ? past : r.count;
    return (cm_join_run){r.origin + past, r.first + past, r.count - past};
}

static int fill_coordinate(const cm_join_input *in, cm_join_tables *tables, uint32_t at,
                           const cm_join_dim *d, cm_error *err)
{
    cm_join_var *v = &tables->var[at];
    uint32_t size = v->dtype.nbytes;
    int rc = CM_OK;
    bool *set = cm_calloc(d->n + 1, 1, err);
    if (set == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < d->nvecs; i++) {
        const cm_join_vec *vec = cm_axis_vec_at(in, d, i);
        size_t nbytes;
        const uint8_t *values =
            vec->like == NULL ? NULL : cm_survey_values(in->survey, vec->values, &nbytes);
        for (size_t k = 0; rc == CM_OK && values != NULL && k < vec->nruns; k++) {
            const cm_join_run own = without_base(in, d, vec, vec->run[k]), *r = &own;
            uint8_t *to = (uint8_t *)v->values + r->origin * size;
            cm_paged_touch(in->survey->paged, to, r->count * size);
            rc = cm_join_convert(in, tables, at, vec->file,
                                 values + r->first * vec->like->dtype.nbytes, to, r->count, err);
            memset(set + r->origin, true, r->count);
        }
    }
    for (uint64_t i = 0; rc == CM_OK && i < d->n; i++)
        if (!set[i])
            rc = cm_join_put_key(in, tables, d, d->descending ? ~d->key[i] : d->key[i],
                                 (uint8_t *)v->values + i * size, err);
    free(set);
    return rc;
}

/* ---- other variables whose values are known ---- */

/* A part of a file as a box of the joined variable; steps are 0 along what the file lacks. */
typedef struct cut {
    uint64_t n[CM_MAX_RANK], nelem;
    uint64_t first, step[CM_MAX_RANK];  /* in the file */
    uint64_t origin, goes[CM_MAX_RANK]; /* in the joined variable */
    uint64_t file_nelem;
} cut;

/* Which dimension of D, of a file, is the variable's dimension AT; d->rank: none. */
static unsigned dim_in_file(const cm_join_input *in, const cm_join_tables *tables,
                            const cm_join_var *v, const cm_described *d, unsigned at)
{
    char buf[512];
    for (unsigned k = 0; k < d->rank; k++)
        if (strcmp(cm_join_name(in, tables, d->dim[k], buf, sizeof(buf)),
                   tables->dim[v->dim[at]].name) == 0)
            return k;
    return d->rank == v->rank ? at : d->rank;
}

static void make_cut(const cm_join_input *in, const cm_join_tables *tables, const cm_join_var *v,
                     const cm_described *d, const cm_placement *p, const cm_multi_part *part,
                     cut *c)
{
    uint64_t in_file[CM_MAX_RANK], first[CM_MAX_RANK], goes = 1;
    unsigned where[CM_MAX_RANK];
    *c = (cut){.nelem = 1, .file_nelem = 1};
    for (unsigned k = 0; k < d->rank; k++)
        in_file[k] = 1;
    for (unsigned i = v->rank; i-- > 0;) {
        const cm_join_dim *dim = &tables->dim[v->dim[i]];
        where[i] = dim_in_file(in, tables, v, d, i);
        c->n[i] = cm_file_has(dim->length[part->file]) ? cm_file_count(dim->length[part->file])
                                                       : cm_join_length(v, dim); /* repeated */
        first[i] = 0;
        c->goes[i] = goes;
        if (where[i] < d->rank)
            in_file[where[i]] = c->n[i];
        for (unsigned a = 0; a < p->naxes; a++)
            if (dim->joined == (int)p->axis[a]) {
                first[i] = part->first[a];
                c->n[i] = part->count[a];
                c->origin += part->origin[a] * goes;
            }
        goes *= cm_join_length(v, dim);
        c->nelem *= c->n[i];
    }
    for (unsigned k = d->rank; k-- > 0; c->file_nelem *= in_file[k])
        for (unsigned i = 0; i < v->rank; i++)
            if (where[i] == k) {
                c->step[i] = c->file_nelem;
                c->first += first[i] * c->file_nelem;
            }
}

/* Element I of the box: its place by STEP. */
static uint64_t place_of(const cut *c, unsigned rank, uint64_t i, const uint64_t *step)
{
    uint64_t at = 0;
    for (unsigned k = rank; k-- > 0; i /= c->n[k])
        at += i % c->n[k] * step[k];
    return at;
}

/* The record of variable AT in FILE. */
static int find_known(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                      uint32_t file, cm_surveyed_var *s, const uint8_t **values, size_t *nbytes,
                      cm_error *err)
{
    if (!cm_join_record(in, tables, at, file, s) || !s->has_values)
        return cm_fail(err, CM_EFORMAT, "%s: %s: its values are not in the survey",
                       in->file[file]->path, tables->var[at].name);
    *values = cm_survey_values(in->survey, s->values, nbytes);
    return CM_OK;
}

/* The elements that PART gives, which are to be freed. */
static int read_part(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                     const cm_placement *p, const cm_multi_part *part, cut *c, uint8_t **out,
                     cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    const cm_described *d = cm_join_described(in, tables, at, part->file);
    const size_t from = d->dtype.nbytes;
    cm_surveyed_var s;
    const uint8_t *values = NULL;
    size_t nbytes;
    int rc = find_known(in, tables, at, part->file, &s, &values, &nbytes, err);
    if (rc != CM_OK)
        return rc;
    make_cut(in, tables, v, d, p, part, c);
    if (c->file_nelem * from != nbytes)
        return cm_fail(err, CM_EFORMAT, "%s: %s: its dimensions are not those of other files",
                       in->file[part->file]->path, v->name);
    uint8_t *src = cm_calloc((size_t)c->nelem + 1, from, err);
    *out = src == NULL ? NULL : cm_calloc((size_t)c->nelem + 1, v->dtype.nbytes, err);
    rc = *out == NULL ? CM_ENOMEM : CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i < c->nelem; i++)
        memcpy(src + i * from, values + (c->first + place_of(c, v->rank, i, c->step)) * from, from);
    if (rc == CM_OK)
        rc = cm_join_convert(in, tables, at, part->file, src, *out, c->nelem, err);
    free(src);
    if (rc == CM_OK)
        return CM_OK;
    free(*out);
    return rc;
}

static int fill_part(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                     const cm_placement *p, const cm_multi_part *part, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    const size_t to = v->dtype.nbytes;
    uint8_t *values;
    cut c;
    int rc = read_part(in, tables, at, p, part, &c, &values, err);
    if (rc != CM_OK)
        return rc;
    for (uint64_t i = 0; i < c.nelem; i++)
        memcpy((uint8_t *)v->values + (c.origin + place_of(&c, v->rank, i, c.goes)) * to,
               values + i * to, to);
    free(values);
    return CM_OK;
}

static int fill_rows(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                     const cm_placement *p, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < p->nparts; i++)
        rc = fill_part(in, tables, at, p, &p->part[i], err);
    return rc;
}

static uint64_t count_texts(const cm_surveyed_var *s)
{
    uint64_t n = 1;
    for (unsigned k = 0; k + 1 < s->var->rank; k++)
        n *= s->shape[k];
    return n;
}

/* The texts of a file, filled up with NULs to TO characters each. */
static void put_texts(const cm_surveyed_var *s, const uint8_t *texts, uint64_t to, uint8_t *dst)
{
    const uint64_t from = s->shape[s->var->rank - 1], n = count_texts(s);
    for (uint64_t i = 0; i < n; i++, dst += to) {
        memcpy(dst, texts + i * from, (size_t)from);
        memset(dst + from, 0, (size_t)(to - from));
    }
}

/* The elements that FILE gives at each of its steps, which are to be freed. */
static int read_step(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                     uint32_t file, uint8_t **out, size_t *nelem, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    cm_surveyed_var s;
    const uint8_t *values = NULL;
    size_t nbytes;
    int rc = find_known(in, tables, at, file, &s, &values, &nbytes, err);
    if (rc != CM_OK)
        return rc;
    const uint64_t to = v->is_text ? cm_join_length(v, &tables->dim[v->dim[v->rank - 1]]) : 0;
    *nelem = v->is_text ? (size_t)(count_texts(&s) * to) : nbytes / s.var->dtype.nbytes;
    if ((*out = cm_calloc(*nelem + 1, v->dtype.nbytes, err)) == NULL)
        return CM_ENOMEM;
    if (v->is_text)
        put_texts(&s, values, to, *out);
    else
        rc = cm_join_convert(in, tables, at, file, values, *out, *nelem, err);
    if (rc == CM_OK)
        return CM_OK;
    free(*out);
    return rc;
}

/* A variable that got the joined dimension: each file's value at all of its steps. */
static int fill_promoted(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                         const cm_placement *p, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < p->nparts; i++) {
        const cm_multi_part *part = &p->part[i];
        uint8_t *values;
        size_t nelem;
        rc = read_step(in, tables, at, part->file, &values, &nelem, err);
        if (rc != CM_OK)
            return rc;
        const size_t nbytes = nelem * v->dtype.nbytes;
        for (uint64_t k = 0; k < part->count[0]; k++)
            memcpy((uint8_t *)v->values + (part->origin[0] + k) * nbytes, values, nbytes);
        free(values);
    }
    return rc;
}

/* Sets `promoted`: all records have its values; otherwise each file must be one step. */
static int find_promoted(const cm_join_input *in, cm_join_tables *tables, uint32_t at,
                         const cm_placement *p, cm_error *err)
{
    cm_join_var *v = &tables->var[at];
    v->promoted = v->nlacking == 1 && !tables->dim[v->dim[0]].one_each && v->made == NULL &&
                  p != NULL && (v->kinds & UINT32_C(1) << CM_FINDING_ORDER) == 0;
    for (size_t i = 0; v->promoted && i < v->nfiles; i++) {
        cm_surveyed_var s;
        v->promoted = cm_join_record(in, tables, at, v->file[i], &s) && s.has_values;
    }
    /* The dimension that files lack is the first of the variable's, and so of its axes. */
    bool repeats = false;
    for (size_t i = 0; v->nlacking == 1 && p != NULL && i < p->nparts; i++)
        repeats |= p->part[i].length[0] != 1;
    return !v->promoted && repeats
               ? cm_fail(err, CM_EUNSUPPORTED, "%s: %s cannot be repeated for each step of a file",
                         v->name, cm_dtype_is_vlen(&v->dtype) ? "strings" : "a field of its size")
               : CM_OK;
}

static int fill_static(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                       cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    cm_surveyed_var s;
    size_t nbytes;
    if (!cm_join_record(in, tables, at, v->first, &s) || !s.has_values)
        return cm_fail(err, CM_EFORMAT, "%s: %s: its values are not in the survey",
                       in->file[v->first]->path, v->name);
    const void *values = cm_survey_values(in->survey, s.values, &nbytes);
    return cm_join_convert(in, tables, at, v->first, values, v->values,
                           nbytes / s.var->dtype.nbytes, err);
}

int cm_join_make_fill(const cm_join_input *in, cm_join_findings *findings, cm_join_var *v,
                      cm_error *err)
{
    if (v->has_fill_value || !cm_dtype_is_number(&v->dtype))
        return CM_OK;
    if (in->has_base)
        return cm_fail(err, CM_EFORMAT,
                       "%s: the store has no _FillValue for it, and cannot say that steps are "
                       "missing",
                       v->name);
    if (v->like->has_fill && cm_dtype_equal(&v->like->dtype, &v->dtype))
        memcpy(v->fill_value, v->like->fill, sizeof(v->fill_value));
    else if (!cm_join_default_fill(&v->dtype, v->fill_value))
        return CM_OK;
    v->has_fill_value = true;
    v->made_fill = v->dtype.kind != CM_KIND_FLOAT;
    return cm_join_warn(
        findings, err,
        "%s: has no _FillValue, but steps that no file has; it gets NetCDF's default fill value",
        v->name);
}

/* A file's value must not equal the fill value of holes, places along the joined dimensions. */
static int check_holes(const cm_join_tables *tables, const cm_join_var *v, uint64_t nholes,
                       size_t nelem, cm_error *err)
{
    uint64_t row = nelem;
    size_t n = 0;
    for (unsigned i = 0; i < v->rank; i++)
        if (tables->dim[v->dim[i]].joined >= 0 && tables->dim[v->dim[i]].n > 0)
            row /= tables->dim[v->dim[i]].n;
    for (size_t i = 0; i < nelem; i++)
        n +=
            memcmp((uint8_t *)v->values + i * v->dtype.nbytes, v->fill_value, v->dtype.nbytes) == 0;
    return n == nholes * row
               ? CM_OK
               : cm_fail(err, CM_EFORMAT,
                         "%s: has no _FillValue, steps that no file has, and data that equal the "
                         "default fill value: missing and present cannot be told apart",
                         v->name);
}

int cm_join_give_values(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                        cm_join_findings *findings, const cm_field_sources *f, uint32_t at,
                        cm_error *err)
{
    cm_join_var *v = &tables->var[at];
    const cm_join_dim *d = v->rank > 0 ? &tables->dim[v->dim[0]] : NULL;
    if (v->made != NULL && d->var != at)
        return CM_OK; /* made already */
    bool coordinate = v->rank == 1 && d->joined >= 0 && d->var == at && !d->substitute;
    int rc = find_promoted(in, tables, at, f->of[at].place, err);
    const cm_join_dim *bounded =
        v->promoted || coordinate ? NULL : cm_join_bounded(tables, axes, at);
    if (bounded != NULL && !cm_join_has_bounds(in, tables, at, f->of[at].place))
        bounded = NULL;
    if (rc != CM_OK || (!coordinate && !v->given && !v->promoted && bounded == NULL))
        return rc;
    size_t nelem = 1;
    for (unsigned i = 0; i < v->rank; i++) {
        const cm_join_dim *e = &tables->dim[v->dim[i]];
        uint64_t n = cm_join_length(v, e);
        if (!cm_mul_size(nelem, (size_t)n, &nelem))
            return cm_fail(err, CM_EUNSUPPORTED, "%s: too many elements", v->name);
    }
    v->given = true;
    if (v->dtype.kind == CM_KIND_STRING)
        return give_said(v, d, err);
    if (!cm_mul_size(nelem, v->dtype.nbytes, &v->values_nbytes))
        return cm_fail(err, CM_EUNSUPPORTED, "%s: too many elements", v->name);
    if ((v->values = cm_join_alloc(in, v->values_nbytes, 1, err)) == NULL)
        return CM_ENOMEM;
    const cm_placement *p = f->of[at].place;
    /* Places that stay empty: bounds of steps that were filled are computed. */
    uint64_t nholes = p == NULL ? 0 : p->nholes - (bounded != NULL ? bounded->nfilled : 0);
    if (!coordinate && nholes > 0 && v->dtype.kind != CM_KIND_FLOAT &&
        (rc = cm_join_make_fill(in, findings, v, err)) != CM_OK)
        return rc;
    for (size_t i = 0; v->has_fill_value && !coordinate && i < nelem; i++)
        memcpy((uint8_t *)v->values + i * v->dtype.nbytes, v->fill_value, v->dtype.nbytes);
    /* Bounds of steps that no file has are not known. */
    for (size_t i = 0; !v->has_fill_value && !coordinate && v->dtype.kind == CM_KIND_FLOAT &&
                       nholes > 0 && i < nelem;
         i++)
        memset((uint8_t *)v->values + i * v->dtype.nbytes, 0xff, v->dtype.nbytes); /* a NaN */
    if (coordinate)
        return fill_coordinate(in, tables, at, d, err);
    if (p == NULL)
        return fill_static(in, tables, at, err);
    rc = v->promoted ? fill_promoted(in, tables, at, p, err) : fill_rows(in, tables, at, p, err);
    if (rc == CM_OK && bounded != NULL)
        rc = cm_join_fill_bounds(in, tables, at, bounded, nelem, err);
    return rc == CM_OK && v->made_fill ? check_holes(tables, v, nholes, nelem, err) : rc;
}

/* ---- steps that two files have ---- */

static bool is_missing(const cm_join_var *v, const uint8_t *element, double number)
{
    return isnan(number) ||
           (v->has_fill_value && memcmp(element, v->fill_value, v->dtype.nbytes) == 0);
}

/* Numbers of one instant may differ in their last digits where files count in different units. */
static bool is_same(const cm_join_var *v, const uint8_t *x, const uint8_t *y)
{
    if (memcmp(x, y, v->dtype.nbytes) == 0)
        return true;
    const double a = cm_element_to_double(&v->dtype, x), b = cm_element_to_double(&v->dtype, y);
    const double apart = a - b;
    if (is_missing(v, x, a) && is_missing(v, y, b)) /* however it is written */
        return true;
    return v->rebased &&
           fabs(apart) * (double)v->coding.axis.unit_us <= (double)v->coding.axis.per_us;
}

/* Element X of one file, Y of the other. */
static int find_twice(const cm_join_input *in, cm_join_findings *findings,
                      const cm_field_sources *f, const cm_join_var *v, const cm_multi_check *check,
                      const uint8_t *x, const uint8_t *y, size_t *number, cm_error *err)
{
    char here[64], there[64];
    const uint32_t file = check->part[1].file;
    if (*number > 0)
        return cm_join_found_in(findings, &findings->report->finding[*number - 1], file, err);
    cm_element_text(&v->dtype, x, there, sizeof(there));
    cm_element_text(&v->dtype, y, here, sizeof(here));
    cm_finding *found =
        cm_join_find(findings, CM_FINDING_OVERLAP, CM_WEIGHT_DECISION, false, v->name, file, err,
                     "a step that %s has too has another value: %s here, %s there",
                     in->file[check->part[0].file]->path, here, there);
    *number = findings->report->nfindings;
    return found == NULL ? CM_ENOMEM : cm_place_propose_apart(f, found, err);
}

int cm_join_check_given(const cm_join_input *in, const cm_join_tables *tables,
                        cm_join_findings *findings, const cm_field_sources *f,
                        const cm_multi_check *check, size_t *number, bool *differs, cm_error *err)
{
    const uint32_t at = (uint32_t)check->var;
    const cm_join_var *v = &tables->var[at];
    const cm_placement *p = f->of[at].place;
    uint8_t *values[2] = {NULL, NULL};
    size_t nelem[2] = {0, 0};
    cut c = {0};
    int rc = CM_OK;
    *differs = false;
    if (v->dtype.kind == CM_KIND_STRING || (p == NULL && check->may_differ))
        return CM_OK;
    if (p == NULL)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: %s: its dimensions have another order, or it is too large, and it "
                       "cannot be compared with that of other files",
                       in->file[check->part[1].file]->path, v->name);
    for (unsigned k = 0; rc == CM_OK && k < 2; k++) {
        rc = v->promoted
                 ? read_step(in, tables, at, check->part[k].file, &values[k], &nelem[k], err)
                 : read_part(in, tables, at, p, &check->part[k], &c, &values[k], err);
        values[k] = rc == CM_OK ? values[k] : NULL;
        nelem[k] = v->promoted ? nelem[k] : (size_t)c.nelem;
    }
    const size_t n = nelem[0] < nelem[1] ? nelem[0] : nelem[1], size = v->dtype.nbytes;
    size_t i = 0;
    while (rc == CM_OK && i < n && is_same(v, values[0] + i * size, values[1] + i * size))
        i++;
    *differs = rc == CM_OK && i < n;
    if (*differs && !check->may_differ)
        rc = find_twice(in, findings, f, v, check, values[0] + i * size, values[1] + i * size,
                        number, err);
    free(values[0]);
    free(values[1]);
    return rc;
}
