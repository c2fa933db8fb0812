/*
 * Runs of several sessions: sweeps and tuning; and what a session tells of its
 * workers, its times and its temperature.
 */
#include "../fixtures/readbench_fixture.h"

#include <math.h>

static const field cube = {"v", "tyx", {24, 20, 28}, {4, 5, 7}, {0}, FIELD_INT32, 0, 0, 0, 0};
static char *path;

#ifdef __SANITIZE_THREAD__
#define NO_THREADS_AFTER_FORK true /* ThreadSanitizer ends such a process */
#else
#define NO_THREADS_AFTER_FORK false
#endif

static int make_stores(void **state)
{
    if (make_folder(state) != 0)
        return -1;
    path = make_store("runs.zarr", ZARR_V3, &cube, 1);
    return 0;
}

static int remove_stores(void **state)
{
    free(path);
    return remove_folder(state);
}

static cm_readbench_options usual(const char *const *list)
{
    cm_readbench_options o = quick_options(list, 1);
    o.sample = "t=3,y=6,x=8";
    o.batches = 4;
    return o;
}

static const char *setting_of(const cm_readbench_session *s, const char *name)
{
    for (size_t i = 0; i < s->nsettings; i++)
        if (strcmp(s->setting[i].name, name) == 0)
            return s->setting[i].value;
    fail_msg("there is no setting %s", name);
    return NULL;
}

/* ---- sweeps ---- */

static void test_a_sweep(void **state)
{
    static const struct {
        const char *label, *mode, *loader;
        unsigned workers;
    } rows[] = {{"workers=0,loader=map", "sync", "map", 1},
                {"workers=0,loader=planned", "sync", "planned", 1},
                {"workers=1,loader=map", "threads", "map", 1},
                {"workers=1,loader=planned", "threads", "planned", 1},
                {"workers=2,loader=map", "threads", "map", 2},
                {"workers=2,loader=planned", "threads", "planned", 2}};
    (void)state;
    const char *const list[] = {path};
    cm_readbench_options o = usual(list);
    cm_readbench_report r;
    o.log_samples = true;
    cm_readbench_options at[6];
    cm_readbench_point point[6];
    for (size_t i = 0; i < 6; i++) {
        at[i] = o;
        at[i].workers = (unsigned)i / 2;
        at[i].mode = i < 2 ? "sync" : o.mode;
        at[i].loader = rows[i].loader;
        point[i] = (cm_readbench_point){&at[i], rows[i].label};
    }
    o.point = point;
    o.npoints = 6;
    run(&o, &r, "sweep");
    assert_int_equal(r.nsessions, 6);
    for (size_t i = 0; i < 6; i++) {
        const cm_readbench_session *s = &r.session[i];
        assert_string_equal(s->label, rows[i].label);
        assert_string_equal(s->mode, rows[i].mode);
        assert_string_equal(s->loader, rows[i].loader);
        assert_int_equal(s->workers, rows[i].workers);
        check_bytes(s, &cube, 1, s->label);
        check_complete(s, 2, 16, s->label);
        assert_true(r.ratio[i] > 0);
    }
    assert_true(r.best < 6 && r.baseline == SIZE_MAX);
    assert_non_null(r.reason);
    assert_non_null(strstr(r.reason, r.session[r.best].label));
    assert_non_null(r.data_loader);
    cm_readbench_report_release(&r);
}

/* A point for which there is no memory is left out, with a warning; not so where none is left. */
static void test_points_that_do_not_fit(void **state)
{
    (void)state;
    const char *const list[] = {path};
    cm_readbench_options o = usual(list);
    cm_readbench_report r;
    cm_error err = {0};
    cm_readbench_options at[3] = {o, o, o};
    at[0].memory = 200 << 20;
    at[1].memory = 1 << 20;
    at[2].memory = 2 << 20;
    const cm_readbench_point point[] = {
        {&at[0], "memory=200MiB"}, {&at[1], "memory=1MiB"}, {&at[2], "memory=2MiB"}};
    o.point = point;
    o.npoints = 2;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    run(&o, &r, "sweep");
    assert_int_equal(r.nsessions, 1);
    assert_int_equal(r.best, 0);
    assert_int_equal(r.nwarnings, 1);
    assert_non_null(strstr(r.warning[0], "memory=1MiB was left out"));
    cm_readbench_report_release(&r);
#endif
    o.point = point + 1;
    assert_int_equal(cm_readbench(&o, NULL, &r, &err), CM_EBUDGET);
    assert_int_equal(r.nsessions, 0);
    assert_non_null(strstr(err.text, "memory=1MiB"));
    cm_readbench_report_release(&r);
}

/* A fault of the last point is reported before the first is run. */
static void test_a_wrong_point(void **state)
{
    static const struct {
        const char *order, *sample;
    } wrong[] = {{"sideways", NULL}, {NULL, "0x4"}};
    (void)state;
    const char *const list[] = {path};
    cm_readbench_options o = usual(list);
    cm_readbench_report r;
    cm_error err = {0};
    for (size_t i = 0; i < 2; i++) {
        cm_readbench_options last = o;
        last.order = wrong[i].order;
        last.sample = wrong[i].sample != NULL ? wrong[i].sample : o.sample;
        const cm_readbench_point point[] = {{&o, "first"}, {&last, "last"}};
        cm_readbench_options all = o;
        all.point = point;
        all.npoints = 2;
        assert_int_equal(cm_readbench(&all, NULL, &r, &err), CM_EINVAL);
        assert_non_null(strstr(err.text, i == 0 ? "sideways" : "0x4"));
        assert_non_null(strstr(err.text, "last: "));
        assert_int_equal(r.nsessions, 0);
        cm_readbench_report_release(&r);
    }
}

/* ---- tuning ---- */

static void test_tuning(void **state)
{
    (void)state;
    const char *const list[] = {path};
    cm_readbench_options o = usual(list);
    cm_readbench_report r;
    o.workers = 0;
    o.tune = true;
    o.step_forward = 0.0005;
    o.emulate = "latency=1ms,bandwidth=1GB/s,concurrency=64";
    o.log_samples = true;
    run(&o, &r, "tune");
    assert_true(r.nsessions >= 2 && r.nsessions <= 12);
    assert_int_equal(r.baseline, 0);
    assert_string_equal(r.session[0].label, "baseline");
    assert_string_equal(r.session[0].mode, "sync");
    assert_true(r.best < r.nsessions);
    /* With storage that takes its time the baseline, which waits for it alone, is not the best. */
    assert_int_not_equal(r.best, 0);
    assert_true(r.ratio[r.best] > 1);
    assert_non_null(r.reason);
    assert_int_equal(strncmp(r.data_loader, "DataLoader(num_workers=", 23), 0);
    for (size_t i = 0; i < r.nsessions; i++) {
        check_bytes(&r.session[i], &cube, 1, r.session[i].label);
        check_complete(&r.session[i], 2, 16, r.session[i].label);
    }
    cm_readbench_report_release(&r);
}

/* ---- workers ---- */

/* Workers that do not persist live for an epoch each, and are there in the events. */
static void test_workers_lives(void **state)
{
    (void)state;
    for (size_t k = 1; k < NKINDS; k++)
        for (int persistent = 0; persistent < 2; persistent++) {
            const char *const list[] = {path};
            cm_readbench_options o = usual(list);
            cm_readbench_report r;
            size_t nlives = 0;
            int64_t pid[6] = {0};
            set_kind(&o, &kinds[k]);
            o.epochs = 3;
            o.no_persistent = !persistent;
            o.log_samples = true;
            run(&o, &r, kinds[k].name);
            const cm_readbench_session *s = &r.session[0];
            check_bytes(s, &cube, 1, kinds[k].name);
            check_complete(s, 3, 16, kinds[k].name);
            for (size_t i = 0; i < s->nevents; i++) {
                const cm_readbench_event *e = &s->event[i];
                if (e->kind != CM_EVENT_WORKER)
                    continue;
                assert_true(nlives < 6 && e->end_ns > e->start_ns);
                for (size_t j = 0; j < nlives && e->pid != 0; j++)
                    assert_true(e->pid != pid[j]);
                assert_int_equal(e->pid != 0, k >= 2);
                pid[nlives++] = e->pid;
            }
            assert_int_equal(nlives, persistent ? 2 : 6);
            cm_readbench_report_release(&r);
        }
}

static void test_unordered_batches(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        const char *const list[] = {path};
        cm_readbench_options o = usual(list);
        cm_readbench_report r;
        set_kind(&o, &kinds[k]);
        o.batches = 10;
        o.unordered = true;
        o.worker_threads = k == 0 || (k == 2 && NO_THREADS_AFTER_FORK) ? 1 : 2;
        o.log_samples = true;
        run(&o, &r, kinds[k].name);
        check_bytes(&r.session[0], &cube, 1, kinds[k].name);
        check_complete(&r.session[0], 2, 40, kinds[k].name);
        cm_readbench_report_release(&r);
    }
}

/* ---- caches and ways of reading ---- */

static void test_caches(void **state)
{
    static const char *const policies[] = {"lru", "fifo"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *const list[] = {path};
        cm_readbench_options o = usual(list);
        cm_readbench_report r;
        char *disk = in_folder(i < 2 ? "cache-a" : "cache-b");
        o.batches = 10;
        o.epochs = 3;
        o.cache_nbytes = i % 2 ? 8000 : 1000000; /* of 94,080 bytes of decoded chunks */
        o.cache_policy = policies[i / 2];
        o.cache_dir = disk;
        o.cache_dir_nbytes = 1 << 20;
        o.log_samples = true;
        run(&o, &r, "cache");
        const cm_readbench_counts *c = &r.session[0].counts;
        check_bytes(&r.session[0], &cube, 1, "cache");
        assert_int_equal(c->chunks, r.session[0].predicted.planned_chunks);
        assert_int_equal(c->cache_hits + c->cache_misses, c->chunks);
        assert_int_equal(c->decoded, c->cache_misses);
        if (i % 2) {
            assert_true(c->cache_evictions > 0);
        } else {
            assert_true(c->cache_misses <= 120 && c->cache_evictions == 0);
        }
        assert_true(c->disk_hits + c->disk_misses > 0);
        if (i % 2) /* filled by the run before */
            assert_int_equal(c->disk_misses, 0);
        cm_readbench_report_release(&r);
        free(disk);
    }
}

static void test_ways_of_reading(void **state)
{
    static const char *const ways[] = {"auto", "pread", "mmap", "uring", "direct"};
    (void)state;
    for (int i = 0; i < 5; i++)
        for (int planned = 0; planned < 2; planned++) {
            const char *const list[] = {path};
            cm_readbench_options o = usual(list);
            cm_readbench_report r;
            cm_error err = {0};
            o.io = ways[i];
            o.loader = planned ? "planned" : "map";
            o.log_samples = true;
            o.cold = i % 2 == 0;
            o.warm = i % 2 == 1;
            const int rc = cm_readbench(&o, NULL, &r, &err);
            if (rc == CM_EUNSUPPORTED && i >= 2) { /* by this kernel, or this file system */
                assert_true(err.text[0] != '\0');
            } else {
                assert_int_equal(rc, CM_OK);
                check_bytes(&r.session[0], &cube, 1, ways[i]);
                check_complete(&r.session[0], 2, 16, ways[i]);
                assert_string_equal(r.session[0].temperature, o.cold ? "cold" : "warm");
                if (o.warm && r.session[0].resident_before >= 0)
                    assert_true(r.session[0].resident_before > 0.9);
            }
            cm_readbench_report_release(&r);
        }
}

/* ---- times ---- */

/* Set-up, the first batch and the first step stand apart; waits and steps are of the others. */
static void test_times(void **state)
{
    (void)state;
    const char *const list[] = {path};
    cm_readbench_options o = usual(list);
    cm_readbench_report r;
    double wait = 0, step = 0;
    size_t n = 0;
    o.step_forward = 0.002;
    o.step_backward = 0.001;
    o.step_per_sample = 0.0005;
    o.emulate = "latency=5ms,bandwidth=1GB/s,concurrency=64";
    run(&o, &r, "times");
    const cm_readbench_session *s = &r.session[0];
    assert_string_equal(setting_of(s, "step-time"), "forward=2.00 ms,backward=1.00 ms");
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *x = &s->record[i];
        const uint64_t from = x->ready_ns > x->want_ns ? x->ready_ns : x->want_ns;
        assert_true(x->done_ns - from >= 5000000 - 1000); /* 3 ms and 4 samples */
        if (i == 0) {
            assert_true(fabs(s->first_step_seconds - (double)(x->done_ns - x->want_ns) / 1e9) <
                        1e-6);
            assert_true(s->first_batch_seconds >= 0.005);
            assert_true(s->first_batch_seconds <= s->first_step_seconds - 0.0049);
            continue;
        }
        wait += (double)(from - x->want_ns) / 1e9;
        step += (double)(x->done_ns - from) / 1e9;
        n++;
    }
    assert_int_equal(s->wait.n, n);
    assert_true(fabs(s->wait.total - wait) < 1e-6 && fabs(s->step.total - step) < 1e-6);
    assert_true(fabs(s->wait_share - wait / (wait + step)) < 1e-9);
    assert_true(fabs(s->utilisation - step / (wait + step)) < 1e-9);
    assert_true(s->setup_seconds > 0 && s->wall_seconds >= wait + step);
    cm_readbench_report_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sweep),       cmocka_unit_test(test_points_that_do_not_fit),
        cmocka_unit_test(test_a_wrong_point), cmocka_unit_test(test_tuning),
        cmocka_unit_test(test_workers_lives), cmocka_unit_test(test_unordered_batches),
        cmocka_unit_test(test_caches),        cmocka_unit_test(test_ways_of_reading),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests_name("readbench_runs", tests, make_stores, remove_stores);
}
