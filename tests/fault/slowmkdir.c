/*
 * LD_PRELOAD library: after each folder that the program makes it sleeps for 60 ms, so that
 * others who work in the same folders find it empty.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static int pause_after(int rc)
{
    const struct timespec pause = {.tv_nsec = 60000000};
    int saved = errno;
    if (rc == 0)
        nanosleep(&pause, NULL);
    errno = saved;
    return rc;
}

static void *real(const char *name)
{
    void *p = dlsym(RTLD_NEXT, name);
    if (p == NULL)
        abort();
    return p;
}

int mkdir(const char *path, mode_t mode)
{
    return pause_after(((__typeof__(&mkdir))real("mkdir"))(path, mode));
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    return pause_after(((__typeof__(&mkdirat))real("mkdirat"))(folder, path, mode));
}
