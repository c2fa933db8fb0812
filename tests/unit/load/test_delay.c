/* Requests of an imitated storage: how long, how many at once, over processes. */
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/clock.h"
#include "base/threads.h"
#include "load/reader/delayed_store.h"

enum {
    MS = 1000000
};

static cm_delay *new_delay(double latency, double bandwidth, unsigned concurrency)
{
    cm_delay *delay = NULL;
    cm_delay_model model = {latency, bandwidth, concurrency};
    assert_int_equal(cm_delay_create(&model, &delay, NULL), CM_OK);
    return delay;
}

/* Only lower bounds: a busy machine makes everything longer, nothing shorter. */
static void one_caller(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double latency, bandwidth;
        uint64_t nrequests, nbytes, io_ms, at_least_ms;
    } table[] = {
        {"latency", 0.010, INFINITY, 1, 1 << 20, 0, 10},
        {"each request has its own", 0.004, INFINITY, 5, 0, 0, 20},
        {"bandwidth", 0, 1e6, 1, 20000, 0, 20},
        {"both", 0.005, 1e6, 2, 10000, 0, 20},
        {"what it really took counts", 0.030, INFINITY, 1, 0, 20, 10},
        {"slower already", 0.001, INFINITY, 1, 0, 50, 0},
        {"nothing asked", 1000, 1, 0, 0, 0, 0},
    };
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        cm_delay *delay = new_delay(table[k].latency, table[k].bandwidth, 4);
        uint64_t start = cm_now_ns();
        uint64_t added =
            cm_delay_wait(delay, table[k].nrequests, table[k].nbytes, table[k].io_ms * MS);
        uint64_t took = cm_now_ns() - start;
        if (added < table[k].at_least_ms * MS || took < added)
            fail_msg("%s: %d us added", table[k].name, (int)(added / 1000));
        if (table[k].at_least_ms == 0)
            assert_int_equal(added, 0);
        cm_delay_free(delay);
    }
}

static void two_requests(void *context, unsigned worker)
{
    (void)worker;
    for (int i = 0; i < 2; i++)
        cm_delay_wait(context, 1, 0, 0);
}

/*
 * 6 threads with 2 requests of 10 ms each: 12 of them, CONCURRENCY at a time, and not one after
 * the other.
 */
static void concurrency(void **state)
{
    (void)state;
    static const unsigned places[] = {1, 3, 6};
    for (size_t k = 0; k < 3; k++) {
        bool beside = places[k] == 1;
        for (int i = 0; i == 0 || (!beside && i < 100); i++) { /* a busy machine may need some */
            cm_delay *delay = new_delay(0.010, INFINITY, places[k]);
            uint64_t start = cm_now_ns();
            cm_threads_run(6, two_requests, delay);
            uint64_t took = cm_now_ns() - start;
            assert_true(took >= 120 / places[k] * MS);
            beside = beside || took < 120 * MS;
            cm_delay_free(delay);
        }
        assert_true(beside);
    }
}

static void processes_share_it(void **state)
{
    (void)state;
    cm_delay *delay = new_delay(0.020, INFINITY, 1);
    uint64_t start = cm_now_ns();
    pid_t child[3];
    for (int i = 0; i < 3; i++)
        if ((child[i] = fork()) == 0) {
            cm_delay_wait(delay, 1, 0, 0);
            _exit(0);
        }
    for (int i = 0; i < 3; i++)
        assert_int_equal(waitpid(child[i], NULL, 0), child[i]);
    assert_true(cm_now_ns() - start >= 60 * MS);
    cm_delay_free(delay);
}

static void a_killed_process_holds_nothing(void **state)
{
    (void)state;
    cm_delay *delay = new_delay(0.2, INFINITY, 1);
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        if (write(ready[1], &byte, 1) == 1)
            cm_delay_wait(delay, 1, 0, 0);
        pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    uint64_t added = cm_delay_wait(delay, 1, 0, 0);
    assert_true(added >= 200 * MS);
    close(ready[0]);
    close(ready[1]);
    cm_delay_free(delay);
}

/* A store behind a delay: what is read is slow and right, the rest is quick. */
static void a_delayed_store(void **state)
{
    (void)state;
    cm_delay *delay = new_delay(0.010, 1e6, 1);
    cm_store *inner, *slow = NULL;
    cm_object_reader *reader = NULL;
    cm_buf buf = {0};
    cm_error err;
    uint64_t nbytes = 0;
    char text[4];
    assert_int_equal(cm_store_open_memory(&inner, NULL), CM_OK);
    assert_int_equal(cm_store_put(inner, "k", "abcdefgh", 8, NULL), CM_OK);
    assert_int_equal(cm_store_open_delayed(inner, delay, &slow, NULL), CM_OK);
    uint64_t start = cm_now_ns();
    assert_int_equal(cm_store_get(slow, "k", 100, &buf, NULL), CM_OK);
    assert_true(cm_now_ns() - start >= 10 * MS);
    assert_memory_equal(buf.data, "abcdefgh", 8);
    start = cm_now_ns();
    assert_int_equal(cm_store_get(slow, "absent", 100, &buf, &err), CM_ENOTFOUND);
    assert_true(cm_now_ns() - start >= 10 * MS);
    assert_int_equal(cm_object_open(slow, "k", &reader, NULL), CM_OK);
    assert_int_equal(cm_object_nbytes(reader), 8);
    start = cm_now_ns();
    assert_int_equal(cm_object_read(reader, 3, text, 4, NULL), CM_OK);
    assert_true(cm_now_ns() - start >= 10 * MS);
    assert_memory_equal(text, "defg", 4);
    cm_object_close(reader);
    assert_int_equal(cm_store_size(slow, "k", &nbytes, NULL), CM_OK);
    assert_int_equal(nbytes, 8);
    assert_int_equal(cm_store_put(slow, "k", "", 0, &err), CM_EINVAL);
    assert_non_null(strstr(err.text, "an imitated storage is only read from"));
    assert_int_equal(cm_object_open(slow, "absent", &reader, &err), CM_ENOTFOUND);
    cm_store_free(slow);
    cm_store_free(inner);
    cm_buf_release(&buf);
    cm_delay_free(delay);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        cm_delay_model model;
        const char *sentence;
    } table[] = {
        {{-1, 1, 1}, "a latency is a time of at least 0 s"},
        {{NAN, 1, 1}, "a latency is a time of at least 0 s"},
        {{INFINITY, 1, 1}, "a latency is a time of at least 0 s"},
        {{0, 0, 1}, "a bandwidth is more than 0 bytes a second"},
        {{0, NAN, 1}, "a bandwidth is more than 0 bytes a second"},
        {{0, 1, 0}, "a concurrency lies between 1 and 4096"},
        {{0, 1, 4097}, "a concurrency lies between 1 and 4096"},
    };
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        cm_delay *delay = NULL;
        cm_error err;
        assert_int_equal(cm_delay_create(&table[k].model, &delay, &err), CM_EINVAL);
        assert_string_equal(err.text, table[k].sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_caller),         cmocka_unit_test(concurrency),
        cmocka_unit_test(processes_share_it), cmocka_unit_test(a_killed_process_holds_nothing),
        cmocka_unit_test(a_delayed_store),    cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
