/* Blocks of sample positions, and the order that mixes them, against lists made the simple way. */
#include <inttypes.h>
#include <math.h>

#include "../unit.h"
#include "chance.h"
#include "plan/block_order.h"

enum {
    MAX_PARTS = 4,
    NTRIES = 400
};

typedef struct scene {
    cm_sample_space space;
    cm_cuts cuts; /* of the first dimension of array 0; else zeroed */
    cm_grid grid[2];
    const cm_grid *grids[2];
    cm_sample_part part[MAX_PARTS];
    uint32_t element_nbytes[MAX_PARTS];
    size_t nparts;
    cm_blocks blocks;
} scene;

static void release(scene *s)
{
    cm_blocks_release(&s->blocks);
    cm_cuts_release(&s->cuts);
}

/* Array 0 in chunks of several lengths along its first dimension. */
static void cut_first(scene *s, const uint64_t *shape, const uint64_t *chunk)
{
    const cm_cuts *cuts[3] = {&s->cuts};
    while (s->cuts.end < shape[0])
        assert_int_equal(cm_cuts_add(&s->cuts, 1 + random_below(9), 1 + random_below(3), NULL),
                         CM_OK);
    cm_cuts_trim(&s->cuts, shape[0]);
    assert_int_equal(cm_grid_init_cut(&s->grid[0], s->space.rank, shape, chunk, cuts, NULL), CM_OK);
}

static void make_blocks(scene *s)
{
    const cm_blocks_request request = {.space = &s->space,
                                       .part = s->part,
                                       .nparts = s->nparts,
                                       .grid = s->grids,
                                       .element_nbytes = s->element_nbytes};
    assert_int_equal(cm_blocks_make(&request, &s->blocks, NULL), CM_OK);
}

static void add_part(scene *s, uint32_t array, uint64_t lag)
{
    cm_sample_part *p = &s->part[s->nparts];
    *p = (cm_sample_part){
        .array = array, .rank = s->grid[array].rank, .lag = lag, .lagged = s->space.lagged};
    for (unsigned d = 0; d < p->rank; d++) {
        p->axis[d] = array == 0 ? (int)d : (int)(s->space.rank - 1 - d);
        p->shape[d] = s->grid[array].shape[d];
    }
    s->element_nbytes[s->nparts++] = 4;
}

/*
 * An array with all dimensions, at up to three lags along any of them, and one that has the last
 * of them first, in chunks of its own.
 */
static void make_scene(scene *s)
{
    static const cm_order orders[] = {CM_ORDER_RANDOM, CM_ORDER_SEQUENTIAL, CM_ORDER_CHUNKS,
                                      CM_ORDER_ALL, CM_ORDER_MAP};
    const unsigned rank = 1 + (unsigned)random_below(3), nlags = 1 + (unsigned)random_below(3);
    const unsigned lagged = (unsigned)random_below(rank);
    uint64_t chunk[3], shape[3], lag[3] = {0, random_below(9), random_below(30)}, reach = 0;
    *s = (scene){0};
    for (unsigned i = 0; i < nlags; i++)
        reach = lag[i] > reach ? lag[i] : reach;
    s->space = (cm_sample_space){.rank = rank,
                                 .reach = reach,
                                 .lagged = lagged,
                                 .order = orders[random_below(5)],
                                 .seed = random_below(99)};
    for (unsigned j = 0; j < rank; j++) {
        const uint64_t own = j == lagged ? reach : 0;
        const uint64_t length = 1 + random_below(j == 0 ? 40 : 12) + own;
        chunk[j] = 1 + random_below(9);
        s->space.origin[j] = random_below(2) * random_below(30);
        s->space.length[j] = length;
        s->space.chunk[j] = 1;
        s->space.sample[j] = 1 + random_below(length - own);
        shape[j] = s->space.origin[j] + length + random_below(2) * random_below(20);
    }
    assert_int_equal(cm_sample_space_init(&s->space, NULL, NULL), CM_OK);
    s->space.by_number = true;
    assert_int_equal(cm_grid_init(&s->grid[0], rank, shape, chunk, NULL), CM_OK);
    if (random_below(3) == 0)
        cut_first(s, shape, chunk);
    chunk[0] = 1 + random_below(9);
    assert_int_equal(cm_grid_init(&s->grid[1], 1, shape + rank - 1, chunk, NULL), CM_OK);
    s->grids[0] = &s->grid[0];
    s->grids[1] = random_below(4) > 0 ? &s->grid[1] : NULL; /* not chunked */
    for (unsigned i = 0; i < nlags; i++)
        add_part(s, 0, lag[i]);
    if (rank > 1)
        add_part(s, 1, 0);
    make_blocks(s);
    uint8_t grown[CM_MAX_RANK] = {0};
    for (unsigned j = 0; j < rank; j++)
        grown[j] = (uint8_t)random_below(4);
    cm_blocks_grow(&s->blocks, grown);
}

/* ---- blocks ---- */

static uint64_t block_of(const scene *s, const cm_box *sample)
{
    uint64_t id = 0;
    for (unsigned j = 0; j < s->space.rank; j++)
        id = id * s->blocks.count[j] + sample->start[j] / s->blocks.length[j] -
             s->space.origin[j] / s->blocks.length[j];
    return id;
}

/* Each sample is of the block that has its number, and blocks have no others. */
static void test_positions(void **unused)
{
    (void)unused;
    for (unsigned try = 0; try < NTRIES; try++) {
        scene s;
        make_scene(&s);
        uint64_t *n = test_calloc(s.blocks.nblocks, sizeof(*n)), total = 0;
        for (uint64_t i = 0; i < s.space.nsamples; i++) {
            cm_box sample;
            uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK];
            cm_sample_at(&s.space, 0, i, &sample);
            const uint64_t id = block_of(&s, &sample);
            assert_true(id < s.blocks.nblocks);
            cm_block_positions(&s.blocks, id, first, count);
            for (unsigned j = 0; j < s.space.rank; j++) {
                const uint64_t position =
                    (sample.start[j] - s.space.origin[j]) / cm_block_step(&s.space, j);
                assert_true(position >= first[j] && position - first[j] < count[j]);
            }
            n[id]++;
        }
        for (uint64_t id = 0; id < s.blocks.nblocks; id++) {
            assert_int_equal(n[id], cm_block_nsamples(&s.blocks, id));
            total += n[id];
        }
        assert_int_equal(total, s.space.nsamples);
        test_free(n);
        release(&s);
    }
}

typedef struct chunks_met {
    bool *in_block; /* by block and number in the frame */
    bool *of_array[2];
    double decoded, distinct;
} chunks_met;

static void meet(scene *s, chunks_met *m, const cm_box *sample, size_t p)
{
    const uint32_t strip = s->blocks.strip_of[p];
    const cm_grid *grid = s->grids[s->part[p].array];
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], have[CM_MAX_RANK], n[CM_MAX_RANK];
    uint64_t coord[CM_MAX_RANK], left = 1;
    cm_box box;
    if (grid == NULL) {
        assert_int_equal(strip, CM_BLOCK_NO_STRIP);
        return;
    }
    cm_sample_part_box(&s->part[p], sample, &box);
    cm_grid_cover(grid, &box, first, count);
    cm_block_chunks(&s->blocks, strip, sample, have, n);
    for (unsigned d = 0; d < grid->rank; d++) {
        assert_true(n[d] <= s->blocks.strip[strip].most[d]);
        assert_true(first[d] >= have[d] && first[d] + count[d] <= have[d] + n[d]);
        coord[d] = first[d];
        left *= count[d];
    }
    for (; left > 0; left--) {
        const uint64_t at = cm_block_chunk(&s->blocks, strip, have, coord);
        const uint64_t number = cm_grid_number(grid, coord);
        assert_true(at < s->blocks.frame_nchunks);
        assert_true(cm_block_chunk_offset(&s->blocks, strip, at) % 64 == 0);
        assert_true(cm_block_flag_offset(&s->blocks, at) < s->blocks.frame_nbytes);
        bool *in_block = &m->in_block[block_of(s, sample) * s->blocks.frame_nchunks + at];
        m->decoded += !*in_block;
        *in_block = true;
        m->of_array[s->part[p].array][number] = true;
        for (unsigned d = grid->rank; d-- > 0 && ++coord[d] == first[d] + count[d];)
            coord[d] = first[d];
    }
}

/* All chunks that a sample meets have places of their own in its block's frame; all are counted. */
static void test_chunks(void **unused)
{
    (void)unused;
    for (unsigned try = 0; try < NTRIES; try++) {
        scene s;
        make_scene(&s);
        chunks_met m = {0};
        m.in_block = test_calloc(s.blocks.nblocks * s.blocks.frame_nchunks + 1, 1);
        for (int a = 0; a < 2; a++)
            m.of_array[a] = test_calloc(s.grid[a].nchunks, 1);
        for (uint64_t i = 0; i < s.space.nsamples; i++) {
            cm_box sample;
            cm_sample_at(&s.space, 0, i, &sample);
            for (size_t p = 0; p < s.nparts; p++)
                meet(&s, &m, &sample, p);
        }
        const cm_blocks_count n = cm_blocks_decodes(&s.blocks);
        for (int a = 0; a < 2; a++)
            for (uint64_t i = 0; i < s.grid[a].nchunks; i++)
                m.distinct += m.of_array[a][i];
        /* Chunks between two lags that are close are counted, too, whether they are met or not. */
        assert_true(n.decoded >= m.decoded && n.distinct >= m.distinct);
        if (s.nparts == 1 || s.part[1].array == 1) {
            assert_true(fabs(n.decoded - m.decoded) < 0.5);
            assert_true(fabs(n.distinct - m.distinct) < 0.5);
        }
        for (int a = 0; a < 2; a++)
            test_free(m.of_array[a]);
        test_free(m.in_block);
        release(&s);
    }
}

/* Tiles of whole chunks, and samples that do not reach beyond theirs, decode each once. */
static void test_no_halo(void **unused)
{
    (void)unused;
    static const struct {
        cm_order order;
        uint64_t sample, chunk;
        double decodes;
    } row[] = {{CM_ORDER_RANDOM, 1, 7, 1},     {CM_ORDER_ALL, 7, 7, 1},
               {CM_ORDER_ALL, 14, 7, 1},       {CM_ORDER_ALL, 3, 6, 1},
               {CM_ORDER_SEQUENTIAL, 6, 4, 1}, {CM_ORDER_RANDOM, 4, 8, 2}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        scene s = {
            .space = {
                .rank = 1, .length = {8 * 84}, .sample = {row[i].sample}, .order = row[i].order}};
        const uint64_t shape = 8 * 84, chunk = row[i].chunk;
        assert_int_equal(cm_sample_space_init(&s.space, NULL, NULL), CM_OK);
        assert_int_equal(cm_grid_init(&s.grid[0], 1, &shape, &chunk, NULL), CM_OK);
        s.grids[0] = &s.grid[0];
        add_part(&s, 0, 0);
        make_blocks(&s);
        const cm_blocks_count n = cm_blocks_decodes(&s.blocks);
        if (fabs(n.decoded / n.distinct - row[i].decodes) > 0.02)
            fail_msg("row %zu: %f decodes a chunk", i, n.decoded / n.distinct);
        release(&s);
    }
}

/* ---- the order ---- */

static void check_order(scene *s, uint64_t window)
{
    cm_block_order o, again;
    bool *seen = test_calloc(s->space.nsamples, 1);
    uint64_t step = 0;
    assert_int_equal(cm_block_order_make(&s->blocks, window, &o, NULL), CM_OK);
    assert_int_equal(cm_block_order_make(&s->blocks, window, &again, NULL), CM_OK);
    cm_block_order_begin(&o, s->space.seed, 3);
    cm_block_order_begin(&again, s->space.seed, 3);
    for (uint64_t place = 0; place < s->space.nsamples; place++) {
        cm_block_sample at, jumped;
        cm_box sample;
        cm_block_order_at(&o, place, &at);
        assert_true(at.number < s->space.nsamples && !seen[at.number]);
        seen[at.number] = true;
        assert_true(o.step >= step && at.block >= o.step && at.block - o.step < window);
        step = o.step;
        cm_sample_at(&s->space, 3, at.number, &sample);
        assert_int_equal(block_of(s, &sample), o.id[at.block % window]);
        if (random_below(8) > 0)
            continue;
        const uint64_t other = random_below(s->space.nsamples);
        cm_block_order_at(&again, other, &jumped); /* anywhere, forth and back */
        cm_block_order_at(&again, place, &jumped);
        assert_int_equal(jumped.number, at.number);
        assert_int_equal(jumped.block, at.block);
        assert_int_equal(again.step, o.step);
    }
    cm_block_order_release(&o);
    cm_block_order_release(&again);
    test_free(seen);
}

static void test_each_sample_once(void **unused)
{
    (void)unused;
    for (unsigned try = 0; try < NTRIES; try++) {
        scene s;
        make_scene(&s);
        check_order(&s, 1 + random_below(s.blocks.nblocks));
        check_order(&s, 1);
        check_order(&s, s.blocks.nblocks);
        release(&s);
    }
}

static void make_long_scene(scene *s, uint64_t length, uint64_t sample, uint64_t chunk)
{
    *s = (scene){.space = {.rank = 1, .length = {length}, .sample = {sample}, .seed = 5}};
    assert_int_equal(cm_sample_space_init(&s->space, NULL, NULL), CM_OK);
    s->space.by_number = true;
    assert_int_equal(cm_grid_init(&s->grid[0], 1, &length, &chunk, NULL), CM_OK);
    s->grids[0] = &s->grid[0];
    add_part(s, 0, 0);
    make_blocks(s);
}

/* Batches of an epoch meet about as many blocks as they would if samples were drawn freely. */
static void test_mixing(void **unused)
{
    (void)unused;
    enum {
        BATCH = 32,
        NBATCHES = 400
    };
    static const uint64_t chunk[] = {1, 2, 8, 32, 200};
    for (size_t i = 0; i < sizeof(chunk) / sizeof(chunk[0]); i++)
        for (uint64_t window = 4; window <= 256; window *= 8) {
            scene s;
            make_long_scene(&s, 500000, 1, chunk[i]);
            cm_block_order o;
            assert_int_equal(cm_block_order_make(&s.blocks, window, &o, NULL), CM_OK);
            cm_block_order_begin(&o, 5, 0);
            double met = 0;
            for (uint64_t b = 0; b < NBATCHES; b++) {
                uint64_t block[BATCH];
                for (unsigned k = 0; k < BATCH; k++) {
                    cm_block_sample at;
                    cm_block_order_at(&o, 100000 + b * BATCH + k, &at);
                    block[k] = at.block;
                    bool known = false;
                    for (unsigned q = 0; q < k; q++)
                        known |= block[q] == at.block;
                    met += !known;
                }
            }
            const double mean = met / NBATCHES;
            const double freely = cm_block_order_mixed(&s.blocks, window, BATCH);
            /* A batch that is longer than a step sees the window move. */
            if (mean < 0.9 * freely)
                fail_msg("%" PRIu64 " samples a block, window %" PRIu64 ": %f blocks of %f",
                         chunk[i], window, mean, freely);
            cm_block_order_release(&o);
            release(&s);
        }
}

/* An epoch of 10^9 samples needs no list: any place is found at once. */
static void test_large(void **unused)
{
    (void)unused;
    scene s;
    cm_block_order o;
    cm_block_sample at, later;
    make_long_scene(&s, UINT64_C(1000000000), 1, 1000);
    assert_int_equal(s.blocks.nblocks, 1000000);
    assert_int_equal(cm_block_order_make(&s.blocks, 64, &o, NULL), CM_OK);
    cm_block_order_begin(&o, 1, 0);
    cm_block_order_at(&o, 999999999, &at);
    cm_block_order_at(&o, 0, &later);
    cm_block_order_at(&o, 999999999, &later);
    assert_int_equal(at.number, later.number);
    cm_block_order_release(&o);
    release(&s);
}

/* ---- choosing ---- */

static void test_choice(void **unused)
{
    (void)unused;
    for (unsigned try = 0; try < NTRIES; try++) {
        scene s;
        cm_blocks_fitted fitted;
        make_scene(&s);
        uint8_t one_cell[CM_MAX_RANK] = {0};
        cm_blocks_grow(&s.blocks, one_cell);
        const size_t least = s.blocks.frame_nbytes;
        const cm_blocks_budget budget = {.nbytes = random_below(100 * least + 1),
                                         .window = random_below(3) == 0 ? 1 + random_below(9) : 0,
                                         .nsamples = 1 + random_below(s.space.nsamples),
                                         .batch = 1 + random_below(40),
                                         .under_way = random_below(200),
                                         .sample_nbytes = 1 + random_below(1000)};
        cm_blocks_grow_within(&s.blocks, &budget);
        const int rc = cm_blocks_fit(&s.blocks, &budget, &fitted);
        assert_true(fitted.window >= 1 && fitted.window <= s.blocks.nblocks);
        assert_true(fitted.nframes >= fitted.window);
        if (rc == CM_OK)
            assert_true(fitted.nframes * s.blocks.frame_nbytes <= budget.nbytes);
        else
            assert_true(fitted.need > budget.nbytes);
        if (budget.window == 0) /* one block is enough */
            assert_int_equal(rc, budget.nbytes >= least ? CM_OK : CM_EBUDGET);
        else
            assert_true(fitted.window == budget.window || fitted.window == s.blocks.nblocks);
        release(&s);
    }
}

/* With room blocks grow until little is decoded twice. */
static void test_growth(void **unused)
{
    (void)unused;
    scene s;
    cm_blocks_fitted fitted;
    make_long_scene(&s, 1000000, 4, 8);
    const cm_blocks_budget budget = {
        .nbytes = 1 << 24, .nsamples = 999997, .batch = 16, .under_way = 64, .sample_nbytes = 16};
    cm_blocks_count n = cm_blocks_decodes(&s.blocks);
    assert_true(n.decoded / n.distinct > 1.9);
    cm_blocks_grow_within(&s.blocks, &budget);
    n = cm_blocks_decodes(&s.blocks);
    assert_true(n.decoded / n.distinct < 1.1);
    assert_int_equal(cm_blocks_fit(&s.blocks, &budget, &fitted), CM_OK);
    assert_true(fitted.window >= 16);
    release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions), cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_no_halo),   cmocka_unit_test(test_each_sample_once),
        cmocka_unit_test(test_mixing),    cmocka_unit_test(test_large),
        cmocka_unit_test(test_choice),    cmocka_unit_test(test_growth),
    };
    return cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
}
