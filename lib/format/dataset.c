#include <stdlib.h>
#include <string.h>

#include "format/dataset_impl.h"

int cm_dataset_init(cm_dataset *ds, const char *path, size_t nvars, size_t ngroups, cm_error *err)
{
    ds->path = cm_strdup(path, err);
    ds->var = cm_calloc(nvars + 1, sizeof(ds->var[0]), err);
    ds->group = cm_calloc(ngroups + 1, sizeof(ds->group[0]), err);
    return ds->path == NULL || ds->var == NULL || ds->group == NULL ? CM_ENOMEM : CM_OK;
}

void cm_dataset_release(cm_dataset *ds)
{
    free(ds->path);
    free(ds->var);
    free(ds->group);
}

void cm_dataset_close(cm_dataset *ds)
{
    if (ds != NULL)
        ds->ops->close(ds);
}

cm_variable *cm_dataset_find(const cm_dataset *ds, const char *name)
{
    for (size_t i = 0; i < ds->nvars; i++)
        if (strcmp(ds->var[i].name, name) == 0)
            return &ds->var[i];
    return NULL;
}

unsigned cm_variable_dim(const cm_variable *v, const char *name)
{
    unsigned j = 0;
    while (j < v->rank && (v->dim_name[j] == NULL || strcmp(v->dim_name[j], name) != 0))
        j++;
    return j;
}

int cm_dataset_prepare(cm_dataset *ds, cm_variable *var, cm_error *err)
{
    return ds->ops->prepare(ds, var, err);
}

void cm_dataset_unprepare(cm_dataset *ds, cm_variable *var)
{
    if (ds->ops->unprepare != NULL)
        ds->ops->unprepare(ds, var);
}

int cm_dataset_read(cm_dataset *ds, cm_variable *var, const cm_box *box, void *dst, cm_error *err)
{
    return ds->ops->read(ds, var, box, dst, err);
}

int cm_dataset_read_strings(cm_dataset *ds, cm_variable *var, const cm_box *box, cm_strings *out,
                            cm_error *err)
{
    return ds->ops->read_strings(ds, var, box, out, err);
}

cm_dataset *cm_dataset_bottom(const cm_dataset *ds)
{
    while (ds->below != NULL)
        ds = ds->below;
    return (cm_dataset *)(uintptr_t)ds;
}

cm_store *cm_dataset_store(const cm_dataset *ds)
{
    ds = cm_dataset_bottom(ds);
    return ds->ops->store == NULL ? NULL : ds->ops->store(ds);
}

size_t cm_dataset_nwarnings(const cm_dataset *ds)
{
    ds = cm_dataset_bottom(ds);
    return ds->ops->nwarnings == NULL ? 0 : ds->ops->nwarnings(ds);
}

const char *cm_dataset_warning_at(const cm_dataset *ds, size_t i)
{
    ds = cm_dataset_bottom(ds);
    return ds->ops->warning_at(ds, i);
}
