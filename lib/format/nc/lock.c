#include "format/nc/lock.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/visible.h"
#include "format/nc/at_work.h"
#include "format/nc/h5.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* HDF5's error handler outside the lock; guarded by the mutex. */
static H5E_auto2_t outer_handler;
static void *outer_data;
static unsigned long ntimes;
static bool lacked_memory;

/* For at_work.h; a handler of signals reads them. */
static char worked_on[PATH_MAX + CM_VISIBLE_SIZE];
static atomic_bool is_held;
static pthread_t holder;

/*
 * Forks wait for the lock: a child forked while another thread holds it would find it locked for
 * ever.
 */
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
    /* Fails only if there is no memory for the list of handlers: then forks do not wait. */
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

void cm_nc_handle_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_forks);
}

static herr_t look_at_error(unsigned depth, const H5E_error2_t *error, void *lacked)
{
    (void)depth;
    if (error->min_num == H5E_NOSPACE || error->min_num == H5E_CANTALLOC)
        *(bool *)lacked = true;
    return 0;
}

/* Replaces HDF5's error printing, a page for each error. */
static herr_t hear_error(hid_t stack, void *lacked)
{
    (void)H5Ewalk2(stack, H5E_WALK_DOWNWARD, look_at_error, lacked);
    return 0;
}

bool cm_nc_lacked_memory(void)
{
    bool lacked = lacked_memory;
    lacked_memory = false;
    return lacked;
}

void cm_nc_lock(void)
{
    pthread_mutex_lock(&mutex);
    ntimes++;
    holder = pthread_self();
    atomic_store(&is_held, true);
    /*
     * Before HDF5's first call: its clean-up at exit finds objects that a corrupt file left open,
     * and prints a page about them.  No file is open for writing, so nothing is lost.
     */
    H5dont_atexit();
    if (H5Eget_auto2(H5E_DEFAULT, &outer_handler, &outer_data) < 0)
        outer_handler = NULL;
    H5Eset_auto2(H5E_DEFAULT, hear_error, &lacked_memory);
}

void cm_nc_unlock(void)
{
    H5Eset_auto2(H5E_DEFAULT, outer_handler, outer_data);
    atomic_store(&is_held, false);
    pthread_mutex_unlock(&mutex);
}

unsigned long cm_nc_times_locked(void)
{
    pthread_mutex_lock(&mutex);
    const unsigned long n = ntimes;
    pthread_mutex_unlock(&mutex);
    return n;
}

void cm_nc_work_on(const char *path)
{
    size_t at = 0, left = strlen(path);
    while (left > 0 && at < PATH_MAX) {
        char shown[CM_VISIBLE_SIZE];
        size_t nbytes, taken = cm_visible(path, left, shown, &nbytes);
        memcpy(worked_on + at, shown, nbytes);
        at += nbytes;
        path += taken;
        left -= taken;
    }
    worked_on[at] = '\0';
}

const char *cm_nc_at_work(bool *here)
{
    *here = atomic_load(&is_held) && pthread_equal(holder, pthread_self());
    return worked_on[0] != '\0' ? worked_on : NULL;
}
