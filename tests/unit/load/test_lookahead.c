/*
 * Chunks that are asked for before a thread wants them: the same batches with the same requests,
 * each asked for once, from a store whose answers come late and in any order.
 */
#include <pthread.h>
#include <unistd.h>

#include "../fixtures/made_store.h"
#include "../unit.h"
#include "load/batches/load_source.h"
#include "store/impl.h"

enum {
    NPARTS = 2,
    BATCH = 6,
    NBATCHES = 8
};

/* "a" in shards, "b" with an object a chunk. */
static const made arrays[] = {
    {.rank = 3,
     .shape = {12, 9, 10},
     .chunk = {2, 3, 5},
     .shard = {4, 9, 10},
     .codec = CM_CODEC_ZSTD,
     .absent_of = 7},
    {.rank = 2, .shape = {9, 10}, .chunk = {2, 3}, .codec = CM_CODEC_ZSTD, .absent_of = 5},
};

/* ---- a store that answers later ---- */

static struct {
    cm_store_ops ops;
    atomic_uint nbegun, nended, nread, turn;
    unsigned refuse, fail; /* every so many begins; 0: none */
    bool stopped;
    atomic_bool held; /* nothing is answered */
} later;

typedef struct answer {
    cm_store_reading base;
    cm_store *store;
    cm_store_read *read;
    size_t n;
    cm_buf *buf;
    pthread_t thread;
    bool fails;
    atomic_uint wait_us;
    int rc;
    cm_error err;
} answer;

static int read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err)
{
    later.nread += (unsigned)n;
    return cm_store_read_each(store, read, n, buf, err);
}

static void *answer_later(void *context)
{
    answer *a = context;
    usleep(a->wait_us);
    while (later.held)
        usleep(100);
    a->rc = a->fails ? cm_fail(&a->err, CM_EIO, "lost")
                     : cm_store_read_each(a->store, a->read, a->n, a->buf, &a->err);
    return NULL;
}

static int begin_later(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                       cm_store_reading **out, cm_error *err)
{
    const unsigned turn = later.turn++;
    if (later.refuse > 0 && turn % later.refuse == 0)
        return cm_fail(err, CM_EIO, "refused");
    answer *a = calloc(1, sizeof(*a));
    a->store = store;
    a->read = read;
    a->n = n;
    a->buf = buf;
    a->fails = later.fail > 0 && turn % later.fail == 0;
    a->wait_us = turn * 37 % 11 * 100;
    later.nbegun++;
    later.nread += (unsigned)n;
    assert_int_equal(pthread_create(&a->thread, NULL, answer_later, a), 0);
    *out = &a->base;
    return CM_OK;
}

static void unwant(cm_store_reading *reading)
{
    ((answer *)reading)->wait_us = 0;
}

static int end_later(cm_store_reading *reading, cm_error *err)
{
    answer *a = (answer *)reading;
    pthread_join(a->thread, NULL);
    later.nended++;
    int rc = a->rc;
    if (rc != CM_OK && err != NULL)
        *err = a->err;
    free(a);
    return rc;
}

static const cm_store_reading_ops reading_later = {
    .begin = begin_later, .cancel = unwant, .end = end_later};

static cm_store *open_later(void)
{
    cm_store *store;
    assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
    made_write(store, arrays, 2);
    memset(&later, 0, sizeof(later));
    later.ops = *store->ops;
    later.ops.read_many = read_many;
    later.ops.reading = &reading_later;
    store->ops = &later.ops;
    return store;
}

/* ---- batches ---- */

typedef struct fixture {
    cm_store *store;
    cm_array *array[2];
    cm_sample_space space;
    cm_sample_part part[NPARTS];
    size_t part_nbytes[NPARTS];
    cm_lookahead *ahead;
    bool when_begun;
    cm_load_source source;
} fixture;

static int open_arrays(void *context, cm_load_arrays *out, cm_error *err)
{
    fixture *f = context;
    (void)err;
    *out = (cm_load_arrays){.store = "made",
                            .array = f->array,
                            .narrays = 2,
                            .space = &f->space,
                            .part = f->part,
                            .part_nbytes = f->part_nbytes,
                            .nparts = NPARTS,
                            .ahead = f->ahead,
                            .when_begun = f->when_begun,
                            .group_nbytes = 200}; /* few chunks at a time: several groups */
    return CM_OK;
}

static bool is_stopped(void *context)
{
    (void)context;
    return later.stopped;
}

static void begin(fixture *f, unsigned threads, unsigned places)
{
    memset(f, 0, sizeof(*f));
    f->store = open_later();
    for (int i = 0; i < 2; i++)
        f->array[i] = made_open(f->store, (const char *[]){"a", "b"}[i]);
    later.nread = 0;
    f->space = (cm_sample_space){.rank = 3,
                                 .length = {12, 9, 10},
                                 .sample = {3, 4, 7},
                                 .chunk = {1, 1, 1},
                                 .order = CM_ORDER_RANDOM,
                                 .parameter = 1,
                                 .seed = 11};
    assert_int_equal(cm_sample_space_init(&f->space, (char *[3]){NULL, NULL, NULL}, NULL), CM_OK);
    f->part[0] = (cm_sample_part){.rank = 3, .axis = {0, 1, 2}, .shape = {12, 9, 10}};
    f->part[1] = (cm_sample_part){.array = 1, .rank = 2, .axis = {1, 2}, .shape = {9, 10}};
    f->part_nbytes[0] = 84 * 4;
    f->part_nbytes[1] = 28 * 4;
    if (places > 0)
        assert_int_equal(cm_lookahead_create(places, 200, &f->ahead, NULL), CM_OK);
    const cm_load_source_options options = {
        .opener = {f, open_arrays, NULL}, .worker_threads = threads, .stop = {is_stopped, NULL}};
    assert_int_equal(cm_load_source_create(&options, &f->source, NULL), CM_OK);
}

static void end(fixture *f)
{
    assert_int_equal(later.nbegun, later.nended);
    cm_load_source_release(&f->source);
    cm_lookahead_free(f->ahead);
    for (int i = 0; i < 2; i++)
        cm_array_free(f->array[i]);
    cm_store_free(f->store);
}

static size_t batch_nbytes(const fixture *f)
{
    return cm_load_offset(f->part_nbytes, BATCH, NPARTS, 0);
}

static cm_load_task *new_task(uint64_t first)
{
    cm_load_task *t = calloc(1, sizeof(*t) + BATCH * sizeof(cm_load_piece));
    *t = (cm_load_task){.kind = CM_LOAD_BATCH, .epoch = 1, .nbatch = BATCH, .npieces = BATCH};
    for (uint32_t i = 0; i < BATCH; i++)
        t->piece[i] = (cm_load_piece){.sample = first + i, .place = i};
    return t;
}

static int load(fixture *f, void *state, uint64_t first, uint8_t *arena, cm_load_counts *counts,
                cm_error *err)
{
    cm_load_task *t = new_task(first);
    cm_load_result result = {0};
    memset(arena, 0xee, batch_nbytes(f));
    int rc = f->source.load(state, t, arena, &result, err);
    cm_load_counts_add(counts, &result.counts);
    free(t);
    return rc;
}

static void check(const fixture *f, uint64_t first, const uint8_t *arena)
{
    for (uint32_t k = 0; k < BATCH; k++)
        for (size_t p = 0; p < NPARTS; p++) {
            const uint8_t *at = arena + cm_load_offset(f->part_nbytes, BATCH, p, k);
            cm_box sample, box;
            cm_sample_at(&f->space, 1, first + k, &sample);
            cm_sample_part_box(&f->part[p], &sample, &box);
            for (uint64_t i = 0; i < cm_box_nelem(&box); i++) {
                int32_t got;
                memcpy(&got, at + 4 * i, 4);
                assert_int_equal(got, made_value_in(&arrays[f->part[p].array], &box, i));
            }
        }
}

/* One worker's batches, every other one. */
typedef struct reading {
    fixture *f;
    unsigned first;
    cm_load_counts counts;
} reading;

static void *read_batches(void *context)
{
    reading *r = context;
    fixture *f = r->f;
    uint8_t *arena = malloc(batch_nbytes(f));
    void *state;
    assert_int_equal(f->source.open(f->source.context, r->first, &state, NULL), CM_OK);
    for (unsigned b = r->first; b < NBATCHES; b += 2) {
        cm_error err = {0};
        if (load(f, state, b * BATCH, arena, &r->counts, &err) != CM_OK)
            fail_msg("%s", err.text);
        check(f, b * BATCH, arena);
    }
    f->source.close(state);
    free(arena);
    return NULL;
}

static void read_all(fixture *f, cm_load_counts *counts)
{
    reading r[2] = {{.f = f}, {.f = f, .first = 1}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_batches, &r[i]), 0);
    memset(counts, 0, sizeof(*counts));
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        cm_load_counts_add(counts, &r[i].counts);
    }
}

static void the_same_requests(void **state)
{
    static const struct {
        unsigned threads, places, refuse;
    } ways[] = {{1, 1, 0}, {1, 64, 0}, {4, 3, 0}, {4, 64, 0}, {20, 5, 0}, {4, 8, 3}, {2, 8, 1}};
    cm_load_counts plain, counts;
    fixture f;
    (void)state;
    begin(&f, 2, 0);
    read_all(&f, &plain);
    assert_int_equal(later.nbegun, 0);
    end(&f);
    for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
        begin(&f, ways[k].threads, ways[k].places);
        later.refuse = ways[k].refuse;
        read_all(&f, &counts);
        assert_int_equal(later.nbegun > 0, ways[k].refuse != 1);
        /* Indices of shards are read by opening them: those alone are not counted here. */
        assert_int_equal(counts.requests - later.nread, 3);
        assert_int_equal(counts.requests, plain.requests);
        assert_int_equal(counts.stored_nbytes, plain.stored_nbytes);
        assert_int_equal(counts.chunks, plain.chunks);
        assert_int_equal(counts.decoded, plain.decoded);
        assert_int_equal(counts.missing_chunks, plain.missing_chunks);
        end(&f);
    }
}

/* A worker that has all places to itself asks for what its first thread is not at yet. */
static void ahead_of_threads(void **state)
{
    cm_load_counts counts = {0};
    fixture f;
    void *worker;
    (void)state;
    begin(&f, 1, 64);
    uint8_t *arena = malloc(batch_nbytes(&f));
    assert_int_equal(f.source.open(f.source.context, 0, &worker, NULL), CM_OK);
    assert_int_equal(load(&f, worker, 0, arena, &counts, NULL), CM_OK);
    memset(&counts, 0, sizeof(counts));
    later.nread = later.nbegun = later.nended = 0;
    assert_int_equal(load(&f, worker, 0, arena, &counts, NULL), CM_OK); /* all indices are known */
    check(&f, 0, arena);
    assert_true(later.nbegun > BATCH);
    assert_int_equal(later.nread, counts.requests);
    f.source.close(worker);
    free(arena);
    end(&f);
}

/* Of several chunks that were lost together each is asked for again; one alone has failed. */
static void lost_answers(void **state)
{
    (void)state;
    for (unsigned places = 1; places < 40; places += 13) {
        cm_load_counts counts = {0};
        uint64_t nfailed = 0;
        cm_error err = {0};
        fixture f;
        void *worker;
        begin(&f, 3, places);
        uint8_t *arena = malloc(batch_nbytes(&f));
        assert_int_equal(f.source.open(f.source.context, 0, &worker, NULL), CM_OK);
        later.fail = 2;
        for (uint64_t first = 0; first < 3 * BATCH; first += BATCH) {
            memset(&counts, 0, sizeof(counts));
            int rc = load(&f, worker, first, arena, &counts, &err);
            assert_int_equal(rc == CM_OK, counts.failed_chunks == 0);
            if (rc == CM_OK)
                check(&f, first, arena);
            else
                assert_non_null(strstr(err.text, "lost"));
            nfailed += counts.failed_chunks;
        }
        assert_true(nfailed > 0 || places == 1);
        later.fail = 0;
        assert_int_equal(load(&f, worker, 0, arena, &counts, NULL), CM_OK);
        check(&f, 0, arena);
        f.source.close(worker);
        free(arena);
        end(&f);
    }
}

/* Nobody waits for a batch any more: what was asked for is given back. */
static void stopped(void **state)
{
    (void)state;
    cm_load_counts counts = {0};
    fixture f;
    void *worker;
    begin(&f, 2, 8);
    uint8_t *arena = malloc(batch_nbytes(&f));
    assert_int_equal(f.source.open(f.source.context, 0, &worker, NULL), CM_OK);
    for (int k = 0; k < 5; k++) {
        later.stopped = true;
        assert_int_equal(load(&f, worker, 0, arena, &counts, NULL), CM_ECANCELED);
        assert_int_equal(later.nbegun, later.nended);
        later.stopped = false;
        assert_int_equal(load(&f, worker, 6, arena, &counts, NULL), CM_OK);
        check(&f, 6, arena);
    }
    f.source.close(worker);
    free(arena);
    end(&f);
}

/* ---- through a pool ---- */

static void submit(const fixture *f, cm_pool *pool, unsigned number)
{
    cm_load_task *t = new_task((uint64_t)number * BATCH);
    t->id = number;
    t->offset = number * batch_nbytes(f);
    assert_int_equal(cm_pool_submit(pool, 0, number % 2, t, NULL), CM_OK);
    free(t);
}

/* Queued batches are requested at once, by the queuing thread; unread ones are given back. */
static void queued(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 1, 4000); /* a place for every chunk of every batch */
    const cm_pool_options options = {
        .mode = CM_POOL_THREADS, .nworkers = 2, .nclients = 1, .max_pieces = BATCH};
    cm_load_counts counts = {0};
    cm_load_result result;
    cm_arena arena;
    cm_pool *pool;
    assert_int_equal(cm_arena_create(NBATCHES * batch_nbytes(&f), false, true, &arena, NULL),
                     CM_OK);
    assert_int_equal(cm_pool_create(&options, &f.source, &arena, &pool, NULL), CM_OK);
    later.held = true;
    for (unsigned b = 0, before; b < NBATCHES; b++) {
        before = later.nbegun;
        submit(&f, pool, b);
        assert_true(later.nbegun > before);
    }
    later.held = false;
    for (unsigned b = 0; b < NBATCHES; b++) {
        assert_true(cm_pool_receive(pool, 0, UINT64_MAX, &result));
        assert_int_equal(result.status, CM_OK);
        check(&f, result.id * BATCH, arena.data + result.id * batch_nbytes(&f));
        cm_load_counts_add(&counts, &result.counts);
    }
    assert_int_equal(counts.requests - later.nread, 3); /* as above */
    for (unsigned b = 0; b < NBATCHES; b++)
        submit(&f, pool, b);
    cm_pool_drop(pool, 0);
    while (cm_pool_receive(pool, 0, UINT64_MAX, &result))
        assert_int_equal(result.status, CM_OK);
    assert_int_equal(later.nbegun, later.nended);
    for (unsigned b = 0; b < NBATCHES; b++)
        submit(&f, pool, b);
    cm_pool_free(pool);
    cm_arena_release(&arena);
    end(&f);
}

/* Nothing is asked for while a task waits, and all of it as soon as it is begun. */
static void when_begun(void **state)
{
    cm_load_counts counts = {0};
    fixture f;
    void *worker;
    (void)state;
    begin(&f, 1, 64);
    f.when_begun = true;
    uint8_t *arena = malloc(batch_nbytes(&f));
    assert_int_equal(f.source.open(f.source.context, 0, &worker, NULL), CM_OK);
    cm_load_task *task = new_task(BATCH);
    f.source.expect(f.source.context, task);
    assert_int_equal(later.nbegun, 0);
    f.source.forget(f.source.context, task);
    free(task);
    assert_int_equal(load(&f, worker, 0, arena, &counts, NULL), CM_OK);
    check(&f, 0, arena);
    assert_true(later.nbegun > BATCH);
    f.source.close(worker);
    free(arena);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_requests),
        cmocka_unit_test(ahead_of_threads),
        cmocka_unit_test(lost_answers),
        cmocka_unit_test(stopped),
        cmocka_unit_test(queued),
        cmocka_unit_test(when_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
