/* The variable in one of its files: its name, its dimensions there, and where a part lies. */
#include <string.h>

#include "format/multi/internal.h"

const char *cm_multi_name_in(const cm_multi_array *a, const cm_multi_part *part)
{
    return part->name != NULL ? part->name : a->var->name;
}

const char *cm_multi_path_of(const cm_multi_array *a, const cm_multi_part *part)
{
    return a->owner->spec->file[part->file].path;
}

void cm_multi_view_part(const cm_multi_array *a, const cm_multi_part *part, cm_multi_view *out)
{
    const cm_multi_var *v = a->var;
    const cm_multi_how *how = part->how;
    *out = (cm_multi_view){0};
    uint64_t length[CM_MAX_RANK];
    memcpy(length, v->shape, sizeof(length));
    for (unsigned j = 0; j < v->rank; j++)
        out->has[j] = how == NULL || !how->transposed || !how->repeats[j];
    for (unsigned i = 0; i < v->naxes; i++) {
        unsigned j = v->axis[i];
        out->origin[j] = part->origin[i];
        out->first[j] = part->first[i];
        length[j] = part->length[i];
        out->has[j] = how == NULL || !how->lacks_axis[i];
    }
    if (how != NULL && how->pads)
        length[v->rank - 1] = how->width;
    unsigned next = 0;
    for (unsigned j = 0; j < v->rank; j++)
        if (out->has[j])
            out->dim[j] = how != NULL && how->transposed ? how->order[j] : next++;
    for (unsigned j = 0; j < v->rank; j++)
        if (out->has[j]) {
            out->shape[out->dim[j]] = length[j];
            out->rank++;
        }
}

uint64_t cm_multi_length_in(const cm_multi_array *a, const cm_multi_part *part, unsigned j)
{
    for (unsigned i = 0; i < a->var->naxes; i++)
        if (a->var->axis[i] == j)
            return part->length[i];
    bool pads = part->how != NULL && part->how->pads && j + 1 == a->var->rank;
    return pads ? part->how->width : a->var->shape[j];
}

bool cm_multi_dim_in(const cm_multi_array *a, const cm_multi_part *part, unsigned j, unsigned *dim,
                     unsigned *rank)
{
    cm_multi_view in;
    cm_multi_view_part(a, part, &in);
    *dim = in.dim[j];
    *rank = in.rank;
    return in.has[j];
}

void cm_multi_box_in_file(const cm_multi_array *a, const cm_multi_view *in, const cm_box *box,
                          cm_box *out)
{
    *out = (cm_box){.rank = in->rank};
    for (unsigned j = 0; j < a->var->rank; j++) {
        if (!in->has[j])
            continue;
        out->start[in->dim[j]] = box->start[j] - in->origin[j] + in->first[j];
        out->shape[in->dim[j]] = box->shape[j];
    }
}

static const cm_dtype *dtype_in(const cm_multi_array *a, const cm_multi_part *part)
{
    return part->how != NULL ? &part->how->dtype : &a->var->dtype;
}

void cm_multi_part_box(const cm_multi_array *a, const cm_multi_part *part, cm_box *out)
{
    const cm_multi_var *v = a->var;
    *out = (cm_box){.rank = v->rank};
    memcpy(out->shape, v->shape, v->rank * sizeof(v->shape[0]));
    for (unsigned i = 0; i < v->naxes; i++) {
        out->start[v->axis[i]] = part->origin[i];
        out->shape[v->axis[i]] = part->count[i];
    }
}

int cm_multi_find_variable(const cm_multi_array *a, const cm_multi_part *part, cm_dataset *ds,
                           cm_variable **out, cm_error *err)
{
    const char *name = cm_multi_name_in(a, part);
    cm_multi_view in;
    cm_multi_view_part(a, part, &in);
    cm_variable *v = *out = cm_dataset_find(ds, name);
    if (v == NULL)
        return cm_fail(err, CM_EFORMAT, "%s: there is no variable %s any more", ds->path, name);
    if (v->rank != in.rank || memcmp(v->shape, in.shape, in.rank * sizeof(v->shape[0])) ||
        !cm_dtype_equal(&v->dtype, dtype_in(a, part)))
        return cm_fail(err, CM_EFORMAT,
                       "%s: variable %s: its type or shape is not what was surveyed, so it was "
                       "changed meanwhile; start again",
                       ds->path, name);
    /* Whoever opened an open dataset has prepared it too, and other threads read it. */
    bool prepared = a->owner->spec->file[part->file].open != NULL && v->array != NULL;
    return prepared ? CM_OK : cm_dataset_prepare(ds, v, err);
}
