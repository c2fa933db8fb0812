/* Finds the addresses of a prepared variable, for readers without this folder's libraries. */
#include <stdlib.h>
#include <string.h>

#include "format/nc/file.h"
#include "format/nc/locate.h"
#include "format/nc/lock.h"

enum {
    MANY_CHUNKS = 1 << 24, /* grid size from which a dataset with few stored chunks gets no table */
    MAX_SPREAD = 4,
    /*
     * HDF5 1.10 searches all of an index that is not a B-tree for each chunk: 10^6 chunks did not
     * finish in ten minutes.
     */
    MOST_ASKED = 1 << 14
};

static bool is_sparse(const cm_nc_node *node)
{
    uint64_t n = node->var.array.grid.nchunks;
    return n > MANY_CHUNKS && (node->locked_dataset >= 0 || n / MAX_SPREAD > node->index.nentries);
}

static int make_places(const cm_nc_node *node, cm_chunk_place **out, cm_error *err)
{
    uint64_t n = node->var.array.grid.nchunks;
    *out = cm_calloc((size_t)n + 1, sizeof(**out), err);
    return *out == NULL ? CM_ENOMEM : CM_OK;
}

static int indexed_places(const cm_nc_node *node, cm_chunk_place *place)
{
    for (uint64_t i = 0; i < node->var.array.grid.nchunks; i++)
        if (cm_chunk_index_find(&node->index, i, &place[i]))
            place[i].mask = cm_nc_chunk_skip(node, i, place[i].mask);
    return CM_OK;
}

/*
 * CM_EUNSUPPORTED if HDF5 does not give the addresses.  Before 1.14.4 they leave out the user block
 * (HDFGroup/hdf5#3003).
 */
static int locked_places(const cm_nc_node *node, cm_chunk_place *place)
{
    const cm_grid *grid = &node->var.array.grid;
    if (node->file->super.base != 0 || grid->nchunks > MOST_ASKED)
        return CM_EUNSUPPORTED;
    for (uint64_t i = 0; i < grid->nchunks; i++) {
        uint64_t coord[CM_MAX_RANK];
        hsize_t offset[CM_MAX_RANK], nbytes = 0;
        unsigned mask = 0;
        haddr_t address = HADDR_UNDEF;
        bool inside = true;
        cm_grid_coord(grid, i, coord);
        for (unsigned j = 0; j < grid->rank; j++) {
            offset[j] = coord[j] * grid->chunk[j];
            inside = inside && offset[j] < node->dataset.extent[j];
        }
        if (!inside)
            continue;
        if (H5Dget_chunk_info_by_coord(node->locked_dataset, offset, &mask, &address, &nbytes) < 0)
            return CM_EUNSUPPORTED;
        if (address == HADDR_UNDEF || nbytes == 0)
            continue;
        if (nbytes > UINT32_MAX)
            return CM_EUNSUPPORTED;
        place[i] = (cm_chunk_place){address, (uint32_t)nbytes, cm_nc_chunk_skip(node, i, mask)};
    }
    return CM_OK;
}

static int locate_chunks(cm_nc_node *node, cm_form *form, cm_located *out, cm_error *err)
{
    const cm_grid *grid = &node->var.array.grid;
    cm_chunk_place *place;
    cm_codec_spec *codecs;
    if (is_sparse(node))
        return CM_OK;
    int rc = make_places(node, &place, err);
    if (rc != CM_OK)
        return rc;
    out->place = place;
    if (node->locked_dataset < 0) {
        rc = indexed_places(node, place);
    } else {
        cm_nc_lock();
        rc = locked_places(node, place);
        cm_nc_unlock();
    }
    if (rc == CM_EUNSUPPORTED) {
        free(place);
        out->place = NULL;
        return CM_OK;
    }
    rc = cm_codec_specs_copy(node->dataset.codec, node->dataset.ncodecs, &codecs, err);
    if (rc != CM_OK)
        return rc;
    out->nplaces = grid->nchunks;
    form->kind = CM_LOCATED_CHUNKS;
    form->codecs = codecs;
    form->ncodecs = node->dataset.ncodecs;
    memcpy(form->chunk, grid->chunk, grid->rank * sizeof(form->chunk[0]));
    return CM_OK;
}

static void locate_slab(const cm_nc_node *node, cm_form *form, cm_located *out)
{
    const cm_slab *slab = &node->slab;
    form->kind = slab->itemsize != 0 ? CM_LOCATED_SLAB : CM_LOCATED_UNWRITTEN;
    form->swap = slab->itemsize != 0 ? slab->swap : 1;
    out->begin = slab->begin;
    out->row_stride = slab->row_stride;
}

int cm_nc_var_locate(cm_nc_var *var, cm_located *out, cm_error *err)
{
    cm_nc_node *node = (cm_nc_node *)var;
    const cm_array *a = &var->array;
    *out = (cm_located){0};
    cm_form *form = cm_calloc(1, sizeof(*form), err);
    if (form == NULL)
        return CM_ENOMEM;
    out->form = form;
    form->dtype = a->dtype;
    form->rank = a->rank;
    if (a->fill != NULL && a->dtype.nbytes <= sizeof(form->fill)) {
        form->has_fill = true;
        memcpy(form->fill, a->fill, a->dtype.nbytes);
    }
    if (var->has_source_chunks)
        memcpy(form->chunk, var->source_chunk, a->rank * sizeof(form->chunk[0]));
    int rc = CM_OK;
    switch (var->access) {
    case CM_NC_CHUNK_INDEX:
    case CM_NC_CHUNK_LOCKED:
        rc = locate_chunks(node, form, out, err);
        break;
    case CM_NC_ARITHMETIC:
        locate_slab(node, form, out);
        break;
    case CM_NC_LIBRARY:
        break;
    }
    if (rc != CM_OK)
        cm_located_release(out);
    return rc;
}
