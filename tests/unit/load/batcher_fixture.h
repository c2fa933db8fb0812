/*
 * Shared by the tests of the loaders: a source that computes every element from
 * its coordinates, the pools to try it with, and the check of a batch.
 *
 * Two arrays: "field" (time, y, x) of uint16 and "edge" (y) of uint16; a sample
 * reads the field twice, at lag 0 and 1, and the edge.
 */
#ifndef CM_TEST_BATCHER_FIXTURE_H
#define CM_TEST_BATCHER_FIXTURE_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "load/batches/batcher.h"
#include "load/batches/cut.h"
#include "pool_kinds.h"

enum {
    NARRAYS = 2,
    NPARTS = 3,
    MAX_CHUNKS = 4096
};

typedef struct problem {
    cm_sample_space space;
    cm_sample_part part[NPARTS];
    cm_grid grid[NARRAYS];
    size_t part_nbytes[NPARTS], sample_nbytes;
    cm_blocks blocks;                /* of the planned loader */
    uint64_t fail_batch, fail_chunk; /* + 1; a chunk of the field */
    uint64_t kill_at;                /* batch or chunk of the field + 1: its worker kills itself */
    bool block;                      /* tasks wait until the board says go */
    uint64_t hold;                   /* + 1: the batch that does so alone */
} problem;

typedef struct board { /* at the end of the arena */
    _Atomic uint32_t loads[NARRAYS][MAX_CHUNKS];
    _Atomic uint32_t kills, go, begun;
} board;

/* ---- the source ---- */

static inline uint16_t element(unsigned array, const uint64_t *at, unsigned rank)
{
    uint64_t h = array + 1;
    for (unsigned j = 0; j < rank; j++)
        h = h * 1000003 + at[j] * 7 + 13;
    return (uint16_t)(h ^ h >> 17);
}

/* The elements of WHOLE's share of BOX into DST, which holds BOX in C order. */
static inline void write_share(unsigned array, const cm_box *box, const cm_box *whole, uint8_t *dst)
{
    cm_box shared;
    if (!cm_box_intersect(box, whole, &shared))
        return;
    for (uint64_t i = 0; i < cm_box_nelem(&shared); i++) {
        uint64_t at[CM_MAX_RANK], left = i, place = 0;
        for (unsigned j = shared.rank; j-- > 0; left /= shared.shape[j])
            at[j] = shared.start[j] + left % shared.shape[j];
        for (unsigned j = 0; j < box->rank; j++)
            place = place * box->shape[j] + (at[j] - box->start[j]);
        uint16_t value = element(array, at, shared.rank);
        memcpy(dst + place * sizeof(value), &value, sizeof(value));
    }
}

static inline void part_box(const problem *p, uint64_t epoch, uint64_t sample, uint32_t part,
                            cm_box *out)
{
    cm_box box;
    cm_sample_at(&p->space, epoch, sample, &box);
    cm_sample_part_box(&p->part[part], &box, out);
}

typedef struct loader_source {
    const problem *problem;
    size_t arena_nbytes;
} loader_source;

static inline board *board_of(uint8_t *arena, size_t arena_nbytes)
{
    return (board *)(arena + (arena_nbytes - sizeof(board)) / 64 * 64);
}

static inline int source_open(void *context, unsigned worker, void **state, cm_error *err)
{
    (void)worker;
    (void)err;
    *state = context;
    return CM_OK;
}

static inline void load_batch(const problem *p, const cm_load_task *task, uint8_t *arena)
{
    uint8_t *at = arena + task->offset;
    for (uint32_t part = 0; part < NPARTS; part++) {
        for (uint32_t k = 0; k < task->nbatch; k++, at += p->part_nbytes[part]) {
            cm_box box;
            part_box(p, task->epoch, task->piece[k].sample, part, &box);
            write_share(p->part[part].array, &box, &box, at);
        }
    }
}

static inline void load_chunk(const problem *p, const cm_load_task *task, uint8_t *arena)
{
    const cm_grid *grid = &p->grid[task->array];
    uint64_t coord[CM_MAX_RANK];
    cm_box chunk;
    cm_grid_coord(grid, task->number, coord);
    cm_grid_box(grid, coord, &chunk);
    write_share(task->array, &chunk, &chunk, arena + task->offset);
    arena[task->piece[0].offset] = 0;
}

static inline void load_cut(const problem *p, const cm_load_task *task, uint8_t *arena)
{
    cm_load_counts counts = {0};
    for (uint32_t i = 0; i < task->npieces; i++) {
        const cm_load_piece *piece = &task->piece[i];
        uint8_t *at = arena + task->offset;
        for (uint32_t part = 0; part < NPARTS; at += task->nbatch * p->part_nbytes[part++]) {
            const cm_cut cut = {.blocks = &p->blocks,
                                .strip = p->blocks.strip_of[part],
                                .itemsize = 2,
                                .stored_itemsize = 2,
                                .frame = arena + piece->offset};
            cm_box sample, box;
            cm_sample_at(&p->space, task->epoch, piece->sample, &sample);
            cm_sample_part_box(&p->part[part], &sample, &box);
            cm_cut_box(&cut, &sample, &box, at + piece->place * p->part_nbytes[part], &counts);
        }
    }
}

static inline int source_load(void *state, const cm_load_task *task, uint8_t *arena,
                              cm_load_result *result, cm_error *err)
{
    const loader_source *s = state;
    const problem *p = s->problem;
    board *b = board_of(arena, s->arena_nbytes);
    bool whole = task->kind == CM_LOAD_BATCH, is_chunk = task->kind == CM_LOAD_CHUNK;
    bool field = whole || (is_chunk && task->array == 0);
    atomic_fetch_add(&b->begun, 1);
    while ((p->block || p->hold == task->number + 1) && atomic_load(&b->go) == 0)
        usleep(200);
    if (field && p->kill_at == task->number + 1 && atomic_fetch_add(&b->kills, 1) == 0)
        raise(SIGKILL);
    if (field && (whole ? p->fail_batch : p->fail_chunk) == task->number + 1)
        return cm_fail(err, CM_EFORMAT, "number %u is corrupt", (unsigned)task->number);
    (whole ? load_batch : is_chunk ? load_chunk : load_cut)(p, task, arena);
    if (is_chunk)
        atomic_fetch_add(&b->loads[task->array][task->number], 1);
    result->nbytes = whole ? task->nbatch * p->sample_nbytes : 0;
    result->counts.decoded = whole || is_chunk;
    return CM_OK;
}

static inline void source_close(void *state)
{
    (void)state;
}

/* ---- a problem, a pool and a loader ---- */

/* A field of 12 x 30 x 28 elements in chunks of 3 x 8 x 8; samples of 2 x 5 x 6 in random order. */
static inline void problem_init(problem *p, cm_order order)
{
    const uint64_t shape[] = {12, 30, 28}, chunk[] = {3, 8, 8};
    *p = (problem){0};
    p->space = (cm_sample_space){.rank = 3,
                                 .length = {12, 30, 28},
                                 .sample = {2, 5, 6},
                                 .chunk = {3, 8, 8},
                                 .reach = 1,
                                 .order = order,
                                 .parameter = 2,
                                 .seed = 42};
    assert_int_equal(cm_sample_space_init(&p->space, NULL, NULL), CM_OK);
    assert_int_equal(cm_grid_init(&p->grid[0], 3, shape, chunk, NULL), CM_OK);
    assert_int_equal(cm_grid_init(&p->grid[1], 1, shape + 1, chunk + 1, NULL), CM_OK);
    for (unsigned i = 0; i < 2; i++)
        p->part[i] = (cm_sample_part){
            .array = 0, .rank = 3, .axis = {0, 1, 2}, .shape = {12, 30, 28}, .lag = i};
    p->part[2] = (cm_sample_part){.array = 1, .rank = 1, .axis = {1}, .shape = {30}};
    p->part_nbytes[0] = p->part_nbytes[1] = 2 * 5 * 6 * 2;
    p->part_nbytes[2] = 5 * 2;
    p->sample_nbytes = 2 * p->part_nbytes[0] + p->part_nbytes[2];
}

/* Blocks for the planned loader, GROWN cells long along each dimension. */
static inline void problem_block(problem *p, uint8_t grown)
{
    static const uint32_t element_nbytes[NPARTS] = {2, 2, 2};
    const cm_grid *const grid[NARRAYS] = {&p->grid[0], &p->grid[1]};
    const uint8_t all[CM_MAX_RANK] = {grown, grown, grown};
    const cm_blocks_request request = {.space = &p->space,
                                       .part = p->part,
                                       .nparts = NPARTS,
                                       .grid = grid,
                                       .element_nbytes = element_nbytes};
    p->space.by_number = true;
    assert_int_equal(cm_blocks_make(&request, &p->blocks, NULL), CM_OK);
    cm_blocks_grow(&p->blocks, all);
}

typedef struct fixture {
    problem problem;
    cm_arena arena;
    loader_source source;
    cm_pool *pool;
    cm_pool_options pool_options;
    cm_batcher_options options;
    cm_batcher *loader;
    cm_epoch_share share;
    cm_error err;
} fixture;

/* BATCH samples a batch, NSAMPLES an epoch. */
static inline void set_share(fixture *f, uint64_t nsamples, uint64_t batch)
{
    f->share = (cm_epoch_share){.nsamples = nsamples, .world = 1, .batch = batch};
    assert_int_equal(cm_epoch_share_init(&f->share, NULL), CM_OK);
}

/* A pool with room for NLOADERS loaders as f->options describes one. */
static inline void start_pool(fixture *f, const kind *k, unsigned nloaders)
{
    cm_batcher_options *o = &f->options;
    o->slot_nbytes = f->share.batch * f->problem.sample_nbytes;
    o->nparts = NPARTS;
    o->part_nbytes = f->problem.part_nbytes;
    if (k->mode == CM_POOL_SYNC)
        o->nworkers = 1;
    size_t nbytes =
        nloaders * (o->nslots * o->slot_nbytes + o->nframes * f->problem.blocks.frame_nbytes);
    assert_int_equal(cm_arena_create(nbytes + sizeof(board) + 64, k->mode == CM_POOL_PROCESSES,
                                     true, &f->arena, NULL),
                     CM_OK);
    f->source = (loader_source){&f->problem, f->arena.nbytes};
    const cm_load_source source = {
        .context = &f->source, .open = source_open, .load = source_load, .close = source_close};
    f->pool_options = (cm_pool_options){
        .mode = k->mode, .nworkers = o->nworkers, .nclients = nloaders, .max_pieces = 8192};
    if (cm_pool_create(&f->pool_options, &source, &f->arena, &f->pool, &f->err) != CM_OK)
        fail_msg("%s: %s", k->name, f->err.text);
}

static inline void start(fixture *f, const kind *k)
{
    start_pool(f, k, 1);
    if (cm_batcher_create(f->pool, &f->arena, &f->options, &f->loader, &f->err) != CM_OK)
        fail_msg("%s: %s", k->name, f->err.text);
}

static inline void stop(fixture *f)
{
    cm_batcher_free(f->loader);
    cm_pool_free(f->pool);
    cm_arena_release(&f->arena);
    cm_blocks_release(&f->problem.blocks);
}

static inline board *board_at(fixture *f)
{
    return board_of(f->arena.data, f->arena.nbytes);
}

/* Every element of BATCH is what its coordinates say. */
static inline bool content_is_right(const problem *p, uint64_t epoch, const cm_load_batch *batch)
{
    const uint8_t *at = batch->data;
    uint8_t want[256];
    if (batch->nbytes != batch->nsamples * p->sample_nbytes)
        return false;
    for (uint32_t part = 0; part < NPARTS; part++) {
        for (uint64_t k = 0; k < batch->nsamples; k++, at += p->part_nbytes[part]) {
            cm_box box;
            part_box(p, epoch, batch->sample[k], part, &box);
            write_share(p->part[part].array, &box, &box, want);
            if (memcmp(want, at, p->part_nbytes[part]) != 0)
                return false;
        }
    }
    return true;
}

static inline cm_load_batch next_batch(fixture *f)
{
    cm_load_batch batch = {0};
    bool more;
    if (cm_batcher_next(f->loader, NULL, NULL, &batch, &more, &f->err) != CM_OK)
        fail_msg("%s", f->err.text);
    assert_true(more);
    return batch;
}

static inline void assert_at_end(fixture *f)
{
    cm_load_batch batch;
    bool more;
    assert_int_equal(cm_batcher_next(f->loader, NULL, NULL, &batch, &more, &f->err), CM_OK);
    assert_false(more);
}

#endif
