/*
 * What travels with which load: each chunk once, before the batches that need it, in a frame that
 * is no other's until the last of them is made.
 */

#include "../unit.h"
#include "load/batches/carry.h"

enum {
    NARRAYS = 2
};

/* Two arrays of different chunks, int32 and int16, without data: geometry is all that counts. */
typedef struct world {
    cm_array array[NARRAYS];
    cm_array *list[NARRAYS];
    cm_sample_space space;
    cm_sample_part part[NARRAYS];
    size_t part_nbytes[NARRAYS];
    cm_load_arrays in;
    cm_proof *proof;
    cm_epoch_share share;
} world;

static void make_array(cm_array *a, uint32_t nbytes, const uint64_t *shape, const uint64_t *chunk)
{
    static const cm_codec_spec specs[] = {{.id = CM_CODEC_BYTES},
                                          {.id = CM_CODEC_ZSTD, .level = 1}};
    *a = (cm_array){.name = (char *)(uintptr_t) "a",
                    .dtype = cm_dtype_make(CM_KIND_INT, nbytes),
                    .rank = 2,
                    .chunked = true};
    memcpy(a->shape, shape, 2 * sizeof *shape);
    assert_int_equal(cm_grid_init(&a->grid, 2, shape, chunk, NULL), CM_OK);
    assert_int_equal(cm_chain_create(specs, 2, &a->dtype, 2, chunk, &a->chain, NULL), CM_OK);
}

static void make_world(world *w, uint64_t seed, uint64_t batch, uint64_t ranks)
{
    static const uint64_t shape[] = {40, 36}, chunks[NARRAYS][2] = {{5, 6}, {8, 36}};
    *w = (world){.space = {.rank = 2,
                           .length = {40, 36},
                           .sample = {1 + seed % 4, 3 + seed % 5},
                           .chunk = {1, 1},
                           .order = seed % 2 ? CM_ORDER_RANDOM : CM_ORDER_SEQUENTIAL,
                           .parameter = 1,
                           .seed = seed}};
    static char *const names[2] = {NULL, NULL};
    assert_int_equal(cm_sample_space_init(&w->space, names, NULL), CM_OK);
    for (unsigned i = 0; i < NARRAYS; i++) {
        make_array(&w->array[i], i == 0 ? 4 : 2, shape, chunks[i]);
        w->list[i] = &w->array[i];
        w->part[i] = (cm_sample_part){.array = i, .rank = 2, .axis = {0, 1}, .shape = {40, 36}};
        w->part_nbytes[i] = w->space.sample[0] * w->space.sample[1] * w->array[i].dtype.nbytes;
    }
    w->in = (cm_load_arrays){.array = w->list,
                             .narrays = NARRAYS,
                             .space = &w->space,
                             .part = w->part,
                             .part_nbytes = w->part_nbytes,
                             .nparts = NARRAYS};
    assert_int_equal(cm_proof_begin(w->list, NARRAYS, &w->proof, NULL), CM_OK);
    const uint64_t nsamples = w->space.nsamples < 300 ? w->space.nsamples : 300;
    w->share = (cm_epoch_share){
        .nsamples = nsamples, .world = ranks, .rank = seed % ranks, .batch = batch};
    assert_int_equal(cm_epoch_share_init(&w->share, NULL), CM_OK);
}

static void free_world(world *w)
{
    for (unsigned i = 0; i < NARRAYS; i++)
        cm_chain_free(w->array[i].chain);
    cm_proof_free(w->proof);
}

static void make_plan(const world *w, uint64_t window, cm_epoch_plan *plan)
{
    const cm_grid *grid[] = {&w->array[0].grid, &w->array[1].grid};
    const cm_epoch_request q = {.space = &w->space,
                                .share = &w->share,
                                .epoch = 1,
                                .part = w->part,
                                .nparts = NARRAYS,
                                .grid = grid,
                                .narrays = NARRAYS,
                                .window = window,
                                .max_stash = w->share.per_rank};
    assert_int_equal(cm_epoch_plan_make(&q, plan, NULL), CM_OK);
}

/* As a device would have it: each frame holds what was decoded last into it. */
static void check(const world *w, const cm_carry *c)
{
    const cm_epoch_plan *plan = c->plan;
    const size_t unit = 256, nframes = c->frames_nbytes / unit + 1;
    uint32_t *holds = calloc(nframes, sizeof *holds); /* chunk + 1 */
    bool *came = calloc(c->nchunks + 1, sizeof *came);
    uint64_t nuses = 0;
    size_t ncarried = 0;
    assert_int_equal(c->nchunks, plan->nchunks);
    for (uint32_t l = 0; l < c->nloads; l++) {
        uint64_t stored = 0;
        for (size_t i = c->carried_at[l]; i < c->carried_at[l + 1]; i++, ncarried++) {
            const uint32_t x = c->carried[i];
            const cm_carry_chunk *chunk = &c->chunk[x];
            assert_true(!came[x] && chunk->load == l && chunk->first >= l);
            assert_true(chunk->number == plan->chunk[x].number);
            came[x] = true;
            stored += w->proof->array[chunk->array].most.stored_nbytes;
            if (chunk->frame == CM_CARRY_NO_FRAME) {
                assert_true(chunk->first == l && chunk->last == l);
                continue;
            }
            const size_t nbytes = cm_chain_decoded_nbytes(w->array[chunk->array].chain);
            assert_true(chunk->frame % unit == 0 && chunk->frame + nbytes <= c->frames_nbytes);
            for (size_t at = 0; at < nbytes; at += unit)
                holds[(chunk->frame + at) / unit] = x + 1;
        }
        assert_true(stored <= c->most.stored_nbytes);
        assert_true(c->use_at[l + 1] - c->use_at[l] <= c->most.nuses);
        if (l < c->nbefore)
            assert_int_equal(c->use_at[l], c->use_at[l + 1]);
        for (size_t i = c->use_at[l]; i < c->use_at[l + 1]; i++, nuses++) {
            const cm_carry_use *u = &c->use[i];
            const cm_carry_chunk *chunk = &c->chunk[u->chunk];
            const size_t nbytes = cm_chain_decoded_nbytes(w->array[chunk->array].chain);
            assert_true(came[u->chunk] && u->piece < c->batch);
            assert_true(w->part[u->part].array == chunk->array);
            if (chunk->frame == CM_CARRY_NO_FRAME) {
                assert_int_equal(chunk->load, l);
                continue;
            }
            for (size_t at = 0; at < nbytes; at += unit)
                assert_int_equal(holds[(chunk->frame + at) / unit], u->chunk + 1);
        }
    }
    assert_int_equal(nuses, plan->nuses);
    assert_int_equal(ncarried, plan->nchunks);
    free(holds);
    free(came);
}

static void test_every_plan(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 300; i++) {
        world w;
        cm_epoch_plan plan;
        cm_carry c;
        make_world(&w, i, 1 + i % 17, 1 + i % 3);
        make_plan(&w, i % 5 ? 1 + i % 13 : 1000, &plan);
        const uint64_t first = i % 4 == 3 ? w.share.nbatches * (i % 11) / 10 : 0;
        if (first > 0)
            cm_epoch_plan_skip(&plan, first * w.share.batch);
        assert_int_equal(cm_carry_make(&plan, &w.share, first, &w.in, w.proof, &c, NULL), CM_OK);
        assert_int_equal(c.nloads - c.nbefore, w.share.nbatches - first);
        check(&w, &c);
        cm_carry_release(&c);
        cm_epoch_plan_release(&plan);
        free_world(&w);
    }
}

/* Loads are of one size: the mean of all, and a chunk. */
static void test_loads_are_even(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 40; i++) {
        world w;
        cm_epoch_plan plan;
        cm_carry c;
        uint64_t all = 0, most = 0;
        make_world(&w, i, 4, 1);
        make_plan(&w, 24, &plan);
        assert_int_equal(cm_carry_make(&plan, &w.share, 0, &w.in, w.proof, &c, NULL), CM_OK);
        for (size_t x = 0; x < c.nchunks; x++) {
            const uint64_t n = w.proof->array[c.chunk[x].array].most.stored_nbytes + 1;
            all += n;
            most = n > most ? n : most;
        }
        assert_true(c.most.stored_nbytes <= all / w.share.nbatches + most);
        cm_carry_release(&c);
        cm_epoch_plan_release(&plan);
        free_world(&w);
    }
}

/* A chunk that fails, or a load that is lost, is told to those batches that need it. */
static void test_failures(void **state)
{
    world w;
    cm_epoch_plan plan;
    cm_carry c;
    bool missing;
    (void)state;
    make_world(&w, 1, 4, 1);
    make_plan(&w, 12, &plan);
    assert_int_equal(cm_carry_make(&plan, &w.share, 0, &w.in, w.proof, &c, NULL), CM_OK);
    cm_carry_fail(&c.chunk[3], CM_EFORMAT, "the first reason");
    cm_carry_fail(&c.chunk[3], CM_EIO, "the second");
    c.chunk[5].missing = true;
    const uint32_t lost = c.chunk[7].load;
    cm_carry_lose(&c, lost, CM_EIO, "a load that was lost");
    for (uint32_t l = 0; l < c.nloads; l++) {
        bool fails = false, misses = false;
        for (size_t i = c.use_at[l]; i < c.use_at[l + 1]; i++) {
            const uint32_t x = c.use[i].chunk;
            fails = fails || x == 3 || c.chunk[x].load == lost;
            misses = misses || x == 5;
        }
        const cm_carry_chunk *failed = cm_carry_check(&c, l, &missing);
        assert_true((failed != NULL) == fails && missing == misses);
        if (failed == &c.chunk[3])
            assert_true(failed->status == CM_EFORMAT &&
                        strcmp(failed->why, "the first reason") == 0);
    }
    cm_carry_release(&c);
    cm_epoch_plan_release(&plan);
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_plan),
        cmocka_unit_test(test_loads_are_even),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests_name("carry", tests, NULL, NULL);
}
