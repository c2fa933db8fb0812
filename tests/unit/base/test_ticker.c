/* Threads of their own: which signals they take, and that they end when they are told to. */
#include <stdatomic.h>

#include <sched.h>
#include <signal.h>

#include "../unit.h"
#include "base/threads.h"
#include "base/ticker.h"

static void *note_signals(void *context)
{
    pthread_sigmask(SIG_SETMASK, NULL, context);
    return NULL;
}

static void test_begin_blocks_signals(void **state)
{
    (void)state;
    sigset_t before, inside, after;
    pthread_t thread;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(cm_thread_begin(&thread, note_signals, &inside), 0);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_true(sigismember(&inside, SIGINT) && sigismember(&inside, SIGTERM));
    for (int s = 1; s < SIGRTMIN; s++)
        assert_int_equal(sigismember(&before, s), sigismember(&after, s));
}

static uint64_t count(void *context)
{
    atomic_fetch_add((atomic_uint *)context, 1);
    return 1000;
}

static void test_ticker_stops(void **state)
{
    (void)state;
    atomic_uint n = 0;
    cm_ticker t = {0};
    cm_ticker_stop(&t);
    for (unsigned again = 0; again < 2; again++) {
        assert_int_equal(cm_ticker_start(&t, 0, count, &n, NULL), CM_OK);
        unsigned from = atomic_load(&n);
        while (atomic_load(&n) < from + 3)
            sched_yield();
        cm_ticker_stop(&t);
        assert_false(t.running);
        unsigned stopped = atomic_load(&n);
        sched_yield();
        assert_int_equal(atomic_load(&n), stopped);
    }
}

/* A pause of an hour does not hold up the end. */
static void test_ticker_stops_early(void **state)
{
    (void)state;
    atomic_uint n = 0;
    cm_ticker t;
    assert_int_equal(cm_ticker_start(&t, UINT64_C(3600000000000), count, &n, NULL), CM_OK);
    cm_ticker_stop(&t);
    assert_int_equal(atomic_load(&n), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begin_blocks_signals),
        cmocka_unit_test(test_ticker_stops),
        cmocka_unit_test(test_ticker_stops_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
