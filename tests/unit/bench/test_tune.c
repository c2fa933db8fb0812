/* Tuning against a machine that is a formula. */

#include "../unit.h"
#include "bench/tune.h"

static cm_readbench_options plain(void)
{
    return (cm_readbench_options){.batch = 32,
                                  .epochs = 2,
                                  .prefetch = 2,
                                  .world_size = 1,
                                  .accelerators = 1,
                                  .reserve = 2,
                                  .step_forward = -1,
                                  .step_backward = -1,
                                  .step_other = -1};
}

/* ---- the best ------------------------------------------------------------------------------ */

typedef struct measured {
    const char *mode;
    unsigned workers, worker_threads, prefetch;
    double rate;
    uint64_t failed, batch_nbytes;
} measured;

static cm_readbench_session session_of(const measured *m)
{
    cm_readbench_session s = {.label = "x",
                              .store = "a.zarr",
                              .mode = (char *)m->mode,
                              .loader = "map",
                              .workers = m->workers,
                              .pool_workers = m->workers,
                              .worker_threads = m->worker_threads,
                              .prefetch = m->prefetch,
                              .batch = 32,
                              .batch_nbytes = m->batch_nbytes};
    s.rates.samples = m->rate;
    s.counts.failed_batches = m->failed;
    return s;
}

static void test_the_best(void **state)
{
    static const struct {
        const char *name;
        measured m[3];
        size_t best;
    } rows[] = {
        {"fastest",
         {{"threads", 2, 1, 2, 100, 0, 64},
          {"threads", 4, 1, 2, 180, 0, 64},
          {"threads", 8, 1, 2, 185, 0, 64}},
         2},
        {"within the noise fewer workers",
         {{"threads", 8, 1, 2, 100, 0, 64},
          {"threads", 4, 1, 2, 98.5, 0, 64},
          {"threads", 2, 1, 2, 97, 0, 64}},
         1},
        {"threads count as workers do",
         {{"threads", 4, 2, 2, 100, 0, 64},
          {"threads", 6, 1, 2, 99, 0, 64},
          {"threads", 7, 1, 2, 99, 0, 64}},
         1},
        {"no workers are fewest",
         {{"threads", 1, 1, 2, 100, 0, 64},
          {"sync", 1, 1, 2, 99, 0, 64},
          {"threads", 2, 1, 2, 99, 0, 64}},
         1},
        {"shorter prefetch",
         {{"threads", 4, 1, 8, 100, 0, 64},
          {"threads", 4, 1, 2, 99, 0, 64},
          {"threads", 4, 1, 4, 99, 0, 64}},
         1},
        {"failed ones do not count",
         {{"threads", 4, 1, 2, 300, 1, 64},
          {"threads", 4, 1, 2, 10, 0, 64},
          {"threads", 4, 1, 2, 0, 0, 64}},
         1},
        {"bytes where samples differ",
         {{"threads", 4, 1, 2, 300, 0, 64},
          {"threads", 4, 1, 2, 100, 0, 640},
          {"threads", 4, 1, 2, 290, 0, 64}},
         1},
        {"none",
         {{"threads", 4, 1, 2, 300, 1, 64},
          {"threads", 4, 1, 2, 0, 0, 64},
          {"threads", 4, 1, 2, 0, 0, 64}},
         SIZE_MAX},
    };
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        cm_readbench_session s[3];
        for (int i = 0; i < 3; i++)
            s[i] = session_of(&rows[r].m[i]);
        if (cm_readbench_best(s, 3) != rows[r].best)
            fail_msg("%s: %zu", rows[r].name, cm_readbench_best(s, 3));
    }
    assert_true(cm_readbench_best(NULL, 0) == SIZE_MAX);
}

static cm_readbench_session with_rounds(unsigned workers, double a, double b, double c)
{
    const measured m = {"threads", workers, 1, 2, a, 0, 64};
    cm_readbench_session s = session_of(&m);
    const double round[] = {a, b, c};
    memcpy(s.round, round, sizeof(round));
    s.nrounds = c > 0 ? 3 : 1;
    return s;
}

static void test_rounds_decide(void **state)
{
    static const struct {
        const char *name;
        double few[3], many[3]; /* of 2 and of 8 workers */
        size_t best;
    } rows[] = {
        {"one round each, clearly apart", {100, 0, 0}, {110, 0, 0}, 1},
        {"the same medians, and the spreads overlap", {100, 90, 108}, {104, 110, 95}, 0},
        {"the first round was luck", {130, 80, 81}, {110, 111, 112}, 1},
        {"apart in all rounds", {100, 99, 101}, {110, 109, 111}, 1},
    };
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        const double *f = rows[r].few, *m = rows[r].many;
        const cm_readbench_session s[] = {with_rounds(2, f[0], f[1], f[2]),
                                          with_rounds(8, m[0], m[1], m[2])};
        if (cm_readbench_best(s, 2) != rows[r].best)
            fail_msg("%s: %zu", rows[r].name, cm_readbench_best(s, 2));
    }
}

static void test_which_are_close(void **state)
{
    cm_readbench_session s[] = {with_rounds(1, 50, 0, 0), with_rounds(2, 90, 0, 0),
                                with_rounds(3, 100, 0, 0), with_rounds(4, 84, 0, 0),
                                with_rounds(5, 95, 0, 0)};
    cm_readbench_report report = {.session = s, .nsessions = COUNT(s)};
    size_t close[3];
    (void)state;
    assert_int_equal(cm_readbench_close(&report, close, 3), 3);
    assert_int_equal(close[0], 2);
    assert_int_equal(close[1], 4);
    assert_int_equal(close[2], 1);
    assert_int_equal(cm_readbench_close(&report, close, 2), 2);
    assert_int_equal(close[1], 4);
    s[2].rates.samples = s[2].round[0] = 1000; /* alone */
    assert_int_equal(cm_readbench_close(&report, close, 3), 0);
}

static void release_verdict(cm_readbench_report *r)
{
    for (size_t i = 0; i < r->nsessions; i++) {
        for (size_t k = 0; k < r->session[i].nfindings; k++) {
            free(r->session[i].finding[k].rule);
            free(r->session[i].finding[k].sentence);
        }
        free(r->session[i].finding);
    }
    free(r->reason);
    free(r->data_loader);
}

/* PyTorch's line is of what was run: it has no worker with threads, and no planned loader. */
static void test_no_line_for_what_was_not_run(void **state)
{
    measured m = {"threads", 1, 2, 2, 200, 0, 64};
    cm_readbench_session s[2] = {session_of(&m)};
    cm_readbench_report report = {.session = s, .nsessions = 1};
    (void)state;
    s[0].label = "workers=1,worker-threads=2";
    assert_int_equal(cm_readbench_judge_sweep(&report, NULL), CM_OK);
    assert_null(report.data_loader);
    free(report.reason);
    report.reason = NULL;
    m = (measured){"threads", 2, 1, 2, 150, 0, 64};
    s[1] = session_of(&m);
    s[1].label = "workers=2";
    report.nsessions = 2;
    assert_int_equal(cm_readbench_judge_sweep(&report, NULL), CM_OK);
    assert_int_equal(report.best, 0);
    assert_non_null(strstr(report.data_loader, "DataLoader(num_workers=2,"));
    release_verdict(&report);
}

/* Records of epochs of 10 samples that take SECONDS each. */
static void add_epochs(cm_readbench_session *s, cm_readbench_batch *record, const double *seconds)
{
    uint64_t at = 0;
    for (uint32_t e = 0; e < 3; e++) {
        const uint64_t end = at + (uint64_t)(seconds[e] * 1e9);
        record[e] = (cm_readbench_batch){.epoch = e, .nsamples = 10, .want_ns = at, .done_ns = end};
        at = end;
    }
    s->record = record;
    s->nrecords = 3;
}

static void test_stores_are_compared_in_words(void **state)
{
    static const struct {
        double first[3], second[3]; /* seconds of epochs */
        const char *says;
    } rows[] = {
        {{3, 3, 3},
         {1, 1.2, 1},
         "b.zarr: 3.00 times the samples a second of a.nc (2.50 to 3.00 in 3 rounds)"},
        {{1, 1, 1},
         {2, 2.5, 2},
         "a.nc: 2.00 times the samples a second of b.zarr (2.00 to 2.50 in 3 rounds)"},
        {{1, 1, 1}, {0.9, 1.1, 0.95}, "b.zarr and a.nc are equal within the spread: 0.91 to 1.11"},
    };
    cm_readbench_options o = plain();
    (void)state;
    o.epochs = 3;
    for (size_t r = 0; r < COUNT(rows); r++) {
        cm_readbench_batch record[2][3];
        cm_readbench_session s[2] = {{.label = "a.nc"}, {.label = "b.zarr"}};
        cm_readbench_report report = {.session = s, .nsessions = 2};
        add_epochs(&s[0], record[0], rows[r].first);
        add_epochs(&s[1], record[1], rows[r].second);
        assert_int_equal(cm_readbench_compare_sessions(&o, &report, NULL), CM_OK);
        if (strstr(report.reason, rows[r].says) == NULL)
            fail_msg("row %zu: %s", r, report.reason);
        free(report.reason);
        free(report.ratio);
        free(report.least_ratio);
        free(report.most_ratio);
    }
}

static void test_the_verdict_of_a_sweep(void **state)
{
    static const struct {
        double rate[3]; /* of 2, 4 and 8 workers */
        size_t best, saturated;
        const char *reason;
    } rows[] = {
        {{100, 180, 185}, 2, 1, "w8 gives 185 samples/s, 3 % more than the next, w4"},
        {{100, 180, 182}, 1, 1, "w4 gives 180 samples/s, within 2 % of w8 and with less"},
        {{10, 20, 30}, 2, 0, "w8 gives 30.0 samples/s, 50 % more than the next, w4"},
        {{10, 0, 0}, 0, 2, "nothing else could be measured"},
    };
    static char *const labels[] = {"w2", "w4", "w8"};
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        cm_readbench_session s[3];
        cm_readbench_report report = {.session = s, .nsessions = 3};
        for (unsigned i = 0; i < 3; i++) {
            const measured m = {"threads", 2u << i, 1, 2, rows[r].rate[i], 0, 64};
            s[i] = session_of(&m);
            s[i].label = labels[i];
        }
        assert_int_equal(cm_readbench_judge_sweep(&report, NULL), CM_OK);
        assert_int_equal(report.best, rows[r].best);
        assert_true(report.baseline == SIZE_MAX);
        if (strstr(report.reason, rows[r].reason) == NULL)
            fail_msg("row %zu: %s", r, report.reason);
        assert_non_null(strstr(report.data_loader, "DataLoader(num_workers="));
        release_verdict(&report);
    }
}

static void test_lines_for_pytorch(void **state)
{
    cm_readbench_setting once[] = {{"persistent", "false"}};
    cm_readbench_session s = {.mode = "sync", .workers = 1, .prefetch = 2};
    (void)state;
    char *line = cm_readbench_data_loader(&s, NULL);
    assert_string_equal(line, "DataLoader(num_workers=0)");
    free(line);
    s.mode = "processes";
    s.workers = 6;
    s.prefetch = 4;
    line = cm_readbench_data_loader(&s, NULL);
    assert_string_equal(line, "DataLoader(num_workers=6, prefetch_factor=4, "
                              "persistent_workers=True, multiprocessing_context=\"forkserver\")");
    free(line);
    s.device.used = true; /* this machine's memory has no driver, and nothing is copied to a GPU */
    s.device.driver = (char[]){""};
    line = cm_readbench_data_loader(&s, NULL);
    assert_null(strstr(line, "pin_memory"));
    free(line);
    s.device.driver = (char[]){"550.54.15, CUDA 12.4"};
    line = cm_readbench_data_loader(&s, NULL);
    assert_non_null(strstr(line, "\"forkserver\", pin_memory=True)"));
    free(line);
    s.setting = once;
    s.nsettings = 1;
    line = cm_readbench_data_loader(&s, NULL);
    assert_non_null(strstr(line, "persistent_workers=False"));
    free(line);
}

/* ---- tuning -------------------------------------------------------------------------------- */

/* Samples/s of a setting without steps. */
typedef double machine(const cm_readbench_options *o, unsigned workers);

typedef struct tuning {
    cm_readbench_session session[CM_TUNE_MAX_RUNS];
    cm_readbench_options run[CM_TUNE_MAX_RUNS];
    char label[CM_TUNE_MAX_RUNS][96];
    cm_readbench_report report;
    size_t nrefused;
} tuning;

/* Runs all that the tuner asks for on MACHINE, whose steps take at most STEPS samples/s. */
static void tune(tuning *t, const cm_readbench_options *o, unsigned cpus, machine *rate,
                 double steps)
{
    cm_readbench_options next;
    cm_tuner *tuner;
    const char *label;

    *t = (tuning){.report = {.session = t->session, .advice = {.cpus = cpus}}};
    t->report.advice.workers = cpus > 2 ? cpus - 2 : 1;
    t->report.advice.threads = cpus > 3 ? 1 : 2;
    assert_int_equal(cm_tuner_create(o, &tuner, NULL), CM_OK);
    while (cm_tuner_next(tuner, &t->report, &next, &label)) {
        const size_t i = t->report.nsessions;
        const bool sync = next.mode != NULL && strcmp(next.mode, "sync") == 0;
        assert_true(i < CM_TUNE_MAX_RUNS);
        if (next.prefetch > 8) { /* does not fit this machine's memory */
            cm_tuner_refused(tuner);
            t->nrefused++;
            continue;
        }
        double loader = rate(&next, sync ? 0 : next.workers);
        double got = sync ? 1 / (1 / loader + 1 / steps) : loader < steps ? loader : steps;
        measured m = {sync ? "sync" : "threads",
                      sync ? 1 : next.workers,
                      next.worker_threads,
                      next.prefetch,
                      got,
                      0,
                      64};
        t->session[i] = session_of(&m);
        t->session[i].wait_share = 1 - got / steps;
        t->session[i].loader = (char *)next.loader;
        t->run[i] = next;
        strcpy(t->label[i], label);
        t->session[i].label = t->label[i];
        t->report.nsessions++;
    }
    size_t again, session, counted[CM_TUNE_MAX_RUNS] = {0};
    for (again = 0; cm_tuner_again(tuner, &t->report, &next, &session); again++) {
        assert_true(session < t->report.nsessions);
        assert_int_equal(next.workers, t->run[session].workers); /* the very setting */
        assert_int_equal(next.prefetch, t->run[session].prefetch);
        counted[session]++;
    }
    for (size_t i = 0; i < t->report.nsessions; i++)
        assert_true(counted[i] == 0 || counted[i] == CM_READBENCH_ROUNDS - 1);
    assert_true(t->report.nsessions + again <= CM_TUNE_MAX_RUNS);
    assert_int_equal(cm_tuner_judge(tuner, &t->report, NULL), CM_OK);
    cm_tuner_free(tuner);
}

static double by_cpus(const cm_readbench_options *o, unsigned workers)
{
    const unsigned threads = workers == 0 ? 1 : workers * o->worker_threads;
    return 10.0 * (threads < 8 ? threads : 8);
}

static double by_latency(const cm_readbench_options *o, unsigned workers)
{
    (void)o;
    return 10.0 * (workers == 0 ? 1 : workers); /* each waits for its own requests */
}

static double by_plan(const cm_readbench_options *o, unsigned workers)
{
    return by_cpus(o, workers) * (strcmp(o->loader, "planned") == 0 ? 5 : 1);
}

static double by_prefetch(const cm_readbench_options *o, unsigned workers)
{
    return by_cpus(o, workers) * (1 - 1.0 / (1 + o->prefetch));
}

static double failing(const cm_readbench_options *o, unsigned workers)
{
    (void)o;
    (void)workers;
    return 0;
}

static void test_tuning(void **state)
{
    static const struct {
        const char *name;
        machine *rate;
        double steps; /* samples/s */
        unsigned cpus, workers, prefetch;
        bool planned;
    } rows[] = {
        {"eight CPUs are enough", by_cpus, 1000, 10, 8, 2, false},
        {"fewer workers will do", by_cpus, 32, 10, 4, 2, false},
        {"slow steps need none", by_cpus, 0.1, 10, 0, 2, false},
        {"latency wants many", by_latency, 1000, 8, 24, 2, false},
        {"a plan", by_plan, 1000, 10, 8, 2, true},
        {"a longer prefetch", by_prefetch, 1000, 10, 8, 8, false},
        {"two CPUs", by_cpus, 1000, 2, 4, 2, false},
    };
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        cm_readbench_options o = plain();
        static tuning t;
        tune(&t, &o, rows[r].cpus, rows[r].rate, rows[r].steps);
        if (t.report.best == SIZE_MAX)
            fail_msg("%s: none", rows[r].name);
        const cm_readbench_options *best = &t.run[t.report.best];
        if (best->workers != rows[r].workers || best->prefetch != rows[r].prefetch ||
            (strcmp(best->loader, "planned") == 0) != rows[r].planned)
            fail_msg("%s: %s of %zu: %s", rows[r].name, t.label[t.report.best], t.report.nsessions,
                     t.report.reason);
        assert_string_equal(t.label[0], "baseline");
        assert_string_equal(t.run[0].mode, "sync");
        assert_int_equal(t.run[1].workers, t.report.advice.workers);
        assert_int_equal(t.report.baseline, 0);
        assert_true(t.report.nsessions <= CM_TUNE_MAX_RUNS);
        /* No setting is run twice. */
        for (size_t i = 0; i < t.report.nsessions; i++)
            for (size_t j = 0; j < i; j++)
                if (strcmp(t.label[i], t.label[j]) == 0)
                    fail_msg("%s: %s twice", rows[r].name, t.label[i]);
        assert_non_null(strstr(t.report.data_loader, "DataLoader(num_workers="));
        assert_non_null(strstr(t.report.reason, "baseline"));
        release_verdict(&t.report);
    }
}

static void test_the_users_own_is_the_baseline(void **state)
{
    cm_readbench_options o = plain();
    static tuning t;
    (void)state;
    o.mode = "processes";
    o.workers = 3;
    o.worker_threads = 2;
    o.prefetch = 4;
    o.loader = "planned";
    o.window = 64;
    o.worker_memory = 1 << 20;
    tune(&t, &o, 10, by_cpus, 1000);
    assert_string_equal(t.run[0].mode, "processes");
    assert_int_equal(t.run[0].workers, 3);
    assert_int_equal(t.run[0].worker_threads, 2);
    assert_int_equal(t.run[0].prefetch, 4);
    assert_int_equal(t.run[0].window, 64);
    assert_int_equal(t.run[0].worker_memory, 1 << 20);
    for (size_t i = 0; i < t.report.nsessions; i++)
        assert_int_equal(t.run[i].window, strcmp(t.run[i].loader, "map") == 0 ? 0 : 64);
    release_verdict(&t.report);
}

static void test_limits_of_the_user(void **state)
{
    cm_readbench_options o = plain();
    static tuning t;
    (void)state;
    o.nthreads = 5;
    o.unordered = true;
    o.mode = "sync";
    tune(&t, &o, 10, by_cpus, 1000);
    assert_true(t.report.nsessions > 3);
    for (size_t i = 0; i < t.report.nsessions; i++) {
        assert_true(t.run[i].workers * t.run[i].worker_threads <= 5);
        assert_string_equal(t.run[i].loader, "map"); /* the plan's order is its own */
        assert_string_equal(t.run[i].mode, i == 0 ? "sync" : "threads");
    }
    assert_int_equal(t.run[1].workers, 5);
    release_verdict(&t.report);
}

static void test_tuning_when_things_fail(void **state)
{
    cm_readbench_options o = plain();
    static tuning t;
    (void)state;
    tune(&t, &o, 10, failing, 1000); /* nothing works: baseline and advice were tried */
    assert_int_equal(t.report.nsessions, 2);
    assert_true(t.report.best == SIZE_MAX);
    assert_null(t.report.reason);
    release_verdict(&t.report);

    o.prefetch = 8;
    tune(&t, &o, 10, by_prefetch, 1000); /* 16 does not fit, and is not asked for again */
    assert_int_equal(t.nrefused, 1);
    assert_int_equal(t.run[t.report.best].prefetch, 8);
    release_verdict(&t.report);
}

/* Where chunks are decoded again and again, and all CPUs are busy, the other loader comes first. */
static void test_the_most_promising_step_first(void **state)
{
    cm_readbench_finding busy[] = {{"cpu-bound", "all 4 CPUs were busy"}};
    cm_readbench_options o = plain(), next;
    cm_readbench_session s[3];
    cm_readbench_report report = {.session = s, .advice = {.cpus = 4, .workers = 2, .threads = 1}};
    const char *label;
    cm_tuner *tuner;
    (void)state;

    assert_int_equal(cm_tuner_create(&o, &tuner, NULL), CM_OK);
    for (unsigned i = 0; i < 3; i++) {
        const measured m = {i ? "threads" : "sync", i ? 2 : 1, 1, 2, 10.0 * (i + 1), 0, 64};
        assert_true(cm_tuner_next(tuner, &report, &next, &label));
        assert_string_equal(next.loader, i == 2 ? "planned" : "map");
        s[i] = session_of(&m);
        s[i].wait_share = 0.9;
        s[i].amplification[0] = 8;
        s[i].finding = busy;
        s[i].nfindings = 1;
        report.nsessions++;
    }
    while (cm_tuner_next(tuner, &report, &next, &label))
        assert_true(next.workers * next.worker_threads <= 2);
    cm_tuner_free(tuner);
}

/* The planned loader's workers are threads: it is tried with as many as the best had in all. */
static void test_the_planned_loader_has_single_threads(void **state)
{
    cm_readbench_options o = plain(), next;
    cm_readbench_session s[2];
    cm_readbench_report report = {.session = s, .advice = {.cpus = 4, .workers = 1, .threads = 3}};
    const char *label;
    cm_tuner *tuner;
    (void)state;

    o.worker_threads = 0;
    assert_int_equal(cm_tuner_create(&o, &tuner, NULL), CM_OK);
    for (unsigned i = 0; i < 2; i++) {
        const measured m = {i ? "threads" : "sync", 1, i ? 3 : 1, 2, 10.0 * (i + 1), 0, 64};
        assert_true(cm_tuner_next(tuner, &report, &next, &label));
        s[i] = session_of(&m);
        s[i].wait_share = 0.9;
        s[i].amplification[0] = 8;
        report.nsessions++;
    }
    assert_true(cm_tuner_next(tuner, &report, &next, &label));
    assert_string_equal(next.loader, "planned");
    assert_int_equal(next.workers, 3);
    assert_int_equal(next.worker_threads, 1);
    cm_tuner_free(tuner);
}

/* A planned loader that is foreseen to be faster over an epoch is named beside the best. */
static void test_a_whole_epoch_is_named(void **state)
{
    (void)state;
    for (int faster = 0; faster < 2; faster++) {
        const measured row[] = {{"threads", 2, 1, 2, 100, 0, 64}, {"threads", 2, 1, 2, 20, 0, 64}};
        cm_readbench_session s[2];
        cm_readbench_report report = {.session = s, .nsessions = 2, .baseline = 0};
        for (unsigned i = 0; i < 2; i++) {
            s[i] = session_of(&row[i]);
            s[i].label = (char *)(i ? "planned" : "map");
        }
        s[1].epoch_rate = faster ? 5000 : 90;
        assert_int_equal(cm_readbench_judge_tuning(&report, NULL), CM_OK);
        assert_int_equal(report.best, 0);
        assert_int_equal(strstr(report.reason, "planned gave 20") != NULL, faster);
        assert_int_equal(strstr(report.reason, "up to 5000 samples/s") != NULL, faster);
        free(report.reason);
        free(report.data_loader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best),
        cmocka_unit_test(test_rounds_decide),
        cmocka_unit_test(test_which_are_close),
        cmocka_unit_test(test_no_line_for_what_was_not_run),
        cmocka_unit_test(test_stores_are_compared_in_words),
        cmocka_unit_test(test_the_verdict_of_a_sweep),
        cmocka_unit_test(test_lines_for_pytorch),
        cmocka_unit_test(test_tuning),
        cmocka_unit_test(test_the_users_own_is_the_baseline),
        cmocka_unit_test(test_limits_of_the_user),
        cmocka_unit_test(test_tuning_when_things_fail),
        cmocka_unit_test(test_the_most_promising_step_first),
        cmocka_unit_test(test_the_planned_loader_has_single_threads),
        cmocka_unit_test(test_a_whole_epoch_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
