/*
 * The sweep's promises, held against a simulation that does every piece in the
 * plan's order and counts the target chunks that are held.
 */

#include "../unit.h"
#include "base/number.h"
#include "plan/meetings.h"
#include "plan/rechunk.h"
#include "plan/sweep.h"

typedef struct row {
    const char *name;
    unsigned rank;
    uint64_t shape[3], source[3], target[3];
    uint64_t max_slots;
    uint64_t slots;  /* expected */
    uint64_t pieces; /* expected */
} row;

static const row rows[] = {
    {"same chunks", 2, {8, 8}, {4, 4}, {4, 4}, 0, 1, 4},
    {"maps to cubes", 3, {32, 64, 64}, {1, 64, 64}, {16, 16, 16}, 0, 16, 32},
    {"series to maps", 3, {32, 64, 64}, {32, 16, 16}, {1, 64, 64}, 0, 32, 16},
    {"one chunk to many", 2, {16, 16}, {16, 16}, {4, 4}, 0, 16, 1},
    {"many chunks to one", 2, {16, 16}, {4, 4}, {16, 16}, 0, 1, 16},
    {"transposed order saves", 2, {1000, 10}, {10, 10}, {1000, 1}, 0, 10, 100},
    {"columns in stored order", 2, {10, 1000}, {10, 10}, {1, 1000}, 0, 10, 100},
    {"maps to cubes, a quarter of the slots",
     3,
     {32, 64, 64},
     {1, 64, 64},
     {16, 16, 16},
     4,
     4,
     128},
};

static void request_init(cm_sweep_request *r, unsigned rank, const uint64_t *shape,
                         const uint64_t *source, const uint64_t *target)
{
    memset(r, 0, sizeof(*r));
    r->rank = rank;
    r->itemsize = 4;
    r->piece_nbytes = 256;
    for (unsigned j = 0; j < rank; j++) {
        r->shape[j] = shape[j];
        r->source[j] = source[j];
        r->target[j] = target[j];
        r->step[j] = 1;
    }
}

static void test_known_plans(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cm_sweep_request r;
        cm_sweep s;
        request_init(&r, rows[i].rank, rows[i].shape, rows[i].source, rows[i].target);
        r.max_slots = rows[i].max_slots;
        cm_sweep_plan(&r, &s);
        if (s.slots != rows[i].slots || s.total_pieces != rows[i].pieces)
            fail_msg("%s: %llu slots, %llu pieces", rows[i].name, (unsigned long long)s.slots,
                     (unsigned long long)s.total_pieces);
    }
}

/* Elements of the target chunks, counted as pieces bring them. */
typedef struct simulation {
    uint64_t seen[4096];
    uint64_t left[4096];
    uint64_t held, peak, pieces, touched;
    uint64_t held_nelem, peak_nelem; /* inside the array */
} simulation;

static uint64_t nelem_of(const cm_sweep *s, const uint64_t *coord)
{
    uint64_t n = 1;
    for (unsigned j = 0; j < s->rank; j++) {
        cm_range span = cm_axis_target_span(&s->axis[j], coord[j]);
        n *= span.hi - span.lo;
    }
    return n;
}

static void touch_targets(const cm_sweep *s, const cm_sweep_cursor *c, simulation *sim)
{
    cm_range span[CM_MAX_RANK], targets[CM_MAX_RANK];
    uint64_t coord[CM_MAX_RANK], n = 1;
    for (unsigned j = 0; j < s->rank; j++) {
        span[j] = cm_axis_piece_span(&s->axis[j], c->span[j], c->piece[j]);
        assert_true(span[j].lo < span[j].hi);
        targets[j] = cm_axis_targets(&s->axis[j], span[j]);
        n *= targets[j].hi - targets[j].lo;
    }
    sim->touched = n > sim->touched ? n : sim->touched;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i, number = 0, volume = 1;
        for (unsigned j = s->rank; j-- > 0;) {
            coord[j] = targets[j].lo + rest % (targets[j].hi - targets[j].lo);
            rest /= targets[j].hi - targets[j].lo;
        }
        for (unsigned j = 0; j < s->rank; j++) {
            cm_range t = cm_axis_target_span(&s->axis[j], coord[j]);
            uint64_t lo = t.lo > span[j].lo ? t.lo : span[j].lo;
            uint64_t hi = t.hi < span[j].hi ? t.hi : span[j].hi;
            assert_true(lo < hi);
            volume *= hi - lo;
            number = number * cm_div_ceil(s->axis[j].n, s->axis[j].target) + coord[j];
        }
        assert_true(number < 4096);
        if (sim->seen[number] == 0) {
            sim->left[number] = cm_sweep_pieces_of(s, c, coord);
            sim->held++;
            sim->held_nelem += nelem_of(s, coord);
        }
        sim->seen[number] += volume;
        assert_true(sim->left[number] > 0);
        sim->left[number]--;
    }
    sim->peak = sim->held > sim->peak ? sim->held : sim->peak;
    sim->peak_nelem = sim->held_nelem > sim->peak_nelem ? sim->held_nelem : sim->peak_nelem;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i, number = 0;
        for (unsigned j = s->rank; j-- > 0;) {
            coord[j] = targets[j].lo + rest % (targets[j].hi - targets[j].lo);
            rest /= targets[j].hi - targets[j].lo;
        }
        for (unsigned j = 0; j < s->rank; j++)
            number = number * cm_div_ceil(s->axis[j].n, s->axis[j].target) + coord[j];
        if (sim->left[number] == 0) {
            sim->held--;
            sim->held_nelem -= nelem_of(s, coord);
        }
    }
}

static void simulate(const cm_sweep *s, simulation *sim)
{
    cm_sweep_cursor c;
    memset(sim, 0, sizeof(*sim));
    for (cm_sweep_begin(s, 0, &c); !c.done; cm_sweep_next(s, &c)) {
        sim->pieces++;
        touch_targets(s, &c, sim);
    }
    assert_int_equal(sim->held, 0);
}

/* Elements inside the array that the target chunks held have at most. */
static uint64_t most_nelem(const cm_sweep *s)
{
    cm_meetings m[CM_MAX_RANK];
    for (unsigned j = 0; j < s->rank; j++)
        cm_meetings_find(&s->axis[j], s->block[j], CM_MEASURE_LENGTHS, &m[j]);
    return cm_meetings_held(m, s->order, s->rank);
}

static uint64_t elements(const uint64_t *seen)
{
    uint64_t n = 0;
    for (size_t i = 0; i < 4096; i++)
        n += seen[i];
    return n;
}

/* Shorter blocks have the same pieces, and hold no more; true: there are such. */
static bool check_split(const cm_sweep *whole)
{
    const uint64_t grain = 1 + (uint64_t)(rand() % 3), length = 1 + (uint64_t)(rand() % 6);
    cm_sweep s = *whole, shifted = *whole;
    simulation sim, before;
    if (!cm_sweep_split(&s, length, grain)) {
        assert_memory_equal(&s, whole, sizeof(s));
        return false;
    }
    simulate(whole, &before);
    simulate(&s, &sim);
    assert_int_equal(s.block[0] % grain, 0);
    assert_true(s.total_blocks > whole->total_blocks);
    assert_int_equal(sim.pieces, before.pieces);
    assert_int_equal(elements(sim.seen), elements(before.seen));
    assert_true(sim.peak <= s.slots && sim.touched <= s.touched);
    /* A part of an array, which begins at its third target chunk. */
    const uint64_t first[3] = {2, 0, 0};
    shifted.axis[0].start += 2 * shifted.axis[0].target * shifted.axis[0].step;
    cm_sweep_shift(&shifted, first);
    simulate(&shifted, &before);
    if (cm_sweep_split(&shifted, length, grain)) {
        simulate(&shifted, &sim);
        assert_int_equal(sim.pieces, before.pieces);
        assert_int_equal(elements(sim.seen), elements(before.seen));
        assert_true(sim.peak <= before.peak);
    }
    return true;
}

static void test_promises_hold(void **state)
{
    (void)state;
    unsigned exact = 0, exact_nelem = 0, cases = 0, nsplit = 0;
    srand(7);
    for (int trial = 0; trial < 20000; trial++) {
        cm_sweep_request r;
        cm_sweep s;
        simulation sim;
        uint64_t shape[3], source[3], target[3], volume = 1;
        unsigned rank = (unsigned)(rand() % 4);
        for (unsigned j = 0; j < rank; j++) {
            shape[j] = 1 + (uint64_t)(rand() % 14);
            source[j] = 1 + (uint64_t)(rand() % 16);
            target[j] = 1 + (uint64_t)(rand() % 16);
        }
        request_init(&r, rank, shape, source, target);
        r.sliceable = rand() % 4 == 0;
        r.max_slots = rand() % 2 ? 0 : 1 + (uint64_t)(rand() % 12);
        for (unsigned j = 0; j < rank; j++) {
            r.start[j] = rand() % 3 ? 0 : (uint64_t)(rand() % 20);
            r.step[j] = rand() % 3 ? 1 : 1 + (uint64_t)(rand() % 5);
            volume *= shape[j];
        }
        cm_sweep_plan(&r, &s);
        simulate(&s, &sim);
        cases++;
        exact += sim.peak == s.slots;
        exact_nelem += sim.peak_nelem == most_nelem(&s);
        assert_true(sim.peak <= s.slots);
        assert_true(sim.peak_nelem <= most_nelem(&s));
        assert_true(r.max_slots == 0 || s.slots <= r.max_slots);
        assert_int_equal(sim.pieces, s.total_pieces);
        assert_int_equal(elements(sim.seen), volume);
        assert_true(sim.touched <= s.touched);
        if (r.max_slots == 0)
            assert_int_equal(s.total_pieces, s.source_chunks);
        nsplit += check_split(&s);
    }
    assert_true(nsplit > 100);
    /* The bounds are bounds, and mostly the truth. */
    assert_true(exact > cases / 2 && exact_nelem > cases / 2);
}

/* ---- chunks of several lengths ---- */

enum {
    MOST_ELEMENTS = 128
};

/* A dimension of the source cut at random; `piece` tells of each element which one it is in. */
typedef struct cut_axis {
    cm_cuts whole, part;
    uint64_t piece[MOST_ELEMENTS];
} cut_axis;

static void cut_at_random(cut_axis *a, uint64_t length, uint64_t start, uint64_t step, uint64_t n)
{
    cm_error err = {0};
    uint64_t k = 0;
    for (uint64_t i = 0, piece; i < length; i += piece, k++) {
        for (piece = 1; i + piece < length && rand() % 4 != 0;)
            piece++;
        assert_int_equal(cm_cuts_add(&a->whole, piece, 1, &err), CM_OK);
        for (uint64_t e = i; e < i + piece; e++)
            a->piece[e] = k;
    }
    assert_int_equal(cm_cuts_part(&a->whole, start, step, n, &a->part, &err), CM_OK);
}

/* Counts pieces and elements read along dimension J, block by block, one by one. */
static void count_along(const cm_sweep *s, unsigned j, const cut_axis *cut, uint64_t length,
                        uint64_t *pieces, uint64_t *nelem)
{
    const cm_axis *axis = &s->axis[j];
    *pieces = *nelem = 0;
    for (uint64_t b = 0; b < s->nblocks[j]; b++) {
        cm_range block = cm_axis_block_span(axis, s->block[j], b);
        bool met[MOST_ELEMENTS] = {false};
        for (uint64_t i = block.lo; i < block.hi; i++)
            met[cut->piece[axis->start + i * axis->step]] = true;
        for (uint64_t e = 0; e < length; e++)
            *nelem += met[cut->piece[e]];
        for (uint64_t k = 0; k < MOST_ELEMENTS; k++)
            *pieces += met[k];
    }
}

static void check_pieces(const cm_sweep *s, const cut_axis *cut)
{
    for (unsigned j = 0; j < s->rank; j++) {
        const cm_axis *axis = &s->axis[j];
        for (uint64_t i = 0; i < axis->n && axis->kind == CM_PIECE_CUT; i++) {
            cm_range all = {0, axis->n}, k = cm_axis_pieces(axis, all, (cm_range){i, i + 1});
            assert_int_equal(k.hi, k.lo + 1);
            assert_int_equal(cm_axis_source_chunk(axis, k.lo),
                             cut[j].piece[axis->start + i * axis->step]);
        }
    }
}

static void test_cuts(void **state)
{
    (void)state;
    srand(11);
    for (int trial = 0; trial < 4000; trial++) {
        cm_route_request r = {.rank = 1 + (unsigned)(rand() % 3),
                              .itemsize = 4,
                              .is_part = true,
                              .few_slots = rand() % 2 == 0,
                              .slot_nbytes = 1};
        cut_axis cut[3] = {0};
        cm_error err = {0};
        cm_route route;
        simulation sim;
        uint64_t volume = 1, pieces = 1, nelem = 1;
        for (unsigned j = 0; j < r.rank; j++) {
            r.shape[j] = 1 + (uint64_t)(rand() % 14);
            r.target[j] = 1 + (uint64_t)(rand() % 16);
            r.start[j] = rand() % 2 ? 0 : (uint64_t)(rand() % 20);
            r.step[j] = rand() % 2 ? 1 : 1 + (uint64_t)(rand() % 5);
            r.whole[j] = r.start[j] + (r.shape[j] - 1) * r.step[j] + 1 + (uint64_t)(rand() % 5);
            cut_at_random(&cut[j], r.whole[j], r.start[j], r.step[j], r.shape[j]);
            r.source[j] = cut[j].whole.longest;
            r.cuts[j] = &cut[j].part;
            volume *= r.shape[j];
        }
        r.room_nbytes = rand() % 2 ? 1 + (uint64_t)(rand() % 12) : 100000;
        assert_int_equal(cm_route_plan(&r, &route, &err), CM_OK);
        simulate(&route.sweep, &sim);
        check_pieces(&route.sweep, cut);
        for (unsigned j = 0; j < r.rank; j++) {
            uint64_t n, e;
            count_along(&route.sweep, j, &cut[j], r.whole[j], &n, &e);
            pieces *= n;
            nelem *= e;
        }
        assert_false(route.spills);
        assert_true(sim.peak <= route.slots && route.held_nbytes <= r.room_nbytes);
        assert_int_equal(sim.pieces, route.chunk_reads);
        assert_int_equal(pieces, route.chunk_reads);
        assert_int_equal(nelem, route.nelem_read);
        assert_int_equal(elements(sim.seen), volume);
        assert_true(sim.touched <= route.sweep.touched);
        if (r.room_nbytes == 100000)
            assert_int_equal(route.chunk_reads, route.sweep.source_chunks);
        cm_sweep split = route.sweep;
        if (cm_sweep_split(&split, 1 + (uint64_t)(rand() % 4), 1)) {
            simulate(&split, &sim);
            assert_int_equal(sim.pieces, route.chunk_reads);
            assert_true(sim.peak <= route.slots);
        }
        for (unsigned j = 0; j < r.rank; j++) {
            cm_cuts_release(&cut[j].whole);
            cm_cuts_release(&cut[j].part);
        }
    }
}

static void test_one_slot_is_always_enough(void **state)
{
    (void)state;
    cm_sweep_request r;
    cm_sweep s;
    request_init(&r, 1, (uint64_t[]){10}, (uint64_t[]){3}, (uint64_t[]){2});
    r.max_slots = 1;
    cm_sweep_plan(&r, &s);
    assert_int_equal(s.slots, 1);
    assert_int_equal(s.total_pieces, 7);
}

static void test_split_where_pieces_end(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, source, target, rows, grain, block; /* 0: not split */
    } known[] = {
        {9600, 24, 48, 20, 1, 20},       {9600, 24, 48, 20, 3, 18},     {9600, 24, 100, 10, 1, 6},
        {9600, 24, 100, 5, 1, 6},        {9600, 1, 48, 20, 1, 20},      {9600, 9600, 48, 20, 1, 0},
        {9600, 24, 9600, 1, 1, 0},       {9600, 24, 48, 300, 1, 0},     {9600, 24, 48, 20, 300, 0},
        {800000, 365, 1, 9000, 1, 8760}, {800000, 365, 1, 100, 1, 365},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        cm_sweep_request r;
        cm_sweep s;
        request_init(&r, 1, &known[i].n, &known[i].source, &known[i].target);
        cm_sweep_plan(&r, &s);
        const uint64_t before = s.block[0];
        const bool split = cm_sweep_split(&s, known[i].rows, known[i].grain);
        if (s.block[0] != (known[i].block > 0 ? known[i].block : before) ||
            split != (known[i].block > 0))
            fail_msg("row %zu: blocks of %llu", i, (unsigned long long)s.block[0]);
    }
}

static void test_long_dimensions_are_quick(void **state)
{
    (void)state;
    cm_sweep_request r;
    cm_sweep s;
    request_init(&r, 1, (uint64_t[]){UINT64_C(1) << 50}, (uint64_t[]){7}, (uint64_t[]){3});
    cm_sweep_plan(&r, &s);
    assert_true(s.slots <= 8);
}

/* However long a piece may be: all target chunks that it meets are held at once. */
static void test_pieces_meet_few_targets(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned rank;
        uint64_t shape[3], target[3], touched;
    } known[] = {
        {"a series in tiny chunks", 1, {1000000}, {10}, 16},
        {"a series of few chunks", 1, {100}, {10}, 10},
        {"maps that are cut: one row of chunks", 3, {100, 64, 64}, {1, 4, 4}, 16},
        {"small maps: several steps", 3, {100, 8, 8}, {1, 8, 8}, 16},
        {"chunks of several maps", 3, {100, 8, 8}, {10, 4, 8}, 16},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        cm_sweep_request r;
        cm_sweep s;
        request_init(&r, known[i].rank, known[i].shape, known[i].target, known[i].target);
        r.sliceable = true;
        r.piece_nbytes = 1 << 20;
        cm_sweep_plan(&r, &s);
        if (s.touched != known[i].touched)
            fail_msg("%s: %llu target chunks", known[i].name, (unsigned long long)s.touched);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_plans),
        cmocka_unit_test(test_promises_hold),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_one_slot_is_always_enough),
        cmocka_unit_test(test_split_where_pieces_end),
        cmocka_unit_test(test_long_dimensions_are_quick),
        cmocka_unit_test(test_pieces_meet_few_targets),
    };
    return cmocka_run_group_tests_name("plan/sweep", tests, NULL, NULL);
}
