/* The commands against what was found can be typed as they are. */

#include <sys/stat.h>
#include <unistd.h>

#include "../../../tools/readbench/remedy.h"
#include "../unit.h"

static cm_readbench_part parts[2] = {{.variable = "t2m",
                                      .rank = 3,
                                      .dim_name = {"time", "lat", "lon"},
                                      .sample = {1, 64, 64},
                                      .chunk = {24, 64, 64},
                                      .chunked = true,
                                      .nbytes = 16384},
                                     {.variable = "ocean tas",
                                      .rank = 2,
                                      .dim_name = {"time", NULL},
                                      .sample = {1, 64},
                                      .chunk = {1000, 64},
                                      .chunked = true,
                                      .nbytes = 16384}};

typedef struct row {
    const char *what, *store, *format, *mode;
    size_t nparts;
    unsigned workers, cpus;
    size_t best;
    const char *command; /* NULL: none */
} row;

static void test_commands(void **state)
{
    static const char again[] = "readbench --sample 1x64x64 era5.zarr";
    static const row rows[] = {
        {"amplification", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "chunkcalc --sample time=1,lat=64,lon=64 --variable t2m --recommend era5.zarr"},
        {"amplification", "it's.zarr", "Zarr 3", "threads", 2, 2, 4, SIZE_MAX,
         "chunkcalc --sample 1x64 --variable 'ocean tas' --recommend 'it'\\''s.zarr'"},
        {"amplification", "era5.zarr", "Zarr 3", "threads", 0, 2, 4, SIZE_MAX,
         "chunkcalc era5.zarr"},
        {"chunk-shape", "d/era5.zarr/", "Zarr 2", "threads", 1, 2, 4, SIZE_MAX,
         "rechunk --sample time=1,lat=64,lon=64 d/era5.zarr/ d/era5-rechunked.zarr"},
        {"chunk-shape", "d.x/era5", "Zarr 2", "threads", 1, 2, 4, SIZE_MAX,
         "rechunk --sample time=1,lat=64,lon=64 d.x/era5 d.x/era5-rechunked.zarr"},
        {"chunk-shape", "../.hidden", "Zarr 2", "threads", 1, 2, 4, SIZE_MAX,
         "rechunk --sample time=1,lat=64,lon=64 ../.hidden ../.hidden-rechunked.zarr"},
        {"chunk-shape", "d.x/era5.zarr::a/b.c", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "rechunk --sample time=1,lat=64,lon=64 d.x/era5.zarr::a/b.c d.x/era5-rechunked.zarr"},
        {"chunk-shape", "https://host.org/a/era5.zarr/?v=1/2.3", "Zarr 3", "threads", 1, 2, 4,
         SIZE_MAX,
         "rechunk --sample time=1,lat=64,lon=64 'https://host.org/a/era5.zarr/?v=1/2.3' "
         "era5-rechunked.zarr"},
        {"chunk-shape", "s3://bucket/era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "rechunk --sample time=1,lat=64,lon=64 s3://bucket/era5.zarr "
         "s3://bucket/era5-rechunked.zarr"},
        {"failures", "-j.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "rechunk --digest ./-j.zarr"},
        {"cpus", "-j.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "rechunk --codec blosc:lz4 ./-j.zarr ./-j-rechunked.zarr"},
        {"library", "a b.nc", "NetCDF-4", "threads", 1, 2, 4, SIZE_MAX,
         "nc2zarr --sample time=1,lat=64,lon=64 'a b.nc' 'a b-rechunked.zarr'"},
        {"cpus", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "rechunk --codec blosc:lz4 era5.zarr era5-rechunked.zarr"},
        {"few-workers", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "readbench --sample 1x64x64 era5.zarr --workers 4"},
        {"few-workers", "era5.zarr", "Zarr 3", "sync", 1, 1, 4, SIZE_MAX,
         "readbench --sample 1x64x64 era5.zarr --mode threads"},
        {"few-workers", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, 0, NULL}, /* of a sweep */
        {"oversubscribed", "era5.zarr", "Zarr 3", "threads", 1, 6, 4, SIZE_MAX,
         "readbench --sample 1x64x64 era5.zarr --workers 4"},
        {"oversubscribed", "era5.zarr", "Zarr 3", "threads", 1, 3, 4, SIZE_MAX, NULL},
        {"fits-in-memory", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "readbench --sample 1x64x64 era5.zarr --cold"},
        {"contention", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX, again},
        {"step", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX, NULL},
    };
    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        cm_readbench_session s = {.store = (char *)rows[r].store,
                                  .format = (char *)rows[r].format,
                                  .mode = (char *)rows[r].mode,
                                  .part = parts,
                                  .nparts = rows[r].nparts,
                                  .workers = rows[r].workers,
                                  .worker_threads = 1,
                                  .ranks = 1,
                                  .cpus = rows[r].cpus};
        const cm_readbench_report report = {
            .session = &s, .nsessions = 1, .best = rows[r].best, .baseline = SIZE_MAX};
        const readbench_run run = {.report = &report, .again = again};
        char *command = readbench_remedy(&run, &s, rows[r].what);
        if (rows[r].command == NULL) {
            if (command != NULL)
                fail_msg("row %zu: %s", r, command);
        } else {
            assert_non_null(command);
            assert_string_equal(command, rows[r].command);
        }
        free(command);
    }
}

/* More workers than -j allows come with a larger limit. */
static void test_workers_with_a_limit(void **state)
{
    (void)state;
    cm_readbench_session s = {.store = (char *)"era5.zarr",
                              .format = (char *)"Zarr 3",
                              .mode = (char *)"threads",
                              .workers = 2,
                              .worker_threads = 3,
                              .ranks = 2,
                              .cpus = 64};
    const cm_readbench_report report = {
        .session = &s, .nsessions = 1, .best = SIZE_MAX, .baseline = SIZE_MAX};
    const readbench_run run = {
        .report = &report, .again = "readbench -j 12 era5.zarr", .nthreads = 12};
    char *command = readbench_remedy(&run, &s, "few-workers");
    assert_non_null(command);
    assert_string_equal(command, "readbench -j 12 era5.zarr --workers 4 --threads 24");
    free(command);
}

/* A hint never names an existing output. */
static void test_new_names(void **state)
{
    char folder[] = "/tmp/remedy-XXXXXX", store[64], taken[64], want[256];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(store, sizeof store, "%s/a.zarr", folder);
    for (int i = 1; i <= 3; i++) {
        const char *format = i == 1 ? "%s/a-rechunked.zarr" : "%s/a-rechunked-%d.zarr";
        snprintf(taken, sizeof taken, format, folder, i);
        snprintf(want, sizeof want, "rechunk --codec blosc:lz4 %s %s", store, taken);
        cm_readbench_session s = {.store = store, .format = (char[]){"Zarr 3"}};
        const readbench_run run = {0};
        char *command = readbench_remedy(&run, &s, "cpus");
        assert_string_equal(command, want);
        free(command);
        assert_int_equal(mkdir(taken, 0777), 0);
    }
    for (int i = 1; i <= 3; i++) {
        snprintf(taken, sizeof taken, i == 1 ? "%s/a-rechunked.zarr" : "%s/a-rechunked-%d.zarr",
                 folder, i);
        rmdir(taken);
    }
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_commands),
                                       cmocka_unit_test(test_workers_with_a_limit),
                                       cmocka_unit_test(test_new_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
