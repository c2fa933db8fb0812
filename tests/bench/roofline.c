/*
 * roofline: the least time in which this machine does the work of a conversion.
 *
 *     roofline [-j THREADS] [-s] PLAN OUTPUT
 *
 * Threads in bare loops read the stored chunks of PLAN, inflate, unshuffle or
 * swap bytes, scatter into target chunks, shuffle and compress these with zstd
 * into frames of c-blosc (level 2, one block: zstd's level 3), and write each as
 * a file of OUTPUT: temporary name, write, close, rename.  It is given the
 * addresses, checks little, and shares no code with the project.  What it leaves,
 * with a zarr.json beside it, is a store whose values the benchmark compares like
 * those of every other contender.
 *
 * Sources are taken in an order that completes targets early: the first dimension
 * is cut into blocks that hold whole source and whole target chunks, and within a
 * block it runs fastest.  A target chunk gets memory when its first source comes
 * and is written by the thread that finds it complete; its memory then serves
 * another, so that few pages are touched.  Nobody waits but at the very end.
 *
 * PLAN is text: `input PATH`, then for each array, with rank 3 (1 in front where
 * there are fewer dimensions) and its chunks in C order,
 *
 *     array NAME ITEMSIZE deflate|raw shuffle|plain swap|native
 *           SHAPE{3} SOURCE_CHUNK{3} TARGET_CHUNK{3} NCHUNKS
 *     ADDRESS NBYTES        (NCHUNKS lines)
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

enum {
    RANK = 3,
    BATCH_NBYTES = 64 << 10, /* decoded sources taken at once */
    MAX_THREADS = 256
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

typedef struct chunk {
    uint64_t address;
    uint64_t nbytes;
} chunk;

typedef struct target {
    uint8_t *data; /* NULL before its first source and after it is written */
    uint64_t left; /* sources to come */
} target;

typedef struct array {
    char name[256];
    size_t itemsize;
    bool deflate, shuffle, swap;
    uint64_t shape[RANK], source[RANK], target[RANK];
    uint64_t nsource[RANK], ntarget[RANK];
    uint64_t depth; /* of a block, in source chunks along the first dimension */
    size_t source_nbytes, target_nbytes;
    uint64_t batch; /* sources taken at once */
    chunk *chunk;
    target *out;
} array;

/* A target chunk that is complete. */
typedef struct ready {
    const array *a;
    uint64_t t[RANK];
} ready;

typedef struct worker {
    struct job *job;
    unsigned index;
    struct libdeflate_decompressor *inflate;
    ZSTD_CCtx *zstd;
    uint8_t *stored, *inflated, *decoded, *encoded;
    uint64_t ntemporary, nfolders, nfiles, read_nbytes, written_nbytes;
    uint64_t stage_ns[NSTAGES], since;
} worker;

typedef struct job {
    array *array;
    size_t narrays;
    int input, output;
    size_t max_source, max_target, max_stored;
    unsigned nthreads;
    bool timed;

    pthread_mutex_t lock;
    size_t at; /* array whose sources are taken */
    uint64_t item;
    uint64_t ntargets; /* not written yet */
    ready *ready;
    size_t nready, ready_capacity;
    uint8_t **unused; /* memory of targets */
    size_t nunused, unused_capacity;
} job;

static void die(const char *what)
{
    fprintf(stderr, "roofline: %s: %s\n", what, errno ? strerror(errno) : "wrong");
    exit(1);
}

static void *must(void *p)
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

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
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
        ssize_t n = write(fd, data, nbytes);
        if (n <= 0)
            die("write");
        data += n;
        nbytes -= (size_t)n;
    }
}

static void write_file(worker *w, const array *a, const uint64_t *t, size_t nbytes)
{
    char path[512], temporary[512];
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
    write_all(fd, w->encoded, nbytes);
    if (close(fd) != 0 || renameat(out, temporary, out, path) != 0)
        die(path);
    w->nfiles++;
    w->written_nbytes += nbytes;
}

/* ---- one source, one target ---- */

static void find_source(const array *a, uint64_t item, uint64_t *s)
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

static target *find_target(const array *a, const uint64_t *t)
{
    return &a->out[(t[0] * a->ntarget[1] + t[1]) * a->ntarget[2] + t[2]];
}

static void do_source(worker *w, const array *a, const uint64_t *s)
{
    const chunk *c = &a->chunk[(s[0] * a->nsource[1] + s[1]) * a->nsource[2] + s[2]];
    uint8_t *data = w->stored;
    size_t nbytes = c->nbytes;
    if (pread(w->job->input, data, nbytes, (off_t)c->address) != (ssize_t)nbytes)
        die("read");
    w->read_nbytes += nbytes;
    book(w, READ);
    if (a->deflate) {
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
    scatter(a, s, data);
    book(w, SCATTER);
}

static void do_target(worker *w, const ready *r)
{
    uint8_t *data = find_target(r->a, r->t)->data;
    pad(r->a, r->t, data);
    size_t nbytes =
        loop_frame(w->zstd, w->encoded, data, r->a->target_nbytes, r->a->itemsize, w->decoded);
    book(w, COMPRESS);
    write_file(w, r->a, r->t, nbytes);
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

/* Calls FN for every target that the sources FIRST to END of A meet. */
typedef void visit_target(job *job, const array *a, const uint64_t *t);

static void for_targets(job *job, const array *a, uint64_t first, uint64_t end, visit_target *fn)
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

static void count_up(job *job, const array *a, const uint64_t *t)
{
    (void)job;
    find_target(a, t)->left++;
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

/* ---- the plan ---- */

static void read_triple(FILE *f, uint64_t *out)
{
    for (int d = 0; d < RANK; d++)
        if (fscanf(f, "%" SCNu64, &out[d]) != 1 || out[d] == 0)
            die("plan: three numbers expected");
}

static uint64_t lcm(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;
    while (y != 0) {
        uint64_t r = x % y;
        x = y;
        y = r;
    }
    return a / x * b;
}

static void measure_array(job *job, array *a)
{
    a->source_nbytes = a->target_nbytes = a->itemsize;
    for (int d = 0; d < RANK; d++) {
        a->nsource[d] = ceil_div(a->shape[d], a->source[d]);
        a->ntarget[d] = ceil_div(a->shape[d], a->target[d]);
        a->source_nbytes *= a->source[d];
        a->target_nbytes *= a->target[d];
    }
    a->depth = least(lcm(a->source[0], a->target[0]) / a->source[0], a->nsource[0]);
    a->batch = ceil_div(BATCH_NBYTES, a->source_nbytes);
    uint64_t ntargets = a->ntarget[0] * a->ntarget[1] * a->ntarget[2];
    a->out = must(calloc(ntargets, sizeof(target)));
    job->ntargets += ntargets;
    job->max_source = a->source_nbytes > job->max_source ? a->source_nbytes : job->max_source;
    job->max_target = a->target_nbytes > job->max_target ? a->target_nbytes : job->max_target;
    for_targets(job, a, 0, a->nsource[0] * a->nsource[1] * a->nsource[2], count_up);
}

static void read_array(job *job, FILE *f)
{
    char deflate[16], shuffled[16], swapped[16];
    uint64_t nchunks;
    job->array = must(realloc(job->array, (job->narrays + 1) * sizeof(array)));
    array *a = &job->array[job->narrays++];
    memset(a, 0, sizeof(*a));
    if (fscanf(f, "%255s %zu %15s %15s %15s", a->name, &a->itemsize, deflate, shuffled, swapped) !=
        5)
        die("plan: array");
    a->deflate = strcmp(deflate, "deflate") == 0;
    a->shuffle = strcmp(shuffled, "shuffle") == 0;
    a->swap = strcmp(swapped, "swap") == 0;
    read_triple(f, a->shape);
    read_triple(f, a->source);
    read_triple(f, a->target);
    if (fscanf(f, "%" SCNu64, &nchunks) != 1)
        die("plan: number of chunks");
    a->chunk = must(malloc(nchunks * sizeof(chunk)));
    for (uint64_t i = 0; i < nchunks; i++) {
        if (fscanf(f, "%" SCNu64 " %" SCNu64, &a->chunk[i].address, &a->chunk[i].nbytes) != 2)
            die("plan: chunk");
        job->max_stored =
            a->chunk[i].nbytes > job->max_stored ? a->chunk[i].nbytes : job->max_stored;
    }
    measure_array(job, a);
    if (nchunks != a->nsource[0] * a->nsource[1] * a->nsource[2])
        die("plan: chunks and shape differ");
}

static void read_plan(job *job, const char *path)
{
    char word[16], input[4096];
    FILE *f = fopen(path, "r");
    if (f == NULL)
        die(path);
    if (fscanf(f, "input %4095[^\n]", input) != 1)
        die("plan: input");
    while (fscanf(f, "%15s", word) == 1 && strcmp(word, "array") == 0)
        read_array(job, f);
    fclose(f);
    if ((job->input = open(input, O_RDONLY | O_CLOEXEC)) < 0)
        die(input);
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
