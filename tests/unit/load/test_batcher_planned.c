/* The planned loader: each sample once and whole, few chunks twice, never a standstill. */
#include "batcher_fixture.h"
#include "plan/block_order.h"

typedef struct planned {
    fixture f;
    bool seen[12 * 30 * 28]; /* of an epoch, by number */
} planned;

/* NSAMPLES in batches of BATCH, NFRAMES frames for a WINDOW of blocks, GROWN cells each. */
static planned *new_planned(uint64_t nsamples, uint64_t batch, uint64_t window, unsigned nframes,
                            uint8_t grown)
{
    planned *p = test_calloc(1, sizeof(*p));
    problem_init(&p->f.problem, CM_ORDER_RANDOM);
    problem_block(&p->f.problem, grown);
    set_share(&p->f, nsamples, batch);
    p->f.options = (cm_batcher_options){.nworkers = 2,
                                        .prefetch = 2,
                                        .nslots = 6,
                                        .blocks = &p->f.problem.blocks,
                                        .part = p->f.problem.part,
                                        .window = window,
                                        .nframes = nframes};
    return p;
}

static void end(planned *p)
{
    stop(&p->f);
    test_free(p);
}

static int begin_at(planned *p, uint64_t epoch, uint64_t first)
{
    memset(p->seen, 0, sizeof(p->seen));
    return cm_batcher_begin(p->f.loader, &p->f.share, epoch, first, &p->f.err);
}

static int begin(planned *p, uint64_t epoch)
{
    return begin_at(p, epoch, 0);
}

static void check_batch(planned *p, uint64_t epoch, const cm_load_batch *b)
{
    cm_block_order order;
    const problem *pr = &p->f.problem;
    assert_int_equal(b->status, CM_OK);
    assert_int_equal(b->nsamples, cm_epoch_share_batch(&p->f.share, b->number));
    assert_int_equal(cm_block_order_make(&pr->blocks, p->f.options.window, &order, NULL), CM_OK);
    cm_block_order_begin(&order, pr->space.seed, epoch);
    for (uint64_t k = 0; k < b->nsamples; k++) {
        cm_block_sample at;
        const uint64_t place = cm_epoch_share_place(&p->f.share, b->number * p->f.share.batch + k);
        cm_block_order_at(&order, place, &at);
        assert_int_equal(b->sample[k], at.number);
        assert_false(p->seen[at.number]);
        p->seen[at.number] = true;
    }
    cm_block_order_release(&order);
    assert_true(content_is_right(pr, epoch, b));
    assert_true(b->begin_ns >= b->queued_ns && b->end_ns >= b->begin_ns);
    assert_true(b->queued_ns > 0 && b->end_ns < UINT64_MAX);
}

static uint64_t count_loads(planned *p)
{
    uint64_t loads = 0;
    for (size_t a = 0; a < NARRAYS; a++)
        for (size_t i = 0; i < MAX_CHUNKS; i++)
            loads += atomic_load(&board_at(&p->f)->loads[a][i]);
    return loads;
}

/* Takes batches from FIRST on; returns chunks that they say were decoded. */
static uint64_t take_from(planned *p, uint64_t epoch, uint64_t first)
{
    uint64_t decoded = 0;
    for (uint64_t number = first; number < p->f.share.nbatches; number++) {
        cm_load_batch b = next_batch(&p->f);
        assert_int_equal(b.number, number);
        check_batch(p, epoch, &b);
        decoded += b.counts.decoded;
        cm_batcher_release(p->f.loader, &b);
    }
    assert_at_end(&p->f);
    return decoded;
}

/* The samples of an epoch of all: 11 - 1 of time, for lag 1, by 26 by 23. */
enum {
    ALL = 10 * 26 * 23
};

/* A whole epoch decodes as many chunks as blocks need, with whatever frames and workers. */
static void test_each_chunk_of_a_block_once(void **state)
{
    (void)state;
    const struct {
        uint64_t batch, window;
        unsigned nframes, nworkers, prefetch;
        uint8_t grown;
    } row[] = {{1, 1, 1, 1, 1, 0},   {8, 1, 1, 2, 2, 0},  {8, 3, 4, 2, 2, 0},
               {64, 5, 5, 8, 4, 0},  {33, 5, 9, 3, 2, 1}, {500, 16, 17, 4, 2, 0},
               {7, 64, 64, 4, 2, 0}, {32, 1, 2, 3, 3, 2}, {ALL, 4, 5, 2, 2, 1},
               {16, 8, 8, 4, 4, 3}};
    for (size_t k = 0; k < NKINDS; k++)
        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
            planned *p =
                new_planned(ALL, row[i].batch, row[i].window, row[i].nframes, row[i].grown);
            assert_int_equal(p->f.problem.space.nsamples, ALL);
            p->f.options.nworkers = row[i].nworkers;
            p->f.options.prefetch = row[i].prefetch;
            if (p->f.options.window > p->f.problem.blocks.nblocks)
                p->f.options.window = p->f.problem.blocks.nblocks;
            start(&p->f, &kinds[k]);
            if (begin(p, 0) != CM_OK)
                fail_msg("%s: %s", kinds[k].name, p->f.err.text);
            const uint64_t decoded = take_from(p, 0, 0);
            assert_int_equal(decoded, count_loads(p));
            assert_int_equal(decoded, (uint64_t)cm_blocks_decodes(&p->f.problem.blocks).decoded);
            end(p);
        }
}

/* Ranks share an epoch without a sample twice, and where it does not come out even, begin anew. */
static void test_ranks(void **state)
{
    (void)state;
    enum {
        WORLD = 7
    };
    for (int drop_last = 0; drop_last < 2; drop_last++) {
        unsigned *times = test_calloc(ALL, sizeof(*times)), total = 0;
        for (uint64_t rank = 0; rank < WORLD; rank++) {
            planned *p = new_planned(ALL, 9, 5, 6, 0);
            p->f.share = (cm_epoch_share){
                .nsamples = ALL, .world = WORLD, .rank = rank, .batch = 9, .drop_last = drop_last};
            assert_int_equal(cm_epoch_share_init(&p->f.share, NULL), CM_OK);
            start(&p->f, &kinds[THREADS]);
            assert_int_equal(begin(p, 2), CM_OK);
            take_from(p, 2, 0);
            for (size_t i = 0; i < ALL; i++)
                times[i] += p->seen[i];
            end(p);
        }
        for (size_t i = 0; i < ALL; i++) {
            assert_in_range(times[i], drop_last ? 0 : 1, drop_last ? 1 : 2);
            total += times[i];
        }
        assert_int_equal(total, drop_last ? ALL / WORLD / 9 * 9 * WORLD
                                          : (ALL + WORLD - 1) / WORLD * WORLD);
        test_free(times);
    }
}

/* An epoch that goes on at any batch delivers what the whole one has there. */
static void test_going_on(void **state)
{
    (void)state;
    for (uint64_t first = 0; first <= 23; first++) {
        planned *p = new_planned(180, 8, 4, 5, 0);
        start(&p->f, &kinds[THREADS]);
        assert_int_equal(p->f.share.nbatches, 23);
        assert_int_equal(begin_at(p, 1, first), CM_OK);
        take_from(p, 1, first);
        end(p);
    }
}

static void test_epochs_follow_each_other(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        planned *p = new_planned(200, 8, 5, 6, 0);
        cm_load_batch kept = {0};
        start(&p->f, &kinds[k]);
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            assert_int_equal(begin(p, epoch), CM_OK);
            if (epoch % 2 == 1) { /* left half-way, with one batch kept */
                kept = next_batch(&p->f);
                check_batch(p, epoch, &kept);
                for (unsigned i = 0; i < 4; i++) {
                    cm_load_batch b = next_batch(&p->f);
                    check_batch(p, epoch, &b);
                    cm_batcher_release(p->f.loader, &b);
                }
            } else {
                take_from(p, epoch, 0);
            }
            if (epoch >= 2) {
                assert_true(content_is_right(&p->f.problem, epoch == 3 ? 3 : 1, &kept));
                cm_batcher_release(p->f.loader, &kept);
            }
        }
        end(p);
    }
}

/* Whether a sample of B needs chunk NUMBER of the field. */
static bool needs_chunk(const problem *p, const cm_load_batch *b, uint64_t number)
{
    uint64_t coord[CM_MAX_RANK];
    cm_box chunk, box, shared;
    bool needs = false;
    cm_grid_coord(&p->grid[0], number, coord);
    cm_grid_box(&p->grid[0], coord, &chunk);
    for (uint64_t k = 0; k < b->nsamples; k++)
        for (uint32_t part = 0; part < 2; part++) {
            part_box(p, 0, b->sample[k], part, &box);
            needs |= cm_box_intersect(&box, &chunk, &shared);
        }
    return needs;
}

/* Batches that need a chunk that cannot be read fail with its sentence, and no others. */
static void test_a_failed_chunk(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        planned *p = new_planned(1200, 4, 3, 4, 0);
        unsigned nbad = 0;
        p->f.problem.fail_chunk = 22;
        start(&p->f, &kinds[k]);
        assert_int_equal(begin(p, 0), CM_OK);
        for (uint64_t number = 0; number < p->f.share.nbatches; number++) {
            cm_load_batch b = next_batch(&p->f);
            assert_int_equal(b.number, number);
            if (needs_chunk(&p->f.problem, &b, 21)) {
                assert_int_equal(b.status, CM_EFORMAT);
                assert_string_equal(b.error, "number 21 is corrupt");
                nbad++;
            } else {
                check_batch(p, 0, &b);
            }
            cm_batcher_release(p->f.loader, &b);
        }
        assert_in_range(nbad, 1, p->f.share.nbatches - 1);
        assert_at_end(&p->f);
        end(p);
    }
}

static void test_a_killed_worker(void **state)
{
    (void)state;
    for (size_t k = FORK; k < NKINDS; k++) {
        planned *p = new_planned(ALL, 64, 5, 6, 0);
        uint64_t deaths = 0;
        p->f.problem.kill_at = 12;
        start(&p->f, &kinds[k]);
        assert_int_equal(begin(p, 0), CM_OK);
        for (uint64_t number = 0; number < p->f.share.nbatches; number++) {
            cm_load_batch b = next_batch(&p->f);
            check_batch(p, 0, &b);
            deaths += b.deaths;
            cm_batcher_release(p->f.loader, &b);
        }
        assert_int_equal(deaths, 1);
        assert_int_equal(count_loads(p), (uint64_t)cm_blocks_decodes(&p->f.problem.blocks).decoded);
        end(p);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    const struct {
        uint64_t window;
        unsigned nframes, more;
    } row[] = {{0, 4, 0}, {5, 4, 0}, {2, 4, 1}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        planned *p = new_planned(200, 8, row[i].window, row[i].nframes, 0);
        cm_batcher *l;
        start_pool(&p->f, &kinds[THREADS], 1);
        p->f.options.nframes += row[i].more * 1000000;
        assert_int_equal(cm_batcher_create(p->f.pool, &p->f.arena, &p->f.options, &l, &p->f.err),
                         CM_EINVAL);
        assert_non_null(strstr(p->f.err.text, "frames"));
        end(p);
    }
    planned *p = new_planned(200, 8, 2, 4, 0);
    start(&p->f, &kinds[THREADS]);
    assert_int_equal(begin_at(p, 0, 26), CM_EINVAL);
    set_share(&p->f, 200, 9); /* than slots were made for */
    assert_int_equal(begin(p, 0), CM_EBUDGET);
    end(p);
}

/*
 * While the caller holds batches the loader goes on with the slots that are left, and says
 * when it cannot.
 */
static void test_slots_are_held(void **state)
{
    (void)state;
    planned *p = new_planned(200, 8, 5, 6, 0);
    cm_load_batch *held = test_calloc(p->f.options.nslots, sizeof(*held));
    unsigned n = 0;
    bool more;
    int rc;
    start(&p->f, &kinds[THREADS]);
    assert_int_equal(begin(p, 0), CM_OK);
    while ((rc = cm_batcher_next(p->f.loader, NULL, NULL, &held[n], &more, &p->f.err)) == CM_OK) {
        n++;
        assert_true(more && n <= p->f.options.nslots);
    }
    assert_int_equal(rc, CM_EINVAL);
    for (unsigned i = 0; i < n; i++) {
        check_batch(p, 0, &held[i]);
        cm_batcher_release(p->f.loader, &held[i]);
    }
    for (uint64_t number = n; number < p->f.share.nbatches; number++) {
        cm_load_batch b = next_batch(&p->f);
        assert_int_equal(b.number, number);
        check_batch(p, 0, &b);
        cm_batcher_release(p->f.loader, &b);
    }
    test_free(held);
    end(p);
}

/*
 * Workers have chunks to decode for samples behind the batches that have slots: as many as are
 * worth it, and not those of an epoch that has no samples left.
 */
static void test_chunks_are_decoded_ahead(void **state)
{
    (void)state;
    static const struct {
        uint64_t nsamples;
        unsigned least, most;
    } rows[] = {{ALL, 32, 32 + 4 * 20}, {4, 1, 4 * 20}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        planned *p = new_planned(rows[i].nsamples, 1, 48, 49, 0);
        unsigned underway, ready;
        p->f.problem.block = true;
        start(&p->f, &kinds[THREADS]);
        if (begin(p, 0) != CM_OK)
            fail_msg("%s", p->f.err.text);
        cm_pool_pending(p->f.pool, 0, &underway, &ready);
        assert_in_range(underway, rows[i].least, rows[i].most);
        atomic_store(&board_at(&p->f)->go, 1);
        take_from(p, 0, 0);
        end(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_chunk_of_a_block_once),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_going_on),
        cmocka_unit_test(test_epochs_follow_each_other),
        cmocka_unit_test(test_a_failed_chunk),
        cmocka_unit_test(test_a_killed_worker),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_slots_are_held),
        cmocka_unit_test(test_chunks_are_decoded_ahead),
    };
    return cmocka_run_group_tests_name("loader, planned", tests, NULL, NULL);
}
