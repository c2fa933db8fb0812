/* Why a key belongs to nothing in a store. */
#ifndef CM_FORMAT_ZARR_FOREIGN_KEY_H
#define CM_FORMAT_ZARR_FOREIGN_KEY_H

#include "format/zarr/chunk_name.h"
#include "format/zarr/open.h"

/* KEY lies below no array; NULL: it is a document of a group of TREE. */
const char *cm_foreign_node_key(const cm_zarr_tree *tree, const char *key);
/* BELOW, relative to its array, is neither a chunk nor a document of it. */
const char *cm_foreign_chunk_key(const cm_chunk_names *names, const char *below);

#endif
