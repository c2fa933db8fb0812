#include "archive/tables/fills.h"

#include <math.h>
#include <string.h>

#include "archive/tables/described.h"
#include "model/convert.h"
#include "options/fill_option.h"

bool cm_join_default_fill(const cm_dtype *type, uint8_t *out)
{
    static const int64_t LOW[] = {-127, -32767, -2147483647, INT64_C(-9223372036854775806)};
    const double nan = NAN;
    const float nanf = NAN;
    unsigned size = type->nbytes, i = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    const uint64_t high = size < 8 ? UINT64_MAX : UINT64_MAX - 1;
    if (type->kind == CM_KIND_FLOAT && size >= 4)
        memcpy(out, size == 4 ? (const void *)&nanf : &nan, size);
    else if (type->kind == CM_KIND_INT)
        memcpy(out, &LOW[i], size);
    else if (type->kind == CM_KIND_UINT)
        memcpy(out, &high, size);
    else
        return false;
    return true;
}

/* D's fill value becomes V's, if V's type has the number. */
static bool take_fill(cm_join_var *v, const cm_described *d)
{
    const cm_conversion c = {.src = d->dtype, .dst = v->dtype, .exact = true};
    uint8_t value[sizeof(v->fill_value)] = {0};
    uint64_t bad;
    if (!d->has_fill_value || !cm_dtype_is_number(&d->dtype) ||
        cm_conversion_run(&c, value, d->fill_value, 1, &bad, NULL) != CM_OK)
        return false;
    memcpy(v->fill_value, value, sizeof(value));
    return true;
}

/* Takes the fill value that the user asks for.  A store that grows has its own. */
static bool take_asked(const cm_join_input *in, cm_join_tables *tables, cm_join_var *v)
{
    const uint32_t several = UINT32_C(1) << CM_FINDING_FILL | UINT32_C(1) << CM_FINDING_TYPE;
    const char *text = cm_varopts_get(&tables->fill, v->name, false, NULL);
    uint8_t value[sizeof(v->fill_value)] = {0};
    if (text == NULL || in->has_base || ((v->kinds & several) == 0 && !v->unpacked) ||
        !cm_fill_parse(&v->dtype, text, value))
        return false; /* the conversion reports a fill value that the type does not have */
    memcpy(v->fill_value, value, sizeof(value));
    v->has_fill_value = v->made_fill = true;
    return true;
}

int cm_join_settle_fill(const cm_join_input *in, cm_join_tables *tables, uint32_t at, bool placed,
                        cm_error *err)
{
    cm_join_var *v = &tables->var[at];
    bool of_first = v->has_fill_value;
    /* A store that grows keeps its fill value, or keeps having none. */
    bool of_others = placed && !in->has_base && (v->kinds & UINT32_C(1) << CM_FINDING_FILL) != 0;
    if (v->given || !cm_dtype_is_number(&v->dtype))
        return CM_OK; /* of times a choice was made */
    if (v->unpacked) {
        (void)take_asked(in, tables, v); /* else NaN is missing */
        return CM_OK;
    }
    if (!of_first && !of_others)
        return CM_OK;
    if (take_asked(in, tables, v) || (of_first && cm_dtype_equal(&v->like->dtype, &v->dtype)))
        return CM_OK;
    v->has_fill_value = true;
    for (size_t i = 0; i < v->nfiles; i++)
        if (take_fill(v, cm_join_described(in, tables, at, v->file[i])))
            return CM_OK;
    /* No fill value of the files is a number of the type: looks for one that no data have. */
    v->made_fill = v->dtype.kind != CM_KIND_FLOAT;
    return cm_join_default_fill(&v->dtype, v->fill_value)
               ? CM_OK
               : cm_fail(err, CM_EUNSUPPORTED, "%s: its type has no fill value", v->name);
}
