/* Type, packing and missing values of a stack. */
#include <math.h>
#include <string.h>

#include "convert/stack/stack.h"
#include "format/missing.h"
#include "format/packing.h"
#include "model/convert.h"
#include "model/widen.h"
#include "options/fill_option.h"
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
    s->unpacked_later = other == NULL && !asked && cm_packing_of(first->var).packed &&
                        wants_unpack(job, s, first, false);
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

/* The largest type of the kind that `dtype` names for the array: a smaller one is made of it. */
static int asked_type(const cm_job *job, const cm_stack *s, bool general, cm_dtype *out,
                      bool *is_asked, cm_error *err)
{
    cm_varopts opts;
    int rc = cm_varopts_parse("`dtype`", &job->options->dtype, NULL, &opts, err);
    const char *text = rc == CM_OK ? cm_varopts_get(&opts, s->text.name, general, NULL) : NULL;
    *is_asked =
        text != NULL && cm_dtype_parse(text, out, NULL) == CM_OK &&
        (out->kind == CM_KIND_INT || out->kind == CM_KIND_UINT || out->kind == CM_KIND_FLOAT);
    out->nbytes = 8;
    cm_varopts_release(&opts);
    return rc;
}

/* No type holds every value of ODD and of those before it, which OUT's type holds. */
static int settle_type(const cm_job *job, cm_stack *s, const cm_stack_member *odd,
                       cm_multi_var *out, cm_error *err)
{
    char a[32], b[32];
    cm_dtype asked = {0};
    bool is_asked = false, real = false;
    int rc = asked_type(job, s, out->rank >= 2, &asked, &is_asked, err);
    if (rc != CM_OK)
        return rc;
    for (size_t i = 0; i < s->nmembers; i++) {
        cm_stack_member *m = &s->member[i];
        real = real || m->dtype.kind == CM_KIND_FLOAT;
        m->how.exact = !cm_dtype_equal(&m->dtype, &asked);
        /* Unpacked numbers would be rounded. */
        is_asked = is_asked && (asked.kind == CM_KIND_FLOAT || !m->unpacks);
    }
    if (!is_asked)
        return cm_fail(err, CM_EINVAL,
                       "`stack` %s: no type holds every value of %s (%s) and of the others (%s); "
                       "with `dtype` %s:%s a number that this does not hold exactly stops the run",
                       s->text.text, odd->var->name, cm_dtype_name(&odd->dtype, a, sizeof(a)),
                       cm_dtype_name(&out->dtype, b, sizeof(b)), s->text.name,
                       real ? "float64" : "int64");
    out->dtype = asked;
    return CM_OK;
}

/* Floats first: float64 holds int32 and uint32, but not int64, the type that holds these two. */
int cm_stack_choose_type(const cm_job *job, cm_stack *s, cm_multi_var *out, cm_error *err)
{
    const cm_stack_member *before = NULL;
    out->scale_nbytes = s->member[0].var->scale_nbytes;
    out->offset_nbytes = s->member[0].var->offset_nbytes;
    for (size_t k = 0; k < 2 * s->nmembers; k++) {
        const cm_stack_member *m = &s->member[k % s->nmembers];
        if ((m->dtype.kind == CM_KIND_FLOAT) != (k < s->nmembers))
            continue;
        cm_dtype wide = m->dtype;
        if (before != NULL && !cm_widen(&out->dtype, &m->dtype, &wide))
            return settle_type(job, s, m, out, err);
        before = m;
        out->dtype = wide;
    }
    return CM_OK;
}

/* ---- missing values ---- */

static bool is_nan(const cm_dtype *type, const uint8_t *element)
{
    return type->kind == CM_KIND_FLOAT && isnan(cm_element_to_double(type, element));
}

/* The stored element of M that is missing; false: there are several. */
static bool find_missing(cm_stack_member *m)
{
    const cm_variable *v = m->var;
    cm_missing list;
    bool one =
        cm_missing_list(&v->dtype, v->attrs, v->has_fill_value ? v->fill_value : NULL, &list);
    for (unsigned i = 1; i < list.n; i++)
        one = one && is_nan(&v->dtype, list.element[0]) && is_nan(&v->dtype, list.element[i]);
    m->has_missing = v->has_fill_value || (one && list.n > 0);
    if (m->has_missing)
        memcpy(m->missing, list.element[0], sizeof(m->missing));
    return one;
}

/*
 * Readers mask missing_value, too.  If all variables have the same and the numbers stay, the
 * attribute is kept; otherwise the array's fill value stands for each variable's one missing
 * value.
 */
int cm_stack_check_missing(cm_stack *s, const cm_multi_var *out, cm_error *err)
{
    const cm_stack_member *odd = NULL;
    const cm_json *first = cm_json_member(s->member[0].var->attrs, "missing_value");
    bool stays = true;
    for (size_t i = 0; i < s->nmembers; i++) {
        cm_stack_member *m = &s->member[i];
        stays = stays && !m->unpacks && cm_dtype_equal(&m->var->dtype, &out->dtype) &&
                cm_json_equal(cm_json_member(m->var->attrs, "missing_value"), first);
        if (!find_missing(m) && odd == NULL)
            odd = m;
    }
    s->keeps_missing = stays;
    if (stays || odd == NULL)
        return CM_OK;
    return cm_fail(err, CM_EINVAL,
                   "`stack` %s: %s has several missing values (_FillValue, missing_value), and an "
                   "array of several variables has one",
                   s->text.text, odd->var->name);
}

static bool same_fill(const cm_stack_member *m, const cm_multi_var *out)
{
    return m->has_missing && !m->unpacks && cm_dtype_equal(&m->var->dtype, &out->dtype) &&
           memcmp(m->missing, out->fill_value, out->dtype.nbytes) == 0;
}

/* The variable whose missing value is the array's; NULL: nothing is missing in it. */
static const cm_stack_member *first_missing(const cm_stack *s, bool *unpacks)
{
    const cm_stack_member *from = NULL;
    *unpacks = false;
    for (size_t i = 0; i < s->nmembers; i++) {
        const cm_stack_member *m = &s->member[i];
        *unpacks = *unpacks || m->unpacks;
        if (from == NULL && (m->var->has_fill_value || (m->has_missing && !s->keeps_missing)))
            from = m;
    }
    return from;
}

/* The number that FROM has for a missing one, or NaN, as an element of the array. */
static bool take_fill(const cm_stack_member *from, bool unpacks, cm_multi_var *out)
{
    const cm_conversion c = {.src = from->dtype, .dst = out->dtype, .exact = true};
    uint64_t bad;
    return unpacks
               ? cm_element_from_double(&out->dtype, (double)__builtin_nanf(""), out->fill_value)
               : cm_conversion_run(&c, out->fill_value, from->missing, 1, &bad, NULL) == CM_OK;
}

/* Whether `fill_value` names one for the array; a text that is none its description refuses. */
static int asked_fill(const cm_job *job, const cm_stack *s, cm_multi_var *out, bool *is_asked,
                      cm_error *err)
{
    cm_varopts opts;
    int rc = cm_varopts_parse("`fill_value`", &job->options->fill_value, NULL, &opts, err);
    const char *text = rc == CM_OK ? cm_varopts_get(&opts, s->text.name, false, NULL) : NULL;
    uint8_t value[sizeof(out->fill_value)] = {0};
    *is_asked = text != NULL && cm_fill_parse(&out->dtype, text, value);
    if (*is_asked)
        memcpy(out->fill_value, value, sizeof(value));
    cm_varopts_release(&opts);
    return rc;
}

/*
 * The first variable's where the array's type has it; NaN for what is unpacked.  Where elements
 * have to be changed or looked at for it, `fill_value` may choose another.
 */
static int choose_fill_value(const cm_job *job, cm_stack *s, cm_multi_var *out, cm_error *err)
{
    bool unpacks, is_asked, same;
    const cm_stack_member *from = first_missing(s, &unpacks);
    out->has_fill_value = from != NULL;
    if (from == NULL)
        return CM_OK;
    same = take_fill(from, unpacks, out);
    const bool has = same;
    for (size_t i = 0; i < s->nmembers; i++)
        same = same && same_fill(&s->member[i], out);
    if (same)
        return CM_OK;
    int rc = asked_fill(job, s, out, &is_asked, err);
    if (rc != CM_OK || is_asked || has)
        return rc;
    return cm_fail(err, CM_EINVAL,
                   "`stack` %s: its type has nothing to stand for the missing value of %s; choose "
                   "it with `fill_value` %s:X",
                   s->text.text, from->var->name, s->text.name);
}

int cm_stack_choose_fill(const cm_job *job, cm_stack *s, cm_multi_var *out, cm_error *err)
{
    const cm_variable *v = s->member[0].var;
    int rc = choose_fill_value(job, s, out, err);
    if (rc != CM_OK)
        return rc;
    if (!out->has_fill_value) {
        out->has_fill = v->fill != NULL && cm_dtype_equal(&v->dtype, &out->dtype);
        if (out->has_fill)
            memcpy(out->fill, v->fill, out->dtype.nbytes);
        return CM_OK;
    }
    out->has_fill = true;
    memcpy(out->fill, out->fill_value, out->dtype.nbytes);
    for (size_t i = 0; i < s->nmembers; i++) {
        cm_stack_member *m = &s->member[i];
        if (same_fill(m, out))
            continue;
        m->how.replaces_fill = m->has_missing && (m->var->has_fill_value || !s->keeps_missing);
        m->how.checks_fill = !m->how.replaces_fill;
        memcpy(m->how.fill, m->missing, sizeof(m->how.fill));
    }
    return CM_OK;
}
