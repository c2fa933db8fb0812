#include "job/common/packing.h"

#include <strings.h>

#include "model/convert.h"

cm_packing cm_packing_of(const cm_variable *v)
{
    const cm_json *attrs = v->attrs;
    const char *is_unsigned = cm_json_text(cm_json_member(attrs, "_Unsigned"), NULL);
    cm_packing p = {.type = v->dtype, .scale = 1};
    p.packed = cm_json_get_double(cm_json_member(attrs, "scale_factor"), &p.scale);
    p.packed |= cm_json_get_double(cm_json_member(attrs, "add_offset"), &p.offset);
    const cm_packed_as as = {.dtype = v->dtype,
                             .has_scale = cm_json_has(attrs, "scale_factor"),
                             .has_offset = cm_json_has(attrs, "add_offset"),
                             .scale_nbytes = v->scale_nbytes,
                             .offset_nbytes = v->offset_nbytes};
    p.shown = cm_unpacked_dtype(&as);
    if (is_unsigned != NULL && strcasecmp(is_unsigned, "true") == 0 && p.type.kind == CM_KIND_INT)
        p.type.kind = CM_KIND_UINT;
    return p;
}
