/* Reading and writing shared by both metadata formats. */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

int cm_zarr_check_grid(cm_zarr_meta *meta, unsigned chunk_rank, const char *what, cm_error *err)
{
    if (chunk_rank != meta->rank)
        return cm_fail(err, CM_EFORMAT, "%s has %u dimensions, the array %u", what, chunk_rank,
                       meta->rank);
    for (unsigned i = 0; i < meta->rank; i++) {
        /* Some writers give an empty dimension a chunk length of 0; it has no chunks anyway. */
        if (meta->chunk[i] == 0 && meta->shape[i] == 0)
            meta->chunk[i] = 1;
        if (meta->chunk[i] == 0)
            return cm_fail(err, CM_EFORMAT, "%s has a zero", what);
    }
    cm_grid grid;
    return cm_zarr_meta_outer_grid(meta, &grid, err);
}

bool cm_zarr_meta_is_cut(const cm_zarr_meta *meta)
{
    return cm_cuts_any((const cm_cuts *const *)meta->cuts, meta->rank);
}

void cm_zarr_meta_drop_cuts(cm_zarr_meta *meta)
{
    for (unsigned i = 0; i < CM_MAX_RANK; i++) {
        cm_cuts_release(meta->cuts[i]);
        free(meta->cuts[i]);
        meta->cuts[i] = NULL;
    }
}

int cm_zarr_meta_outer_grid(const cm_zarr_meta *meta, cm_grid *out, cm_error *err)
{
    const cm_cuts *cuts[CM_MAX_RANK];
    for (unsigned i = 0; i < CM_MAX_RANK; i++)
        cuts[i] = meta->cuts[i];
    return cm_grid_init_cut(out, meta->rank, meta->shape, meta->chunk, cuts, err);
}

static int check_shards(const cm_cuts *cuts, unsigned dim, uint64_t inner, cm_error *err)
{
    for (size_t i = 0; i < cuts->nruns; i++)
        if (cuts->run[i].length % inner != 0)
            return cm_fail(
                err, CM_EFORMAT,
                "dimension %u of a shard, %llu, is not a multiple of the inner chunk's, %llu", dim,
                (unsigned long long)cuts->run[i].length, (unsigned long long)inner);
    return CM_OK;
}

/* The lengths of shards are multiples of those of inner chunks, so that these are on one grid. */
int cm_zarr_meta_grid(const cm_zarr_meta *meta, cm_grid *out, cm_error *err)
{
    const cm_shard_spec *shard = cm_zarr_sharding(meta);
    if (shard == NULL)
        return cm_zarr_meta_outer_grid(meta, out, err);
    int rc = cm_grid_init(out, meta->rank, meta->shape, shard->chunk, err);
    for (unsigned i = 0; rc == CM_OK && i < meta->rank; i++)
        if (meta->cuts[i] != NULL)
            rc = check_shards(meta->cuts[i], i, shard->chunk[i], err);
    return rc;
}

int cm_zarr_read_dim_names(const cm_json *names, cm_zarr_meta *out, cm_error *err)
{
    out->has_dim_names = true;
    for (unsigned i = 0; i < out->rank; i++) {
        const cm_json *j = cm_json_at(names, i);
        const char *name = cm_json_text(j, NULL);
        if (j != NULL && name == NULL)
            return cm_fail(err, CM_EFORMAT, "the name of dimension %u is not text", i);
        if (name != NULL && (out->dim_name[i] = cm_strdup(name, err)) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

int cm_zarr_dim_names(const cm_zarr_meta *meta, cm_json **out, cm_error *err)
{
    cm_json *names = cm_json_array();
    int rc = CM_OK;
    for (unsigned i = 0; i < meta->rank && rc == CM_OK; i++)
        rc = meta->dim_name[i] != NULL
                 ? cm_json_append(names, cm_json_string(meta->dim_name[i]), err)
                 : cm_json_append_null(names, err);
    if (rc == CM_OK && names == NULL)
        rc = cm_fail(err, CM_ENOMEM, "no memory for the names of dimensions");
    if (rc != CM_OK) {
        cm_json_free(names);
        return rc;
    }
    *out = names;
    return CM_OK;
}

const cm_shard_spec *cm_zarr_sharding(const cm_zarr_meta *meta)
{
    bool alone = meta->ncodecs == 1 && meta->codecs[0].id == CM_CODEC_SHARDING;
    return alone ? meta->codecs[0].shard : NULL;
}

/*
 * J without consolidated metadata, which may be far larger than the rest.  Its members are shared:
 * a list of ten million lengths of chunks takes a GiB.
 */
static cm_json *copy_raw(const cm_json *j)
{
    cm_json *copy = cm_json_object();
    int rc = CM_OK;
    for (cm_json_iter it = cm_json_begin(j); rc == CM_OK && cm_json_next(&it);) {
        if (strcmp(it.name, "consolidated_metadata") == 0)
            continue;
        rc = it.value != NULL ? cm_json_set(copy, it.name, cm_json_share(it.value), NULL)
                              : cm_json_set_null(copy, it.name, NULL);
    }
    if (rc != CM_OK) {
        cm_json_free(copy);
        return NULL;
    }
    return copy;
}

int cm_zarr_keep_raw(int rc, const cm_json *j, cm_zarr_meta *out, cm_error *err)
{
    if (rc == CM_OK || rc == CM_EUNSUPPORTED) {
        out->verbatim = rc == CM_EUNSUPPORTED;
        out->raw = copy_raw(j);
        if (out->raw == NULL)
            rc = cm_fail(err, CM_ENOMEM, "no memory for metadata");
    }
    if (rc != CM_OK && rc != CM_EUNSUPPORTED)
        cm_zarr_meta_release(out);
    return rc;
}

void cm_zarr_meta_release(cm_zarr_meta *meta)
{
    cm_json_free(meta->attrs);
    cm_json_free(meta->raw);
    for (unsigned i = 0; i < CM_MAX_RANK; i++)
        free(meta->dim_name[i]);
    cm_zarr_meta_drop_cuts(meta);
    free(meta->fill);
    free(meta->fill_text);
    cm_codec_specs_free(meta->codecs, meta->ncodecs);
    memset(meta, 0, sizeof *meta);
}
