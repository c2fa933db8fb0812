/* Presents many files as one dataset. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "format/multi/internal.h"

static cm_multi_dataset *of(const cm_dataset *ds)
{
    return (cm_multi_dataset *)(uintptr_t)ds;
}

/* Describes A; preparing it adds the rest. */
static void describe(cm_multi_array *a, cm_variable *out)
{
    const cm_multi_var *v = a->var;
    out->name = v->name;
    out->dtype = v->dtype;
    out->rank = v->rank;
    memcpy(out->shape, v->shape, sizeof(out->shape));
    out->dim_name = a->base.dim_name;
    out->attrs = v->attrs;
    out->unsupported = v->unsupported;
    out->decoded_from = v->decoded_from;
    out->is_char = v->is_char;
    out->is_coordinate = v->is_coordinate;
    out->scale_nbytes = v->scale_nbytes;
    out->offset_nbytes = v->offset_nbytes;
    memcpy(out->unlimited, v->unlimited, sizeof(out->unlimited));
    out->has_fill_value = v->has_fill_value;
    memcpy(out->fill_value, v->fill_value, sizeof(out->fill_value));
    out->array = &a->base;
    out->fill = a->base.fill;
    out->fill_text = a->base.fill_text;
    out->access = a->access;
    out->located = a->prepared && a->all_located;
    out->has_source_chunks = a->has_source_chunks;
    memcpy(out->source_chunk, a->source_chunk, sizeof(out->source_chunk));
    out->stored_nbytes = a->stored_nbytes;
    out->codecs = NULL;
    out->ncodecs = 0;
    for (unsigned i = 0; a->base.chunked && i < a->nforms && out->codecs == NULL; i++) {
        if (a->form[i].chain != a->base.chain)
            continue;
        out->codecs = a->form[i].form->codecs;
        out->ncodecs = a->form[i].form->ncodecs;
    }
}

static int prepare(cm_dataset *ds, cm_variable *var, cm_error *err)
{
    cm_multi_array *a = &of(ds)->array[var->index];
    int rc = cm_multi_array_prepare(a, err);
    if (rc == CM_OK)
        describe(a, var);
    return rc;
}

static int read_box(cm_dataset *ds, cm_variable *var, const cm_box *box, void *dst, cm_error *err)
{
    return cm_multi_read_box(&of(ds)->array[var->index], box, true, dst, err);
}

static int read_strings(cm_dataset *ds, cm_variable *var, const cm_box *box, cm_strings *out,
                        cm_error *err)
{
    return cm_multi_read_strings(&of(ds)->array[var->index], box, true, out, err);
}

static size_t nwarnings(const cm_dataset *ds)
{
    return of(ds)->spec->nwarnings;
}

static const char *warning_at(const cm_dataset *ds, size_t i)
{
    return of(ds)->spec->warning[i];
}

static void close_all(cm_dataset *ds)
{
    cm_multi_dataset *d = of(ds);
    for (size_t i = 0; d->array != NULL && i < d->spec->nvars; i++)
        cm_multi_array_release(&d->array[i]);
    free(d->array);
    cm_multi_scratch_free(d->scratch);
    cm_multi_files_free(d->files);
    cm_paged_free(d->own_paged);
    pthread_mutex_destroy(&d->lock);
    cm_dataset_release(ds);
    free(d);
}

static const cm_dataset_ops ops = {
    .prepare = prepare,
    .read = read_box,
    .read_strings = read_strings,
    .nwarnings = nwarnings,
    .warning_at = warning_at,
    .close = close_all,
};

/* ---- opening ---- */

static int check_part(const cm_multi_spec *spec, const cm_multi_var *v, const cm_multi_part *part,
                      cm_error *err)
{
    bool good = part->file < spec->nfiles;
    for (unsigned i = 0; i < v->naxes; i++)
        good = good && part->count[i] > 0 && part->origin[i] <= v->shape[v->axis[i]] &&
               part->count[i] <= v->shape[v->axis[i]] - part->origin[i] &&
               part->first[i] <= part->length[i] &&
               part->count[i] <= part->length[i] - part->first[i];
    if (part->how != NULL && part->how->pads)
        good = good && v->rank > 0 && v->is_char && part->how->width <= v->shape[v->rank - 1];
    if (good)
        return CM_OK;
    return cm_fail(err, CM_EINVAL, "variable %s: a part of it lies outside of it", v->name);
}

static int make_array(cm_multi_dataset *d, size_t i, cm_error *err)
{
    cm_multi_array *a = &d->array[i];
    const cm_multi_var *v = &d->spec->var[i];
    cm_array *base = &a->base;
    a->owner = d;
    a->var = v;
    a->access = "";
    if (v->rank > CM_MAX_RANK || v->naxes > CM_MULTI_MAX_AXES ||
        (v->has_fill && v->dtype.nbytes > sizeof(v->fill)))
        return cm_fail(err, CM_EINVAL, "variable %s: its rank or its type is out of range",
                       v->name);
    for (unsigned k = 0; k < v->naxes; k++)
        if (v->axis[k] >= v->rank || (k > 0 && v->axis[k] == v->axis[0]))
            return cm_fail(err, CM_EINVAL, "variable %s: it has no such dimensions", v->name);
    if (v->naxes == 0 && v->values == NULL && v->texts == NULL && v->nparts != 1 &&
        v->unsupported == NULL)
        return cm_fail(err, CM_EINVAL, "variable %s: it is not joined, and not in one file",
                       v->name);
    for (size_t p = 0; p < v->nparts; p++)
        if (check_part(d->spec, v, cm_multi_part_at(d->spec, v, p), err) != CM_OK)
            return CM_EINVAL;
    base->name = (char *)(uintptr_t)v->name;
    base->dtype = v->dtype;
    base->rank = v->rank;
    memcpy(base->shape, v->shape, sizeof(base->shape));
    for (unsigned j = 0; j < v->rank; j++)
        base->dim_name[j] = (char *)(uintptr_t)v->dim_name[j];
    base->attrs = (cm_json *)(uintptr_t)v->attrs;
    if (v->has_fill && v->dtype.nbytes > 0) {
        if ((base->fill = cm_calloc(1, v->dtype.nbytes, err)) == NULL)
            return CM_ENOMEM;
        memcpy(base->fill, v->fill, v->dtype.nbytes);
    }
    if (v->fill_text != NULL && (base->fill_text = cm_strdup(v->fill_text, err)) == NULL)
        return CM_ENOMEM;
    cm_multi_use_boxes(a);
    return CM_OK;
}

static int describe_all(cm_multi_dataset *d, cm_error *err)
{
    cm_dataset *ds = &d->base;
    const cm_multi_spec *spec = d->spec;
    int rc = cm_dataset_init(ds, spec->name, spec->nvars, spec->ngroups, err);
    if (rc == CM_OK && (d->array = cm_calloc(spec->nvars + 1, sizeof(d->array[0]), err)) == NULL)
        rc = CM_ENOMEM;
    ds->kind = CM_DATASET_NETCDF;
    ds->format_name = spec->format_name != NULL ? spec->format_name : "NetCDF";
    for (size_t i = 0; i < spec->nfiles; i++)
        ds->nbytes += cm_multi_file_at(spec, i)->nbytes;
    for (; rc == CM_OK && ds->nvars < spec->nvars; ds->nvars++) {
        cm_variable *var = &ds->var[ds->nvars];
        var->index = ds->nvars;
        rc = make_array(d, ds->nvars, err);
        if (rc == CM_OK)
            describe(&d->array[ds->nvars], var);
    }
    for (; rc == CM_OK && ds->ngroups < spec->ngroups; ds->ngroups++) {
        const cm_multi_group *g = &spec->group[ds->ngroups];
        ds->group[ds->ngroups] =
            (cm_dataset_group){.path = g->path, .attrs = (cm_json *)(uintptr_t)g->attrs};
    }
    return rc;
}

int cm_multi_dataset_open(const cm_multi_spec *spec, const cm_dataset_options *options,
                          cm_dataset **out, cm_error *err)
{
    *out = NULL;
    cm_multi_dataset *d = cm_calloc(1, sizeof(*d), err);
    if (d == NULL)
        return CM_ENOMEM;
    d->base.ops = &ops;
    d->spec = spec;
    if (options != NULL)
        d->options = *options;
    d->options.guard = CM_GUARD_NONE; /* the survey has tried the files already */
    pthread_mutex_init(&d->lock, NULL);
    int rc = cm_multi_files_create(spec->file, spec->nfiles, &d->options, &d->files, err);
    d->paged = spec->paged;
    if (rc == CM_OK && d->paged == NULL)
        rc = (d->paged = d->own_paged = cm_paged_create(NULL, err)) == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = describe_all(d, err);
    if (rc != CM_OK) {
        close_all(&d->base);
        return rc;
    }
    *out = &d->base;
    return CM_OK;
}

const cm_multi_spec *cm_multi_spec_of(const cm_dataset *ds)
{
    ds = cm_dataset_bottom(ds);
    return ds->ops == &ops ? of(ds)->spec : NULL;
}

/* Parts of N so long that MOST holds a third more; 1 where it holds all. */
static uint64_t stretches_of(uint64_t n, uint64_t most)
{
    const uint64_t each = most - most / 4;
    return n <= most ? 1 : cm_div_ceil(n, each > 0 ? each : 1);
}

uint64_t cm_multi_stretches(const cm_dataset *ds)
{
    const cm_multi_spec *spec = cm_multi_spec_of(ds);
    uint64_t copied = 0, room = 0;
    if (spec == NULL)
        return 1;
    for (size_t i = 0; i < spec->nfiles; i++) {
        const cm_multi_file *f = cm_multi_file_at(spec, i);
        if (f->copy == NULL)
            continue;
        room = copied == 0 ? cm_copy_room(f->copy) : room;
        copied += f->nbytes;
    }
    const cm_multi_dataset *d = of(cm_dataset_bottom(ds));
    const uint64_t open = stretches_of(spec->nfiles, cm_multi_files_most(d->files));
    const uint64_t kept = cm_min_u64(stretches_of(copied, room), spec->nfiles);
    return cm_max_u64(open, kept);
}

int cm_multi_unchanged(cm_dataset *ds, cm_error *err)
{
    const cm_multi_spec *spec = of(cm_dataset_bottom(ds))->spec;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < spec->nfiles; i++)
        rc = cm_multi_file_check(cm_multi_file_at(spec, i), err);
    return rc;
}

int cm_multi_file_open(cm_dataset *joined, uint32_t i, cm_dataset **out, cm_error *err)
{
    return cm_multi_files_open(of(cm_dataset_bottom(joined))->files, i, out, err);
}

void cm_multi_file_close(cm_dataset *joined, uint32_t i)
{
    cm_multi_files_close(of(cm_dataset_bottom(joined))->files, i);
}
