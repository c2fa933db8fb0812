/*
 * Preloaded into a program: netCDF-C fails as it does on some damaged files.
 *
 * BADLIBRARY is crash, abort, exit, kill, loop or memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int nc_open(const char *path, int mode, int *ncid)
{
    static int (*real)(const char *, int, int *);
    const char *how = getenv("BADLIBRARY");
    if (!real)
        real = (int (*)(const char *, int, int *))dlsym(RTLD_NEXT, "nc_open");
    if (!how)
        return real(path, mode, ncid);
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
    return p == MAP_FAILED ? -61 /* NC_ENOMEM */ : real(path, mode, ncid);
}
