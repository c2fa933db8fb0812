#include "format/packing.h"

#include <math.h>
#include <string.h>

#include "format/attr_value.h"
#include "model/convert.h"

bool cm_packing_other_sign(const cm_json *attrs, const cm_dtype *t)
{
    const char *sign = cm_json_text(cm_json_member(attrs, "_Unsigned"), NULL);
    return sign != NULL && (t->kind == CM_KIND_INT || t->kind == CM_KIND_UINT) &&
           strcmp(sign, t->kind == CM_KIND_INT ? "true" : "false") == 0;
}

cm_dtype cm_packing_type_read(const cm_json *attrs, const cm_dtype *t)
{
    cm_dtype read = *t;
    if (cm_packing_other_sign(attrs, t))
        read.kind = t->kind == CM_KIND_INT ? CM_KIND_UINT : CM_KIND_INT;
    return read;
}

/* Whether VALUE is NaN, or a list of nothing else. */
static bool is_nan(const cm_json *value)
{
    double x;
    bool nan = cm_json_is(value, CM_JSON_ARRAY) || (cm_attr_number(value, &x) && isnan(x));
    for (size_t i = 0; nan && cm_json_is(value, CM_JSON_ARRAY) && i < cm_json_length(value); i++)
        nan = is_nan(cm_json_at(value, i));
    return nan;
}

/* Whether _FillValue or missing_value is there, and NaN is all that they call missing. */
static bool misses_only_nan(const cm_packing_words *w)
{
    const bool named = cm_json_has(w->attrs, "missing_value");
    if (w->type.kind != CM_KIND_FLOAT || (w->fill == NULL && !named))
        return false;
    return (w->fill == NULL || isnan(cm_element_to_double(&w->type, w->fill))) &&
           (!named || is_nan(cm_json_member(w->attrs, "missing_value")));
}

cm_dtype cm_packing_shown(const cm_packing_words *w)
{
    const unsigned size = w->type.nbytes;
    const bool whole = w->type.kind == CM_KIND_INT || w->type.kind == CM_KIND_UINT;
    const bool scales = cm_json_has(w->attrs, "scale_factor");
    const bool moves = cm_json_has(w->attrs, "add_offset");
    bool single;
    if ((scales || moves) && misses_only_nan(w))
        return w->type;
    if (scales && moves)
        single = w->scale_nbytes == 4 && w->offset_nbytes == 4 && !(whole && size == 4);
    else if (scales || moves)
        single = !moves && w->scale_nbytes == 4;
    else
        single = whole ? size <= 2 : size <= 4;
    return cm_dtype_make(CM_KIND_FLOAT, single ? 4 : 8);
}

cm_packing cm_packing_of(const cm_variable *v)
{
    const cm_json *attrs = v->attrs;
    cm_packing p = {.type = v->dtype, .scale = 1};
    p.packed = cm_json_get_double(cm_json_member(attrs, "scale_factor"), &p.scale);
    p.packed |= cm_json_get_double(cm_json_member(attrs, "add_offset"), &p.offset);
    const cm_packing_words words = {.type = v->dtype,
                                    .attrs = attrs,
                                    .fill = v->has_fill_value ? v->fill_value : NULL,
                                    .scale_nbytes = v->scale_nbytes,
                                    .offset_nbytes = v->offset_nbytes};
    p.shown = cm_packing_shown(&words);
    p.keeps_type = p.packed && misses_only_nan(&words);
    /* To NumPy a number of JSON has the type of the elements that it is applied to. */
    if (p.keeps_type && v->words != NULL && p.shown.nbytes == 4) {
        p.scale = (float)p.scale;
        p.offset = (float)p.offset;
    }
    p.type = cm_packing_type_read(attrs, &p.type);
    return p;
}

int cm_packing_read(const cm_variable *v, uint64_t n, double *out, cm_error *err)
{
    const cm_packing packing = cm_packing_of(v);
    const cm_box box = {.rank = 1, .shape = {n}};
    cm_buf raw = {0};
    int rc = cm_buf_resize(&raw, (size_t)n * v->dtype.nbytes, err);
    if (rc == CM_OK)
        rc = cm_array_read(v->array, NULL, &box, raw.data, err);
    for (uint64_t i = 0; rc == CM_OK && i < n; i++) {
        const double x = cm_element_to_double(&packing.type, raw.data + i * v->dtype.nbytes);
        out[i] = packing.packed ? x * packing.scale + packing.offset : x;
    }
    cm_buf_release(&raw);
    return rc;
}
