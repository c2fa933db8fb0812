#include "format/missing.h"

#include <string.h>

#include "format/attr_value.h"
#include "format/packing.h"

static void add_fill(cm_tally_rule *rule, const cm_json *value)
{
    if (value == NULL || rule->nfills == CM_TALLY_MAX_FILLS ||
        !cm_attr_element(value, &rule->type, rule->fill[rule->nfills]))
        return;
    for (unsigned i = 0; i < rule->nfills; i++)
        if (memcmp(rule->fill[i], rule->fill[rule->nfills], rule->type.nbytes) == 0)
            return;
    rule->nfills++;
}

void cm_missing_rule(const cm_dtype *type, const cm_json *attrs, const uint8_t *fill,
                     cm_tally_rule *rule)
{
    const cm_json *more = cm_json_member(attrs, "missing_value");
    *rule = (cm_tally_rule){.type = *type, .simd = cm_cpu_simd()};
    if (fill != NULL)
        memcpy(rule->fill[rule->nfills++], fill, type->nbytes);
    add_fill(rule, cm_json_member(attrs, "_FillValue"));
    if (!cm_json_is(more, CM_JSON_ARRAY))
        add_fill(rule, more);
    for (size_t i = 0; cm_json_is(more, CM_JSON_ARRAY) && i < cm_json_length(more); i++)
        add_fill(rule, cm_json_at(more, i));
    if (cm_packing_other_sign(attrs, type))
        rule->type.kind = type->kind == CM_KIND_INT ? CM_KIND_UINT : CM_KIND_INT;
}
