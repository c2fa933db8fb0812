#include "archive/tables/scalars.h"

#include <stdio.h>
#include <string.h>

const char *cm_join_scalar_in(const char *option)
{
    const char *equals = strchr(option, '=');
    return equals != NULL && equals[1] == '@' ? equals + 2 : NULL;
}

/*
 * Decided by the variables of the first file, and not of a store; an attribute of the same name
 * comes first.
 */
static bool is_scalar(const cm_join_input *in, const char *name, bool *out, cm_error *err)
{
    const uint32_t first = in->has_base && in->nfiles > 1;
    const cm_skeleton *k = cm_join_skeleton(in, first);
    const char *path;
    cm_digest digest;
    cm_json *attrs = NULL;
    *out = false;
    for (size_t i = 0; i < k->nvars; i++)
        *out |= strcmp(k->var[i]->name, name) == 0;
    if (!*out)
        return true;
    int rc = cm_surveyed_group(in->survey, in->file[first], 0, &path, &digest, err);
    if (rc == CM_OK)
        rc = cm_survey_json(in->survey, digest, &attrs, err);
    *out = rc == CM_OK && !cm_json_has(attrs, name);
    cm_json_free(attrs);
    return rc == CM_OK;
}

int cm_join_find_scalars(const cm_join_input *in, cm_join_tables *tables, cm_error *err)
{
    const cm_texts *options = &in->options->new_dim;
    if ((tables->scalar = cm_calloc(options->n + 1, sizeof(tables->scalar[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < options->n; i++) {
        const char *name = cm_join_scalar_in(options->text[i]);
        if (name != NULL && !is_scalar(in, name, &tables->scalar[i], err))
            return CM_EFORMAT;
    }
    return CM_OK;
}

const char *cm_join_scalar_name(const cm_join_input *in, const cm_join_tables *tables,
                                const char *name, char *buf, size_t size)
{
    const cm_texts *options = &in->options->new_dim;
    for (size_t i = 0; i < options->n; i++) {
        const char *text = options->text[i];
        if (!tables->scalar[i] || strcmp(cm_join_scalar_in(text), name) != 0)
            continue;
        int n = snprintf(buf, size, "%.*s", (int)strcspn(text, "="), text);
        return n > 0 && (size_t)n < size ? buf : name;
    }
    return name;
}

bool cm_join_is_step(const cm_join_input *in, const cm_join_tables *tables, const char *name)
{
    const cm_texts *options = &in->options->new_dim;
    for (size_t i = 0; i < options->n; i++) {
        size_t n = strcspn(options->text[i], "=");
        if (tables->scalar[i] && strlen(name) == n && strncmp(options->text[i], name, n) == 0)
            return true;
    }
    return false;
}
