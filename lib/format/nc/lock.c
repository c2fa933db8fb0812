#include "format/nc/lock.h"

#include <pthread.h>

#include "format/nc/h5.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* What HDF5 would do with errors outside; guarded by the mutex. */
static H5E_auto2_t outer_handler;
static void *outer_data;

void cm_nc_lock(void)
{
    pthread_mutex_lock(&mutex);
    /*
     * Before HDF5's first call: its clean-up at exit finds what a corrupt file left
     * open, and prints a page about it.  Nothing is open for writing.
     */
    H5dont_atexit();
    if (H5Eget_auto2(H5E_DEFAULT, &outer_handler, &outer_data) < 0)
        outer_handler = NULL;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void cm_nc_unlock(void)
{
    H5Eset_auto2(H5E_DEFAULT, outer_handler, outer_data);
    pthread_mutex_unlock(&mutex);
}
