/*
 * A variable of which name, type and dataset are known: what follows from them, whoever read
 * them.
 */
#ifndef CM_FORMAT_NC_NODE_H
#define CM_FORMAT_NC_NODE_H

#include "format/nc/file.h"

/* Its NDIMS dimensions, by their numbers in the file. */
int cm_nc_node_shape(cm_nc_node *node, const int *id, int ndims, cm_error *err);
/* Holds the dataset against the shape. */
int cm_nc_node_match(cm_nc_node *node, cm_error *err);
bool cm_nc_node_is_coordinate(const cm_nc_node *node);
/* What unwritten elements are.  The attributes were read, and nc_fill is set. */
int cm_nc_node_fill(cm_nc_node *node, cm_error *err);

#endif
