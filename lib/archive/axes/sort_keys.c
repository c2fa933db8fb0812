/* Maps coordinates to numbers with the same order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/made.h"
#include "archive/axes/merge.h"
#include "archive/tables/reading.h"
#include "base/mem.h"
#include "base/number.h"
#include "model/convert.h"

/* ---- what a dimension's coordinates are ---- */

/* Whether a coordinate of unsigned integers has one that no signed one is. */
static bool is_above(const cm_join_input *in, const cm_reading *r, const cm_join_vec *v)
{
    size_t nbytes;
    const uint8_t *value = cm_survey_values(in->survey, v->values, &nbytes);
    for (size_t i = 0; value != NULL && i + 8 <= nbytes; i += 8)
        if (cm_load_le64(value + i) > INT64_MAX && !cm_reading_is_missing(r, value + i))
            return true;
    return false;
}

static cm_key_kind kind_of(const cm_join_input *in, const cm_join_tables *tables,
                           const cm_join_dim *d, const cm_join_vec *v)
{
    cm_reading r;
    if (v->like->is_char)
        return CM_KEY_TEXT;
    if (!cm_join_reading(in, tables, d->var, v->file, &r))
        return CM_KEY_NONE;
    if (r.is_time)
        return CM_KEY_TIME;
    return r.packed || r.kind == CM_KIND_FLOAT ||
                   (r.kind == CM_KIND_UINT && r.dtype.nbytes == 8 && is_above(in, &r, v))
               ? CM_KEY_REAL
               : CM_KEY_INTEGER;
}

/* The kind that all coordinates of D can be compared as. */
static cm_key_kind common_kind(const cm_join_input *in, const cm_join_tables *tables,
                               const cm_join_dim *d)
{
    cm_key_kind kind = CM_KEY_NONE;
    for (size_t i = 0; i < d->nvecs; i++) {
        const cm_join_vec *v = cm_axis_vec_at(in, d, i);
        if (v->like == NULL)
            continue;
        cm_key_kind own = kind_of(in, tables, d, v);
        if (kind == CM_KEY_NONE)
            kind = own;
        else if (kind != own && (kind == CM_KEY_INTEGER || kind == CM_KEY_REAL) &&
                 (own == CM_KEY_INTEGER || own == CM_KEY_REAL))
            kind = CM_KEY_REAL;
        else if (kind != own)
            return CM_KEY_NONE;
    }
    return kind;
}

/* ---- text ---- */

typedef struct text_row {
    const char *text;
    size_t nbytes;
    int64_t *key; /* where its place in order goes */
} text_row;

static int by_text(const void *a, const void *b)
{
    const text_row *x = a, *y = b;
    size_t n = x->nbytes < y->nbytes ? x->nbytes : y->nbytes;
    int order = memcmp(x->text, y->text, n);
    return order != 0 ? order : (x->nbytes > y->nbytes) - (x->nbytes < y->nbytes);
}

static int rank_texts(const cm_join_input *in, cm_join_dim *d, cm_error *err)
{
    size_t total = 0, at = 0, nbytes;
    for (size_t i = 0; i < d->nvecs; i++)
        total += d->vec[i].key != NULL ? d->vec[i].n : 0;
    text_row *row = cm_calloc(total + 1, sizeof(*row), err);
    if (row == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < d->nvecs; i++) {
        cm_join_vec *v = &d->vec[i];
        const char *text = v->key == NULL ? NULL : cm_survey_values(in->survey, v->values, &nbytes);
        if (text == NULL || v->n == 0)
            continue;
        size_t width = nbytes / v->n;
        for (uint64_t k = 0; k < v->n; k++) {
            size_t n = width;
            while (n > 0 && (text[k * width + n - 1] == '\0' || text[k * width + n - 1] == ' '))
                n--;
            row[at++] = (text_row){text + k * width, n, &v->key[k]};
        }
    }
    qsort(row, at, sizeof(*row), by_text);
    int64_t place = 0;
    for (size_t i = 0; i < at; i++) {
        place += i > 0 && by_text(&row[i - 1], &row[i]) != 0;
        *row[i].key = place;
    }
    free(row);
    return CM_OK;
}

/* ---- numbers ---- */

/*
 * Notes that element I has no place along a joined dimension; elsewhere it counts like any other.
 */
static void note_bad(cm_join_vec *v, uint64_t i, const char *why)
{
    if (v->bad > 0)
        return;
    v->bad = i + 1;
    v->why = why;
}

/* The key of element I, which means M; elements without a place lie behind everything. */
static int64_t key_of(cm_key_kind kind, cm_join_vec *v, uint64_t i, const cm_meaning *m,
                      bool is_nan)
{
    const double x = cm_meaning_number(m);
    if (m->kind == CM_MEANS_NOTHING)
        note_bad(v, i, is_nan ? "is not a number" : "is missing");
    else if (m->kind == CM_MEANS_UNKNOWN)
        note_bad(v, i, "is out of range");
    else if (kind == CM_KEY_TIME)
        return m->us;
    else if (kind == CM_KEY_INTEGER)
        return m->integer;
    return kind == CM_KEY_REAL ? cm_key_of_real(isnan(x) ? (double)INFINITY : x) : INT64_MAX;
}

/* Whether a double is this integer. */
static bool is_double(const cm_meaning *m)
{
    const cm_meaning real = {.kind = CM_MEANS_REAL, .real = cm_meaning_number(m)};
    return cm_meaning_equal(m, &real);
}

/* *FINER becomes true where keys, which count microseconds, say less than the instants do. */
static int number_keys(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                       cm_join_vec *v, const uint8_t *values, bool *finer, cm_error *err)
{
    cm_reading r;
    cm_meaning m;
    if (!cm_join_reading(in, tables, d->var, v->file, &r))
        return cm_fail(err, CM_EINTERNAL, "%s: a coordinate that is no number", d->name);
    for (uint64_t i = 0; i < v->n; i++) {
        const uint8_t *element = values + i * r.dtype.nbytes;
        const bool is_nan = d->kind == CM_KEY_REAL && r.nmissing == 0 &&
                            isnan(cm_element_to_double(&r.dtype, element));
        cm_reading_means(&r, element, &m);
        if (d->kind == CM_KEY_REAL && m.kind == CM_MEANS_INTEGER && !is_double(&m))
            return cm_fail(err, CM_EUNSUPPORTED,
                           "%s: %s: its integers are too large to be compared exactly (above 2^63, "
                           "or above 2^53 beside fractions)",
                           in->file[v->file]->path, v->like->name);
        v->key[i] = key_of(d->kind, v, i, &m, is_nan && r.dtype.kind == CM_KIND_FLOAT);
        *finer |= m.kind == CM_MEANS_INSTANT && m.ns != 0;
    }
    return CM_OK;
}

static int keys_of(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                   cm_join_vec *v, bool *finer, cm_error *err)
{
    size_t nbytes;
    uint64_t width = v->like->dtype.nbytes;
    const void *values = cm_survey_values(in->survey, v->values, &nbytes);
    if (values == NULL || (d->kind != CM_KEY_TEXT && nbytes / width != v->n))
        return cm_fail(err, CM_EFORMAT, "%s: %s: its values are not in the survey",
                       in->file[v->file]->path, v->like->name);
    if ((v->key = cm_join_alloc(in, v->n, sizeof(v->key[0]), err)) == NULL)
        return CM_ENOMEM;
    if (d->kind == CM_KEY_TEXT)
        return CM_OK; /* ranked together */
    return number_keys(in, tables, d, v, values, finer, err);
}

/* ---- instants within one microsecond ---- */

typedef struct instant {
    int64_t us;
    int32_t ns;
    uint32_t file;
} instant;

static int by_instant(const void *a, const void *b)
{
    const instant *x = a, *y = b;
    return x->us != y->us ? (x->us > y->us) - (x->us < y->us) : (x->ns > y->ns) - (x->ns < y->ns);
}

/* The instants of all coordinates of D, in order; missing ones are left out. */
static int list_instants(const cm_join_input *in, const cm_join_tables *tables, cm_join_dim *d,
                         instant **out, size_t *n, cm_error *err)
{
    size_t total = 0, nbytes;
    cm_reading r;
    cm_meaning m;
    for (size_t i = 0; i < d->nvecs; i++)
        total += d->vec[i].n;
    instant *list = *out = cm_calloc(total + 1, sizeof(*list), err);
    *n = 0;
    for (size_t i = 0; list != NULL && i < d->nvecs; i++) {
        const cm_join_vec *v = cm_axis_vec_at(in, d, i);
        if (v->like == NULL || !cm_join_reading(in, tables, d->var, v->file, &r))
            continue;
        const uint8_t *values = cm_survey_values(in->survey, v->values, &nbytes);
        for (uint64_t k = 0; k < v->n; k++) {
            cm_reading_means(&r, values + k * r.dtype.nbytes, &m);
            if (m.kind == CM_MEANS_INSTANT)
                list[(*n)++] = (instant){m.us, m.ns, v->file};
        }
    }
    if (list == NULL)
        return CM_ENOMEM;
    qsort(list, *n, sizeof(*list), by_instant);
    return CM_OK;
}

/* One key for two instants would make one step of them. */
static int refuse_near_instants(const cm_join_input *in, const cm_join_tables *tables,
                                cm_join_dim *d, cm_error *err)
{
    instant *list;
    size_t n;
    int rc = list_instants(in, tables, d, &list, &n, err);
    for (size_t i = 1; rc == CM_OK && i < n; i++)
        if (list[i].us == list[i - 1].us && list[i].ns != list[i - 1].ns)
            rc = cm_fail(err, CM_EUNSUPPORTED,
                         "%s: %s: two instants, here and in %s, are less than a microsecond apart, "
                         "and cannot be put in order",
                         in->file[list[i].file]->path, d->name, in->file[list[i - 1].file]->path);
    free(list);
    return rc;
}

int cm_join_keys(const cm_join_input *in, const cm_join_tables *tables, cm_join_dim *d,
                 cm_error *err)
{
    int rc = CM_OK;
    d->kind = common_kind(in, tables, d);
    if (d->kind == CM_KEY_NONE)
        return CM_OK;
    for (size_t i = 0; i < d->nvecs; i++) {
        cm_reading r;
        if (d->kind == CM_KEY_TIME && d->vec[i].like != NULL &&
            cm_join_reading(in, tables, d->var, d->vec[i].file, &r)) {
            d->axis = r.axis;
            break;
        }
    }
    bool finer = false;
    for (size_t i = 0; rc == CM_OK && i < d->nvecs; i++) {
        cm_join_vec *v = cm_axis_vec_at(in, d, i);
        if (v->like != NULL)
            rc = keys_of(in, tables, d, v, &finer, err);
    }
    if (rc == CM_OK && d->said_by != NULL)
        rc = cm_join_said_keys(in, tables, d, err);
    if (rc == CM_OK && finer && d->nvecs > 1)
        rc = refuse_near_instants(in, tables, d, err);
    return rc == CM_OK && d->kind == CM_KEY_TEXT ? rank_texts(in, d, err) : rc;
}
