/*
 * The lock of netCDF-C and HDF5.
 *
 * Neither library may be entered by two threads at once, and they share HDF5's
 * state, so one mutex of the process guards both.  It is the one mutable global
 * of this project: what it guards is global itself.
 */
#ifndef CM_FORMAT_NC_LOCK_H
#define CM_FORMAT_NC_LOCK_H

#include <stdbool.h>

/*
 * Not recursive.  Inside, HDF5 prints no error stacks; the caller's handler is put back on
 * unlock.
 */
void cm_nc_lock(void);
void cm_nc_unlock(void);
/*
 * The caller holds the lock.  Whether HDF5 found no memory for something since this was asked last:
 * netCDF-C takes what it could not read for what is not there.
 */
bool cm_nc_lacked_memory(void);
/* How often it was taken: whoever asks before and after knows whether libraries were asked. */
unsigned long cm_nc_times_locked(void);

/*
 * From now on forks wait for the lock, so that a child finds the libraries in one piece, and
 * the lock free.
 */
void cm_nc_handle_forks(void);

#endif
