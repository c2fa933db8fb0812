#include "archive/tables/reading.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/planted.h"
#include "archive/tables/described.h"
#include "model/convert.h"

/* ---- how one file is read ---- */

/* Attributes name single numbers, or lists of them. */
static void add_missing(cm_reading *r, const cm_json *value)
{
    double x;
    if (cm_json_get_double(value, &x))
        cm_reading_add_missing(r, x);
    for (size_t i = 0; i < cm_json_length(value); i++)
        if (cm_json_get_double(cm_json_at(value, i), &x))
            cm_reading_add_missing(r, x);
}

static void read_packing(const cm_described *d, cm_reading *out)
{
    const cm_json *attrs = cm_described_attrs(d);
    if (cm_join_has_other_sign(d))
        out->kind = out->kind == CM_KIND_INT ? CM_KIND_UINT : CM_KIND_INT;
    out->scale = 1;
    (void)cm_json_get_double(cm_json_member(attrs, "scale_factor"), &out->scale);
    (void)cm_json_get_double(cm_json_member(attrs, "add_offset"), &out->offset);
    out->packed = cm_json_has(attrs, "scale_factor") || cm_json_has(attrs, "add_offset");
    out->single = out->packed && cm_join_unpacked(d).nbytes == 4;
}

/* The attribute NAME of variable AT in FILE, or of the coordinate whose bounds it is. */
static const char *text_of_family(const cm_join_input *in, const cm_join_tables *tables,
                                  uint32_t at, uint32_t file, const char *name)
{
    const char *text = cm_join_text(cm_join_described(in, tables, at, file), name);
    const uint32_t of = text == NULL ? tables->var[at].bounds_of : CM_JOIN_NONE;
    const cm_described *parent =
        of == CM_JOIN_NONE ? NULL : cm_join_described(in, tables, of, file);
    return parent == NULL ? text : cm_join_text(parent, name);
}

static void read_time(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                      uint32_t file, cm_reading *out)
{
    const char *units = text_of_family(in, tables, at, file, "units");
    out->is_time = units != NULL && cm_time_axis_is(units) &&
                   out->dtype.nbytes >= (out->dtype.kind == CM_KIND_FLOAT ? 4u : 1u) &&
                   cm_time_axis_parse(units, text_of_family(in, tables, at, file, "calendar"),
                                      &out->axis, NULL) == CM_OK;
}

static void read_attributes(const cm_described *d, cm_reading *out)
{
    *out = (cm_reading){.dtype = d->dtype, .kind = d->dtype.kind};
    if (d->has_fill_value)
        memcpy(out->missing[out->nmissing++], d->fill_value, sizeof(out->missing[0]));
    read_packing(d, out);
    add_missing(out, cm_json_member(cm_described_attrs(d), "missing_value"));
}

static bool read_file(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                      uint32_t file, cm_reading *out)
{
    const cm_described *d = cm_join_described(in, tables, at, file);
    *out = (cm_reading){0};
    if (d == NULL || d->is_char || !cm_dtype_is_number(&d->dtype) || d->dtype.nbytes > 8)
        return false;
    cm_survey_rest(in->survey);
    /* Bounds are read by the attributes of two variables. */
    const bool alone = tables->var[at].bounds_of == CM_JOIN_NONE;
    const cm_reading *kept = alone ? cm_described_reading(d) : NULL;
    if (kept != NULL) {
        *out = *kept;
        return true;
    }
    read_attributes(d, out);
    read_time(in, tables, at, file, out);
    if (alone)
        cm_described_keep_reading(d, out);
    return true;
}

/*
 * Attributes of a store have no precision: JSON has one type of number.  What the store says came
 * from files, so that one that packs alike is read as the store is.
 */
static bool is_packed_as_in_store(const cm_join_input *in, const cm_join_tables *tables,
                                  uint32_t at, const cm_reading *r)
{
    cm_reading store;
    return in->has_base && read_file(in, tables, at, 0, &store) && store.packed &&
           store.scale == r->scale && store.offset == r->offset;
}

bool cm_join_reading(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                     uint32_t file, cm_reading *out)
{
    const bool read = read_file(in, tables, at, file, out);
    if (read && out->single && is_packed_as_in_store(in, tables, at, out))
        out->single = false;
    return read;
}

/* ---- two files ---- */

/* Element I of texts that are FROM characters long, as if they were LENGTH. */
static uint8_t character(const uint8_t *values, uint64_t from, uint64_t length, uint64_t i)
{
    return i % length < from ? values[i / length * from + i % length] : 0;
}

/* Text ROW of those that are FROM characters long, in quotes, without the NULs behind it. */
static void quote(const uint8_t *x, size_t nbytes, uint64_t from, uint64_t row, char *buf,
                  size_t size)
{
    size_t n = 0;
    const bool there = (row + 1) * from <= nbytes;
    while (there && n < from && x[row * from + n] != 0)
        n++;
    snprintf(buf, size, "\"%.*s\"", (int)n, there ? (const char *)x + row * from : "");
}

static bool same_texts(const cm_join_tables *tables, const cm_join_var *v, const cm_surveyed_var *a,
                       const uint8_t *x, size_t na, const cm_surveyed_var *b, const uint8_t *y,
                       size_t nb, cm_join_difference *out)
{
    const uint64_t from[2] = {a->shape[a->var->rank - 1], b->shape[b->var->rank - 1]};
    const uint64_t n = cm_join_length(v, &tables->dim[v->dim[v->rank - 1]]);
    const uint64_t rows[2] = {from[0] > 0 ? na / from[0] : 0, from[1] > 0 ? nb / from[1] : 0};
    const bool same = rows[0] == rows[1] || from[0] == 0 || from[1] == 0;
    const uint64_t most = n * (rows[0] > rows[1] ? rows[0] : rows[1]);
    uint64_t i = 0;
    while (same && i < most && character(x, from[0], n, i) == character(y, from[1], n, i))
        i++;
    if (same && i == most)
        return true;
    out->element = n > 0 ? i / n : 0;
    quote(x, na, from[0], out->element, out->one, sizeof(out->one));
    quote(y, nb, from[1], out->element, out->other, sizeof(out->other));
    return false;
}

/* Elements that are neither numbers nor texts are compared as bytes. */
static bool same_bytes(const cm_dtype *type, const uint8_t *x, size_t na, const uint8_t *y,
                       size_t nb, cm_join_difference *out)
{
    size_t i = 0;
    while (i < na && i < nb && x[i] == y[i])
        i++;
    if (i == na && i == nb)
        return true;
    out->element = type->nbytes > 0 ? i / type->nbytes : 0;
    if (type->nbytes > 0 && (out->element + 1) * type->nbytes <= (na < nb ? na : nb)) {
        cm_element_text(type, x + out->element * type->nbytes, out->one, sizeof(out->one));
        cm_element_text(type, y + out->element * type->nbytes, out->other, sizeof(out->other));
    }
    return false;
}

/* Of N numbers from element FIRST on, which differs. */
static void measure(const cm_reading *r, const uint8_t *x, const cm_reading *s, const uint8_t *y,
                    uint64_t first, uint64_t n, cm_join_difference *out)
{
    cm_meaning a, b;
    out->element = first;
    out->most = 0;
    out->is_time = r->is_time && s->is_time;
    for (uint64_t i = first; i < n; i++) {
        cm_reading_means(r, x + i * r->dtype.nbytes, &a);
        cm_reading_means(s, y + i * s->dtype.nbytes, &b);
        const double apart = cm_meaning_distance(&a, &b);
        out->most = apart > out->most ? apart : out->most;
        if (i > first)
            continue;
        cm_meaning_text(r, &a, out->one, sizeof(out->one));
        cm_meaning_text(s, &b, out->other, sizeof(out->other));
    }
}

/* Like descriptions are one object; bounds are read as their coordinate says. */
static bool described_alike(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                            uint32_t file, uint32_t other)
{
    const uint32_t of = tables->var[at].bounds_of;
    return cm_join_described(in, tables, at, file) == cm_join_described(in, tables, at, other) &&
           (of == CM_JOIN_NONE ||
            cm_join_described(in, tables, of, file) == cm_join_described(in, tables, of, other));
}

bool cm_join_same_values(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                         uint32_t file, const cm_surveyed_var *a, uint32_t other,
                         const cm_surveyed_var *b, cm_join_difference *out)
{
    const cm_join_var *v = &tables->var[at];
    size_t na = 0, nb = 0;
    cm_reading r, s;
    cm_join_difference unused;
    out = out == NULL ? &unused : out;
    *out = (cm_join_difference){.one = "another value", .other = "one value", .most = INFINITY};
    const bool planted = (cm_join_planted & (CM_PLANTED_RAW | CM_PLANTED_PACKED)) != 0;
    /* Most files are like the first. */
    if (cm_wire_same(a->values, b->values) &&
        (planted || described_alike(in, tables, at, file, other)))
        return true;
    const uint8_t *x = cm_survey_values(in->survey, a->values, &na);
    const uint8_t *y = cm_survey_values(in->survey, b->values, &nb);
    if (x == NULL || y == NULL)
        return false;
    if (v->is_text && a->var->rank > 0 && b->var->rank > 0)
        return same_texts(tables, v, a, x, na, b, y, nb, out);
    if (!cm_join_reading(in, tables, at, file, &r) || !cm_join_reading(in, tables, at, other, &s))
        return same_bytes(&a->var->dtype, x, na, y, nb, out);
    const uint64_t n = na / r.dtype.nbytes;
    if (n != nb / s.dtype.nbytes)
        return false;
    const uint64_t first = cm_meanings_differ(&r, x, &s, y, n);
    if (first < n)
        measure(&r, x, &s, y, first, n, out);
    return first == n;
}

cm_digest cm_join_meaning(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                          uint32_t file, const cm_surveyed_var *s)
{
    cm_reading r;
    cm_digest sum = {0};
    size_t nbytes = 0;
    const uint8_t *values = cm_survey_values(in->survey, s->values, &nbytes);
    if (values == NULL || !cm_join_reading(in, tables, at, file, &r))
        return s->values;
    for (uint64_t i = 0; i < nbytes / r.dtype.nbytes; i++) {
        cm_meaning m;
        cm_reading_means(&r, values + i * r.dtype.nbytes, &m);
        const struct {
            int64_t kind, number, ns;
            double real;
        } id = {m.kind, m.kind == CM_MEANS_INSTANT ? m.us : m.integer, m.ns, m.real};
        cm_digest_element(&sum, i, &id, sizeof(id));
    }
    return sum;
}

/* ---- times ---- */

/* Why FILE does not count the times of AT. */
static int explain_units(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                         uint32_t file, cm_time_axis *axis, cm_error *err)
{
    const char *units = text_of_family(in, tables, at, file, "units");
    if (units == NULL)
        return cm_fail(err, CM_EUNSUPPORTED, "it has no units");
    return cm_time_axis_parse(units, text_of_family(in, tables, at, file, "calendar"), axis, err);
}

int cm_join_time_coding(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                        uint32_t file, cm_time_coding *out, cm_error *err)
{
    cm_reading r;
    *out = (cm_time_coding){0};
    const bool read = cm_join_reading(in, tables, at, file, &r);
    const int rc = read && r.is_time ? CM_OK : explain_units(in, tables, at, file, &out->axis, err);
    if (rc != CM_OK || !read)
        return rc;
    if (r.is_time)
        out->axis = r.axis;
    if (r.packed && !tables->var[at].unpacked)
        return cm_fail(err, CM_EINVAL, "packed times are not counted from another date");
    out->dtype = r.dtype;
    if (r.packed) {
        out->dtype = cm_dtype_make(CM_KIND_FLOAT, 8);
        return CM_OK;
    }
    out->dtype.kind = r.kind;
    if ((cm_join_planted & CM_PLANTED_MISSING) != 0)
        r.nmissing = cm_join_described(in, tables, at, file)->has_fill_value;
    out->has_fill = r.nmissing > 0;
    memcpy(out->fill, r.missing[0], sizeof(out->fill));
    for (unsigned i = 1; i < r.nmissing; i++)
        memcpy(out->other[out->nothers++], r.missing[i], sizeof(out->other[0]));
    return CM_OK;
}

int cm_join_time_numbers(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                         uint32_t file, const void *src, uint64_t nelem, const void **out,
                         void **own, cm_error *err)
{
    cm_reading r;
    *out = src;
    *own = NULL;
    if (!tables->var[at].unpacked || !cm_join_reading(in, tables, at, file, &r) || !r.packed)
        return CM_OK;
    double *number = cm_calloc((size_t)nelem + 1, sizeof(*number), err);
    if (number == NULL)
        return CM_ENOMEM;
    r.is_time = false;
    for (uint64_t i = 0; i < nelem; i++) {
        cm_meaning m;
        cm_reading_means(&r, (const uint8_t *)src + i * r.dtype.nbytes, &m);
        number[i] = cm_meaning_number(&m);
    }
    *out = *own = number;
    return CM_OK;
}

static int rebase(const cm_join_input *in, const cm_join_tables *tables, uint32_t at, uint32_t file,
                  const void *src, void *dst, uint64_t nelem, cm_error *err)
{
    uint64_t bad;
    cm_time_coding from;
    const void *numbers;
    void *own = NULL;
    int rc = cm_join_time_coding(in, tables, at, file, &from, err);
    if (rc == CM_OK)
        rc = cm_join_time_numbers(in, tables, at, file, src, nelem, &numbers, &own, err);
    if (rc == CM_OK)
        rc = cm_time_rebase(&from, &tables->var[at].coding, numbers, dst, nelem, &bad, err);
    free(own);
    if (rc == CM_OK)
        return CM_OK;
    cm_error_prefix(err, "%s: %s", in->file[file]->path, tables->var[at].name);
    rc = rc == CM_EINVAL ? CM_EFORMAT : rc; /* the fault is not an option's */
    if (err != NULL)
        err->status = (cm_status)rc;
    return rc;
}

/* ---- other numbers ---- */

/* The fill value of V says that an element is missing, or a NaN does. */
static bool store_missing(const cm_join_var *v, uint8_t *dst)
{
    static const double NOTHING = NAN;
    if (v->has_fill_value)
        memcpy(dst, v->fill_value, v->dtype.nbytes);
    return v->has_fill_value ||
           (v->dtype.kind == CM_KIND_FLOAT && cm_element_from_double(&v->dtype, NOTHING, dst));
}

static int refuse_element(const cm_join_input *in, const cm_join_var *v, uint32_t file,
                          uint64_t element, const char *why, cm_error *err)
{
    cm_fail(err, CM_EFORMAT, "variable %s: element %" PRIu64 " %s", v->name, element, why);
    cm_error_place(err, in->file[file]->path);
    return CM_EFORMAT;
}

/* A missing element gets the fill value of the whole; data must not become missing. */
static int convert_one(const cm_conversion *c, const cm_join_input *in, const cm_join_var *v,
                       uint32_t file, const uint8_t *src, bool missing, uint64_t element,
                       uint8_t *dst, cm_error *err)
{
    uint64_t bad;
    if (missing && store_missing(v, dst))
        return CM_OK;
    if (missing)
        return refuse_element(in, v, file, element, "is missing, and no fill value says so", err);
    int rc = cm_conversion_run(c, dst, src, 1, &bad, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s: variable %s", in->file[file]->path, v->name);
        err->status = CM_EFORMAT; /* the fault is not an option's */
        return CM_EFORMAT;
    }
    /* Zeros of both signs are one number, and NaN is missing anyway. */
    const bool is_float = v->dtype.kind == CM_KIND_FLOAT;
    if (v->has_fill_value && (is_float ? cm_element_to_double(&v->dtype, dst) ==
                                             cm_element_to_double(&v->dtype, v->fill_value)
                                       : memcmp(dst, v->fill_value, v->dtype.nbytes) == 0))
        return refuse_element(in, v, file, element,
                              in->has_base
                                  ? "is data, but equals the fill value that the store has"
                                  : "is data, but equals the fill value that the store has; choose "
                                    "another with `fill_value`",
                              err);
    return CM_OK;
}

static bool same_fill(const cm_join_var *v, const cm_described *d)
{
    return v->has_fill_value == d->has_fill_value &&
           (!v->has_fill_value || memcmp(d->fill_value, v->fill_value, d->dtype.nbytes) == 0);
}

int cm_join_convert(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                    uint32_t file, const void *src, void *dst, uint64_t nelem, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    const cm_described *d = cm_join_described(in, tables, at, file);
    cm_reading r;
    if (v->rebased)
        return rebase(in, tables, at, file, src, dst, nelem, err);
    /* Most files are like the first: no attributes are parsed for them. */
    if (!v->unpacked && cm_dtype_equal(&d->dtype, &v->dtype) && same_fill(v, d)) {
        memcpy(dst, src, nelem * v->dtype.nbytes);
        return CM_OK;
    }
    const bool number = cm_join_reading(in, tables, at, file, &r);
    const bool unpacks =
        number && v->unpacked && r.packed && (cm_join_planted & CM_PLANTED_PACKED) == 0;
    if (!unpacks && cm_dtype_equal(&d->dtype, &v->dtype) && (!number || same_fill(v, d))) {
        memcpy(dst, src, nelem * v->dtype.nbytes);
        return CM_OK;
    }
    if (!number)
        return cm_fail(err, CM_EINTERNAL, "%s: variable %s: is converted, and no number",
                       in->file[file]->path, v->name);
    cm_conversion c = {.src = d->dtype,
                       .dst = v->dtype,
                       .unpack = unpacks,
                       .single = r.single && !v->in_double,
                       .scale = r.scale,
                       .offset = r.offset,
                       .exact = !unpacks};
    /* missing_value is an attribute of the whole where nothing is unpacked. */
    if (!v->unpacked)
        r.nmissing = d->has_fill_value;
    else
        c.src.kind = r.kind;
    int rc = CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i < nelem; i++) {
        const uint8_t *from = (const uint8_t *)src + i * d->dtype.nbytes;
        const bool missing = r.nmissing > 0 && cm_reading_is_missing(&r, from);
        rc = convert_one(&c, in, v, file, from, missing, i, (uint8_t *)dst + i * v->dtype.nbytes,
                         err);
    }
    return rc;
}
