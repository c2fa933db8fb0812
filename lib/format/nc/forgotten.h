/*
 * Property lists that netCDF-C leaks: one for each opened file up to and including 4.9.0
 * (NC4_hdf5get_superblock in nc4info.c), 1 to 5 KiB each with fragmentation.
 */
#ifndef CM_FORMAT_NC_FORGOTTEN_H
#define CM_FORMAT_NC_FORGOTTEN_H

#include "format/nc/h5.h"

enum {
    CM_NC_MOST_FORGOTTEN = 4 /* per file */
};

typedef struct cm_nc_forgotten {
    hid_t list[CM_NC_MOST_FORGOTTEN];
    unsigned n;
} cm_nc_forgotten;

/*
 * After nc_open: finds open lists made since MARK, a list made before (-1: do nothing).  The caller
 * holds the lock, here and below.
 */
void cm_nc_forgotten_find(hid_t mark, cm_nc_forgotten *out);
/* After nc_close: closes the lists that are still open. */
void cm_nc_forgotten_close(cm_nc_forgotten *f);

#endif
