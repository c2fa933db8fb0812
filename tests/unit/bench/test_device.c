/*
 * Batches on their way to a device, on the one that every machine has: what arrives,
 * what overlaps, what validation finds.
 */
#include "../fixtures/readbench_fixture.h"

#include <dlfcn.h>
#include <math.h>

#include "../../support/lib/fake_cuda.h"

static const field fields[] = {
    {"v", "tyx", {15, 16, 18}, {4, 5, 7}, {0}, FIELD_INT16, 0, 0, true, 0},
    {"u", "tyx", {15, 16, 18}, {2, 16, 9}, {0}, FIELD_FLOAT32, 0, 0, 0, 0}};
enum {
    BATCHES = 6,
    BATCH = 4,
    V_NBYTES = 2 * 96,
    U_NBYTES = 4 * 96,
    BATCH_NBYTES = BATCH * (V_NBYTES + U_NBYTES)
};
static char *path;
static char driver[4096], nvml[4096]; /* fakes of NVIDIA's */

static int make_stores(void **state)
{
    if (make_folder(state) != 0)
        return -1;
    path = make_store("staged.zarr", ZARR_V3, fields, 2);
    return 0;
}

static int remove_stores(void **state)
{
    free(path);
    return remove_folder(state);
}

static cm_readbench_options staged_options(const char *const *list)
{
    static const char *const variables[] = {"v,u"};
    cm_readbench_options o = quick_options(list, 1);
    o.variables = (cm_texts){variables, 1};
    o.sample = "t=2,y=6,x=8";
    o.batch = BATCH;
    o.batches = BATCHES;
    o.device = "host";
    return o;
}

static void test_what_arrives(void **state)
{
    static const char *const stagings[] = {"pinned", "pageable"};
    static const char *const loaders[] = {"map", "planned"};
    (void)state;
    for (int i = 0; i < 48; i += (int)stride(5))
        for (size_t k = 0; k < 3; k++) {
            const char *const list[] = {path};
            char what[64];
            cm_readbench_options o = staged_options(list);
            cm_readbench_report r;
            set_kind(&o, &kinds[k]);
            o.staging = stagings[i % 2];
            o.no_overlap = i / 2 % 2;
            o.device_step = i / 4 % 2;
            o.validate = (cm_readbench_validate)(CM_READBENCH_VALIDATE_NONE + i / 8 % 3);
            o.loader = loaders[i / 24];
            o.accelerators = i % 5 == 0 ? 2 : 1;
            o.step_forward = 0.0005;
            o.log_samples = true;
            snprintf(what, sizeof what, "%s, row %d", kinds[k].name, i);
            run(&o, &r, what);
            const cm_readbench_session *s = &r.session[0];
            const uint64_t nbatches = (uint64_t)BATCHES * o.accelerators;
            check_bytes(s, fields, 2, what);
            check_complete(s, 2, nbatches * BATCH, what);
            assert_true(s->device.used);
            assert_string_equal(s->device.kind, "host");
            assert_int_equal(s->device.mismatches, 0);
            const bool checked = o.validate != CM_READBENCH_VALIDATE_NONE;
            assert_int_equal(s->device.validated_batches, checked ? nbatches : 0);
            assert_int_equal(s->device.validated_nbytes, checked ? nbatches * BATCH_NBYTES : 0);
            if (i % 2 != 0)
                assert_true(s->device.locked_nbytes == 0);
            assert_true(s->device.copied > 0);
            for (size_t b = 0; b < s->nrecords; b++) {
                const cm_readbench_batch *x = &s->record[b];
                assert_true(x->ready_ns >= x->got_ns && x->done_ns >= x->ready_ns);
                assert_true(x->copy_ns > 0 && x->copy_start_ns >= x->got_ns);
                assert_true(x->copy_start_ns + x->copy_ns <= x->ready_ns);
                assert_true(x->done_ns >= x->want_ns + 400000); /* the step's length, and clocks */
            }
            cm_readbench_report_release(&r);
        }
}

/* With a cast on the way the same holds, and batches are as large as what they become. */
static void test_a_cast_is_staged(void **state)
{
    (void)state;
    const char *const list[] = {path};
    cm_readbench_options o = staged_options(list);
    cm_readbench_report r;
    o.cast = "bfloat16";
    o.unpack = true;
    run(&o, &r, "cast");
    assert_int_equal(r.session[0].batch_nbytes, BATCH * 2 * 96 * 2);
    assert_int_equal(r.session[0].device.validated_nbytes, BATCHES * BATCH * 2 * 96 * 2);
    assert_int_equal(r.session[0].device.mismatches, 0);
    cm_readbench_report_release(&r);
}

/* ---- flipped bits ---- */

static void check_flip(cm_readbench_validate how, const char *loader, const cm_device_fault *fault)
{
    const char *const list[] = {path};
    const cm_device_hooks hooks = {.faults = fault, .nfaults = 1};
    struct cm_readbench_hook hook = {.device = &hooks, .no_probe = true};
    cm_readbench_options o = staged_options(list);
    cm_readbench_report r;
    cm_error err = {0};
    char batch[32], variable[32], offset[32];
    const bool in_u = fault->offset < BATCH * U_NBYTES; /* larger elements come first */
    o.loader = loader;
    o.epochs = 1;
    o.validate = how;
    o.hook = &hook;
    assert_int_equal(cm_readbench(&o, NULL, &r, &err), CM_EDIFFER);
    snprintf(batch, sizeof batch, "batch %d", (int)fault->batch);
    snprintf(variable, sizeof variable, "variable %s", in_u ? "u" : "v");
    snprintf(offset, sizeof offset, "%d",
             (int)(in_u ? fault->offset : fault->offset - BATCH * U_NBYTES));
    if (strstr(err.text, batch) == NULL || strstr(err.text, variable) == NULL ||
        strstr(err.text, offset) == NULL || strstr(err.text, "staged.zarr") == NULL)
        fail_msg("%s, %s, byte %s: %s", batch, variable, offset, err.text);
    assert_int_equal(r.session[0].device.mismatches, 1);
    assert_int_equal(r.session[0].device.validated_batches, BATCHES);
    assert_true(has_finding(&r.session[0], "validation"));
    assert_int_equal(r.session[0].counts.failed_batches, 0);
    cm_readbench_report_release(&r);
}

static void test_every_flip_is_caught(void **state)
{
    uint64_t seed = 11;
    (void)state;
    for (int i = 0; i < 60; i += (int)stride(7)) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const cm_device_fault fault = {.batch = (seed >> 20) % BATCHES,
                                       .offset = i == 0   ? 0
                                                 : i == 1 ? BATCH_NBYTES - 1
                                                          : (seed >> 30) % BATCH_NBYTES,
                                       .mask = (uint8_t)(1 << (seed >> 60) % 8)};
        check_flip(i % 2 ? CM_READBENCH_VALIDATE_FULL : CM_READBENCH_VALIDATE_CHECKSUM,
                   i / 2 % 2 ? "planned" : "map", &fault);
    }
}

/* Without validation nothing is found, and nothing is claimed. */
static void test_what_is_not_validated(void **state)
{
    (void)state;
    const char *const list[] = {path};
    const cm_device_fault fault = {.batch = 1, .offset = 5, .mask = 1};
    const cm_device_hooks hooks = {.faults = &fault, .nfaults = 1};
    struct cm_readbench_hook hook = {.device = &hooks, .no_probe = true};
    cm_readbench_options o = staged_options(list);
    cm_readbench_report r;
    o.hook = &hook;
    o.validate = CM_READBENCH_VALIDATE_NONE;
    run(&o, &r, "not validated");
    assert_int_equal(r.session[0].device.validated_nbytes, 0);
    cm_readbench_report_release(&r);
}

/* ---- a GPU ---- */

/* With the memory of batches still there when it is unlocked, which the fake looks at. */
static void test_a_gpu_gets_everything_back(void **state)
{
    void *library = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
    const fake_cuda_state *fake = library != NULL ? dlsym(library, "fake_cuda") : NULL;
    (void)state;
    assert_non_null(fake);
    for (int i = 0; i < 12; i++) {
        const char *const list[] = {path, path};
        const cm_device_hooks hooks = {.cuda_driver = driver, .sysfs = "/nonexistent"};
        struct cm_readbench_hook hook = {.device = &hooks, .no_probe = i % 2};
        cm_readbench_options o = staged_options(list);
        cm_readbench_report r;
        set_kind(&o, &kinds[i % NKINDS]);
        o.store.n = 1 + i % 2;
        o.device = "cuda:1";
        o.device_step = i / 4 % 2;
        o.no_persistent = i / 8 % 2;
        o.step_forward = 0.0005;
        o.validate = i % 3 == 0 ? CM_READBENCH_VALIDATE_NONE : CM_READBENCH_VALIDATE_FULL;
        o.hook = &hook;
        run(&o, &r, "a GPU");
        for (size_t k = 0; k < r.nsessions; k++) {
            const cm_readbench_device *d = &r.session[k].device;
            assert_string_equal(d->name, "fake device 1");
            assert_string_equal(d->driver, "CUDA 12.4");
            assert_true(d->locked_nbytes > 0);
            assert_true(d->copied > 0);
            assert_int_equal(d->mismatches, 0);
            assert_int_equal(d->validated_batches, i % 3 == 0 ? 0 : BATCHES);
        }
        assert_int_equal(fake->ncontexts, 0);
        assert_int_equal(fake->nmodules, 0);
        assert_int_equal(fake->nstreams, 0);
        assert_int_equal(fake->nevents, 0);
        assert_int_equal(fake->nallocated, 0);
        assert_int_equal(fake->nregistered, 0);
        cm_readbench_report_release(&r);
    }
}

/* NVML numbers GPUs in its own way: the one that is used is known by its place on the bus. */
static void test_the_gpu_that_is_used_is_watched(void **state)
{
    static const struct {
        const char *device;
        float busy, memory; /* negative: not known */
    } rows[] = {{"cuda", 0.4f, 0.5f}, {"cuda:1", -1, 0.25f}, {"host", -1, -1}};
    (void)state;
    void *library = dlopen(nvml, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const list[] = {path};
        const cm_device_hooks hooks = {.cuda_driver = driver, .sysfs = "/nonexistent"};
        struct cm_readbench_hook hook = {.device = &hooks, .no_probe = true};
        cm_readbench_options o = staged_options(list);
        cm_readbench_report r;
        o.device = rows[i].device;
        o.step_forward = 0.01;
        o.sample_ms = 5;
        o.hook = &hook;
        run(&o, &r, rows[i].device);
        const cm_readbench_session *s = &r.session[0];
        assert_true(s->nlooks > 2);
        for (size_t k = 0; k < s->nlooks; k++) {
            assert_true(fabsf(s->look[k].gpu - rows[i].busy) < 1e-6f);
            assert_true(fabsf(s->look[k].gpu_memory - rows[i].memory) < 1e-6f);
        }
        cm_readbench_report_release(&r);
    }
    dlclose(library);
}

/* ---- overlap ---- */

/* Where copies overlap the next batch is taken during a step; elsewhere not before it has ended. */
static void test_overlap_is_seen(void **state)
{
    (void)state;
    for (int overlaps = 0; overlaps < 2; overlaps++)
        for (int device_step = 0; device_step < 2; device_step++) {
            const char *const list[] = {path};
            cm_readbench_options o = staged_options(list);
            cm_readbench_report r;
            unsigned during = 0, ready = 0;
            o.step_forward = 0.01;
            o.no_overlap = !overlaps;
            o.device_step = device_step;
            run(&o, &r, "overlap");
            const cm_readbench_session *s = &r.session[0];
            for (size_t i = 0; i < s->nrecords; i++) {
                during += s->record[i].got_ns < s->record[i].want_ns;
                ready += s->record[i].ready_ns <= s->record[i].want_ns + 2000000;
            }
            /* All but the first of each epoch; half of those on a machine with other work. */
            assert_true(during <= (overlaps ? 2 * (BATCHES - 1) : 0));
            if (overlaps) {
                assert_true(during >= BATCHES - 1 && ready >= BATCHES - 1);
                assert_true(s->device.overlap >
                            0); /* the first copy, never hidden, is the slowest */
            } else {
                assert_true(s->device.overlap == 0);
            }
            cm_readbench_report_release(&r);
        }
}

/* Seconds of the epochs of a run, with or without a device to which copying is free. */
static double seconds_of(bool staged, const char *const *list)
{
    const cm_device_hooks hooks = {.free_copies = true};
    struct cm_readbench_hook hook = {.device = &hooks, .no_probe = true};
    cm_readbench_options o = staged_options(list);
    cm_readbench_report r;
    o.batches = 0;
    o.batch = 32;
    o.epochs = 10;
    o.device = staged ? "host" : NULL;
    o.validate = CM_READBENCH_VALIDATE_NONE;
    o.hook = &hook;
    run(&o, &r, "free copies");
    const double seconds = r.session[0].wall_seconds;
    cm_readbench_report_release(&r);
    return seconds;
}

/* Told, and not demanded of a machine that has other work too: in pairs, the middle of five. */
static void test_what_staging_costs(void **state)
{
    (void)state;
    const char *const list[] = {path};
    double ratio[5];
    for (int i = 0; i < 5; i++) {
        ratio[i] = seconds_of(false, list) / seconds_of(true, list);
        for (int k = i; k > 0 && ratio[k] < ratio[k - 1]; k--) {
            const double swap = ratio[k];
            ratio[k] = ratio[k - 1];
            ratio[k - 1] = swap;
        }
    }
    print_message("[   INFO   ] staged with free copies: %.2f of the throughput without\n",
                  ratio[2]);
    assert_true(isfinite(ratio[2]) && ratio[2] > 0);
}

/* ---- what is refused ---- */

static void test_refusals(void **state)
{
    static const struct {
        const char *device, *staging, *says;
        unsigned slots;
        uint64_t slot_nbytes;
        cm_device_hooks hooks;
        int status;
    } rows[] = {
        {NULL, "pinned", "`device`", 0, 0, {0}, CM_EINVAL},
        {"host", NULL, "`slots` 1", 1, 0, {0}, CM_EINVAL},
        {"host", NULL, "`slot_nbytes`", 0, 100, {0}, CM_EINVAL},
        {"tpu", NULL, "`device` tpu", 0, 0, {0}, CM_EINVAL},
        {"cuda", NULL, "`device` cuda", 0, 0, {.cuda_driver = "/nowhere/libcuda.so"}, CM_ENOTFOUND},
        {"host", NULL, "`device` host", 0, 0, {.memory_nbytes = 1000}, CM_ENOMEM},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const list[] = {path};
        struct cm_readbench_hook hook = {.device = &rows[i].hooks, .no_probe = true};
        cm_readbench_options o = staged_options(list);
        cm_readbench_report r;
        cm_error err = {0};
        o.device = rows[i].device;
        o.staging = rows[i].staging;
        o.slots = rows[i].slots;
        o.slot_nbytes = rows[i].slot_nbytes;
        o.hook = &hook;
        const int rc = cm_readbench(&o, NULL, &r, &err);
        if (rc != rows[i].status || strstr(err.text, rows[i].says) == NULL)
            fail_msg("row %zu: %d: %s", i, rc, err.text);
        cm_readbench_report_release(&r);
    }
}

/* Options about a device need one. */
static void test_a_device_that_is_missing(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *const list[] = {path};
        cm_readbench_options o = staged_options(list);
        cm_readbench_report r;
        cm_error err = {0};
        o.device = i ? "none" : NULL;
        o.device_step = i;
        o.no_overlap = !i;
        assert_int_equal(cm_readbench(&o, NULL, &r, &err), CM_EINVAL);
        assert_string_equal(err.text, i ? "`device_step`: needs a device; give `device`"
                                        : "`no_overlap`: needs a device; give `device`");
        cm_readbench_report_release(&r);
    }
}

/* Memory that cannot be locked is told, and used all the same. */
static void test_a_lock_that_is_refused(void **state)
{
    (void)state;
    const char *const list[] = {path};
    const cm_device_hooks hooks = {.refuse_lock = true};
    struct cm_readbench_hook hook = {.device = &hooks, .no_probe = true};
    cm_readbench_options o = staged_options(list);
    cm_readbench_report r;
    o.hook = &hook;
    run(&o, &r, "lock");
    assert_true(r.session[0].device.locked_nbytes == 0);
    assert_int_equal(r.nwarnings, 1);
    assert_non_null(strstr(r.warning[0], "not page-locked"));
    cm_readbench_report_release(&r);
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_arrives),
        cmocka_unit_test(test_a_cast_is_staged),
        cmocka_unit_test(test_every_flip_is_caught),
        cmocka_unit_test(test_what_is_not_validated),
        cmocka_unit_test(test_a_gpu_gets_everything_back),
        cmocka_unit_test(test_the_gpu_that_is_used_is_watched),
        cmocka_unit_test(test_overlap_is_seen),
        cmocka_unit_test(test_what_staging_costs),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_device_that_is_missing),
        cmocka_unit_test(test_a_lock_that_is_refused),
    };
    const char *slash = strrchr(argv[0], '/');
    const int nfolder = slash != NULL ? (int)(slash - argv[0]) : 1;
    const char *program = slash != NULL ? argv[0] : ".";
    snprintf(driver, sizeof driver, "%.*s/../../lib/fake_cuda_12.so", nfolder, program);
    snprintf(nvml, sizeof nvml, "%.*s/../../lib/fake_nvml.so", nfolder, program);
    return cmocka_run_group_tests_name("readbench_device", tests, make_stores, remove_stores);
}
