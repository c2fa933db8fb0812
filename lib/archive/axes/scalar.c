/* New dimensions whose steps are the values that a scalar variable has: one in each file. */
#include "archive/axes/made.h"
#include "archive/tables/described.h"
#include "archive/tables/scalars.h"

/* The variable must be one number in each file. */
static int check(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                 const char *name, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    cm_surveyed_var s;
    for (uint32_t i = in->has_base; i < in->nfiles; i++) {
        const cm_described *d = cm_join_described(in, tables, at, i);
        if (d == NULL)
            return cm_fail(err, CM_EINVAL, "%s: has no variable %s", in->file[i]->path, name);
        if (d->rank != 0 || !cm_dtype_is_number(&d->dtype) || d->is_char)
            return cm_fail(err, CM_EINVAL, "%s: %s: is not one number, and cannot be a step",
                           in->file[i]->path, name);
        if (!cm_join_record(in, tables, at, i, &s) || !s.has_values)
            return cm_fail(err, CM_EFORMAT, "%s: %s: its value is not in the survey",
                           in->file[i]->path, v->name);
    }
    return CM_OK;
}

int cm_join_scalar_dim(const cm_join_input *in, cm_join_tables *tables, const char *option,
                       const char *name, cm_error *err)
{
    uint32_t at = cm_join_var_named(tables, name), dim;
    bool there;
    if (at == CM_JOIN_NONE)
        return cm_fail(err, CM_EINTERNAL, "%s: the variable is lost", option);
    int rc = check(in, tables, at, cm_join_scalar_in(option), err);
    if (rc == CM_OK && in->has_base)
        return cm_join_said_dim(in, tables, option, name, true, err);
    if (rc == CM_OK)
        rc = cm_join_new_dim_named(in, tables, name, &there, &dim, err);
    if (rc != CM_OK)
        return rc;
    cm_join_dim *d = &tables->dim[dim];
    d->one_each = true;
    for (size_t i = 0; i < in->nfiles; i++)
        d->length[i] = cm_file_length_make(1);
    tables->var[at].wanted = true;
    for (uint32_t i = 0; i < tables->nvars; i++)
        if (i == at || cm_join_gets_dim(in, tables, i, dim, there))
            cm_join_give_dim(&tables->var[i], dim);
    return CM_OK;
}
