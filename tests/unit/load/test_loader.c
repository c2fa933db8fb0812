/*
 * The loader of a training: batches against arithmetic, held, given back by other threads, after
 * the loader was closed, in a forked child.
 */
#include "loader_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

static const char *device; /* that all tests use; or NULL */

static cm_loader_options some_options(const char *loader)
{
    cm_loader_options o = basic_options();
    o.loader = loader;
    o.device = device;
    return o;
}

static cm_loader *open_loader(const cm_loader_options *o)
{
    cm_loader *l;
    OK(cm_loader_open(path, o, &l, err));
    return l;
}

static const char *const kinds_of_loader[] = {"map", "planned"};

static void test_batches_are_right(void **state)
{
    static const char *const order[] = {"random", "sequential", "strided:3", "chunks"};
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        cm_loader_options o = some_options(kinds_of_loader[i % 2]);
        o.order = order[i / 2 % 4];
        o.sync = i >= 8;
        o.workers = o.sync ? 0 : 3;
        cm_loader *l = open_loader(&o);
        cm_loader_info info = {.size = sizeof info};
        OK(cm_loader_describe(l, &info, err));
        assert_int_equal(info.nvariables, 2);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            OK(cm_loader_begin(l, epoch, err));
            uint64_t n = 0;
            for (cm_batch *b; (b = take(l)) != NULL; n++) {
                assert_true(is_right(b));
                cm_batch_release(b);
            }
            assert_true(n == info.nbatches && n > 6);
            assert_null(take(l)); /* and stays at the end */
        }
        cm_loader_close(l);
    }
}

/* ---- who gives batches back ---- */

enum {
    NTHREADS = 4,
    MOST = 64
};

/* As DLPack lays it out, up to where its deleter stands. */
typedef struct managed {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct managed *self);
} managed;

typedef struct desk { /* batches and tensors on their way to the threads that drop them */
    pthread_mutex_t lock;
    cm_batch *batch[MOST];
    managed *tensor[MOST];
    unsigned n;
    bool over;
    unsigned wrong;
} desk;

static void *drop(void *desk_)
{
    desk *d = desk_;
    for (;;) {
        pthread_mutex_lock(&d->lock);
        const bool over = d->over && d->n == 0;
        const bool got = d->n > 0;
        const unsigned i = got ? --d->n : 0;
        cm_batch *batch = d->batch[i];
        managed *tensor = d->tensor[i];
        pthread_mutex_unlock(&d->lock);
        if (over)
            return NULL;
        if (!got) {
            usleep(100);
            continue;
        }
        const bool right = is_right(batch);
        cm_batch_release(batch); /* the tensor holds it */
        tensor->deleter(tensor);
        pthread_mutex_lock(&d->lock);
        d->wrong += !right;
        pthread_mutex_unlock(&d->lock);
    }
}

static void put(desk *d, cm_batch *batch)
{
    struct DLManagedTensorVersioned *tensor;
    OK(cm_batch_dlpack(batch, 0, &tensor, err));
    assert_int_equal(((managed *)tensor)->major, 1);
    pthread_mutex_lock(&d->lock);
    assert_true(d->n < MOST);
    d->batch[d->n] = batch;
    d->tensor[d->n++] = (managed *)tensor;
    pthread_mutex_unlock(&d->lock);
}

/* However slowly the other threads are scheduled: the loader lends at most MOST batches. */
static void wait_for_room(desk *d)
{
    for (bool full = true; full;) {
        pthread_mutex_lock(&d->lock);
        full = d->n >= MOST - 2 * NTHREADS;
        pthread_mutex_unlock(&d->lock);
        if (full)
            usleep(100);
    }
}

static void finish(desk *d, pthread_t *thread)
{
    pthread_mutex_lock(&d->lock);
    d->over = true;
    pthread_mutex_unlock(&d->lock);
    for (int i = 0; i < NTHREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(d->wrong, 0);
}

/* Other threads drop batches while this one waits for the next. */
static void test_other_threads_give_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        cm_loader_options o = some_options(kinds_of_loader[i]);
        o.batches = 40;
        o.held = MOST;
        cm_loader *l = open_loader(&o);
        desk d = {.lock = PTHREAD_MUTEX_INITIALIZER};
        pthread_t thread[NTHREADS];
        for (int k = 0; k < NTHREADS; k++)
            assert_int_equal(pthread_create(&thread[k], NULL, drop, &d), 0);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            OK(cm_loader_begin(l, epoch, err));
            for (cm_batch *b; (b = take(l)) != NULL; wait_for_room(&d))
                put(&d, b);
        }
        finish(&d, thread);
        cm_loader_stats s = {.size = sizeof s};
        OK(cm_loader_get_stats(l, &s, err));
        assert_int_equal(s.held, 0);
        assert_int_equal(s.batches, 120);
        cm_loader_close(l);
    }
}

/* And after, or while, the loader is closed. */
static void test_closed_while_held(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        cm_loader_options o = some_options(kinds_of_loader[i % 2]);
        o.held = 12;
        cm_loader *l = open_loader(&o);
        desk d = {.lock = PTHREAD_MUTEX_INITIALIZER};
        pthread_t thread[NTHREADS];
        OK(cm_loader_begin(l, 0, err));
        for (cm_batch *b; (b = take(l)) != NULL;)
            put(&d, b);
        if (i < 2)
            cm_loader_close(l);
        for (int k = 0; k < NTHREADS; k++)
            assert_int_equal(pthread_create(&thread[k], NULL, drop, &d), 0);
        if (i >= 2)
            cm_loader_close(l);
        finish(&d, thread);
    }
}

static void test_all_slots_held(void **state)
{
    cm_batch *held[MOST] = {NULL};
    cm_error why = {0};
    unsigned n = 0;
    (void)state;
    cm_loader_options o = some_options("map");
    o.batches = 60;
    cm_loader *l = open_loader(&o);
    OK(cm_loader_begin(l, 0, err));
    while (cm_loader_next(l, CM_LOADER_FOR_EVER, &held[n], &why) == CM_OK)
        n++;
    assert_int_equal(why.status, CM_EINVAL);
    assert_non_null(strstr(why.text, "are held"));
    for (unsigned i = 0; i < n; i++) {
        assert_true(is_right(held[i]));
        cm_batch_release(held[i]);
    }
    cm_batch *b = take(l);
    assert_true(is_right(b));
    cm_batch_release(b);
    cm_loader_close(l);
}

/* ---- forks, positions, callers of another age ---- */

static int in_child(cm_loader *l, cm_batch *batch)
{
    cm_error err = {0};
    cm_batch *b = batch;
    cm_loader_info info = {.size = sizeof info};
    cm_loader_stats stats = {.size = sizeof stats};
    cm_batch_info about = {.size = sizeof about};
    cm_loader_position at;
    struct DLManagedTensorVersioned *tensor;
    const int rc[] = {cm_loader_next(l, CM_LOADER_FOR_EVER, &b, &err),
                      cm_loader_begin(l, 0, &err),
                      cm_loader_describe(l, &info, &err),
                      cm_loader_get_stats(l, &stats, &err),
                      cm_loader_save(l, &at, &err),
                      cm_batch_describe(batch, &about, &err),
                      cm_batch_dlpack(batch, 0, &tensor, &err)};
    for (size_t i = 0; i < sizeof rc / sizeof *rc; i++)
        if (rc[i] != CM_EINVAL || strstr(err.text, "forked") == NULL)
            return 1 + (int)i;
    if (cm_batch_tensor(batch, 0) != NULL)
        return 20;
    cm_batch_release(batch);
    cm_loader_close(l);
    return 0;
}

static void test_a_forked_child(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        int status;
        const cm_loader_options o = some_options(kinds_of_loader[i]);
        cm_loader *l = open_loader(&o);
        OK(cm_loader_begin(l, 0, err));
        cm_batch *batch = take(l);
        const pid_t pid = fork();
        if (pid == 0)
            _exit(in_child(l, batch));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_true(is_right(batch));
        cm_batch_release(batch);
        for (unsigned n = 1; (batch = take(l)) != NULL; n++) {
            assert_true(is_right(batch));
            cm_batch_release(batch);
        }
        cm_loader_close(l);
    }
}

static uint64_t first_sample(cm_batch *batch)
{
    cm_batch_info info = {.size = sizeof info};
    OK(cm_batch_describe(batch, &info, err));
    return info.sample[0];
}

static void test_positions(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        cm_loader_options o = some_options(kinds_of_loader[i]);
        cm_loader_position at[13];
        uint64_t first[12];
        cm_error why = {0};
        cm_loader *l = open_loader(&o);
        OK(cm_loader_begin(l, 5, err));
        for (unsigned n = 0; n < 12; n++) {
            OK(cm_loader_save(l, &at[n], err));
            cm_batch *b = take(l);
            first[n] = first_sample(b);
            cm_batch_release(b);
        }
        OK(cm_loader_save(l, &at[12], err));
        cm_loader_close(l);
        o.workers = 1;
        l = open_loader(&o);
        for (unsigned n = 0; n < 12; n++) {
            OK(cm_loader_restore(l, &at[n], err));
            for (unsigned k = n; k < 12; k++) {
                cm_batch *b = take(l);
                assert_true(is_right(b));
                assert_int_equal(first_sample(b), first[k]);
                cm_batch_release(b);
            }
            assert_null(take(l));
        }
        OK(cm_loader_restore(l, &at[12], err));
        assert_null(take(l));
        for (unsigned n = 0; n < 56; n++) { /* what the checksum covers, and itself */
            cm_loader_position bad = at[3];
            bad.bytes[n] ^= 0x10;
            assert_int_equal(cm_loader_restore(l, &bad, &why), CM_EINVAL);
        }
        cm_loader_close(l);
        o.seed = 1;
        l = open_loader(&o);
        assert_int_equal(cm_loader_restore(l, &at[3], &why), CM_EINVAL);
        cm_loader_close(l);
    }
}

static void test_callers_of_another_age(void **state)
{
    struct {
        cm_loader_options o;
        uint64_t newer;
    } wide;
    cm_error why = {0};
    cm_loader *l;
    (void)state;
    cm_loader_options_init(&wide.o, sizeof wide);
    assert_int_equal(wide.newer, 0);
    const cm_loader_options o = some_options("map");
    memcpy(&wide.o, &o, sizeof o);
    wide.o.size = sizeof wide;
    OK(cm_loader_open(path, &wide.o, &l, err));
    cm_loader_close(l);
    wide.newer = 1;
    assert_int_equal(cm_loader_open(path, &wide.o, &l, &why), CM_EUNSUPPORTED);
    assert_null(l);
    cm_loader_options old = o;
    old.size = offsetof(cm_loader_options, cast);
    OK(cm_loader_open(path, &old, &l, err));
    cm_loader_close(l);
    old.size = 0;
    assert_int_equal(cm_loader_open(path, &old, &l, &why), CM_EINVAL);
    assert_int_equal(cm_loader_open(NULL, &o, &l, &why), CM_EINVAL);
    assert_int_equal(cm_loader_begin(NULL, 0, &why), CM_EINVAL);
    cm_loader_close(NULL);
    cm_batch_release(NULL);
}

static void test_time_runs_out(void **state)
{
    cm_error why = {0};
    cm_batch *b;
    (void)state;
    const cm_loader_options o = some_options("map");
    cm_loader *l = open_loader(&o);
    assert_int_equal(cm_loader_next(l, 0, &b, &why), CM_EINVAL); /* no epoch */
    OK(cm_loader_begin(l, 0, err));
    unsigned n = 0;
    while (n < 12) {
        const int rc = cm_loader_next(l, 0, &b, &why);
        assert_true(rc == CM_OK || rc == CM_ECANCELED);
        n += rc == CM_OK;
        if (rc == CM_OK)
            cm_batch_release(b);
    }
    cm_loader_close(l);
}

/* As cm_loader_next and cm_batch_describe say it, and the numbers lie in one piece. */
static void test_described_with_the_batch(void **state)
{
    (void)state;
    const cm_loader_options o = some_options("planned");
    cm_loader *l = open_loader(&o);
    cm_loader_info about = {.size = sizeof about};
    OK(cm_loader_describe(l, &about, err));
    OK(cm_loader_begin(l, 0, err));
    for (uint64_t n = 0;; n++) {
        struct {
            cm_batch_info known;
            uint64_t behind;
        } old = {{.size = offsetof(cm_batch_info, sample)}, 5};
        cm_batch_info info = {.size = sizeof info}, again = info;
        cm_batch *b;
        old.known.sample = &old.behind;
        OK(cm_loader_next_described(l, CM_LOADER_FOR_EVER, &b, &info, err));
        if (b == NULL) {
            assert_int_equal(n, about.nbatches);
            assert_null(info.sample); /* nothing was told */
            break;
        }
        OK(cm_batch_describe(b, &again, err));
        assert_memory_equal(&info, &again, sizeof info);
        assert_int_equal(info.number, n);
        assert_ptr_equal(info.index, info.sample + info.nsamples);
        OK(cm_batch_describe(b, &old.known, err));
        assert_int_equal(old.known.nsamples, info.nsamples);
        assert_ptr_equal(old.known.sample, &old.behind);
        assert_true(is_right(b));
        cm_batch_release(b);
    }
    cm_loader_close(l);
}

/* Samples of ranges lie in them, and positions are theirs alone. */
static void test_ranges(void **state)
{
    static const cm_loader_range range[] = {{"y", 3, 11}, {"t", 5, 6}}, later[] = {{"t", 6, 6}};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        cm_loader_options o = some_options(kinds_of_loader[i]);
        o.batches = 0;
        o.lags = "0";
        o.range = range;
        o.nranges = 2;
        cm_loader *l = open_loader(&o);
        cm_loader_info info = {.size = sizeof info};
        cm_loader_position at;
        uint64_t first, count, n = 0;
        OK(cm_loader_describe(l, &info, err));
        assert_int_equal(info.nsamples, (6 - 2 + 1) * (11 - 6 + 1) * (18 - 8 + 1));
        assert_int_equal(info.dim[0].length, 15);
        assert_true(cm_loader_dim_range(l, 1, &first, &count) && first == 3 && count == 11);
        assert_true(cm_loader_dim_range(l, 2, &first, &count) && first == 0 && count == 18);
        assert_false(cm_loader_dim_range(l, 3, &first, &count));
        OK(cm_loader_begin(l, 0, err));
        for (cm_batch *b; (b = take(l)) != NULL; cm_batch_release(b)) {
            cm_batch_info about = {.size = sizeof about};
            assert_true(is_right(b));
            OK(cm_batch_describe(b, &about, err));
            for (uint64_t k = 0; k < about.nsamples; k++, n++) {
                const int64_t *index = &about.index[3 * k];
                assert_true(index[0] >= 5 && index[0] <= 9 && index[1] >= 3 && index[1] <= 8);
            }
        }
        assert_int_equal(n, info.nsamples);
        OK(cm_loader_save(l, &at, err));
        cm_loader_close(l);
        o.range = later;
        o.nranges = 1;
        l = open_loader(&o);
        assert_int_equal(cm_loader_restore(l, &at, NULL), CM_EINVAL);
        cm_loader_close(l);
    }
}

static void test_ranges_refused(void **state)
{
    static const struct {
        cm_loader_range range[2];
        const char *words;
    } rows[] = {{{{"z", 0, 1}}, "has a dimension z"},
                {{{NULL, 0, 1}}, "without a name"},
                {{{"t", 3, 0}}, "0 elements from 3 on are not in dimension t, which has 15"},
                {{{"t", 3, 13}}, "13 elements from 3 on are not in dimension t"},
                {{{"t", UINT64_MAX, 2}}, "are not in dimension t"},
                {{{"t", 1, 5}, {"t", 2, 5}}, "dimension t is there twice"},
                {{{"t", 1, 1}}, "a sample of 2 does not fit dimension t, which has 1"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cm_loader_options o = some_options("map");
        cm_error why = {0};
        cm_loader *l;
        o.range = rows[i].range;
        o.nranges = rows[i].range[1].dim != NULL ? 2 : 1;
        assert_int_equal(cm_loader_open(path, &o, &l, &why), CM_EINVAL);
        if (strstr(why.text, rows[i].words) == NULL)
            fail_msg("%s", why.text);
    }
}

/* A loader that only describes what it opened has no batches. */
static void test_describe_only(void **state)
{
    (void)state;
    cm_loader_options o = some_options("map");
    o.sample = NULL;
    o.order = "chunks";
    o.describe_only = true;
    o.memory = 1; /* which it does not take */
    cm_loader *l = open_loader(&o);
    cm_loader_info info = {.size = sizeof info};
    cm_batch *b;
    OK(cm_loader_describe(l, &info, err));
    assert_int_equal(info.ndims, 3);
    assert_int_equal(info.slots, 0);
    assert_int_equal(cm_loader_begin(l, 0, NULL), CM_EBUDGET);
    assert_int_equal(cm_loader_next(l, 0, &b, NULL), CM_EINVAL);
    cm_loader_close(l);
}

/* Python's functions are the process's; this one has none. */
static void test_no_python(void **state)
{
    cm_error why = {0};
    (void)state;
    const cm_loader_options o = some_options("map");
    cm_loader *l = open_loader(&o);
    OK(cm_loader_begin(l, 0, err));
    cm_batch *b = take(l);
    assert_null(cm_batch_capsule(b, 0, true, &why));
    assert_int_equal(why.status, CM_EUNSUPPORTED);
    assert_null(cm_batch_holder(&(cm_batch **){NULL}, &why));
    assert_null(cm_loader_holder(&(cm_loader **){NULL}, &why));
    cm_batch_clear(&b);
    assert_null(b);
    cm_batch_clear(&b);
    cm_loader_clear(&l);
    assert_null(l);
    cm_loader_clear(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_are_right),
        cmocka_unit_test(test_other_threads_give_back),
        cmocka_unit_test(test_closed_while_held),
        cmocka_unit_test(test_all_slots_held),
        cmocka_unit_test(test_a_forked_child),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_callers_of_another_age),
        cmocka_unit_test(test_time_runs_out),
        cmocka_unit_test(test_described_with_the_batch),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_ranges_refused),
        cmocka_unit_test(test_describe_only),
        cmocka_unit_test(test_no_python),
    };
    const int failed = cmocka_run_group_tests_name("loader", tests, make_stores, remove_stores);
    device = "host";
    return failed + cmocka_run_group_tests_name("loader, to a second memory", tests, make_stores,
                                                remove_stores);
}
