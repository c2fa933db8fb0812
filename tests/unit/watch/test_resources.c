/* Samples of the machine while work is done, and the probes. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../fixtures/made_store.h"
#include "../unit.h"
#include "base/clock.h"
#include "watch/probe.h"
#include "watch/resources.h"

enum {
    MS = 1000000
};

static void spin(uint64_t cpu_ns)
{
    uint64_t start = cm_thread_cpu_ns();
    while (cm_thread_cpu_ns() - start < cpu_ns) {
    }
}

static cm_resources *start(uint64_t interval_ms, size_t max_samples)
{
    cm_resources *r = NULL;
    cm_resources_options options = {.interval_ns = interval_ms * MS, .max_samples = max_samples};
    assert_int_equal(cm_resources_start(&options, &r, NULL), CM_OK);
    return r;
}

/* CPU seconds and length of the record; checks what holds of every record. */
static double check_record(cm_resources *r, double *length)
{
    double seconds = 0;
    uint64_t last = 0;
    cm_resource_sample s;
    assert_true(cm_resources_count(r) > 0);
    assert_true(cm_resources_ncores(r) > 0);
    for (size_t i = 0; i < cm_resources_count(r); i++) {
        cm_resources_at(r, i, &s);
        assert_true(i == 0 || s.begin_ns == last);
        assert_true(s.end_ns > s.begin_ns);
        assert_true(s.nprocesses >= 1 && s.rss_nbytes > 0);
        for (unsigned c = 0; c < cm_resources_ncores(r); c++)
            assert_true(s.core[c] >= 0 && s.core[c] <= 1);
        last = s.end_ns;
        seconds += (double)s.cpus * (double)(s.end_ns - s.begin_ns) * 1e-9;
    }
    cm_resources_at(r, 0, &s);
    *length = (double)(last - s.begin_ns) * 1e-9;
    return seconds;
}

static void own_cpu_time(void **state)
{
    (void)state;
    cm_resources *r = start(10, 1000);
    double length;
    spin(150 * MS);
    cm_resources_stop(r);
    double seconds = check_record(r, &length);
    assert_true(seconds > 0.13);
    assert_true(seconds < 0.15 + length); /* watching takes some, too */
    cm_resources_free(r);
}

/* A child and its child: their time, their number and their memory. */
static void children(void **state)
{
    (void)state;
    enum {
        NBYTES = 32 << 20
    };
    int go[2], done[2];
    char byte = 0;
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        if (fork() == 0) {
            uint8_t *memory =
                mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(memory, 1, NBYTES);
            byte = (char)(1 + write(done[1], &byte, 1));
            if (read(go[0], &byte, 1) == 1)
                spin(150 * MS);
            byte = (char)(1 + write(done[1], &byte, 1));
        }
        pause();
    }
    setpgid(child, child);
    assert_int_equal(read(done[0], &byte, 1), 1); /* all are there */
    cm_resources *r = start(10, 1000);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(read(done[0], &byte, 1), 1);
    nanosleep(&(struct timespec){.tv_nsec = 30 * MS}, NULL);
    cm_resources_stop(r);
    double length, seconds = check_record(r, &length);
    cm_resource_sample s;
    cm_resources_at(r, cm_resources_count(r) - 1, &s);
    assert_int_equal(s.nprocesses, 3);
    assert_true(s.rss_nbytes >= NBYTES);
    assert_true(seconds > 0.13);
    cm_resources_free(r);
    kill(-child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(done[i]);
    }
}

/* A full record goes on at half the rate, and loses nothing. */
static void bounded(void **state)
{
    (void)state;
    bool halved = false;
    /* On a busy machine samples may be too far apart to fill a short record. */
    for (unsigned ms = 200; !halved && ms < 10000; ms *= 2) {
        cm_resources *r = start(2, 8);
        double length;
        spin((uint64_t)ms * MS);
        cm_resources_stop(r);
        assert_true(cm_resources_count(r) <= 8);
        double seconds = check_record(r, &length);
        assert_true(length > 0.19);
        assert_true(seconds > 0.18);
        cm_resource_sample first;
        cm_resources_at(r, 0, &first);
        halved = first.end_ns - first.begin_ns >= 14 * MS;
        cm_resources_free(r);
    }
    assert_true(halved);
}

/* However short: one sample there is; and ending does not wait for the next one. */
static void short_and_quick(void **state)
{
    (void)state;
    cm_resources *r = start(3600u * 1000, 0);
    cm_resources_stop(r);
    assert_int_equal(cm_resources_count(r), 1);
    cm_resources_stop(r);
    cm_resources_free(r);
    cm_resources_free(NULL);
    cm_error err;
    cm_resources_options options = {.max_samples = 1};
    assert_int_equal(cm_resources_start(&options, &r, &err), CM_EINVAL);
    assert_string_equal(err.text, "a record of resources holds at least 2 samples");
}

/* ---- probes ---- */

static void memory_rate(void **state)
{
    (void)state;
    double rate = 0;
    cm_error err;
    assert_int_equal(cm_probe_memory(8 << 20, 0.05, &rate, NULL), CM_OK);
    assert_true(rate > 1e7 && rate < 1e13);
    assert_int_equal(cm_probe_memory(1 << 20, 0.05, &rate, &err), CM_EINVAL);
    assert_string_equal(err.text, "copying is measured with 2 MiB or more");
}

static void storage_rate(void **state)
{
    (void)state;
    made m = {.rank = 1, .shape = {4000}, .chunk = {10}, .absent_of = 4};
    cm_store *store;
    assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
    made_write(store, &m, 1);
    cm_array *a = made_open(store, "a");
    cm_probe_item item[400];
    cm_probe_result result;
    for (uint64_t i = 0; i < 400; i++)
        item[i] = (cm_probe_item){.array = a, .number = (i * 7) % 400};
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        assert_int_equal(cm_probe_storage(item, 400, threads, 0, &result, NULL), CM_OK);
        assert_int_equal(result.nchunks, 300);
        assert_int_equal(result.nbytes, 300 * 40);
        assert_true(result.nrequests >= 300);
        assert_true(result.seconds > 0);
    }
    assert_int_equal(cm_probe_storage(item, 400, 1, 1e-9, &result, NULL), CM_OK);
    assert_true(result.nchunks < 300);
    assert_int_equal(cm_probe_storage(item, 400, 0, 0, &result, NULL), CM_EINVAL);
    cm_array_free(a);
    cm_store_free(store);
}

static int sevens(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    if (box->start[0] > 90)
        return cm_fail(err, CM_EIO, "array %s: the disk is gone", a->name);
    memset(dst, 7, cm_box_nelem(box) * 4);
    return CM_OK;
}

static void storage_in_boxes(void **state)
{
    (void)state;
    static const cm_array_ops ops = {.read_box = sevens};
    cm_array a = {.ops = &ops,
                  .name = (char *)"x",
                  .dtype = cm_dtype_make(CM_KIND_INT, 4),
                  .rank = 1,
                  .shape = {100}};
    cm_probe_item item[2] = {{.array = &a, .box = {1, {0}, {20}}},
                             {.array = &a, .box = {1, {50}, {30}}}};
    cm_probe_result result;
    cm_error err = {0};
    assert_int_equal(cm_probe_storage(item, 2, 2, 0, &result, NULL), CM_OK);
    assert_int_equal(result.nbytes, 200);
    item[1].box.start[0] = 91;
    assert_int_equal(cm_probe_storage(item, 2, 2, 0, &result, &err), CM_EIO);
    assert_string_equal(err.text, "array x: the disk is gone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_cpu_time),     cmocka_unit_test(children),
        cmocka_unit_test(bounded),          cmocka_unit_test(short_and_quick),
        cmocka_unit_test(memory_rate),      cmocka_unit_test(storage_rate),
        cmocka_unit_test(storage_in_boxes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
