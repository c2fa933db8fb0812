/* Recognises the format of a path: the first format that accepts it. */

#include "format/dataset_impl.h"
#include "store/open.h"
#include "store/zip.h"

/*
 * Opens PATH for a survey without asking first what it is, so that a file is opened once.  *OUT
 * stays NULL where it is no file that begins like NetCDF, or has an error, which then shows again.
 */
static void open_at_once(const char *path, const cm_dataset_options *options, cm_dataset **out)
{
    cm_dataset_options o = *options;
    if (!o.plain || cm_store_url_is_remote(path) || cm_icechunk_path(path) != NULL ||
        cm_zip_is_name(path))
        return;
    o.recognises = true;
    if (cm_nc_dataset_open(path, &o, out, NULL) != CM_OK)
        *out = NULL;
}

int cm_dataset_open(const char *path, const char *node, const cm_dataset_options *options,
                    cm_dataset **out, cm_error *err)
{
    static const cm_dataset_options defaults;
    cm_place there;
    *out = NULL;
    const cm_dataset_options *o = options == NULL ? &defaults : options;
    if (o->store != NULL)
        return cm_zarr_dataset_open(path, node, o, out, err);
    open_at_once(path, o, out);
    if (*out != NULL)
        return CM_OK;
    int rc = cm_store_probe(path, &(cm_store_options){.net = o->net}, &there, err);
    if (rc != CM_OK)
        return rc;
    if (there == CM_PLACE_FOLDER)
        return cm_zarr_dataset_open(path, node, o, out, err);
    return cm_nc_dataset_open(path, o, out, err);
}
