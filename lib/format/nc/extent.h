/*
 * Boxes of datasets that end before their dimensions do.
 *
 * netCDF-C gives an unlimited dimension the length of its longest dataset; what
 * shorter ones lack is the fill value.  It puts that value in the right place
 * only where a dataset is short along its first dimension (up to and including
 * version 4.10.1: elsewhere what was read stays packed at the start of the
 * buffer and the end of the buffer is not set).  So only what lies inside the
 * dataset is asked for, and put in its place here.
 */
#ifndef CM_FORMAT_NC_EXTENT_H
#define CM_FORMAT_NC_EXTENT_H

#include "model/box.h"

/*
 * The part of BOX that lies in an array of shape EXTENT; false, and *OUT empty, where nothing
 * does.
 */
bool cm_extent_clip(const cm_box *box, const uint64_t *extent, cm_box *out);

/* Where element I of PART lies in BOX, both counted in C order.  PART begins where BOX does. */
uint64_t cm_extent_place(const cm_box *box, const cm_box *part, uint64_t i);

/*
 * DATA has room for the elements of BOX and begins with those of PART, without
 * gaps.  Moves each to its place, and sets all others to FILL.
 */
void cm_extent_spread(const cm_box *box, const cm_box *part, size_t itemsize, const void *fill,
                      void *data);

#endif
