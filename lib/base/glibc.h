/* Linux's functions that glibc has only since 2.28: the portable build runs with 2.17. */
#ifndef CM_BASE_GLIBC_H
#define CM_BASE_GLIBC_H

#include <stdio.h>
#include <sys/mman.h>
#include <sys/types.h>

#if defined(__GLIBC_PREREQ)
#if !__GLIBC_PREREQ(2, 28)
#define CM_OLD_GLIBC 1
#endif
#endif

#ifdef CM_OLD_GLIBC
int renameat2(int from, const char *name, int to, const char *new_name, unsigned flags);
int memfd_create(const char *name, unsigned flags);
ssize_t getrandom(void *bytes, size_t nbytes, unsigned flags);
#else
#include <sys/random.h>
#endif

#endif
