/*
 * NetCDF's types, atomic and user-defined, as element types.
 */
#ifndef CM_FORMAT_NC_TYPES_H
#define CM_FORMAT_NC_TYPES_H

#include <netcdf.h>

#include "model/dtype.h"

typedef struct cm_nc_type {
    cm_dtype dtype; /* NC_STRING: variable-length; types without an element type: raw bytes */
    nc_type base;   /* the atomic type, of an enum its base; NC_NAT: none */
    bool is_enum;
    size_t nmembers;                    /* of an enum */
    char unsupported[NC_MAX_NAME + 32]; /* "compound type obs_t"; "": supported */
} cm_nc_type;

/* netCDF's default fill of an atomic type of fixed size; false for others. */
bool cm_nc_default_fill(nc_type type, void *out);

/* The caller holds the lock. */
int cm_nc_type_inquire(int ncid, nc_type type, cm_nc_type *out, cm_error *err);

#endif
