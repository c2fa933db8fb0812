/* The map loader: whole batches, in DataLoader's order, in every kind of pool. */
#include "batcher_fixture.h"

static fixture *new_fixture(unsigned nworkers, unsigned prefetch, unsigned nslots)
{
    fixture *f = test_calloc(1, sizeof(*f));
    problem_init(&f->problem, CM_ORDER_RANDOM);
    set_share(f, 203, 8);
    f->options = (cm_batcher_options){.nworkers = nworkers, .prefetch = prefetch, .nslots = nslots};
    return f;
}

static void end(fixture *f)
{
    stop(f);
    test_free(f);
}

static void check_batch(fixture *f, uint64_t epoch, const cm_load_batch *b)
{
    assert_int_equal(b->status, CM_OK);
    assert_int_equal(b->nsamples, cm_epoch_share_batch(&f->share, b->number));
    for (uint64_t k = 0; k < b->nsamples; k++)
        assert_int_equal(b->sample[k], cm_epoch_share_sample(&f->share, b->number * 8 + k));
    assert_true(content_is_right(&f->problem, epoch, b));
    assert_true(b->queued_ns > 0 && b->begin_ns >= b->queued_ns && b->end_ns >= b->begin_ns);
    assert_true(b->rss_nbytes > 0);
    assert_int_equal(b->counts.decoded, 1);
}

static void test_in_order(void **state)
{
    (void)state;
    const struct {
        unsigned nworkers, prefetch, nslots;
    } row[] = {{1, 1, 1}, {1, 4, 2}, {2, 2, 5}, {3, 1, 2}, {5, 3, 16}, {8, 4, 33}, {8, 2, 3}};
    for (size_t k = 0; k < NKINDS; k++) {
        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
            fixture *f = new_fixture(row[i].nworkers, row[i].prefetch, row[i].nslots);
            start(f, &kinds[k]);
            for (uint64_t epoch = 0; epoch < 2; epoch++) {
                assert_int_equal(cm_batcher_begin(f->loader, &f->share, epoch, 0, &f->err), CM_OK);
                for (uint64_t number = 0; number < f->share.nbatches; number++) {
                    cm_load_batch b = next_batch(f);
                    assert_int_equal(b.number, number);
                    assert_int_equal(b.worker, number % f->options.nworkers);
                    check_batch(f, epoch, &b);
                    cm_batcher_release(f->loader, &b);
                }
                assert_at_end(f);
                assert_at_end(f);
            }
            end(f);
        }
    }
}

static void test_unordered(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        fixture *f = new_fixture(4, 2, 9);
        uint8_t seen[64] = {0};
        f->options.unordered = true;
        start(f, &kinds[k]);
        assert_int_equal(cm_batcher_begin(f->loader, &f->share, 3, 0, &f->err), CM_OK);
        for (uint64_t i = 0; i < f->share.nbatches; i++) {
            cm_load_batch b = next_batch(f);
            assert_in_range(b.number, 0, f->share.nbatches - 1);
            assert_int_equal(seen[b.number]++, 0);
            check_batch(f, 3, &b);
            cm_batcher_release(f->loader, &b);
        }
        assert_at_end(f);
        end(f);
    }
}

/* One worker is held up at batch 0; the other makes all the rest. */
static void test_unordered_does_not_wait(void **state)
{
    (void)state;
    fixture *f = new_fixture(2, 1, 4);
    f->options.unordered = true;
    f->problem.hold = 0 + 1;
    start(f, &kinds[THREADS]);
    assert_int_equal(cm_batcher_begin(f->loader, &f->share, 0, 0, &f->err), CM_OK);
    for (uint64_t i = 1; i < f->share.nbatches; i++) {
        cm_load_batch b = next_batch(f);
        assert_int_equal(b.number, i);
        assert_int_equal(b.worker, 1);
        cm_batcher_release(f->loader, &b);
    }
    atomic_store(&board_at(f)->go, 1);
    cm_load_batch b = next_batch(f);
    assert_int_equal(b.number, 0);
    assert_int_equal(b.worker, 0);
    assert_at_end(f);
    end(f);
}

/* Of several that are ready the one that came first is given, unordered too. */
static void test_in_flight(void **state)
{
    (void)state;
    unsigned underway, ready;
    fixture *f = new_fixture(1, 3, 4);
    f->options.unordered = true;
    f->problem.block = true;
    start(f, &kinds[THREADS]);
    assert_int_equal(cm_batcher_begin(f->loader, &f->share, 0, 0, &f->err), CM_OK);
    board *b = board_at(f);
    while (atomic_load(&b->begun) == 0)
        usleep(500);
    cm_batcher_in_flight(f->loader, &underway, &ready);
    assert_int_equal(underway, 3);
    assert_int_equal(ready, 0);
    atomic_store(&b->go, 1);
    do
        cm_batcher_in_flight(f->loader, &underway, &ready);
    while (ready < 3 && usleep(500) == 0);
    assert_int_equal(underway, 0);
    for (uint64_t number = 0; number < 3; number++)
        assert_int_equal(next_batch(f).number, number);
    end(f);
}

static void test_ranks_and_dropped_tails(void **state)
{
    (void)state;
    for (int drop = 0; drop <= 1; drop++) {
        fixture *f = new_fixture(2, 2, 4);
        f->share =
            (cm_epoch_share){.nsamples = 50, .world = 3, .rank = 2, .batch = 5, .drop_last = drop};
        assert_int_equal(cm_epoch_share_init(&f->share, NULL), CM_OK);
        start(f, &kinds[THREADS]);
        assert_int_equal(cm_batcher_begin(f->loader, &f->share, 0, 0, &f->err), CM_OK);
        uint64_t n = 0;
        for (uint64_t i = 0; i < f->share.nbatches; i++) {
            cm_load_batch b = next_batch(f);
            for (uint64_t k = 0; k < b.nsamples; k++, n++)
                assert_int_equal(b.sample[k], (2 + 3 * n) % 50);
            assert_true(content_is_right(&f->problem, 0, &b));
            cm_batcher_release(f->loader, &b);
        }
        assert_int_equal(n, drop ? 15 : 17);
        assert_at_end(f);
        end(f);
    }
}

static void test_a_failed_batch_is_delivered(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        fixture *f = new_fixture(2, 2, 4);
        f->problem.fail_batch = 7 + 1;
        start(f, &kinds[k]);
        assert_int_equal(cm_batcher_begin(f->loader, &f->share, 0, 0, &f->err), CM_OK);
        for (uint64_t number = 0; number < f->share.nbatches; number++) {
            cm_load_batch b = next_batch(f);
            assert_int_equal(b.number, number);
            if (number == 7) {
                assert_int_equal(b.status, CM_EFORMAT);
                assert_string_equal(b.error, "number 7 is corrupt");
            } else {
                check_batch(f, 0, &b);
            }
            cm_batcher_release(f->loader, &b);
        }
        end(f);
    }
}

static void test_a_killed_worker(void **state)
{
    (void)state;
    for (size_t k = FORK; k < NKINDS; k++) {
        fixture *f = new_fixture(3, 2, 6);
        f->problem.kill_at = 4 + 1;
        start(f, &kinds[k]);
        assert_int_equal(cm_batcher_begin(f->loader, &f->share, 0, 0, &f->err), CM_OK);
        for (uint64_t number = 0; number < f->share.nbatches; number++) {
            cm_load_batch b = next_batch(f);
            assert_int_equal(b.number, number);
            assert_int_equal(b.worker, number % 3);
            assert_int_equal(b.deaths, number == 4);
            check_batch(f, 0, &b);
            cm_batcher_release(f->loader, &b);
        }
        end(f);
    }
}

/* An epoch is left half-way; a batch of it that the caller still has stays as it is. */
static void test_another_epoch_half_way(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        fixture *f = new_fixture(3, 2, 6);
        start(f, &kinds[k]);
        cm_load_batch kept = {0};
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            assert_int_equal(cm_batcher_begin(f->loader, &f->share, epoch, 0, &f->err), CM_OK);
            uint64_t n = epoch < 3 ? 5 + epoch : f->share.nbatches;
            for (uint64_t number = 0; number < n; number++) {
                cm_load_batch b = next_batch(f);
                assert_int_equal(b.number, number);
                check_batch(f, epoch, &b);
                if (epoch == 1 && number == 3)
                    kept = b;
                else
                    cm_batcher_release(f->loader, &b);
            }
            if (epoch >= 1)
                check_batch(f, 1, &kept);
        }
        cm_batcher_release(f->loader, &kept);
        cm_batcher_release(f->loader, &kept); /* once is enough, twice does no harm */
        end(f);
    }
}

static bool say_stop(void *context)
{
    ++*(unsigned *)context;
    return true;
}

static void test_stop(void **state)
{
    (void)state;
    fixture *f = new_fixture(2, 2, 4);
    unsigned asked = 0;
    cm_load_batch b;
    bool more;
    f->problem.block = true;
    start(f, &kinds[FORK]);
    assert_int_equal(cm_batcher_begin(f->loader, &f->share, 0, 0, &f->err), CM_OK);
    assert_int_equal(cm_batcher_next(f->loader, say_stop, &asked, &b, &more, &f->err),
                     CM_ECANCELED);
    assert_int_equal(asked, 1);
    atomic_store(&board_at(f)->go, 1);
    for (uint64_t number = 0; number < f->share.nbatches; number++) {
        b = next_batch(f);
        assert_int_equal(b.number, number);
        cm_batcher_release(f->loader, &b);
    }
    end(f);
}

static void test_all_slots_taken(void **state)
{
    (void)state;
    for (size_t k = 0; k <= FORK; k++) {
        fixture *f = new_fixture(2, 2, 3);
        cm_load_batch b[4];
        bool more;
        start(f, &kinds[k]);
        assert_int_equal(cm_batcher_begin(f->loader, &f->share, 0, 0, &f->err), CM_OK);
        for (unsigned i = 0; i < 3; i++)
            b[i] = next_batch(f);
        assert_int_equal(cm_batcher_next(f->loader, NULL, NULL, &b[3], &more, &f->err), CM_EINVAL);
        assert_non_null(strstr(f->err.text, "all 3 are taken"));
        for (unsigned i = 0; i < 3; i++)
            check_batch(f, 0, &b[i]);
        cm_batcher_release(f->loader, &b[1]);
        b[3] = next_batch(f);
        assert_int_equal(b[3].number, 3);
        check_batch(f, 0, &b[3]);
        end(f);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    fixture *f = new_fixture(2, 2, 4);
    cm_batcher *none;
    start_pool(f, &kinds[THREADS], 1);
    const struct {
        const char *what;
        cm_batcher_options change;
    } row[] = {
        {"client", {.client = 1, .nworkers = 2, .prefetch = 1, .nslots = 1}},
        {"workers", {.first_worker = 1, .nworkers = 2, .prefetch = 1, .nslots = 1}},
        {"no workers", {.prefetch = 1, .nslots = 1}},
        {"no prefetch", {.nworkers = 2, .nslots = 1}},
        {"no slots", {.nworkers = 2, .prefetch = 1}},
        {"arena", {.nworkers = 2, .prefetch = 1, .nslots = 1000000}},
        {"offset", {.nworkers = 2, .prefetch = 1, .nslots = 1, .arena_offset = SIZE_MAX - 4}},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        cm_batcher_options o = row[i].change;
        o.slot_nbytes = f->options.slot_nbytes;
        if (cm_batcher_create(f->pool, &f->arena, &o, &none, &f->err) != CM_EINVAL)
            fail_msg("%s was accepted", row[i].what);
        assert_null(none);
    }
    assert_int_equal(cm_batcher_create(f->pool, &f->arena, &f->options, &f->loader, &f->err),
                     CM_OK);
    set_share(f, 203, 9);
    assert_int_equal(cm_batcher_begin(f->loader, &f->share, 0, 0, &f->err), CM_EBUDGET);
    assert_non_null(strstr(f->err.text, "a batch of 9 samples of 250 bytes does not fit"));
    assert_at_end(f);
    end(f);
    cm_batcher_free(NULL);
}

/* ---- several loaders of one pool ---- */

typedef struct rank_run {
    fixture *f;
    unsigned rank;
    unsigned wrong;
    pthread_t thread;
} rank_run;

static void *run_rank(void *arg)
{
    rank_run *r = arg;
    fixture *f = r->f;
    cm_batcher_options o = f->options;
    cm_batcher *loader;
    cm_epoch_share share = {.nsamples = 203, .world = 3, .rank = r->rank, .batch = 8};
    cm_error err;
    o.client = r->rank;
    o.arena_offset = r->rank * o.nslots * o.slot_nbytes;
    r->wrong += cm_epoch_share_init(&share, &err) != CM_OK;
    r->wrong += cm_batcher_create(f->pool, &f->arena, &o, &loader, &err) != CM_OK;
    for (uint64_t epoch = 0; epoch < 3 && r->wrong == 0; epoch++) {
        r->wrong += cm_batcher_begin(loader, &share, epoch, 0, &err) != CM_OK;
        for (uint64_t number = 0; number < share.nbatches && r->wrong == 0; number++) {
            cm_load_batch b;
            bool more;
            r->wrong += cm_batcher_next(loader, NULL, NULL, &b, &more, &err) != CM_OK || !more ||
                        b.number != number || b.sample[0] != (r->rank + 24 * number) % 203 ||
                        !content_is_right(&f->problem, epoch, &b);
            cm_batcher_release(loader, &b);
        }
    }
    cm_batcher_free(loader);
    return NULL;
}

static void test_ranks_share_a_pool(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        fixture *f = new_fixture(2, 2, 5);
        rank_run run[3];
        start_pool(f, &kinds[k], 3);
        for (unsigned i = 0; i < 3; i++) {
            run[i] = (rank_run){.f = f, .rank = i};
            assert_int_equal(pthread_create(&run[i].thread, NULL, run_rank, &run[i]), 0);
        }
        for (unsigned i = 0; i < 3; i++) {
            pthread_join(run[i].thread, NULL);
            assert_int_equal(run[i].wrong, 0);
        }
        end(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_unordered),
        cmocka_unit_test(test_unordered_does_not_wait),
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_ranks_and_dropped_tails),
        cmocka_unit_test(test_a_failed_batch_is_delivered),
        cmocka_unit_test(test_a_killed_worker),
        cmocka_unit_test(test_another_epoch_half_way),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_all_slots_taken),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_ranks_share_a_pool),
    };
    return cmocka_run_group_tests_name("loader", tests, NULL, NULL);
}
