#include "convert/layout/missing_attribute.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/number.h"
#include "model/convert.h"

/* xarray reads the _FillValue of a float in Zarr v3 as base64 of the little-endian float64. */
static cm_json *float_fill_json(double value, cm_error *err)
{
    char *text = cm_base64_encode((const uint8_t *)&value, sizeof(value), err);
    cm_json *j = text == NULL ? NULL : cm_json_string(text);
    free(text);
    return j;
}

/* A list of two of these. */
static cm_json *complex_fill_json(const cm_dtype *type, const uint8_t *element, cm_error *err)
{
    const cm_dtype half = {.kind = CM_KIND_FLOAT, .nbytes = type->nbytes / 2};
    cm_json *list = cm_json_array();
    int rc = CM_OK;
    for (unsigned k = 0; rc == CM_OK && k < 2; k++)
        rc = cm_json_append(
            list, float_fill_json(cm_element_to_double(&half, element + k * half.nbytes), err),
            err);
    if (rc == CM_OK)
        return list;
    cm_json_free(list);
    return NULL;
}

cm_json *cm_job_integer_json(const cm_dtype *type, const uint8_t *element)
{
    uint64_t raw = 0;
    memcpy(&raw, element, type->nbytes);
    if (type->kind == CM_KIND_UINT)
        return cm_json_u64(raw);
    unsigned shift = 64 - 8 * type->nbytes;
    return cm_json_i64((int64_t)(raw << shift) >> shift);
}

/*
 * xarray reads unsigned integers with _Unsigned = "false" as signed ones of the same bits, and
 * takes _FillValue for one of those: np.int8(255) would be an error.
 */
static bool is_read_as_signed(const cm_json *attrs, const cm_dtype *type)
{
    const char *text = cm_json_text(cm_json_member(attrs, "_Unsigned"), NULL);
    return type->kind == CM_KIND_UINT && text != NULL && strcmp(text, "false") == 0;
}

int cm_job_set_missing(cm_json *attrs, const cm_dtype *own, const uint8_t *element, cm_error *err)
{
    cm_dtype read_as = *own;
    const cm_dtype *type = &read_as;
    if (is_read_as_signed(attrs, own))
        read_as.kind = CM_KIND_INT;
    cm_json *value = type->kind == CM_KIND_BOOL      ? cm_json_bool(element[0] != 0)
                     : type->kind == CM_KIND_COMPLEX ? complex_fill_json(type, element, err)
                     : type->kind == CM_KIND_FLOAT
                         ? float_fill_json(cm_element_to_double(type, element), err)
                         : cm_job_integer_json(type, element);
    return cm_json_set(attrs, "_FillValue", value, err);
}
