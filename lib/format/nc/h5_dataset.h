/*
 * Properties of a dataset that netCDF-C does not show: its layout, its fill value, its filters, and
 * whether its elements can be read without HDF5.
 */
#ifndef CM_FORMAT_NC_H5_DATASET_H
#define CM_FORMAT_NC_H5_DATASET_H

#include "codec/codec.h"
#include "format/nc/h5.h"

/* HDF5 converts floats of up to so many bytes to float32 exactly. */
enum {
    CM_H5_SMALL_FLOAT_NBYTES = 2
};

typedef enum cm_h5_fill {
    CM_H5_FILL_UNDEFINED, /* unwritten elements have no value */
    CM_H5_FILL_ZERO,
    CM_H5_FILL_VALUE
} cm_h5_fill;

typedef struct cm_h5_dataset {
    bool known;       /* HDF5 could describe it; otherwise only no_elements is set */
    bool no_elements; /* its dataspace is H5S_NULL, which has no counterpart in arrays */
    H5D_layout_t layout;
    unsigned rank;
    uint64_t extent[CM_MAX_RANK]; /* current; netCDF-C's dimension may be longer */
    uint64_t most[CM_MAX_RANK];   /* maximum; UINT64_MAX: unlimited */
    uint64_t chunk[CM_MAX_RANK];  /* chunked layout */
    uint64_t header;              /* address of the object header, from the file's base */
    bool elsewhere;               /* an external link leads to another file */
    bool external;                /* its bytes lie in other files */
    bool plain; /* elements are two's complement integers, IEEE numbers or single characters */
    bool big_endian;
    bool small_float;      /* floats of at most 16 bits, which netCDF-C takes for text */
    size_t text_nbytes;    /* of each string of fixed length; else 0 */
    bool edges_unfiltered; /* partial chunks at the edge did not pass through the filters */
    cm_h5_fill fill;
    uint8_t fill_value[16]; /* CM_H5_FILL_VALUE of fixed-size types */
    char *fill_text;        /* CM_H5_FILL_VALUE of strings; owned */
    cm_codec_spec *codec;   /* NULL when a filter has no codec here; owned */
    size_t ncodecs;
    char *codec_reason;  /* why; owned */
    char *absent_source; /* a file with elements of a virtual dataset that is not there; owned */
} cm_h5_dataset;

/*
 * Describes the dataset at PATH, whose elements netCDF-C gives as TYPE.  If HDF5 cannot describe
 * it, OUT->known is false; only missing memory is an error.  The caller holds the lock.
 */
int cm_h5_dataset_describe(hid_t file, const char *path, const cm_dtype *type, cm_h5_dataset *out,
                           cm_error *err);
void cm_h5_dataset_release(cm_h5_dataset *d);

#endif
