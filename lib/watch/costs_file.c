/* Latency and bandwidth of the storage that a file or a folder of files lies on, at two sizes. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "watch/costs.h"

enum {
    FILES = 48, /* of a folder, the largest of those that are seen */
    SEEN = 512,
    DEPTH = 8,
    TRIES = FILES, /* so that each reads what no other one did just before */
    SMALL_NBYTES = 4 << 10,
    LARGE_NBYTES = 256 << 10
};

typedef struct found {
    char *path;
    uint64_t nbytes;
} found;

typedef struct files {
    found file[FILES]; /* the largest first */
    size_t n;
    unsigned seen;
} files;

static void keep(files *f, const char *path, uint64_t nbytes)
{
    size_t at = f->n;
    while (at > 0 && f->file[at - 1].nbytes < nbytes)
        at--;
    if (at == FILES)
        return;
    char *copy = strdup(path);
    if (copy == NULL)
        return;
    if (f->n == FILES)
        free(f->file[--f->n].path);
    memmove(f->file + at + 1, f->file + at, (f->n - at) * sizeof *f->file);
    f->file[at] = (found){copy, nbytes};
    f->n++;
}

/* Regular files at PATH and below; what cannot be looked at is left out. */
static void look(files *f, const char *path, int depth)
{
    struct stat st;
    if (f->seen >= SEEN || lstat(path, &st) != 0)
        return;
    if (S_ISREG(st.st_mode)) {
        f->seen++;
        if (st.st_size > 0)
            keep(f, path, (uint64_t)st.st_size);
        return;
    }
    DIR *d = S_ISDIR(st.st_mode) && depth > 0 ? opendir(path) : NULL;
    for (struct dirent *e; d != NULL && f->seen < SEEN && (e = readdir(d)) != NULL;) {
        char below[PATH_MAX];
        const int n = snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.' && n > 0 && (size_t)n < sizeof below)
            look(f, below, depth - 1);
    }
    if (d != NULL)
        closedir(d);
}

typedef struct times {
    double open[TRIES], small[TRIES], large[TRIES];
    double small_nbytes, large_nbytes; /* of all tries */
    size_t n;
} times;

static double now(bool cold)
{
    return (double)(cold ? cm_now_ns() : cm_thread_cpu_ns()) * 1e-9;
}

/*
 * One read of NBYTES at AT, from memory or from the disk as COLD says; negative: it failed.  Pages
 * in memory were read by warm_up: a read just before this one would leave them in the CPU's caches,
 * which give bytes several times as fast.
 */
static double read_once(int fd, uint64_t at, size_t nbytes, bool cold, uint8_t *buf)
{
    if (cold)
        (void)posix_fadvise(fd, (off_t)at, (off_t)nbytes, POSIX_FADV_DONTNEED);
    const double start = now(cold);
    return pread(fd, buf, nbytes, (off_t)at) >= 0 ? now(cold) - start : -1;
}

/* Of try number I: different places of a long file, pages from their beginning. */
static size_t place_of(const found *f, unsigned i, uint64_t *at)
{
    const size_t large = f->nbytes < LARGE_NBYTES ? (size_t)f->nbytes : LARGE_NBYTES;
    *at = (f->nbytes - large) / TRIES * i / SMALL_NBYTES * SMALL_NBYTES;
    return large;
}

/* Brings what the tries read into memory. */
static void warm_up(const files *f, uint8_t *buf)
{
    for (unsigned i = 0; i < TRIES; i++) {
        const found *file = &f->file[i % f->n];
        uint64_t at;
        const size_t large = place_of(file, i, &at);
        const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || pread(fd, buf, large, (off_t)at) < 0) {
            if (fd >= 0)
                close(fd);
            return;
        }
        close(fd);
    }
}

static bool try_file(const found *f, unsigned i, bool cold, uint8_t *buf, times *t)
{
    struct stat st;
    uint64_t at;
    const size_t large = place_of(f, i, &at);
    const size_t small = large < SMALL_NBYTES ? large : SMALL_NBYTES;
    const double start = now(cold);
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    (void)fstat(fd, &st);
    const double opened = now(cold);
    const double a = read_once(fd, at, small, cold, buf);
    const double b = read_once(fd, at, large, cold, buf);
    const double closing = now(cold);
    close(fd);
    if (a < 0 || b < 0)
        return false;
    t->open[t->n] = opened - start + (now(cold) - closing);
    t->small[t->n] = a;
    t->large[t->n++] = b;
    t->small_nbytes += (double)small;
    t->large_nbytes += (double)large;
    return true;
}

/* From a disk what is usual; from memory what an undisturbed CPU takes. */
static double typical(double *value, size_t n, bool cold)
{
    cm_sort_doubles(value, n);
    return cold ? (value[(n - 1) / 2] + value[n / 2]) / 2 : value[n / 8];
}

static void sum_up(times *t, bool cold, cm_storage_costs *out)
{
    const double small = typical(t->small, t->n, cold), large = typical(t->large, t->n, cold);
    const double b1 = t->small_nbytes / (double)t->n, b2 = t->large_nbytes / (double)t->n;
    out->open = typical(t->open, t->n, cold);
    /* Files that are all small do not tell what a byte costs: it is the request's then. */
    out->byte = b2 >= 8 * b1 && large > small ? (large - small) / (b2 - b1) : 0;
    out->request = small - out->byte * b1 > 0 ? small - out->byte * b1 : 0;
    out->ntries = t->n;
}

int cm_cost_probe_files(const char *path, bool cold, cm_storage_costs *out, cm_error *err)
{
    files f = {.n = 0};
    times t = {.n = 0};
    uint8_t *buf = cm_calloc(LARGE_NBYTES, 1, err);
    *out = (cm_storage_costs){0};
    if (buf == NULL)
        return CM_ENOMEM;
    look(&f, path, DEPTH);
    if (f.n > 0 && !cold)
        warm_up(&f, buf);
    for (unsigned i = 0; f.n > 0 && i < TRIES; i++)
        if (!try_file(&f.file[i % f.n], i, cold, buf, &t))
            break;
    if (t.n > 0)
        sum_up(&t, cold, out);
    for (size_t i = 0; i < f.n; i++)
        free(f.file[i].path);
    free(buf);
    return CM_OK;
}
