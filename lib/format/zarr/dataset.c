/* A Zarr hierarchy as a dataset. */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "codec/shard.h"
#include "format/dataset_impl.h"
#include "format/icechunk/read_store.h"
#include "format/missing.h"
#include "format/zarr/dataset.h"
#include "store/net/url.h"
#include "store/open.h"

enum {
    CACHED_SHARDS = 8 /* minimum: one for each worker, and those that a sweep returns to */
};
#define MIN_CACHE ((size_t)256 << 10)
#define MAX_CACHE ((size_t)16 << 20)

typedef struct zarr_dataset {
    cm_dataset base;
    cm_store *store;
    bool is_borrowed; /* the store is the caller's */
    cm_zarr_tree tree;
    cm_zarr_conflicts conflicts;
    size_t index_cache_nbytes;
    const cm_zarr_node **node; /* of each variable */
    cm_json **attrs;           /* of each variable, if they differ from the document's */
} zarr_dataset;

static zarr_dataset *of(const cm_dataset *ds)
{
    return (zarr_dataset *)ds;
}

/* Memory for the indices of a few shards; 0 without shards. */
static size_t cache_of(const cm_zarr_meta *m)
{
    const cm_shard_spec *shard = cm_zarr_sharding(m);
    uint64_t nbytes = CACHED_SHARDS * sizeof(cm_shard_entry);
    if (shard == NULL)
        return 0;
    for (unsigned j = 0; j < m->rank && j < shard->rank; j++)
        if (shard->chunk[j] == 0 || !cm_mul_u64(nbytes, m->chunk[j] / shard->chunk[j], &nbytes))
            return MIN_CACHE;
    return nbytes < MIN_CACHE ? MIN_CACHE : nbytes > MAX_CACHE ? MAX_CACHE : (size_t)nbytes;
}

/* ---- missing values ---- */

bool cm_zarr_missing(const cm_zarr_meta *m, uint8_t *out)
{
    if (!cm_dtype_is_number(&m->dtype))
        return false;
    if (m->zarr_format != 2 || !m->has_fill || m->fill == NULL)
        return cm_missing_fill(m->attrs, &m->dtype, out);
    memcpy(out, m->fill, m->dtype.nbytes);
    return true;
}

/* ---- the model ---- */

static bool is_coordinate(const cm_zarr_node *node)
{
    const char *dim = node->meta.dim_name[0];
    return node->meta.rank == 1 && dim != NULL && strcmp(cm_path_last(node->path), dim) == 0;
}

static int set_attributes(zarr_dataset *d, cm_variable *out, cm_error *err)
{
    out->attrs = out->words->attrs;
    if (!out->has_fill_value || !cm_json_has(out->attrs, "_FillValue"))
        return CM_OK;
    cm_json *attrs = cm_json_copy(out->attrs);
    if (attrs == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    cm_json_remove(attrs, "_FillValue");
    out->attrs = d->attrs[out->index] = attrs;
    return CM_OK;
}

static int describe(zarr_dataset *d, const cm_zarr_node *node, cm_variable *out, cm_error *err)
{
    const cm_zarr_meta *m = &node->meta;
    const cm_shard_spec *shard = cm_zarr_sharding(m);
    out->name = node->path;
    out->dtype = m->dtype;
    out->rank = m->rank;
    memcpy(out->shape, m->shape, sizeof(out->shape));
    out->dim_name = m->dim_name;
    out->words = m;
    out->unsupported = node->unsupported != NULL ? node->unsupported
                       : m->verbatim             ? "it is not understood"
                                                 : NULL;
    out->is_char = m->dtype.kind == CM_KIND_BYTES && m->dtype.nbytes == 1;
    out->is_coordinate = is_coordinate(node);
    out->fill = m->has_fill ? m->fill : NULL;
    out->fill_text = m->has_fill ? m->fill_text : NULL;
    out->access = "chunks read from the store";
    out->has_source_chunks = true;
    memcpy(out->source_chunk, shard != NULL ? shard->chunk : m->chunk, sizeof(out->source_chunk));
    out->is_sharded = shard != NULL;
    out->is_cut = shard == NULL && cm_zarr_meta_is_cut(m);
    if (shard != NULL)
        memcpy(out->source_shard, m->chunk, sizeof(out->source_shard));
    out->codecs = shard != NULL ? shard->codecs : m->codecs;
    out->ncodecs = shard != NULL ? shard->ncodecs : m->ncodecs;
    out->has_fill_value = cm_zarr_missing(m, out->fill_value);
    return set_attributes(d, out, err);
}

/* ---- operations of a dataset ---- */

static int prepare(cm_dataset *ds, cm_variable *var, cm_error *err)
{
    zarr_dataset *d = of(ds);
    size_t cache = d->index_cache_nbytes > 0 ? d->index_cache_nbytes : cache_of(var->words);
    if (var->array != NULL)
        return CM_OK;
    var->cache_nbytes = cache;
    return cm_zarr_array_open(&d->tree, d->node[var->index], cache, &var->array, err);
}

static void unprepare(cm_dataset *ds, cm_variable *var)
{
    (void)ds;
    cm_array_free(var->array);
    var->array = NULL;
}

static int read_box(cm_dataset *ds, cm_variable *var, const cm_box *box, void *dst, cm_error *err)
{
    (void)ds;
    cm_codec_ctx *ctx = cm_codec_ctx_create(err);
    if (ctx == NULL)
        return CM_ENOMEM;
    int rc = cm_array_read(var->array, ctx, box, dst, err);
    cm_codec_ctx_free(ctx);
    return rc;
}

static int read_strings(cm_dataset *ds, cm_variable *var, const cm_box *box, cm_strings *out,
                        cm_error *err)
{
    (void)ds;
    return cm_array_read_strings(var->array, box, out, err);
}

static cm_store *store_of(const cm_dataset *ds)
{
    return of(ds)->store;
}

static void close_store(cm_dataset *ds)
{
    zarr_dataset *d = of(ds);
    for (size_t i = 0; i < ds->nvars; i++) {
        cm_array_free(ds->var[i].array);
        cm_json_free(d->attrs[i]);
    }
    free(d->node);
    free(d->attrs);
    cm_zarr_tree_release(&d->tree);
    cm_zarr_conflicts_release(&d->conflicts);
    if (!d->is_borrowed)
        cm_store_free(d->store);
    cm_dataset_release(ds);
    free(ds);
}

static const cm_dataset_ops ops = {
    .prepare = prepare,
    .unprepare = unprepare,
    .read = read_box,
    .read_strings = read_strings,
    .store = store_of,
    .close = close_store,
};

static int describe_all(zarr_dataset *d, const char *path, cm_error *err)
{
    cm_dataset *ds = &d->base;
    const cm_zarr_tree *tree = &d->tree;
    d->node = cm_calloc(tree->nnodes + 1, sizeof(d->node[0]), err);
    d->attrs = cm_calloc(tree->nnodes + 1, sizeof(d->attrs[0]), err);
    if (d->node == NULL || d->attrs == NULL)
        return CM_ENOMEM;
    int rc = cm_dataset_init(ds, path, tree->nnodes, tree->nnodes, err);
    ds->kind = CM_DATASET_ZARR;
    ds->zarr_format = tree->zarr_format;
    ds->format_name = tree->zarr_format == 2 ? "Zarr 2" : "Zarr 3";
    ds->consolidated = tree->consolidated;
    for (size_t i = 0; rc == CM_OK && i < tree->nnodes; i++) {
        const cm_zarr_node *node = &tree->node[i];
        if (node->meta.is_group) {
            ds->group[ds->ngroups++] =
                (cm_dataset_group){node->path, node->meta.attrs, &node->meta};
            continue;
        }
        cm_variable *var = &ds->var[ds->nvars];
        var->index = ds->nvars;
        d->node[ds->nvars++] = node;
        rc = describe(d, node, var, err);
    }
    return rc;
}

/* Finds the folder of NODE below PATH. */
static int locate(const char *path, const char *node, const cm_store_options *options, char **out,
                  cm_error *err)
{
    cm_place there = CM_PLACE_FOLDER;
    int rc = *node != '\0' ? cm_key_check(node, err) : CM_OK;
    if (rc != CM_OK) {
        cm_error_place(err, path);
        return rc;
    }
    const bool named = cm_icechunk_path(path) != NULL;
    const bool within =
        *node != '\0' && (named || (!cm_store_url_is_remote(path) && cm_icechunk_is_folder(path)));
    *out = within ? cm_asprintf(err, "%s%s::%s", named ? "" : "icechunk:", path, node)
                  : cm_url_join(path, node, err);
    if (*out == NULL)
        return CM_ENOMEM;
    if (*node != '\0' && !within) /* of a repository, opening it tells */
        rc = cm_store_probe(*out, options, &there, err);
    if (rc == CM_OK && there == CM_PLACE_NOTHING)
        rc = cm_fail(err, CM_ENOTFOUND, "%s: has no group or array %s", path, node);
    return rc;
}

/* Accepts empty groups, but not a folder of other things. */
static int open_tree(zarr_dataset *d, bool quick, cm_error *err)
{
    const cm_zarr_tree *tree = &d->tree;
    size_t narrays = 0;
    int rc = quick ? cm_zarr_open(d->store, &d->tree, err)
                   : cm_zarr_open_whole(d->store, &d->tree, &d->conflicts, err);
    for (size_t i = 0; rc == CM_OK && i < tree->nnodes; i++)
        narrays += !tree->node[i].meta.is_group;
    if (rc != CM_OK || narrays > 0 || tree->nforeign == 0)
        return rc;
    return cm_fail(
        err, CM_EFORMAT, "has no array: %llu files in it (%s%s) belong to none that has metadata",
        (unsigned long long)tree->nforeign, tree->foreign, tree->nforeign > 1 ? ", ..." : "");
}

/* RC of a bucket that was not opened: nothing there is another error than something else. */
static int tell_nothing(const zarr_dataset *d, int rc, cm_error *err)
{
    cm_error why = {0};
    bool any = true;
    if (rc != CM_EFORMAT || !cm_store_is_remote(d->store) ||
        cm_store_has_any(d->store, "", &any, &why) != CM_OK || any)
        return rc;
    return cm_fail(err, CM_ENOTFOUND, "nothing is there");
}

/* open_tree of what is at PATH, behind a network a repository, too. */
static int open_found(zarr_dataset *d, const char *path, const cm_dataset_options *options,
                      const cm_store_options *store, cm_error *err)
{
    int rc = open_tree(d, options->quick, err);
    char *repository = d->is_borrowed ? NULL : cm_ice_repository_at(rc, path, d->store);
    if (repository == NULL)
        return tell_nothing(d, rc, err);
    cm_zarr_tree_release(&d->tree);
    cm_zarr_conflicts_release(&d->conflicts);
    d->conflicts = (cm_zarr_conflicts){0};
    cm_store_free(d->store);
    rc = cm_ice_store_open(repository, store, &d->store, err);
    free(repository);
    return rc == CM_OK ? open_tree(d, options->quick, err) : rc;
}

const cm_zarr_tree *cm_zarr_dataset_tree(const cm_dataset *ds)
{
    return &of(cm_dataset_bottom(ds))->tree;
}

const cm_zarr_conflicts *cm_zarr_dataset_conflicts(const cm_dataset *ds)
{
    return &of(cm_dataset_bottom(ds))->conflicts;
}

/* A document may be as large as the lengths of ten million chunks. */
static void drop_documents(cm_zarr_tree *tree)
{
    for (size_t i = 0; i < tree->nnodes; i++) {
        cm_json_free(tree->node[i].meta.raw);
        tree->node[i].meta.raw = NULL;
    }
}

int cm_zarr_dataset_open(const char *path, const char *node, const cm_dataset_options *options,
                         cm_dataset **out, cm_error *err)
{
    char *folder = NULL;
    zarr_dataset *d = cm_calloc(1, sizeof(*d), err);
    if (d == NULL)
        return CM_ENOMEM;
    d->base.ops = &ops;
    d->index_cache_nbytes = options->index_cache_nbytes;
    const cm_store_options store = {
        .io = options->io, .net = options->net, .memory = options->memory};
    d->store = options->store;
    d->is_borrowed = options->store != NULL;
    int rc = locate(path, node, &store, &folder, err);
    if (rc == CM_OK && !d->is_borrowed)
        rc = cm_ice_store_open(folder, &store, &d->store, err);
    if (rc == CM_OK && (rc = open_found(d, folder, options, &store, err)) != CM_OK)
        cm_error_place(err, folder);
    if (rc == CM_OK && options->reads_only)
        drop_documents(&d->tree);
    if (rc == CM_OK)
        rc = describe_all(d, folder, err);
    free(folder);
    if (rc != CM_OK) {
        close_store(&d->base);
        return rc;
    }
    *out = &d->base;
    return CM_OK;
}
