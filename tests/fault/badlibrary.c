/*
 * Preloaded into a program: netCDF-C fails as it does on some damaged files.
 *
 * BADLIBRARY is crash, abort, exit, kill, loop, memory, overflow (it writes past a block, and goes
 * on), lack (HDF5 finds no memory, and netCDF-C goes on) or wait (for ever; the clock runs a
 * thousand times as fast), while it opens a file; or read and the same, while it reads elements; or
 * "close crash"; or "parent" and the same, while the program itself opens a file that a child has
 * tried.  With BADLIBRARY_FILE only files fail to open
 * whose path holds that.  With BADLIBRARY_REACHED that file is made before the first failure.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hdf5.h>
#include <malloc.h>
#include <netcdf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* How to fail in PART of the work ("open"), NULL: not there. */
static const char *how_in(const char *part)
{
    const char *how = getenv("BADLIBRARY"), *space = how ? strchr(how, ' ') : NULL;
    size_t n = strlen(part);
    if (!how || !space)
        return strcmp(part, "open") == 0 ? how : NULL;
    return strncmp(how, part, n) == 0 && how + n == space ? space + 1 : NULL;
}

/* The block behind loses its size, and nothing of that is seen here. */
static int overflow(void)
{
    char *volatile block = malloc(1000), *volatile behind = malloc(1000);
    memset(block, 0, malloc_usable_size(block) + 16);
    return behind != NULL ? NC_NOERR : NC_ENOMEM;
}

/* As a call of HDF5 does that netCDF-C thinks it can do without. */
static int lack(void)
{
    H5E_auto2_t handler = NULL;
    void *context = NULL;
    if (H5Eget_auto2(H5E_DEFAULT, &handler, &context) < 0 || handler == NULL)
        return NC_NOERR;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_RESOURCE, H5E_NOSPACE,
             "no memory");
    handler(H5E_DEFAULT, context);
    H5Eclear2(H5E_DEFAULT);
    return NC_NOERR;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    const char *how = getenv("BADLIBRARY");
    int rc = REAL(clock_gettime)(id, now);
    if (rc == 0 && id == CLOCK_MONOTONIC && how != NULL && strstr(how, "wait") != NULL)
        now->tv_sec = now->tv_sec * 1000 + now->tv_nsec / 1000000;
    return rc;
}

/* Returns where that is what netCDF-C does then. */
static int fail(const char *how)
{
    const char *reached = getenv("BADLIBRARY_REACHED");
    FILE *made = reached ? fopen(reached, "w") : NULL;
    if (made)
        fclose(made);
    printf("words that nobody shall see\n");
    fflush(stdout);
    if (strcmp(how, "crash") == 0)
        raise(SIGSEGV);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "exit") == 0)
        _exit(0);
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "overflow") == 0)
        return overflow();
    if (strcmp(how, "lack") == 0)
        return lack();
    while (strcmp(how, "wait") == 0)
        pause();
    for (volatile int looping = strcmp(how, "loop") == 0; looping;) {
    }
    void *p = mmap(NULL, (size_t)100 << 30, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NC_ENOMEM : NC_NOERR;
}

/* A child of base/trial.h is not to leave core files. */
static bool in_child(void)
{
    return prctl(PR_GET_DUMPABLE) == 0;
}

int nc_open(const char *path, int mode, int *ncid)
{
    const char *how = in_child() ? how_in("open") : how_in(how_in("parent") ? "parent" : "open"),
               *which = getenv("BADLIBRARY_FILE");
    int rc = how && (!which || strstr(path, which)) ? fail(how) : NC_NOERR;
    return rc ? rc : REAL(nc_open)(path, mode, ncid);
}

int nc_get_vara(int ncid, int varid, const size_t *start, const size_t *count, void *data)
{
    const char *how = how_in(start[0] > 0 ? "late" : "read");
    int rc = how ? fail(how) : NC_NOERR;
    return rc ? rc : REAL(nc_get_vara)(ncid, varid, start, count, data);
}

int nc_get_vara_string(int ncid, int varid, const size_t *start, const size_t *count, char **data)
{
    const char *how = how_in("read");
    int rc = how ? fail(how) : NC_NOERR;
    return rc ? rc : REAL(nc_get_vara_string)(ncid, varid, start, count, data);
}

int nc_close(int ncid)
{
    const char *how = how_in("close");
    int rc = how ? fail(how) : NC_NOERR;
    return rc ? rc : REAL(nc_close)(ncid);
}
