#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/merge.h"
#include "format/nc/file.h"
#include "format/nc/h5_btree.h"
#include "format/nc/h5_object.h"
#include "format/nc/lock.h"
#include "format/nc/reader.h"

#if H5_VERSION_GE(1, 14, 0) || (H5_VERS_MINOR == 12 && H5_VERS_RELEASE >= 3) ||                    \
    (H5_VERS_MINOR == 10 && H5_VERS_RELEASE >= 10)
#define HAVE_CHUNK_ITER 1
#else
#define HAVE_CHUNK_ITER 0
#endif

static cm_error *explain(const cm_nc_node *node, uint64_t number, cm_error *err)
{
    const cm_array *a = &node->var.array;
    cm_grid_explain(&a->grid, number, "variable", a->name, err);
    cm_error_prefix(err, "%s", node->file->path);
    return err;
}

/* With H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS the filter mask of an edge chunk stays 0. */
uint32_t cm_nc_chunk_skip(const cm_nc_node *node, uint64_t number, uint32_t mask)
{
    const cm_grid *grid = &node->var.array.grid;
    uint64_t coord[CM_MAX_RANK];
    if (!node->dataset.edges_unfiltered)
        return mask;
    cm_grid_coord(grid, number, coord);
    for (unsigned j = 0; j < grid->rank; j++)
        if ((coord[j] + 1) * grid->chunk[j] > node->dataset.extent[j])
            return UINT32_MAX;
    return mask;
}

/* ---- chunks at known addresses ---- */

/* Checked before a buffer grows: the size is only claimed by the file. */
static int check_place(const cm_source *source, const cm_chunk_place *place, cm_error *err)
{
    if (place->address <= source->nbytes && place->nbytes <= source->nbytes - place->address)
        return CM_OK;
    return cm_fail(err, CM_EFORMAT,
                   "%" PRIu32 " bytes are said to lie at %" PRIu64
                   ", but the file ends at %" PRIu64,
                   place->nbytes, place->address, source->nbytes);
}

static int fetch_indexed(cm_array *a, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    cm_nc_node *node = (cm_nc_node *)a;
    const cm_source *source = &node->file->data;
    cm_chunk_place place;
    *out = (cm_fetch){.present = cm_chunk_index_find(&node->index, number, &place)};
    if (!out->present)
        return CM_OK;
    out->skip = cm_nc_chunk_skip(node, number, place.mask);
    int rc = check_place(source, &place, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(buf, place.nbytes, err);
    uint64_t start = cm_now_ns();
    if (rc == CM_OK)
        rc = cm_source_read(source, place.address, buf->data, place.nbytes, err);
    out->io_ns = cm_now_ns() - start;
    out->nrequests = 1;
    out->nbytes = place.nbytes;
    if (rc != CM_OK)
        explain(node, number, err);
    return rc;
}

/* Finds the places of the items, as sorted pieces; *N of them are stored. */
static int find_pieces(const cm_nc_node *node, cm_fetch_many *many, cm_piece *piece, size_t *n,
                       cm_error *err)
{
    *n = 0;
    for (size_t i = 0; i < many->n; i++) {
        cm_fetch_item *item = &many->item[i];
        cm_chunk_place place;
        *item = (cm_fetch_item){.number = item->number};
        if (!cm_chunk_index_find(&node->index, item->number, &place))
            continue;
        int rc = check_place(&node->file->source, &place, err);
        if (rc != CM_OK) {
            explain(node, item->number, err);
            return rc;
        }
        item->skip = cm_nc_chunk_skip(node, item->number, place.mask);
        piece[(*n)++] = (cm_piece){.offset = place.address, .nbytes = place.nbytes, .item = i};
    }
    cm_pieces_sort(piece, *n);
    return CM_OK;
}

static int read_pieces(const cm_source *source, cm_fetch_many *many, cm_piece *piece, size_t n,
                       cm_error *err)
{
    if (many->count_only) {
        cm_pieces_count(piece, n, many);
        return CM_OK;
    }
    int rc = cm_buf_resize(&many->buf, cm_pieces_place(piece, n), err);
    if (rc == CM_OK)
        rc = cm_source_read_pieces(source, many, piece, n, err);
    if (rc == CM_OK)
        cm_pieces_point(piece, n, many);
    return rc;
}

static int fetch_many_indexed(cm_array *a, cm_fetch_many *many, cm_error *err)
{
    cm_nc_node *node = (cm_nc_node *)a;
    cm_piece *piece = cm_pieces_room(many, err);
    size_t n;
    int rc = piece != NULL ? find_pieces(node, many, piece, &n, err) : CM_ENOMEM;
    if (rc != CM_OK)
        return rc;
    uint64_t start = cm_now_ns();
    rc = read_pieces(&node->file->data, many, piece, n, err);
    many->io_ns = cm_now_ns() - start;
    return rc != CM_OK ? cm_fetch_blame(a, many, rc, err) : CM_OK;
}

static bool is_absent_indexed(cm_array *a, uint64_t number)
{
    cm_chunk_place place;
    return !cm_chunk_index_find(&((cm_nc_node *)a)->index, number, &place);
}

/* ---- chunks through HDF5, undecoded ---- */

static uint64_t stored_nbytes(const cm_nc_node *node, uint64_t number, hsize_t *offset)
{
    const cm_grid *grid = &node->var.array.grid;
    uint64_t coord[CM_MAX_RANK];
    hsize_t nbytes = 0;
    cm_grid_coord(grid, number, coord);
    for (unsigned j = 0; j < grid->rank; j++) {
        offset[j] = coord[j] * grid->chunk[j];
        if (offset[j] >= node->dataset.extent[j])
            return 0;
    }
    /* For a chunk that is not allocated HDF5 fails or gives 0, depending on its version. */
    return H5Dget_chunk_storage_size(node->locked_dataset, offset, &nbytes) < 0 ? 0 : nbytes;
}

static int read_locked(cm_nc_node *node, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    hsize_t offset[CM_MAX_RANK];
    uint64_t nbytes = stored_nbytes(node, number, offset);
    if (nbytes == 0)
        return CM_OK;
    if (nbytes > node->file->source.nbytes)
        return cm_fail(err, CM_EFORMAT,
                       "%" PRIu64 " bytes are said to be stored, but the file ends at %" PRIu64,
                       nbytes, node->file->source.nbytes);
    int rc = cm_buf_resize(buf, (size_t)nbytes, err);
    if (rc != CM_OK)
        return rc;
    uint32_t mask = 0;
    if (H5Dread_chunk(node->locked_dataset, H5P_DEFAULT, offset, &mask, buf->data) < 0)
        return cm_fail(err, CM_EFORMAT, "HDF5 cannot read its %" PRIu64 " stored bytes", nbytes);
    out->present = true;
    out->skip = cm_nc_chunk_skip(node, number, mask);
    out->nrequests = 1;
    out->nbytes = nbytes;
    return CM_OK;
}

static int fetch_locked(cm_array *a, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    cm_nc_node *node = (cm_nc_node *)a;
    *out = (cm_fetch){0};
    uint64_t start = cm_now_ns();
    int rc;
    if (node->file->reader != NULL) {
        rc = cm_nc_reader_chunk(node, number, buf, out, err);
    } else {
        cm_nc_lock();
        rc = read_locked(node, number, buf, out, err);
        cm_nc_unlock();
    }
    out->io_ns = cm_now_ns() - start;
    if (rc != CM_OK)
        explain(node, number, err);
    return rc;
}

uint64_t cm_nc_chunk_nbytes(cm_nc_node *node, uint64_t number)
{
    hsize_t offset[CM_MAX_RANK];
    cm_nc_lock();
    uint64_t nbytes = stored_nbytes(node, number, offset);
    cm_nc_unlock();
    return nbytes;
}

static bool is_absent_locked(cm_array *a, uint64_t number)
{
    cm_nc_node *node = (cm_nc_node *)a;
    uint64_t nbytes;
    if (node->file->reader == NULL)
        return cm_nc_chunk_nbytes(node, number) == 0;
    /* Not known to be absent if HDF5 cannot tell: reading the chunk shows it. */
    return cm_nc_reader_chunk_nbytes(node, number, &nbytes, NULL) == CM_OK && nbytes == 0;
}

void cm_nc_use_chunks(cm_nc_node *node)
{
    static const cm_array_ops indexed = {
        .fetch = fetch_indexed, .fetch_many = fetch_many_indexed, .is_absent = is_absent_indexed};
    static const cm_array_ops locked = {.fetch = fetch_locked, .is_absent = is_absent_locked};
    cm_array *a = &node->var.array;
    bool has_index = node->locked_dataset < 0;
    a->ops = has_index ? &indexed : &locked;
    a->chunked = true;
    a->serial = false;
    /* A longer chunk exceeds the file; fetch refuses it. */
    uint64_t file_nbytes = node->file->source.nbytes;
    a->max_stored_nbytes = !has_index                              ? 0
                           : node->index.max_nbytes <= file_nbytes ? node->index.max_nbytes
                                                                   : (size_t)file_nbytes;
    node->var.access = has_index ? CM_NC_CHUNK_INDEX : CM_NC_CHUNK_LOCKED;
    node->var.stored_nbytes =
        has_index ? node->index.stored_nbytes : H5Dget_storage_size(node->locked_dataset);
}

/* ---- the index ---- */

typedef struct adder {
    cm_chunk_index *index;
    const cm_grid *grid;
    const uint64_t
        *extent; /* of the dataset, which may end before the grid; chunks past it hold no data */
    const cm_nc_file *file;
    uint64_t nseen;
    int rc;
    cm_error *err;
} adder;

enum {
    /*
     * Chunks between checks for cancellation: 16 and more nodes, a fifth of a second at 10 ms each.
     */
    ASK_EVERY = 1024
};

static bool is_canceled(adder *a)
{
    return a->nseen++ % ASK_EVERY == 0 && a->file->canceled != NULL &&
           a->file->canceled(a->file->context);
}

static bool is_outside(const adder *a, const uint64_t *offset)
{
    for (unsigned j = 0; j < a->grid->rank; j++)
        if (offset[j] >= a->extent[j])
            return true;
    return false;
}

static int add_chunk(void *context, const cm_h5_chunk *chunk, cm_error *err)
{
    adder *a = context;
    if (is_canceled(a))
        return cm_fail(err, CM_ECANCELED, "stopped by request");
    if (is_outside(a, chunk->offset))
        return CM_OK;
    return cm_chunk_index_add(a->index, a->grid, chunk->offset, chunk->address, chunk->nbytes,
                              chunk->mask, err);
}

#if HAVE_CHUNK_ITER
static int add_iterated(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t nbytes,
                        void *context)
{
    adder *a = context;
    uint64_t at[CM_MAX_RANK];
    for (unsigned j = 0; j < a->grid->rank; j++)
        at[j] = offset[j];
    if (is_canceled(a)) {
        a->rc = cm_fail(a->err, CM_ECANCELED, "stopped by request");
        return H5_ITER_ERROR;
    }
    if (is_outside(a, at))
        return H5_ITER_CONT;
    a->rc = cm_chunk_index_add(a->index, a->grid, at, address, nbytes, mask, a->err);
    return a->rc != CM_OK ? H5_ITER_ERROR : H5_ITER_CONT;
}

static int iterate(cm_nc_node *node, adder *a, cm_error *why)
{
    hid_t dataset = H5Dopen2(node->file->h5, node->h5_path, H5P_DEFAULT);
    if (dataset < 0)
        return cm_fail(why, CM_EUNSUPPORTED, "HDF5 cannot open the dataset again");
    herr_t rc = H5Dchunk_iter(dataset, H5P_DEFAULT, add_iterated, a);
    H5Dclose(dataset);
    if (a->rc)
        return a->rc;
    return rc < 0 ? cm_fail(why, CM_EUNSUPPORTED, "H5Dchunk_iter failed") : CM_OK;
}
#endif

/*
 * Reads an index of the newer formats through HDF5, if it can list all chunks at once.  Before
 * 1.14.4 the addresses leave out the user block (HDFGroup/hdf5#3003).
 */
static int locate_new(cm_nc_node *node, adder *a, const cm_h5_layout_message *layout, cm_error *why)
{
    static const char *const name[] = {
        "none",        "version 1 B-tree", "single chunk",    "implicit",
        "fixed array", "extensible array", "version 2 B-tree"};
#if HAVE_CHUNK_ITER
    if (node->file->super.base == 0)
        return iterate(node, a, why);
#else
    (void)node;
    (void)a;
#endif
    return cm_fail(why, CM_EUNSUPPORTED, "its chunk index (%s) can be read only by HDF5",
                   name[layout->index]);
}

int cm_nc_chunks_locate(cm_nc_node *node, const cm_grid *grid, cm_error *why)
{
    const cm_nc_file *file = node->file;
    cm_h5_layout_message layout;
    adder a = {.index = &node->index,
               .grid = grid,
               .extent = node->dataset.extent,
               .file = file,
               .err = why};
    int rc = CM_OK;
    if (file->plain)
        layout = (cm_h5_layout_message){
            .index = CM_H5_INDEX_BTREE1, .rank = node->dataset.rank, .address = node->place};
    else
        rc = cm_h5_layout_read(&file->source, &file->super, node->dataset.header, &layout, why);
    if (rc == CM_OK && (layout.index == CM_H5_INDEX_NONE || layout.rank != grid->rank))
        rc = cm_fail(why, CM_EUNSUPPORTED, "its object header and HDF5 disagree");
    if (rc == CM_OK && layout.address != CM_H5_UNDEFINED) {
        if (layout.index == CM_H5_INDEX_BTREE1)
            rc = cm_h5_btree_visit(&file->source, &file->super, layout.address, grid->rank,
                                   add_chunk, &a, why);
        else
            rc = locate_new(node, &a, &layout, why);
    }
    return rc != CM_OK ? rc : cm_chunk_index_finish(&node->index, grid, why);
}
