/* Where the stored bytes of a Zarr array's chunks lie: keys of objects, entries of shards. */
#include <stdio.h>

#include "format/zarr/reader.h"

/* For chunks of variable-length elements, which have no bound of their own. */
#define MAX_VLEN_STORED ((uint64_t)1 << 32)

int cm_zarr_prefix_chunk(cm_error *err, const cm_zarr_array *z, uint64_t number, int rc)
{
    if (rc == CM_OK || err == NULL)
        return rc;
    cm_grid_explain(&z->base.grid, number, "array", z->base.name, err);
    cm_error_place(err, z->base.place);
    return rc;
}

int cm_zarr_object_key(const cm_zarr_array *z, const uint64_t *coord, char *buf, cm_error *err)
{
    char name[CM_CHUNK_KEY_SIZE];
    cm_zarr_chunk_key(&z->keys, coord, name, sizeof name);
    int n = snprintf(buf, CM_ZARR_KEY_SIZE, "%s%s", z->prefix, name);
    if (n < 0 || n >= CM_ZARR_KEY_SIZE)
        return cm_fail(err, CM_EFORMAT, "the key of a chunk is too long");
    return CM_OK;
}

uint64_t cm_zarr_max_stored(const cm_zarr_array *z)
{
    return z->base.max_stored_nbytes ? z->base.max_stored_nbytes : MAX_VLEN_STORED;
}

void cm_zarr_locate(const cm_zarr_array *z, uint64_t number, uint64_t *shard_coord, uint64_t *local)
{
    const cm_grid *inner = &z->base.grid, *outer = &z->outer;
    uint64_t coord[CM_MAX_RANK], shape[CM_MAX_RANK];
    cm_grid_coord(inner, number, coord);
    for (unsigned i = 0; i < inner->rank; i++)
        shard_coord[i] = cm_grid_find(outer, i, coord[i] * inner->chunk[i]);
    cm_grid_chunk_shape(outer, shard_coord, shape);
    *local = 0;
    for (unsigned i = 0; i < inner->rank; i++) {
        const uint64_t first = cm_grid_first(outer, i, shard_coord[i]) / inner->chunk[i];
        *local = *local * (shape[i] / inner->chunk[i]) + (coord[i] - first);
    }
}

int cm_zarr_layout_of(const cm_zarr_array *z, const uint64_t *coord, const cm_shard_layout **out,
                      cm_error *err)
{
    uint64_t first[CM_MAX_RANK];
    return cm_zarr_shard_at(z->shapes, z->layout, &z->outer, &z->base.grid, coord, first, out, err);
}

int cm_zarr_chain_of(const cm_zarr_array *z, uint64_t number, const cm_chain **out, cm_error *err)
{
    uint64_t coord[CM_MAX_RANK], shape[CM_MAX_RANK];
    *out = NULL;
    if (z->shapes == NULL || z->layout != NULL)
        return CM_OK;
    cm_grid_coord(&z->base.grid, number, coord);
    cm_grid_chunk_shape(&z->base.grid, coord, shape);
    return cm_zarr_shapes_chain(z->shapes, shape, out, err);
}

int cm_zarr_find_inner(const cm_zarr_array *z, const cm_shard *shard, uint64_t local, bool *present,
                       cm_shard_entry *out, cm_error *err)
{
    *present = false;
    if (shard->entry == NULL)
        return CM_OK;
    *out = shard->entry[local];
    if (out->offset == CM_SHARD_MISSING && out->nbytes == CM_SHARD_MISSING)
        return CM_OK;
    uint64_t most = cm_zarr_max_stored(z);
    if (out->nbytes > most)
        return cm_fail(err, CM_EFORMAT, "has %llu bytes, more than the %llu that it may have",
                       (unsigned long long)out->nbytes, (unsigned long long)most);
    *present = true;
    return CM_OK;
}
