/*
 * Property lists that netCDF-C opens with a file and never closes: one for each file up to and
 * including 4.9.0 (NC4_hdf5get_superblock in nc4info.c), which hold 1 to 5 KiB a file together
 * with the gaps that they leave.
 */
#ifndef CM_FORMAT_NC_FORGOTTEN_H
#define CM_FORMAT_NC_FORGOTTEN_H

#include "format/nc/h5.h"

enum {
    CM_NC_MOST_FORGOTTEN = 4 /* of one file */
};

typedef struct cm_nc_forgotten {
    hid_t list[CM_NC_MOST_FORGOTTEN];
    unsigned n;
} cm_nc_forgotten;

/*
 * After nc_open: the lists that are open and were made since MARK, which is one that was made
 * before (-1: nothing is looked for).  The caller holds the lock, here and below.
 */
void cm_nc_forgotten_find(hid_t mark, cm_nc_forgotten *out);
/* After nc_close: nobody needs what is still open. */
void cm_nc_forgotten_close(cm_nc_forgotten *f);

#endif
