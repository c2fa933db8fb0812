#include "format/attr_value.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "model/convert.h"

bool cm_attr_number(const cm_json *j, double *out)
{
    size_t n, nbytes;
    uint8_t *data;
    const char *text = cm_json_text(j, &n);
    if (cm_json_get_double(j, out))
        return true;
    if (text == NULL || !cm_base64_decode(text, n, &data, &nbytes))
        return false;
    const bool ok = nbytes == sizeof(*out);
    if (ok)
        memcpy(out, data, sizeof(*out));
    free(data);
    return ok;
}

bool cm_attr_element(const cm_json *j, const cm_dtype *type, uint8_t *out)
{
    double number;
    int64_t whole;
    uint64_t positive;
    if (type->kind == CM_KIND_INT && type->nbytes == 8 && cm_json_get_i64(j, &whole)) {
        memcpy(out, &whole, sizeof(whole));
        return true;
    }
    if (type->kind == CM_KIND_UINT && type->nbytes == 8 && cm_json_get_u64(j, &positive)) {
        memcpy(out, &positive, sizeof(positive));
        return true;
    }
    if (!cm_attr_number(j, &number))
        return false;
    if (type->kind == CM_KIND_FLOAT && type->nbytes == 4) {
        const float narrow = (float)number; /* as writers round it */
        memcpy(out, &narrow, sizeof(narrow));
        return true;
    }
    return cm_element_from_double(type, number, out);
}
