/*
 * --memory is a promise about the process and its workers: each measurement runs in
 * a process of its own, so that the high-water mark is its own too.
 */
#include "../fixtures/readbench_fixture.h"

#include <malloc.h>

#include "base/clock.h"

#define MEASURE "--measure"
#define MIB     ((uint64_t)1 << 20)
#define DRIFT   (3 * MIB) /* of a process from run to run */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED true /* shadow memory is nobody's promise */
#else
#define INSTRUMENTED false
#endif

/* 300 MiB of chunks of 1 MiB, and 100 MiB of shards with 16 of 64 KiB each. */
static const field large = {"v", "tyx", {300, 512, 512}, {4, 256, 256}, {0}, FIELD_INT32, 0, 0,
                            0,   true};
static const field sharded = {
    "v", "tyx", {100, 512, 512}, {1, 128, 128}, {4, 256, 256}, FIELD_INT32, 0, 0, 0, true};

/* The same elements in every chunk: what they are does not matter here. */
static void put_same(const field *f, cm_store *store, const cm_zarr_meta *m)
{
    cm_zarr_writer *w;
    OK(cm_zarr_writer_create(store, f->name, m, &w, err));
    const cm_grid *grid = cm_zarr_writer_grid(w);
    const size_t nbytes = (size_t)grid->chunk_nelem * 4;
    uint8_t *data = malloc(nbytes);
    memset(data, 3, nbytes);
    for (uint64_t k = 0; k < grid->nchunks; k++)
        OK(cm_zarr_writer_put(w, k, data, nbytes, err));
    OK(cm_zarr_writer_finish(w, err));
    cm_zarr_writer_free(w);
    free(data);
}

static void make_large(const char *name, const field *f)
{
    cm_store *store;
    cm_zarr_meta m;
    cm_zarr_entry entry = {f->name, &m};
    char *path = in_folder(name);
    OK(cm_store_open_dir(path, true, &store, err));
    set_meta(f, 3, &m);
    put_same(f, store, &m);
    OK(cm_zarr_hierarchy_write(store, 3, &entry, 1, true, err));
    cm_store_free(store);
    cm_zarr_meta_release(&m);
    free(path);
}

static void make_large_nc(const char *name)
{
    const size_t chunk[] = {4, 256, 256}, count[] = {4, 512, 512};
    size_t start[] = {0, 0, 0};
    int ncid, varid, dim[3];
    char *path = in_folder(name);
    int32_t *data = calloc(4 * 512 * 512, 4);
    NC(nc_create(path, NC_NETCDF4, &ncid));
    for (int j = 0; j < 3; j++)
        NC(nc_def_dim(ncid, (const char *[]){"t", "y", "x"}[j], sharded.shape[j], &dim[j]));
    NC(nc_def_var(ncid, "v", NC_INT, 3, dim, &varid));
    NC(nc_def_var_chunking(ncid, varid, NC_CHUNKED, chunk));
    for (; start[0] < sharded.shape[0]; start[0] += 4)
        NC(nc_put_vara(ncid, varid, start, count, data));
    NC(nc_close(ncid));
    free(data);
    free(path);
}

static int make_all(void **state)
{
    if (make_folder(state) != 0)
        return -1;
    make_large("large.zarr", &large);
    make_large("sharded.zarr", &sharded);
    make_large_nc("large.nc");
    return 0;
}

/* ---- in the process that measures ---- */

typedef struct row {
    const char *name, *store, *sample, *loader;
    unsigned kind; /* of `kinds` */
    uint64_t batch, batches;
    const char *engine, *device;
    uint64_t cache_nbytes;
    bool two; /* the store and the store again, interleaved */
} row;

static const row rows[] = {
    {"map, threads", "large.zarr", "t=1,y=200,x=200", "map", 1, 8, 20, NULL, NULL, 0, false},
    {"map, fork", "large.zarr", "t=1,y=200,x=200", "map", 2, 8, 20, NULL, NULL, 0, false},
    {"map, shards", "sharded.zarr", "t=1,y=200,x=200", "map", 1, 8, 20, NULL, NULL, 0, false},
    {"map, cache", "large.zarr", "t=1,y=200,x=200", "map", 1, 8, 20, NULL, NULL, 20 * MIB, false},
    {"planned, threads", "large.zarr", "t=1,y=200,x=200", "planned", 1, 8, 20, NULL, NULL, 0,
     false},
    {"planned, cache", "large.zarr", "t=1,y=200,x=200", "planned", 1, 8, 20, NULL, NULL, 60 * MIB,
     false},
    {"planned, fork", "sharded.zarr", "t=1,y=100,x=100", "planned", 2, 8, 40, NULL, NULL, 0, false},
    {"planned, many samples", "sharded.zarr", "t=1,y=8,x=8", "planned", 1, 64, 2000, NULL, NULL, 0,
     false},
    {"file, threads", "large.nc", "t=1,y=200,x=200", "map", 1, 8, 20, NULL, NULL, 0, false},
    {"file, fork", "large.nc", "t=1,y=200,x=200", "map", 2, 8, 20, NULL, NULL, 0, false},
    {"libnetcdf", "large.nc", "t=1,y=200,x=200", "map", 1, 4, 20, "netcdf", NULL, 0, false},
    {"device", "large.zarr", "t=1,y=200,x=200", "map", 1, 4, 20, NULL, "host", 0, false},
    {"two stores", "large.zarr", "t=1,y=100,x=200", "map", 1, 4, 20, NULL, NULL, 0, true},
};
enum {
    NROWS = sizeof rows / sizeof rows[0]
};

/* Prints the status, the peak and the plan that were reported, its own peak, and the error. */
static int measure(const char *where, size_t i, uint64_t memory)
{
    const row *r = &rows[i];
    cm_readbench_report report;
    cm_error err = {0};
    mallopt(M_ARENA_MAX, 4); /* as the programs do */
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    snprintf(folder, sizeof folder, "%s", where);
    char *store = in_folder(r->store);
    const char *const list[] = {store, store};
    cm_readbench_options o = quick_options(list, r->two ? 2 : 1);
    set_kind(&o, &kinds[r->kind]);
    o.sample = r->sample;
    o.loader = r->loader;
    o.batch = r->batch;
    o.batches = INSTRUMENTED ? r->batches / 4 : r->batches;
    o.engine = r->engine;
    o.device = r->device;
    o.cache_nbytes = r->cache_nbytes;
    o.memory = memory;
    o.validate = CM_READBENCH_VALIDATE_FULL;
    o.sample_ms = 5;
    o.hook = NULL; /* probing is part of it */
    const int rc = cm_readbench(&o, NULL, &report, &err);
    const uint64_t peak = report.nsessions > 0 ? report.session[0].peak_nbytes : 0;
    const uint64_t planned = report.nsessions > 0 ? report.session[0].memory_planned : 0;
    printf("%d %llu %llu %llu %s\n", rc, (unsigned long long)peak, (unsigned long long)planned,
           (unsigned long long)cm_peak_rss(), err.text);
    cm_readbench_report_release(&report);
    free(store);
    return 0;
}

/* ---- in the test ---- */

typedef struct measured {
    int rc;
    unsigned long long peak, planned, own;
    char text[600];
} measured;

static measured measure_apart(size_t i, uint64_t memory)
{
    char command[256], program[128] = "";
    measured m = {.rc = -1};
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    snprintf(command, sizeof command, "%s %s %s %zu %llu", program, MEASURE, folder, i,
             (unsigned long long)memory);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    if (fscanf(f, "%d %llu %llu %llu %599[^\n]", &m.rc, &m.peak, &m.planned, &m.own, m.text) < 4)
        m.rc = -1;
    assert_int_equal(pclose(f), 0);
    return m;
}

/* "... take 120 MiB, the memory allowed is ..." */
static uint64_t least_of(const char *text)
{
    unsigned long long mib = 0;
    const char *at = strstr(text, " take ");
    if (at == NULL || sscanf(at, " take %llu MiB", &mib) != 1)
        fail_msg("no least is told: %s", text);
    return (uint64_t)mib * MIB;
}

static void check_below(size_t i, uint64_t memory, const measured *m)
{
    if (m->rc != CM_OK)
        fail_msg("%s with %d MiB: %s", rows[i].name, (int)(memory / MIB), m->text);
    if (INSTRUMENTED)
        return;
    assert_true(m->peak > 5 * MIB);
    if (m->peak > memory || m->own > memory)
        fail_msg("%s with %d MiB: %.1f MiB were reported, %.1f MiB were this process's",
                 rows[i].name, (int)(memory / MIB), (double)m->peak / MIB, (double)m->own / MIB);
}

/*
 * A run with the LEAST that was told starts and stays within it.  What the system maps of the
 * libraries changes from process to process with what it has in memory: a few MiB more may be told.
 */
static void check_least(size_t i, uint64_t least)
{
    const uint64_t most = least + (rows[i].two ? 2 : 1) * DRIFT;
    uint64_t enough = INSTRUMENTED ? 2 * least : least;
    measured m = measure_apart(i, enough);
    for (int k = 0; k < 3 && m.rc == CM_EBUDGET; k++) {
        enough = least_of(m.text);
        if (enough > most)
            break;
        m = measure_apart(i, enough);
    }
    check_below(i, enough, &m);
}

/* A run that starts stays within its memory; one that is refused names an amount that suffices. */
static void test_memory_is_a_promise(void **state)
{
    static const uint64_t limits[] = {96 * MIB, 256 * MIB};
    (void)state;
    for (size_t i = 0; i < NROWS; i += stride(4))
        for (int k = INSTRUMENTED; k < 2; k++) {
            measured m = measure_apart(i, limits[k]);
            if (m.rc == CM_EBUDGET) {
                const uint64_t least = least_of(m.text);
                assert_true(least > limits[k] && k == 0);
                check_least(i, least);
            } else {
                check_below(i, limits[k], &m);
            }
        }
}

/* A dry run predicts the memory of a run, probes and workers included, within a tenth. */
static void test_memory_is_as_planned(void **state)
{
    (void)state;
    if (INSTRUMENTED)
        skip();
    for (size_t i = 0; i < NROWS; i += stride(4)) {
        const measured m = measure_apart(i, 1024 * MIB); /* the default is a part of what is free */
        if (m.rc != CM_OK)
            fail_msg("%s: %s", rows[i].name, m.text);
        const double ratio = (double)m.planned / (double)m.peak;
        if (!rows[i].two && (ratio < 0.9 || ratio > 1.1))
            fail_msg("%s: %.1f MiB were planned, %.1f MiB were taken", rows[i].name,
                     (double)m.planned / MIB, (double)m.peak / MIB);
    }
}

/* The least that is told is not far from what is needed. */
static void test_too_little_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < NROWS; i += stride(4)) {
        measured m = measure_apart(i, 10 * MIB);
        if (m.rc != CM_EBUDGET)
            fail_msg("%s with 10 MiB: %d %s", rows[i].name, m.rc, m.text);
        const uint64_t least = least_of(m.text);
        const uint64_t little = least - (rows[i].two ? 2 : 1) * DRIFT;
        if (!INSTRUMENTED)
            m = measure_apart(i, little);
        /* How little a plan could do with depends on its order, which depends on the memory. */
        if (m.rc != CM_EBUDGET && strcmp(rows[i].loader, "map") == 0)
            fail_msg("%s: %d MiB would have done", rows[i].name, (int)(little / MIB));
        check_least(i, least);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_a_promise),
        cmocka_unit_test(test_memory_is_as_planned),
        cmocka_unit_test(test_too_little_is_refused),
    };
    if (argc == 5 && strcmp(argv[1], MEASURE) == 0)
        return measure(argv[2], strtoul(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    return cmocka_run_group_tests_name("readbench_memory", tests, make_all, remove_folder);
}
