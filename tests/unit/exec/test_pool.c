/*
 * Pools of workers: what they deliver is checked byte by byte, workers are killed
 * at their work, and nothing is left behind.
 *
 * The test's own source writes a pattern that follows from the sample's number.
 * SPAWN and FORKSERVER begin this binary again, with the argument MARKER.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/clock.h"
#include "exec/load/pool_wire.h"
#include "pool_kinds.h"

#define MARKER "--worker-of-test-pool"

enum {
    SAMPLE = 96, /* bytes */
    SLOTS = 64,
    PIECES = 8,
    MANY_PIECES = 40000 /* a task that no socket's buffer holds */
};

/* What the source is to do; with SPAWN and FORKSERVER it travels as the setup. */
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

static board *board_of(uint8_t *arena)
{
    return (board *)(arena + (size_t)SLOTS * PIECES * SAMPLE);
}

typedef struct source_context {
    orders todo;
    uint8_t *arena; /* threads and fork: for the board when opening; NULL otherwise */
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

static int source_open(void *context, unsigned worker, void **state, cm_error *err)
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

static int source_load(void *state, const cm_load_task *task, uint8_t *arena,
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

static void source_close(void *state)
{
    source_state *s = state;
    if (s != NULL && s->arena != NULL)
        atomic_fetch_add(&board_of(s->arena)->closed, 1);
    free(s);
}

/* ---- a process that was begun again ---- */

static int make_source(const void *setup, size_t nbytes, cm_load_source *out, cm_error *err)
{
    if (nbytes != sizeof(orders))
        return cm_fail(err, CM_EFORMAT, "%zu bytes of setup", nbytes);
    source_context *c = cm_calloc(1, sizeof(*c), err);
    if (c == NULL)
        return CM_ENOMEM;
    memcpy(&c->todo, setup, nbytes);
    *out = (cm_load_source){
        .context = c, .open = source_open, .load = source_load, .close = source_close};
    return CM_OK;
}

static void release_source(cm_load_source *source)
{
    free(source->context);
}

static int serve(const char *fd)
{
    cm_error err = {0};
    int rc = cm_pool_serve(atoi(fd), make_source, release_source, &err);
    if (rc != CM_OK)
        fprintf(stderr, "%s\n", err.text);
    return rc != CM_OK;
}

/* ---- a pool for a test ---- */

typedef struct fixture {
    cm_arena arena;
    source_context context;
    cm_pool_options options;
    cm_pool *pool;
    cm_error err;
} fixture;

static const char *const argv_again[] = {"/proc/self/exe", MARKER, NULL};

static int begin_large(fixture *f, const kind *k, unsigned nworkers, unsigned nclients, orders todo,
                       size_t max_pieces)
{
    memset(f, 0, sizeof(*f));
    assert_int_equal(cm_arena_create(ARENA, k->mode == CM_POOL_PROCESSES, &f->arena, NULL), CM_OK);
    f->context = (source_context){.todo = todo, .arena = f->arena.data};
    f->options = (cm_pool_options){.mode = k->mode,
                                   .start = k->start,
                                   .nworkers = k->mode == CM_POOL_SYNC ? 1 : nworkers,
                                   .nclients = nclients,
                                   .max_pieces = max_pieces,
                                   .argv = argv_again,
                                   .setup = &f->context.todo,
                                   .setup_nbytes = sizeof(orders)};
    const cm_load_source source = {
        .context = &f->context, .open = source_open, .load = source_load, .close = source_close};
    return cm_pool_create(&f->options, &source, &f->arena, &f->pool, &f->err);
}

static int begin(fixture *f, const kind *k, unsigned nworkers, unsigned nclients, orders todo)
{
    return begin_large(f, k, nworkers, nclients, todo, PIECES);
}

static void end(fixture *f)
{
    cm_pool_free(f->pool);
    cm_arena_release(&f->arena);
}

/* Batch NUMBER in slot NUMBER mod SLOTS; sample K of it is number * PIECES + K. */
static int submit(fixture *f, unsigned client, unsigned worker, uint64_t number)
{
    union {
        cm_load_task task;
        char bytes[sizeof(cm_load_task) + PIECES * sizeof(cm_load_piece)];
    } u;
    memset(&u, 0, sizeof(u));
    u.task.id = client * 100000u + number;
    u.task.number = number;
    u.task.npieces = PIECES;
    u.task.offset = number % SLOTS * PIECES * SAMPLE;
    for (uint32_t k = 0; k < PIECES; k++)
        u.task.piece[k] = (cm_load_piece){.sample = number * PIECES + k,
                                          .offset = u.task.offset + (uint64_t)k * SAMPLE,
                                          .place = k};
    return cm_pool_submit(f->pool, client, worker, &u.task, &f->err);
}

static void check_content(const fixture *f, uint64_t number)
{
    const uint8_t *at = f->arena.data + number % SLOTS * PIECES * SAMPLE;
    for (size_t k = 0; k < PIECES; k++)
        for (size_t i = 0; i < SAMPLE; i++)
            assert_int_equal(at[k * SAMPLE + i], pattern(number * PIECES + k, i));
}

static cm_load_result receive(fixture *f, unsigned client)
{
    cm_load_result r;
    assert_true(cm_pool_receive(f->pool, client, UINT64_MAX, &r));
    return r;
}

static unsigned count_fds(void)
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
static void assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* ---- the tests ---- */

static void test_every_task_once(void **state)
{
    (void)state;
    const unsigned nfds = count_fds();
    for (size_t k = 0; k < NKINDS; k++) {
        for (unsigned workers = 1; workers <= 8; workers = workers == 1 ? 3 : workers + 5) {
            fixture f;
            unsigned char seen[SLOTS] = {0};
            if (begin(&f, &kinds[k], workers, 1, (orders){0}) != CM_OK)
                fail_msg("%s: %s", kinds[k].name, f.err.text);
            for (unsigned b = 0; b < SLOTS; b++)
                assert_int_equal(submit(&f, 0, b % f.options.nworkers, b), CM_OK);
            for (unsigned b = 0; b < SLOTS; b++) {
                cm_load_result r = receive(&f, 0);
                assert_int_equal(r.status, CM_OK);
                assert_in_range(r.id, 0, SLOTS - 1);
                assert_int_equal(seen[r.id]++, 0);
                assert_int_equal(r.worker, r.id % f.options.nworkers);
                assert_int_equal(r.nbytes, PIECES * SAMPLE);
                assert_int_equal(r.counts.chunks, PIECES);
                assert_int_equal(r.counts.stage_ns[CM_LOAD_DECODE], 5);
                assert_true(r.counts.cpu_ns > 0 && r.rss_nbytes > 0);
                assert_true(r.begin_ns > 0 && r.end_ns >= r.begin_ns);
                assert_int_equal(r.deaths, 0);
                check_content(&f, r.id);
            }
            cm_load_result none;
            assert_false(cm_pool_receive(f.pool, 0, UINT64_MAX, &none));
            end(&f);
            assert_no_children();
        }
    }
    assert_int_equal(count_fds(), nfds);
}

static void test_worker_info(void **state)
{
    (void)state;
    for (size_t k = 1; k < NKINDS; k++) {
        fixture f;
        cm_pool_worker_info info[2];
        assert_int_equal(begin(&f, &kinds[k], 2, 1, (orders){0}), CM_OK);
        for (unsigned w = 0; w < 2; w++) {
            cm_pool_worker(f.pool, w, &info[w]);
            assert_true(info[w].start_ns > 0 && info[w].ready_ns >= info[w].start_ns);
            assert_int_equal(info[w].pid > 0, k >= FORK);
            assert_int_equal(info[w].deaths, 0);
        }
        if (k >= FORK)
            assert_int_not_equal(info[0].pid, info[1].pid);
        end(&f);
    }
}

static void test_open_fails(void **state)
{
    (void)state;
    const unsigned nfds = count_fds();
    for (size_t k = 0; k < NKINDS; k++) {
        fixture f;
        unsigned bad = kinds[k].mode == CM_POOL_SYNC ? 1 : 3;
        assert_int_equal(begin(&f, &kinds[k], 4, 1, (orders){.fail_open_of = bad}), CM_ENOTFOUND);
        assert_null(f.pool);
        assert_non_null(strstr(f.err.text, "store.zarr: worker "));
        end(&f);
        assert_no_children();
    }
    assert_int_equal(count_fds(), nfds);
}

static void test_load_fails(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        fixture f;
        assert_int_equal(begin(&f, &kinds[k], 2, 1, (orders){.fail_load_of = 4}), CM_OK);
        for (unsigned b = 0; b < 8; b++)
            submit(&f, 0, b % f.options.nworkers, b);
        for (unsigned b = 0; b < 8; b++) {
            cm_load_result r = receive(&f, 0);
            assert_int_equal(r.status, r.id == 3 ? CM_EFORMAT : CM_OK);
            assert_string_equal(r.error, r.id == 3 ? "batch 3: a chunk is corrupt" : "");
        }
        end(&f);
    }
}

/* The worker that is at batch 5 is killed KILL_TIMES times. */
static void test_workers_are_killed(void **state)
{
    (void)state;
    const unsigned nfds = count_fds();
    for (size_t k = FORK; k < NKINDS; k++) {
        for (unsigned times = 1; times <= 4; times++) {
            fixture f;
            cm_pool_worker_info info;
            orders todo = {.kill_at = 6, .kill_times = times};
            unsigned want = times < CM_POOL_MAX_DEATHS ? times : CM_POOL_MAX_DEATHS;
            assert_int_equal(begin(&f, &kinds[k], 2, 1, todo), CM_OK);
            for (unsigned b = 0; b < 24; b++)
                submit(&f, 0, b % 2, b);
            for (unsigned b = 0; b < 24; b++) {
                cm_load_result r = receive(&f, 0);
                assert_int_equal(r.deaths, r.id == 5 ? want : 0);
                if (r.id == 5 && times >= CM_POOL_MAX_DEATHS) {
                    assert_int_equal(r.status, CM_EIO);
                    assert_string_equal(r.error,
                                        "batch 5: worker 1 was killed by signal 9 (Killed); 3 "
                                        "workers died on it, so it is given up");
                } else {
                    assert_int_equal(r.status, CM_OK);
                    check_content(&f, r.id);
                }
            }
            cm_pool_worker(f.pool, 1, &info);
            assert_int_equal(info.deaths, want);
            cm_pool_worker(f.pool, 0, &info);
            assert_int_equal(info.deaths, 0);
            end(&f);
            assert_no_children();
        }
    }
    assert_int_equal(count_fds(), nfds);
}

/* Killed from outside while it is at a task, which waits for the test's word. */
static void test_killed_from_outside(void **state)
{
    (void)state;
    for (size_t k = FORK; k < NKINDS; k++) {
        fixture f;
        cm_pool_worker_info before, after;
        assert_int_equal(begin(&f, &kinds[k], 1, 1, (orders){.block = true}), CM_OK);
        board *b = board_of(f.arena.data);
        for (unsigned i = 0; i < 4; i++)
            submit(&f, 0, 0, i);
        while (atomic_load(&b->begun) == 0)
            usleep(500);
        cm_pool_worker(f.pool, 0, &before);
        assert_int_equal(kill((pid_t)before.pid, SIGKILL), 0);
        while (atomic_load(&b->begun) == 1)
            usleep(500);
        atomic_store(&b->go, 1);
        for (unsigned i = 0; i < 4; i++) {
            cm_load_result r = receive(&f, 0);
            assert_int_equal(r.id, i);
            assert_int_equal(r.status, CM_OK);
            assert_int_equal(r.deaths, i == 0);
            check_content(&f, i);
        }
        cm_pool_worker(f.pool, 0, &after);
        assert_int_equal(after.deaths, 1);
        assert_int_not_equal(after.pid, before.pid);
        assert_true(after.ready_ns > before.ready_ns);
        end(&f);
    }
}

/* A worker that died while it had nothing to do costs no task anything. */
static void test_killed_when_idle(void **state)
{
    (void)state;
    for (size_t k = FORK; k < NKINDS; k++) {
        fixture f;
        cm_pool_worker_info info;
        assert_int_equal(begin(&f, &kinds[k], 1, 1, (orders){0}), CM_OK);
        cm_pool_worker(f.pool, 0, &info);
        kill((pid_t)info.pid, SIGKILL);
        do {
            usleep(500);
            cm_pool_worker(f.pool, 0, &info);
        } while (info.deaths == 0);
        assert_int_equal(info.pid, 0);
        submit(&f, 0, 0, 9);
        cm_load_result r = receive(&f, 0);
        assert_int_equal(r.status, CM_OK);
        assert_int_equal(r.deaths, 0);
        check_content(&f, 9);
        end(&f);
    }
}

/* The second opening dies: first as often as is borne, then once too often. */
static void test_killed_while_opening(void **state)
{
    (void)state;
    for (unsigned times = 2; times <= 3; times++) {
        fixture f;
        orders todo = {.kill_at = 1, .kill_times = 1, .kill_open_times = times - 1};
        assert_int_equal(begin(&f, &kinds[FORK], 1, 1, todo), CM_OK);
        submit(&f, 0, 0, 0);
        submit(&f, 0, 0, 1);
        cm_load_result r = receive(&f, 0);
        assert_int_equal(r.id, 0);
        assert_int_equal(r.deaths, times);
        if (times < CM_POOL_MAX_DEATHS) {
            assert_int_equal(r.status, CM_OK);
        } else {
            assert_int_equal(r.status, CM_EIO);
            assert_non_null(strstr(r.error, "was killed by signal 9 (Killed) before it was ready"));
        }
        r = receive(&f, 0);
        assert_int_equal(r.id, 1);
        assert_int_equal(r.status, CM_OK);
        end(&f);
    }
}

/* The fork server's death takes its workers along; another is begun. */
static void test_fork_server_dies(void **state)
{
    (void)state;
    fixture f;
    cm_pool_worker_info info;
    char path[64], text[256] = "";
    int ppid = 0;
    assert_int_equal(begin(&f, &kinds[4], 2, 1, (orders){0}), CM_OK);
    cm_pool_worker(f.pool, 1, &info);
    snprintf(path, sizeof(path), "/proc/%lld/status", (long long)info.pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(text, sizeof(text), file) != NULL && sscanf(text, "PPid: %d", &ppid) != 1)
        continue;
    fclose(file);
    assert_true(ppid > 1 && ppid != getpid());
    kill(ppid, SIGKILL);
    for (unsigned b = 0; b < 16; b++)
        submit(&f, 0, b % 2, b);
    for (unsigned b = 0; b < 16; b++) {
        cm_load_result r = receive(&f, 0);
        assert_int_equal(r.status, CM_OK);
        check_content(&f, r.id);
    }
    end(&f);
    assert_no_children();
}

/*
 * A worker of a server that is gone may be asked for by a number that is another process's by
 * now.
 */
static void test_fork_server_kills_its_own(void **state)
{
    (void)state;
    const cm_pool_hello hello = {.nbytes = sizeof(hello) + sizeof(cm_load_result),
                                 .version = CM_POOL_WIRE_VERSION,
                                 .role = CM_POOL_AS_SERVER,
                                 .setup_nbytes = sizeof(orders)};
    const orders todo = {0};
    int fd[2];
    cm_pool_ready ready;
    cm_pool_reply reply;
    assert_int_equal(cm_wire_pair(fd, NULL), CM_OK);
    pid_t bystander = fork();
    if (bystander == 0) {
        close(fd[0]);
        close(fd[1]);
        pause();
        _exit(0);
    }
    pid_t server = fork();
    if (server == 0) {
        close(fd[0]);
        _exit(cm_pool_serve(fd[1], make_source, release_source, NULL) != CM_OK);
    }
    close(fd[1]);
    assert_true(cm_fd_send(fd[0], &hello, sizeof(hello)));
    assert_true(cm_fd_send(fd[0], &todo, sizeof(todo)));
    assert_true(cm_fd_recv(fd[0], &ready, sizeof(ready)));
    for (uint32_t kill_it = 0; kill_it < 2; kill_it++) {
        const cm_pool_request request = {.pid = bystander, .kill_it = kill_it};
        assert_true(cm_fd_send(fd[0], &request, sizeof(request)));
        assert_true(cm_fd_recv(fd[0], &reply, sizeof(reply)));
        assert_int_equal(reply.pid, -1);
        assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0);
    }
    close(fd[0]);
    waitpid(server, NULL, 0);
    kill(bystander, SIGKILL);
    waitpid(bystander, NULL, 0);
}

static void test_worker_memory(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* its shadow counts as the process's memory, and it does not bear a limit */
#endif
    const struct {
        uint64_t limit;
        int want;
    } row[] = {{0, CM_OK}, {16u << 20, CM_ENOMEM}, {UINT64_C(1) << 40, CM_OK}};
    for (size_t k = FORK; k < NKINDS; k++) {
        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
            fixture f;
            assert_int_equal(begin(&f, &kinds[k], 1, 1, (orders){.allocate = true}), CM_OK);
            cm_pool_free(f.pool);
            f.options.worker_memory = row[i].limit;
            const cm_load_source source = {.context = &f.context,
                                           .open = source_open,
                                           .load = source_load,
                                           .close = source_close};
            assert_int_equal(cm_pool_create(&f.options, &source, &f.arena, &f.pool, &f.err), CM_OK);
            submit(&f, 0, 0, 0);
            cm_load_result r = receive(&f, 0);
            assert_int_equal(r.status, row[i].want);
            if (row[i].want != CM_OK)
                assert_non_null(strstr(r.error, "no memory for 67108864 elements"));
            end(&f);
        }
    }
}

/* ---- clients ---- */

typedef struct client_run {
    fixture *f;
    unsigned client;
    unsigned wrong;
    pthread_t thread;
} client_run;

static void *run_client(void *arg)
{
    client_run *c = arg;
    enum {
        N = 400,
        AHEAD = 4
    };
    unsigned received = 0;
    for (unsigned b = 0; b < N + AHEAD; b++) {
        uint64_t number = c->client * 16 + b % 16;
        if (b < N && submit(c->f, c->client, b % c->f->options.nworkers, number) != CM_OK)
            c->wrong++;
        if (b < AHEAD)
            continue;
        cm_load_result r;
        if (!cm_pool_receive(c->f->pool, c->client, UINT64_MAX, &r) || r.id / 100000 != c->client ||
            r.status != CM_OK)
            c->wrong++;
        received++;
    }
    cm_load_result none;
    c->wrong += received != N || cm_pool_receive(c->f->pool, c->client, 0, &none);
    return NULL;
}

static void test_clients_do_not_mix(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        fixture f;
        client_run run[4] = {0};
        assert_int_equal(begin(&f, &kinds[k], 3, 4, (orders){0}), CM_OK);
        for (unsigned c = 0; c < 4; c++) {
            run[c] = (client_run){.f = &f, .client = c};
            assert_int_equal(pthread_create(&run[c].thread, NULL, run_client, &run[c]), 0);
        }
        for (unsigned c = 0; c < 4; c++) {
            pthread_join(run[c].thread, NULL);
            assert_int_equal(run[c].wrong, 0);
        }
        end(&f);
    }
}

static void test_drop_and_pending(void **state)
{
    (void)state;
    for (size_t k = 0; k < NKINDS; k++) {
        fixture f;
        unsigned underway, ready, came = 0;
        cm_load_result r;
        bool sync = kinds[k].mode == CM_POOL_SYNC;
        assert_int_equal(begin(&f, &kinds[k], 1, 2, (orders){.block = !sync}), CM_OK);
        board *b = board_of(f.arena.data);
        for (unsigned i = 0; i < 10; i++) {
            submit(&f, 0, 0, i);
            submit(&f, 1, 0, 20 + i);
        }
        while (!sync && atomic_load(&b->begun) == 0)
            usleep(500);
        if (!sync)
            assert_false(cm_pool_receive(f.pool, 0, 1000000, &r));
        cm_pool_pending(f.pool, 0, &underway, &ready);
        assert_int_equal(underway, 10);
        assert_int_equal(ready, 0);
        unsigned dropped = (unsigned)cm_pool_drop(f.pool, 0);
        assert_in_range(dropped, sync ? 10 : 9 - (k >= FORK), sync ? 10 : 9);
        cm_pool_pending(f.pool, 0, &underway, &ready);
        assert_int_equal(underway, 10 - dropped);
        atomic_store(&b->go, 1);
        while (cm_pool_receive(f.pool, 0, UINT64_MAX, &r))
            came++;
        assert_int_equal(came, 10 - dropped);
        for (unsigned i = 0; i < 10; i++)
            assert_int_equal(receive(&f, 1).id, 100020 + i);
        end(&f);
    }
}

/* Freeing forgets what is queued, closes every source and leaves nothing. */
static void test_free_while_busy(void **state)
{
    (void)state;
    const unsigned nfds = count_fds();
    for (size_t k = 0; k < NKINDS; k++) {
        fixture f;
        assert_int_equal(begin(&f, &kinds[k], 2, 1, (orders){0}), CM_OK);
        board *b = board_of(f.arena.data);
        for (unsigned i = 0; i < 40; i++)
            submit(&f, 0, i % f.options.nworkers, i);
        cm_pool_free(f.pool);
        /* A process that is slow to end may have been killed. */
        if (k < FORK)
            assert_int_equal(atomic_load(&b->closed), f.options.nworkers);
        cm_arena_release(&f.arena);
        assert_no_children();
    }
    assert_int_equal(count_fds(), nfds);
}

/* A process that does not end by itself is killed. */
static void test_free_kills_what_hangs(void **state)
{
    (void)state;
    for (size_t k = FORK; k < NKINDS; k++) {
        fixture f;
        assert_int_equal(begin(&f, &kinds[k], 2, 1, (orders){.block = true}), CM_OK);
        submit(&f, 0, 0, 0);
        while (atomic_load(&board_of(f.arena.data)->begun) == 0)
            usleep(500);
        end(&f);
        assert_no_children();
    }
}

static cm_load_task *make_large_task(uint64_t number)
{
    cm_load_task *task = calloc(1, sizeof(*task) + MANY_PIECES * sizeof(cm_load_piece));
    assert_non_null(task);
    task->id = task->number = number;
    task->npieces = MANY_PIECES;
    for (uint32_t k = 0; k < MANY_PIECES; k++)
        task->piece[k] = (cm_load_piece){.sample = k, .offset = (uint64_t)(k % SLOTS) * SAMPLE};
    return task;
}

/*
 * Tasks that are larger than what a socket holds: made, and left when the pool ends or the
 * worker dies.
 */
static void test_large_tasks(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        orders todo;
        int signal; /* to the worker while it is at the first task */
    } rows[] = {
        {"made", {0}, 0},
        {"made again", {.kill_at = 2, .kill_times = 1}, 0},
        {"left by the pool", {.block = true}, 0},
        {"left by a worker that stands still", {.block = true}, SIGSTOP},
        {"left by a worker that is killed", {.block = true}, SIGKILL},
    };
    for (size_t k = FORK; k < NKINDS; k++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            fixture f;
            cm_pool_worker_info info;
            assert_int_equal(begin_large(&f, &kinds[k], 1, 1, rows[i].todo, MANY_PIECES), CM_OK);
            for (uint64_t b = 0; b < 3; b++) {
                cm_load_task *task = make_large_task(b);
                assert_int_equal(cm_pool_submit(f.pool, 0, 0, task, &f.err), CM_OK);
                free(task);
            }
            for (uint64_t b = 0; b < 3 && !rows[i].todo.block; b++) {
                cm_load_result r = receive(&f, 0);
                assert_int_equal(r.status, CM_OK);
                assert_int_equal(r.id, b);
                assert_int_equal(r.nbytes, (uint64_t)MANY_PIECES * SAMPLE);
            }
            while (rows[i].todo.block && atomic_load(&board_of(f.arena.data)->begun) == 0)
                usleep(500);
            usleep(20000); /* for the second task to fill the socket */
            cm_pool_worker(f.pool, 0, &info);
            if (rows[i].signal != 0)
                kill((pid_t)info.pid, rows[i].signal);
            const uint64_t start = cm_now_ns();
            end(&f);
            if (cm_now_ns() - start > UINT64_C(5000000000))
                fail_msg("%s: %s: the pool did not end", kinds[k].name, rows[i].name);
            assert_no_children();
        }
}

/* A process that owns a pool is killed: its workers end too. */
static void test_no_orphans(void **state)
{
    (void)state;
    for (size_t k = FORK; k < NKINDS; k++) {
        int told[2], alive[2];
        char c;
        assert_int_equal(pipe(told), 0);
        /* The workers inherit the writing end: its reader sees the end of the last of them. */
        assert_int_equal(pipe(alive), 0);
        pid_t owner = fork();
        if (owner == 0) {
            fixture f;
            close(alive[0]);
            int rc = begin(&f, &kinds[k], 3, 1, (orders){.block = true});
            submit(&f, 0, 1, 0);
            while (rc == CM_OK && atomic_load(&board_of(f.arena.data)->begun) == 0)
                usleep(500);
            (void)!write(told[1], rc == CM_OK ? "y" : "n", 1);
            pause();
            _exit(0);
        }
        close(alive[1]);
        assert_int_equal(read(told[0], &c, 1), 1);
        assert_int_equal(c, 'y');
        kill(owner, SIGKILL);
        waitpid(owner, NULL, 0);
        assert_int_equal(read(alive[0], &c, 1), 0);
        close(alive[0]);
        close(told[0]);
        close(told[1]);
    }
}

/* ---- wrong calls ---- */

static void test_refusals(void **state)
{
    (void)state;
    const struct {
        const char *what;
        cm_pool_options options;
        bool shared;
    } row[] = {
        {"no workers", {.mode = CM_POOL_THREADS, .nclients = 1}, false},
        {"two without threads", {.mode = CM_POOL_SYNC, .nworkers = 2, .nclients = 1}, false},
        {"no clients", {.mode = CM_POOL_THREADS, .nworkers = 1}, false},
        {"private memory", {.mode = CM_POOL_PROCESSES, .nworkers = 1, .nclients = 1}, false},
        {"no program",
         {.mode = CM_POOL_PROCESSES, .start = CM_START_SPAWN, .nworkers = 1, .nclients = 1},
         true},
        {"too many", {.mode = CM_POOL_THREADS, .nworkers = 1000000, .nclients = 1}, false},
    };
    source_context context = {0};
    const cm_load_source source = {
        .context = &context, .open = source_open, .load = source_load, .close = source_close};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        cm_arena arena;
        cm_pool *pool;
        cm_error err = {0};
        assert_int_equal(cm_arena_create(ARENA, row[i].shared, &arena, NULL), CM_OK);
        if (cm_pool_create(&row[i].options, &source, &arena, &pool, &err) != CM_EINVAL)
            fail_msg("%s was accepted", row[i].what);
        assert_null(pool);
        assert_true(err.text[0] != '\0');
        cm_arena_release(&arena);
    }
}

static void test_programs_that_are_none(void **state)
{
    (void)state;
    static const char *const missing[] = {"/nonexistent/program", NULL};
    static const char *const wrong[] = {"/bin/true", NULL};
    const char *const *argv[] = {missing, wrong};
    const unsigned nfds = count_fds();
    for (int start = CM_START_SPAWN; start <= CM_START_FORKSERVER; start++) {
        for (size_t i = 0; i < 2; i++) {
            cm_arena arena;
            cm_pool *pool;
            cm_error err = {0};
            cm_pool_options o = {.mode = CM_POOL_PROCESSES,
                                 .start = (cm_pool_start)start,
                                 .nworkers = 2,
                                 .nclients = 1,
                                 .argv = argv[i]};
            assert_int_equal(cm_arena_create(ARENA, true, &arena, NULL), CM_OK);
            assert_int_not_equal(cm_pool_create(&o, NULL, &arena, &pool, &err), CM_OK);
            assert_true(err.text[0] != '\0');
            cm_arena_release(&arena);
            assert_no_children();
        }
    }
    assert_int_equal(count_fds(), nfds);
}

static bool yes(void *context)
{
    (void)context;
    return true;
}

/* With a time limit, and with somebody who wants an end: no pool, and no process is left. */
static void test_processes_that_never_begin(void **state)
{
    (void)state;
    static const orders todo = {.hang = true};
    source_context context = {.todo = todo};
    const cm_load_source source = {
        .context = &context, .open = source_open, .load = source_load, .close = source_close};
    for (size_t k = FORK; k < NKINDS; k++)
        for (int stop = 0; stop <= 1; stop++) {
            cm_arena arena;
            cm_pool *pool;
            cm_error err = {0};
            const cm_pool_options o = {.mode = CM_POOL_PROCESSES,
                                       .start = kinds[k].start,
                                       .nworkers = 2,
                                       .nclients = 1,
                                       .max_pieces = PIECES,
                                       .argv = argv_again,
                                       .setup = &todo,
                                       .setup_nbytes = sizeof(todo),
                                       .stop = {stop ? yes : NULL, NULL},
                                       .ready_timeout_ns = stop ? 0 : 1500000000};
            assert_int_equal(cm_arena_create(ARENA, true, &arena, NULL), CM_OK);
            assert_int_equal(cm_pool_create(&o, &source, &arena, &pool, &err),
                             stop ? CM_ECANCELED : CM_EIO);
            assert_non_null(strstr(err.text, stop ? "stopped" : "was not ready within 1.5 s"));
            assert_null(pool);
            cm_arena_release(&arena);
            assert_no_children();
        }
}

static void test_wrong_tasks(void **state)
{
    (void)state;
    fixture f;
    cm_load_task large = {.npieces = PIECES + 1};
    assert_int_equal(begin(&f, &kinds[1], 2, 1, (orders){0}), CM_OK);
    assert_int_equal(submit(&f, 1, 0, 0), CM_EINVAL);
    assert_int_equal(submit(&f, 0, 2, 0), CM_EINVAL);
    assert_int_equal(cm_pool_submit(f.pool, 0, 0, &large, &f.err), CM_EINVAL);
    assert_non_null(strstr(f.err.text, "9 pieces"));
    end(&f);
}

static void test_serve_without_a_pool(void **state)
{
    (void)state;
    int fd[2];
    cm_error err = {0};
    assert_int_equal(pipe(fd), 0);
    assert_int_equal(cm_pool_serve(fd[0], make_source, release_source, &err), CM_EIO);
    assert_non_null(strstr(err.text, "is not the socket of a pool"));
    close(fd[0]);
    close(fd[1]);
    cm_pool_free(NULL);
}

static void test_arena(void **state)
{
    (void)state;
    for (int shared = 0; shared <= 1; shared++) {
        cm_arena arena;
        cm_error err = {0};
        assert_int_equal(cm_arena_create(5000, shared, &arena, &err), CM_OK);
        assert_int_equal((uintptr_t)arena.data % 4096, 0);
        assert_true(arena.nbytes >= 5000);
        assert_int_equal(arena.data[4999], 0);
        cm_arena_release(&arena);
        assert_null(arena.data);
        cm_arena_release(&arena);
        assert_int_equal(cm_arena_create(SIZE_MAX - 5, shared, &arena, &err), CM_ENOMEM);
        assert_int_not_equal(cm_arena_create(SIZE_MAX / 4, shared, &arena, &err), CM_OK);
        assert_null(arena.data);
    }
}

static void test_counts_add(void **state)
{
    (void)state;
    enum {
        N = sizeof(cm_load_counts) / sizeof(uint64_t)
    };
    uint64_t a[N], b[N];
    cm_load_counts to, more;
    for (size_t i = 0; i < N; i++) {
        a[i] = i;
        b[i] = 1000 * i + 1;
    }
    memcpy(&to, a, sizeof(to));
    memcpy(&more, b, sizeof(more));
    cm_load_counts_add(&to, &more);
    assert_int_equal(to.stage_ns[0], 1);
    assert_int_equal(to.failed_chunks, 1001 * (N - 1) + 1);
    memcpy(a, &to, sizeof(a));
    for (size_t i = 0; i < N; i++)
        assert_int_equal(a[i], 1001 * i + 1);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], MARKER) == 0)
        return serve(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_counts_add),
        cmocka_unit_test(test_every_task_once),
        cmocka_unit_test(test_worker_info),
        cmocka_unit_test(test_open_fails),
        cmocka_unit_test(test_load_fails),
        cmocka_unit_test(test_workers_are_killed),
        cmocka_unit_test(test_killed_from_outside),
        cmocka_unit_test(test_killed_when_idle),
        cmocka_unit_test(test_killed_while_opening),
        cmocka_unit_test(test_fork_server_dies),
        cmocka_unit_test(test_fork_server_kills_its_own),
        cmocka_unit_test(test_worker_memory),
        cmocka_unit_test(test_clients_do_not_mix),
        cmocka_unit_test(test_drop_and_pending),
        cmocka_unit_test(test_free_while_busy),
        cmocka_unit_test(test_free_kills_what_hangs),
        cmocka_unit_test(test_large_tasks),
        cmocka_unit_test(test_no_orphans),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_programs_that_are_none),
        cmocka_unit_test(test_processes_that_never_begin),
        cmocka_unit_test(test_wrong_tasks),
        cmocka_unit_test(test_serve_without_a_pool),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
