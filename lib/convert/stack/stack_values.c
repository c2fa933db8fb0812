/* Type, packing and missing values of a stack. */
#include <math.h>
#include <string.h>

#include "convert/stack/stack.h"
#include "format/packing.h"
#include "model/convert.h"
#include "model/widen.h"
#include "options/varopt.h"

/* ---- numbers ---- */

static bool same_packing(const cm_variable *a, const cm_variable *b)
{
    const cm_packing p = cm_packing_of(a), q = cm_packing_of(b);
    return cm_dtype_equal(&a->dtype, &b->dtype) && cm_dtype_equal(&p.type, &q.type) &&
           p.packed == q.packed && p.scale == q.scale && p.offset == q.offset;
}

static bool wants_unpack(const cm_job *job, const cm_stack *s, const cm_stack_member *m,
                         bool by_member)
{
    const cm_texts *unpack = &job->options->unpack;
    for (size_t i = 0; i < unpack->n; i++) {
        const char *text = unpack->text[i];
        if (cm_name_matches(text, m->item->name) && strcmp(text, "all") != 0)
            return true;
        if (!by_member && (strcmp(text, "all") == 0 || cm_name_matches(text, s->text.name)))
            return true;
    }
    return false;
}

/*
 * Stored numbers lie side by side where all are packed alike; else plain values do, which has to
 * be asked for.
 */
int cm_stack_choose_values(const cm_job *job, cm_stack *s, cm_error *err)
{
    const cm_stack_member *first = &s->member[0], *other = NULL, *packed = NULL, *plain = NULL;
    bool asked = false;
    for (size_t i = 0; i < s->nmembers; i++) {
        const cm_stack_member *m = &s->member[i];
        if (other == NULL && !same_packing(first->var, m->var))
            other = m;
        asked = asked || wants_unpack(job, s, m, true);
    }
    for (size_t i = 0; i < s->nmembers; i++) {
        cm_stack_member *m = &s->member[i];
        const cm_packing p = cm_packing_of(m->var);
        m->how.dtype = m->dtype = m->var->dtype;
        if (other == NULL && !asked)
            continue;
        m->unpacks = m->how.unpacks = p.packed && wants_unpack(job, s, m, false);
        m->how.other_sign = !cm_dtype_equal(&p.type, &m->dtype);
        m->how.scale = p.scale;
        m->how.offset = p.offset;
        m->dtype = m->unpacks ? cm_dtype_make(CM_KIND_FLOAT, 8) : p.type;
        if (p.packed && !m->unpacks)
            packed = m;
        if (m->unpacks)
            plain = m;
    }
    if (packed == NULL)
        return CM_OK;
    if (other == NULL)
        return cm_fail(err, CM_EINVAL,
                       "`stack` %s: %s would be unpacked, and %s not; `unpack` %s makes plain "
                       "values of them",
                       s->text.text, plain->var->name, packed->var->name, s->text.name);
    return cm_fail(err, CM_EINVAL,
                   "`stack` %s: %s and %s are packed differently; `unpack` %s makes plain "
                   "values of them",
                   s->text.text, first->var->name, other->var->name, s->text.name);
}

int cm_stack_choose_type(cm_stack *s, cm_multi_var *out, cm_error *err)
{
    char a[32], b[32];
    out->dtype = s->member[0].dtype;
    out->scale_nbytes = s->member[0].var->scale_nbytes;
    out->offset_nbytes = s->member[0].var->offset_nbytes;
    for (size_t i = 1; i < s->nmembers; i++) {
        const cm_stack_member *m = &s->member[i];
        cm_dtype wide;
        if (!cm_widen(&out->dtype, &m->dtype, &wide))
            return cm_fail(err, CM_EINVAL,
                           "`stack` %s: no type holds every value of %s (%s) and of the variables "
                           "before it (%s)",
                           s->text.text, m->var->name, cm_dtype_name(&m->dtype, a, sizeof(a)),
                           cm_dtype_name(&out->dtype, b, sizeof(b)));
        out->dtype = wide;
    }
    return CM_OK;
}

/* ---- missing values ---- */

static bool is_fill(const cm_stack_member *m, const cm_json *value)
{
    double x;
    if (cm_json_is(value, CM_JSON_ARRAY) && cm_json_length(value) == 1)
        value = cm_json_at(value, 0);
    return m->var->has_fill_value && cm_json_get_double(value, &x) &&
           (cm_element_to_double(&m->var->dtype, m->var->fill_value) == x ||
            (isnan(x) && isnan(cm_element_to_double(&m->var->dtype, m->var->fill_value))));
}

/*
 * Readers mask missing_value, too.  If all variables have the same and the numbers stay, the
 * attribute is kept; otherwise each has to equal the fill value, which becomes the array's.
 */
int cm_stack_check_missing(cm_stack *s, const cm_multi_var *out, cm_error *err)
{
    const cm_stack_member *odd = NULL;
    const cm_json *first = cm_json_member(s->member[0].var->attrs, "missing_value");
    bool stays = true;
    for (size_t i = 0; i < s->nmembers; i++) {
        const cm_stack_member *m = &s->member[i];
        const cm_json *value = cm_json_member(m->var->attrs, "missing_value");
        stays = stays && !m->unpacks && cm_dtype_equal(&m->var->dtype, &out->dtype) &&
                cm_json_equal(value, first);
        if (value != NULL && !is_fill(m, value) && odd == NULL)
            odd = m;
    }
    s->keeps_missing = stays;
    if (stays || odd == NULL)
        return CM_OK;
    return cm_fail(err, CM_EINVAL,
                   "`stack` %s: %s has a missing_value that is not its _FillValue, and that the "
                   "array cannot have for this channel alone",
                   s->text.text, odd->var->name);
}

static bool same_fill(const cm_stack_member *m, const cm_multi_var *out)
{
    return m->var->has_fill_value && !m->unpacks && cm_dtype_equal(&m->var->dtype, &out->dtype) &&
           memcmp(m->var->fill_value, out->fill_value, out->dtype.nbytes) == 0;
}

/* The first variable's where the array's type has it; NaN for what is unpacked. */
int cm_stack_choose_fill(cm_stack *s, cm_multi_var *out, cm_error *err)
{
    const cm_stack_member *from = NULL;
    bool unpacks = false;
    for (size_t i = 0; i < s->nmembers; i++) {
        const cm_stack_member *m = &s->member[i];
        unpacks = unpacks || m->unpacks;
        if (from == NULL && m->var->has_fill_value)
            from = m;
    }
    if (from == NULL) {
        const cm_variable *v = s->member[0].var;
        out->has_fill = v->fill != NULL && cm_dtype_equal(&v->dtype, &out->dtype);
        if (out->has_fill)
            memcpy(out->fill, v->fill, out->dtype.nbytes);
        return CM_OK;
    }
    const double value = unpacks ? (double)__builtin_nanf("")
                                 : cm_element_to_double(&from->dtype, from->var->fill_value);
    out->has_fill_value = out->has_fill = true;
    if (!unpacks && cm_dtype_equal(&from->var->dtype, &out->dtype))
        memcpy(out->fill_value, from->var->fill_value, out->dtype.nbytes);
    else if (!cm_element_from_double(&out->dtype, value, out->fill_value))
        return cm_fail(err, CM_EINVAL,
                       "`stack` %s: its type has nothing to stand for the missing "
                       "value of %s",
                       s->text.text, from->var->name);
    memcpy(out->fill, out->fill_value, out->dtype.nbytes);
    for (size_t i = 0; i < s->nmembers; i++) {
        cm_stack_member *m = &s->member[i];
        if (same_fill(m, out))
            continue;
        m->how.replaces_fill = m->var->has_fill_value;
        m->how.checks_fill = !m->var->has_fill_value;
        memcpy(m->how.fill, m->var->fill_value, sizeof(m->how.fill));
    }
    return CM_OK;
}
