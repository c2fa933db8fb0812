/*
 * Boxes that reach past the end of a dataset that is shorter than its dimensions.
 *
 * netCDF-C gives an unlimited dimension the length of its longest dataset; shorter ones are
 * extended by the fill value.  netCDF-C places that value correctly only where a dataset is short
 * along its first dimension (up to and including version 4.10.1: elsewhere the elements read stay
 * packed at the start of the buffer and its end is not set).  So only the part inside the dataset
 * is read, and its elements are moved to their places here.
 */
#ifndef CM_FORMAT_NC_EXTENT_H
#define CM_FORMAT_NC_EXTENT_H

#include "model/box.h"

/*
 * Intersects BOX with an array of shape EXTENT; false, and *OUT empty, if there is no intersection.
 */
bool cm_extent_clip(const cm_box *box, const uint64_t *extent, cm_box *out);

/* Index in BOX of element I of PART, both in C order.  PART begins where BOX does. */
uint64_t cm_extent_place(const cm_box *box, const cm_box *part, uint64_t i);

/*
 * DATA has room for BOX and begins with the elements of PART, without gaps.  Moves each to its
 * place in BOX, and sets all others to FILL.
 */
void cm_extent_spread(const cm_box *box, const cm_box *part, size_t itemsize, const void *fill,
                      void *data);

#endif
