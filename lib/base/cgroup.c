#include "base/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of FOLDER/NAME, cut to SIZE - 1 bytes; false when it cannot be read. */
static bool read_text(const char *folder, const char *name, char *text, size_t size)
{
    char path[2 * PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    size_t got = fread(text, 1, size - 1, f);
    text[got] = 0;
    fclose(f);
    return got > 0;
}

/* The number in FOLDER/NAME; false when there is none, as in "max" or "-1". */
static bool read_number(const char *folder, const char *name, uint64_t *out)
{
    char text[64];
    unsigned long long value;
    if (!read_text(folder, name, text, sizeof text) || text[0] < '0' || text[0] > '9' ||
        sscanf(text, "%llu", &value) != 1)
        return false;
    *out = value;
    return true;
}

/* The number behind KEY in a file of lines "KEY NUMBER"; 0 when it is not there. */
static uint64_t read_keyed(const char *folder, const char *name, const char *key)
{
    char text[16384];
    const size_t length = strlen(key);
    if (!read_text(folder, name, text, sizeof text))
        return 0;
    for (char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, key, length) && (line[length] == ' ' || line[length] == ':'))
            return strtoull(line + length + 1, NULL, 10);
    }
    return 0;
}

static void limit_cpus(cm_cgroup_limits *limits, uint64_t quota_us, uint64_t period_us)
{
    if (quota_us == 0 || period_us == 0)
        return;
    uint64_t cpus = quota_us / period_us + (quota_us % period_us != 0);
    if (cpus <= UINT_MAX && (limits->cpus == 0 || cpus < limits->cpus))
        limits->cpus = (unsigned)cpus;
}

/* INACTIVE file pages are counted as used, but the kernel takes them back before it kills. */
static void limit_memory(cm_cgroup_limits *limits, uint64_t limit, uint64_t used, uint64_t inactive)
{
    used -= inactive < used ? inactive : used;
    uint64_t left = limit > used ? limit - used : 0;
    if (left < limits->memory_left)
        limits->memory_left = left;
}

static void read_v2_group(const char *folder, cm_cgroup_limits *limits)
{
    char text[64];
    unsigned long long quota, period;
    if (read_text(folder, "cpu.max", text, sizeof text) &&
        sscanf(text, "%llu %llu", &quota, &period) == 2)
        limit_cpus(limits, quota, period);

    /* Above memory.high the kernel throttles and reclaims: that is a limit to plan with too. */
    static const char *const LIMIT[] = {"memory.max", "memory.high"};
    for (size_t i = 0; i < 2; i++) {
        uint64_t limit, used;
        if (read_number(folder, LIMIT[i], &limit) && read_number(folder, "memory.current", &used))
            limit_memory(limits, limit, used, read_keyed(folder, "memory.stat", "inactive_file"));
    }
}

static void read_v1_cpu_group(const char *folder, cm_cgroup_limits *limits)
{
    uint64_t quota, period;
    if (read_number(folder, "cpu.cfs_quota_us", &quota) &&
        read_number(folder, "cpu.cfs_period_us", &period))
        limit_cpus(limits, quota, period);
}

static void read_v1_memory_group(const char *folder, cm_cgroup_limits *limits)
{
    /* Without a limit the file holds LONG_MAX rounded down to pages. */
    const uint64_t none = UINT64_C(1) << 62;
    uint64_t limit, used;
    if (read_number(folder, "memory.limit_in_bytes", &limit) && limit < none &&
        read_number(folder, "memory.usage_in_bytes", &used))
        limit_memory(limits, limit, used, read_keyed(folder, "memory.stat", "total_inactive_file"));
}

typedef void read_group(const char *folder, cm_cgroup_limits *limits);

/* READ on the group at PATH below MOUNT and on all its ancestors up to the mount itself. */
static void read_ancestry(const char *root, const char *mount, const char *path, read_group *read,
                          cm_cgroup_limits *limits)
{
    char folder[PATH_MAX];
    int base = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s", root, mount);
    if (base < 0 || (size_t)base >= sizeof folder)
        return;
    int n = snprintf(folder + base, sizeof folder - (size_t)base, "%s", path);
    if (n < 0 || (size_t)n >= sizeof folder - (size_t)base)
        return;
    for (;;) {
        read(folder, limits);
        char *slash = strrchr(folder + base, '/');
        if (slash == NULL)
            return;
        *slash = 0;
    }
}

/* One line "ID:CONTROLLERS:PATH" of /proc/self/cgroup; version 2 has an empty list. */
static void read_line(const char *root, char *line, cm_cgroup_limits *limits)
{
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL)
        return;
    *path++ = 0;
    controllers++;
    if (*controllers == 0) {
        read_ancestry(root, "", path, read_v2_group, limits);
        read_ancestry(root, "/unified", path, read_v2_group, limits);
        return;
    }
    /* "cpu,cpuacct" is mounted under that name or, through a link, under each of its parts. */
    char mount[128];
    char *rest = NULL;
    snprintf(mount, sizeof mount, "/%s", controllers);
    for (char *name = strtok_r(controllers, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        if (!strcmp(name, "cpu")) {
            read_ancestry(root, mount, path, read_v1_cpu_group, limits);
            read_ancestry(root, "/cpu", path, read_v1_cpu_group, limits);
        } else if (!strcmp(name, "memory")) {
            read_ancestry(root, "/memory", path, read_v1_memory_group, limits);
        }
    }
}

cm_cgroup_limits cm_cgroup_read(const char *root)
{
    cm_cgroup_limits limits = {.cpus = 0, .memory_left = UINT64_MAX};
    char folder[PATH_MAX], text[16384];
    char *rest = NULL;
    int n = snprintf(folder, sizeof folder, "%s/proc/self", root);
    if (n < 0 || (size_t)n >= sizeof folder || !read_text(folder, "cgroup", text, sizeof text))
        return limits;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        read_line(root, line, &limits);
    return limits;
}

uint64_t cm_meminfo_available(const char *root)
{
    char folder[PATH_MAX];
    int n = snprintf(folder, sizeof folder, "%s/proc", root);
    if (n < 0 || (size_t)n >= sizeof folder)
        return 0;
    uint64_t kib = read_keyed(folder, "meminfo", "MemAvailable");
    if (kib == 0)
        kib = read_keyed(folder, "meminfo", "MemFree");
    return kib <= UINT64_MAX / 1024 ? kib * 1024 : UINT64_MAX;
}
