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
    const cm_grid *within = cm_shard_grid(z->layout);
    uint64_t coord[CM_MAX_RANK], rest[CM_MAX_RANK];
    cm_grid_coord(&z->base.grid, number, coord);
    for (unsigned i = 0; i < z->base.rank; i++) {
        shard_coord[i] = coord[i] / within->count[i];
        rest[i] = coord[i] % within->count[i];
    }
    *local = cm_grid_number(within, rest);
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
