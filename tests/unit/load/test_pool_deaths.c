/*
 * Pools whose processes die, hang or never begin: their tasks are done again, and nothing is left
 * behind.
 */
#include "pool_fixture.h"

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
                                       .nworkers = 2,
                                       .nclients = 1,
                                       .max_pieces = PIECES,
                                       .stop = {stop ? yes : NULL, NULL},
                                       .ready_timeout_ns = stop ? 0 : 1500000000};
            assert_int_equal(cm_arena_create(ARENA, true, true, &arena, NULL), CM_OK);
            assert_int_equal(cm_pool_create(&o, &source, &arena, &pool, &err),
                             stop ? CM_ECANCELED : CM_EIO);
            assert_non_null(strstr(err.text, stop ? "stopped" : "was not ready within 1.5 s"));
            assert_null(pool);
            cm_arena_release(&arena);
            assert_no_children();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_are_killed),
        cmocka_unit_test(test_killed_from_outside),
        cmocka_unit_test(test_killed_when_idle),
        cmocka_unit_test(test_killed_while_opening),
        cmocka_unit_test(test_worker_memory),
        cmocka_unit_test(test_free_kills_what_hangs),
        cmocka_unit_test(test_no_orphans),
        cmocka_unit_test(test_processes_that_never_begin),
    };
    return cmocka_run_group_tests_name("pool_deaths", tests, NULL, NULL);
}
