/*
 * Preloaded into a program: netCDF-C fails as it does on some damaged files.
 *
 * BADLIBRARY is crash, abort, exit, kill, loop or memory, while it opens a file; or read and the
 * same, while it reads elements; or "close crash".  With BADLIBRARY_FILE only files fail to open
 * whose path holds that.  With BADLIBRARY_REACHED that file is made before the first failure.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netcdf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
    for (volatile int looping = strcmp(how, "loop") == 0; looping;) {
    }
    void *p = mmap(NULL, (size_t)100 << 30, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NC_ENOMEM : NC_NOERR;
}

int nc_open(const char *path, int mode, int *ncid)
{
    const char *how = how_in("open"), *which = getenv("BADLIBRARY_FILE");
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
