#include "convert/layout/translate.h"

#include <string.h>

#include "base/number.h"
#include "convert/layout/missing_attribute.h"
#include "format/attr_value.h"
#include "format/missing.h"

#define FILL_VALUE "_FillValue"

/* Into OUT, of 16 bytes, what _FillValue of Zarr 3 says of truth values and of complex numbers. */
static bool read_attribute(const cm_json *attrs, const cm_dtype *type, uint8_t *out)
{
    const cm_json *value = cm_json_member(attrs, FILL_VALUE);
    const cm_dtype half = {.kind = CM_KIND_FLOAT, .nbytes = type->nbytes / 2};
    bool truth;
    if (type->kind == CM_KIND_BOOL && cm_json_get_bool(value, &truth)) {
        out[0] = truth;
        return true;
    }
    return type->kind == CM_KIND_COMPLEX && cm_json_is(value, CM_JSON_ARRAY) &&
           cm_json_length(value) == 2 && cm_attr_element(cm_json_at(value, 0), &half, out) &&
           cm_attr_element(cm_json_at(value, 1), &half, out + half.nbytes);
}

/* The element that readers of S mask, into OUT, of 16 bytes; false: none. */
static bool find_missing(const cm_variable *s, uint8_t *out)
{
    const cm_zarr_meta *m = s->words;
    if (s->has_fill_value)
        memcpy(out, s->fill_value, sizeof(s->fill_value));
    if (s->has_fill_value || (m->dtype.kind != CM_KIND_BOOL && m->dtype.kind != CM_KIND_COMPLEX))
        return s->has_fill_value;
    if (m->zarr_format != 2 || !m->has_fill)
        return read_attribute(m->attrs, &m->dtype, out);
    memcpy(out, m->fill, m->dtype.nbytes);
    return true;
}

/* A fill value that is no missing value becomes none. */
static int mask_by_fill(const cm_variable *s, cm_zarr_meta *m, cm_error *err)
{
    uint8_t missing[16];
    const bool masks = find_missing(s, missing);
    m->has_fill = masks || (m->fill != NULL && cm_missing_is_nan(&m->dtype, m->fill));
    if (!masks)
        return CM_OK;
    cm_json_remove(m->attrs, FILL_VALUE);
    if (m->fill == NULL && (m->fill = cm_calloc(1, m->dtype.nbytes, err)) == NULL)
        return CM_ENOMEM;
    memcpy(m->fill, missing, m->dtype.nbytes);
    return CM_OK;
}

/* xarray does not open a store with another attribute than these. */
static bool is_read(const cm_json *value, const cm_dtype *type)
{
    uint8_t element[16];
    double number;
    switch (type->kind) {
    case CM_KIND_BOOL:
        return true;
    case CM_KIND_INT:
    case CM_KIND_UINT:
        return cm_json_get_double(value, &number);
    case CM_KIND_FLOAT:
        return cm_json_is(value, CM_JSON_STRING) && cm_attr_element(value, type, element);
    default:
        return false;
    }
}

static int mask_by_attribute(cm_job *job, const cm_variable *s, cm_zarr_meta *m, cm_error *err)
{
    uint8_t missing[16];
    if (!find_missing(s, missing)) {
        const cm_json *value = cm_json_member(m->attrs, FILL_VALUE);
        if (value == NULL || is_read(value, &m->dtype))
            return CM_OK;
        cm_json_remove(m->attrs, FILL_VALUE);
        return cm_job_warn(job, err,
                           "%s: its attribute _FillValue is left out: readers of Zarr 3 do not "
                           "open a store with such a one",
                           s->name);
    }
    cm_json_remove(m->attrs, FILL_VALUE);
    if (cm_missing_is_nan(&m->dtype, missing))
        return CM_OK;
    if (m->attrs == NULL && (m->attrs = cm_json_object()) == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    return cm_job_set_missing(m->attrs, &m->dtype, missing, err);
}

int cm_job_translate_missing(cm_job *job, const cm_variable *s, cm_zarr_meta *meta, cm_error *err)
{
    uint8_t missing[16];
    if (job->zarr_format == s->words->zarr_format)
        return CM_OK;
    if (job->zarr_format == 2)
        return meta->has_dim_names || find_missing(s, missing) ? mask_by_fill(s, meta, err) : CM_OK;
    return meta->has_dim_names ? mask_by_attribute(job, s, meta, err) : CM_OK;
}
