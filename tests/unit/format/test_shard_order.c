/*
 * Where inner chunks lie in their shards: in the order of the grid, whatever order they come in,
 * from however many threads, wherever they wait.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "codec/shard.h"
#include "zarr_support.h"

enum {
    NTHREADS = 4,
    MOST_NBYTES = 40000 /* of a chunk: more than what is gathered */
};

/* The bytes of chunk NUMBER, of any length: writers look into none.  Every fifth is left out. */
static size_t length_of(uint64_t number)
{
    return number % 7 == 3    ? 17000 + number * 131 % 20000
           : number % 11 == 4 ? 0
                              : 1 + number * 37 % 300;
}

static bool is_left_out(uint64_t number)
{
    return number % 5 == 2;
}

static void fill(uint64_t number, uint8_t *to)
{
    for (size_t i = 0; i < length_of(number); i++)
        to[i] = (uint8_t)(number * 101 + i * (1 + number % 3));
}

/* ---- putting in any order ---- */

typedef struct job {
    cm_zarr_writer *w;
    const uint64_t *order;
    uint64_t n, many; /* chunks, and those that are put together */
    atomic_uint_fast64_t next;
    atomic_int failures;
} job;

/* Chunks that are not left out are adjacent in DATA. */
static void put_some(job *j, const uint64_t *number, uint64_t n, uint8_t *data)
{
    cm_put put[64];
    size_t nputs = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (is_left_out(number[i])) {
            j->failures += cm_zarr_writer_skip(j->w, number[i], NULL) != CM_OK;
            continue;
        }
        fill(number[i], data);
        put[nputs++] = (cm_put){number[i], data, length_of(number[i])};
        data += length_of(number[i]);
    }
    j->failures += cm_zarr_writer_put_many(j->w, put, nputs, NULL) != CM_OK;
}

static void *deliver(void *argument)
{
    job *j = argument;
    uint8_t *data = malloc(j->many * MOST_NBYTES);
    for (uint64_t at; (at = atomic_fetch_add(&j->next, j->many)) < j->n;)
        put_some(j, j->order + at, j->n - at < j->many ? j->n - at : j->many, data);
    free(data);
    return NULL;
}

/* SEED 0: as they are. */
static void shuffle(uint64_t *order, uint64_t n, uint64_t seed)
{
    for (uint64_t i = 0; i < n; i++)
        order[i] = i;
    for (uint64_t i = n; seed != 0 && i-- > 1;) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t k = (seed >> 33) % (i + 1), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
}

static cm_store *write_array(const cm_zarr_meta *m, cm_early *early, int nthreads, uint64_t many,
                             uint64_t seed)
{
    cm_error err = {0};
    cm_store *s = memory_store();
    job j = {.many = many};
    OK(cm_zarr_writer_create(s, "x", m, &j.w, &err));
    if (early != NULL)
        cm_zarr_writer_early(j.w, early);
    j.n = cm_zarr_writer_grid(j.w)->nchunks;
    uint64_t *order = malloc(j.n * sizeof(*order));
    shuffle(order, j.n, seed);
    j.order = order;
    pthread_t thread[NTHREADS];
    for (int i = 0; i < nthreads; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, deliver, &j), 0);
    for (int i = 0; i < nthreads; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(j.failures, 0);
    OK(cm_zarr_writer_finish(j.w, &err));
    cm_zarr_writer_free(j.w);
    free(order);
    return s;
}

/* ---- what must be there ---- */

/* Looks at the shard OUTER by its index; returns whether its chunks lie in order, without gaps. */
static bool check_shard(cm_store *s, const cm_zarr_meta *m, const cm_grid *grid, uint64_t outer)
{
    const cm_shard_spec *spec = cm_zarr_sharding(m);
    uint64_t coord[CM_MAX_RANK], first[CM_MAX_RANK], local[CM_MAX_RANK];
    char name[CM_CHUNK_KEY_SIZE], key[CM_CHUNK_KEY_SIZE + 2];
    cm_error err = {0};
    cm_buf buf = {0};
    cm_grid shards;
    cm_shard_layout *layout;
    uint8_t *want = malloc(MOST_NBYTES);
    bool ordered = true;
    OK(cm_grid_init(&shards, m->rank, m->shape, m->chunk, &err));
    OK(cm_shard_layout_create(spec, m->rank, m->chunk, &layout, &err));
    const cm_grid *within = cm_shard_grid(layout);
    cm_shard_entry *entry = calloc(within->nchunks, sizeof(*entry));
    cm_grid_coord(&shards, outer, coord);
    cm_zarr_chunk_key(m, coord, name, sizeof(name));
    snprintf(key, sizeof(key), "x/%s", name);
    OK(cm_store_get(s, key, 1 << 30, &buf, &err));
    size_t index = cm_shard_index_nbytes(layout);
    uint64_t at = cm_shard_index_at_start(layout) ? index : 0;
    OK(cm_shard_index_decode(layout, buf.data + (at > 0 ? 0 : buf.nbytes - index), index,
                             buf.nbytes, entry, &err));
    for (unsigned j = 0; j < m->rank; j++)
        first[j] = coord[j] * within->count[j];
    for (uint64_t i = 0; i < within->nchunks; i++) {
        bool inside = true;
        cm_grid_coord(within, i, local);
        for (unsigned j = 0; j < m->rank; j++) {
            local[j] += first[j];
            inside = inside && local[j] < grid->count[j];
        }
        uint64_t number = inside ? cm_grid_number(grid, local) : 0;
        if (!inside || is_left_out(number)) {
            assert_true(entry[i].offset == CM_SHARD_MISSING);
            continue;
        }
        fill(number, want);
        assert_int_equal(entry[i].nbytes, length_of(number));
        if (length_of(number) > 0)
            assert_memory_equal(buf.data + entry[i].offset, want, length_of(number));
        ordered = ordered && entry[i].offset == at;
        at += entry[i].nbytes;
    }
    assert_int_equal(at + (cm_shard_index_at_start(layout) ? 0 : index), buf.nbytes);
    free(entry);
    free(want);
    cm_shard_layout_free(layout);
    cm_buf_release(&buf);
    return ordered;
}

static bool check_array(cm_store *s, const cm_zarr_meta *m)
{
    cm_error err = {0};
    cm_grid grid, shards;
    bool ordered = true;
    OK(cm_grid_init(&grid, m->rank, m->shape, cm_zarr_sharding(m)->chunk, &err));
    OK(cm_grid_init(&shards, m->rank, m->shape, m->chunk, &err));
    for (uint64_t i = 0; i < shards.nchunks; i++)
        ordered = check_shard(s, m, &grid, i) && ordered;
    return ordered;
}

/* ---- the tests ---- */

static const struct {
    const char *shape, *shard, *codecs;
} ARRAY[] = {
    {"[600]", "[200]", SHARDED("[2]", "end")},
    {"[40,30]", "[16,12]", SHARDED("[4,3]", "end")}, /* with chunks outside of the array */
    {"[40,30]", "[16,12]", SHARDED("[4,3]", "start")},
    {"[7,9,11]", "[4,100,8]", SHARDED("[2,1,2]", "end")},
};

static const struct {
    size_t memory; /* of what waits; 0 and no folder: nothing can */
    const char *folder;
    bool none, ordered;
} WAIT[] = {
    {.none = true, .ordered = true},
    {SIZE_MAX, NULL, false, true},
    {0, "/tmp", false, true},
    {100000, "/tmp", false, true},
    {0, NULL, false, false},
    {100000, NULL, false, false},
    {0, "/nowhere/at/all", false, false},
};

static void check_waiting(const cm_zarr_meta *m, size_t w)
{
    static const struct {
        int nthreads;
        uint64_t many, seed;
    } way[] = {{1, 1, 0},        {1, 1, 5},        {1, 40, 6},        {NTHREADS, 1, 0},
               {NTHREADS, 1, 7}, {NTHREADS, 3, 8}, {NTHREADS, 64, 0}, {NTHREADS, 64, 9}};
    for (size_t i = 0; i < COUNT(way); i++) {
        cm_error err = {0};
        cm_early *early = NULL;
        OK(cm_early_create(&early, &err));
        OK(cm_early_limit(early, WAIT[w].memory, WAIT[w].folder, &err));
        cm_store *s =
            write_array(m, WAIT[w].none ? NULL : early, way[i].nthreads, way[i].many, way[i].seed);
        bool ordered = check_array(s, m);
        cm_early_counts c = cm_early_count(early);
        assert_true(ordered || !WAIT[w].ordered);
        assert_true(ordered || c.refused > 0);
        /* One thread in the order of the grid makes nobody wait. */
        if (way[i].nthreads == 1 && way[i].seed == 0 && m->rank == 1)
            assert_int_equal(c.memory_nbytes + c.scratch_nbytes + c.refused, 0);
        if (way[i].seed != 0 && way[i].many == 1 && !WAIT[w].none)
            assert_true(c.memory_nbytes + c.scratch_nbytes + c.refused > 0);
        cm_store_free(s);
        cm_early_free(early);
    }
}

static void test_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ARRAY); i++) {
        char text[2000];
        cm_zarr_meta m = meta_v3(
            array_json(text, sizeof(text), ARRAY[i].shape, ARRAY[i].shard, ARRAY[i].codecs));
        for (size_t w = 0; w < COUNT(WAIT); w++)
            check_waiting(&m, w);
        cm_zarr_meta_release(&m);
    }
}

/* Waiting chunks of an unfinished shard are freed with it. */
static void test_not_whole(void **state)
{
    (void)state;
    char text[2000];
    cm_zarr_meta m = meta_v3(array_json(text, sizeof(text), "[60]", "[20]", SHARDED("[2]", "end")));
    for (size_t w = 0; w < COUNT(WAIT); w++) {
        cm_error err = {0};
        cm_early *early;
        cm_zarr_writer *writer;
        cm_store *s = memory_store();
        OK(cm_early_create(&early, &err));
        OK(cm_early_limit(early, WAIT[w].memory, WAIT[w].folder, &err));
        OK(cm_zarr_writer_create(s, "x", &m, &writer, &err));
        cm_zarr_writer_early(writer, early);
        for (uint64_t i = 9; i > 0; i--)
            OK(cm_zarr_writer_put(writer, i, "abcd", 4, &err));
        assert_int_equal(cm_zarr_writer_finish(writer, &err), CM_EINTERNAL);
        cm_zarr_writer_free(writer);
        assert_false(has_key(s, "x/c/0"));
        cm_early_free(early);
        cm_store_free(s);
    }
    cm_zarr_meta_release(&m);
}

/* A scratch file that more goes through than it holds gives back what was taken out. */
static void test_scratch_is_given_back(void **state)
{
    (void)state;
    enum {
        N = 64,
        NBYTES = 300000
    };
    cm_error err = {0};
    cm_early *early;
    uint64_t at[N];
    uint8_t *data = malloc(NBYTES), *back = malloc(NBYTES);
    OK(cm_early_create(&early, &err));
    OK(cm_early_limit(early, 0, "/tmp", &err));
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < N; i++) {
            memset(data, (int)(round * N + i), NBYTES);
            assert_int_equal(cm_early_keep(early, data, NBYTES - i, &at[i]), CM_EARLY_SCRATCH);
        }
        for (unsigned i = 0; i < N; i++) {
            memset(data, (int)(round * N + i), NBYTES);
            OK(cm_early_read(early, at[i], back, NBYTES - i, &err));
            assert_memory_equal(back, data, NBYTES - i);
            cm_early_drop(early, CM_EARLY_SCRATCH, at[i], NBYTES - i);
        }
        /* At most the segment that is written to stays. */
        assert_true(cm_early_scratch_nbytes(early) <= 2 << 20);
    }
    cm_early_free(early);
    free(data);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_not_whole),
        cmocka_unit_test(test_scratch_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
