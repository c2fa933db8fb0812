/* What only a dataset that is a Zarr store has; all borrowed from it. */
#ifndef CM_FORMAT_ZARR_DATASET_H
#define CM_FORMAT_ZARR_DATASET_H

#include "format/dataset.h"
#include "format/zarr/open.h"

/* All nodes, and how many files belong to none of them. */
const cm_zarr_tree *cm_zarr_dataset_tree(const cm_dataset *ds);
/* Where a node's own document and consolidated metadata say different things. */
const cm_zarr_conflicts *cm_zarr_dataset_conflicts(const cm_dataset *ds);

#endif
