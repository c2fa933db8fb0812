/*
 * The superblock of an HDF5 file: where the file begins and ends.
 *
 * Source: "HDF5 File Format Specification" version 3.0, II.A.
 */
#ifndef CM_FORMAT_NC_H5_SUPER_H
#define CM_FORMAT_NC_H5_SUPER_H

#include "format/nc/source.h"

typedef struct cm_h5_super {
    uint64_t base;          /* start of the file after any user block; addresses count from here */
    unsigned version;       /* 0 .. 3 */
    unsigned offset_nbytes; /* of an address in the file */
    unsigned length_nbytes; /* of a length in the file */
    uint64_t end;           /* one past the file's last byte, by its superblock */
    bool writing;           /* version 3: a program has, or had, it open for writing */
} cm_h5_super;

/* CM_ENOTFOUND when no place that is allowed has the signature. */
int cm_h5_super_read(const cm_source *source, cm_h5_super *out, cm_error *err);

/*
 * An address or a length of NBYTES (2, 4, 8) bytes; all bits set is UINT64_MAX whatever the
 * width.
 */
uint64_t cm_h5_load(const uint8_t *p, unsigned nbytes);

#define CM_H5_UNDEFINED UINT64_MAX

#endif
