/*
 * Failures while readbench measures: objects that are cut short, chunks that
 * are not there, workers that are killed, a user who has seen enough.
 */
#include "../fixtures/readbench_fixture.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

static const field cube = {"v", "tyx", {24, 20, 28}, {4, 5, 7}, {0}, FIELD_INT32, 0, 0, 0, 0};

static void nap(unsigned ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

/* ---- an object that is cut short ---- */

static void cut(const char *store, const char *object)
{
    struct stat st;
    char path[160];
    snprintf(path, sizeof path, "%s/%s", store, object);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
}

/* True when the box meets the chunk at COORD. */
static bool meets(const field *f, const cm_readbench_sample *x, const uint64_t *coord)
{
    for (unsigned j = 0; j < field_rank(f); j++)
        if (x->start[j] >= (coord[j] + 1) * f->chunk[j] ||
            x->start[j] + x->shape[j] <= coord[j] * f->chunk[j])
            return false;
    return true;
}

static void check_failed(const cm_readbench_session *s, bool planned, const char *what)
{
    static const uint64_t bad[] = {2, 1, 3};
    uint64_t failed = 0, samples = 0, logical = 0;
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *r = &s->record[i];
        failed += r->failed;
        samples += r->failed ? 0 : r->nsamples;
        assert_true(r->done_ns >= r->want_ns && r->got_ns > 0);
    }
    for (size_t i = 0; i < s->nlogged; i++) {
        if (meets(&cube, &s->logged[i], bad))
            fail_msg("%s: a sample with the bad chunk was delivered", what);
        logical += product(3, s->logged[i].shape) * 4;
    }
    if (failed == 0 || failed == s->nrecords || s->nrecords != 2 * 9)
        fail_msg("%s: %d of %zu batches failed", what, (int)failed, s->nrecords);
    assert_int_equal(s->counts.failed_batches, failed);
    assert_int_equal(s->counts.samples, samples);
    assert_int_equal(s->counts.logical_nbytes, logical);
    assert_int_equal(s->nlogged, samples);
    if (planned ? s->counts.failed_chunks != 2 : s->counts.failed_chunks < failed)
        fail_msg("%s: %d chunks failed", what, (int)s->counts.failed_chunks);
    assert_true(fabs(s->rates.logical * s->wall_seconds - (double)logical) < 1);
    assert_true(s->step.n <= s->nrecords - failed);
    assert_true(isfinite(s->accelerators.needed) && isfinite(s->rates.samples));
    assert_true(has_finding(s, "failed-chunks"));
    assert_non_null(strstr(s->first_failure, "v"));
    assert_non_null(strstr(s->first_failure, "chunk"));
}

static void test_a_truncated_object(void **state)
{
    static const char *const loaders[] = {"map", "planned"};
    (void)state;
    char *store = make_store("cut.zarr", ZARR_V3, &cube, 1);
    const char *const list[] = {store};
    cut(store, "v/c/2/1/3");
    for (size_t k = 0; k < 3; k++)
        for (int l = 0; l < 2; l++) {
            cm_readbench_options o = quick_options(list, 1);
            cm_readbench_report r;
            cm_error err = {0};
            set_kind(&o, &kinds[k]);
            o.loader = loaders[l];
            o.order = "sequential";
            o.sample = "t=4,y=5,x=14"; /* 6 x 4 x 2 samples */
            o.batch = 4;
            o.batches = 9;
            o.window = l == 1 ? 4 : 0;
            o.step_forward = 0.001;
            o.log_samples = true;
            o.validate = CM_READBENCH_VALIDATE_FULL;
            assert_int_equal(cm_readbench(&o, NULL, &r, &err), CM_EFORMAT);
            assert_non_null(strstr(err.text, "cut.zarr"));
            assert_non_null(strstr(err.text, "batches could not be read"));
            check_failed(&r.session[0], l == 1, kinds[k].name);
            check_bytes(&r.session[0], &cube, 1, kinds[k].name);
            assert_int_equal(r.session[0].device.mismatches, 0);
            cm_readbench_report_release(&r);
        }
    free(store);
}

/* With a device a batch that failed is not staged, and its step takes no time. */
static void test_a_truncated_object_and_a_device(void **state)
{
    (void)state;
    char *store = make_store("cut2.zarr", ZARR_V3, &cube, 1);
    const char *const list[] = {store};
    cut(store, "v/c/2/1/3");
    for (int device_step = 0; device_step < 2; device_step++)
        for (int no_overlap = 0; no_overlap < 2; no_overlap++) {
            cm_readbench_options o = quick_options(list, 1);
            cm_readbench_report r;
            cm_error err = {0};
            o.order = "sequential";
            o.sample = "t=4,y=5,x=14";
            o.batches = 9;
            o.step_forward = 0.001;
            o.device = "host";
            o.device_step = device_step;
            o.no_overlap = no_overlap;
            o.log_samples = true;
            assert_int_equal(cm_readbench(&o, NULL, &r, &err), CM_EFORMAT);
            check_failed(&r.session[0], false, "device");
            check_bytes(&r.session[0], &cube, 1, "device");
            cm_readbench_report_release(&r);
        }
    free(store);
}

/* Where every batch fails there is a report all the same, and no rate. */
static void test_nothing_can_be_read(void **state)
{
    (void)state;
    static const field one = {"v", "x", {40}, {40}, {0}, FIELD_INT32, 0, 0, 0, 0};
    char *store = make_store("cut3.zarr", ZARR_V3, &one, 1);
    const char *const list[] = {store};
    cut(store, "v/c/0");
    cm_readbench_options o = quick_options(list, 1);
    cm_readbench_report r;
    cm_error err = {0};
    o.sample = "x=3";
    assert_int_equal(cm_readbench(&o, NULL, &r, &err), CM_EFORMAT);
    const cm_readbench_session *s = &r.session[0];
    assert_int_equal(s->counts.failed_batches, s->counts.batches);
    assert_true(s->counts.batches > 0 && s->counts.samples == 0);
    assert_true(s->rates.samples == 0 && s->rates.logical == 0 && s->accelerators.needed == 0);
    assert_true(s->accelerators.got == 0 && s->cpu_seconds_per_gb == 0);
    assert_non_null(s->sentence);
    cm_readbench_report_release(&r);
    free(store);
}

/* ---- chunks that are not there ---- */

/*
 * Chunks that a box meets in F, those of them that are missing, and the bytes that come from
 * these.
 */
static void count_missing(const field *f, const cm_readbench_sample *x, uint64_t *met,
                          uint64_t *missing, uint64_t *nbytes)
{
    const uint64_t n = product(field_rank(f), x->shape);
    uint64_t grid[FIELD_RANK], at[FIELD_RANK];
    for (unsigned j = 0; j < field_rank(f); j++)
        grid[j] = (f->shape[j] + f->chunk[j] - 1) / f->chunk[j];
    bool *seen = calloc(product(field_rank(f), grid), sizeof *seen);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t chunk = 0;
        place_in(field_rank(f), x->start, x->shape, i, at);
        for (unsigned j = 0; j < field_rank(f); j++)
            chunk = chunk * grid[j] + at[j] / f->chunk[j];
        const bool absent = chunk % f->absent_of == 0;
        *nbytes += absent ? field_size(f) : 0;
        *met += !seen[chunk];
        *missing += absent && !seen[chunk];
        seen[chunk] = true;
    }
    free(seen);
}

static void test_missing_chunks(void **state)
{
    static const field rows[] = {
        {"v", "tyx", {24, 20, 28}, {4, 5, 7}, {0}, FIELD_INT32, 3, 0, 0, 0},
        {"v", "tyx", {24, 20, 28}, {4, 5, 7}, {8, 10, 14}, FIELD_INT16, 2, 0, 0, 0},
        {"v", "tyx", {24, 20, 28}, {4, 5, 7}, {0}, FIELD_INT32, 1, 0, 0, 0}};
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int planned = 0; planned < 2; planned++) {
            char name[32];
            snprintf(name, sizeof name, "missing-%d-%d", i, planned);
            char *store = make_store(name, ZARR_V3, &rows[i], 1);
            const char *const list[] = {store};
            cm_readbench_options o = quick_options(list, 1);
            cm_readbench_report r;
            uint64_t met = 0, missing = 0, nbytes = 0;
            o.sample = "t=3,y=6,x=8";
            o.batches = 7;
            o.loader = planned ? "planned" : "map";
            o.log_samples = true;
            o.validate = CM_READBENCH_VALIDATE_FULL;
            run(&o, &r, name);
            const cm_readbench_session *s = &r.session[0];
            check_bytes(s, &rows[i], 1, name);
            for (size_t k = 0; k < s->nlogged; k++)
                count_missing(&rows[i], &s->logged[k], &met, &missing, &nbytes);
            assert_int_equal(s->counts.missing_nbytes, nbytes);
            if (!planned) {
                assert_int_equal(s->counts.chunks, met);
                assert_int_equal(s->counts.missing_chunks, missing);
                assert_int_equal(s->counts.decoded, met - missing);
            }
            assert_true(s->counts.missing_chunks > 0 && has_finding(s, "missing-chunks"));
            const double read = (double)(s->counts.logical_nbytes - nbytes);
            assert_true(fabs(s->rates.logical * s->wall_seconds - read) < 1);
            if (rows[i].absent_of == 1)
                assert_true(s->rates.logical == 0 && s->rates.capacity == 0);
            cm_readbench_report_release(&r);
            free(store);
        }
}

/* ---- workers that are killed ---- */

typedef struct killer {
    pthread_t thread;
    cm_monitor *monitor;
    _Atomic bool stop;
    unsigned nkilled;
} killer;

/* A child of this process that began as a worker; 0: none. */
static pid_t find_child(unsigned number)
{
    pid_t found = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        char path[300], line[512];
        int parent = 0;
        const int pid = atoi(e->d_name);
        snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
        FILE *f = pid > 0 ? fopen(path, "r") : NULL;
        if (f == NULL)
            continue;
        const char *end = fgets(line, sizeof line, f) != NULL ? strrchr(line, ')') : NULL;
        if (end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 && parent == getpid() &&
            number-- == 0)
            found = pid;
        fclose(f);
    }
    closedir(proc);
    return found;
}

static void *kill_now_and_then(void *context)
{
    killer *k = context;
    /* A run whose workers die before they are ready does not begin. */
    for (cm_snapshot now = {0}; now.done_nbytes == 0 && !k->stop; nap(1))
        cm_monitor_snapshot(k->monitor, &now);
    /* A batch on which a third worker dies is given up, and all may hit the same one. */
    for (unsigned i = 0; i < 40 && !k->stop && k->nkilled < 2; i++) {
        const pid_t pid = find_child(i % 2);
        if (pid > 0 && kill(pid, SIGKILL) == 0)
            k->nkilled++;
        nap(50);
    }
    return NULL;
}

static void test_killed_workers(void **state)
{
    static const char *const loaders[] = {"map", "planned"};
    (void)state;
    char *store = make_store("killed.zarr", ZARR_V3, &cube, 1);
    const char *const list[] = {store};
    for (int l = 0; l < 2; l++) {
        killer k = {.monitor = cm_monitor_create(NULL)};
        cm_error err = {0};
        cm_readbench_options o = quick_options(list, 1);
        cm_readbench_report r;
        set_kind(&o, &kinds[2]);
        o.loader = loaders[l];
        o.sample = "t=3,y=6,x=8";
        o.batches = 10;
        o.prefetch = 4;
        o.emulate = "latency=10ms,bandwidth=1GB/s,concurrency=64"; /* so that they are at work */
        o.log_samples = true;
        assert_int_equal(pthread_create(&k.thread, NULL, kill_now_and_then, &k), 0);
        if (cm_readbench(&o, k.monitor, &r, &err) != CM_OK)
            fail_msg("%s: %s", loaders[l], err.text);
        k.stop = true;
        pthread_join(k.thread, NULL);
        cm_monitor_free(k.monitor);
        const cm_readbench_session *s = &r.session[0];
        assert_true(k.nkilled > 0);
        check_bytes(s, &cube, 1, "killed");
        check_complete(s, 2, 40, "killed");
        assert_int_equal(s->counts.failed_batches, 0);
        assert_true(s->emulated);
        if (s->counts.deaths == 0 || s->counts.deaths > k.nkilled)
            fail_msg("%s: %d deaths for %u killed", loaders[l], (int)s->counts.deaths, k.nkilled);
        assert_true(has_finding(s, "workers-died"));
        cm_readbench_report_release(&r);
    }
    free(store);
}

/* ---- a user who has seen enough ---- */

/* When the first batches have been stepped on. */
static void *cancel_soon(void *context)
{
    cm_snapshot now;
    do {
        nap(5);
        cm_monitor_snapshot(context, &now);
    } while (now.done_nbytes == 0);
    cm_monitor_cancel(context);
    return NULL;
}

static void test_cancel(void **state)
{
    (void)state;
    char *store = make_store("cancel.zarr", ZARR_V3, &cube, 1);
    const char *const list[] = {store, store};
    for (size_t k = 0; k < 3; k++) {
        cm_readbench_options o = quick_options(list, 2);
        cm_readbench_report r;
        cm_error err = {0};
        pthread_t thread;
        cm_monitor *m = cm_monitor_create(NULL);
        set_kind(&o, &kinds[k]);
        o.sample = "t=3,y=6,x=8";
        o.step_forward = 0.1; /* however busy the machine is, all steps take longer than that */
        o.hook = NULL;        /* probing would take its time, but not now */
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, m), 0);
        assert_int_equal(cm_readbench(&o, m, &r, &err), CM_ECANCELED);
        pthread_join(thread, NULL);
        assert_true(err.text[0] != '\0');
        assert_int_equal(r.nsessions, 2);
        const cm_readbench_session *s = &r.session[0];
        assert_true(s->nrecords > 0 && s->nrecords < 50);
        assert_true(s->wall_seconds > 0 && s->counts.samples > 0);
        assert_non_null(s->sentence);
        assert_int_equal(r.session[1].nrecords, 0);
        assert_non_null(r.session[1].sentence);
        cm_readbench_report_release(&r);
        cm_monitor_free(m);
    }
    free(store);
}

/* Batches that are ready are no reason to go on: their steps would be of no length. */
static void test_cancel_ends_at_a_step(void **state)
{
    static const struct {
        const char *device;
        bool no_overlap, device_step;
    } rows[] = {
        {NULL, false, false}, {"host", false, false}, {"host", true, false}, {"host", false, true}};
    (void)state;
    char *store = make_store("steps.zarr", ZARR_V3, &cube, 1);
    const char *const list[] = {store};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        cm_readbench_options o = quick_options(list, 1);
        cm_readbench_report r;
        cm_error err = {0};
        pthread_t thread;
        unsigned nshort = 0;
        cm_monitor *m = cm_monitor_create(NULL);
        o.sample = "t=3,y=6,x=8";
        o.step_forward = 0.12;
        o.device = rows[k].device;
        o.no_overlap = rows[k].no_overlap;
        o.device_step = rows[k].device_step;
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, m), 0);
        assert_int_equal(cm_readbench(&o, m, &r, &err), CM_ECANCELED);
        pthread_join(thread, NULL);
        const cm_readbench_session *s = &r.session[0];
        assert_true(s->nrecords > 0);
        for (size_t i = 0; i < s->nrecords; i++)
            nshort += s->record[i].done_ns - s->record[i].ready_ns < 100000000;
        assert_true(nshort <= 1); /* the one that was cut short */
        cm_readbench_report_release(&r);
        cm_monitor_free(m);
    }
    free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_truncated_object),
        cmocka_unit_test(test_a_truncated_object_and_a_device),
        cmocka_unit_test(test_nothing_can_be_read),
        cmocka_unit_test(test_missing_chunks),
        cmocka_unit_test(test_killed_workers),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_ends_at_a_step),
    };
    return cmocka_run_group_tests_name("readbench_failures", tests, make_folder, remove_folder);
}
