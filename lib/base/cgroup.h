/*
 * The limits that control groups, versions 1 and 2, put on this process.
 *
 * A limit holds for a group and all groups below it, so every ancestor of the
 * process's own group counts.  Inside a container the path that the kernel names
 * may not exist under the container's mount; what exists of it is read, and the
 * mount's root is the container's own group then.
 */
#ifndef CM_BASE_CGROUP_H
#define CM_BASE_CGROUP_H

#include <stdint.h>

typedef struct cm_cgroup_limits {
    unsigned cpus;        /* CPU quota, rounded up to whole CPUs; 0: none */
    uint64_t memory_left; /* bytes until the tightest memory limit; UINT64_MAX: none */
} cm_cgroup_limits;

/* Reads ROOT/proc/self/cgroup and ROOT/sys/fs/cgroup; ROOT is "" except in tests. */
cm_cgroup_limits cm_cgroup_read(const char *root);

/* MemAvailable of ROOT/proc/meminfo in bytes (MemFree on kernels before 3.14); 0: unknown. */
uint64_t cm_meminfo_available(const char *root);

#endif
