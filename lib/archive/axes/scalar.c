/* New dimensions whose steps are the values that a scalar variable has: one in each file. */
#include <stdio.h>
#include <string.h>

#include "archive/axes/made.h"
#include "archive/tables/described.h"

/* "NAME=@VARIABLE": where VARIABLE begins; NULL: another pattern. */
static const char *variable_in(const char *option)
{
    const char *equals = strchr(option, '=');
    return equals != NULL && equals[1] == '@' ? equals + 2 : NULL;
}

/* The variables of the first file say it; an attribute of the same name is what is meant then. */
static bool is_scalar(const cm_join *j, const char *name, bool *out, cm_error *err)
{
    const cm_skeleton *k = cm_join_skeleton(j, 0);
    const char *path;
    cm_digest digest;
    cm_json *attrs = NULL;
    *out = false;
    for (size_t i = 0; i < k->nvars; i++)
        *out |= strcmp(k->var[i]->name, name) == 0;
    if (!*out)
        return true;
    int rc = cm_surveyed_group(j->survey, j->file[0], 0, &path, &digest, err);
    if (rc == CM_OK)
        rc = cm_survey_json(j->survey, digest, &attrs, err);
    *out = rc == CM_OK && !cm_json_has(attrs, name);
    cm_json_free(attrs);
    return rc == CM_OK;
}

int cm_join_find_scalars(cm_join *j, cm_error *err)
{
    const cm_texts *options = &j->options->new_dim;
    if ((j->scalar = cm_calloc(options->n + 1, sizeof(j->scalar[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < options->n; i++) {
        const char *name = variable_in(options->text[i]);
        if (name != NULL && !is_scalar(j, name, &j->scalar[i], err))
            return CM_EFORMAT;
    }
    return CM_OK;
}

const char *cm_join_scalar_name(const cm_join *j, const char *name, char *buf, size_t size)
{
    const cm_texts *options = &j->options->new_dim;
    for (size_t i = 0; i < options->n; i++) {
        const char *text = options->text[i];
        if (!j->scalar[i] || strcmp(variable_in(text), name) != 0)
            continue;
        int n = snprintf(buf, size, "%.*s", (int)strcspn(text, "="), text);
        return n > 0 && (size_t)n < size ? buf : name;
    }
    return name;
}

bool cm_join_is_step(const cm_join *j, const char *name)
{
    const cm_texts *options = &j->options->new_dim;
    for (size_t i = 0; i < options->n; i++) {
        size_t n = strcspn(options->text[i], "=");
        if (j->scalar[i] && strlen(name) == n && strncmp(options->text[i], name, n) == 0)
            return true;
    }
    return false;
}

/* The variable must be one number in each file. */
static int check(const cm_join *j, uint32_t at, const char *name, cm_error *err)
{
    const cm_join_var *v = &j->var[at];
    cm_surveyed_var s;
    for (uint32_t i = 0; i < j->nfiles; i++) {
        const cm_described *d = cm_join_described(j, at, i);
        if (d == NULL)
            return cm_fail(err, CM_EINVAL, "%s: has no variable %s", j->file[i]->path, name);
        if (d->rank != 0 || !cm_dtype_is_number(&d->dtype) || d->is_char)
            return cm_fail(err, CM_EINVAL, "%s: %s: is not one number, and cannot be a step",
                           j->file[i]->path, name);
        if (!cm_join_record(j, at, i, &s) || !s.has_values)
            return cm_fail(err, CM_EFORMAT, "%s: %s: its value is not in the survey",
                           j->file[i]->path, v->name);
    }
    return CM_OK;
}

int cm_join_scalar_dim(cm_join *j, const char *option, const char *name, cm_error *err)
{
    uint32_t at = cm_join_var_named(j, name), dim;
    bool there;
    if (at == CM_JOIN_NONE)
        return cm_fail(err, CM_EINTERNAL, "%s: the variable is lost", option);
    int rc = check(j, at, variable_in(option), err);
    if (rc == CM_OK)
        rc = cm_join_new_dim_named(j, name, &there, &dim, err);
    if (rc != CM_OK)
        return rc;
    cm_join_dim *d = &j->dim[dim];
    d->one_each = true;
    for (size_t i = 0; i < j->nfiles; i++)
        d->length[i] = cm_file_length_make(1);
    j->var[at].wanted = true;
    for (uint32_t i = 0; i < j->nvars; i++)
        if (i == at || cm_join_gets_dim(j, i, dim, there))
            cm_join_give_dim(&j->var[i], dim);
    return CM_OK;
}
