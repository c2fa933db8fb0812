#include "format/missing.h"

#include <math.h>
#include <string.h>

#include "format/attr_value.h"
#include "format/packing.h"
#include "model/convert.h"

bool cm_missing_fill(const cm_json *attrs, const cm_dtype *type, uint8_t *out)
{
    const cm_json *value = cm_json_member(attrs, "_FillValue");
    const cm_dtype read = cm_packing_type_read(attrs, type);
    if (cm_json_is(value, CM_JSON_ARRAY) && cm_json_length(value) == 1)
        value = cm_json_at(value, 0);
    /* JSON has no NaN: writers say it in words. */
    const char *text = cm_json_text(value, NULL);
    if (type->kind == CM_KIND_FLOAT && text != NULL && strcmp(text, "NaN") == 0)
        return cm_element_from_double(type, NAN, out);
    return value != NULL &&
           (cm_attr_element(value, type, out) || cm_attr_element(value, &read, out));
}

bool cm_missing_is_nan(const cm_dtype *type, const uint8_t *element)
{
    int64_t number = 0;
    if (type->kind == CM_KIND_FLOAT)
        return isnan(cm_element_to_double(type, element));
    if (type->kind != CM_KIND_DATETIME && type->kind != CM_KIND_TIMEDELTA)
        return false;
    memcpy(&number, element, sizeof(number));
    return number == INT64_MIN;
}

bool cm_missing_number(const cm_json *value, const cm_json *attrs, const cm_dtype *type,
                       uint8_t *out)
{
    const cm_dtype read = cm_packing_type_read(attrs, type);
    double number;
    if (type->kind == CM_KIND_FLOAT) /* not rounded to a narrower type */
        return cm_json_get_double(value, &number) && cm_element_from_double(type, number, out);
    return cm_json_text(value, NULL) == NULL && cm_attr_element(value, &read, out);
}

static bool add(cm_missing *m, const cm_dtype *type, const uint8_t *element)
{
    for (unsigned i = 0; i < m->n; i++)
        if (memcmp(m->element[i], element, type->nbytes) == 0)
            return true;
    if (m->n == CM_MISSING_MOST)
        return false;
    memcpy(m->element[m->n++], element, type->nbytes);
    return true;
}

bool cm_missing_list(const cm_dtype *type, const cm_json *attrs, const uint8_t *fill,
                     cm_missing *out)
{
    const cm_json *more = cm_json_member(attrs, "missing_value");
    const bool is_list = cm_json_is(more, CM_JSON_ARRAY);
    const size_t n = is_list ? cm_json_length(more) : more != NULL;
    uint8_t element[16];
    *out = (cm_missing){0};
    bool all = fill == NULL || add(out, type, fill);
    if (cm_missing_fill(attrs, type, element))
        all = add(out, type, element) && all;
    for (size_t i = 0; i < n; i++)
        if (cm_missing_number(is_list ? cm_json_at(more, i) : more, attrs, type, element))
            all = add(out, type, element) && all;
    return all;
}

static bool names(const cm_json *list, const cm_json *value)
{
    bool found = cm_json_equal(list, value);
    for (size_t i = 0; !found && cm_json_is(list, CM_JSON_ARRAY) && i < cm_json_length(list); i++)
        found = cm_json_equal(cm_json_at(list, i), value);
    return found;
}

int cm_missing_name(cm_json *attrs, cm_json *value, cm_error *err)
{
    const cm_json *was = cm_json_member(attrs, "missing_value");
    if (was == NULL || value == NULL)
        return cm_json_set(attrs, "missing_value", value, err);
    if (names(was, value)) {
        cm_json_free(value);
        return CM_OK;
    }
    const bool is_list = cm_json_is(was, CM_JSON_ARRAY);
    cm_json *list = is_list ? cm_json_copy(was) : cm_json_array();
    int rc = is_list ? CM_OK : cm_json_append(list, cm_json_copy(was), err);
    if (rc == CM_OK)
        rc = cm_json_append(list, value, err);
    else
        cm_json_free(value);
    if (rc == CM_OK)
        return cm_json_set(attrs, "missing_value", list, err);
    cm_json_free(list);
    return rc;
}

bool cm_missing_rule(const cm_dtype *type, const cm_json *attrs, const uint8_t *fill,
                     cm_tally_rule *rule)
{
    cm_missing m;
    const bool all = cm_missing_list(type, attrs, fill, &m);
    *rule = (cm_tally_rule){
        .type = cm_packing_type_read(attrs, type), .nfills = m.n, .simd = cm_cpu_simd()};
    for (unsigned i = 0; i < m.n; i++)
        memcpy(rule->fill[i], m.element[i], sizeof(rule->fill[i]));
    return all;
}
