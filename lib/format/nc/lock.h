/*
 * The lock of netCDF-C and HDF5.
 *
 * Neither library may be entered by two threads at once, and they share HDF5's state, so one mutex
 * of the process guards both.  It is the project's one mutable global, as the state it guards is
 * global itself.
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
 * Whether HDF5 ran out of memory since the last call: netCDF-C treats whatever it could not read as
 * absent.  The caller holds the lock.
 */
bool cm_nc_lacked_memory(void);
/* How often the lock was taken: a difference between two calls shows that a library was used. */
unsigned long cm_nc_times_locked(void);

/*
 * From now on forks wait for the lock, so that a child finds the libraries consistent and the lock
 * free.
 */
void cm_nc_handle_forks(void);

#endif
