/*
 * Pools of workers: what they deliver is checked byte by byte, whoever asks, and nothing is left
 * behind.
 */
#include "pool_fixture.h"

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

/* A client that wants three chunks is woken for three, for all that it has, or for a cut. */
static void test_waiting_for_several_chunks(void **state)
{
    (void)state;
    static const struct {
        unsigned chunks, cuts, wanted, least;
    } rows[] = {{6, 0, 3, 3}, {2, 0, 3, 2}, {0, 0, 3, 0}, {5, 1, 5, 1}};
    for (size_t k = 1; k < NKINDS; k++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            fixture f;
            cm_load_result r;
            unsigned came = 0, cuts = 0;
            assert_int_equal(begin(&f, &kinds[k], 2, 1, (orders){0}), CM_OK);
            for (unsigned j = 0; j < rows[i].chunks + rows[i].cuts; j++)
                submit_as(&f, j < rows[i].chunks ? CM_LOAD_CHUNK : CM_LOAD_CUT, 0, j % 2, j);
            cm_pool_wait(f.pool, 0, rows[i].wanted, UINT64_MAX);
            while (cm_pool_receive(f.pool, 0, 0, &r)) {
                cuts += r.id >= rows[i].chunks;
                came++;
            }
            assert_true(came >= rows[i].least || cuts > 0);
            assert_true(cuts > 0 || came >= rows[i].wanted || came == rows[i].chunks);
            end(&f);
        }
}

/* A client that waits no longer has what came until then. */
static void test_waiting_ends(void **state)
{
    (void)state;
    fixture f;
    cm_load_result r;
    assert_int_equal(begin(&f, &kinds[THREADS], 2, 1, (orders){.block = true}), CM_OK);
    submit_as(&f, CM_LOAD_CHUNK, 0, 0, 0);
    cm_pool_wait(f.pool, 0, 1, 1000000);
    assert_false(cm_pool_receive(f.pool, 0, 0, &r));
    atomic_store(&board_of(f.arena.data)->go, 1);
    cm_pool_wait(f.pool, 0, 1, UINT64_MAX);
    assert_true(cm_pool_receive(f.pool, 0, 0, &r));
    end(&f);
}

/* Chunks wait for cuts, and cuts and batches for nothing but what came before them. */
static void test_cuts_go_first(void **state)
{
    (void)state;
    static const cm_load_kind queued[] = {CM_LOAD_CHUNK, CM_LOAD_CHUNK, CM_LOAD_CUT, CM_LOAD_CHUNK};
    static const uint64_t want[] = {0, 2, 1, 3};
    fixture f;
    assert_int_equal(begin(&f, &kinds[THREADS], 1, 1, (orders){.block = true}), CM_OK);
    board *b = board_of(f.arena.data);
    for (unsigned i = 0; i < 4; i++) {
        submit_as(&f, queued[i], 0, 0, i);
        while (atomic_load(&b->begun) == 0) /* the first is taken before there is another */
            usleep(200);
    }
    atomic_store(&b->go, 1);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(receive(&f, 0).id, want[i]);
    end(&f);
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
            if (cm_now_ns() - start > UINT64_C(60000000000))
                fail_msg("%s: %s: the pool did not end", kinds[k].name, rows[i].name);
            assert_no_children();
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
        {"too many", {.mode = CM_POOL_THREADS, .nworkers = 1000000, .nclients = 1}, false},
    };
    source_context context = {0};
    const cm_load_source source = {
        .context = &context, .open = source_open, .load = source_load, .close = source_close};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        cm_arena arena;
        cm_pool *pool;
        cm_error err = {0};
        assert_int_equal(cm_arena_create(ARENA, row[i].shared, true, &arena, NULL), CM_OK);
        if (cm_pool_create(&row[i].options, &source, &arena, &pool, &err) != CM_EINVAL)
            fail_msg("%s was accepted", row[i].what);
        assert_null(pool);
        assert_true(err.text[0] != '\0');
        cm_arena_release(&arena);
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

static void test_arena(void **state)
{
    (void)state;
    for (int shared = 0; shared <= 1; shared++) {
        cm_arena arena;
        cm_error err = {0};
        assert_int_equal(cm_arena_create(5000, shared, true, &arena, &err), CM_OK);
        assert_int_equal((uintptr_t)arena.data % 4096, 0);
        assert_true(arena.nbytes >= 5000);
        assert_int_equal(arena.data[4999], 0);
        cm_arena_release(&arena);
        assert_null(arena.data);
        cm_arena_release(&arena);
        assert_int_equal(cm_arena_create(SIZE_MAX - 5, shared, true, &arena, &err), CM_ENOMEM);
        assert_int_not_equal(cm_arena_create(SIZE_MAX / 4, shared, true, &arena, &err), CM_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_counts_add),
        cmocka_unit_test(test_every_task_once),
        cmocka_unit_test(test_waiting_for_several_chunks),
        cmocka_unit_test(test_waiting_ends),
        cmocka_unit_test(test_cuts_go_first),
        cmocka_unit_test(test_worker_info),
        cmocka_unit_test(test_open_fails),
        cmocka_unit_test(test_load_fails),
        cmocka_unit_test(test_clients_do_not_mix),
        cmocka_unit_test(test_drop_and_pending),
        cmocka_unit_test(test_free_while_busy),
        cmocka_unit_test(test_large_tasks),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_wrong_tasks),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
