/* Recognises the format of a path: the first format that accepts it. */

#include "format/dataset_impl.h"
#include "store/open.h"

int cm_dataset_open(const char *path, const char *node, const cm_dataset_options *options,
                    cm_dataset **out, cm_error *err)
{
    static const cm_dataset_options defaults;
    cm_place there;
    *out = NULL;
    const cm_dataset_options *o = options == NULL ? &defaults : options;
    if (o->store != NULL)
        return cm_zarr_dataset_open(path, node, o, out, err);
    int rc = cm_store_probe(path, &(cm_store_options){.net = o->net}, &there, err);
    if (rc != CM_OK)
        return rc;
    if (there == CM_PLACE_FOLDER)
        return cm_zarr_dataset_open(path, node, o, out, err);
    return cm_nc_dataset_open(path, o, out, err);
}
