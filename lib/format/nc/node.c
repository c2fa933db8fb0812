#include "format/nc/node.h"
#include "base/number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

int cm_nc_node_shape(cm_nc_node *node, const int *id, int ndims, cm_error *err)
{
    cm_array *a = &node->var.array;
    uint64_t nbytes = a->dtype.nbytes ? a->dtype.nbytes : 1;
    for (int j = 0; j < ndims; j++) {
        if (id[j] < 0) /* 4.9.3 loses dimensions without a scale if another has one */
            return cm_fail(err, CM_EFORMAT,
                           "%s: variable %s: netCDF-C knows no dimension for its axis %d",
                           node->file->path, a->name, j + 1);
        if ((size_t)id[j] >= node->file->ndims || node->file->dim[id[j]].name == NULL)
            return cm_fail(err, CM_EFORMAT, "%s: variable %s: dimension %d is not there",
                           node->file->path, a->name, id[j]);
        const cm_nc_dim_info *dim = &node->file->dim[id[j]];
        a->dim_name[j] = cm_strdup(dim->name, err);
        if (a->dim_name[j] == NULL)
            return CM_ENOMEM;
        a->shape[j] = dim->length;
        a->rank = (unsigned)j + 1;
        node->var.unlimited[j] = dim->unlimited;
        /* A zero elsewhere makes the array empty, but strides are computed all the same. */
        if (!cm_mul_u64(nbytes, dim->length ? dim->length : 1, &nbytes) || nbytes > INT64_MAX)
            return cm_fail(err, CM_EFORMAT, "%s: variable %s: its size does not fit 64 bits",
                           node->file->path, a->name);
    }
    return CM_OK;
}

bool cm_nc_node_is_coordinate(const cm_nc_node *node)
{
    const cm_array *a = &node->var.array;
    return a->rank == 1 && strcmp(a->dim_name[0], cm_path_last(a->name)) == 0;
}

int cm_nc_node_fill(cm_nc_node *node, cm_error *err)
{
    cm_array *a = &node->var.array;
    const cm_h5_dataset *d = &node->dataset;
    if (cm_dtype_is_vlen(&a->dtype)) {
        if (a->fill_text != NULL && d->fill_text == NULL) /* known only from the attribute */
            return CM_OK;
        free(a->fill_text);
        a->fill_text = cm_strdup(d->fill_text != NULL ? d->fill_text : "", err);
        return a->fill_text != NULL ? CM_OK : CM_ENOMEM;
    }
    if (d->known ? d->fill == CM_H5_FILL_UNDEFINED : !node->has_nc_fill)
        return CM_OK;
    a->fill = cm_calloc(a->dtype.nbytes, 1, err);
    if (a->fill == NULL)
        return CM_ENOMEM;
    if (!d->known)
        memcpy(a->fill, node->nc_fill, a->dtype.nbytes);
    else if (d->fill == CM_H5_FILL_VALUE)
        memcpy(a->fill, d->fill_value, a->dtype.nbytes);
    return CM_OK;
}

/*
 * A dataset may be longer than a dimension of fixed length: netCDF-C reads up to the dimension's
 * end.
 */
static int warn_of_longer(const cm_nc_node *node, cm_error *err)
{
    const cm_array *a = &node->var.array;
    const cm_h5_dataset *d = &node->dataset;
    for (unsigned j = 0; d->known && j < a->rank; j++)
        if (d->extent[j] > a->shape[j] && d->extent[j] <= d->most[j])
            return cm_nc_warn(
                node->file, err,
                "variable %s: its dataset has %" PRIu64 " %s along %s, which is %" PRIu64
                " long: elements past that length are left out",
                a->name, d->extent[j], cm_of_count(d->extent[j], "element", "elements"),
                a->dim_name[j], a->shape[j]);
    return CM_OK;
}

static int warn_of_absent(const cm_nc_node *node, cm_error *err)
{
    return node->dataset.absent_source == NULL
               ? CM_OK
               : cm_nc_warn(node->file, err,
                            "variable %s: it is a virtual dataset, and its source %s is not there: "
                            "HDF5 reads the fill value for what that file holds, unless "
                            "HDF5_VDS_PREFIX names its folder",
                            node->var.array.name, node->dataset.absent_source);
}

int cm_nc_node_match(cm_nc_node *node, cm_error *err)
{
    cm_nc_var *v = &node->var;
    cm_h5_dataset *d = &node->dataset;
    if (d->known && d->rank != v->array.rank) /* never seen in practice; left to netCDF-C */
        cm_h5_dataset_release(d);
    v->has_source_chunks = d->known && d->layout == H5D_CHUNKED;
    if (v->has_source_chunks)
        memcpy(v->source_chunk, d->chunk, sizeof v->source_chunk);
    int rc = warn_of_absent(node, err);
    return rc == CM_OK ? warn_of_longer(node, err) : rc;
}
