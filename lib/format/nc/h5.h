/*
 * HDF5's header, with the calls of version 1.10 under their own names in every
 * later version.
 */
#ifndef CM_FORMAT_NC_H5_H
#define CM_FORMAT_NC_H5_H

#define H5_USE_110_API
#include <hdf5.h>

#endif
