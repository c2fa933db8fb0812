#include "format/nc/trial.h"

#include <fcntl.h>
#include <hdf5.h>
#include <inttypes.h>
#include <netcdf.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/nc/lock.h"

enum {
    /* Opening a file of 10,000 variables and 20 MB takes 2 s. */
    BASE_CPU_S = 10,
    BYTES_A_CPU_S = 1 << 20,
    MAX_CPU_S = 600,
    /* Slow storage needs its time: a tape, a server that is restarting. */
    WALL_S_A_CPU_S = 60
};

/* The parent holds the metadata as well; 1,000 groups and variables take 10 MB. */
#define MEMORY (UINT64_C(4) << 30)
/* Minimum for any limit: enough for the libraries to open a file of some hundred variables. */
#define LEAST_METADATA (UINT64_C(32) << 20)

void cm_nc_trial_limits(const char *path, uint64_t memory, bool (*canceled)(void *context),
                        void *context, cm_trial_limits *out)
{
    struct stat st;
    uint64_t seconds = BASE_CPU_S;
    if (stat(path, &st) == 0 && st.st_size > 0)
        seconds += (uint64_t)st.st_size / BYTES_A_CPU_S;
    const unsigned cpu_s = seconds < MAX_CPU_S ? (unsigned)seconds : MAX_CPU_S;
    *out = (cm_trial_limits){.cpu_s = cpu_s,
                             .wall_s = cpu_s * WALL_S_A_CPU_S,
                             .memory = MEMORY,
                             .data = memory == 0                   ? 0
                                     : memory / 2 > LEAST_METADATA ? memory / 2
                                                                   : LEAST_METADATA,
                             .canceled = canceled,
                             .context = context};
}

/* For messages: netCDF-C itself reads classic files, all others go through HDF5. */
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

static int starved(const char *path, const char *doing, const cm_trial_limits *limits,
                   cm_error *err)
{
    return cm_fail(err, CM_EBUDGET,
                   "%s: its metadata do not fit the memory: %s takes more than the %" PRIu64
                   " MiB that there are for them; raise `memory`",
                   path, doing, limits->data >> 20);
}

int cm_nc_trial_judge(int rc, const char *path, const cm_trial_limits *limits,
                      const cm_trial_fate *fate, cm_error *err)
{
    if (rc == CM_OK)
        return cm_nc_trial_failed(path, "opening it", limits, fate, err);
    return fate->starved ? starved(path, "opening it", limits, err) : rc;
}

int cm_nc_trial_failed(const char *path, const char *doing, const cm_trial_limits *limits,
                       const cm_trial_fate *fate, cm_error *err)
{
    switch (fate->end) {
    case CM_TRIAL_RETURNED:
    case CM_TRIAL_NONE:
        return CM_OK;
    case CM_TRIAL_CANCELED:
        return cm_fail(err, CM_ECANCELED, "%s: stopped by request", path);
    case CM_TRIAL_ENDLESS:
        return cm_fail(err, CM_EFORMAT,
                       "%s: %s does not finish %s (gave up after %u s of CPU time); the "
                       "file is damaged",
                       path, library_of(path), doing, limits->cpu_s);
    case CM_TRIAL_LATE: /* do not examine the file: reading it could hang, too */
        return cm_fail(err, CM_EIO,
                       "%s: %s did not come to an end in %u min: its storage does not answer; "
                       "see that it can be read, and run again",
                       path, doing, limits->wall_s / 60);
    case CM_TRIAL_CRASHED:
        break;
    }
    if (fate->starved)
        return starved(path, doing, limits, err);
    const char *library = library_of(path);
    if (fate->signal == SIGKILL) /* not sent by us: the kernel's, when memory runs out */
        return cm_fail(err, CM_EFORMAT,
                       "%s: the process that was %s was killed (signal 9); the file is damaged, "
                       "or memory is short",
                       path, doing);
    if (fate->signal == 0 && limits->data > 0)
        return cm_fail(err, CM_EFORMAT,
                       "%s: %s ended the process that was %s; the file is damaged, or its metadata "
                       "take more than the %" PRIu64 " MiB that the limit of memory leaves it",
                       path, library, doing, limits->data >> 20);
    if (fate->signal == 0)
        return cm_fail(err, CM_EFORMAT, "%s: %s ended the process that was %s; the file is damaged",
                       path, library, doing);
    return cm_fail(err, CM_EFORMAT, "%s: %s crashed while %s (signal %d); the file is damaged",
                   path, library, doing, fate->signal);
}

int cm_nc_trial_begin(cm_error *err)
{
    cm_nc_handle_forks();
    /* One lock for both: initialising the libraries takes as long as opening a small file. */
    cm_nc_lock();
    bool begun = H5open() >= 0 && nc_initialize() == NC_NOERR;
    cm_nc_unlock();
    return begun ? CM_OK : cm_fail(err, CM_ENOMEM, "netCDF-C and HDF5 cannot begin");
}
