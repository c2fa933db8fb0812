/* Sweeps as they are typed. */

#include "../../../tools/readbench/readbench.h"
#include "../unit.h"

static const char *STORE[] = {"a.zarr"};
static const cm_texts PATHS = {STORE, 1};

static int make(const char **text, size_t n, readbench_sweep *out, cm_error *err)
{
    readbench_values v;
    const cm_common_options common = {.memory = 1 << 20};
    readbench_values_init(&v);
    v.o.mode = "processes";
    v.sweep = (cm_texts){text, n};
    return readbench_sweep_make(&v, &common, &PATHS, out, err);
}

static readbench_sweep sweep(const char **text, size_t n)
{
    readbench_sweep out;
    cm_error err;
    if (make(text, n, &out, &err) != CM_OK)
        fail_msg("%s: %s", text[0], err.text);
    return out;
}

static void test_every_combination(void **state)
{
    static const char *text[] = {"workers=0,4", "sample=time=1,lat=64;time=24,lat=64;",
                                 "cold=yes,no"};
    static const char *const labels[] = {
        "workers=0,sample=time=1,lat=64,cold=yes",  "workers=0,sample=time=1,lat=64,cold=no",
        "workers=0,sample=time=24,lat=64,cold=yes", "workers=0,sample=time=24,lat=64,cold=no",
        "workers=4,sample=time=1,lat=64,cold=yes",  "workers=4,sample=time=1,lat=64,cold=no",
        "workers=4,sample=time=24,lat=64,cold=yes", "workers=4,sample=time=24,lat=64,cold=no"};
    (void)state;
    readbench_sweep p = sweep(text, 3);
    assert_int_equal(p.n, 8);
    for (size_t i = 0; i < p.n; i++) {
        const cm_readbench_options *at = p.point[i].options;
        assert_string_equal(p.point[i].label, labels[i]);
        assert_int_equal(at->workers, i < 4 ? 0 : 4);
        assert_string_equal(at->mode, i < 4 ? "sync" : "processes");
        assert_string_equal(at->sample, i % 4 < 2 ? "time=1,lat=64" : "time=24,lat=64");
        assert_int_equal(at->cold, i % 2 == 0);
        assert_int_equal(at->npoints, 0);
        assert_int_equal(at->memory, 1 << 20);
        assert_int_equal(at->batch, 32); /* what is not swept stays */
    }
    readbench_sweep_release(&p);
    readbench_sweep_release(&p);
    readbench_sweep_release(NULL);
}

static void test_values_of_every_kind(void **state)
{
    static const char *text[] = {"variable=t2m;u10,v10",
                                 "cache=1GiB",
                                 "step-time-per-sample=2ms",
                                 "validate=checksum",
                                 "order=strided:4",
                                 "step-time=forward=30ms,other=1s;",
                                 "batch=64",
                                 "worker-threads=3",
                                 "emulate=latency=1ms,bandwidth=1GB/s;",
                                 "engine=exec:python3 x.py"};
    (void)state;
    readbench_sweep p = sweep(text, COUNT(text));
    assert_int_equal(p.n, 2);
    const cm_readbench_options *at = p.point[1].options;
    assert_int_equal(at->variables.n, 1);
    assert_string_equal(at->variables.text[0], "u10,v10");
    assert_true(at->cache_nbytes == UINT64_C(1) << 30);
    assert_true(at->step_per_sample == 0.002);
    assert_int_equal(at->validate, CM_READBENCH_VALIDATE_CHECKSUM);
    assert_string_equal(at->order, "strided:4");
    assert_true(at->step_forward == 0.03 && at->step_backward == 0 && at->step_other == 1);
    assert_int_equal(at->batch, 64);
    assert_int_equal(at->worker_threads, 3);
    assert_string_equal(at->emulate, "latency=1ms,bandwidth=1GB/s");
    assert_string_equal(at->engine, "exec:python3 x.py");
    assert_true(strlen(p.point[1].label) <= 120); /* it names a folder */
    readbench_sweep_release(&p);
}

static void test_sweeps_refused(void **state)
{
    static const struct {
        const char *text[2];
        const char *says;
    } rows[] = {
        {{"workers"}, "KEY=V1,V2"},
        {{"workers="}, "KEY=V1,V2"},
        {{"=4"}, "KEY"},
        {{"wokers=4"}, "--sweep wokers=4: wokers is not an option"},
        {{"out=a,b"}, "out is not an option"},
        {{"rank=0,1"}, "rank=1: --rank must be below --world-size"},
        {{"workers=4,many"}, "many"},
        {{"workers=4,"}, "empty"},
        {{"workers=4,,8"}, "empty"},
        {{"workers=4,8,4"}, "4 is given twice"},
        {{"workers=4294967296"}, "4294967296"},
        {{"worker-threads=0"}, "between 1 and"},
        {{"batch=0"}, "less than 1"},
        {{"prefetch=65537"}, "between 1 and 65536"},
        {{"mode=threads,fibers"}, "--mode takes sync|threads|processes, not 'fibers'"},
        {{"cold=true"}, "yes or no"},
        {{"cache=much"}, "much"},
        {{"sample=time=1,lat=64"}, "separated by semicolons"},
        {{"emulate=latency=1ms,bandwidth=1GB/s"}, "semicolons"},
        {{"step-time=sideways=1s;"}, "sideways=1s"},
        {{"validate=some"}, "--validate takes none|checksum|full, not 'some'"},
        {{"workers=1,2", "workers=4"}, "workers is given twice"},
    };
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        readbench_sweep p;
        cm_error err = {0};
        const char *text[2] = {rows[r].text[0], rows[r].text[1]};
        if (make(text, text[1] != NULL ? 2 : 1, &p, &err) != CM_EINVAL ||
            !strstr(err.text, "--sweep") || !strstr(err.text, rows[r].says))
            fail_msg("%s: %s", rows[r].text[0], err.text);
        readbench_sweep_release(&p);
    }
}

static void test_too_many_combinations(void **state)
{
    static const char *text[] = {"seed=1,2,3,4,5,6,7,8,9,10,11", "workers=1,2,3,4,5,6,7,8,9,10",
                                 "prefetch=1,2,3,4,5,6,7,8,9,10"};
    readbench_sweep p;
    cm_error err;
    (void)state;
    assert_int_equal(make(text, 3, &p, &err), CM_EINVAL);
    assert_non_null(strstr(err.text, "more than 1024"));
    readbench_sweep_release(&p);
}

/* Every option that changes what is measured can be swept; what a run does once cannot. */
static void test_which_options(void **state)
{
    static const char *const once[] = {
        "sweep",     "tune",        "advise",  "cpus",        "reserve",         "out",
        "no-out",    "compare",     "trace",   "log-samples", "sample-interval", "overwrite",
        "anonymous", "concurrency", "timeout", "absent-403",  "allow",           "checksum",
        "rank-wait", "replay",      "preset"};
    const cm_option *o;
    bool common;
    (void)state;
    for (size_t i = 0; (o = cm_tool_option(&READBENCH, i, &common)) && !common; i++) {
        bool is_once = false;
        for (size_t k = 0; k < COUNT(once); k++)
            is_once = is_once || strcmp(o->name, once[k]) == 0;
        if (o->swept == is_once)
            fail_msg("%s", o->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_combination), cmocka_unit_test(test_values_of_every_kind),
        cmocka_unit_test(test_sweeps_refused),    cmocka_unit_test(test_too_many_combinations),
        cmocka_unit_test(test_which_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
