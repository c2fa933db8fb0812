/* Properties that only a Zarr dataset has; all borrowed from it. */
#ifndef CM_FORMAT_ZARR_DATASET_H
#define CM_FORMAT_ZARR_DATASET_H

#include "format/dataset.h"
#include "format/zarr/open.h"

/* All nodes, and the number of files that belong to none of them. */
const cm_zarr_tree *cm_zarr_dataset_tree(const cm_dataset *ds);
/* Contradictions between nodes' own documents and consolidated metadata. */
const cm_zarr_conflicts *cm_zarr_dataset_conflicts(const cm_dataset *ds);

/*
 * The number that readers of the array M take for missing, into OUT, 8 bytes, little-endian; false:
 * none.  xarray's rule: fill_value in version 2, unless it is null, and the attribute _FillValue in
 * version 3, where fill_value is only the content of absent chunks.
 */
bool cm_zarr_missing(const cm_zarr_meta *m, uint8_t *out);

#endif
