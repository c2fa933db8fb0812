/* A NetCDF file as a dataset. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/dataset_impl.h"
#include "format/nc/dated.h"
#include "format/nc/locate.h"
#include "format/nc/preflight.h"
#include "format/nc/reader.h"

typedef struct nc_dataset {
    cm_dataset base;
    cm_nc_file *file;
    cm_dataset_options options;
    cm_nc_dated **dated; /* behind the variables of the file */
    size_t ndated;
} nc_dataset;

static nc_dataset *of(const cm_dataset *ds)
{
    return (nc_dataset *)ds;
}

/* NULL: variable I is in the file. */
static cm_nc_dated *dated_at(const nc_dataset *d, size_t i)
{
    const size_t n = cm_nc_nvars(d->file);
    return i < n ? NULL : d->dated[i - n];
}

static cm_nc_var *var_at(const nc_dataset *d, size_t i)
{
    cm_nc_dated *dated = dated_at(d, i);
    return dated != NULL ? &dated->var : cm_nc_var_at(d->file, i);
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

/* Describes V; preparing it adds the rest. */
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
    out->decoded_from = v->decoded_from;
    out->access = v->decoded_from != NULL ? "decoded from text" : access_name(v->access);
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
    cm_nc_var *v = var_at(d, var->index);
    if (v->decoded_from != NULL) /* held in memory */
        return CM_OK;
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

static int read_dated(const nc_dataset *d, const cm_nc_dated *dated, const cm_box *box, void *dst,
                      cm_error *err)
{
    const uint64_t width = dated->texts->array.shape[1];
    const cm_box rows = {.rank = 2, .start = {box->start[0]}, .shape = {box->shape[0], width}};
    cm_buf text = {0};
    int rc = cm_buf_resize(&text, (size_t)cm_box_nelem(&rows), err);
    if (rc == CM_OK && cm_box_nelem(&rows) > 0)
        rc = cm_nc_read_library(d->file, dated->texts, &rows, text.data, err);
    if (rc == CM_OK)
        rc = cm_nc_dated_expect(dated, box, (const char *)text.data, dst, err);
    cm_buf_release(&text);
    return rc;
}

static int read_box(cm_dataset *ds, cm_variable *var, const cm_box *box, void *dst, cm_error *err)
{
    const nc_dataset *d = of(ds);
    const cm_nc_dated *dated = dated_at(d, var->index);
    if (dated != NULL)
        return read_dated(d, dated, box, dst, err);
    return cm_nc_read_library(d->file, cm_nc_var_at(d->file, var->index), box, dst, err);
}

static int read_strings(cm_dataset *ds, cm_variable *var, const cm_box *box, cm_strings *out,
                        cm_error *err)
{
    cm_nc_file *file = of(ds)->file;
    return cm_nc_read_library_strings(file, cm_nc_var_at(file, var->index), box, out, err);
}

static int locate(cm_dataset *ds, cm_variable *var, cm_located *out, cm_error *err)
{
    return cm_nc_var_locate(var_at(of(ds), var->index), out, err);
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
    nc_dataset *d = of(ds);
    for (size_t i = 0; i < d->ndated; i++)
        cm_nc_dated_free(d->dated[i]);
    free(d->dated);
    cm_nc_close(d->file);
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

static size_t count_dates(cm_nc_file *file)
{
    size_t n = 0;
    for (size_t i = 0; i < cm_nc_nvars(file); i++)
        n += cm_nc_dated_is(file, cm_nc_var_at(file, i));
    return n;
}

/*
 * Adds the coordinate decoded from the texts of VAR.  Texts that cannot be read give none: the
 * conversion reports the error.
 */
static int add_dated(nc_dataset *d, cm_variable *var, cm_codec_ctx *ctx, cm_error *err)
{
    cm_nc_dated *dated = NULL;
    cm_buf text = {0};
    cm_box box = {.rank = var->rank};
    memcpy(box.shape, var->shape, sizeof(box.shape));
    int rc = cm_buf_resize(&text, (size_t)cm_box_nelem(&box), err);
    bool there =
        rc == CM_OK && prepare(&d->base, var, NULL) == CM_OK &&
        (cm_box_nelem(&box) == 0 || cm_array_read(var->array, ctx, &box, text.data, NULL) == CM_OK);
    if (there)
        rc = cm_nc_dated_create(cm_nc_var_at(d->file, var->index), (const char *)text.data, &dated,
                                err);
    cm_buf_release(&text);
    if (rc != CM_OK || dated == NULL)
        return rc;
    cm_variable *out = &d->base.var[d->base.nvars];
    d->dated[d->ndated++] = dated;
    out->index = d->base.nvars++;
    describe(&dated->var, out);
    return CM_OK;
}

static int add_all_dated(nc_dataset *d, size_t n, cm_error *err)
{
    const size_t nvars = d->base.nvars;
    cm_codec_ctx *ctx = NULL;
    int rc = CM_OK;
    if (n == 0)
        return CM_OK;
    if ((d->dated = cm_calloc(n, sizeof(d->dated[0]), err)) == NULL ||
        (ctx = cm_codec_ctx_create(err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < nvars; i++)
        if (cm_nc_dated_is(d->file, cm_nc_var_at(d->file, i)))
            rc = add_dated(d, &d->base.var[i], ctx, err);
    cm_codec_ctx_free(ctx);
    return rc;
}

static int describe_all(nc_dataset *d, const char *path, cm_error *err)
{
    cm_dataset *ds = &d->base;
    size_t nvars = cm_nc_nvars(d->file), ngroups = cm_nc_ngroups(d->file);
    const size_t ndated = count_dates(d->file);
    int rc = cm_dataset_init(ds, path, nvars + ndated, ngroups, err);
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
    return add_all_dated(d, ndated, err);
}

static int open_file(const char *path, const cm_dataset_options *o, cm_nc_file **out, cm_error *err)
{
    const cm_nc_options how = {.library_only = o->library,
                               .library_caches = o->library,
                               .plain = o->plain,
                               .recognises = o->recognises,
                               .io = o->io};
    const bool is_tried = o->guard == CM_GUARD_NEEDED || o->guard == CM_GUARD_NONE;
    if (o->guard == CM_GUARD_STAYS && !o->library)
        return cm_nc_open_tried(path, o, out, err);
    int rc = is_tried ? CM_OK : cm_nc_preflight(path, o, err);
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
