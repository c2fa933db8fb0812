#include "format/missing.h"

#include <string.h>

#include "format/attr_value.h"
#include "format/packing.h"
#include "model/convert.h"

/* TYPE as it is read. */
static cm_dtype type_read(const cm_json *attrs, const cm_dtype *type)
{
    cm_dtype read = *type;
    if (cm_packing_other_sign(attrs, type))
        read.kind = type->kind == CM_KIND_INT ? CM_KIND_UINT : CM_KIND_INT;
    return read;
}

bool cm_missing_fill(const cm_json *attrs, const cm_dtype *type, uint8_t *out)
{
    const cm_json *value = cm_json_member(attrs, "_FillValue");
    const cm_dtype read = type_read(attrs, type);
    return value != NULL &&
           (cm_attr_element(value, type, out) || cm_attr_element(value, &read, out));
}

bool cm_missing_number(const cm_json *value, const cm_json *attrs, const cm_dtype *type,
                       uint8_t *out)
{
    const cm_dtype read = type_read(attrs, type);
    double number;
    if (type->kind == CM_KIND_FLOAT) /* not rounded to a narrower type */
        return cm_json_get_double(value, &number) && cm_element_from_double(type, number, out);
    return cm_json_text(value, NULL) == NULL && cm_attr_element(value, &read, out);
}

static bool add_fill(cm_tally_rule *rule, const uint8_t *element)
{
    for (unsigned i = 0; i < rule->nfills; i++)
        if (memcmp(rule->fill[i], element, rule->type.nbytes) == 0)
            return true;
    if (rule->nfills == CM_TALLY_MAX_FILLS)
        return false;
    memcpy(rule->fill[rule->nfills++], element, rule->type.nbytes);
    return true;
}

bool cm_missing_rule(const cm_dtype *type, const cm_json *attrs, const uint8_t *fill,
                     cm_tally_rule *rule)
{
    const cm_json *more = cm_json_member(attrs, "missing_value");
    const bool is_list = cm_json_is(more, CM_JSON_ARRAY);
    const size_t n = is_list ? cm_json_length(more) : more != NULL;
    uint8_t element[16];
    *rule = (cm_tally_rule){.type = *type, .simd = cm_cpu_simd()};
    bool all = fill == NULL || add_fill(rule, fill);
    if (cm_missing_fill(attrs, type, element))
        all = add_fill(rule, element) && all;
    for (size_t i = 0; i < n; i++)
        if (cm_missing_number(is_list ? cm_json_at(more, i) : more, attrs, type, element))
            all = add_fill(rule, element) && all;
    rule->type = type_read(attrs, type);
    return all;
}
