/*
 * read_roofline [-s SEED] [-n BOXES] [-r ROUNDS] STORE ARRAY SHAPE
 *
 * Reads boxes of SHAPE (16x64x64), drawn at random, of an array of a Zarr store
 * version 3 whose chunks are raw or zstd, in shards or not: by a bare loop of
 * open, pread, libzstd and memcpy over the chunks that each box meets, and by the
 * library's reader, in turn.  The last line is JSON: seconds of CPU time and of
 * the clock of both, the medians of all rounds, and how much longer the reader
 * takes.  Ends with 1 when a box differs.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zstd.h>

#include "exec/reader.h"
#include "format/zarr/open.h"

enum {
    MAX_ROUNDS = 101,
    MAX_RANK = 8
};

typedef struct shard {
    int fd;          /* -1: not opened yet */
    uint64_t *index; /* offset and length of each inner chunk */
} shard;

typedef struct run {
    const char *store, *name;
    cm_array *array;
    bool raw;
    bool sharded;
    cm_grid outer; /* of objects */
    cm_grid inner; /* of chunks in a shard */
    size_t index_nbytes;
    shard *shard;
    cm_box *box;
    size_t nboxes;
    size_t max_stored;
    uint8_t *stored, *decoded;
    ZSTD_DCtx *zstd;
} run;

static void die(const char *what)
{
    fprintf(stderr, "read_roofline: %s\n", what);
    exit(2);
}

static void *must(void *p)
{
    if (p == NULL)
        die("no memory");
    return p;
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the bare loop ---- */

static int open_object(const run *r, const uint64_t *coord)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/%s/c", r->store, r->name);
    for (unsigned j = 0; j < r->outer.rank; j++)
        n += snprintf(path + n, sizeof(path) - (size_t)n, "/%llu", (unsigned long long)coord[j]);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Stored bytes of chunk COORD in r->stored; 0: missing. */
static size_t fetch(run *r, const uint64_t *coord)
{
    if (!r->sharded) {
        int fd = open_object(r, coord);
        if (fd < 0)
            return 0;
        ssize_t n = pread(fd, r->stored, r->max_stored, 0);
        close(fd);
        return n > 0 ? (size_t)n : 0;
    }
    uint64_t outer[MAX_RANK], local[MAX_RANK];
    for (unsigned j = 0; j < r->outer.rank; j++) {
        outer[j] = coord[j] / r->inner.count[j];
        local[j] = coord[j] % r->inner.count[j];
    }
    shard *s = &r->shard[cm_grid_number(&r->outer, outer)];
    if (s->fd < 0) {
        if ((s->fd = open_object(r, outer)) < 0)
            return 0;
        off_t end = lseek(s->fd, 0, SEEK_END);
        s->index = must(malloc(r->index_nbytes));
        if (pread(s->fd, s->index, r->index_nbytes, end - (off_t)r->index_nbytes) !=
            (ssize_t)r->index_nbytes)
            die("a shard is short");
    }
    const uint64_t *e = &s->index[2 * cm_grid_number(&r->inner, local)];
    if (e[0] == UINT64_MAX || pread(s->fd, r->stored, e[1], (off_t)e[0]) != (ssize_t)e[1])
        return 0;
    return e[1];
}

/* Rows of PART from a chunk that begins at COVERED to a box at DST. */
static void copy_rows(const run *r, const cm_box *covered, const cm_box *part, const uint8_t *chunk,
                      const cm_box *box, uint8_t *dst)
{
    const cm_grid *g = &r->array->grid;
    const unsigned last = g->rank - 1;
    const size_t item = r->array->dtype.nbytes;
    uint64_t at[MAX_RANK] = {0};
    for (;;) {
        uint64_t from = 0, to = 0;
        for (unsigned j = 0; j <= last; j++) {
            from = from * g->chunk[j] + part->start[j] - covered->start[j] + at[j];
            to = to * box->shape[j] + part->start[j] - box->start[j] + at[j];
        }
        memcpy(dst + to * item, chunk + from * item, part->shape[last] * item);
        unsigned j = last;
        while (j-- > 0 && ++at[j] == part->shape[j])
            at[j] = 0;
        if (j == UINT_MAX)
            return;
    }
}

static void read_chunk(run *r, const uint64_t *coord, const cm_box *box, uint8_t *dst)
{
    const cm_grid *g = &r->array->grid;
    const size_t nbytes = g->chunk_nelem * r->array->dtype.nbytes;
    cm_box covered, part;
    cm_grid_box(g, coord, &covered);
    cm_box_intersect(&covered, box, &part);
    size_t n = fetch(r, coord);
    if (n == 0)
        die("a chunk is missing");
    const uint8_t *chunk = r->raw ? r->stored : r->decoded;
    if (!r->raw && ZSTD_decompressDCtx(r->zstd, r->decoded, nbytes, r->stored, n) != nbytes)
        die("a chunk is no zstd frame of the right size");
    copy_rows(r, &covered, &part, chunk, box, dst);
}

static void bare(run *r, const cm_box *box, uint8_t *dst)
{
    const cm_grid *g = &r->array->grid;
    uint64_t first[MAX_RANK], count[MAX_RANK], coord[MAX_RANK], left = 1;
    cm_grid_cover(g, box, first, count);
    for (unsigned j = 0; j < g->rank; j++) {
        coord[j] = first[j];
        left *= count[j];
    }
    for (; left > 0; left--) {
        read_chunk(r, coord, box, dst);
        for (unsigned j = g->rank; j-- > 0 && ++coord[j] == first[j] + count[j];)
            coord[j] = first[j];
    }
}

/* ---- setting up ---- */

static void parse_shape(const char *text, unsigned rank, uint64_t *shape)
{
    char *end;
    for (unsigned j = 0; j < rank; j++, text = end + (*end == 'x'))
        if ((shape[j] = strtoull(text, &end, 10)) == 0)
            die("SHAPE has a length for each dimension, as in 16x64x64");
}

static void open_array(run *r, cm_store *store)
{
    cm_zarr_tree tree;
    cm_error err;
    const cm_zarr_node *node = NULL;
    if (cm_zarr_open(store, &tree, &err) != CM_OK ||
        (node = cm_zarr_find(&tree, r->name)) == NULL ||
        cm_zarr_array_open(&tree, node, 64 << 20, &r->array, &err) != CM_OK)
        die(node == NULL ? "no such array" : err.text);
    const cm_zarr_meta *m = &node->meta;
    r->sharded = m->codecs[0].id == CM_CODEC_SHARDING;
    const cm_codec_spec *codecs = r->sharded ? m->codecs[0].shard->codecs : m->codecs;
    const size_t n = r->sharded ? m->codecs[0].shard->ncodecs : m->ncodecs;
    r->raw = n == 1 && cm_chain_is_raw(r->array->chain);
    if (m->zarr_format != 3 || m->rank == 0 || m->rank > MAX_RANK || m->separator != '/' ||
        !(r->raw || (n == 2 && codecs[1].id == CM_CODEC_ZSTD)))
        die("the array is not of version 3, or neither raw nor zstd");
    cm_grid_init(&r->outer, m->rank, m->shape, m->chunk, NULL);
    cm_grid_init(&r->inner, m->rank, m->chunk, r->array->grid.chunk, NULL);
    /* With its checksum, of 4 bytes, at its end. */
    r->index_nbytes =
        r->inner.nchunks * 16 + (r->sharded && m->codecs[0].shard->nindex_codecs > 1 ? 4 : 0);
    cm_zarr_tree_release(&tree);
}

static void prepare(run *r, const char *shape_text, uint64_t seed)
{
    const cm_array *a = r->array;
    uint64_t shape[MAX_RANK];
    parse_shape(shape_text, a->rank, shape);
    r->shard = must(calloc(r->outer.nchunks, sizeof(*r->shard)));
    for (uint64_t i = 0; i < r->outer.nchunks; i++)
        r->shard[i].fd = -1;
    r->max_stored = a->max_stored_nbytes;
    r->stored = must(aligned_alloc(64, (r->max_stored + 63) / 64 * 64));
    r->decoded = must(aligned_alloc(64, (a->grid.chunk_nelem * a->dtype.nbytes + 63) / 64 * 64));
    r->zstd = must(ZSTD_createDCtx());
    r->box = must(calloc(r->nboxes, sizeof(*r->box)));
    for (size_t i = 0; i < r->nboxes; i++) {
        r->box[i].rank = a->rank;
        for (unsigned j = 0; j < a->rank; j++) {
            if (shape[j] > a->shape[j])
                die("SHAPE is larger than the array");
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            r->box[i].shape[j] = shape[j];
            r->box[i].start[j] = (seed >> 20) % (a->shape[j] - shape[j] + 1);
        }
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *value, int n)
{
    qsort(value, (size_t)n, sizeof(*value), ascending);
    return value[n / 2];
}

int main(int argc, char **argv)
{
    run r = {.nboxes = 64};
    uint64_t seed = 1;
    int rounds = 7;
    for (int option; (option = getopt(argc, argv, "s:n:r:")) != -1;) {
        if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (option == 'n')
            r.nboxes = strtoull(optarg, NULL, 10);
        else if (option == 'r')
            rounds = atoi(optarg);
        else
            return 2;
    }
    if (argc - optind != 3 || r.nboxes == 0 || rounds < 1 || rounds > MAX_ROUNDS)
        die("usage: read_roofline [-s SEED] [-n BOXES] [-r ROUNDS] STORE ARRAY SHAPE");
    r.store = argv[optind];
    r.name = argv[optind + 1];
    cm_store *store;
    cm_error err;
    cm_reader *reader;
    cm_reader_options options = {0};
    if (cm_store_open_dir(r.store, false, &store, &err) != CM_OK)
        die(err.text);
    open_array(&r, store);
    prepare(&r, argv[optind + 2], seed);
    if (cm_reader_create(&options, &reader, &err) != CM_OK)
        die(err.text);
    const size_t nbytes = cm_box_nelem(&r.box[0]) * r.array->dtype.nbytes;
    uint8_t *one = must(malloc(nbytes)), *other = must(malloc(nbytes));
    static double cpu[2][MAX_ROUNDS], wall[2][MAX_ROUNDS], ratio[MAX_ROUNDS];
    cm_load_counts counts = {0};
    for (int round = -1; round < rounds; round++) { /* the first one, unmeasured, fills caches */
        for (int way = 0; way < 2; way++) {
            double start = seconds(CLOCK_MONOTONIC), cpu_start = seconds(CLOCK_THREAD_CPUTIME_ID);
            for (size_t i = 0; i < r.nboxes; i++) {
                if (way == 0)
                    bare(&r, &r.box[i], one);
                else if (cm_reader_box(reader, r.array, &r.box[i], NULL, other, &counts, &err) !=
                         CM_OK)
                    die(err.text);
            }
            if (round >= 0) {
                cpu[way][round] = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
                wall[way][round] = seconds(CLOCK_MONOTONIC) - start;
            }
        }
        if (memcmp(one, other, nbytes) != 0) {
            fprintf(stderr, "read_roofline: the last box differs\n");
            return 1;
        }
        if (round >= 0)
            ratio[round] = cpu[1][round] / cpu[0][round];
    }
    printf("{\"boxes\":%zu,\"chunks\":%llu,\"bare_cpu\":%.6f,\"reader_cpu\":%.6f,"
           "\"bare_wall\":%.6f,\"reader_wall\":%.6f,\"longer\":%.4f}\n",
           r.nboxes, (unsigned long long)counts.chunks / (unsigned)(rounds + 1),
           median(cpu[0], rounds), median(cpu[1], rounds), median(wall[0], rounds),
           median(wall[1], rounds), median(ratio, rounds) - 1);
    return 0;
}
