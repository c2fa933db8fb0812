/* Feed of one array: `cast`, `unpack` and `fill_to_nan`, as its attributes describe the data. */
#include <math.h>
#include <string.h>

#include "format/attr_value.h"
#include "format/missing.h"
#include "format/packing.h"
#include "load/run.h"
#include "model/convert.h"

/* _FillValue and missing_value are mostly the same. */
static int keep_fill(const cm_array *a, const uint8_t *element, cm_feed *f, cm_error *err)
{
    for (unsigned i = 0; i < f->nfills; i++)
        if (memcmp(f->fill[i], element, a->dtype.nbytes) == 0)
            return CM_OK;
    if (f->nfills == CM_FEED_MAX_FILLS)
        return cm_fail(err, CM_EUNSUPPORTED, "more than %d fill values", CM_FEED_MAX_FILLS);
    memcpy(f->fill[f->nfills++], element, a->dtype.nbytes);
    return CM_OK;
}

/* The element that VALUE of the attribute NAME names; false: none is equal to it. */
static bool element_of(const cm_array *a, const cm_feed *f, const char *name, const cm_json *value,
                       uint8_t *out)
{
    if (strcmp(name, "_FillValue") == 0)
        return cm_missing_fill(a->attrs, &a->dtype, out);
    return cm_missing_number(value, f->src.kind != a->dtype.kind ? a->attrs : NULL, &a->dtype, out);
}

static bool is_not_finite(const cm_json *value)
{
    static const char *const TEXT[] = {"NaN", "Infinity", "-Infinity"};
    const char *text = cm_json_text(value, NULL);
    for (size_t i = 0; text != NULL && i < sizeof(TEXT) / sizeof(TEXT[0]); i++)
        if (strcmp(text, TEXT[i]) == 0)
            return true;
    return false;
}

static int add_fill(const cm_array *a, const char *name, const cm_json *value, bool as_xarray,
                    cm_feed *f, cm_error *err)
{
    double number;
    uint8_t to[16] = {0};
    /* To xarray no element is equal to a text; stores have NaN and infinities as texts. */
    if (!cm_attr_number(value, &number) && (as_xarray || is_not_finite(value)))
        return CM_OK;
    if (!cm_attr_number(value, &number))
        return cm_fail(err, CM_EFORMAT, "its attribute %s is not a number", name);
    return element_of(a, f, name, value, to) ? keep_fill(a, to, f, err) : CM_OK;
}

/* A number, or a list of them (missing_value may have several). */
static int add_fills(const cm_array *a, const char *name, bool as_xarray, cm_feed *f, cm_error *err)
{
    const cm_json *value = cm_json_member(a->attrs, name);
    if (!cm_json_is(value, CM_JSON_ARRAY))
        return value != NULL ? add_fill(a, name, value, as_xarray, f, err) : CM_OK;
    int rc = CM_OK;
    for (size_t i = 0; i < cm_json_length(value) && rc == CM_OK; i++)
        rc = add_fill(a, name, cm_json_at(value, i), as_xarray, f, err);
    return rc;
}

static int find_fills(const cm_variable *v, bool as_xarray, cm_feed *f, cm_error *err)
{
    const cm_array *a = v->array;
    int rc = CM_OK;
    if (v->has_fill_value && a->dtype.nbytes <= sizeof f->fill[0])
        rc = keep_fill(a, v->fill_value, f, err);
    if (rc == CM_OK)
        rc = add_fills(a, "_FillValue", as_xarray, f, err);
    return rc == CM_OK ? add_fills(a, "missing_value", as_xarray, f, err) : rc;
}

static int find_packing(const cm_array *a, cm_feed *f, cm_error *err)
{
    const cm_json *scale = cm_json_member(a->attrs, "scale_factor");
    const cm_json *offset = cm_json_member(a->attrs, "add_offset");
    f->scale = 1;
    f->offset = 0;
    if ((scale != NULL && !cm_attr_number(scale, &f->scale)) ||
        (offset != NULL && !cm_attr_number(offset, &f->offset)))
        return cm_fail(err, CM_EFORMAT,
                       "its attributes scale_factor and add_offset are not numbers");
    f->unpack = scale != NULL || offset != NULL;
    /*
     * Where a format had no unsigned type (netCDF's conventions for attributes, xarray's rule
     * too).
     */
    f->src = cm_packing_type_read(a->attrs, &f->src);
    return CM_OK;
}

/* Also where no element can have the value, as -1 of unsigned bytes: the type follows. */
static bool names_fill(const cm_array *a, const char *name)
{
    const cm_json *value = cm_json_member(a->attrs, name);
    double number;
    return value != NULL && !(cm_attr_number(value, &number) && isnan(number));
}

/* The type that xarray decodes V to: `cast` xarray. */
static cm_feed_to type_of_xarray(const cm_variable *v, const cm_feed *f)
{
    const bool is_float = f->src.kind == CM_KIND_FLOAT;
    unsigned nbytes;
    if (f->unpack)
        nbytes = cm_packing_of(v).shown.nbytes;
    else if (!is_float && (f->nfills > 0 || names_fill(v->array, "_FillValue") ||
                           names_fill(v->array, "missing_value")))
        nbytes = f->src.nbytes <= 2 ? 4 : 8;
    else
        return CM_FEED_SAME;
    return is_float && nbytes == f->src.nbytes ? CM_FEED_SAME
           : nbytes == 4                       ? CM_FEED_FLOAT32
                                               : CM_FEED_FLOAT64;
}

static bool divides(const cm_feed_normal *n)
{
    return isfinite(n->mean) && isfinite(n->std) && n->std > 0;
}

/* By levels, which lie along dimension J of A. */
static int use_levels(const cm_load_options *o, const cm_array *a, unsigned j,
                      const cm_load_normal *n, cm_feed *f, cm_error *err)
{
    if (n->nlevels != a->shape[j])
        return cm_fail(err, CM_EINVAL,
                       "normalize: the statistics are of %zu places along %s, and it has %llu",
                       n->nlevels, n->dim, (unsigned long long)a->shape[j]);
    const cm_load_range used = cm_load_used(o, n->dim, a->shape[j]);
    for (uint64_t k = used.first; k < used.first + used.count && k < n->nlevels; k++)
        if (!divides(&n->level[k]))
            return cm_fail(err, CM_EINVAL,
                           "normalize: its values at %s %llu (from 0) are all the same or missing, "
                           "or some are infinite: there is no standard deviation to divide by",
                           n->dim, (unsigned long long)k);
    f->normalize = n->nlevels > 0;
    f->normal = n->level[used.first < n->nlevels ? used.first : 0];
    f->level = n->level;
    f->level_dim = j;
    return CM_OK;
}

/* By the statistics of A: those of each level where it has the dimension of these. */
static int find_normal(const cm_load_options *o, const cm_load_data *d, const cm_array *a,
                       cm_feed *f, cm_error *err)
{
    const cm_load_normal *n = cm_load_normal_of(o, d, a);
    if (n == NULL)
        return cm_fail(err, CM_EINVAL, "normalize: there are no statistics of it");
    const int level = cm_load_level_dim(n, a);
    if (level >= 0)
        return use_levels(o, a, (unsigned)level, n, f, err);
    if (!divides(&n->all))
        return cm_fail(err, CM_EINVAL,
                       "normalize: its values are all the same or missing, or some are infinite: "
                       "there is no standard deviation to divide by");
    f->normalize = true;
    f->normal = n->all;
    return CM_OK;
}

int cm_load_feed_make(const cm_load_options *o, const cm_load_setting *s, const cm_load_data *d,
                      const cm_variable *v, cm_feed *f, cm_error *err)
{
    const cm_array *a = v->array;
    int rc = CM_OK;
    *f = (cm_feed){.src = a->dtype, .to = s->to};
    const bool is_number = cm_dtype_is_number(&a->dtype) || a->dtype.kind == CM_KIND_BOOL;
    if (s->as_xarray && o->normal == NULL && (!is_number || a->dtype.kind == CM_KIND_BOOL))
        return cm_feed_check(f, err);
    if (!is_number && (s->to != CM_FEED_SAME || o->unpack || o->fill_to_nan))
        return cm_fail(err, CM_EINVAL,
                       "variable %s: its elements are not numbers, so `cast`, `unpack` and "
                       "`fill_to_nan` have no meaning",
                       cm_load_array_name(a));
    if (o->unpack)
        rc = find_packing(a, f, err);
    if (rc == CM_OK && o->fill_to_nan)
        rc = find_fills(v, s->as_xarray, f, err);
    if (rc == CM_OK && s->as_xarray)
        f->to = type_of_xarray(v, f);
    if (rc == CM_OK && o->normal != NULL)
        rc = find_normal(o, d, a, f, err);
    if (rc == CM_OK)
        rc = cm_feed_check(f, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "variable %s", cm_load_array_name(a));
    return rc;
}
