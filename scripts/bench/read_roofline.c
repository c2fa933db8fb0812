/*
 * read_roofline [-j THREADS] PLAN
 *
 * The roofline of reading: bare loops that open, pread, decode and copy the very
 * chunks which the samples of PLAN meet, with the codec library and no code of the
 * project.  Each thread makes whole batches.  read_plan.py writes the plan: lines
 * of a name and its values.
 *
 *     array PATH            a folder of Zarr version 3, chunks of blosc zstd
 *     itemsize N
 *     shape Z Y X
 *     chunk Z Y X
 *     shard Z Y X           0 0 0: none
 *     sample Z Y X
 *     batch N
 *     samples N             and as many lines of the first element of each
 *
 * It says "ready", and then does what it is told by lines on standard input:
 * "pass" reads all samples and prints {"seconds":, "cpu":}; "check FILE" also
 * writes the CRC32C of each sample, a line each, and prints {}.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "loops.h"

enum {
    RANK = 3,
    MAX_THREADS = 64,
    INDEX_CRC = 4 /* bytes behind a shard's index */
};

typedef struct box {
    uint64_t start[RANK], shape[RANK];
} box;

typedef struct shard {
    int fd;
    uint64_t *index; /* offset and length of each chunk of it */
} shard;

typedef struct plan {
    char array[3072];
    uint64_t itemsize, nsamples, batch;
    uint64_t shape[RANK], chunk[RANK], outer[RANK], sample[RANK];
    bool sharded;
    uint64_t (*start)[RANK];
    uint64_t grid[RANK];  /* chunks */
    uint64_t inner[RANK]; /* chunks of a shard */
    uint64_t nshards[RANK];
    size_t chunk_nbytes, sample_nbytes, stored_capacity;
    shard *shard;
    uint32_t *crc; /* of each sample; NULL: not wanted */
    _Atomic uint64_t next;
} plan;

typedef struct worker {
    plan *p;
    ZSTD_DCtx *zstd;
    uint8_t *stored, *decoded, *scratch;
    uint8_t *out; /* a batch */
} worker;

static void die(const char *what, const char *which)
{
    fprintf(stderr, "read_roofline: %s%s\n", what, which);
    exit(1);
}

static void *must(void *memory)
{
    if (memory == NULL)
        die("no memory", "");
    return memory;
}

static uint64_t product(const uint64_t *v)
{
    return v[0] * v[1] * v[2];
}

/* ---- chunks ---- */

static int open_object(const plan *p, const uint64_t *at)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/c/%" PRIu64 "/%" PRIu64 "/%" PRIu64, p->array, at[0], at[1],
             at[2]);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die("cannot open ", path);
    return fd;
}

/* The stored bytes of chunk AT, in w->stored. */
static void fetch(worker *w, const uint64_t *at)
{
    const plan *p = w->p;
    ssize_t n;
    if (!p->sharded) {
        int fd = open_object(p, at);
        n = pread(fd, w->stored, p->stored_capacity, 0);
        close(fd);
    } else {
        uint64_t s = 0, i = 0;
        for (int j = 0; j < RANK; j++) {
            s = s * p->nshards[j] + at[j] / p->inner[j];
            i = i * p->inner[j] + at[j] % p->inner[j];
        }
        const uint64_t *entry = &p->shard[s].index[2 * i];
        if (entry[1] > p->stored_capacity)
            die("a chunk is missing or too long", "");
        n = pread(p->shard[s].fd, w->stored, entry[1], (off_t)entry[0]);
    }
    if (n <= 0)
        die("a chunk cannot be read", "");
}

/* The part of a decoded chunk that begins at FROM which SAMPLE wants. */
static void copy_part(const plan *p, const uint64_t *from, const uint8_t *chunk, const box *sample,
                      uint8_t *out)
{
    uint64_t lo[RANK], hi[RANK];
    for (int j = 0; j < RANK; j++) {
        uint64_t end = sample->start[j] + sample->shape[j];
        lo[j] = from[j] > sample->start[j] ? from[j] : sample->start[j];
        hi[j] = from[j] + p->chunk[j] < end ? from[j] + p->chunk[j] : end;
    }
    const size_t row = (hi[2] - lo[2]) * p->itemsize;
    for (uint64_t z = lo[0]; z < hi[0]; z++) {
        for (uint64_t y = lo[1]; y < hi[1]; y++) {
            uint64_t a =
                ((z - from[0]) * p->chunk[1] + y - from[1]) * p->chunk[2] + lo[2] - from[2];
            uint64_t b = ((z - sample->start[0]) * sample->shape[1] + y - sample->start[1]) *
                             sample->shape[2] +
                         lo[2] - sample->start[2];
            memcpy(out + b * p->itemsize, chunk + a * p->itemsize, row);
        }
    }
}

static void read_sample(worker *w, const uint64_t *start, uint8_t *out)
{
    const plan *p = w->p;
    box sample;
    uint64_t first[RANK], last[RANK], at[RANK], from[RANK];
    for (int j = 0; j < RANK; j++) {
        uint64_t left = p->shape[j] - start[j];
        sample.start[j] = start[j];
        sample.shape[j] = p->sample[j] < left ? p->sample[j] : left;
        first[j] = start[j] / p->chunk[j];
        last[j] = (start[j] + sample.shape[j] - 1) / p->chunk[j];
    }
    for (at[0] = first[0]; at[0] <= last[0]; at[0]++)
        for (at[1] = first[1]; at[1] <= last[1]; at[1]++)
            for (at[2] = first[2]; at[2] <= last[2]; at[2]++) {
                fetch(w, at);
                if (!loop_unframe(w->zstd, w->decoded, p->chunk_nbytes, w->stored, w->scratch))
                    die("a chunk is no frame of blosc zstd", "");
                for (int j = 0; j < RANK; j++)
                    from[j] = at[j] * p->chunk[j];
                copy_part(p, from, w->decoded, &sample, out);
            }
}

static void *work(void *arg)
{
    worker *w = arg;
    plan *p = w->p;
    const uint64_t nbatches = (p->nsamples + p->batch - 1) / p->batch;
    for (uint64_t b; (b = atomic_fetch_add(&p->next, 1)) < nbatches;)
        for (uint64_t i = b * p->batch; i < p->nsamples && i < (b + 1) * p->batch; i++) {
            uint8_t *out = w->out + (i % p->batch) * p->sample_nbytes;
            read_sample(w, p->start[i], out);
            if (p->crc != NULL) {
                size_t nelem = 1;
                for (int j = 0; j < RANK; j++) {
                    uint64_t left = p->shape[j] - p->start[i][j];
                    nelem *= p->sample[j] < left ? p->sample[j] : left;
                }
                p->crc[i] = loop_crc32c(out, nelem * p->itemsize);
            }
        }
    return NULL;
}

/* ---- setting up ---- */

static void read_numbers(FILE *f, const char *name, uint64_t *v, int n)
{
    char found[16];
    if (fscanf(f, "%15s", found) != 1 || strcmp(found, name) != 0)
        die("the plan lacks ", name);
    for (int i = 0; i < n; i++)
        if (fscanf(f, "%" SCNu64, &v[i]) != 1)
            die("the plan has no number for ", name);
}

static void read_plan(plan *p, const char *path)
{
    FILE *f = fopen(path, "r");
    if (f == NULL || fscanf(f, "array %3071[^\n]", p->array) != 1)
        die("no plan: ", path);
    read_numbers(f, "itemsize", &p->itemsize, 1);
    read_numbers(f, "shape", p->shape, RANK);
    read_numbers(f, "chunk", p->chunk, RANK);
    read_numbers(f, "shard", p->outer, RANK);
    read_numbers(f, "sample", p->sample, RANK);
    read_numbers(f, "batch", &p->batch, 1);
    read_numbers(f, "samples", &p->nsamples, 1);
    p->start = must(calloc(p->nsamples, sizeof(*p->start)));
    for (uint64_t i = 0; i < p->nsamples; i++)
        if (fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64, &p->start[i][0], &p->start[i][1],
                   &p->start[i][2]) != RANK)
            die("the plan has too few samples", "");
    fclose(f);
    p->sharded = p->outer[0] > 0;
    p->chunk_nbytes = product(p->chunk) * p->itemsize;
    p->sample_nbytes = product(p->sample) * p->itemsize;
    p->stored_capacity = loop_frame_bound(p->chunk_nbytes);
    for (int j = 0; j < RANK; j++) {
        p->grid[j] = (p->shape[j] + p->chunk[j] - 1) / p->chunk[j];
        p->inner[j] = p->sharded ? p->outer[j] / p->chunk[j] : 1;
        p->nshards[j] = (p->grid[j] + p->inner[j] - 1) / p->inner[j];
    }
}

/* Opens all shards and reads their indices: what any reader does once. */
static void open_shards(plan *p)
{
    const size_t nbytes = product(p->inner) * 2 * sizeof(uint64_t);
    uint64_t at[RANK], n = 0;
    p->shard = must(calloc(product(p->nshards), sizeof(*p->shard)));
    for (at[0] = 0; at[0] < p->nshards[0]; at[0]++)
        for (at[1] = 0; at[1] < p->nshards[1]; at[1]++)
            for (at[2] = 0; at[2] < p->nshards[2]; at[2]++, n++) {
                shard *s = &p->shard[n];
                struct stat status;
                s->fd = open_object(p, at);
                s->index = must(malloc(nbytes));
                if (fstat(s->fd, &status) != 0 ||
                    pread(s->fd, s->index, nbytes, status.st_size - (off_t)nbytes - INDEX_CRC) !=
                        (ssize_t)nbytes)
                    die("a shard is short", "");
            }
}

static void *aligned(size_t nbytes)
{
    uint8_t *memory = must(aligned_alloc(4096, (nbytes + 4095) / 4096 * 4096));
    memset(memory, 0, nbytes);
    return memory;
}

/* ---- passes ---- */

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static double wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pass(plan *p, worker *w, int nworkers, double *seconds, double *cpu)
{
    pthread_t thread[MAX_THREADS];
    const double before = cpu_seconds();
    *seconds = wall_seconds();
    atomic_store(&p->next, 0);
    for (int i = 1; i < nworkers; i++)
        if (pthread_create(&thread[i], NULL, work, &w[i]) != 0)
            die("no thread", "");
    work(&w[0]);
    for (int i = 1; i < nworkers; i++)
        pthread_join(thread[i], NULL);
    *seconds = wall_seconds() - *seconds;
    *cpu = cpu_seconds() - before;
}

static void check(plan *p, worker *w, int nworkers, const char *path)
{
    double seconds, cpu;
    p->crc = must(calloc(p->nsamples, sizeof(*p->crc)));
    pass(p, w, nworkers, &seconds, &cpu);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        die("cannot write ", path);
    for (uint64_t i = 0; i < p->nsamples; i++)
        fprintf(f, "%08" PRIx32 "\n", p->crc[i]);
    if (fclose(f) != 0)
        die("cannot write ", path);
    free(p->crc);
    p->crc = NULL;
}

int main(int argc, char **argv)
{
    static plan p;
    static worker w[MAX_THREADS];
    int nworkers = 1;
    char line[4096], path[4096];
    for (int option; (option = getopt(argc, argv, "j:")) != -1;) {
        if (option != 'j')
            return 2;
        nworkers = atoi(optarg);
    }
    if (argc - optind != 1 || nworkers < 1 || nworkers > MAX_THREADS)
        die("usage: read_roofline [-j THREADS] PLAN", "");
    read_plan(&p, argv[optind]);
    if (p.sharded)
        open_shards(&p);
    for (int i = 0; i < nworkers; i++)
        w[i] = (worker){.p = &p,
                        .zstd = must(ZSTD_createDCtx()),
                        .stored = aligned(p.stored_capacity),
                        .decoded = aligned(p.chunk_nbytes),
                        .scratch = aligned(p.chunk_nbytes),
                        .out = aligned(p.batch * p.sample_nbytes)};
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (sscanf(line, "check %4095[^\n]", path) == 1) {
            check(&p, w, nworkers, path);
            puts("{}");
        } else {
            double seconds, cpu;
            pass(&p, w, nworkers, &seconds, &cpu);
            printf("{\"seconds\": %.6f, \"cpu\": %.6f}\n", seconds, cpu);
        }
        fflush(stdout);
    }
    return 0;
}
