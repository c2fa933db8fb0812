/*
 * Samples from readbench: every order with both loaders, in every mode, from each
 * kind of store, byte for byte what the test put there.
 */
#include "../fixtures/readbench_fixture.h"
#include <chunkmill/loader.h>

#include "format/nc/nc.h"

#include <math.h>

/* Three dimensions with ragged edges; 21 x 22 x 30 elements. */
static const field cube = {"v", "tyx", {21, 22, 30}, {4, 5, 7}, {0}, FIELD_INT32, 0, 0, 0, 0};
static const field sharded = {"v", "tyx", {21, 22, 30}, {4, 5, 7}, {8, 10, 14}, FIELD_INT32, 0, 0,
                              0,   0};
static const field contiguous = {"v", "tyx", {21, 22, 30}, {0}, {0}, FIELD_INT32, 0, 0, 0, 0};

static const struct {
    const char *name;
    container container;
    const field *field;
} stores[] = {{"v3.zarr", ZARR_V3, &cube},           {"v2.zarr", ZARR_V2, &cube},
              {"sharded.zarr", ZARR_V3, &sharded},   {"chunked.nc", NETCDF4, &cube},
              {"classic.nc", NETCDF_CLASSIC, &cube}, {"contiguous.nc", NETCDF4, &contiguous}};
enum {
    NSTORES = sizeof stores / sizeof stores[0]
};
static char *path[NSTORES];

static int make_stores(void **state)
{
    if (make_folder(state) != 0)
        return -1;
    for (int i = 0; i < NSTORES; i++)
        path[i] = make_store(stores[i].name, stores[i].container, stores[i].field, 1);
    return 0;
}

static int remove_stores(void **state)
{
    for (int i = 0; i < NSTORES; i++)
        free(path[i]);
    return remove_folder(state);
}

static bool has_chunks(int store)
{
    return stores[store].container != NETCDF_CLASSIC && stores[store].field != &contiguous;
}

static const struct order {
    const char *text, *sample;
    uint64_t nsamples; /* of an epoch: of 5 batches of 4, where there are more */
    uint64_t batches;
    bool needs_chunks;
} orders[] = {{"random", "t=3,y=6,x=8", 20, 5, false},
              {"sequential", "t=3,y=6,x=8", 20, 5, false},
              {"strided:3", "t=3,y=6,x=8", 20, 5, false},
              {"block-shuffle:4", "t=3,y=6,x=8", 20, 5, false},
              {"chunks", "t=3,y=6,x=8", 20, 5, false},
              {"map", NULL, 20, 5, false},
              {"series", "y=1,x=1", 20, 5, false},
              {"all", "t=8,y=9,x=16", 18, 0, false},
              {"chunks", NULL, 20, 5, true},
              {"all", NULL, 150, 0, true}};
enum {
    NORDERS = sizeof orders / sizeof orders[0]
};

/* ---- one session, all that holds for each ---- */

static void check_counts(const cm_readbench_session *s, bool planned, bool counted,
                         const char *what)
{
    const cm_readbench_counts *c = &s->counts;
    if (c->failed_batches != 0 || c->failed_chunks != 0 || c->missing_chunks != 0)
        fail_msg("%s: batches failed, or chunks are missing", what);
    uint64_t nbytes = 0;
    for (size_t i = 0; i < s->nlogged; i++)
        nbytes += product(3, s->logged[i].shape) * 4;
    if (c->logical_nbytes != nbytes)
        fail_msg("%s: %d bytes delivered, %d counted", what, (int)nbytes, (int)c->logical_nbytes);
    if (s->device.mismatches != 0 || s->device.validated_nbytes != nbytes / 2)
        fail_msg("%s: %d bytes validated of %d", what, (int)s->device.validated_nbytes,
                 (int)nbytes / 2);
    if (!counted)
        return;
    if (!planned && c->chunks != s->predicted.planned_chunks)
        fail_msg("%s: %d chunks met, %d predicted", what, (int)c->chunks,
                 (int)s->predicted.planned_chunks);
    if (planned && (c->decoded != c->chunks || c->chunks > s->predicted.planned_chunks))
        fail_msg("%s: %d decoded of %d asked for, samples meet %d", what, (int)c->decoded,
                 (int)c->chunks, (int)s->predicted.planned_chunks);
}

static void check_session(const cm_readbench_options *o, int store, const struct order *order,
                          const char *what)
{
    cm_readbench_report r;
    const bool planned = o->loader != NULL && strcmp(o->loader, "planned") == 0;
    run(o, &r, what);
    assert_int_equal(r.nsessions, 1);
    const cm_readbench_session *s = &r.session[0];
    check_bytes(s, stores[store].field, 1, what);
    check_complete(s, 2, order->nsamples, what);
    check_counts(s, planned, has_chunks(store), what);
    assert_int_equal(s->counts.samples, 2 * order->nsamples);
    assert_int_equal(s->first_batch_seconds > 0, 1);
    assert_int_equal(s->wait.n, s->nrecords - 1);
    cm_readbench_report_release(&r);
}

static void try_all(int store, const kind *k, const char *loader)
{
    for (size_t i = 0; i < NORDERS; i++) {
        char what[128];
        const char *const list[] = {path[store]};
        cm_readbench_options o = quick_options(list, 1);
        if (orders[i].needs_chunks && !has_chunks(store)) /* it would be one sample */
            continue;
        set_kind(&o, k);
        o.loader = loader;
        o.order = orders[i].text;
        o.sample = orders[i].sample;
        o.batches = orders[i].batches;
        o.seed = i;
        o.log_samples = true;
        o.validate = CM_READBENCH_VALIDATE_FULL;
        snprintf(what, sizeof what, "%s, %s, %s, %s", stores[store].name, orders[i].text, loader,
                 k->name);
        check_session(&o, store, &orders[i], what);
    }
}

/* All orders in this process and in forked ones. */
static void test_orders(void **state)
{
    (void)state;
    for (int store = 0; store < NSTORES; store++)
        for (size_t k = 0; k < NKINDS; k++) {
            try_all(store, &kinds[k], "map");
            if (has_chunks(store))
                try_all(store, &kinds[k], "planned");
        }
}

/* An array without chunks cannot be planned: an error says so. */
static void test_nothing_to_plan(void **state)
{
    (void)state;
    for (int store = 0; store < NSTORES; store++) {
        const char *const list[] = {path[store]};
        cm_readbench_options o = quick_options(list, 1);
        cm_readbench_report r;
        cm_error err = {0};
        o.sample = "t=1";
        o.loader = "planned";
        const int rc = cm_readbench(&o, NULL, &r, &err);
        assert_int_equal(rc, has_chunks(store) ? CM_OK : CM_EUNSUPPORTED);
        if (rc != CM_OK)
            assert_non_null(strstr(err.text, "`loader` map"));
        cm_readbench_report_release(&r);
    }
}

/* Through libnetcdf the same bytes come. */
static void test_engine_netcdf(void **state)
{
    (void)state;
    for (int store = 3; store < NSTORES; store++)
        for (size_t k = 0; k < 3; k++) {
            const char *const list[] = {path[store]};
            cm_readbench_options o = quick_options(list, 1);
            cm_readbench_report r;
            set_kind(&o, &kinds[k]);
            o.engine = "netcdf";
            o.sample = "t=3,y=6,x=8";
            o.batches = 5;
            o.log_samples = true;
            o.validate = CM_READBENCH_VALIDATE_CHECKSUM;
            run(&o, &r, stores[store].name);
            check_bytes(&r.session[0], stores[store].field, 1, stores[store].name);
            check_complete(&r.session[0], 2, 20, stores[store].name);
            assert_int_equal(r.session[0].device.mismatches, 0);
            assert_true(r.session[0].counts.chunks > 0 && r.session[0].counts.decoded == 0);
            cm_readbench_report_release(&r);
        }
}

/* Counts for an open store; all of them follow from the file. */
static uint64_t counted_open(const cm_readbench_options *o, const char *store)
{
    cm_load_options options;
    cm_bench_setting setting;
    OK(cm_bench_setting_make(o, &options, &setting, err));
    cm_load_run l = {.options = &options, .store = store, .nsharing = 1};
    OK(cm_load_open(&l, err));
    const uint64_t nbytes = cm_load_open_nbytes(&l);
    cm_load_close(&l);
    return nbytes;
}

/*
 * It has the caches that training has, and they are counted in the memory.  Two runs' whole plans
 * are not compared: what the process has resident at the time is in them.
 */
static void test_caches_of_libnetcdf(void **state)
{
    uint64_t counted[2];
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        const cm_nc_options options = {.library_only = true, .library_caches = keep};
        cm_nc_file *file;
        OK(cm_nc_open(path[3], &options, &file, err));
        cm_nc_var *v = cm_nc_var_at(file, 0);
        const size_t nbytes = cm_nc_var_cache_nbytes(file, v);
        assert_int_equal(nbytes >= (size_t)1 << 20, keep);
        cm_nc_close(file);
        const char *const list[] = {path[3]};
        cm_readbench_options o = quick_options(list, 1);
        cm_readbench_report r;
        o.engine = keep ? "netcdf" : "native";
        o.sample = "t=3,y=6,x=8";
        counted[keep] = counted_open(&o, path[3]);
        run(&o, &r, "caches");
        assert_true(r.session[0].memory_planned >= counted[keep]);
        cm_readbench_report_release(&r);
        if (keep)
            assert_true(counted[1] >= counted[0] + nbytes);
    }
}

/*
 * Random offsets: the mean over many samples is what chunkcalc's arithmetic says, to
 * five of its own standard errors.
 */
static void test_random_meets_what_is_predicted(void **state)
{
    (void)state;
    const char *const list[] = {path[0]};
    cm_readbench_options o = quick_options(list, 1);
    cm_readbench_report r;
    double mean = 0, square = 0;
    size_t n = 0;
    o.sample = "t=3,y=6,x=8";
    o.batch = 1;
    o.batches = 400;
    run(&o, &r, "random");
    const cm_readbench_session *s = &r.session[0];
    assert_true(s->predicted.known);
    for (size_t i = 0; i < s->nrecords; i++) {
        const double x = (double)s->record[i].chunks;
        n++;
        square += (x - mean) * (x - mean) * (double)(n - 1) / (double)n;
        mean += (x - mean) / (double)n;
    }
    assert_int_equal(n, 800);
    const double bound = 5 * sqrt(square / (double)(n - 1) / (double)n);
    assert_true(bound > 0 && bound < 0.1 * s->predicted.chunks);
    if (fabs(mean - s->predicted.chunks) > bound)
        fail_msg("%g chunks a sample, %g predicted, bound %g", mean, s->predicted.chunks, bound);
    assert_int_equal(s->counts.chunks, s->predicted.planned_chunks);
    assert_int_equal(s->counts.decoded_nbytes, s->predicted.planned_decoded_nbytes);
    cm_readbench_report_release(&r);
}

/* ---- ranks ---- */

/*
 * The shares of a world are disjoint and make up the epoch, whether its ranks run apart or at
 * once.
 */
static void test_ranks_share_an_epoch(void **state)
{
    static const char *const loaders[] = {"map", "planned"};
    (void)state;
    for (int at_once = 0; at_once < 3; at_once++)
        for (int l = 0; l < 2; l++) {
            unsigned seen[40] = {0};
            for (uint64_t rank = 0; rank < (at_once ? 1 : 3); rank++) {
                const char *const list[] = {path[0]};
                cm_readbench_options o = quick_options(list, 1);
                cm_readbench_report r;
                o.sample = "t=3,y=6,x=8";
                o.batches = 3;
                o.epochs = 1;
                o.loader = loaders[l];
                o.log_samples = true;
                o.world_size = at_once ? 1 : 3;
                o.rank = rank;
                o.accelerators = at_once ? 3 : 1;
                o.pool = at_once == 2 ? "shared" : NULL;
                run(&o, &r, "ranks");
                const cm_readbench_session *s = &r.session[0];
                assert_int_equal(s->ranks, at_once ? 3 : 1);
                for (size_t i = 0; i < s->nlogged; i++) {
                    /* In turn, or a run of the order each, whose chunks others do not need. */
                    const uint64_t whose =
                        l == 0 ? s->logged[i].number % 3 : s->logged[i].number / 12;
                    assert_int_equal(whose, at_once ? s->logged[i].rank : rank);
                    seen[s->logged[i].number]++;
                }
                check_bytes(s, &cube, 1, "ranks");
                cm_readbench_report_release(&r);
            }
            for (int i = 0; i < 36; i++)
                assert_int_equal(seen[i], 1);
        }
}

/* ---- edges ---- */

static void test_edges(void **state)
{
    static const struct {
        const char *what, *sample, *order;
        uint64_t batch, batches, nsamples, nbatches;
        bool drop_last;
    } rows[] = {
        {"a batch larger than the epoch", "t=20,y=21,x=full", "random", 1000000000, 0, 4, 1, 0},
        {"a sample as large as the array", "t=full,y=full,x=full", "random", 2, 0, 1, 1, 0},
        {"the last batch is short", "t=18,y=22,x=30", "random", 3, 0, 4, 2, 0},
        {"the last batch is dropped", "t=18,y=22,x=30", "random", 3, 0, 3, 1, 1},
        {"of all, clipped, the last one dropped", "t=8,y=22,x=16", "all", 4, 0, 4, 1, 1},
        {"one element", "t=1,y=1,x=1", "random", 7, 2, 14, 2, 0},
    };
    static const char *const loaders[] = {"map", "planned"};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int l = 0; l < 2; l++) {
            const char *const list[] = {path[0]};
            cm_readbench_options o = quick_options(list, 1);
            cm_readbench_report r;
            o.sample = rows[i].sample;
            o.order = rows[i].order;
            o.batch = rows[i].batch;
            o.batches = rows[i].batches;
            o.drop_last = rows[i].drop_last;
            o.loader = loaders[l];
            o.epochs = 2;
            o.log_samples = true;
            o.validate = CM_READBENCH_VALIDATE_FULL;
            run(&o, &r, rows[i].what);
            const cm_readbench_session *s = &r.session[0];
            check_bytes(s, &cube, 1, rows[i].what);
            if (s->nlogged != 2 * rows[i].nsamples || s->counts.batches != 2 * rows[i].nbatches)
                fail_msg("%s: %zu samples in %d batches", rows[i].what, s->nlogged,
                         (int)s->counts.batches);
            assert_int_equal(s->device.mismatches, 0);
            cm_readbench_report_release(&r);
        }
}

/* Arrays without dimensions, and with ones of length 1. */
static void test_small_arrays(void **state)
{
    static const field small[] = {
        {"scalar", "", {0}, {0}, {0}, FIELD_FLOAT32, 0, 0, 0, 0},
        {"point", "tyx", {1, 1, 1}, {1, 1, 1}, {0}, FIELD_INT32, 0, 0, 0, 0},
        {"line", "tyx", {1, 9, 1}, {1, 4, 1}, {0}, FIELD_INT16, 0, 0, 0, 0}};
    static const container containers[] = {ZARR_V3, ZARR_V2, NETCDF4, NETCDF_CLASSIC};
    (void)state;
    for (size_t c = 0; c < 4; c++)
        for (size_t i = 0; i < 3; i++)
            for (int planned = 0; planned < 2; planned++) {
                char *store = make_store("small", containers[c], &small[i], 1);
                const char *const list[] = {store};
                cm_readbench_options o = quick_options(list, 1);
                cm_readbench_report r;
                o.sample = i == 0 ? NULL : "t=1,y=1,x=1";
                o.batches = 0;
                o.log_samples = true;
                o.loader = planned && c < 2 ? "planned" : "map";
                o.validate = CM_READBENCH_VALIDATE_FULL;
                run(&o, &r, small[i].name);
                check_bytes(&r.session[0], &small[i], 1, small[i].name);
                check_complete(&r.session[0], 2, i == 2 ? 9 : 1, small[i].name);
                cm_readbench_report_release(&r);
                char command[128];
                snprintf(command, sizeof command, "rm -rf '%s'", store);
                assert_int_equal(system(command), 0);
                free(store);
            }
}

/* ---- an epoch of a training ---- */

static cm_loader *open_loader(const cm_readbench_options *o)
{
    cm_loader_options to;
    cm_loader *l;
    cm_loader_options_init(&to, sizeof to);
    to.sample = o->sample;
    to.loader = o->loader;
    to.world_size = o->world_size;
    to.rank = o->rank;
    to.drop_last = o->drop_last;
    OK(cm_loader_open(path[0], &to, &l, err));
    return l;
}

/* Samples of BATCHES batches of EPOCH, as the log of a session has them; returns how many. */
static size_t compare_epoch(cm_loader *l, const cm_readbench_session *s, uint64_t epoch,
                            uint64_t batches, size_t from)
{
    OK(cm_loader_begin(l, epoch, err));
    for (uint64_t i = 0; i < batches; i++) {
        cm_batch *b;
        cm_batch_info info = {.size = sizeof info};
        OK(cm_loader_next_described(l, CM_LOADER_FOR_EVER, &b, &info, err));
        assert_non_null(b);
        for (uint64_t k = 0; k < info.nsamples; k++, from++) {
            const cm_readbench_sample *logged = &s->logged[from];
            assert_true(from < s->nlogged);
            assert_int_equal(logged->epoch, epoch);
            assert_int_equal(logged->batch, i);
            assert_int_equal(logged->place, k);
            for (unsigned d = 0; d < 3; d++)
                assert_int_equal(logged->start[d], info.index[3 * k + d]);
        }
        cm_batch_release(b);
    }
    return from;
}

/*
 * With the options that both have, and none of how many batches, an epoch is the same: what is
 * measured are the first 50 batches of a training's, or all of them.
 */
static void test_an_epoch_of_a_training(void **state)
{
    static const char *const loader[] = {NULL, "planned"}, *const sample[] = {"t=3,y=6,x=8",
                                                                              "t=20,y=20,x=27"};
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        const char *const list[] = {path[0]};
        cm_readbench_options o;
        cm_readbench_report r;
        cm_loader_info info = {.size = sizeof info};
        cm_readbench_options_init(&o);
        o.store = (cm_texts){list, 1};
        o.step_forward = 0;
        o.hook = &quick;
        o.log_samples = true;
        o.loader = loader[i % 2];
        o.sample = sample[i / 2 % 2];
        o.world_size = i / 4 % 2 ? 3 : 1;
        o.rank = i / 4 % 2;
        o.drop_last = i / 8 && i / 2 % 2 == 0; /* few samples make no batch of 32 */
        run(&o, &r, "an epoch");
        const cm_readbench_session *s = &r.session[0];
        cm_loader *l = open_loader(&o);
        OK(cm_loader_describe(l, &info, err));
        const uint64_t batches = info.nbatches < 50 ? info.nbatches : 50;
        assert_int_equal(s->window, info.window);
        size_t n = compare_epoch(l, s, 0, batches, 0);
        n = compare_epoch(l, s, 1, batches, n);
        assert_int_equal(n, s->nlogged);
        cm_loader_close(l);
        cm_readbench_report_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_nothing_to_plan),
        cmocka_unit_test(test_engine_netcdf),
        cmocka_unit_test(test_caches_of_libnetcdf),
        cmocka_unit_test(test_random_meets_what_is_predicted),
        cmocka_unit_test(test_ranks_share_an_epoch),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_small_arrays),
        cmocka_unit_test(test_an_epoch_of_a_training),
    };
    return cmocka_run_group_tests_name("readbench_samples", tests, make_stores, remove_stores);
}
