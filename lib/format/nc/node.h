/* Completes a variable whose name, type and dataset are known, whoever read them. */
#ifndef CM_FORMAT_NC_NODE_H
#define CM_FORMAT_NC_NODE_H

#include "format/nc/file.h"

/* Sets its NDIMS dimensions, by their numbers in the file. */
int cm_nc_node_shape(cm_nc_node *node, const int *id, int ndims, cm_error *err);
/* Checks the dataset against the shape. */
int cm_nc_node_match(cm_nc_node *node, cm_error *err);
bool cm_nc_node_is_coordinate(const cm_nc_node *node);
/* Sets the value of unwritten elements.  Needs the attributes and nc_fill. */
int cm_nc_node_fill(cm_nc_node *node, cm_error *err);

#endif
