#include "format/overlay.h"

#include <stdlib.h>

#include "format/dataset_impl.h"

typedef struct overlay {
    cm_dataset base; /* first */
    cm_dataset *joined;
} overlay;

static overlay *of(const cm_dataset *ds)
{
    return (overlay *)(uintptr_t)ds;
}

/* The dataset that VAR comes from, and VAR's counterpart there. */
static cm_dataset *owner_of(cm_dataset *ds, const cm_variable *var, cm_variable **out)
{
    cm_dataset *below = ds->below, *joined = of(ds)->joined;
    if (var->index < below->nvars) {
        *out = &below->var[var->index];
        return below;
    }
    *out = &joined->var[var->index - below->nvars];
    return joined;
}

/* Copies the description of VAR from the dataset that has it. */
static void copy(cm_dataset *ds, cm_variable *var)
{
    cm_variable *from, was = *var;
    owner_of(ds, var, &from);
    *var = *from;
    var->index = was.index;
    var->wanted = was.wanted;
    var->is_made = was.is_made;
    var->is_stack = was.is_stack;
    var->is_taken = was.is_taken || from->is_taken;
    var->channel = was.channel;
    if (var->is_stack) {
        var->access = "variables laid side by side";
        var->stored_nbytes = was.stored_nbytes;
    }
}

/* ---- operations of a dataset ---- */

static int prepare(cm_dataset *ds, cm_variable *var, cm_error *err)
{
    cm_variable *there;
    cm_dataset *owner = owner_of(ds, var, &there);
    for (size_t i = 0; i < ds->below->nvars; i++)
        ds->below->var[i].wanted = ds->below->var[i].wanted || ds->var[i].wanted;
    int rc = cm_dataset_prepare(owner, there, err);
    if (rc == CM_OK)
        copy(ds, var);
    return rc;
}

static void unprepare(cm_dataset *ds, cm_variable *var)
{
    cm_variable *there;
    cm_dataset *owner = owner_of(ds, var, &there);
    cm_dataset_unprepare(owner, there);
    copy(ds, var);
}

static int read_box(cm_dataset *ds, cm_variable *var, const cm_box *box, void *dst, cm_error *err)
{
    cm_variable *there;
    cm_dataset *owner = owner_of(ds, var, &there);
    return cm_dataset_read(owner, there, box, dst, err);
}

static int read_strings(cm_dataset *ds, cm_variable *var, const cm_box *box, cm_strings *out,
                        cm_error *err)
{
    cm_variable *there;
    cm_dataset *owner = owner_of(ds, var, &there);
    return cm_dataset_read_strings(owner, there, box, out, err);
}

static void close_overlay(cm_dataset *ds)
{
    cm_dataset_close(of(ds)->joined);
    cm_dataset_release(ds);
    free(ds);
}

static const cm_dataset_ops ops = {
    .prepare = prepare,
    .unprepare = unprepare,
    .read = read_box,
    .read_strings = read_strings,
    .close = close_overlay,
};

/* ---- opening ---- */

static int describe(overlay *o, cm_error *err)
{
    cm_dataset *ds = &o->base, *below = ds->below;
    size_t nvars = below->nvars + o->joined->nvars;
    int rc = cm_dataset_init(ds, below->path, nvars, below->ngroups, err);
    if (rc != CM_OK)
        return rc;
    ds->kind = below->kind;
    ds->format_name = below->format_name;
    ds->nbytes = below->nbytes;
    ds->zarr_format = below->zarr_format;
    ds->consolidated = below->consolidated;
    for (; ds->nvars < nvars; ds->nvars++) {
        cm_variable *var = &ds->var[ds->nvars];
        var->index = ds->nvars;
        var->is_made = var->index >= below->nvars;
        copy(ds, var);
    }
    for (; ds->ngroups < below->ngroups; ds->ngroups++)
        ds->group[ds->ngroups] = below->group[ds->ngroups];
    return CM_OK;
}

int cm_overlay_open(cm_dataset *below, const cm_multi_spec *spec, const cm_dataset_options *options,
                    cm_dataset **out, cm_error *err)
{
    *out = NULL;
    overlay *o = cm_calloc(1, sizeof(*o), err);
    if (o == NULL)
        return CM_ENOMEM;
    o->base.ops = &ops;
    o->base.below = below;
    int rc = cm_multi_dataset_open(spec, options, &o->joined, err);
    if (rc == CM_OK)
        rc = describe(o, err);
    if (rc != CM_OK) {
        close_overlay(&o->base);
        return rc;
    }
    *out = &o->base;
    return CM_OK;
}
