/* The functions of glibc.h for a glibc that lacks them; the kernel may lack them too (ENOSYS). */
#include "base/glibc.h"

#ifdef CM_OLD_GLIBC

#include <sys/syscall.h>
#include <unistd.h>

int renameat2(int from, const char *name, int to, const char *new_name, unsigned flags)
{
    return (int)syscall(SYS_renameat2, from, name, to, new_name, flags);
}

int memfd_create(const char *name, unsigned flags)
{
    return (int)syscall(SYS_memfd_create, name, flags);
}

ssize_t getrandom(void *bytes, size_t nbytes, unsigned flags)
{
    return syscall(SYS_getrandom, bytes, nbytes, flags);
}

#endif
