/*
 * Preloaded into a program: its N-th opening of a file finds another file there.
 *
 * SWAP_PATH is the file, SWAP_WITH what is renamed over it, SWAP_NTH which opening.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void look(const char *path)
{
    static int n;
    const char *watched = getenv("SWAP_PATH"), *with = getenv("SWAP_WITH"),
               *nth = getenv("SWAP_NTH");
    if (!watched || !with || !nth || strcmp(path, watched) != 0)
        return;
    if (++n == atoi(nth) && rename(with, watched) != 0)
        perror(with);
}

#define WRAP(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        static int (*real)(const char *, int, ...);                                                \
        if (!real)                                                                                 \
            real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);                       \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        int mode = flags & O_CREAT ? va_arg(args, int) : 0;                                        \
        va_end(args);                                                                              \
        look(path);                                                                                \
        return real(path, flags, mode);                                                            \
    }

WRAP(open)
WRAP(open64)
