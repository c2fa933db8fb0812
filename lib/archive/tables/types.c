/* One type for a variable of all files. */
#include <stdio.h>
#include <string.h>

#include "archive/tables/described.h"
#include "model/widen.h"

/* The largest type of T's kind; converting to a smaller one is the conversion's part. */
static cm_dtype largest(const cm_dtype *t)
{
    return cm_dtype_make(t->kind, 8);
}

bool cm_join_asked_type(cm_join_tables *tables, const cm_join_var *v, cm_dtype *out)
{
    const char *text = cm_varopts_get(&tables->dtype, v->name, v->rank >= 2, NULL);
    return text != NULL && cm_dtype_parse(text, out, NULL) == CM_OK &&
           (out->kind == CM_KIND_INT || out->kind == CM_KIND_UINT || out->kind == CM_KIND_FLOAT);
}

/* Times, and their bounds, are counted anew in a type that is chosen for all of them. */
static cm_join_var *counted_with(const cm_join_tables *tables, cm_join_var *v,
                                 const cm_described *d)
{
    if (!cm_dtype_is_number(&v->like->dtype) || !cm_dtype_is_number(&d->dtype))
        return NULL;
    return cm_join_counts_time(v->like) && cm_join_counts_time(d) ? v
                                                                  : cm_join_bounded_by(tables, v);
}

/* Stored integers are read with another sign: a wider type would not read them so. */
static bool has_other_sign(const cm_join_input *in, const cm_join_var *v, const cm_described *d)
{
    return !(in->options->unpack && cm_join_packs_otherwise(v->like, d)) &&
           (cm_join_has_other_sign(v->like) || cm_join_has_other_sign(d));
}

static void take_type(const cm_join_input *in, cm_join_tables *tables, cm_join_var *v,
                      const cm_described *d)
{
    cm_dtype wide;
    if (!cm_dtype_equal(&v->like->dtype, &d->dtype) && has_other_sign(in, v, d))
        return;
    bool widens = cm_widen(&v->dtype, &d->dtype, &wide);
    if (widens)
        v->dtype = wide;
    /* A store keeps its types. */
    if (widens && (!in->has_base || cm_dtype_equal(&v->like->dtype, &d->dtype)))
        return;
    cm_join_var *time = counted_with(tables, v, d);
    if (time != NULL) {
        time->kinds |= UINT32_C(1) << CM_FINDING_TYPE;
    } else if (!in->has_base && cm_dtype_is_number(&v->dtype) && cm_dtype_is_number(&d->dtype) &&
               cm_join_asked_type(tables, v, &wide)) {
        v->dtype = largest(&wide);
        v->exact = true;
    }
}

void cm_join_widen_types(const cm_join_input *in, cm_join_tables *tables, uint32_t at)
{
    cm_join_var *v = &tables->var[at];
    const cm_described *last = v->like;
    for (size_t i = 0; i < v->nfiles && !v->exact; i++) {
        const cm_described *d = cm_join_described(in, tables, at, v->file[i]);
        if (d != last)
            take_type(in, tables, v, d);
        last = d;
    }
}

/*
 * The type to propose: most likely to hold all values, and refused by the conversion if it does
 * not.
 */
static int propose(cm_finding *f, const cm_join_var *v, const cm_described *d, cm_error *err)
{
    bool real = v->dtype.kind == CM_KIND_FLOAT || d->dtype.kind == CM_KIND_FLOAT;
    f->by = CM_DECIDER_DTYPE;
    f->value = cm_varopt_make(v->name, real ? "float64" : "int64", err);
    return f->value == NULL ? CM_ENOMEM : CM_OK;
}

/* V's type holds every value of D's. */
static bool is_held(const cm_join_input *in, const cm_join_var *v, const cm_described *d)
{
    cm_dtype wide;
    return !has_other_sign(in, v, d) && v->like->is_char == d->is_char &&
           cm_widen(&v->like->dtype, &d->dtype, &wide) && cm_widen(&v->dtype, &d->dtype, &wide) &&
           !v->exact && (!in->has_base || cm_dtype_equal(&v->dtype, &v->like->dtype));
}

bool cm_join_type_is_settled(const cm_join_input *in, const cm_join_tables *tables, cm_join_var *v,
                             const cm_described *d)
{
    return v->exact || is_held(in, v, d) || counted_with(tables, v, d) != NULL;
}

cm_finding *cm_join_find_type(const cm_join_input *in, const cm_join_tables *tables,
                              cm_join_findings *findings, cm_join_var *v, const cm_described *d,
                              uint32_t file, cm_error *err)
{
    char a[32], b[32], c[32];
    const char *first = in->file[v->first]->path;
    bool number = cm_dtype_is_number(&v->dtype) && cm_dtype_is_number(&d->dtype);
    cm_dtype_name(&d->dtype, a, sizeof(a));
    cm_dtype_name(&v->like->dtype, b, sizeof(b));
    cm_dtype_name(&v->dtype, c, sizeof(c));
    if (v->exact)
        return cm_join_find(findings, CM_FINDING_TYPE, CM_WEIGHT_DECISION, true, v->name, file, err,
                            "its type is %s, and %s in %s; they are joined as %s, and a number "
                            "that it does not hold exactly stops the run",
                            a, b, first, c);
    if (is_held(in, v, d))
        return cm_join_find(findings, CM_FINDING_TYPE, CM_WEIGHT_NOTE, false, v->name, file, err,
                            "its type is %s, and %s in %s; %s holds both", a, b, first, c);
    if (counted_with(tables, v, d) != NULL)
        return cm_join_find(findings, CM_FINDING_TYPE, CM_WEIGHT_NOTE, false, v->name, file, err,
                            in->has_base ? "its type is %s; times are stored as %s, which %s has"
                                         : "its type is %s, and %s in %s; times are stored in a "
                                           "type that holds all of them",
                            a, b, in->has_base ? "the store" : first);
    cm_finding *f = cm_join_find(findings, CM_FINDING_TYPE, CM_WEIGHT_DECISION, false, v->name,
                                 file, err, "its type is %s, and %s in %s; %s", a, b, first,
                                 in->has_base ? "a store keeps its types"
                                              : "no type holds every value of both");
    if (f != NULL && number && !in->has_base && !has_other_sign(in, v, d) &&
        propose(f, v, d, err) != CM_OK)
        return NULL;
    return f;
}
