/*
 * Shared by the tests of pools: a source that writes a pattern computed from the sample's
 * number, and pools of it.
 */
#ifndef TESTS_EXEC_POOL_FIXTURE_H
#define TESTS_EXEC_POOL_FIXTURE_H

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/clock.h"
#include "load/workers/pool.h"
#include "pool_kinds.h"

enum {
    SAMPLE = 96, /* bytes */
    SLOTS = 64,
    PIECES = 8,
    MANY_PIECES = 40000 /* a task that no socket's buffer holds */
};

/* Orders to the source of a pool. */
typedef struct orders {
    unsigned fail_open_of; /* worker + 1 */
    uint64_t fail_load_of; /* batch + 1 */
    uint64_t kill_at;      /* batch + 1: the worker kills itself there ... */
    unsigned kill_times;   /* ... as long as the count in the arena is below this */
    unsigned kill_open_times;
    bool allocate; /* a task allocates 64 MiB */
    bool block;    /* tasks wait until the arena says go */
    bool hang;     /* the source is never open */
} orders;

/* At the end of the arena; shared by all. */
typedef struct board {
    _Atomic uint32_t kills, open_kills;
    _Atomic uint32_t opened, closed;
    _Atomic uint32_t go, begun;
} board;

enum {
    ARENA = SLOTS * PIECES * SAMPLE + (int)sizeof(board)
};

static inline board *board_of(uint8_t *arena)
{
    return (board *)(arena + (size_t)SLOTS * PIECES * SAMPLE);
}

typedef struct source_context {
    orders todo;
    uint8_t *arena; /* for the board when opening; NULL: none */
} source_context;

typedef struct source_state {
    const source_context *context;
    unsigned worker;
    uint8_t *arena;
} source_state;

static uint8_t pattern(uint64_t sample, size_t at)
{
    return (uint8_t)(sample * 131 + at * 7 + (sample >> 8));
}

static inline int source_open(void *context, unsigned worker, void **state, cm_error *err)
{
    const source_context *c = context;
    while (c->todo.hang)
        pause();
    if (c->todo.fail_open_of == worker + 1)
        return cm_fail(err, CM_ENOTFOUND, "store.zarr: worker %u finds nothing", worker);
    if (c->arena != NULL) {
        board *b = board_of(c->arena);
        if (atomic_fetch_add(&b->opened, 1) > 0 &&
            atomic_fetch_add(&b->open_kills, 1) < c->todo.kill_open_times)
            raise(SIGKILL);
    }
    source_state *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    *s = (source_state){.context = c, .worker = worker, .arena = c->arena};
    *state = s;
    return CM_OK;
}

static inline int source_load(void *state, const cm_load_task *task, uint8_t *arena,
                              cm_load_result *result, cm_error *err)
{
    source_state *s = state;
    const orders *todo = &s->context->todo;
    board *b = board_of(arena);
    atomic_fetch_add(&b->begun, 1);
    while (todo->block && atomic_load(&b->go) == 0)
        usleep(200);
    if (todo->kill_at == task->number + 1 && atomic_fetch_add(&b->kills, 1) < todo->kill_times)
        raise(SIGKILL);
    if (todo->fail_load_of == task->number + 1)
        return cm_fail(err, CM_EFORMAT, "batch %llu: a chunk is corrupt",
                       (unsigned long long)task->number);
    if (todo->allocate) {
        void *much = cm_calloc(64u << 20, 1, err);
        if (much == NULL)
            return CM_ENOMEM;
        free(much);
    }
    for (uint32_t k = 0; k < task->npieces; k++) {
        const cm_load_piece *p = &task->piece[k];
        for (size_t i = 0; i < SAMPLE; i++)
            arena[p->offset + i] = pattern(p->sample, i);
    }
    result->nbytes = (uint64_t)task->npieces * SAMPLE;
    result->counts.chunks = task->npieces;
    result->counts.stage_ns[CM_LOAD_DECODE] = 5;
    return CM_OK;
}

static inline void source_close(void *state)
{
    source_state *s = state;
    if (s != NULL && s->arena != NULL)
        atomic_fetch_add(&board_of(s->arena)->closed, 1);
    free(s);
}

/* ---- a pool for a test ---- */

typedef struct fixture {
    cm_arena arena;
    source_context context;
    cm_pool_options options;
    cm_pool *pool;
    cm_error err;
} fixture;

static inline int begin_large(fixture *f, const kind *k, unsigned nworkers, unsigned nclients,
                              orders todo, size_t max_pieces)
{
    memset(f, 0, sizeof(*f));
    assert_int_equal(cm_arena_create(ARENA, k->mode == CM_POOL_PROCESSES, true, &f->arena, NULL),
                     CM_OK);
    f->context = (source_context){.todo = todo, .arena = f->arena.data};
    f->options = (cm_pool_options){.mode = k->mode,
                                   .nworkers = k->mode == CM_POOL_SYNC ? 1 : nworkers,
                                   .nclients = nclients,
                                   .max_pieces = max_pieces};
    const cm_load_source source = {
        .context = &f->context, .open = source_open, .load = source_load, .close = source_close};
    return cm_pool_create(&f->options, &source, &f->arena, &f->pool, &f->err);
}

static inline int begin(fixture *f, const kind *k, unsigned nworkers, unsigned nclients,
                        orders todo)
{
    return begin_large(f, k, nworkers, nclients, todo, PIECES);
}

static inline void end(fixture *f)
{
    cm_pool_free(f->pool);
    cm_arena_release(&f->arena);
}

/* Task NUMBER in slot NUMBER mod SLOTS; sample K of it is number * PIECES + K. */
static inline int submit_as(fixture *f, cm_load_kind what, unsigned client, unsigned worker,
                            uint64_t number)
{
    union {
        cm_load_task task;
        char bytes[sizeof(cm_load_task) + PIECES * sizeof(cm_load_piece)];
    } u;
    memset(&u, 0, sizeof(u));
    u.task.id = client * 100000u + number;
    u.task.kind = what;
    u.task.number = number;
    u.task.npieces = PIECES;
    u.task.offset = number % SLOTS * PIECES * SAMPLE;
    for (uint32_t k = 0; k < PIECES; k++)
        u.task.piece[k] = (cm_load_piece){.sample = number * PIECES + k,
                                          .offset = u.task.offset + (uint64_t)k * SAMPLE,
                                          .place = k};
    return cm_pool_submit(f->pool, client, worker, &u.task, &f->err);
}

static inline int submit(fixture *f, unsigned client, unsigned worker, uint64_t number)
{
    return submit_as(f, CM_LOAD_BATCH, client, worker, number);
}

static inline void check_content(const fixture *f, uint64_t number)
{
    const uint8_t *at = f->arena.data + number % SLOTS * PIECES * SAMPLE;
    for (size_t k = 0; k < PIECES; k++)
        for (size_t i = 0; i < SAMPLE; i++)
            assert_int_equal(at[k * SAMPLE + i], pattern(number * PIECES + k, i));
}

static inline cm_load_result receive(fixture *f, unsigned client)
{
    cm_load_result r;
    assert_true(cm_pool_receive(f->pool, client, UINT64_MAX, &r));
    return r;
}

static inline unsigned count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* No child, living or dead, is left. */
static inline void assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

#endif
