#include "format/nc/lock.h"

#include <pthread.h>

#include "format/nc/h5.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* What HDF5 would do with errors outside; guarded by the mutex. */
static H5E_auto2_t outer_handler;
static void *outer_data;

/* A child forked while another thread uses the libraries would find the lock held for ever. */
static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

static void handle_forks(void)
{
    /* Only memory can lack, for a list of handlers: then forks stay as they were. */
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

void cm_nc_handle_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_forks);
}

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
