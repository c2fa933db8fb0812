#include "format/nc/preflight.h"

#include <fcntl.h>
#include <netcdf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/nc/file.h"
#include "format/nc/lock.h"

enum {
    /* Opening a file of 10,000 variables and 20 MB takes 2 s. */
    BASE_CPU_S = 20,
    BYTES_A_CPU_S = 1 << 20,
    MAX_CPU_S = 600
};

/* What metadata take is held by the parent as well; 1,000 groups and variables take 10 MB. */
#define MEMORY (UINT64_C(4) << 30)

void cm_nc_trial_limits(const char *path, bool (*canceled)(void *context), void *context,
                        cm_trial_limits *out)
{
    struct stat st;
    uint64_t seconds = BASE_CPU_S;
    if (stat(path, &st) == 0 && st.st_size > 0)
        seconds += (uint64_t)st.st_size / BYTES_A_CPU_S;
    *out = (cm_trial_limits){.cpu_s = seconds < MAX_CPU_S ? (unsigned)seconds : MAX_CPU_S,
                             .memory = MEMORY,
                             .canceled = canceled,
                             .context = context};
}

/* For the sentence: classic files are netCDF-C's own, all others go through HDF5. */
static const char *library_of(const char *path)
{
    char magic[3] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return "libhdf5";
    ssize_t n = pread(fd, magic, sizeof magic, 0);
    close(fd);
    return n == sizeof magic && memcmp(magic, "CDF", sizeof magic) == 0 ? "libnetcdf" : "libhdf5";
}

int cm_nc_trial_failed(const char *path, const cm_trial_limits *limits, const cm_trial_fate *fate,
                       cm_error *err)
{
    const char *library = library_of(path);
    switch (fate->end) {
    case CM_TRIAL_RETURNED:
    case CM_TRIAL_NONE:
        return CM_OK;
    case CM_TRIAL_CANCELED:
        return cm_fail(err, CM_ECANCELED, "%s: stopped by request", path);
    case CM_TRIAL_ENDLESS:
        return cm_fail(err, CM_EFORMAT,
                       "%s: %s does not finish opening it (gave up after %u s of CPU time); the "
                       "file is damaged",
                       path, library, limits->cpu_s);
    case CM_TRIAL_CRASHED:
        break;
    }
    if (fate->signal == SIGKILL) /* not ours: the kernel's, when memory is out */
        return cm_fail(err, CM_EFORMAT,
                       "%s: the process that opened it was killed (signal 9); the file is damaged, "
                       "or memory is short",
                       path);
    if (fate->signal == 0)
        return cm_fail(err, CM_EFORMAT,
                       "%s: %s ended the process that opened it; the file is damaged", path,
                       library);
    return cm_fail(err, CM_EFORMAT,
                   "%s: %s crashed while opening it (signal %d); the file is damaged", path,
                   library, fate->signal);
}

static int open_and_ask(void *context, cm_buf *record, cm_error *err)
{
    cm_nc_file *file = NULL;
    (void)record;
    int rc = cm_nc_open(context, &(cm_nc_options){0}, &file, err);
    /*
     * Which variables are wanted is not known here: what is wrong with one is told when it is
     * prepared.
     */
    for (size_t i = 0; rc == CM_OK && i < file->nnodes; i++)
        cm_nc_var_try(&file->node[i]);
    return rc; /* the process ends: closing, which crashes on some files, is left out */
}

int cm_nc_preflight(const char *path, bool (*canceled)(void *context), void *context, cm_error *err)
{
    cm_trial_limits limits;
    cm_trial_fate fate;
    char *copy = cm_strdup(path, err);
    if (copy == NULL)
        return CM_ENOMEM;
    cm_nc_handle_forks();
    /* Once for both: that the libraries begin takes as long as opening a small file. */
    cm_nc_lock();
    bool begun = H5open() >= 0 && nc_initialize() == NC_NOERR;
    cm_nc_unlock();
    if (!begun) {
        free(copy);
        return cm_fail(err, CM_ENOMEM, "netCDF-C and HDF5 cannot begin");
    }
    cm_nc_trial_limits(path, canceled, context, &limits);
    int rc = cm_trial_run(open_and_ask, copy, &limits, NULL, &fate, err);
    free(copy);
    return rc == CM_OK ? cm_nc_trial_failed(path, &limits, &fate, err) : rc;
}
