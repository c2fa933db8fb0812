/* A NetCDF file as a dataset. */
#include <stdlib.h>
#include <string.h>

#include "format/dataset_impl.h"
#include "format/nc/locate.h"
#include "format/nc/preflight.h"

typedef struct nc_dataset {
    cm_dataset base;
    cm_nc_file *file;
    cm_dataset_options options;
} nc_dataset;

static nc_dataset *of(const cm_dataset *ds)
{
    return (nc_dataset *)ds;
}

static const char *access_name(cm_nc_access access)
{
    switch (access) {
    case CM_NC_CHUNK_INDEX:
        return "chunks read at their addresses";
    case CM_NC_CHUNK_LOCKED:
        return "chunks read through HDF5, decoded here";
    case CM_NC_ARITHMETIC:
        return "read at computed offsets";
    case CM_NC_LIBRARY:
        return "read through netCDF-C";
    }
    return "";
}

static bool is_read_by_libraries(const cm_nc_var *v)
{
    return v->access == CM_NC_LIBRARY || v->access == CM_NC_CHUNK_LOCKED;
}

/* What is known of V so far; preparing it tells more. */
static void describe(cm_nc_var *v, cm_variable *out)
{
    cm_array *a = &v->array;
    out->name = a->name;
    out->dtype = a->dtype;
    out->rank = a->rank;
    memcpy(out->shape, a->shape, sizeof(out->shape));
    out->dim_name = a->dim_name;
    out->attrs = a->attrs;
    out->unsupported = v->unsupported;
    out->is_char = v->is_char;
    out->is_coordinate = v->is_coordinate;
    memcpy(out->unlimited, v->unlimited, sizeof(out->unlimited));
    out->has_fill_value = v->has_fill_value;
    out->scale_nbytes = v->scale_nbytes;
    out->offset_nbytes = v->offset_nbytes;
    memcpy(out->fill_value, v->fill_value, sizeof(out->fill_value));
    out->array = a;
    out->fill = a->fill;
    out->fill_text = a->fill_text;
    out->access = access_name(v->access);
    out->access_reason = v->access_reason;
    out->located = v->access == CM_NC_ARITHMETIC || v->access == CM_NC_CHUNK_INDEX;
    out->has_source_chunks = v->has_source_chunks;
    memcpy(out->source_chunk, v->source_chunk, sizeof(out->source_chunk));
    out->stored_nbytes = v->stored_nbytes;
    out->codecs = cm_nc_var_codecs(v, &out->ncodecs);
}

static int prepare(cm_dataset *ds, cm_variable *var, cm_error *err)
{
    nc_dataset *d = of(ds);
    const cm_dataset_options *o = &d->options;
    cm_nc_var *v = cm_nc_var_at(d->file, var->index);
    int rc = cm_nc_var_prepare(d->file, v, err);
    if (rc == CM_OK && is_read_by_libraries(v) && !o->library && o->guard != CM_GUARD_NONE)
        rc = cm_nc_guard(d->file, o, err);
    if (rc != CM_OK)
        return rc;
    describe(v, var);
    if (o->library)
        var->cache_nbytes = cm_nc_var_cache_nbytes(d->file, v);
    return CM_OK;
}

static int read_box(cm_dataset *ds, cm_variable *var, const cm_box *box, void *dst, cm_error *err)
{
    cm_nc_file *file = of(ds)->file;
    return cm_nc_read_library(file, cm_nc_var_at(file, var->index), box, dst, err);
}

static int read_strings(cm_dataset *ds, cm_variable *var, const cm_box *box, cm_strings *out,
                        cm_error *err)
{
    cm_nc_file *file = of(ds)->file;
    return cm_nc_read_library_strings(file, cm_nc_var_at(file, var->index), box, out, err);
}

static int locate(cm_dataset *ds, cm_variable *var, cm_located *out, cm_error *err)
{
    return cm_nc_var_locate(cm_nc_var_at(of(ds)->file, var->index), out, err);
}

static size_t nwarnings(const cm_dataset *ds)
{
    return cm_nc_nwarnings(of(ds)->file);
}

static const char *warning_at(const cm_dataset *ds, size_t i)
{
    return cm_nc_warning_at(of(ds)->file, i);
}

static void close_file(cm_dataset *ds)
{
    cm_nc_close(of(ds)->file);
    cm_dataset_release(ds);
    free(ds);
}

static const cm_dataset_ops ops = {
    .prepare = prepare,
    .read = read_box,
    .read_strings = read_strings,
    .locate = locate,
    .nwarnings = nwarnings,
    .warning_at = warning_at,
    .close = close_file,
};

static int describe_all(nc_dataset *d, const char *path, cm_error *err)
{
    cm_dataset *ds = &d->base;
    size_t nvars = cm_nc_nvars(d->file), ngroups = cm_nc_ngroups(d->file);
    int rc = cm_dataset_init(ds, path, nvars, ngroups, err);
    if (rc != CM_OK)
        return rc;
    ds->kind = CM_DATASET_NETCDF;
    ds->format_name = cm_nc_format_name(d->file);
    ds->nbytes = cm_nc_file_nbytes(d->file);
    for (; ds->nvars < nvars; ds->nvars++) {
        ds->var[ds->nvars].index = ds->nvars;
        describe(cm_nc_var_at(d->file, ds->nvars), &ds->var[ds->nvars]);
    }
    for (; ds->ngroups < ngroups; ds->ngroups++) {
        const cm_nc_group *g = cm_nc_group_at(d->file, ds->ngroups);
        ds->group[ds->ngroups] = (cm_dataset_group){.path = g->path, .attrs = g->attrs};
    }
    return CM_OK;
}

static int open_file(const char *path, const cm_dataset_options *o, cm_nc_file **out, cm_error *err)
{
    const cm_nc_options how = {
        .library_only = o->library, .library_caches = o->library, .plain = o->plain, .io = o->io};
    const bool is_tried = o->guard == CM_GUARD_NEEDED || o->guard == CM_GUARD_NONE;
    if (o->guard == CM_GUARD_STAYS && !o->library)
        return cm_nc_open_tried(path, o, out, err);
    int rc = is_tried ? CM_OK : cm_nc_preflight(path, o->canceled, o->canceled_context, err);
    return rc == CM_OK ? cm_nc_open(path, &how, out, err) : rc;
}

int cm_nc_dataset_open(const char *path, const cm_dataset_options *options, cm_dataset **out,
                       cm_error *err)
{
    nc_dataset *d = cm_calloc(1, sizeof(*d), err);
    if (d == NULL)
        return CM_ENOMEM;
    d->base.ops = &ops;
    d->options = *options;
    int rc = open_file(path, options, &d->file, err);
    if (rc == CM_OK)
        rc = describe_all(d, path, err);
    if (rc != CM_OK) {
        close_file(&d->base);
        return rc;
    }
    *out = &d->base;
    return CM_OK;
}
