/*
 * Batches of the loader on a device: `host`, and `cuda` with a fake driver, whose device memory is
 * the host's.
 */
#include "loader_fixture.h"

#include <dlfcn.h>

#include "../../support/lib/fake_cuda.h"
#include "gpu/cuda_abi.h"
#include "load/loader_impl.h"

static char driver[4096];
static const cm_device_hooks hooks = {.cuda_driver = driver, .sysfs = "/nonexistent"};

/* The fake, and what a training would call of it. */
static fake_cuda_state *fake;
static fake_cuda_reset_fn *reset;
static cuda_api cuda;

static int load_fake(void **state)
{
    void *library = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return -1;
    fake = dlsym(library, "fake_cuda");
    *(void **)&reset = dlsym(library, "fake_cuda_reset");
    const struct {
        const char *symbol;
        void *function;
    } rows[] = {{"cuInit", &cuda.cuInit},
                {"cuDevicePrimaryCtxRetain", &cuda.cuDevicePrimaryCtxRetain},
                {"cuCtxSetCurrent", &cuda.cuCtxSetCurrent},
                {"cuCtxGetCurrent", &cuda.cuCtxGetCurrent},
                {"cuStreamCreate", &cuda.cuStreamCreate}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *(void **)rows[i].function = dlsym(library, rows[i].symbol);
    return make_stores(state);
}

static int begin_anew(void **state)
{
    (void)state;
    reset();
    return 0;
}

static cm_loader_options some_options(const char *device)
{
    cm_loader_options o = basic_options();
    o.device = device;
    return o;
}

static cm_loader *open_loader(const cm_loader_options *o)
{
    cm_loader *l;
    OK(cm_loader_open_with(path, o, &hooks, &l, err));
    return l;
}

static void check_all_is_given_back(void)
{
    assert_int_equal(fake->ncontexts, 0);
    assert_int_equal(fake->nmodules, 0);
    assert_int_equal(fake->nstreams, 0);
    assert_int_equal(fake->nevents, 0);
    assert_int_equal(fake->nallocated, 0);
    assert_int_equal(fake->nregistered, 0);
}

static void test_what_arrives(void **state)
{
    static const struct {
        const char *device, *name;
        int type, number;
    } rows[] = {{"host", "host", 1, 0}, {"cuda", "cuda:0", 2, 0}, {"cuda:1", "cuda:1", 2, 1}};
    static const char *const stagings[] = {NULL, "pinned", "pageable"};
    (void)state;
    for (unsigned i = 0; i < 36; i++) {
        cm_loader_options o = some_options(rows[i % 3].device);
        o.staging = stagings[i / 3 % 3];
        o.loader = i / 9 % 2 ? "planned" : "map";
        o.sync = i >= 18;
        o.workers = o.sync ? 0 : 3;
        cm_loader *l = open_loader(&o);
        cm_loader_info info = {.size = sizeof info};
        OK(cm_loader_describe(l, &info, err));
        assert_string_equal(info.device, rows[i % 3].name);
        const bool locks = i % 3 != 0 && i / 3 % 3 != 2;
        /* The driver's device has a page of its own. */
        assert_int_equal(fake->nregistered, i % 3 == 0 ? 0 : 1 + locks);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            OK(cm_loader_begin(l, epoch, err));
            uint64_t n = 0;
            for (cm_batch *b; (b = take(l)) != NULL; n++) {
                const cm_tensor *t = cm_batch_tensor(b, 1);
                assert_int_equal(t->device_type, rows[i % 3].type);
                assert_int_equal(t->device_number, rows[i % 3].number);
                assert_true(is_right(b));
                cm_batch_release(b);
            }
            assert_int_equal(n, info.nbatches);
        }
        cm_loader_close(l);
        check_all_is_given_back();
    }
}

/* ---- readers ---- */

/* A buffer that STREAMS read is filled again after them, or after all of the device. */
static void test_a_buffer_waits_for_its_readers(void **state)
{
    static const struct {
        int64_t stream[6];
        unsigned nstreams, nwaits, nsyncs;
    } rows[] = {{{1}, 1, 1, 0},
                {{1, 1, 1, 1, 1, 1}, 6, 1, 0},
                {{0}, 0, 0, 1},
                {{-1}, 1, 0, 1},
                {{2}, 1, 0, 1},
                {{1, -1}, 2, 0, 1},
                {{1, 16, 32}, 3, 3, 0},
                {{16, 32, 48, 64, 1}, 5, 0, 1},
                {{16, 32, 48, 64}, 4, 4, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reset();
        const cm_loader_options o = some_options("cuda");
        cm_loader *l = open_loader(&o);
        cuda_context context;
        cuda_stream_handle stream[4], last = (cuda_stream_handle)1;
        assert_int_equal(cuda.cuDevicePrimaryCtxRetain(&context, 0), 0);
        cuda.cuCtxSetCurrent(context);
        for (int k = 0; k < 4; k++)
            assert_int_equal(cuda.cuStreamCreate(&stream[k], CUDA_STREAM_NON_BLOCKING), 0);
        OK(cm_loader_begin(l, 0, err));
        cm_batch *b = take(l);
        for (unsigned k = 0; k < rows[i].nstreams; k++) {
            const int64_t s = rows[i].stream[k];
            if (s >= 16) /* one of those that were made */
                last = stream[s / 16 - 1];
            OK(cm_batch_stream(b, s >= 16 ? (int64_t)(intptr_t)last : s, err));
        }
        cm_batch_release(b);
        assert_int_equal(fake->nwaits, 0);
        assert_int_equal(fake->nsyncs, 0);
        assert_ptr_equal(take(l), b); /* the first buffer that is not taken */
        assert_int_equal(fake->nwaits, rows[i].nwaits);
        assert_int_equal(fake->nsyncs, rows[i].nsyncs);
        if (rows[i].nwaits > 0)
            assert_true(fake->waited_for == (uintptr_t)last);
        assert_true(is_right(b));
        cm_batch_release(b);
        cm_loader_close(l);
    }
}

/* A stream that is gone, or whose event fails: all of the device is waited for. */
static void test_a_reader_that_fails(void **state)
{
    (void)state;
    const cm_loader_options o = some_options("cuda");
    cm_loader *l = open_loader(&o);
    OK(cm_loader_begin(l, 0, err));
    cm_batch *b = take(l);
    OK(cm_batch_stream(b, 1, err));
    fake->fail = "cuEventRecord";
    fake->result = 400;
    fake->fail_after = 0;
    cm_batch_release(b);
    fake->fail = "";
    b = take(l);
    assert_int_equal(fake->nsyncs, 1);
    assert_true(is_right(b));
    cm_batch_release(b);
    cm_loader_close(l);
    check_all_is_given_back();
}

static void test_no_stream(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const cm_loader_options o = some_options(i == 0 ? NULL : i == 1 ? "host" : "cuda");
        cm_error why = {0};
        cm_loader *l = open_loader(&o);
        OK(cm_loader_begin(l, 0, err));
        cm_batch *b = take(l);
        if (i < 2)
            assert_int_equal(cm_batch_stream(b, 1, &why), CM_EINVAL);
        assert_int_equal(cm_batch_stream(b, 0, &why), CM_EINVAL);
        assert_int_equal(cm_batch_stream(b, -2, &why), CM_EINVAL);
        assert_int_equal(cm_batch_stream(NULL, 1, &why), CM_EINVAL);
        cm_batch_release(b);
        cm_loader_close(l);
    }
}

/* ---- the caller's own ---- */

static void check_context(cuda_context mine)
{
    cuda_context now = NULL;
    assert_int_equal(cuda.cuCtxGetCurrent(&now), 0);
    assert_ptr_equal(now, mine);
}

/* Another device's, or that of the very device. */
static void test_the_callers_context_stays(void **state)
{
    (void)state;
    for (int number = 0; number < 3; number++) {
        reset();
        const cm_loader_options o = some_options("cuda:1");
        cuda_context mine = NULL;
        assert_int_equal(cuda.cuInit(0), 0);
        if (number < 2)
            assert_int_equal(cuda.cuDevicePrimaryCtxRetain(&mine, number), 0);
        cuda.cuCtxSetCurrent(mine);
        cm_loader *l = open_loader(&o);
        check_context(mine);
        OK(cm_loader_begin(l, 0, err));
        cm_batch *b = take(l);
        check_context(mine);
        OK(cm_batch_stream(b, 1, err));
        check_context(mine);
        cm_batch_release(b);
        check_context(mine);
        cm_batch *last = take(l);
        cm_loader_close(l);
        check_context(mine);
        assert_true(is_right(last));
        cm_batch_release(last); /* and with it the device */
        check_context(mine);
        assert_int_equal(fake->ncontexts, number < 2);
        assert_int_equal(fake->nallocated, 0);
        cuda.cuCtxSetCurrent(NULL);
    }
}

static void test_all_buffers_held(void **state)
{
    cm_error why = {0};
    cm_batch *held[4], *none;
    (void)state;
    cm_loader_options o = some_options("cuda");
    o.held = 3;
    cm_loader *l = open_loader(&o);
    OK(cm_loader_begin(l, 0, err));
    for (unsigned i = 0; i < 4; i++)
        held[i] = take(l);
    for (unsigned i = 0; i < 2; i++) { /* and no batch is lost */
        assert_int_equal(cm_loader_next(l, CM_LOADER_FOR_EVER, &none, &why), CM_EINVAL);
        assert_non_null(strstr(why.text, "all 4 batches"));
    }
    unsigned n = 4;
    for (unsigned i = 0; i < 4; i++) {
        assert_true(is_right(held[i]));
        cm_batch_release(held[i]);
    }
    for (cm_batch *b; (b = take(l)) != NULL; n++) {
        cm_batch_info info = {.size = sizeof info};
        OK(cm_batch_describe(b, &info, err));
        assert_int_equal(info.number, n);
        cm_batch_release(b);
    }
    assert_int_equal(n, 12);
    cm_loader_close(l);
}

/* ---- what fails ---- */

static void test_a_copy_that_fails(void **state)
{
    static const char *const functions[] = {"cuMemcpyHtoDAsync", "cuEventSynchronize"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        cm_error why = {0};
        cm_batch *b;
        const cm_loader_options o = some_options("cuda");
        cm_loader *l = open_loader(&o);
        OK(cm_loader_begin(l, 0, err));
        for (unsigned n = 0; n < 12; n++) {
            fake->fail = n % 2 ? functions[i] : "";
            fake->result = 700;
            fake->fail_after = 0;
            const int rc = cm_loader_next(l, CM_LOADER_FOR_EVER, &b, &why);
            fake->fail = "";
            assert_int_equal(rc, n % 2 ? CM_EIO : CM_OK);
            assert_true((b == NULL) == (n % 2 == 1));
            if (b != NULL)
                assert_true(is_right(b));
            cm_batch_release(b);
        }
        assert_null(take(l));
        cm_loader_stats s = {.size = sizeof s};
        OK(cm_loader_get_stats(l, &s, err));
        assert_true(s.batches == 6 && s.failed_batches == 6 && s.held == 0);
        cm_loader_close(l);
        check_all_is_given_back();
    }
}

static void test_opening_fails(void **state)
{
    static const cm_device_hooks nowhere = {.cuda_driver = "/nowhere/libcuda.so"};
    static const struct {
        const char *device, *staging, *fail;
        int status;
    } rows[] = {{"cuda:7", NULL, "", CM_ENOTFOUND},
                {"gpu", NULL, "", CM_EINVAL},
                {"cuda", "quick", "", CM_EINVAL},
                {"none", "pinned", "", CM_EINVAL},
                {"cuda", NULL, "cuMemAlloc", CM_ENOMEM},
                {"cuda", NULL, "cuMemHostRegister", CM_ENOMEM},
                {"cuda", NULL, "cuStreamCreate", CM_ENOMEM},
                {"cuda", NULL, "cuModuleLoadDataEx", CM_ENOMEM}};
    cm_error why = {0};
    cm_loader *l;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int after = 0; after < (rows[i].fail[0] ? 2 : 1); after++) {
            cm_loader_options o = some_options(rows[i].device);
            o.staging = rows[i].staging;
            fake->fail = rows[i].fail;
            fake->result = CUDA_OUT_OF_MEMORY;
            fake->fail_after = after;
            const int rc = cm_loader_open_with(path, &o, &hooks, &l, &why);
            fake->fail = "";
            if (rc == CM_OK) { /* it is called once only */
                assert_true(after > 0);
                cm_loader_close(l);
            } else
                assert_int_equal(rc, rows[i].status);
            check_all_is_given_back();
        }
    cm_loader_options o = some_options("host");
    o.held = UINT32_MAX;
    assert_int_equal(cm_loader_open_with(path, &o, &hooks, &l, &why), CM_EINVAL);
    o = some_options("cuda");
    assert_int_equal(cm_loader_open_with(path, &o, &nowhere, &l, &why), CM_ENOTFOUND);
    assert_non_null(strstr(why.text, "`device` cuda"));
    assert_null(l);
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_what_arrives, begin_anew),
        cmocka_unit_test_setup(test_a_buffer_waits_for_its_readers, begin_anew),
        cmocka_unit_test_setup(test_a_reader_that_fails, begin_anew),
        cmocka_unit_test_setup(test_no_stream, begin_anew),
        cmocka_unit_test_setup(test_the_callers_context_stays, begin_anew),
        cmocka_unit_test_setup(test_all_buffers_held, begin_anew),
        cmocka_unit_test_setup(test_a_copy_that_fails, begin_anew),
        cmocka_unit_test_setup(test_opening_fails, begin_anew),
    };
    const char *slash = strrchr(argv[0], '/');
    const int nfolder = slash != NULL ? (int)(slash - argv[0]) : 1;
    snprintf(driver, sizeof driver, "%.*s/../../lib/fake_cuda_12.so", nfolder,
             slash != NULL ? argv[0] : ".");
    return cmocka_run_group_tests_name("loader_device", tests, load_fake, remove_stores);
}
