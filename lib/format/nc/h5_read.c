#include "format/nc/h5_read.h"

#include "format/nc/h5_pipeline.h"

int cm_h5_check_filters(const cm_nc_node *node, hid_t dataset, cm_error *err)
{
    hid_t dcpl = H5Dget_create_plist(dataset);
    int n = dcpl >= 0 ? H5Pget_nfilters(dcpl) : 0;
    int missing = -1;
    for (int i = 0; i < n && missing < 0; i++) {
        size_t nvalues = 0;
        H5Z_filter_t id = H5Pget_filter2(dcpl, (unsigned)i, NULL, &nvalues, NULL, 0, NULL, NULL);
        if (id >= 0 && H5Zfilter_avail(id) <= 0)
            missing = id;
    }
    if (dcpl >= 0)
        H5Pclose(dcpl);
    if (missing < 0)
        return CM_OK;
    return cm_fail(err, CM_EUNSUPPORTED,
                   "%s: variable %s: netCDF-C lacks filter %s (%d), which a plugin in "
                   "HDF5_PLUGIN_PATH may add",
                   node->file->path, node->var.array.name, cm_h5_filter_name(missing), missing);
}

static int explain(const cm_nc_node *node, hid_t dataset, const cm_box *box, cm_error *err)
{
    int rc = cm_h5_check_filters(node, dataset, err);
    if (rc != CM_OK)
        return rc;
    char start[256], shape[256];
    return cm_fail(err, CM_EFORMAT, "%s: variable %s: box %s at %s cannot be read through HDF5",
                   node->file->path, node->var.array.name,
                   cm_shape_text(box->rank, box->shape, shape, sizeof shape),
                   cm_coord_text(box->rank, box->start, start, sizeof start));
}

int cm_h5_read(const cm_nc_node *node, hid_t dataset, hid_t memory_type, const cm_box *box,
               void *dst, cm_error *err)
{
    hsize_t start[CM_MAX_RANK], count[CM_MAX_RANK];
    for (unsigned j = 0; j < box->rank; j++) {
        start[j] = box->start[j];
        count[j] = box->shape[j];
    }
    hid_t file = H5Dget_space(dataset);
    hid_t memory =
        box->rank ? H5Screate_simple((int)box->rank, count, NULL) : H5Screate(H5S_SCALAR);
    bool good = file >= 0 && memory >= 0 &&
                (box->rank == 0 ||
                 H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0) &&
                H5Dread(dataset, memory_type, memory, file, H5P_DEFAULT, dst) >= 0;
    if (memory >= 0)
        H5Sclose(memory);
    if (file >= 0)
        H5Sclose(file);
    return good ? CM_OK : explain(node, dataset, box, err);
}
