/* The work of roofline.c, which roofline_plan.c reads. */
#ifndef BENCH_ROOFLINE_H
#define BENCH_ROOFLINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RANK = 3
};

/* How sources are stored. */
typedef enum coding {
    CODING_RAW,
    CODING_DEFLATE,
    CODING_BLOSC, /* frames of zstd */
    CODING_ZSTD,
    CODING_COPY /* as the target has them: stored bytes go into shards unchanged */
} coding;

typedef struct chunk {
    uint64_t address; /* in the input; of a copy, in the shard */
    uint64_t nbytes;
} chunk;

typedef struct target {
    uint8_t *data; /* NULL before its first source and after it is written */
    uint64_t left; /* sources to come */
} target;

typedef struct array {
    char name[256];
    size_t itemsize;
    coding coding;
    bool shuffle, swap;
    bool in_place; /* source and target chunks are the same */
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

typedef struct job {
    array *array;
    size_t narrays;
    int input, output;
    bool is_folder;    /* the input is a store, with a file for each chunk */
    int *file;         /* many inputs, one behind the other along the first dimension; or NULL */
    uint64_t per_file; /* chunks of each along it */
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

/* Ends the program. */
void die(const char *what);
void *must(void *p);
uint64_t least(uint64_t a, uint64_t b);

/* The chunk of the source at S. */
static inline const chunk *find_chunk(const array *a, const uint64_t *s)
{
    return &a->chunk[(s[0] * a->nsource[1] + s[1]) * a->nsource[2] + s[2]];
}

static inline target *find_target(const array *a, const uint64_t *t)
{
    return &a->out[(t[0] * a->ntarget[1] + t[1]) * a->ntarget[2] + t[2]];
}

/* Source ITEM in the order in which they are taken. */
void find_source(const array *a, uint64_t item, uint64_t *s);

/* Calls FN for every target that the sources FIRST to END of A meet. */
typedef void visit_target(job *job, const array *a, const uint64_t *t);
void for_targets(job *job, const array *a, uint64_t first, uint64_t end, visit_target *fn);

/* Arrays and chunks of the file PATH, and the input opened. */
void read_plan(job *job, const char *path);

#endif
