#include "format/packing.h"

#include <string.h>

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

cm_packing cm_packing_of(const cm_variable *v)
{
    const cm_json *attrs = v->attrs;
    cm_packing p = {.type = v->dtype, .scale = 1};
    p.packed = cm_json_get_double(cm_json_member(attrs, "scale_factor"), &p.scale);
    p.packed |= cm_json_get_double(cm_json_member(attrs, "add_offset"), &p.offset);
    const cm_packed_as as = {.dtype = v->dtype,
                             .has_scale = cm_json_has(attrs, "scale_factor"),
                             .has_offset = cm_json_has(attrs, "add_offset"),
                             .scale_nbytes = v->scale_nbytes,
                             .offset_nbytes = v->offset_nbytes};
    p.shown = cm_unpacked_dtype(&as);
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
