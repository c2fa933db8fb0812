/* Which chunks of an unfinished store are kept: those that decode, whole shards alone. */

#include "convert/beside/adopt.h"
#include "job_fixture.h"

static const made_file ONE = {"f", .var = {{"v", "int16", "t*=12 y=4"}}};
static const made_file LONG = {"f", .var = {{"v", "int16", "t*=3600"}}};
static const made_file MANY = {"f", .var = {{"v", "int16", "t*=100"}}};

typedef enum damage {
    NONE,
    GONE,
    EMPTY,
    CUT,
    ZEROS,
    ZERO_END,   /* from the last block on */
    ZERO_BLOCK, /* one that is not the last */
    NOISE,
    FIRST_BYTE, /* of a shard: of its first chunk */
    LONGER
} damage;

/* Damage of the object KEY in a store that was made. */
typedef struct made_damage {
    damage how;
    const char *key;
} made_damage;

static void make_damage(cm_store *store, const made_damage *d)
{
    cm_buf text = {0};
    OK(cm_store_get(store, d->key, 1 << 20, &text, err));
    switch (d->how) {
    case NONE:
        break;
    case GONE:
        OK(cm_store_delete(store, d->key, err));
        break;
    case EMPTY:
        text.nbytes = 0;
        break;
    case CUT:
        text.nbytes--;
        break;
    case ZEROS:
        memset(text.data, 0, text.nbytes);
        break;
    case ZERO_END:
        memset(text.data + (text.nbytes - 1) / 512 * 512, 0, (text.nbytes - 1) % 512 + 1);
        break;
    case ZERO_BLOCK:
        memset(text.data + 512, 0, 512);
        break;
    case NOISE:
        memset(text.data, 0xa5, text.nbytes);
        break;
    case FIRST_BYTE:
        text.data[0] ^= 0xff;
        break;
    case LONGER:
        OK(cm_buf_append(&text, "x", 1, err));
        break;
    }
    if (d->how != GONE)
        OK(cm_store_put(store, d->key, text.data, text.nbytes, err));
    cm_buf_release(&text);
}

/* Chunks that were shown to who counts, which begin with their elements' own number. */
typedef struct shown {
    pthread_mutex_t lock;
    uint64_t chunk_nelem;
    unsigned n, nothers; /* that do not */
} shown;

static int see(void *context, uint64_t number, const uint8_t *elements, cm_error *err)
{
    shown *s = context;
    int16_t first = -1;
    (void)err;
    if (elements != NULL)
        memcpy(&first, elements, sizeof first);
    pthread_mutex_lock(&s->lock);
    s->n++;
    s->nothers += first != (int16_t)(number * s->chunk_nelem);
    pthread_mutex_unlock(&s->lock);
    return CM_OK;
}

#define RAW  .codec = TEXTS("none")
#define ZSTD .codec = TEXTS("zstd")

static const struct {
    const char *name;
    const made_file *file;
    cm_transform_options options;
    made_damage damage[3];
    unsigned nkept, nshown;
} ROWS[] = {
    {"all are whole", &ONE, {.chunks = TEXTS("v:3x4"), ZSTD}, {{NONE, NULL}}, 4, 4},
    {"one is not there", &ONE, {.chunks = TEXTS("v:3x4"), ZSTD}, {{GONE, "v/c/1/0"}}, 3, 3},
    {"one is empty", &ONE, {.chunks = TEXTS("v:3x4"), ZSTD}, {{EMPTY, "v/c/1/0"}}, 3, 3},
    {"one is cut", &ONE, {.chunks = TEXTS("v:3x4"), ZSTD}, {{CUT, "v/c/3/0"}}, 3, 3},
    {"one is zeros", &ONE, {.chunks = TEXTS("v:3x4"), ZSTD}, {{ZEROS, "v/c/0/0"}}, 3, 3},
    {"two are noise",
     &ONE,
     {.chunks = TEXTS("v:3x4"), ZSTD},
     {{NOISE, "v/c/0/0"}, {NOISE, "v/c/2/0"}},
     2,
     2},
    {"raw ones of any bytes", &ONE, {.chunks = TEXTS("v:3x4"), RAW}, {{NOISE, "v/c/1/0"}}, 4, 4},
    {"but not of zeros", &ONE, {.chunks = TEXTS("v:3x4"), RAW}, {{ZEROS, "v/c/1/0"}}, 3, 3},
    {"nor of too few", &ONE, {.chunks = TEXTS("v:3x4"), RAW}, {{CUT, "v/c/1/0"}}, 3, 3},
    {"nor of too many", &ONE, {.chunks = TEXTS("v:3x4"), RAW}, {{LONGER, "v/c/1/0"}}, 3, 3},
    {"raw ones of several blocks", &LONG, {.chunks = TEXTS("v:900"), RAW}, {{NONE, NULL}}, 4, 4},
    {"but not with an end of zeros",
     &LONG,
     {.chunks = TEXTS("v:900"), RAW},
     {{ZERO_END, "v/c/3"}},
     3,
     3},
    {"nor with a block of zeros",
     &LONG,
     {.chunks = TEXTS("v:900"), RAW},
     {{ZERO_BLOCK, "v/c/1"}},
     3,
     3},
    {"nor in a shard",
     &LONG,
     {.chunks = TEXTS("v:100"), .shards = TEXTS("v:1800"), RAW},
     {{ZERO_BLOCK, "v/c/1"}},
     1,
     18},
    {"whole shards",
     &ONE,
     {.chunks = TEXTS("v:1x4"), .shards = TEXTS("v:6x4"), ZSTD},
     {{NONE, NULL}},
     2,
     12},
    {"one that is cut",
     &ONE,
     {.chunks = TEXTS("v:1x4"), .shards = TEXTS("v:6x4"), ZSTD},
     {{CUT, "v/c/1/0"}},
     1,
     6},
    {"one with a chunk that is not whole",
     &ONE,
     {.chunks = TEXTS("v:1x4"), .shards = TEXTS("v:6x4"), ZSTD},
     {{FIRST_BYTE, "v/c/1/0"}},
     1,
     6},
    {"one of zeros",
     &ONE,
     {.chunks = TEXTS("v:1x4"), .shards = TEXTS("v:6x4"), ZSTD},
     {{ZEROS, "v/c/0/0"}},
     1,
     6},
    {"more than a thread takes at once, of which the first has nothing to store",
     &MANY,
     {.chunks = TEXTS("v:1"), ZSTD},
     {{CUT, "v/c/17"}, {GONE, "v/c/99"}},
     97,
     97},
};

static void adopt(size_t i, unsigned nthreads, uint64_t memory, bool counts)
{
    planned made, again;
    shown s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    uint64_t nkept = 1000; /* which is added to */
    planned_make(&made, ROWS[i].file, &ROWS[i].options, STEP_RUN);
    if (made.status != CM_OK)
        fail_msg("%s: %s", ROWS[i].name, made.error.text);
    for (size_t k = 0; k < 3 && ROWS[i].damage[k].key != NULL; k++)
        make_damage(made.store, &ROWS[i].damage[k]);
    planned_into(&again, ROWS[i].file, &ROWS[i].options, STEP_PLAN, made.store);
    const cm_job_var *v = &again.job.var[0];
    const cm_made_node node = {.path = v->name,
                               .meta = &v->doc.meta,
                               .writer = v->move.writer,
                               .see = counts ? see : NULL,
                               .see_context = &s};
    s.chunk_nelem = cm_zarr_writer_grid(v->move.writer)->chunk_nelem;
    OK(cm_adopt(made.store, &node, nthreads, memory, &nkept, err));
    if (nkept != 1000 + ROWS[i].nkept || s.n != (counts ? ROWS[i].nshown : 0))
        fail_msg("%s: %u are kept, %u shown", ROWS[i].name, (unsigned)nkept - 1000, s.n);
    assert_int_equal(s.nothers, counts && ROWS[i].damage[0].how == NOISE && s.n == 4);
    /* The writer writes the others, and only those. */
    OK(cm_job_run(&again.job, made.store, err));
    assert_int_equal(v->moved.counts.delivered,
                     cm_zarr_writer_grid(v->move.writer)->nchunks - ROWS[i].nshown);
    planned_release(&again);
    planned_release(&made);
}

static void adopted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        adopt(i, 1, 1 << 20, true);
        adopt(i, 8, UINT64_MAX, false);
        adopt(i, 8, 0, true); /* by one thread, without room for two chunks */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(adopted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
