/* Messages and clean-up of the device `cuda` when its driver fails, with a fake driver. */
#include <dlfcn.h>
#include <stdio.h>

#include "../../support/lib/fake_cuda.h"
#include "../unit.h"
#include "gpu/cuda_abi.h"
#include "gpu/stage.h"

enum {
    NBYTES = 65536
};

typedef struct fake {
    char path[4096];
    void *library;
    fake_cuda_state *state;
    fake_cuda_reset_fn *reset;
} fake;

/* Drivers that speak CUDA 11.0, 11.4 and 12.4. */
static fake fakes[3];

static fake *new_fake(size_t i)
{
    fake *f = &fakes[i];
    f->reset();
    return f;
}

static int open_fake(const fake *f, const char *text, cm_device **out, cm_error *err)
{
    const cm_device_hooks hooks = {.cuda_driver = f->path, .sysfs = "/nonexistent"};
    return cm_device_open(text, &hooks, out, err);
}

static void check_nothing_left(const fake *f)
{
    const fake_cuda_state *s = f->state;
    assert_int_equal(s->ncontexts, 0);
    assert_int_equal(s->nmodules, 0);
    assert_int_equal(s->nstreams, 0);
    assert_int_equal(s->nevents, 0);
    assert_int_equal(s->nallocated, 0);
    assert_int_equal(s->nregistered, 0);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void test_drivers_of_every_age(void **state)
{
    (void)state;
    static const char *const apis[] = {"11.0", "11.4", "12.4"};
    for (size_t i = 0; i < 3; i++) {
        const fake *f = new_fake(i);
        cm_device *d;
        cm_error err;
        if (open_fake(f, "cuda:1", &d, &err) != CM_OK)
            fail_msg("%s: %s", f->path, err.text);
        const cm_device_info *info = cm_device_get_info(d);
        assert_string_equal(info->text, "cuda:1");
        assert_string_equal(info->name, "fake device 1");
        assert_string_equal(info->api, apis[i]);
        assert_true(info->total_nbytes == UINT64_C(1) << 30);
        assert_string_equal(info->pci, "0000:3b:01.0");
        assert_int_equal(info->capability_major, 9);
        assert_int_equal(info->capability_minor, 0);
        assert_int_equal(info->multiprocessors, 4);
        assert_int_equal(info->copy_engines, 2);
        cm_device_close(d);
        check_nothing_left(f);
    }
}

static void test_what_cannot_be_opened(void **state)
{
    (void)state;
    static const struct {
        const char *device, *fail;
        int result, version, ndevices, capability, status;
        const char *text;
    } rows[] = {
        {"cuda", "", 0, 10020, 2, 90, CM_EUNSUPPORTED,
         "the NVIDIA driver is too old: it speaks CUDA 10.2, and 11.0 (NVIDIA driver 450.36) or "
         "newer is needed"},
        {"cuda", "cuDriverGetVersion", CUDA_STUB_LIBRARY, 12040, 2, 90, CM_ENOTFOUND,
         "is the toolkit's stub, for linking: the NVIDIA driver is not installed"},
        {"cuda", "cuDriverGetVersion", 999, 12040, 2, 90, CM_EIO,
         "does not tell its version (CUDA error 999)"},
        {"cuda", "cuInit", CUDA_NO_DEVICE, 12040, 2, 90, CM_ENOTFOUND,
         "cuda:0: the NVIDIA driver sees no device"},
        {"cuda:5", "", 0, 12040, 0, 90, CM_ENOTFOUND, "cuda:5: the NVIDIA driver sees no device"},
        {"cuda", "cuInit", CUDA_SYSTEM_DRIVER_MISMATCH, 12040, 2, 90, CM_EUNSUPPORTED,
         "cuda:0: libcuda.so.1 and the kernel's NVIDIA driver are of different versions: load the "
         "new driver, or start the machine again"},
        {"cuda:2", "", 0, 12040, 2, 90, CM_ENOTFOUND,
         "cuda:2: no such device: the driver sees 2, from 0"},
        {"cuda", "", 0, 12040, 2, 61, CM_EUNSUPPORTED,
         "cuda:0: fake device 0 is too old: it has compute capability 6.1, and 7.0 or newer is "
         "needed"},
        {"cuda", "cuDevicePrimaryCtxRetain", CUDA_OUT_OF_MEMORY, 12040, 2, 90, CM_ENOMEM,
         "cuda:0: making a context: out of memory (CUDA_ERROR_OUT_OF_MEMORY, CUDA error 2)"},
        {"cuda", "cuModuleLoadDataEx", CUDA_UNSUPPORTED_PTX_VERSION, 12040, 2, 90, CM_EUNSUPPORTED,
         "cuda:0: compiling the kernels: ptxas line 7; error: unknown ptxas fatal : aborted: an "
         "error "
         "of the fake driver"},
        {"cuda", "cuMemAlloc", CUDA_OUT_OF_MEMORY, 12040, 2, 90, CM_ENOMEM,
         "cuda:0: the device has no room: 16 B were asked for, 1.00 GiB of 1.00 GiB are free"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fake *f = new_fake(2);
        cm_device *d;
        cm_error err = {0};
        f->state->fail = rows[i].fail;
        f->state->result = rows[i].result;
        f->state->version = rows[i].version;
        f->state->ndevices = rows[i].ndevices;
        f->state->capability = rows[i].capability;
        assert_int_equal(open_fake(f, rows[i].device, &d, &err), rows[i].status);
        assert_null(d);
        if (strstr(err.text, rows[i].text) == NULL)
            fail_msg("'%s' instead of '%s'", err.text, rows[i].text);
        check_nothing_left(f);
    }
}

static void test_out_of_device_memory(void **state)
{
    (void)state;
    const fake *f = new_fake(2);
    cm_device *d;
    cm_stage *s;
    cm_error err;
    assert_int_equal(open_fake(f, "cuda", &d, &err), CM_OK);
    const cm_stage_options options = {
        .device = d, .batch_nbytes = (size_t)600 << 20, .nbuffers = 2};
    assert_int_equal(cm_stage_open(&options, &s, &err), CM_ENOMEM);
    assert_null(s);
    assert_non_null(
        strstr(err.text, "cuda:0: the device has no room: 600.00 MiB were asked for, "));
    cm_device_close(d);
    check_nothing_left(f);
}

static void test_refused_page_locking(void **state)
{
    (void)state;
    const fake *f = new_fake(2);
    cm_device *d;
    cm_error err;
    void *p;
    assert_int_equal(open_fake(f, "cuda", &d, &err), CM_OK);
    f->state->fail = "cuMemHostRegister";
    f->state->result = CUDA_OUT_OF_MEMORY;
    f->state->fail_after = 0;
    assert_int_equal(cm_device_alloc_locked(d, 1 << 20, &p, NULL, &err), CM_ENOMEM);
    assert_null(p);
    assert_string_equal(err.text, "cuda:0: page-locking 1.00 MiB of memory: out of memory "
                                  "(CUDA_ERROR_OUT_OF_MEMORY, CUDA error 2)");
    f->state->fail = "";
    cm_device_close(d);
    check_nothing_left(f);
}

/* ---- each call failing, once and for good --------------------------------------------------- */

/* Everything that a staged read does; stops at the first error. */
static int use_device(const fake *f, uint8_t *slot, cm_error *err)
{
    cm_device *d = NULL;
    cm_stage *s = NULL;
    cm_staged staged;
    cm_link_rates rates;
    const cm_device_fault fault = {.batch = 1, .offset = 5, .mask = 1};
    const cm_device_hooks hooks = {.cuda_driver = f->path, .faults = &fault, .nfaults = 1};
    int rc = cm_device_open("cuda", &hooks, &d, err);
    const cm_stage_options options = {
        .device = d, .batch_nbytes = NBYTES, .step = CM_STEP_DEVICE, .step_ns = 1000};
    if (rc == CM_OK)
        rc = cm_probe_link(d, NBYTES, &rates, err);
    if (rc == CM_OK)
        rc = cm_stage_open(&options, &s, err);
    if (rc == CM_OK)
        rc = cm_stage_lock(s, slot, NBYTES, err);
    if (rc == CM_OK)
        rc = cm_stage_begin(s, CM_VALIDATE_NONE, err);
    if (rc == CM_OK)
        rc = cm_stage_submit(s, 0, slot, NBYTES, err);
    if (rc == CM_OK)
        rc = cm_stage_wait(s, &staged, err);
    if (rc == CM_OK)
        rc = cm_stage_step(s, err);
    if (rc == CM_OK)
        rc = cm_stage_release(s, NULL, err);
    if (rc == CM_OK)
        rc = cm_device_sync(d, err);
    if (rc == CM_OK)
        rc = cm_stage_begin(s, CM_VALIDATE_CHECKSUM, err);
    if (rc == CM_OK)
        rc = cm_stage_submit(s, 1, slot, NBYTES, err);
    if (rc == CM_OK)
        rc = cm_stage_wait(s, &staged, err);
    if (rc == CM_OK)
        rc = cm_stage_validate(s, NULL, 0, NULL, err);
    cm_stage_free(s);
    cm_device_close(d);
    return rc;
}

/*
 * Each function fails from its first, second, ... call on.  Nothing may be left,
 * nothing may be freed twice, and no failure may pass for a success; the flip
 * ends what does not fail.
 */
static void test_every_call_may_fail(void **state)
{
    (void)state;
    static const char *const names[] = {
#define NAME(name, symbol, parameters) #name,
        CUDA_FUNCTIONS(NAME)
#undef NAME
    };
    uint8_t *slot = aligned_alloc(4096, NBYTES);
    assert_non_null(slot);
    memset(slot, 7, NBYTES);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        /* Failures of functions that only release or inform are ignored. */
        static const char *const ignored[] = {
            "cuMemFree",      "cuMemHostUnregister",       "cuStreamDestroy",  "cuEventDestroy",
            "cuModuleUnload", "cuDevicePrimaryCtxRelease", "cuGetErrorName",   "cuGetErrorString",
            "cuMemGetInfo",   "cuDeviceGetPCIBusId",       "cuStreamWaitEvent"};
        bool must_fail = true;
        for (size_t k = 0; k < sizeof ignored / sizeof *ignored; k++)
            must_fail &= strcmp(names[i], ignored[k]) != 0;
        for (int after = 0; after < 12; after++) {
            fake *f = new_fake(2);
            cm_error err = {0};
            f->state->fail = names[i];
            f->state->result = 999;
            f->state->fail_after = after;
            const int rc = use_device(f, slot, &err);
            assert_int_not_equal(rc, CM_OK);
            assert_true(err.text[0] != '\0');
            if (after == 0 && must_fail && strstr(err.text, "CUDA error 999") == NULL)
                fail_msg("%s fails, and is told as '%s'", names[i], err.text);
            const bool keeps = !must_fail || strcmp(names[i], "cuCtxSetCurrent") == 0;
            if (!keeps)
                check_nothing_left(f);
        }
    }
    free(slot);
}

static void test_unknown_errors_have_a_sentence(void **state)
{
    (void)state;
    const fake *f = new_fake(2);
    cm_device *d;
    cm_stream *s;
    cm_error err;
    assert_int_equal(open_fake(f, "cuda", &d, &err), CM_OK);
    f->state->fail = "cuStreamCreate";
    f->state->result = 999;
    f->state->fail_after = 0;
    assert_int_equal(cm_stream_open(d, &s, &err), CM_EIO);
    assert_string_equal(err.text, "cuda:0: making a stream: an error of the fake driver "
                                  "(CUDA_ERROR_OF_THE_FAKE, CUDA error 999)");
    cm_device_close(d);
    check_nothing_left(f);
}

/* ---- at work -------------------------------------------------------------------------------- */

static void test_busy_takes_what_it_was_told(void **state)
{
    (void)state;
    static const uint64_t times[] = {0, 1, 5000000, UINT64_MAX};
    const fake *f = new_fake(2);
    cm_device *d;
    cm_stream *s;
    assert_int_equal(open_fake(f, "cuda", &d, NULL), CM_OK);
    assert_int_equal(cm_stream_open(d, &s, NULL), CM_OK);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        f->state->busy_ns = 0;
        assert_int_equal(cm_stream_busy(s, times[i], NULL), CM_OK);
        assert_int_equal(f->state->busy_ns, times[i]);
    }
    cm_stream_close(s);
    cm_device_close(d);
}

/* A thousand opens with everything, among them those that fail half-way. */
static void test_a_thousand_opens_leave_nothing(void **state)
{
    (void)state;
    fake *f = new_fake(2);
    uint8_t *slot = aligned_alloc(4096, NBYTES);
    assert_non_null(slot);
    memset(slot, 7, NBYTES);
    for (int i = 0; i < 1000; i++) {
        f->state->fail = i % 3 ? "" : "cuEventCreate";
        f->state->result = CUDA_OUT_OF_MEMORY;
        f->state->fail_after = i % 11;
        cm_device *d;
        cm_stage *s = NULL;
        if (open_fake(f, "cuda", &d, NULL) != CM_OK)
            continue;
        const cm_stage_options options = {.device = d, .batch_nbytes = NBYTES};
        if (cm_stage_open(&options, &s, NULL) == CM_OK) {
            assert_int_equal(cm_stage_lock(s, slot, NBYTES, NULL), CM_OK);
            assert_int_equal(cm_stage_begin(s, CM_VALIDATE_FULL, NULL), CM_OK);
            assert_int_equal(cm_stage_submit(s, 0, slot, NBYTES, NULL), CM_OK);
        }
        cm_stage_free(s);
        cm_device_close(d);
    }
    check_nothing_left(f);
    free(slot);
}

static bool load_fakes(const char *program)
{
    const char *slash = strrchr(program, '/');
    for (int i = 0; i < 3; i++) {
        fake *f = &fakes[i];
        snprintf(f->path, sizeof f->path, "%.*s/../../lib/fake_cuda_%d.so",
                 slash ? (int)(slash - program) : 1, slash ? program : ".", 10 + i);
        f->library = dlopen(f->path, RTLD_NOW | RTLD_LOCAL);
        f->state = f->library ? dlsym(f->library, "fake_cuda") : NULL;
        void *const reset = f->library ? dlsym(f->library, "fake_cuda_reset") : NULL;
        if (f->state == NULL || reset == NULL)
            return false;
        memcpy(&f->reset, &reset, sizeof reset);
    }
    return true;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drivers_of_every_age),
        cmocka_unit_test(test_what_cannot_be_opened),
        cmocka_unit_test(test_out_of_device_memory),
        cmocka_unit_test(test_refused_page_locking),
        cmocka_unit_test(test_every_call_may_fail),
        cmocka_unit_test(test_unknown_errors_have_a_sentence),
        cmocka_unit_test(test_busy_takes_what_it_was_told),
        cmocka_unit_test(test_a_thousand_opens_leave_nothing),
    };
    (void)argc;
    if (!load_fakes(argv[0])) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}
