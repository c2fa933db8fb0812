#include <inttypes.h>
#include <netcdf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/nc/extent.h"
#include "format/nc/file.h"
#include "format/nc/fixed_text.h"
#include "format/nc/h5_read.h"
#include "format/nc/lock.h"
#include "format/nc/reader.h"

static int check_filters(const cm_nc_node *node, cm_error *err)
{
    if (node->file->h5 < 0 || node->h5_path == NULL)
        return CM_OK;
    hid_t dataset = H5Dopen2(node->file->h5, node->h5_path, H5P_DEFAULT);
    if (dataset < 0)
        return CM_OK;
    int rc = cm_h5_check_filters(node, dataset, err);
    H5Dclose(dataset);
    return rc;
}

static int failed(const cm_nc_node *node, const cm_box *box, int rc, cm_error *err)
{
    char start[256], shape[256];
    if (rc != NC_ENOMEM && check_filters(node, err) != CM_OK)
        return CM_EUNSUPPORTED;
    cm_status status = rc == NC_ENOMEM                          ? CM_ENOMEM
                       : rc == NC_EFILTER || rc == NC_ENOFILTER ? CM_EUNSUPPORTED
                                                                : CM_EFORMAT;
    return cm_fail(err, status, "%s: variable %s: box %s at %s cannot be read through netCDF-C: %s",
                   node->file->path, node->var.array.name,
                   cm_shape_text(box->rank, box->shape, shape, sizeof shape),
                   cm_coord_text(box->rank, box->start, start, sizeof start), nc_strerror(rc));
}

static void set_ranges(const cm_box *box, size_t *start, size_t *count)
{
    for (unsigned j = 0; j < box->rank; j++) {
        start[j] = box->start[j];
        count[j] = box->shape[j];
    }
}

/* HDF5 refuses to read a dataset that has neither data nor a fill value. */
static bool is_unwritten(const cm_nc_node *node)
{
    if (!node->dataset.known)
        return false;
    hid_t dataset = H5Dopen2(node->file->h5, node->h5_path, H5P_DEFAULT);
    if (dataset < 0)
        return false;
    bool unwritten = H5Dget_storage_size(dataset) == 0;
    H5Dclose(dataset);
    return unwritten;
}

/* The part of BOX inside the dataset, if its extent is known. */
static bool clip(const cm_nc_node *node, const cm_box *box, cm_box *inside)
{
    if (node->dataset.known)
        return cm_extent_clip(box, node->dataset.extent, inside);
    *inside = *box;
    return true;
}

static int read_through_hdf5(cm_nc_node *node, hid_t memory_type, const cm_box *box, void *dst,
                             cm_error *err)
{
    hid_t dataset = H5Dopen2(node->file->h5, node->h5_path, H5P_DEFAULT);
    if (dataset < 0)
        return failed(node, box, NC_EHDFERR, err);
    int rc = cm_h5_read(node, dataset, memory_type, box, dst, err);
    H5Dclose(dataset);
    return rc;
}

/* Reads the integers: HDF5 converts enumerations only to enumerations. */
static int read_enumeration(cm_nc_node *node, const cm_box *box, void *dst, cm_error *err)
{
    hid_t dataset = H5Dopen2(node->file->h5, node->h5_path, H5P_DEFAULT);
    hid_t type = dataset >= 0 ? H5Dget_type(dataset) : -1;
    hid_t native = type >= 0 ? H5Tget_native_type(type, H5T_DIR_ASCEND) : -1;
    int rc = native < 0 || H5Tget_size(native) != node->var.array.dtype.nbytes
                 ? failed(node, box, NC_EHDFERR, err)
                 : cm_h5_read(node, dataset, native, box, dst, err);
    if (native >= 0)
        H5Tclose(native);
    if (type >= 0)
        H5Tclose(type);
    if (dataset >= 0)
        H5Dclose(dataset);
    return rc;
}

static int read_inside(cm_nc_node *node, const cm_box *box, void *dst, cm_error *err)
{
    const cm_array *a = &node->var.array;
    size_t start[CM_MAX_RANK + 1] = {0}, count[CM_MAX_RANK + 1] = {0};
    set_ranges(box, start, count);
    /* HDF5 leaves unwritten elements without a fill value unchanged. */
    if (a->fill == NULL) {
        memset(dst, 0, (size_t)cm_box_nelem(box) * a->dtype.nbytes);
        if (is_unwritten(node))
            return CM_OK;
    }
    if (node->dataset.small_float)
        /*
         * HDF5 since 1.14.4 has a native type for these floats, which netCDF-C (4.9.3) takes for
         * text.
         */
        return read_through_hdf5(node, H5T_NATIVE_FLOAT, box, dst, err);
    if (node->hdf5_only)
        return read_enumeration(node, box, dst, err);
    int rc = nc_get_vara(node->ncid, node->varid, start, count, dst);
    return rc != CM_OK ? failed(node, box, rc, err) : CM_OK;
}

static int read_box_locked(cm_nc_node *node, const cm_box *box, void *dst, cm_error *err)
{
    cm_box inside;
    int rc = clip(node, box, &inside) ? read_inside(node, &inside, dst, err) : CM_OK;
    if (rc == CM_OK && !cm_box_equal(box, &inside))
        cm_extent_spread(box, &inside, node->var.array.dtype.nbytes, node->nc_fill, dst);
    return rc;
}

static int read_node(cm_nc_node *node, const cm_box *box, void *dst, cm_error *err)
{
    if (cm_dtype_is_vlen(&node->var.array.dtype) || node->var.unsupported != NULL)
        return cm_fail(err, CM_EINTERNAL,
                       "%s: variable %s: read as numbers, which it does not hold", node->file->path,
                       node->var.array.name);
    if (cm_box_nelem(box) == 0)
        return CM_OK;
    if (node->file->plain)
        return cm_fail(err, CM_EINTERNAL, "%s: was opened without a library", node->file->path);
    if (node->file->reader != NULL)
        return cm_nc_reader_box(node, box, dst, err);
    cm_nc_lock();
    int rc = read_box_locked(node, box, dst, err);
    cm_nc_unlock();
    return rc;
}

/* Reads the strings of INSIDE, a part of BOX, to their places in OUT. */
static int read_strings_inside(cm_nc_node *node, const cm_box *box, const cm_box *inside,
                               cm_strings *out, cm_error *err)
{
    size_t start[CM_MAX_RANK + 1] = {0}, count[CM_MAX_RANK + 1] = {0};
    size_t nelem = (size_t)cm_box_nelem(inside);
    char **text = cm_calloc(nelem, sizeof *text, err);
    if (text == NULL)
        return CM_ENOMEM;
    set_ranges(inside, start, count);
    int nc = nc_get_vara_string(node->ncid, node->varid, start, count, text);
    if (nc != NC_NOERR) {
        free(text);
        return failed(node, inside, nc, err);
    }
    int rc = CM_OK;
    for (size_t i = 0; i < nelem && rc == CM_OK; i++)
        if (text[i] != NULL) /* NULL: unwritten, equal to "" */
            rc = cm_strings_set(out, (size_t)cm_extent_place(box, inside, i), text[i],
                                strlen(text[i]), err);
    nc_free_string(nelem, text);
    free(text);
    return rc;
}

/* Fills the strings of BOX past the end of the dataset. */
static int fill_strings_outside(const cm_nc_node *node, const cm_box *box, const cm_box *inside,
                                cm_strings *out, cm_error *err)
{
    const char *fill = node->var.array.fill_text;
    size_t nbytes = strlen(fill);
    uint64_t inner = cm_box_nelem(inside), i = 0;
    /* Place of element I of INSIDE, which begins where BOX does. */
    uint64_t next = inner ? 0 : UINT64_MAX;
    int rc = CM_OK;
    for (size_t place = 0; place < out->nelem && nbytes && rc == CM_OK; place++) {
        if (place != next)
            rc = cm_strings_set(out, place, fill, nbytes, err);
        else
            next = ++i < inner ? cm_extent_place(box, inside, i) : UINT64_MAX;
    }
    return rc;
}

static int read_strings_locked(cm_nc_node *node, const cm_box *box, cm_strings *out, cm_error *err)
{
    cm_box inside;
    int rc = CM_OK;
    if (clip(node, box, &inside))
        rc = node->dataset.text_nbytes ? cm_fixed_text_read(node, box, &inside, out, err)
                                       : read_strings_inside(node, box, &inside, out, err);
    if (rc == CM_OK && !cm_box_equal(box, &inside))
        rc = fill_strings_outside(node, box, &inside, out, err);
    return rc;
}

static int read_node_strings(cm_nc_node *node, const cm_box *box, cm_strings *out, cm_error *err)
{
    if (!cm_dtype_is_vlen(&node->var.array.dtype))
        return cm_fail(err, CM_EINTERNAL,
                       "%s: variable %s: read as strings, which it does not hold", node->file->path,
                       node->var.array.name);
    size_t nelem = (size_t)cm_box_nelem(box);
    int rc = cm_strings_reset(out, nelem, err);
    if (rc != CM_OK || nelem == 0)
        return rc;
    if (node->file->reader != NULL)
        return cm_nc_reader_strings(node, box, out, err);
    cm_nc_lock();
    rc = read_strings_locked(node, box, out, err);
    cm_nc_unlock();
    return rc;
}

static int read_box(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    return read_node((cm_nc_node *)a, box, dst, err);
}

static int read_strings(cm_array *a, const cm_box *box, cm_strings *out, cm_error *err)
{
    return read_node_strings((cm_nc_node *)a, box, out, err);
}

void cm_nc_use_library(cm_nc_node *node)
{
    static const cm_array_ops fixed = {.read_box = read_box};
    static const cm_array_ops strings = {.read_strings = read_strings};
    cm_array *a = &node->var.array;
    a->ops = cm_dtype_is_vlen(&a->dtype) ? &strings : &fixed;
    a->chunked = false;
    a->serial = true;
    node->var.access = CM_NC_LIBRARY;
}

int cm_nc_read_library(cm_nc_file *file, cm_nc_var *var, const cm_box *box, void *dst,
                       cm_error *err)
{
    (void)file;
    return read_node((cm_nc_node *)var, box, dst, err);
}

int cm_nc_read_library_strings(cm_nc_file *file, cm_nc_var *var, const cm_box *box, cm_strings *out,
                               cm_error *err)
{
    (void)file;
    return read_node_strings((cm_nc_node *)var, box, out, err);
}

/* Set once, from "4.9.0 of Jun  2 2023 01:44:39 $". */
static char netcdf_version[32];

static void set_netcdf_version(void)
{
    const char *text = nc_inq_libvers();
    snprintf(netcdf_version, sizeof netcdf_version, "%.*s", (int)strcspn(text, " "), text);
}

const char *cm_nc_netcdf_version(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_netcdf_version);
    return netcdf_version;
}

void cm_nc_hdf5_version(char *buf, size_t size)
{
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    snprintf(buf, size, "%u.%u.%u", major, minor, release);
}
