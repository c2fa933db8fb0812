/* The plan of an epoch against a simulation that looks at every chunk and every sample. */
#include <inttypes.h>
#include <math.h>

#include "../unit.h"
#include "chance.h"
#include "plan/epoch.h"

enum {
    MAX_ARRAYS = 3,
    MAX_PARTS = 4,
    MAX_PLACES = 600,
    MAX_CHUNKS = 4096
};

/* A request with all that it points to. */
typedef struct scenario {
    cm_sample_space space;
    cm_epoch_share share;
    cm_sample_part part[MAX_PARTS];
    cm_grid grid[MAX_ARRAYS];
    const cm_grid *grids[MAX_ARRAYS];
    cm_epoch_request request;
} scenario;

static void finish(scenario *s, size_t narrays, size_t nparts, uint64_t window)
{
    for (size_t a = 0; a < narrays; a++)
        s->grids[a] = &s->grid[a];
    s->request = (cm_epoch_request){.space = &s->space,
                                    .share = &s->share,
                                    .epoch = 2,
                                    .part = s->part,
                                    .nparts = nparts,
                                    .grid = s->grids,
                                    .narrays = narrays,
                                    .window = window,
                                    .max_stash = UINT64_MAX};
}

/* Array A gets dimensions of the space, some of them left out or taken whole. */
static void random_array(scenario *s, unsigned a)
{
    uint64_t shape[CM_MAX_RANK], chunk[CM_MAX_RANK];
    cm_sample_part *part = &s->part[a];

    *part = (cm_sample_part){.array = a};
    for (unsigned j = 0; j < s->space.rank; j++) {
        if (a > 0 && random_below(3) == 0)
            continue;
        part->axis[part->rank] = (int)j;
        shape[part->rank++] = s->space.length[j];
    }
    if (random_below(4) == 0) {
        part->axis[part->rank] = -1;
        shape[part->rank++] = 1 + random_below(4);
    }
    if (part->rank > 1 && random_below(4) == 0) { /* another order of dimensions */
        const int axis = part->axis[0];
        const uint64_t length = shape[0];
        part->axis[0] = part->axis[1];
        shape[0] = shape[1];
        part->axis[1] = axis;
        shape[1] = length;
    }
    for (unsigned d = 0; d < part->rank; d++) {
        part->shape[d] = shape[d];
        chunk[d] = 1 + random_below(shape[d] + 2);
    }
    assert_int_equal(cm_grid_init(&s->grid[a], part->rank, shape, chunk, NULL), CM_OK);
}

static void random_scenario(scenario *s)
{
    cm_sample_space *space = &s->space;
    const size_t narrays = 1 + random_below(MAX_ARRAYS);

    *s = (scenario){0};
    space->rank = 1 + (unsigned)random_below(3);
    space->order = (cm_order)random_below(8);
    space->parameter = 1 + random_below(5);
    space->seed = random_below(1000);
    space->reach = random_below(3);
    for (unsigned j = 0; j < space->rank; j++) {
        space->length[j] = 3 + random_below(space->rank == 1 ? 60 : 12);
        space->sample[j] = 1 + random_below(space->length[j] - (j == 0 ? space->reach : 0));
        space->chunk[j] = 1 + random_below(5);
    }
    assert_int_equal(cm_sample_space_init(space, NULL, NULL), CM_OK);
    for (unsigned a = 0; a < narrays; a++)
        random_array(s, a);
    s->part[narrays] = s->part[random_below(narrays)]; /* the same array at another lag */
    s->part[narrays].lag = space->reach;
    s->share = (cm_epoch_share){.nsamples =
                                    1 + random_below(space->nsamples < 500 ? space->nsamples : 500),
                                .world = 1 + random_below(3),
                                .batch = 1 + random_below(9),
                                .drop_last = random_below(3) == 0};
    s->share.rank = random_below(s->share.world);
    if (cm_epoch_share_init(&s->share, NULL) != CM_OK) {
        s->share.drop_last = false;
        assert_int_equal(cm_epoch_share_init(&s->share, NULL), CM_OK);
    }
    finish(s, narrays, narrays + random_below(2), 1 + random_below(12));
}

/*
 * Where each chunk of each array comes, MAX_CHUNKS where never; chunks that come twice are a
 * failure.
 */
static uint32_t position[MAX_ARRAYS][MAX_CHUNKS];

static void find_positions(const scenario *s, const cm_epoch_plan *plan)
{
    for (unsigned a = 0; a < MAX_ARRAYS; a++)
        for (size_t c = 0; c < MAX_CHUNKS; c++)
            position[a][c] = MAX_CHUNKS;
    assert_true(plan->nchunks < MAX_CHUNKS);
    for (uint32_t x = 0; x < plan->nchunks; x++) {
        const cm_epoch_chunk *chunk = &plan->chunk[x];
        assert_true(chunk->array < s->request.narrays);
        assert_true(chunk->number < s->grid[chunk->array].nchunks);
        assert_int_equal(position[chunk->array][chunk->number], MAX_CHUNKS);
        assert_true(chunk->nuses > 0);
        position[chunk->array][chunk->number] = x;
    }
}

static bool chunk_meets(const cm_grid *grid, uint64_t number, const cm_box *box)
{
    uint64_t coord[CM_MAX_RANK];
    cm_box whole, shared;

    cm_grid_coord(grid, number, coord);
    cm_grid_box(grid, coord, &whole);
    return cm_box_intersect(&whole, box, &shared);
}

/* First and last position of the chunks of each place, by looking at all chunks of all arrays. */
typedef struct spans_of_places {
    uint32_t first[MAX_PLACES], last[MAX_PLACES], nuses[MAX_PLACES];
    uint64_t total;
} spans_of_places;

static void find_spans(const scenario *s, const cm_epoch_plan *plan, spans_of_places *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t place = 0; place < plan->nplaces; place++) {
        cm_box sample, box;
        out->first[place] = UINT32_MAX;
        cm_sample_at(&s->space, s->request.epoch, plan->sample[place], &sample);
        for (size_t p = 0; p < s->request.nparts; p++) {
            const unsigned a = s->part[p].array;
            cm_sample_part_box(&s->part[p], &sample, &box);
            for (uint64_t c = 0; c < s->grid[a].nchunks; c++) {
                const uint32_t x = position[a][c];
                if (!chunk_meets(&s->grid[a], c, &box))
                    continue;
                assert_true(x < MAX_CHUNKS); /* every chunk that is needed comes */
                out->nuses[place]++;
                out->first[place] = x < out->first[place] ? x : out->first[place];
                out->last[place] = x > out->last[place] ? x : out->last[place];
            }
        }
        out->total += out->nuses[place];
    }
}

/* Each use is a meeting, none comes twice; with equal numbers of both they are the same. */
static void check_uses(const scenario *s, const cm_epoch_plan *plan, const spans_of_places *spans)
{
    uint32_t missing[MAX_PLACES] = {0};
    uint64_t next = 0;

    assert_int_equal(plan->nuses, spans->total);
    for (uint64_t x = 0; x < plan->nchunks; x++) {
        const cm_epoch_chunk *chunk = &plan->chunk[x];
        assert_int_equal(chunk->first_use, next);
        next += chunk->nuses;
        for (uint64_t u = chunk->first_use; u < next; u++) {
            const cm_epoch_use *use = &plan->use[u];
            cm_box sample, box;
            assert_true(use->place < plan->nplaces && use->part < s->request.nparts);
            assert_int_equal(s->part[use->part].array, chunk->array);
            cm_sample_at(&s->space, s->request.epoch, plan->sample[use->place], &sample);
            cm_sample_part_box(&s->part[use->part], &sample, &box);
            assert_true(chunk_meets(&s->grid[chunk->array], chunk->number, &box));
            if (u > chunk->first_use)
                assert_true(use->place > use[-1].place ||
                            (use->place == use[-1].place && use->part > use[-1].part));
            missing[use->place]++;
        }
    }
    assert_int_equal(next, plan->nuses);
    for (uint64_t place = 0; place < plan->nplaces; place++) {
        assert_int_equal(missing[place], plan->missing[place]);
        assert_int_equal(missing[place], spans->nuses[place]);
    }
}

static void check_delivery(const scenario *s, const cm_epoch_plan *plan,
                           const spans_of_places *spans)
{
    uint32_t times[MAX_PLACES * 4] = {0};

    assert_int_equal(plan->nplaces, s->share.per_rank);
    assert_int_equal(plan->nwindows,
                     plan->nchunks / s->request.window + (plan->nchunks % s->request.window != 0));
    for (uint64_t k = 0; k < plan->nplaces; k++)
        times[cm_epoch_share_sample(&s->share, k)]++;
    for (uint64_t place = 0; place < plan->nplaces; place++) {
        const uint64_t w = spans->last[place] / s->request.window;
        assert_true(times[plan->sample[place]]-- > 0);
        assert_int_equal(plan->window_of[place], w);
        assert_int_equal(plan->stashed[place], spans->first[place] / s->request.window != w);
        assert_true(place == 0 || w >= plan->window_of[place - 1]);
    }
}

/* Chunk after chunk: what waits and what is open while it is given out. */
static void check_peaks(const scenario *s, const cm_epoch_plan *plan, const spans_of_places *spans)
{
    uint64_t peak_stash = 0, peak_open = 0;
    const uint64_t batch = s->share.batch;

    for (uint32_t x = 0; x < plan->nchunks; x++) {
        uint64_t stash = 0, open = 0;
        for (uint64_t b = 0; b * batch < plan->nplaces; b++) {
            bool begun = false, complete = true;
            for (uint64_t p = b * batch; p < (b + 1) * batch && p < plan->nplaces; p++) {
                stash += plan->stashed[p] && spans->first[p] <= x && x <= spans->last[p];
                begun |= (plan->stashed[p] ? spans->last[p] : spans->first[p]) <= x;
                complete &= spans->last[p] < x;
            }
            open += begun && !complete;
        }
        peak_stash = stash > peak_stash ? stash : peak_stash;
        peak_open = open > peak_open ? open : peak_open;
    }
    assert_int_equal(plan->peak_stash, peak_stash);
    assert_int_equal(plan->peak_open, peak_open);
}

static void check_displacement(const scenario *s, const cm_epoch_plan *plan)
{
    double sum = 0;
    for (uint64_t i = 0; i < plan->nplaces; i++) {
        const uint64_t number = cm_sample_number(&s->space, s->request.epoch, plan->sample[i]);
        uint64_t before = 0;
        for (uint64_t j = 0; j < plan->nplaces; j++) {
            const uint64_t other = cm_sample_number(&s->space, s->request.epoch, plan->sample[j]);
            before += other < number || (other == number && j < i);
        }
        sum += fabs((double)i - (double)before);
    }
    sum /= (double)plan->nplaces * (double)plan->nplaces;
    assert_true(fabs(sum - plan->displacement) < 1e-12);
}

/* Chunks of one array by number; runs of them in windows. */
static void check_chunk_order(const scenario *s, const cm_epoch_plan *plan)
{
    const uint64_t window = s->request.window;
    uint64_t breaks = 0;

    for (uint64_t x = 1; s->request.narrays == 1 && x < plan->nchunks; x++) {
        const bool rises = plan->chunk[x].number > plan->chunk[x - 1].number;
        if (plan->order == CM_CHUNKS_SEQUENTIAL || x % window != 0)
            assert_true(rises || plan->order == CM_CHUNKS_RANDOM);
        breaks += !rises;
    }
    if (plan->order == CM_CHUNKS_RUNS)
        assert_true(breaks <= plan->nwindows);
}

static void check_plan(const scenario *s, const cm_epoch_plan *plan)
{
    static spans_of_places spans;

    assert_true(plan->nplaces <= MAX_PLACES);
    find_positions(s, plan);
    find_spans(s, plan, &spans);
    check_uses(s, plan, &spans);
    check_delivery(s, plan, &spans);
    check_peaks(s, plan, &spans);
    check_displacement(s, plan);
    check_chunk_order(s, plan);
}

/* The room is made one smaller until nothing fits; returns which orders were seen, as bits. */
static unsigned check_all_orders(scenario *s)
{
    cm_error err = {0};
    cm_epoch_plan plan;
    unsigned orders = 0;
    uint64_t least = UINT64_MAX;

    while (cm_epoch_plan_make(&s->request, &plan, &err) == CM_OK) {
        assert_true(plan.peak_stash <= s->request.max_stash);
        assert_true(orders >> plan.order == 0); /* never back to an order that did not fit */
        orders |= 1u << plan.order;
        check_plan(s, &plan);
        least = plan.peak_stash;
        cm_epoch_plan_release(&plan);
        if (least == 0)
            return orders;
        s->request.max_stash = least;
        assert_int_equal(cm_epoch_plan_make(&s->request, &plan, &err), CM_OK);
        assert_int_equal(plan.peak_stash, least);
        cm_epoch_plan_release(&plan);
        s->request.max_stash = least - 1;
    }
    assert_int_equal(err.status, CM_EBUDGET);
    if (strtoull(err.text, NULL, 10) != least)
        fail_msg("%s; but %" PRIu64 " would do", err.text, least);
    assert_null(plan.use);
    return orders;
}

static void test_plans_against_simulation(void **unused)
{
    unsigned seen = 0;
    (void)unused;
    for (unsigned i = 0; i < 400; i++) {
        scenario s;
        random_scenario(&s);
        seen |= check_all_orders(&s);
    }
    assert_int_equal(seen, 7);
}

static void line(scenario *s, uint64_t length, uint64_t sample, uint64_t chunk, uint64_t nsamples)
{
    *s = (scenario){.space = {.rank = 1, .length = {length}, .sample = {sample}}};
    assert_int_equal(cm_sample_space_init(&s->space, NULL, NULL), CM_OK);
    s->share = (cm_epoch_share){.nsamples = nsamples, .world = 1, .batch = 8};
    assert_int_equal(cm_epoch_share_init(&s->share, NULL), CM_OK);
    assert_int_equal(cm_grid_init(&s->grid[0], 1, &length, &chunk, NULL), CM_OK);
    s->part[0] = (cm_sample_part){.rank = 1, .axis = {0}, .shape = {length}};
    finish(s, 1, 1, 4);
}

static bool same_plan(const cm_epoch_plan *a, const cm_epoch_plan *b)
{
    return a->nplaces == b->nplaces && a->nchunks == b->nchunks && a->nuses == b->nuses &&
           memcmp(a->sample, b->sample, a->nplaces * sizeof(*a->sample)) == 0 &&
           memcmp(a->use, b->use, a->nuses * sizeof(*a->use)) == 0;
}

static void test_seed_and_epoch_decide(void **unused)
{
    (void)unused;
    scenario s;
    cm_epoch_plan first, again;
    line(&s, 400, 5, 8, 300);
    for (unsigned change = 0; change < 3; change++) {
        assert_int_equal(cm_epoch_plan_make(&s.request, &first, NULL), CM_OK);
        s.space.seed += change == 1;
        s.request.epoch += change == 2;
        assert_int_equal(cm_epoch_plan_make(&s.request, &again, NULL), CM_OK);
        assert_int_equal(same_plan(&first, &again), change == 0);
        cm_epoch_plan_release(&first);
        cm_epoch_plan_release(&again);
    }
}

static void test_orders_of_chunks(void **unused)
{
    static const struct {
        uint64_t window, max_stash;
        int order;
    } rows[] = {
        {4, UINT64_MAX, CM_CHUNKS_RANDOM}, {4, 60, CM_CHUNKS_RUNS},
        {4, 20, CM_CHUNKS_SEQUENTIAL},     {50, 0, CM_CHUNKS_RANDOM}, /* one window */
        {UINT64_MAX, 0, CM_CHUNKS_RANDOM},
    };
    (void)unused;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        scenario s;
        cm_epoch_plan plan;
        cm_error err = {0};
        line(&s, 400, 5, 8, 396);
        s.request.window = rows[r].window;
        s.request.max_stash = rows[r].max_stash;
        assert_int_equal(cm_epoch_plan_make(&s.request, &plan, &err), CM_OK);
        if ((int)plan.order != rows[r].order)
            fail_msg("row %zu: order %d, stash %" PRIu64, r, (int)plan.order, plan.peak_stash);
        assert_int_equal(plan.nchunks, 50);
        check_plan(&s, &plan);
        cm_epoch_plan_release(&plan);
    }
}

/* Runs differ between epochs, and each of them may be the short one that comes last. */
static void test_runs_are_shuffled(void **unused)
{
    unsigned first_differs = 0, tail_last = 0;
    uint64_t before = UINT64_MAX;
    (void)unused;
    scenario s;
    line(&s, 400, 5, 8, 396);
    s.request.max_stash = 60;
    for (uint64_t epoch = 0; epoch < 100; epoch++) {
        cm_epoch_plan plan;
        s.request.epoch = epoch;
        assert_int_equal(cm_epoch_plan_make(&s.request, &plan, NULL), CM_OK);
        if (plan.order == CM_CHUNKS_RUNS) {
            first_differs += plan.chunk[0].number != before;
            tail_last += plan.chunk[49].number == 49;
            before = plan.chunk[0].number;
        }
        cm_epoch_plan_release(&plan);
    }
    assert_true(first_differs > 50);
    assert_true(tail_last < 30);
}

/* In one window there is nothing but the shuffle: as far from C order as can be. */
static void test_one_window_is_a_full_shuffle(void **unused)
{
    (void)unused;
    scenario s;
    cm_epoch_plan plan;
    line(&s, 40000, 1, 8, 40000);
    s.request.window = 5000;
    assert_int_equal(cm_epoch_plan_make(&s.request, &plan, NULL), CM_OK);
    assert_true(fabs(plan.displacement - 1.0 / 3) < 0.01);
    assert_true(plan.peak_open >
                4900); /* of 5000: nearly every batch goes on for nearly all of it */
    cm_epoch_plan_release(&plan);
}

/* A map without time must not make all samples of all times wait: its tiles come one by one. */
static void test_fields_without_time(void **unused)
{
    static const uint64_t shape[] = {100, 8, 8}, chunk[] = {10, 4, 4};
    (void)unused;
    scenario s = {
        .space = {
            .rank = 3, .length = {100, 8, 8}, .sample = {1, 4, 4}, .order = CM_ORDER_SEQUENTIAL}};
    cm_epoch_plan plan;
    assert_int_equal(cm_sample_space_init(&s.space, NULL, NULL), CM_OK);
    s.share = (cm_epoch_share){.nsamples = 400, .world = 1, .batch = 8};
    assert_int_equal(cm_epoch_share_init(&s.share, NULL), CM_OK);
    assert_int_equal(cm_grid_init(&s.grid[0], 3, shape, chunk, NULL), CM_OK);
    assert_int_equal(cm_grid_init(&s.grid[1], 2, shape + 1, chunk + 1, NULL), CM_OK);
    s.part[0] = (cm_sample_part){.array = 0, .rank = 3, .axis = {0, 1, 2}, .shape = {100, 8, 8}};
    s.part[1] = (cm_sample_part){.array = 1, .rank = 2, .axis = {1, 2}, .shape = {8, 8}};
    finish(&s, 2, 2, 4);
    s.request.max_stash = 100; /* the samples of one tile */
    assert_int_equal(cm_epoch_plan_make(&s.request, &plan, NULL), CM_OK);
    check_plan(&s, &plan);
    cm_epoch_plan_release(&plan);
}

static void test_the_limit_of_meetings(void **unused)
{
    (void)unused;
    scenario s;
    cm_epoch_plan plan;
    cm_error err = {0};
    line(&s, 400, 9, 8, 100); /* each sample meets two chunks */
    assert_int_equal(cm_epoch_plan_make(&s.request, &plan, NULL), CM_OK);
    const uint64_t nuses = plan.nuses;
    cm_epoch_plan_release(&plan);
    s.request.max_meetings = nuses;
    assert_int_equal(cm_epoch_plan_make(&s.request, &plan, NULL), CM_OK);
    cm_epoch_plan_release(&plan);
    s.request.max_meetings = nuses - 1;
    assert_int_equal(cm_epoch_plan_make(&s.request, &plan, &err), CM_EBUDGET);
    assert_non_null(strstr(err.text, "199 times"));
    assert_null(plan.sample);
}

static void test_wrong_requests(void **unused)
{
    (void)unused;
    for (unsigned row = 0; row < 8; row++) {
        scenario s;
        cm_epoch_plan plan;
        cm_error err = {0};
        line(&s, 40, 3, 8, 20);
        switch (row) {
        case 0:
            s.request.window = 0;
            break;
        case 1:
            s.part[0].array = 1;
            break;
        case 2:
            s.part[0].rank = 2;
            break;
        case 3:
            s.part[0].axis[0] = 1;
            break;
        case 4:
            s.part[0].shape[0] = 41;
            break;
        case 5:
            s.part[0].lag = 1;
            break;
        case 6:
            s.space.length[0] = 41;
            break;
        default:
            s.share.nsamples = 39;
        }
        if (cm_epoch_plan_make(&s.request, &plan, &err) != CM_EINVAL || err.text[0] == 0)
            fail_msg("row %u was planned", row);
    }
}

static void test_an_empty_array(void **unused)
{
    static const uint64_t shape[] = {40, 0}, chunk[] = {8, 1};
    (void)unused;
    scenario s;
    cm_epoch_plan plan;
    line(&s, 40, 3, 8, 20);
    assert_int_equal(cm_grid_init(&s.grid[0], 2, shape, chunk, NULL), CM_OK);
    s.part[0] = (cm_sample_part){.rank = 2, .axis = {0, -1}, .shape = {40, 0}};
    assert_int_equal(cm_epoch_plan_make(&s.request, &plan, NULL), CM_OK);
    assert_int_equal(plan.nplaces, 20);
    assert_int_equal(plan.nchunks, 0);
    assert_int_equal(plan.peak_open, 0);
    for (unsigned p = 0; p < 20; p++)
        assert_int_equal(plan.missing[p] + plan.window_of[p] + plan.stashed[p], 0);
    cm_epoch_plan_release(&plan);
    cm_epoch_plan_release(&plan);
    cm_epoch_plan_release(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_against_simulation),
        cmocka_unit_test(test_seed_and_epoch_decide),
        cmocka_unit_test(test_orders_of_chunks),
        cmocka_unit_test(test_runs_are_shuffled),
        cmocka_unit_test(test_one_window_is_a_full_shuffle),
        cmocka_unit_test(test_fields_without_time),
        cmocka_unit_test(test_the_limit_of_meetings),
        cmocka_unit_test(test_wrong_requests),
        cmocka_unit_test(test_an_empty_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
