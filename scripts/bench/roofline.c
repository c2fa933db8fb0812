/*
 * roofline: the least time in which this machine does the work of a conversion,
 * or of rechunking.
 *
 *     roofline [-j THREADS] [-s] PLAN OUTPUT
 *
 * Threads in bare loops read the stored chunks of PLAN (roofline_plan.c), decode
 * them, scatter into target chunks, shuffle and compress these with zstd into
 * frames of c-blosc (level 2, one block: zstd's level 3), and write each as a
 * file of OUTPUT: temporary name, write, close, rename.  Where chunks stay as
 * they are stored, they are gathered in shards.  It is given the addresses,
 * checks little, and shares no code with the project.  What it leaves, with a
 * zarr.json beside it, is a store whose values the benchmark compares like those
 * of every other contender.
 *
 * Sources are taken in an order that completes targets early: the first dimension
 * is cut into blocks that hold whole source and whole target chunks, and within a
 * block it runs fastest.  A target chunk gets memory when its first source comes
 * and is written by the thread that finds it complete; its memory then serves
 * another, so that few pages are touched.  Nobody waits but at the very end.
 *
 * -s adds seconds of all threads together for each kind of work; taking the
 * time costs time where chunks are tiny.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loops.h"
#include "roofline.h"

enum {
    MAX_THREADS = 256,
    PATH_NBYTES = 512,
    /*
     * For longer writes ext4 takes larger folios, which a hypervisor may have to
     * find first: 277 MB in 54 files took 0.6 s of CPU so, and 0.15 s in pieces.
     */
    PIECE_NBYTES = 64 << 10
};

enum {
    READ,
    INFLATE,
    UNSHUFFLE,
    SCATTER,
    COMPRESS,
    WRITE,
    WAIT,
    NSTAGES
};
static const char *const stage_names[NSTAGES] = {"read",     "inflate", "unshuffle", "scatter",
                                                 "compress", "write",   "wait"};

typedef struct worker {
    struct job *job;
    unsigned index;
    struct libdeflate_decompressor *inflate;
    ZSTD_CCtx *zstd;
    ZSTD_DCtx *unzstd;
    uint8_t *stored, *inflated, *decoded, *encoded;
    uint64_t ntemporary, nfolders, nfiles, read_nbytes, written_nbytes;
    uint64_t stage_ns[NSTAGES], since;
} worker;

void die(const char *what)
{
    fprintf(stderr, "roofline: %s: %s\n", what, errno ? strerror(errno) : "wrong");
    exit(1);
}

void *must(void *p)
{
    if (p == NULL)
        die("memory");
    return p;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Books the time since the last call for STAGE. */
static void book(worker *w, int stage)
{
    if (!w->job->timed)
        return;
    uint64_t now = now_ns();
    w->stage_ns[stage] += now - w->since;
    w->since = now;
}

/* ---- where elements go ---- */

/* Copies source chunk S of A, decoded in DATA, into the target chunks. */
static void scatter(const array *a, const uint64_t *s, const uint8_t *data)
{
    size_t itemsize = a->itemsize;
    uint64_t lo[RANK], n[RANK];
    for (int d = 0; d < RANK; d++) {
        lo[d] = s[d] * a->source[d];
        n[d] = least(a->source[d], a->shape[d] - lo[d]);
    }
    for (uint64_t i = lo[0]; i < lo[0] + n[0]; i++)
        for (uint64_t j = lo[1]; j < lo[1] + n[1]; j++) {
            const target *row =
                &a->out[(i / a->target[0] * a->ntarget[1] + j / a->target[1]) * a->ntarget[2]];
            uint64_t at = (i % a->target[0] * a->target[1] + j % a->target[1]) * a->target[2];
            const uint8_t *in =
                data + ((i - lo[0]) * a->source[1] + j - lo[1]) * a->source[2] * itemsize;
            for (uint64_t k = lo[2], end = lo[2] + n[2]; k < end;) {
                uint64_t rk = k % a->target[2], run = least(a->target[2] - rk, end - k);
                memcpy(row[k / a->target[2]].data + (at + rk) * itemsize, in, run * itemsize);
                in += run * itemsize;
                k += run;
            }
        }
}

/* Zeroes what lies beyond the array in target chunk T. */
static void pad(const array *a, const uint64_t *t, uint8_t *data)
{
    uint64_t n[RANK], row = a->target[2] * a->itemsize;
    for (int d = 0; d < RANK; d++)
        n[d] = least(a->target[d], a->shape[d] - t[d] * a->target[d]);
    if (n[1] == a->target[1] && n[2] == a->target[2]) {
        memset(data + n[0] * n[1] * row, 0, (a->target[0] - n[0]) * n[1] * row);
        return;
    }
    for (uint64_t i = 0; i < a->target[0]; i++)
        for (uint64_t j = 0; j < a->target[1]; j++, data += row) {
            uint64_t valid = i < n[0] && j < n[1] ? n[2] * a->itemsize : 0;
            memset(data + valid, 0, row - valid);
        }
}

static void write_all(int fd, const uint8_t *data, size_t nbytes)
{
    while (nbytes > 0) {
        ssize_t n = write(fd, data, least(nbytes, PIECE_NBYTES));
        if (n <= 0)
            die("write");
        data += n;
        nbytes -= (size_t)n;
    }
}

static void write_file(worker *w, const array *a, const uint64_t *t, const uint8_t *data,
                       size_t nbytes)
{
    char path[PATH_NBYTES], temporary[PATH_NBYTES];
    int out = w->job->output;
    snprintf(path, sizeof(path), "%s/c/%" PRIu64 "/%" PRIu64 "/%" PRIu64, a->name, t[0], t[1],
             t[2]);
    snprintf(temporary, sizeof(temporary), "%s/c/%" PRIu64 "/%" PRIu64 "/.%u-%" PRIu64, a->name,
             t[0], t[1], w->index, w->ntemporary++);
    int fd = openat(out, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ENOENT) {
        for (char *p = strchr(path, '/'); p != NULL; p = strchr(p + 1, '/')) {
            *p = '\0';
            w->nfolders += mkdirat(out, path, 0777) == 0;
            *p = '/';
        }
        fd = openat(out, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (fd < 0)
        die(temporary);
    write_all(fd, data, nbytes);
    if (close(fd) != 0 || renameat(out, temporary, out, path) != 0)
        die(path);
    w->nfiles++;
    w->written_nbytes += nbytes;
}

/* ---- one source, one target ---- */

void find_source(const array *a, uint64_t item, uint64_t *s)
{
    uint64_t across = a->nsource[1] * a->nsource[2], block = item / (a->depth * across);
    uint64_t depth = least(a->depth, a->nsource[0] - block * a->depth);
    item -= block * a->depth * across;
    s[0] = block * a->depth + item % depth;
    s[1] = item / depth / a->nsource[2];
    s[2] = item / depth % a->nsource[2];
}

/* The target chunks from LO up to, and without, HI that source chunk S meets. */
static void meets(const array *a, const uint64_t *s, uint64_t *lo, uint64_t *hi)
{
    for (int d = 0; d < RANK; d++) {
        uint64_t first = s[d] * a->source[d];
        lo[d] = first / a->target[d];
        hi[d] = (least(first + a->source[d], a->shape[d]) - 1) / a->target[d] + 1;
    }
}

/* The stored bytes of source chunk S into OUT. */
static void read_chunk(worker *w, const array *a, const uint64_t *s, const chunk *c, uint8_t *out)
{
    const job *job = w->job;
    int fd = job->file ? job->file[s[0] / job->per_file] : job->input;
    uint64_t address = c->address;
    if (job->is_folder) {
        char path[PATH_NBYTES];
        snprintf(path, sizeof(path), "%s/c/%" PRIu64 "/%" PRIu64 "/%" PRIu64, a->name, s[0], s[1],
                 s[2]);
        if ((fd = openat(job->input, path, O_RDONLY | O_CLOEXEC)) < 0)
            die(path);
        address = 0;
    }
    if (pread(fd, out, c->nbytes, (off_t)address) != (ssize_t)c->nbytes)
        die("read");
    if (job->is_folder)
        close(fd);
    w->read_nbytes += c->nbytes;
}

/* HDF5's filters; returns where the elements are. */
static uint8_t *decode_filtered(worker *w, const array *a, uint8_t *data, size_t nbytes)
{
    if (a->coding == CODING_DEFLATE) {
        uint8_t *out = a->shuffle ? w->inflated : w->decoded;
        if (libdeflate_zlib_decompress(w->inflate, data, nbytes, out, a->source_nbytes, NULL) != 0)
            die("inflate");
        data = out;
        nbytes = a->source_nbytes;
        book(w, INFLATE);
    }
    if (a->shuffle) {
        loop_unshuffle(w->decoded, data, nbytes / a->itemsize, a->itemsize);
        data = w->decoded;
    }
    if (a->swap)
        loop_swap(data, nbytes / a->itemsize, a->itemsize);
    book(w, UNSHUFFLE);
    return data;
}

static void do_source(worker *w, const array *a, const uint64_t *s)
{
    const chunk *c = find_chunk(a, s);
    uint8_t *data = w->stored, *out = a->in_place ? find_target(a, s)->data : w->decoded;
    uint64_t shard[RANK];
    if (a->coding == CODING_COPY) {
        for (int d = 0; d < RANK; d++)
            shard[d] = s[d] * a->source[d] / a->target[d];
        read_chunk(w, a, s, c, find_target(a, shard)->data + c->address);
        book(w, READ);
        return;
    }
    read_chunk(w, a, s, c, data);
    book(w, READ);
    if (a->coding == CODING_RAW || a->coding == CODING_DEFLATE) {
        data = decode_filtered(w, a, data, c->nbytes);
    } else {
        bool whole = a->coding == CODING_BLOSC
                         ? loop_unframe(w->unzstd, out, a->source_nbytes, data, w->inflated)
                         : ZSTD_decompressDCtx(w->unzstd, out, a->source_nbytes, data, c->nbytes) ==
                               a->source_nbytes;
        if (!whole)
            die("decode");
        data = out;
        book(w, INFLATE);
    }
    if (!a->in_place || data != out)
        scatter(a, s, data);
    book(w, SCATTER);
}

/* The index of the shard at T, behind its chunks in DATA; returns the shard's length. */
static size_t finish_shard(const array *a, const uint64_t *t, uint8_t *data)
{
    uint64_t first[RANK], count[RANK], s[RANK], end = 0;
    for (int d = 0; d < RANK; d++) {
        count[d] = a->target[d] / a->source[d];
        first[d] = t[d] * count[d];
    }
    uint64_t ninner = count[0] * count[1] * count[2];
    chunk entry[ninner];
    memset(entry, 0xff, sizeof(entry)); /* what the array does not have */
    for (uint64_t i = 0; i < ninner; i++) {
        s[0] = first[0] + i / (count[1] * count[2]);
        s[1] = first[1] + i / count[2] % count[1];
        s[2] = first[2] + i % count[2];
        if (s[0] >= a->nsource[0] || s[1] >= a->nsource[1] || s[2] >= a->nsource[2])
            continue;
        entry[i] = *find_chunk(a, s);
        if (entry[i].address + entry[i].nbytes > end)
            end = entry[i].address + entry[i].nbytes;
    }
    uint32_t sum = loop_crc32c(entry, sizeof(entry));
    memcpy(data + end, entry, sizeof(entry));
    memcpy(data + end + sizeof(entry), &sum, sizeof(sum));
    return end + sizeof(entry) + sizeof(sum);
}

static void do_target(worker *w, const ready *r)
{
    const array *a = r->a;
    uint8_t *data = find_target(a, r->t)->data;
    size_t nbytes;
    if (a->coding == CODING_COPY) {
        nbytes = finish_shard(a, r->t, data);
    } else {
        pad(a, r->t, data);
        nbytes = loop_frame(w->zstd, w->encoded, data, a->target_nbytes, a->itemsize, w->decoded);
        data = w->encoded;
    }
    book(w, COMPRESS);
    write_file(w, a, r->t, data, nbytes);
    book(w, WRITE);
}

/* ---- who does what: all with the lock held, but for the work itself ---- */

/* Makes room for one more in a list of N items. */
static void *grow(void *list, size_t n, size_t *capacity, size_t itemsize)
{
    if (n < *capacity)
        return list;
    *capacity = *capacity ? 2 * *capacity : 256;
    return must(realloc(list, *capacity * itemsize));
}

void for_targets(job *job, const array *a, uint64_t first, uint64_t end, visit_target *fn)
{
    uint64_t s[RANK], lo[RANK], hi[RANK], t[RANK];
    for (uint64_t item = first; item < end; item++) {
        find_source(a, item, s);
        meets(a, s, lo, hi);
        for (t[0] = lo[0]; t[0] < hi[0]; t[0]++)
            for (t[1] = lo[1]; t[1] < hi[1]; t[1]++)
                for (t[2] = lo[2]; t[2] < hi[2]; t[2]++)
                    fn(job, a, t);
    }
}

static void give_memory(job *job, const array *a, const uint64_t *t)
{
    target *out = find_target(a, t);
    if (out->data == NULL)
        out->data = job->nunused > 0 ? job->unused[--job->nunused] : must(malloc(job->max_target));
}

static void count_down(job *job, const array *a, const uint64_t *t)
{
    if (--find_target(a, t)->left > 0)
        return;
    job->ready = grow(job->ready, job->nready, &job->ready_capacity, sizeof(ready));
    job->ready[job->nready++] = (ready){.a = a, .t = {t[0], t[1], t[2]}};
}

static void take_target(worker *w)
{
    job *job = w->job;
    ready r = job->ready[--job->nready];
    pthread_mutex_unlock(&job->lock);
    do_target(w, &r);
    pthread_mutex_lock(&job->lock);
    target *out = find_target(r.a, r.t);
    job->unused = grow(job->unused, job->nunused, &job->unused_capacity, sizeof(uint8_t *));
    job->unused[job->nunused++] = out->data;
    out->data = NULL;
    job->ntargets--;
}

static void take_sources(worker *w)
{
    job *job = w->job;
    const array *a = &job->array[job->at];
    uint64_t total = a->nsource[0] * a->nsource[1] * a->nsource[2], s[RANK];
    uint64_t first = job->item, end = least(first + a->batch, total);
    job->item = end;
    if (end == total) {
        job->at++;
        job->item = 0;
    }
    for_targets(job, a, first, end, give_memory);
    pthread_mutex_unlock(&job->lock);
    for (uint64_t item = first; item < end; item++) {
        find_source(a, item, s);
        do_source(w, a, s);
    }
    pthread_mutex_lock(&job->lock);
    for_targets(job, a, first, end, count_down);
}

static void *work(void *context)
{
    worker *w = context;
    job *job = w->job;
    w->stored = must(malloc(job->max_stored));
    w->inflated = must(malloc(job->max_source));
    w->decoded =
        must(malloc(job->max_source > job->max_target ? job->max_source : job->max_target));
    w->encoded = must(malloc(loop_frame_bound(job->max_target)));
    w->inflate = must(libdeflate_alloc_decompressor());
    w->zstd = must(ZSTD_createCCtx());
    w->unzstd = must(ZSTD_createDCtx());
    w->since = now_ns();
    pthread_mutex_lock(&job->lock);
    while (job->ntargets > 0) {
        if (job->nready > 0) {
            take_target(w);
        } else if (job->at < job->narrays) {
            take_sources(w);
        } else {
            pthread_mutex_unlock(&job->lock);
            sched_yield();
            pthread_mutex_lock(&job->lock);
        }
        book(w, WAIT);
    }
    pthread_mutex_unlock(&job->lock);
    return NULL;
}

static void report(const job *job, const worker *w, uint64_t ns)
{
    worker sum = {0};
    for (unsigned i = 0; i < job->nthreads; i++) {
        sum.nfiles += w[i].nfiles;
        sum.nfolders += w[i].nfolders;
        sum.read_nbytes += w[i].read_nbytes;
        sum.written_nbytes += w[i].written_nbytes;
        for (int k = 0; k < NSTAGES; k++)
            sum.stage_ns[k] += w[i].stage_ns[k];
    }
    printf("{\"seconds\": %.6f, \"threads\": %u, \"files\": %" PRIu64 ", \"folders\": %" PRIu64
           ", \"read_nbytes\": %" PRIu64 ", \"written_nbytes\": %" PRIu64,
           (double)ns / 1e9, job->nthreads, sum.nfiles, sum.nfolders, sum.read_nbytes,
           sum.written_nbytes);
    for (int k = 0; job->timed && k < NSTAGES; k++)
        printf("%s\"%s\": %.4f", k ? ", " : ", \"stages\": {", stage_names[k],
               (double)sum.stage_ns[k] / 1e9);
    puts(job->timed ? "}}" : "}");
}

int main(int argc, char **argv)
{
    static worker w[MAX_THREADS];
    pthread_t thread[MAX_THREADS];
    job job = {.nthreads = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    int option;
    while ((option = getopt(argc, argv, "j:s")) != -1) {
        if (option == 'j')
            job.nthreads = (unsigned)least(strtoul(optarg, NULL, 10), MAX_THREADS);
        else if (option == 's')
            job.timed = true;
        else
            return 2;
    }
    if (argc - optind != 2 || job.nthreads == 0) {
        fputs("usage: roofline [-j THREADS] [-s] PLAN OUTPUT\n", stderr);
        return 2;
    }
    read_plan(&job, argv[optind]);
    uint64_t start = now_ns();
    if (mkdir(argv[optind + 1], 0777) != 0 ||
        (job.output = open(argv[optind + 1], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        die(argv[optind + 1]);
    for (unsigned i = 0; i < job.nthreads; i++) {
        w[i].job = &job;
        w[i].index = i;
        if ((errno = pthread_create(&thread[i], NULL, work, &w[i])) != 0)
            die("thread");
    }
    for (unsigned i = 0; i < job.nthreads; i++)
        pthread_join(thread[i], NULL);
    report(&job, w, now_ns() - start);
    return 0;
}
