/* Coordinates as numbers whose order is theirs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "job/archive/axis.h"
#include "model/half.h"

/* The bits of a double, so that their order as integers is that of the numbers. */
int64_t cm_key_of_real(double x)
{
    int64_t bits;
    x += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof(bits));
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

double cm_key_real(int64_t key)
{
    double x;
    int64_t bits = key < 0 ? key ^ INT64_MAX : key;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static double load_real(const cm_dtype *t, const uint8_t *p)
{
    float f;
    double d;
    if (t->nbytes == 2)
        return cm_half_to_double(cm_load_le16(p));
    if (t->nbytes == 4) {
        memcpy(&f, p, sizeof(f));
        return (double)f;
    }
    memcpy(&d, p, sizeof(d));
    return d;
}

static int64_t load_integer(const cm_dtype *t, const uint8_t *p)
{
    uint64_t v = 0;
    memcpy(&v, p, t->nbytes);
    unsigned unused = 64 - 8 * t->nbytes;
    return t->kind == CM_KIND_INT ? (int64_t)(v << unused) >> unused : (int64_t)v;
}

/* ---- what a dimension's coordinates are ---- */

static bool is_integer(const cm_dtype *t)
{
    return t->kind == CM_KIND_INT || (t->kind == CM_KIND_UINT && t->nbytes < 8) ||
           t->kind == CM_KIND_BOOL;
}

static bool parse_axis(const cm_described *d, cm_time_axis *out)
{
    const char *units = cm_join_text(d, "units");
    return units != NULL && cm_time_axis_is(units) &&
           cm_time_axis_parse(units, cm_join_text(d, "calendar"), out, NULL) == CM_OK;
}

static bool is_packed(const cm_described *d)
{
    const cm_json *attrs = cm_described_attrs(d);
    return cm_json_has(attrs, "scale_factor") || cm_json_has(attrs, "add_offset");
}

static cm_key_kind kind_of(const cm_described *d)
{
    cm_time_axis axis;
    if (d->is_char)
        return CM_KEY_TEXT;
    if (!cm_dtype_is_number(&d->dtype))
        return CM_KEY_NONE;
    if (!is_packed(d) && parse_axis(d, &axis) &&
        d->dtype.nbytes >= (d->dtype.kind == CM_KIND_FLOAT ? 4u : 1u))
        return CM_KEY_TIME;
    return is_integer(&d->dtype) ? CM_KEY_INTEGER : CM_KEY_REAL;
}

/* The kind that all coordinates of D can be compared as. */
static cm_key_kind common_kind(const cm_join *j, const cm_join_dim *d)
{
    cm_key_kind kind = CM_KEY_NONE;
    for (size_t i = 0; i < d->nvecs; i++) {
        const cm_join_vec *v = cm_axis_vec_at(j, d, i);
        if (v->like == NULL)
            continue;
        cm_survey_rest(j->survey);
        cm_key_kind own = kind_of(v->like);
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

static int rank_texts(const cm_join *j, cm_join_dim *d, cm_error *err)
{
    size_t total = 0, at = 0, nbytes;
    for (size_t i = 0; i < d->nvecs; i++)
        total += d->vec[i].key != NULL ? d->vec[i].n : 0;
    text_row *row = cm_calloc(total + 1, sizeof(*row), err);
    if (row == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < d->nvecs; i++) {
        cm_join_vec *v = &d->vec[i];
        const char *text = v->key == NULL ? NULL : cm_survey_values(j->survey, v->values, &nbytes);
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

/* Element I has no place along a joined dimension; elsewhere it is like any other. */
static void note_bad(cm_join_vec *v, uint64_t i, const char *why)
{
    if (v->bad > 0)
        return;
    v->bad = i + 1;
    v->why = why;
}

static int time_keys(cm_join_vec *v, const uint8_t *values, cm_error *err)
{
    cm_time_coding coding = {.dtype = v->like->dtype, .has_fill = v->like->has_fill_value};
    cm_time_point point;
    if (!parse_axis(v->like, &coding.axis))
        return cm_fail(err, CM_EINTERNAL, "a time axis that is none");
    memcpy(coding.fill, v->like->fill_value, sizeof(coding.fill));
    for (uint64_t i = 0; i < v->n; i++) {
        bool held = cm_time_coding_point(&coding, values + i * coding.dtype.nbytes, &point);
        if (!held || point.missing)
            note_bad(v, i, held ? "is missing" : "is out of range");
        v->key[i] = held && !point.missing ? point.us : INT64_MAX;
    }
    return CM_OK;
}

static int number_keys(const cm_join_dim *d, cm_join_vec *v, const uint8_t *values)
{
    const cm_dtype *t = &v->like->dtype;
    for (uint64_t i = 0; i < v->n; i++) {
        const uint8_t *p = values + i * t->nbytes;
        if (v->like->has_fill_value && memcmp(p, v->like->fill_value, t->nbytes) == 0)
            note_bad(v, i, "is missing");
        if (d->kind == CM_KEY_INTEGER) {
            v->key[i] = load_integer(t, p);
            continue;
        }
        double x = t->kind == CM_KIND_FLOAT ? load_real(t, p) : (double)load_integer(t, p);
        if (isnan(x))
            note_bad(v, i, "is not a number");
        v->key[i] = cm_key_of_real(isnan(x) ? (double)INFINITY : x);
    }
    return CM_OK;
}

static int keys_of(const cm_join *j, const cm_join_dim *d, cm_join_vec *v, cm_error *err)
{
    size_t nbytes;
    uint64_t width = v->like->dtype.nbytes;
    cm_survey_rest(j->survey);
    const void *values = cm_survey_values(j->survey, v->values, &nbytes);
    if (values == NULL || (d->kind != CM_KEY_TEXT && nbytes / width != v->n))
        return cm_fail(err, CM_EFORMAT, "%s: %s: its values are not in the survey",
                       j->file[v->file]->path, v->like->name);
    if ((v->key = cm_join_alloc(j, v->n, sizeof(v->key[0]), err)) == NULL)
        return CM_ENOMEM;
    if (d->kind == CM_KEY_TEXT)
        return CM_OK; /* ranked together */
    return d->kind == CM_KEY_TIME ? time_keys(v, values, err) : number_keys(d, v, values);
}

int cm_join_keys(cm_join *j, cm_join_dim *d, cm_error *err)
{
    int rc = CM_OK;
    d->kind = common_kind(j, d);
    if (d->kind == CM_KEY_NONE)
        return CM_OK;
    for (size_t i = 0; i < d->nvecs; i++) {
        if (d->kind == CM_KEY_TIME && d->vec[i].like != NULL) {
            (void)parse_axis(d->vec[i].like, &d->axis); /* it is one, by its kind */
            break;
        }
    }
    for (size_t i = 0; rc == CM_OK && i < d->nvecs; i++) {
        cm_join_vec *v = cm_axis_vec_at(j, d, i);
        if (v->like != NULL)
            rc = keys_of(j, d, v, err);
    }
    return rc == CM_OK && d->kind == CM_KEY_TEXT ? rank_texts(j, d, err) : rc;
}

char *cm_key_text(const cm_join *j, const cm_join_dim *d, int64_t key, char *buf, size_t size)
{
    if (d->descending)
        key = ~key;
    switch (d->kind) {
    case CM_KEY_TIME:
        return cm_time_axis_text(&d->axis, key - d->axis.origin_us, buf, size);
    case CM_KEY_REAL:
        return cm_format_double(cm_key_real(key), buf, size);
    case CM_KEY_TEXT:
        for (size_t i = 0; d->said != NULL && i < d->nvecs; i++)
            if (d->vec[i].key[0] == key) {
                snprintf(buf, size, "%s", d->said[d->vec[i].file]);
                return buf;
            }
        for (size_t i = 0; i < d->nvecs; i++) {
            const cm_join_vec *v = &d->vec[i];
            size_t nbytes;
            for (uint64_t k = 0; v->like != NULL && v->key != NULL && k < v->n; k++) {
                const char *text =
                    v->key[k] != key ? NULL : cm_survey_values(j->survey, v->values, &nbytes);
                if (text == NULL)
                    continue;
                snprintf(buf, size, "%.*s", (int)(nbytes / v->n), text + k * (nbytes / v->n));
                return buf;
            }
        }
        break;
    default:
        break;
    }
    snprintf(buf, size, "%lld", (long long)key);
    return buf;
}
