/* The planned loader: every chunk once, every sample whole, never a standstill. */
#include "batcher_fixture.h"

typedef struct planned {
    fixture f;
    cm_epoch_plan plan;
    cm_batcher_needs needs;
} planned;

static void make_plan(planned *p, uint64_t epoch, uint64_t window)
{
    static const cm_grid *grid[NARRAYS];
    for (size_t i = 0; i < NARRAYS; i++)
        grid[i] = &p->f.problem.grid[i];
    const cm_epoch_request request = {.space = &p->f.problem.space,
                                      .share = &p->f.share,
                                      .epoch = epoch,
                                      .part = p->f.problem.part,
                                      .nparts = NPARTS,
                                      .grid = grid,
                                      .narrays = NARRAYS,
                                      .window = window,
                                      .max_stash = 100000};
    cm_epoch_plan_release(&p->plan);
    if (cm_epoch_plan_make(&request, &p->plan, &p->f.err) != CM_OK ||
        cm_batcher_plan_needs(&p->plan, &p->f.share, &p->needs, &p->f.err) != CM_OK)
        fail_msg("%s", p->f.err.text);
}

/*
 * NSAMPLES in batches of BATCH, a plan for epoch 0; nslots and nstash are what it needs and
 * MORE.
 */
static planned *new_planned(uint64_t nsamples, uint64_t batch, uint64_t window, unsigned more)
{
    planned *p = test_calloc(1, sizeof(*p));
    problem_init(&p->f.problem, CM_ORDER_RANDOM);
    set_share(&p->f, nsamples, batch);
    make_plan(p, 0, window);
    p->f.options = (cm_batcher_options){.nworkers = 2,
                                        .prefetch = 2,
                                        .nslots = (unsigned)p->needs.nslots + more,
                                        .nstash = p->needs.nstash + more};
    return p;
}

static void end(planned *p)
{
    stop(&p->f);
    cm_epoch_plan_release(&p->plan);
    test_free(p);
}

static int begin(planned *p, uint64_t epoch)
{
    return cm_batcher_begin(p->f.loader, &p->f.share, epoch, 0, &p->plan, &p->f.err);
}

static void check_batch(planned *p, uint64_t epoch, const cm_load_batch *b)
{
    assert_int_equal(b->status, CM_OK);
    assert_int_equal(b->nsamples, cm_epoch_share_batch(&p->f.share, b->number));
    assert_memory_equal(b->sample, p->plan.sample + b->number * p->f.share.batch,
                        b->nsamples * sizeof(b->sample[0]));
    assert_true(content_is_right(&p->f.problem, epoch, b));
    assert_true(b->begin_ns >= b->queued_ns && b->end_ns >= b->begin_ns);
    assert_true(b->queued_ns > 0 && b->end_ns < UINT64_MAX);
}

static void take_all(planned *p, uint64_t epoch)
{
    uint64_t decoded = 0;
    for (uint64_t number = 0; number < p->f.share.nbatches; number++) {
        cm_load_batch b = next_batch(&p->f);
        assert_int_equal(b.number, number);
        check_batch(p, epoch, &b);
        decoded += b.counts.decoded;
        cm_batcher_release(p->f.loader, &b);
    }
    assert_at_end(&p->f);
    assert_int_equal(decoded, p->plan.nchunks);
}

static void assert_each_chunk_once(planned *p)
{
    board *b = board_at(&p->f);
    uint64_t loads = 0;
    for (uint64_t i = 0; i < p->plan.nchunks; i++)
        assert_int_equal(atomic_load(&b->loads[p->plan.chunk[i].array][p->plan.chunk[i].number]),
                         1);
    for (size_t a = 0; a < NARRAYS; a++)
        for (size_t i = 0; i < MAX_CHUNKS; i++)
            loads += atomic_load(&b->loads[a][i]);
    assert_int_equal(loads, p->plan.nchunks);
}

static void test_each_chunk_once(void **state)
{
    (void)state;
    const struct {
        uint64_t nsamples, batch, window;
        unsigned nworkers, prefetch, more;
    } row[] = {{1, 1, 1, 1, 1, 0},      {40, 4, 1, 2, 1, 0},    {200, 8, 3, 2, 2, 0},
               {203, 8, 5, 8, 4, 0},    {203, 7, 5, 3, 2, 40},  {500, 32, 16, 4, 2, 2},
               {90, 1, 7, 3, 3, 0},     {100, 100, 4, 2, 2, 0}, {300, 16, 1000, 5, 1, 0},
               {300, 16, 1000, 4, 4, 8}};
    for (size_t k = 0; k < NKINDS; k++) {
        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
            planned *p = new_planned(row[i].nsamples, row[i].batch, row[i].window, row[i].more);
            p->f.options.nworkers = row[i].nworkers;
            p->f.options.prefetch = row[i].prefetch;
            start(&p->f, &kinds[k]);
            if (begin(p, 0) != CM_OK)
                fail_msg("%s: %s", kinds[k].name, p->f.err.text);
            take_all(p, 0);
            assert_each_chunk_once(p);
            end(p);
        }
    }
}

/* The plan knows its stash, and its open batches but for those that wait for their turn. */
static void test_needs_and_plan_agree(void **state)
{
    (void)state;
    for (uint64_t window = 1; window < 300; window = window * 2 + 1) {
        for (uint64_t batch = 1; batch <= 64; batch *= 4) {
            planned *p = test_calloc(1, sizeof(*p));
            problem_init(&p->f.problem, CM_ORDER_RANDOM);
            set_share(&p->f, 400, batch);
            make_plan(p, 5, window);
            uint32_t most = 0;
            for (uint64_t i = 0; i < p->plan.nchunks; i++)
                most = p->plan.chunk[i].nuses > most ? p->plan.chunk[i].nuses : most;
            assert_int_equal(p->needs.nstash, p->plan.peak_stash);
            assert_int_equal(p->needs.max_pieces, most);
            assert_true(p->needs.nslots >= p->plan.peak_open);
            assert_true(p->needs.nslots <= p->f.share.nbatches);
            cm_epoch_plan_release(&p->plan);
            test_free(p);
        }
    }
}

static void test_epochs_follow_each_other(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        planned *p = new_planned(200, 8, 5, 20);
        cm_load_batch kept = {0};
        start(&p->f, &kinds[k]);
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            if (epoch > 0)
                make_plan(p, epoch, 5);
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
                take_all(p, epoch);
            }
            if (epoch >= 2) {
                assert_true(content_is_right(&p->f.problem, epoch == 3 ? 3 : 1, &kept));
                cm_batcher_release(p->f.loader, &kept);
            }
        }
        end(p);
    }
}

/* The samples of a chunk that cannot be read fail with their batches, and no others. */
static void test_a_failed_chunk(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        planned *p = new_planned(120, 4, 6, 0);
        bool bad[30] = {false};
        unsigned nbad = 0;
        const cm_epoch_chunk *c = p->plan.chunk;
        while (c->array != 0)
            c++;
        for (uint32_t i = 0; i < c->nuses; i++)
            bad[p->plan.use[c->first_use + i].place / 4] = true;
        p->f.problem.fail_chunk = c->number + 1;
        start(&p->f, &kinds[k]);
        assert_int_equal(begin(p, 0), CM_OK);
        for (uint64_t number = 0; number < 30; number++) {
            cm_load_batch b = next_batch(&p->f);
            assert_int_equal(b.number, number);
            if (bad[number]) {
                char want[64];
                snprintf(want, sizeof(want), "number %u is corrupt", (unsigned)c->number);
                assert_int_equal(b.status, CM_EFORMAT);
                assert_string_equal(b.error, want);
                nbad++;
            } else {
                check_batch(p, 0, &b);
            }
            cm_batcher_release(p->f.loader, &b);
        }
        assert_in_range(nbad, 1, 29);
        assert_at_end(&p->f);
        end(p);
    }
}

static void test_a_killed_worker(void **state)
{
    (void)state;
    for (size_t k = FORK; k < NKINDS; k++) {
        planned *p = new_planned(200, 8, 5, 0);
        uint64_t deaths = 0;
        const cm_epoch_chunk *c = &p->plan.chunk[p->plan.nchunks / 2];
        while (c->array != 0)
            c++;
        p->f.problem.kill_at = c->number + 1;
        start(&p->f, &kinds[k]);
        assert_int_equal(begin(p, 0), CM_OK);
        for (uint64_t number = 0; number < p->f.share.nbatches; number++) {
            cm_load_batch b = next_batch(&p->f);
            check_batch(p, 0, &b);
            deaths += b.deaths;
            cm_batcher_release(p->f.loader, &b);
        }
        assert_int_equal(deaths, 1);
        assert_each_chunk_once(p);
        end(p);
    }
}

static void test_what_does_not_fit_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *what;
        unsigned slots, stash, pieces;
    } row[] = {
        {"batches at once", 1, 0, 0}, {"samples wait at once", 0, 1, 0}, {"places", 0, 0, 1}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        planned *p = new_planned(200, 8, 5, 0);
        char number[32];
        assert_true(p->needs.nslots > 1 && p->needs.nstash > 1 && p->needs.max_pieces > 1);
        p->f.options.nslots -= row[i].slots;
        p->f.options.nstash -= row[i].stash;
        start(&p->f, &kinds[THREADS]);
        if (row[i].pieces > 0) {
            const cm_load_source source = {.context = &p->f.source,
                                           .open = source_open,
                                           .load = source_load,
                                           .close = source_close};
            cm_batcher_free(p->f.loader);
            cm_pool_free(p->f.pool);
            p->f.pool_options.max_pieces = p->needs.max_pieces - 1;
            assert_int_equal(
                cm_pool_create(&p->f.pool_options, &source, &p->f.arena, &p->f.pool, &p->f.err),
                CM_OK);
            assert_int_equal(
                cm_batcher_create(p->f.pool, &p->f.arena, &p->f.options, &p->f.loader, &p->f.err),
                CM_OK);
        }
        assert_int_equal(begin(p, 0), CM_EBUDGET);
        assert_non_null(strstr(p->f.err.text, row[i].what));
        snprintf(number, sizeof(number), " %u ",
                 (unsigned)(row[i].slots   ? p->needs.nslots
                            : row[i].stash ? p->needs.nstash
                                           : p->needs.max_pieces));
        assert_non_null(strstr(p->f.err.text, number));
        assert_at_end(&p->f);
        end(p);
    }
}

static void test_wrong_plans(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 6; wrong++) {
        planned *p = new_planned(50, 8, 5, 0);
        cm_epoch_plan *plan = &p->plan;
        start(&p->f, &kinds[THREADS]);
        switch (wrong) {
        case 0:
            set_share(&p->f, 51, 8);
            break;
        case 1:
            plan->use[3].place = 1000000;
            break;
        case 2:
            plan->missing[7]++;
            break;
        case 3:
            plan->missing[7]--;
            break;
        case 4:
            plan->chunk[0].first_use = plan->nuses;
            break;
        case 5:
            plan->use[3].part = NPARTS;
            break;
        }
        if (begin(p, 0) != CM_EINVAL)
            fail_msg("wrong plan %d was accepted", wrong);
        end(p);
    }
}

/*
 * While the caller holds batches the loader goes on with the slots that are left, and says
 * when it cannot.
 */
static void test_slots_are_held(void **state)
{
    (void)state;
    planned *p = new_planned(200, 8, 5, 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_chunk_once),
        cmocka_unit_test(test_needs_and_plan_agree),
        cmocka_unit_test(test_epochs_follow_each_other),
        cmocka_unit_test(test_a_failed_chunk),
        cmocka_unit_test(test_a_killed_worker),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
        cmocka_unit_test(test_wrong_plans),
        cmocka_unit_test(test_slots_are_held),
    };
    return cmocka_run_group_tests_name("loader, planned", tests, NULL, NULL);
}
