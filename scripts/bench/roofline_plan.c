/*
 * The plan: text, `input PATH`, then for each array, with rank 3 (1 in front
 * where there are fewer dimensions) and its chunks in C order,
 *
 *     array NAME ITEMSIZE raw|deflate|blosc|zstd|copy shuffle|plain swap|native
 *           SHAPE{3} SOURCE_CHUNK{3} TARGET_CHUNK{3} NCHUNKS
 *     ADDRESS NBYTES        (NCHUNKS lines)
 *
 * For an archive the first line is `files STEPS COUNT`, followed by COUNT paths: each file has
 * STEPS chunks along the first dimension, and addresses are those in its file.
 *
 * PATH is a file, or a store of version 3 whose chunks are files; there, only a
 * copy has addresses: where in the shard, which is its target chunk, the bytes go.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "roofline.h"

enum {
    BATCH_NBYTES = 64 << 10, /* decoded sources taken at once */
    ENTRY_NBYTES = 16,       /* of a shard's index: offset and length */
    CHECKSUM_NBYTES = 4
};

static const char *const codings[] = {"raw", "deflate", "blosc", "zstd", "copy", NULL};

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
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

static void read_triple(FILE *f, uint64_t *out)
{
    for (int d = 0; d < RANK; d++)
        if (fscanf(f, "%" SCNu64, &out[d]) != 1 || out[d] == 0)
            die("plan: three numbers expected");
}

static void raise_to(size_t *most, size_t n)
{
    *most = n > *most ? n : *most;
}

static void count_up(job *job, const array *a, const uint64_t *t)
{
    (void)job;
    find_target(a, t)->left++;
}

/* The longest shard, its index included. */
static size_t longest_shard(const array *a, uint64_t nchunks)
{
    size_t end = 0, ninner = 1;
    for (int d = 0; d < RANK; d++)
        ninner *= ceil_div(a->target[d], a->source[d]);
    for (uint64_t i = 0; i < nchunks; i++)
        raise_to(&end, a->chunk[i].address + a->chunk[i].nbytes);
    return end + ninner * ENTRY_NBYTES + CHECKSUM_NBYTES;
}

static void measure_array(job *job, array *a, uint64_t nchunks)
{
    a->source_nbytes = a->target_nbytes = a->itemsize;
    for (int d = 0; d < RANK; d++) {
        a->nsource[d] = ceil_div(a->shape[d], a->source[d]);
        a->ntarget[d] = ceil_div(a->shape[d], a->target[d]);
        a->source_nbytes *= a->source[d];
        a->target_nbytes *= a->target[d];
    }
    if (nchunks != a->nsource[0] * a->nsource[1] * a->nsource[2])
        die("plan: chunks and shape differ");
    if (a->coding == CODING_COPY)
        a->target_nbytes = longest_shard(a, nchunks);
    a->in_place = memcmp(a->source, a->target, sizeof(a->source)) == 0;
    a->depth = least(lcm(a->source[0], a->target[0]) / a->source[0], a->nsource[0]);
    a->batch = ceil_div(BATCH_NBYTES, a->source_nbytes);
    uint64_t ntargets = a->ntarget[0] * a->ntarget[1] * a->ntarget[2];
    a->out = must(calloc(ntargets, sizeof(target)));
    job->ntargets += ntargets;
    raise_to(&job->max_source, a->source_nbytes);
    raise_to(&job->max_target, a->target_nbytes);
    for_targets(job, a, 0, nchunks, count_up);
}

static coding find_coding(const char *name)
{
    for (int i = 0; codings[i] != NULL; i++)
        if (strcmp(name, codings[i]) == 0)
            return (coding)i;
    die("plan: coding");
    return CODING_RAW;
}

static void read_array(job *job, FILE *f)
{
    char coded[16], shuffled[16], swapped[16];
    uint64_t nchunks;
    job->array = must(realloc(job->array, (job->narrays + 1) * sizeof(array)));
    array *a = &job->array[job->narrays++];
    memset(a, 0, sizeof(*a));
    if (fscanf(f, "%255s %zu %15s %15s %15s", a->name, &a->itemsize, coded, shuffled, swapped) != 5)
        die("plan: array");
    a->coding = find_coding(coded);
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
        raise_to(&job->max_stored, a->chunk[i].nbytes);
    }
    measure_array(job, a, nchunks);
}

static void open_input(job *job, const char *path)
{
    struct stat st;
    if ((job->input = open(path, O_RDONLY | O_CLOEXEC)) < 0 || fstat(job->input, &st) != 0)
        die(path);
    job->is_folder = S_ISDIR(st.st_mode);
}

static void open_files(job *job, FILE *f)
{
    char path[4096];
    uint64_t n;
    if (fscanf(f, "%" SCNu64 " %" SCNu64 "\n", &job->per_file, &n) != 2 || job->per_file == 0)
        die("plan: files");
    job->file = must(malloc(n * sizeof(*job->file)));
    for (uint64_t i = 0; i < n; i++) {
        if (fscanf(f, "%4095[^\n]\n", path) != 1 ||
            (job->file[i] = open(path, O_RDONLY | O_CLOEXEC)) < 0)
            die("plan: a file");
    }
}

void read_plan(job *job, const char *path)
{
    char word[16], input[4096];
    FILE *f = fopen(path, "r");
    if (f == NULL)
        die(path);
    if (fscanf(f, "%15s", word) != 1)
        die("plan: input");
    if (strcmp(word, "files") == 0)
        open_files(job, f);
    else if (fscanf(f, " %4095[^\n]", input) == 1)
        open_input(job, input);
    while (fscanf(f, "%15s", word) == 1 && strcmp(word, "array") == 0)
        read_array(job, f);
    fclose(f);
}
