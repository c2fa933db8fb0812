/* Control groups and /proc as they look on real systems, laid out in a temporary folder. */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/cpu.h"

typedef struct file {
    const char *path, *text;
} file;

typedef struct row {
    const char *name;
    file files[12];
    unsigned cpus;
    uint64_t memory_left;
} row;

#define V2   "sys/fs/cgroup/"
#define STAT "anon 1\nfile 2\ninactive_file 3000\nactive_file 9\n"

static const row ROW[] = {
    {"nothing there", {{NULL, NULL}}, 0, UINT64_MAX},
    {"version 2, no limits",
     {{"proc/self/cgroup", "0::/a/b\n"},
      {V2 "a/b/cpu.max", "max 100000\n"},
      {V2 "a/b/memory.max", "max\n"},
      {V2 "a/b/memory.current", "5\n"}},
     0,
     UINT64_MAX},
    {"version 2, own group",
     {{"proc/self/cgroup", "0::/a/b\n"},
      {V2 "a/b/cpu.max", "150000 100000\n"},
      {V2 "a/b/memory.max", "100000\n"},
      {V2 "a/b/memory.current", "40000\n"},
      {V2 "a/b/memory.stat", STAT}},
     2,
     100000 - 40000 + 3000},
    {"version 2, an ancestor is tighter",
     {{"proc/self/cgroup", "0::/a/b\n"},
      {V2 "a/b/cpu.max", "400000 100000\n"},
      {V2 "a/cpu.max", "50000 100000\n"},
      {V2 "a/b/memory.max", "100000\n"},
      {V2 "a/b/memory.current", "10\n"},
      {V2 "a/memory.max", "70000\n"},
      {V2 "a/memory.current", "60000\n"}},
     1,
     10000},
    {"version 2, memory.high below memory.max",
     {{"proc/self/cgroup", "0::/a\n"},
      {V2 "a/memory.max", "100000\n"},
      {V2 "a/memory.high", "50000\n"},
      {V2 "a/memory.current", "10000\n"}},
     0,
     40000},
    {"version 2, over the limit",
     {{"proc/self/cgroup", "0::/a\n"},
      {V2 "a/memory.max", "100\n"},
      {V2 "a/memory.current", "200\n"}},
     0,
     0},
    {"version 2, the mount is the container's own group",
     {{"proc/self/cgroup", "0::/../outside\n"},
      {V2 "cpu.max", "300000 100000\n"},
      {V2 "memory.max", "1000\n"},
      {V2 "memory.current", "100\n"}},
     3,
     900},
    {"version 1",
     {{"proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n1:name=systemd:/x\n"},
      {V2 "cpu,cpuacct/x/cpu.cfs_quota_us", "250000\n"},
      {V2 "cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"},
      {V2 "memory/x/memory.limit_in_bytes", "100000\n"},
      {V2 "memory/x/memory.usage_in_bytes", "50000\n"},
      {V2 "memory/x/memory.stat", "inactive_file 1\ntotal_inactive_file 7000\n"}},
     3,
     57000},
    {"version 1, no limits",
     {{"proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/\n"},
      {V2 "cpu/cpu.cfs_quota_us", "-1\n"},
      {V2 "cpu/cpu.cfs_period_us", "100000\n"},
      {V2 "memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {V2 "memory/memory.usage_in_bytes", "50000\n"}},
     0,
     UINT64_MAX},
    {"version 1, path only valid outside the container",
     {{"proc/self/cgroup", "5:cpuacct,cpu:/docker/123\n4:memory:/docker/123\n"},
      {V2 "cpu/cpu.cfs_quota_us", "100001\n"},
      {V2 "cpu/cpu.cfs_period_us", "100000\n"},
      {V2 "memory/memory.limit_in_bytes", "5000\n"},
      {V2 "memory/memory.usage_in_bytes", "1000\n"}},
     2,
     4000},
    {"both versions: version 2 under unified",
     {{"proc/self/cgroup", "4:memory:/x\n0::/y\n"},
      {V2 "unified/y/cpu.max", "100000 100000\n"},
      {V2 "memory/x/memory.limit_in_bytes", "5000\n"},
      {V2 "memory/x/memory.usage_in_bytes", "1000\n"}},
     1,
     4000},
    {"nonsense",
     {{"proc/self/cgroup", "hello\n::\n0::/a\n"},
      {V2 "a/cpu.max", "garbage\n"},
      {V2 "a/memory.max", "-7\n"},
      {V2 "a/memory.current", "x\n"}},
     0,
     UINT64_MAX},
};

static void write_file(const char *root, const file *f)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, f->path);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(f->text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void remove_file(const char *root, const file *f)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, f->path);
    unlink(path);
    /* Folders go as they become empty. */
    for (char *p = strrchr(path, '/'); p > path + strlen(root); p = strrchr(path, '/')) {
        *p = 0;
        if (rmdir(path))
            break;
    }
}

static void test_limits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        char root[] = "/tmp/cm-cgroup-XXXXXX";
        assert_non_null(mkdtemp(root));
        for (const file *f = ROW[i].files; f->path; f++)
            write_file(root, f);
        print_message("  %s\n", ROW[i].name);
        const cm_cgroup_limits got = cm_cgroup_read(root);
        for (const file *f = ROW[i].files; f->path; f++)
            remove_file(root, f);
        assert_int_equal(rmdir(root), 0);
        assert_int_equal(got.cpus, ROW[i].cpus);
        assert_true(got.memory_left == ROW[i].memory_left);
    }
}

static void test_meminfo(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t nbytes;
    } INFO[] = {
        {"MemTotal:  9 kB\nMemFree:  4 kB\nMemAvailable:    6 kB\n", 6 * 1024},
        {"MemTotal:  9 kB\nMemFree:  4 kB\n", 4 * 1024},
        {"nothing\n", 0},
    };
    for (size_t i = 0; i < sizeof INFO / sizeof *INFO; i++) {
        char root[] = "/tmp/cm-cgroup-XXXXXX";
        assert_non_null(mkdtemp(root));
        const file f = {"proc/meminfo", INFO[i].text};
        write_file(root, &f);
        const uint64_t got = cm_meminfo_available(root);
        remove_file(root, &f);
        assert_int_equal(rmdir(root), 0);
        assert_int_equal(got, INFO[i].nbytes);
    }
    assert_int_equal(cm_meminfo_available("/nonexistent"), 0);
}

static void test_this_machine(void **state)
{
    (void)state;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    assert_in_range(cm_cpu_count(), 1, (unsigned)online);
    assert_true(cm_memory_available() > 0);
    assert_true(cm_memory_available() <=
                (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
#if defined(__x86_64__)
    assert_true(cm_cpu_simd() >= CM_SIMD_SSE2);
#endif
}

static void test_clocks(void **state)
{
    (void)state;
    const uint64_t wall = cm_now_ns(), cpu = cm_thread_cpu_ns();
    volatile unsigned busy = 0;
    while (cm_now_ns() < wall + 5000000)
        busy++;
    assert_true(cm_thread_cpu_ns() > cpu);
    /* Memory that was touched stays in the peak after it is gone. */
    const size_t nbytes = (size_t)64 << 20;
    char *block = malloc(nbytes);
    assert_non_null(block);
    memset(block, 1, nbytes);
    assert_true(block[nbytes / 2] == 1);
    free(block);
    assert_true(cm_peak_rss() > nbytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_meminfo),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
