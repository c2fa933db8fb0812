#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/nc/file.h"
#include "format/nc/h5_object.h"
#include "format/nc/lock.h"
#include "model/copy.h"

static int read_box(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    cm_nc_node *node = (cm_nc_node *)a;
    int rc = cm_slab_read(&node->slab, a->shape, box, dst, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s: variable %s", node->file->path, a->name);
    return rc;
}

/* Fills BOX: a contiguous dataset that was never written has no bytes. */
static int read_fill(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    (void)err;
    static const uint8_t zero[16];
    uint64_t nelem = cm_box_nelem(box);
    if (nelem)
        cm_fill(dst, nelem, a->dtype.nbytes, a->fill != NULL ? a->fill : zero);
    return CM_OK;
}

static void use_slab(cm_nc_node *node)
{
    static const cm_array_ops stored = {.read_box = read_box};
    static const cm_array_ops unwritten = {.read_box = read_fill};
    node->var.array.ops = node->slab.itemsize ? &stored : &unwritten;
    node->var.access = CM_NC_ARITHMETIC;
}

static uint64_t array_nbytes(const cm_array *a)
{
    uint64_t nbytes = a->dtype.nbytes; /* cannot overflow: checked when the shape was read */
    for (unsigned j = 0; j < a->rank; j++)
        nbytes *= a->shape[j];
    return nbytes;
}

/* A grid of the file's chunks, or of one chunk, the whole array. */
static int make_grid(cm_nc_node *node, bool chunks, cm_error *err)
{
    cm_array *a = &node->var.array;
    uint64_t chunk[CM_MAX_RANK];
    for (unsigned j = 0; j < a->rank; j++)
        chunk[j] = chunks ? node->var.source_chunk[j] : a->shape[j] ? a->shape[j] : 1;
    int rc = cm_grid_init(&a->grid, a->rank, a->shape, chunk, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s: variable %s", node->file->path, a->name);
    return rc;
}

static int use_library(cm_nc_node *node, const char *reason, cm_error *err)
{
    cm_nc_var *v = &node->var;
    if (node->file->plain)
        return CM_EUNSUPPORTED;
    free(v->access_reason);
    v->access_reason = cm_strdup(reason, err);
    if (v->access_reason == NULL)
        return CM_ENOMEM;
    if (node->file->h5 >= 0 && node->dataset.known && !cm_dtype_is_vlen(&v->array.dtype)) {
        hid_t dataset = H5Dopen2(node->file->h5, node->h5_path, H5P_DEFAULT);
        if (dataset >= 0) {
            v->stored_nbytes = H5Dget_storage_size(dataset);
            H5Dclose(dataset);
        }
    }
    cm_nc_use_library(node);
    return make_grid(node, v->has_source_chunks, err);
}

static uint32_t swap_unit(const cm_dtype *t, bool big_endian)
{
    return big_endian ? cm_dtype_swap_nbytes(t) : 1;
}

/* Bytes between indices of the first dimension, for contiguous elements. */
static uint64_t row_nbytes(const cm_array *a)
{
    uint64_t nbytes = a->dtype.nbytes;
    for (unsigned j = 1; j < a->rank; j++)
        nbytes *= a->shape[j];
    return nbytes;
}

static int prepare_classic(cm_nc_node *node, cm_error *err)
{
    cm_array *a = &node->var.array;
    const cm_classic_header *h = &node->file->classic;
    const cm_classic_var *c = (size_t)node->varid < h->nvars ? &h->var[node->varid] : NULL;
    uint64_t row = row_nbytes(a);
    if (c == NULL || c->itemsize != a->dtype.nbytes || c->rank != a->rank ||
        c->nbytes != (c->is_record ? row : array_nbytes(a)))
        return cm_fail(err, CM_EINTERNAL,
                       "%s: variable %s: netCDF-C and the header disagree about its shape",
                       node->file->path, a->name);
    node->slab = (cm_slab){.source = node->file->data,
                           .begin = c->begin,
                           .row_stride = c->is_record ? h->record_nbytes : row,
                           .itemsize = c->itemsize,
                           .swap = swap_unit(&a->dtype, true)};
    node->var.stored_nbytes = array_nbytes(a);
    use_slab(node);
    return make_grid(node, false, err);
}

/* Address of the elements of a contiguous dataset; HADDR_UNDEF: unwritten. */
static bool find_begin(cm_nc_node *node, haddr_t *begin, const char **why)
{
    if (node->file->plain) {
        *begin = node->place;
        return true;
    }
    hid_t dataset = H5Dopen2(node->file->h5, node->h5_path, H5P_DEFAULT);
    *why = "HDF5 cannot open the dataset again";
    if (dataset < 0)
        return false;
    /*
     * H5Dget_offset adds the user block, also to the undefined address of unwritten data, which
     * then looks valid: only the status tells.
     */
    H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
    bool known = H5Dget_space_status(dataset, &status) >= 0;
    *begin =
        known && status == H5D_SPACE_STATUS_NOT_ALLOCATED ? HADDR_UNDEF : H5Dget_offset(dataset);
    H5Dclose(dataset);
    *why = "HDF5 does not tell whether it was ever written";
    return known;
}

static int prepare_contiguous(cm_nc_node *node, cm_error *err)
{
    cm_array *a = &node->var.array;
    const char *why;
    haddr_t begin;
    if (!find_begin(node, &begin, &why))
        return use_library(node, why, err);
    uint64_t nbytes = array_nbytes(a), file_nbytes = node->file->source.nbytes;
    if (begin != HADDR_UNDEF && (begin > file_nbytes || nbytes > file_nbytes - begin))
        return cm_fail(err, CM_EFORMAT,
                       "%s: variable %s: %" PRIu64 " bytes are said to lie at %" PRIu64
                       ", but the file ends at %" PRIu64,
                       node->file->path, a->name, nbytes, (uint64_t)begin, file_nbytes);
    if (begin != HADDR_UNDEF) {
        node->slab = (cm_slab){.source = node->file->data,
                               .begin = begin,
                               .row_stride = row_nbytes(a),
                               .itemsize = a->dtype.nbytes,
                               .swap = swap_unit(&a->dtype, node->dataset.big_endian)};
        node->var.stored_nbytes = nbytes;
    }
    use_slab(node);
    return make_grid(node, false, err);
}

static int prepare_chunked(cm_nc_node *node, cm_error *err)
{
    cm_array *a = &node->var.array;
    cm_h5_dataset *d = &node->dataset;
    cm_error why;
    int rc = make_grid(node, true, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_chain_create(d->codec, d->ncodecs, &a->dtype, a->rank, a->grid.chunk, &a->chain, &why);
    if (rc == CM_ENOMEM)
        return cm_fail(err, rc, "%s", why.text);
    if (rc != CM_OK)
        return use_library(node, why.text, err);
    rc = cm_nc_chunks_locate(node, &a->grid, &why);
    /* HDF5 walks a corrupt index for hours if it names nodes many times over. */
    if (rc != CM_OK && rc != CM_EUNSUPPORTED)
        return cm_fail(err, rc, "%s: variable %s: %s", node->file->path, a->name, why.text);
    if (rc != CM_OK && node->file->plain)
        return rc;
    if (rc != CM_OK) {
        /* Let HDF5 read indices that our own parser does not understand. */
        cm_chunk_index_release(&node->index);
        node->var.access_reason = cm_strdup(why.text, err);
        if (node->var.access_reason == NULL)
            return CM_ENOMEM;
        node->locked_dataset = H5Dopen2(node->file->h5, node->h5_path, H5P_DEFAULT);
        if (node->locked_dataset < 0)
            return cm_fail(err, CM_EFORMAT, "%s: variable %s: HDF5 cannot open the dataset again",
                           node->file->path, a->name);
    }
    cm_nc_use_chunks(node);
    return CM_OK;
}

/*
 * netCDF-C gives a dimension the length of its longest dataset, and fills past the end of shorter
 * ones with its own fill value.  Chunks give the same when the dataset ends with a whole chunk and
 * HDF5's fill value is netCDF-C's.
 */
static bool short_of_dimension(const cm_nc_node *node)
{
    const cm_array *a = &node->var.array;
    const cm_h5_dataset *d = &node->dataset;
    for (unsigned j = 0; j < a->rank; j++) {
        if (d->extent[j] == a->shape[j])
            continue;
        if (d->extent[j] > a->shape[j] || d->layout != H5D_CHUNKED ||
            d->extent[j] % d->chunk[j] != 0 || !node->has_nc_fill || a->fill == NULL ||
            memcmp(a->fill, node->nc_fill, a->dtype.nbytes) != 0)
            return true;
    }
    return false;
}

/* Why the elements must be read by netCDF-C; NULL: they need not. */
static const char *need_of_library(const cm_nc_node *node)
{
    const cm_h5_dataset *d = &node->dataset;
    if (node->file->library_only)
        return "as asked for";
    if (cm_dtype_is_vlen(&node->var.array.dtype))
        return d->text_nbytes ? "it holds strings"
                              : "strings of variable length lie outside their chunks";
    if (node->file->classic.version)
        return NULL;
    if (!d->known)
        return "HDF5 does not tell how it is stored";
    if (d->elsewhere)
        return "it is a link into another file";
    if (d->external)
        return "its bytes lie in external files";
    if (d->layout == H5D_VIRTUAL)
        return "it is a virtual dataset";
    if (d->layout == H5D_COMPACT)
        return "it is stored in its object header";
    if (!d->plain)
        return "its HDF5 type is stored in another form than it is read in";
    if (short_of_dimension(node))
        return "it is shorter than its unlimited dimension";
    if (d->layout == H5D_CHUNKED && d->codec == NULL)
        return d->codec_reason;
    return NULL;
}

/*
 * Contradicting lengths are damage: missing data would pass for fill values.  HDF5 checks the first
 * condition from 1.14 on; netCDF-C fails to read a dataset with the second.
 */
static int check_extent(const cm_nc_node *node, cm_error *err)
{
    const cm_array *a = &node->var.array;
    const cm_h5_dataset *d = &node->dataset;
    for (unsigned j = 0; d->known && j < a->rank; j++) {
        if (d->extent[j] > d->most[j])
            return cm_fail(err, CM_EFORMAT,
                           "%s: variable %s: the file is damaged: dimension %s has "
                           "length %" PRIu64 ", above its maximum of %" PRIu64,
                           node->file->path, a->name, a->dim_name[j], d->extent[j], d->most[j]);
        if (d->extent[j] < a->shape[j] && !node->var.unlimited[j])
            return cm_fail(err, CM_EFORMAT,
                           "%s: variable %s: dimension %s has a fixed length of %" PRIu64
                           ", of which the dataset holds %" PRIu64,
                           node->file->path, a->name, a->dim_name[j], a->shape[j], d->extent[j]);
    }
    return CM_OK;
}

static int prepare_locked(cm_nc_node *node, cm_error *err)
{
    int rc = check_extent(node, err);
    if (rc != CM_OK)
        return rc;
    const char *reason = need_of_library(node);
    if (reason != NULL)
        return use_library(node, reason, err);
    if (node->file->classic.version)
        return prepare_classic(node, err);
    return node->dataset.layout == H5D_CHUNKED ? prepare_chunked(node, err)
                                               : prepare_contiguous(node, err);
}

/* Libraries read through the page cache: with O_DIRECT refuse, rather than ignore it. */
static int check_io(const cm_nc_node *node, cm_error *err)
{
    cm_nc_access access = node->var.access;
    if (node->file->direct == NULL || access == CM_NC_CHUNK_INDEX || access == CM_NC_ARITHMETIC)
        return CM_OK;
    return cm_fail(err, CM_EUNSUPPORTED,
                   "%s: variable %s: is not read past the page cache, but through a library: %s",
                   node->file->path, node->var.array.name, node->var.access_reason);
}

int cm_nc_var_prepare(cm_nc_file *file, cm_nc_var *var, cm_error *err)
{
    cm_nc_node *node = (cm_nc_node *)var;
    if (node->prepared)
        return check_io(node, err);
    if (var->unsupported != NULL)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: variable %s: %s is not convertible", file->path,
                       var->array.name, var->unsupported);
    int rc;
    if (file->plain) {
        rc = prepare_locked(node, err);
    } else {
        cm_nc_lock();
        rc = prepare_locked(node, err);
        cm_nc_unlock();
    }
    node->prepared = rc == CM_OK;
    return rc != CM_OK ? rc : check_io(node, err);
}

/* Reads the first element, if libraries will read all. */
static void try_first_element(cm_nc_node *node)
{
    const cm_array *a = &node->var.array;
    cm_box box = {.rank = a->rank};
    for (unsigned j = 0; j < a->rank; j++) {
        box.shape[j] = 1;
        if (a->shape[j] == 0)
            return;
    }
    uint8_t element[16];
    if (cm_dtype_is_vlen(&a->dtype)) {
        cm_strings text;
        cm_strings_init(&text, 0);
        (void)cm_nc_read_library_strings(node->file, &node->var, &box, &text, NULL);
        cm_strings_release(&text);
    } else if (a->dtype.nbytes <= sizeof element) {
        (void)cm_nc_read_library(node->file, &node->var, &box, element, NULL);
    }
}

void cm_nc_var_try(cm_nc_node *node, bool reads)
{
    cm_h5_layout_message layout = {0};
    const cm_h5_dataset *d = &node->dataset;
    if (node->file->h5 < 0 || node->var.unsupported != NULL)
        return;
    bool library = need_of_library(node) != NULL;
    /* This project's reader of the older index needs no library, and may take a while. */
    bool ours = !library && d->layout == H5D_CHUNKED &&
                cm_h5_layout_read(&node->file->source, &node->file->super, d->header, &layout,
                                  &(cm_error){0}) == CM_OK &&
                (layout.index == CM_H5_INDEX_BTREE1 || layout.address == CM_H5_UNDEFINED);
    if (!ours && cm_nc_var_prepare(node->file, &node->var, &(cm_error){0}) == CM_OK && library &&
        reads)
        try_first_element(node);
}

const cm_codec_spec *cm_nc_var_codecs(const cm_nc_var *var, size_t *n)
{
    const cm_nc_node *node = (const cm_nc_node *)var;
    *n = var->array.chunked ? node->dataset.ncodecs : 0;
    return var->array.chunked ? node->dataset.codec : NULL;
}
