/* Reports from inside a job: progress, a trace, and threads that share work. */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "../unit.h"
#include "base/json.h"
#include "base/threads.h"
#include "watch/monitor.h"
#include "watch/trace.h"

static void test_phases_and_bytes(void **state)
{
    (void)state;
    cm_monitor *m = cm_monitor_create(NULL);
    cm_snapshot now;
    assert_non_null(m);
    cm_monitor_snapshot(m, &now);
    assert_int_equal(now.phase, CM_PHASE_OPENING);
    assert_int_equal(now.done_nbytes, 0);
    assert_string_equal(now.what, "");
    cm_monitor_phase(m, CM_PHASE_WORKING, 1000);
    cm_monitor_add(m, 300);
    cm_monitor_add(m, 400);
    cm_monitor_at(m, "group/tas", 17, "reading");
    cm_monitor_snapshot(m, &now);
    assert_int_equal(now.phase, CM_PHASE_WORKING);
    assert_int_equal(now.done_nbytes, 700);
    assert_int_equal(now.total_nbytes, 1000);
    assert_string_equal(now.what, "group/tas: reading chunk 17");
    cm_monitor_phase(m, CM_PHASE_VERIFYING, 5);
    cm_monitor_snapshot(m, &now);
    assert_int_equal(now.done_nbytes, 0);
    assert_string_equal(now.what, "");
    cm_monitor_free(m);
}

static void test_a_stall_is_seen(void **state)
{
    (void)state;
    cm_monitor *m = cm_monitor_create(NULL);
    cm_snapshot now;
    cm_monitor_phase(m, CM_PHASE_WORKING, 10);
    usleep(3000);
    cm_monitor_snapshot(m, &now);
    assert_true(now.since_change_ns >= 3000000 && now.phase_ns >= now.since_change_ns);
    cm_monitor_add(m, 1);
    cm_monitor_snapshot(m, &now);
    assert_true(now.since_change_ns < now.phase_ns);
    cm_monitor_free(m);
}

static void test_a_long_name_is_cut(void **state)
{
    (void)state;
    char name[600];
    cm_snapshot now;
    cm_monitor *m = cm_monitor_create(NULL);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    cm_monitor_at(m, name, 1, "reading");
    cm_monitor_snapshot(m, &now);
    /* The name is cut, so that what is done with it still shows. */
    assert_memory_equal(now.what, "nnnnnnnn", 8);
    assert_non_null(strstr(now.what, "n: reading chunk 1"));
    assert_true(strlen(now.what) < sizeof(now.what));
    cm_monitor_free(m);
}

static void test_no_monitor_is_fine(void **state)
{
    (void)state;
    cm_monitor_phase(NULL, CM_PHASE_DONE, 0);
    cm_monitor_add(NULL, 1);
    cm_monitor_at(NULL, "a", 0, "reading");
    assert_false(cm_monitor_canceled(NULL));
    cm_monitor_free(NULL);
}

static void test_every_phase_has_a_name(void **state)
{
    (void)state;
    for (int i = CM_PHASE_OPENING; i <= CM_PHASE_DONE; i++) {
        assert_true(cm_phase_name((cm_phase)i)[0] != '\0');
        for (int k = CM_PHASE_OPENING; k < i; k++)
            assert_string_not_equal(cm_phase_name((cm_phase)i), cm_phase_name((cm_phase)k));
    }
}

/* ---- threads ---- */

typedef struct crowd {
    cm_monitor *monitor;
    cm_trace *trace;
    _Atomic uint64_t seen; /* one bit a worker */
} crowd;

static void work(void *context, unsigned worker)
{
    crowd *c = context;
    atomic_fetch_or(&c->seen, UINT64_C(1) << worker);
    for (int i = 0; i < 1000; i++) {
        cm_monitor_at(c->monitor, "a \"name\"\n", (uint64_t)i, "reading");
        cm_monitor_add(c->monitor, 3);
        cm_trace_event(c->trace, worker, "read", "a \"name\"\n", (uint64_t)i, 0, 1000);
    }
}

static void test_every_worker_runs_once(void **state)
{
    (void)state;
    const unsigned n[] = {0, 1, 2, 7, 64};
    for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
        crowd c = {.monitor = cm_monitor_create(NULL)};
        cm_snapshot now;
        unsigned workers = n[i] == 0 ? 1 : n[i];
        cm_threads_run(n[i], work, &c);
        assert_int_equal(c.seen, workers == 64 ? UINT64_MAX : (UINT64_C(1) << workers) - 1);
        cm_monitor_snapshot(c.monitor, &now);
        assert_int_equal(now.done_nbytes, 3000 * workers);
        cm_monitor_free(c.monitor);
    }
}

/* ---- traces ---- */

static cm_json *read_json(const char *path)
{
    cm_buf text = {0};
    char block[4096];
    FILE *f = fopen(path, "rb");
    cm_json *j = NULL;
    assert_non_null(f);
    for (size_t n; (n = fread(block, 1, sizeof(block), f)) > 0;)
        assert_int_equal(cm_buf_append(&text, block, n, NULL), CM_OK);
    fclose(f);
    assert_int_equal(cm_json_parse(text.data, text.nbytes, &j, NULL), CM_OK);
    cm_buf_release(&text);
    return j;
}

static void test_a_trace_of_many_threads_is_json(void **state)
{
    (void)state;
    char path[] = "/tmp/trace_XXXXXX";
    crowd c = {0};
    cm_outfile file;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(cm_outfile_claim(&file, path, &CM_KIND_TRACE, NULL, true, NULL), CM_OK);
    assert_int_equal(cm_trace_open(&file, &c.trace, NULL), CM_OK);
    cm_threads_run(4, work, &c);
    assert_int_equal(cm_trace_close(c.trace, NULL), CM_OK);
    cm_outfile_release(&file);
    cm_json *j = read_json(path);
    const cm_json *events = cm_json_member(j, "traceEvents");
    assert_int_equal(cm_json_length(events), 4000);
    const cm_json *args = cm_json_member(cm_json_at(events, 0), "args");
    assert_string_equal(cm_json_text(cm_json_member(args, "array"), NULL), "a \"name\"\n");
    cm_json_free(j);
    unlink(path);
}

static void test_an_empty_trace_is_json(void **state)
{
    (void)state;
    char path[] = "/tmp/trace_XXXXXX";
    cm_trace *trace;
    cm_outfile file;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (int again = 0; again < 2; again++) { /* a trace may be replaced by another */
        assert_int_equal(cm_outfile_claim(&file, path, &CM_KIND_TRACE, NULL, !again, NULL), CM_OK);
        assert_int_equal(cm_trace_open(&file, &trace, NULL), CM_OK);
        assert_int_equal(cm_trace_close(trace, NULL), CM_OK);
        cm_outfile_release(&file);
    }
    cm_json *j = read_json(path);
    assert_int_equal(cm_json_length(cm_json_member(j, "traceEvents")), 0);
    cm_json_free(j);
    unlink(path);
}

static void test_errors_of_a_trace_name_its_file(void **state)
{
    (void)state;
    cm_trace *trace;
    cm_error err = {0};
    cm_outfile file;
    assert_int_equal(cm_outfile_claim(&file, "/dev/full", &CM_KIND_TRACE, NULL, false, &err),
                     CM_OK);
    assert_int_equal(cm_trace_open(&file, &trace, &err), CM_OK);
    for (int i = 0; i < 5000; i++)
        cm_trace_event(trace, 0, "read", "tas", (uint64_t)i, 0, 1);
    assert_int_equal(cm_trace_close(trace, &err), CM_ENOSPC);
    assert_non_null(strstr(err.text, "/dev/full"));
    cm_outfile_release(&file);
    cm_trace_event(NULL, 0, "read", "tas", 0, 0, 1);
    assert_int_equal(cm_trace_close(NULL, &err), CM_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases_and_bytes),
        cmocka_unit_test(test_a_stall_is_seen),
        cmocka_unit_test(test_a_long_name_is_cut),
        cmocka_unit_test(test_no_monitor_is_fine),
        cmocka_unit_test(test_every_phase_has_a_name),
        cmocka_unit_test(test_every_worker_runs_once),
        cmocka_unit_test(test_a_trace_of_many_threads_is_json),
        cmocka_unit_test(test_an_empty_trace_is_json),
        cmocka_unit_test(test_errors_of_a_trace_name_its_file),
    };
    return cmocka_run_group_tests_name("monitor", tests, NULL, NULL);
}
