/*
 * Batches made from arrays: every element of every part of every sample, by
 * batches and by chunks, with threads, clipped samples, lags and conversion.
 */
#include <stdio.h>

#include "../fixtures/made_store.h"
#include "../unit.h"
#include "base/team.h"
#include "load/batches/load_source.h"
#include "store/io.h"

enum {
    NPARTS = 3,
    BATCH = 5
};

/*
 * "a" has all dimensions, "b" the last two, "c" none: it is fixed.  Part 1 is "a" two steps
 * later.
 */
static const made arrays[] = {
    {.rank = 3, .shape = {12, 9, 10}, .chunk = {2, 4, 5}, .codec = CM_CODEC_ZSTD, .absent_of = 7},
    {.rank = 2, .shape = {9, 10}, .chunk = {9, 3}},
    {.rank = 1, .shape = {6}, .chunk = {4}},
};

typedef struct fixture {
    const cm_blocks *blocks;
    cm_store *store;
    cm_array *array[3];
    cm_sample_space space;
    cm_sample_part part[NPARTS], fixed;
    cm_feed feed[NPARTS];
    size_t part_nbytes[NPARTS];
    bool fed;
    cm_chunk_cache *cache;
    const cm_store *disk_cache;
    unsigned opened, closed;
    cm_load_source source;
    void *state;
    uint8_t *arena;
    size_t arena_nbytes;
} fixture;

static int open_arrays(void *context, cm_load_arrays *out, cm_error *err)
{
    fixture *f = context;
    (void)err;
    f->opened++;
    *out = (cm_load_arrays){.store = "made",
                            .array = f->array,
                            .narrays = 3,
                            .space = &f->space,
                            .part = f->part,
                            .feed = f->fed ? f->feed : NULL,
                            .part_nbytes = f->part_nbytes,
                            .nparts = NPARTS,
                            .fixed = &f->fixed,
                            .nfixed = 1,
                            .blocks = f->blocks,
                            .cache = f->cache,
                            .disk_cache = f->disk_cache};
    return CM_OK;
}

static void close_arrays(void *context, cm_load_arrays *in)
{
    (void)in;
    ((fixture *)context)->closed++;
}

static void create(fixture *f, unsigned threads, bool each)
{
    cm_load_source_options options = {
        .opener = {f, open_arrays, close_arrays}, .each_worker = each, .worker_threads = threads};
    assert_int_equal(cm_load_source_create(&options, &f->source, NULL), CM_OK);
}

static void begin(fixture *f, cm_order order, bool fed)
{
    memset(f, 0, sizeof(*f));
    assert_int_equal(cm_store_open_memory(&f->store, NULL), CM_OK);
    made_write(f->store, arrays, 3);
    for (int i = 0; i < 3; i++)
        f->array[i] = made_open(f->store, (const char *[]){"a", "b", "c"}[i]);
    f->space = (cm_sample_space){.rank = 3,
                                 .length = {12, 9, 10},
                                 .sample = {3, 4, 7},
                                 .chunk = {1, 1, 1},
                                 .reach = 2,
                                 .order = order,
                                 .parameter = 1,
                                 .seed = 11};
    assert_int_equal(cm_sample_space_init(&f->space, (char *[3]){NULL, NULL, NULL}, NULL), CM_OK);
    f->part[0] = (cm_sample_part){.rank = 3, .axis = {0, 1, 2}, .shape = {12, 9, 10}};
    f->part[1] = f->part[0];
    f->part[1].lag = 2;
    f->part[2] = (cm_sample_part){.array = 1, .rank = 2, .axis = {1, 2}, .shape = {9, 10}};
    f->fixed = (cm_sample_part){.array = 2, .rank = 1, .axis = {-1}, .shape = {6}};
    f->fed = fed;
    for (int p = 0; p < NPARTS; p++) {
        f->feed[p] = (cm_feed){.src = f->array[f->part[p].array]->dtype, .to = CM_FEED_BFLOAT16};
        f->part_nbytes[p] = (p < 2 ? 84 : 28) * (fed ? 2 : 4);
    }
    f->arena_nbytes = 64 + cm_load_offset(f->part_nbytes, BATCH, NPARTS, 0);
    f->arena = malloc(f->arena_nbytes);
}

static void end(fixture *f)
{
    f->source.close(f->state);
    cm_load_source_release(&f->source);
    cm_chunk_cache_free(f->cache);
    for (int i = 0; i < 3; i++)
        cm_array_free(f->array[i]);
    cm_store_free(f->store);
    free(f->arena);
}

static cm_load_task *new_task(const fixture *f, uint64_t first, uint32_t n)
{
    (void)f;
    cm_load_task *t = calloc(1, sizeof(*t) + BATCH * sizeof(cm_load_piece));
    t->kind = CM_LOAD_BATCH;
    t->epoch = 1;
    t->offset = 64;
    t->nbatch = t->npieces = n;
    for (uint32_t i = 0; i < n; i++) {
        t->piece[i].sample = first + i;
        t->piece[i].place = i;
    }
    return t;
}

static void part_box(const fixture *f, uint64_t sample, size_t p, cm_box *out)
{
    cm_box box;
    cm_sample_at(&f->space, 1, sample, &box);
    cm_sample_part_box(&f->part[p], &box, out);
}

/* The batch of samples FIRST .. as the arena should hold it. */
static void expect_batch(const fixture *f, uint64_t first, uint32_t n, uint8_t *want)
{
    memset(want, 0, cm_load_offset(f->part_nbytes, n, NPARTS, 0));
    for (size_t p = 0; p < NPARTS; p++)
        for (uint32_t k = 0; k < n; k++) {
            uint8_t *to = want + cm_load_offset(f->part_nbytes, n, p, k);
            cm_box box;
            part_box(f, first + k, p, &box);
            for (uint64_t i = 0; i < cm_box_nelem(&box); i++) {
                int32_t v = made_value_in(&arrays[f->part[p].array], &box, i);
                if (f->fed)
                    cm_feed_run(&f->feed[p], to + 2 * i, &v, 1);
                else
                    memcpy(to + 4 * i, &v, 4);
            }
        }
}

static void check_batch(const fixture *f, uint64_t first, uint32_t n)
{
    size_t nbytes = cm_load_offset(f->part_nbytes, n, NPARTS, 0);
    uint8_t *want = malloc(nbytes);
    expect_batch(f, first, n, want);
    assert_memory_equal(f->arena + 64, want, nbytes);
    free(want);
}

static const struct {
    const char *name;
    cm_order order;
    bool fed;
    unsigned threads;
    size_t cache;
} ways[] = {
    {"one thread", CM_ORDER_RANDOM, false, 1, 0},
    {"four threads", CM_ORDER_RANDOM, false, 4, 0},
    {"more threads than parts", CM_ORDER_RANDOM, false, 40, 0},
    {"converted", CM_ORDER_RANDOM, true, 2, 0},
    {"clipped", CM_ORDER_ALL, false, 2, 0},
    {"clipped and converted", CM_ORDER_ALL, true, 1, 0},
    {"with a cache", CM_ORDER_RANDOM, false, 3, 1 << 20},
    {"with a small cache", CM_ORDER_RANDOM, true, 3, 2000},
};

static void batches(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
        fixture f;
        cm_error err = {0};
        begin(&f, ways[k].order, ways[k].fed);
        if (ways[k].cache > 0)
            assert_int_equal(cm_chunk_cache_create(ways[k].cache, CM_CACHE_LRU, &f.cache, NULL),
                             CM_OK);
        create(&f, ways[k].threads, false);
        if (f.source.open(f.source.context, 0, &f.state, &err) != CM_OK)
            fail_msg("%s: %s", ways[k].name, err.text);
        for (uint64_t first = 0; first < f.space.nsamples && first < 40; first += BATCH) {
            uint64_t left = f.space.nsamples - first;
            uint32_t n = left < BATCH ? (uint32_t)left : BATCH;
            cm_load_task *task = new_task(&f, first, n);
            cm_load_result result = {0};
            memset(f.arena, 0xee, f.arena_nbytes);
            if (f.source.load(f.state, task, f.arena, &result, &err) != CM_OK)
                fail_msg("%s: %s", ways[k].name, err.text);
            check_batch(&f, first, n);
            assert_int_equal(result.nbytes, cm_load_offset(f.part_nbytes, n, NPARTS, 0));
            uint64_t logical = 0;
            for (uint32_t i = 0; i < n; i++)
                for (size_t p = 0; p < NPARTS; p++) {
                    cm_box box;
                    part_box(&f, first + i, p, &box);
                    logical += cm_box_nelem(&box) * 4;
                }
            assert_int_equal(result.counts.logical_nbytes, logical);
            assert_true(result.counts.cpu_ns > 0);
            free(task);
        }
        end(&f);
    }
}

/* Every chunk that a batch meets, as a task of its own: the same bytes, and each decoded once. */
/* All chunks of the samples' blocks are decoded into frames, and a batch is cut out of these. */
static void decode_frames(fixture *f, const cm_blocks *blocks, size_t frames, uint64_t *ndecoded)
{
    cm_load_task *task = calloc(1, sizeof(*task) + sizeof(cm_load_piece));
    for (uint64_t i = 0; i < BATCH; i++)
        for (uint32_t p = 0; p < NPARTS; p++) {
            const uint32_t strip = blocks->strip_of[p];
            const cm_grid *grid = blocks->strip[strip].grid;
            uint64_t first[CM_MAX_RANK], n[CM_MAX_RANK], coord[CM_MAX_RANK], left = 1;
            cm_box sample;
            cm_sample_at(&f->space, 1, i, &sample);
            cm_block_chunks(blocks, strip, &sample, first, n);
            for (unsigned d = 0; d < grid->rank; left *= n[d], d++)
                coord[d] = first[d];
            for (; left > 0; left--) {
                cm_load_result result = {0};
                const uint64_t c = cm_block_chunk(blocks, strip, first, coord);
                const size_t frame = frames + i * blocks->frame_nbytes;
                *task = (cm_load_task){.kind = CM_LOAD_CHUNK,
                                       .epoch = 1,
                                       .array = f->part[p].array,
                                       .number = cm_grid_number(grid, coord),
                                       .offset = frame + cm_block_chunk_offset(blocks, strip, c),
                                       .npieces = 1};
                task->piece[0] =
                    (cm_load_piece){.offset = frame + cm_block_flag_offset(blocks, c), .part = p};
                assert_int_equal(f->source.load(f->state, task, f->arena, &result, NULL), CM_OK);
                assert_int_equal(result.counts.chunks, 1);
                assert_int_equal(result.counts.logical_nbytes, 0);
                *ndecoded += result.counts.decoded + result.counts.missing_chunks;
                for (unsigned d = grid->rank; d-- > 0 && ++coord[d] == first[d] + n[d];)
                    coord[d] = first[d];
            }
        }
    free(task);
}

static void chunk_tasks(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
        fixture f;
        cm_blocks blocks;
        cm_load_result result = {0};
        uint64_t ndecoded = 0;
        begin(&f, ways[k].order, ways[k].fed);
        f.space.by_number = true;
        const cm_grid *grid[] = {&f.array[0]->grid, &f.array[1]->grid};
        const uint32_t each = ways[k].fed ? 2 : 4, element_nbytes[] = {each, each, each};
        const cm_blocks_request request = {.space = &f.space,
                                           .part = f.part,
                                           .nparts = NPARTS,
                                           .grid = grid,
                                           .element_nbytes = element_nbytes};
        assert_int_equal(cm_blocks_make(&request, &blocks, NULL), CM_OK);
        const size_t frames = (f.arena_nbytes + 63) / 64 * 64;
        free(f.arena);
        f.arena_nbytes = frames + BATCH * blocks.frame_nbytes;
        f.arena = malloc(f.arena_nbytes);
        memset(f.arena, 0xee, f.arena_nbytes);
        f.blocks = &blocks;
        create(&f, 1, false);
        assert_int_equal(f.source.open(f.source.context, 0, &f.state, NULL), CM_OK);
        decode_frames(&f, &blocks, frames, &ndecoded);
        assert_true(ndecoded > 0);
        cm_load_task *task = new_task(&f, 0, BATCH);
        task->kind = CM_LOAD_CUT;
        for (uint32_t i = 0; i < BATCH; i++)
            task->piece[i].offset = frames + i * blocks.frame_nbytes;
        assert_int_equal(f.source.load(f.state, task, f.arena, &result, NULL), CM_OK);
        assert_true(result.counts.logical_nbytes > 0);
        assert_int_equal(result.counts.decoded, 0);
        check_batch(&f, 0, BATCH);
        free(task);
        cm_blocks_release(&blocks);
        end(&f);
    }
}

static void who_opens(void **state)
{
    (void)state;
    for (int each = 0; each < 2; each++) {
        fixture f;
        begin(&f, CM_ORDER_RANDOM, false);
        create(&f, 2, each);
        void *worker[3];
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(f.source.open(f.source.context, i, &worker[i], NULL), CM_OK);
        assert_int_equal(f.opened, each ? 3 : 1);
        for (int i = 0; i < 3; i++)
            f.source.close(worker[i]);
        assert_int_equal(f.closed, f.opened);
        /* Again, as when workers do not persist. */
        assert_int_equal(f.source.open(f.source.context, 0, &f.state, NULL), CM_OK);
        assert_int_equal(f.opened, each ? 4 : 2);
        end(&f);
        assert_int_equal(f.closed, f.opened);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *sentence;
        int what;
    } table[] = {
        {"a part of the sample is of array 9 of 3", 0},
        {"array a: its shape has changed since the samples were planned", 1},
        {"array b: is converted from a type that it does not have", 2},
        {"array c: its shape has changed since the samples were planned", 3},
    };
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        fixture f;
        cm_error err;
        begin(&f, CM_ORDER_RANDOM, true);
        if (table[k].what == 0)
            f.part[1].array = 9;
        else if (table[k].what == 1)
            f.part[0].shape[2]++;
        else if (table[k].what == 2)
            f.feed[2].src = cm_dtype_make(CM_KIND_FLOAT, 4);
        else
            f.fixed.rank = 2;
        create(&f, 1, false);
        assert_int_not_equal(f.source.open(f.source.context, 0, &f.state, &err), CM_OK);
        assert_string_equal(err.text, table[k].sentence);
        assert_int_equal(f.closed, f.opened);
        end(&f);
    }
    cm_load_source source;
    cm_load_source_options options = {.worker_threads = 0};
    assert_int_equal(cm_load_source_create(&options, &source, NULL), CM_EINVAL);
    options.worker_threads = CM_LOAD_MAX_THREADS + 1;
    assert_int_equal(cm_load_source_create(&options, &source, NULL), CM_EINVAL);
}

/* A batch that meets a chunk which is corrupt fails with its sentence. */
static void corrupt(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        fixture f;
        cm_error err = {0};
        begin(&f, CM_ORDER_RANDOM, false);
        for (unsigned t = 0; t < 6; t++) {
            char key[32];
            snprintf(key, sizeof(key), "a/c/%u/1/1", t);
            assert_int_equal(cm_store_put(f.store, key, "rubbish", 7, NULL), CM_OK);
        }
        create(&f, threads, false);
        assert_int_equal(f.source.open(f.source.context, 0, &f.state, NULL), CM_OK);
        cm_load_task *task = new_task(&f, 0, BATCH);
        cm_load_result result = {0};
        assert_int_equal(f.source.load(f.state, task, f.arena, &result, &err), CM_EFORMAT);
        assert_int_equal(strncmp(err.text, "memory: array a: chunk ", 23), 0);
        assert_true(result.counts.failed_chunks > 0);
        free(task);
        end(&f);
    }
}

/* A cache on a faster disk: the first time nothing is there, then all is; told once. */
static void disk_cache(void **state)
{
    (void)state;
    char folder[] = "/tmp/chunkmill-load-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    for (int each = 0; each < 2; each++) {
        fixture f;
        cm_store *slow, *cached;
        begin(&f, CM_ORDER_RANDOM, false);
        snprintf(path, sizeof(path), "%s/store", folder);
        assert_int_equal(cm_store_open_dir(path, true, &slow, NULL), CM_OK);
        made_write(slow, arrays, 3);
        snprintf(path, sizeof(path), "%s/cache%d", folder, each);
        assert_int_equal(cm_store_open_disk_cache(slow, path, 64 << 20, &cached, NULL), CM_OK);
        for (int i = 0; i < 3; i++) {
            cm_array_free(f.array[i]);
            f.array[i] = made_open(cached, (const char *[]){"a", "b", "c"}[i]);
        }
        f.disk_cache = cached;
        create(&f, 2, each);
        assert_int_equal(f.source.open(f.source.context, 0, &f.state, NULL), CM_OK);
        cm_load_task *task = new_task(&f, 0, BATCH);
        cm_load_counts first = {0}, second;
        for (int turn = 0; turn < 2; turn++) {
            cm_load_result result = {0};
            assert_int_equal(f.source.load(f.state, task, f.arena, &result, NULL), CM_OK);
            check_batch(&f, 0, BATCH);
            *(turn == 0 ? &first : &second) = result.counts;
        }
        assert_true(first.disk_misses > 0);
        assert_int_equal(second.disk_misses, 0);
        assert_int_equal(first.requests, first.disk_misses + first.missing_chunks);
        assert_int_equal(second.requests, second.missing_chunks);
        assert_int_equal(second.stored_nbytes, 0);
        /* An index of a shard is read once. */
        assert_true(second.disk_nbytes > 0 &&
                    second.disk_nbytes <= first.stored_nbytes + first.disk_nbytes);
        free(task);
        end(&f);
        cm_store_free(cached);
        cm_store_free(slow);
    }
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* In a pool: threads share what the first one opened, processes open for themselves. */
static void in_a_pool(void **state)
{
    (void)state;
    static const struct {
        cm_pool_mode mode;
        unsigned workers, threads, opened; /* in this process, at most */
    } table[] = {{CM_POOL_SYNC, 1, 2, 1}, {CM_POOL_THREADS, 3, 2, 1}, {CM_POOL_PROCESSES, 2, 1, 0}};
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        fixture f;
        cm_arena arena;
        cm_pool *pool = NULL;
        cm_error err = {0};
        begin(&f, CM_ORDER_RANDOM, true);
        create(&f, table[k].threads, false);
        free(f.arena);
        const size_t slot = cm_load_offset(f.part_nbytes, BATCH, NPARTS, 0);
        assert_int_equal(cm_arena_create(64 + 8 * slot, true, true, &arena, NULL), CM_OK);
        cm_pool_options options = {.mode = table[k].mode,
                                   .nworkers = table[k].workers,
                                   .nclients = 1,
                                   .max_pieces = BATCH};
        if (cm_pool_create(&options, &f.source, &arena, &pool, &err) != CM_OK)
            fail_msg("%s", err.text);
        for (uint64_t b = 0; b < 8; b++) {
            cm_load_task *task = new_task(&f, b * BATCH, BATCH);
            task->id = b;
            task->offset = 64 + b * slot;
            assert_int_equal(cm_pool_submit(pool, 0, (unsigned)b % table[k].workers, task, NULL),
                             CM_OK);
            free(task);
        }
        for (int n = 0; n < 8; n++) {
            cm_load_result result;
            assert_true(cm_pool_receive(pool, 0, UINT64_MAX, &result));
            if (result.status != CM_OK)
                fail_msg("%s", result.error);
            f.arena = arena.data + result.id * slot;
            check_batch(&f, result.id * BATCH, BATCH);
        }
        assert_int_equal(f.opened, table[k].opened);
        cm_pool_free(pool);
        assert_int_equal(f.closed, f.opened);
        cm_arena_release(&arena);
        f.arena = NULL;
        end(&f);
    }
}

/* ---- the threads of a worker ---- */

static void count(void *context, unsigned index)
{
    ((unsigned *)context)[index]++;
}

static void teams(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 9; n += 4) {
        cm_team *team = NULL;
        unsigned calls[10] = {0};
        assert_int_equal(cm_team_create(n, &team, NULL), CM_OK);
        for (int turn = 0; turn < 100; turn++)
            cm_team_run(team, count, calls);
        cm_team_free(team);
        for (unsigned i = 0; i < 10; i++)
            assert_int_equal(calls[i], i < n ? 100 : 0);
    }
    cm_team_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches),   cmocka_unit_test(chunk_tasks), cmocka_unit_test(who_opens),
        cmocka_unit_test(refusals),  cmocka_unit_test(corrupt),     cmocka_unit_test(disk_cache),
        cmocka_unit_test(in_a_pool), cmocka_unit_test(teams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
