/* The commands of diagnoses, findings and proposals can be typed as they are. */

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
    char *words[] = {(char *)"readbench", (char *)"--warm", (char *)"--sample", (char *)"1x64x64",
                     (char *)"era5.zarr"};
    const readbench_typed typed = {5, words, false};
    static const row rows[] = {
        {"amplification", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "chunkcalc --sample time=1,lat=64,lon=64 --variable t2m --recommend era5.zarr"},
        {"amplification", "it's.zarr", "Zarr 3", "threads", 2, 2, 4, SIZE_MAX,
         "chunkcalc --sample 1x64 --variable 'ocean tas' --recommend 'it'\\''s.zarr'"},
        {"amplification", "era5.zarr", "Zarr 3", "threads", 0, 2, 4, SIZE_MAX,
         "chunkcalc era5.zarr"},
        {"failures", "-j.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "rechunk --digest ./-j.zarr"},
        {"library", "a b.nc", "NetCDF-4", "threads", 1, 2, 4, SIZE_MAX,
         "readbench --warm --sample 1x64x64 era5.zarr --engine native"},
        {"few-workers", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX, NULL},
        {"oversubscribed", "era5.zarr", "Zarr 3", "threads", 1, 6, 4, SIZE_MAX, NULL},
        {"fits-in-memory", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "readbench --sample 1x64x64 era5.zarr --cold"},
        {"contention", "era5.zarr", "Zarr 3", "threads", 1, 2, 4, SIZE_MAX,
         "readbench --warm --sample 1x64x64 era5.zarr"},
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
        const readbench_run run = {.report = &report, .typed = &typed};
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

/* ---- proposals ------------------------------------------------------------------------------ */

static char *proposed(const cm_readbench_session *s, unsigned nthreads)
{
    char *words[] = {(char *)"readbench", (char *)"era5.zarr"};
    const readbench_typed typed = {2, words, false};
    const cm_readbench_report report = {.session = (cm_readbench_session *)s,
                                        .nsessions = 1,
                                        .best = SIZE_MAX,
                                        .baseline = SIZE_MAX};
    const readbench_run run = {.report = &report, .typed = &typed, .nthreads = nthreads};
    return readbench_proposed_command(&run, s);
}

static void expect(const cm_readbench_session *s, unsigned nthreads, const char *want)
{
    char *command = proposed(s, nthreads);
    if (want == NULL && command != NULL)
        fail_msg("%s", command);
    if (want != NULL) {
        assert_non_null(command);
        assert_string_equal(command, want);
    }
    free(command);
}

/* The store written anew beside the old one, whatever that is called. */
static void test_rewriting(void **state)
{
    static const struct {
        const char *store, *format, *command;
    } rows[] = {
        {"d/era5.zarr/", "Zarr v3",
         "rechunk --chunks t2m:time=2,lat=64,lon=64 --shards t2m:none d/era5.zarr/ "
         "d/era5-rechunked.zarr"},
        {"d.x/era5", "Zarr v2",
         "rechunk --chunks t2m:time=2,lat=64,lon=64 d.x/era5 d.x/era5-rechunked.zarr"},
        {"../.hidden", "Zarr v2",
         "rechunk --chunks t2m:time=2,lat=64,lon=64 ../.hidden ../.hidden-rechunked.zarr"},
        {"d.x/era5.zarr::a/b.c", "Zarr v2",
         "rechunk --chunks t2m:time=2,lat=64,lon=64 d.x/era5.zarr::a/b.c d.x/era5-rechunked.zarr"},
        {"https://host.org/a/era5.zarr/?v=1/2.3", "Zarr v2",
         "rechunk --chunks t2m:time=2,lat=64,lon=64 'https://host.org/a/era5.zarr/?v=1/2.3' "
         "era5-rechunked.zarr"},
        {"s3://bucket/era5.zarr", "Zarr v2",
         "rechunk --chunks t2m:time=2,lat=64,lon=64 s3://bucket/era5.zarr "
         "s3://bucket/era5-rechunked.zarr"},
        {"-j.zarr", "Zarr v2",
         "rechunk --chunks t2m:time=2,lat=64,lon=64 ./-j.zarr ./-j-rechunked.zarr"},
        {"a b.nc", "NetCDF-4",
         "nc2zarr --chunks t2m:time=2,lat=64,lon=64 --shards t2m:none 'a b.nc' "
         "'a b-rechunked.zarr'"},
    };
    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        cm_readbench_part part = parts[0];
        memcpy(part.best_chunk, (uint64_t[]){2, 64, 64}, 3 * sizeof(uint64_t));
        const cm_readbench_session s = {.store = (char *)rows[r].store,
                                        .format = (char *)rows[r].format,
                                        .part = &part,
                                        .nparts = 1,
                                        .proposal = {.change = CM_CHANGE_CHUNKS}};
        expect(&s, 0, rows[r].command);
    }
}

/* Each variable once, by its own chunks and codec; a lag is no other variable. */
static void test_rewriting_several_variables(void **state)
{
    (void)state;
    cm_readbench_part part[] = {parts[0], parts[0], parts[1]};
    memcpy(part[0].light_chunk, (uint64_t[]){2, 64, 64}, 3 * sizeof(uint64_t));
    memcpy(part[1].light_chunk, (uint64_t[]){2, 64, 64}, 3 * sizeof(uint64_t));
    memcpy(part[2].light_chunk, (uint64_t[]){8, 64}, 2 * sizeof(uint64_t));
    part[2].light_in_shards = true;
    cm_readbench_session s = {.store = (char *)"a.zarr",
                              .format = (char *)"Zarr v3",
                              .part = part,
                              .nparts = 3,
                              .proposal = {.change = CM_CHANGE_CODEC}};
    expect(&s, 0,
           "rechunk --chunks t2m:time=2,lat=64,lon=64 --shards t2m:none --codec t2m:blosc:lz4 "
           "--chunks 'ocean tas:8x64' --shards 'ocean tas:auto' --codec 'ocean tas:blosc:lz4' "
           "a.zarr a-rechunked.zarr");
    part[2].variable = (char *)"t[2]"; /* which an option takes for a pattern */
    expect(&s, 0, NULL);
}

static void test_settings(void **state)
{
    (void)state;
    cm_readbench_session s = {.store = (char *)"era5.zarr",
                              .mode = (char *)"threads",
                              .workers = 2,
                              .worker_threads = 3,
                              .ranks = 2,
                              .proposal = {.change = CM_CHANGE_WORKERS, .value = 4}};
    expect(&s, 0, "readbench era5.zarr --workers 4");
    expect(&s, 12, "readbench era5.zarr --workers 4 --threads 24"); /* -j allows as many */
    s.mode = (char *)"sync";
    s.proposal.value = 1;
    expect(&s, 0, "readbench era5.zarr --mode threads --workers 1");
    s.proposal = (cm_readbench_proposal){.change = CM_CHANGE_PREFETCH, .value = 8};
    expect(&s, 0, "readbench era5.zarr --prefetch 8");
    s.proposal = (cm_readbench_proposal){.change = CM_CHANGE_STAGING};
    expect(&s, 0, "readbench era5.zarr --staging pinned");
    s.proposal = (cm_readbench_proposal){.change = CM_CHANGE_NONE};
    expect(&s, 0, NULL);
}

/* Options that a tuning has no use for would be refused. */
static void test_tuned(void **state)
{
    char *words[] = {(char *)"readbench",
                     (char *)"--tune",
                     (char *)"--out",
                     (char *)"o",
                     (char *)"--shuffle-window",
                     (char *)"4",
                     (char *)"--loader=planned",
                     (char *)"era5.zarr"};
    readbench_typed typed = {8, words, false};
    cm_readbench_session s = {.mode = (char *)"threads",
                              .loader = (char *)"map",
                              .workers = 2,
                              .worker_threads = 1,
                              .prefetch = 2};
    const cm_readbench_report report = {.session = &s, .nsessions = 1, .best = 0, .baseline = 0};
    const readbench_run run = {.report = &report, .typed = &typed};
    char *command = readbench_tuned_command(&run, &s);
    (void)state;
    assert_string_equal(command, "readbench --loader=planned era5.zarr --mode threads --workers 2 "
                                 "--worker-threads 1 --prefetch 2 --loader map");
    free(command);
    s.loader = (char *)"planned";
    typed.overwrite = true;
    command = readbench_tuned_command(&run, &s);
    assert_string_equal(command, "readbench --out o --shuffle-window 4 --loader=planned era5.zarr "
                                 "--mode threads --workers 2 --worker-threads 1 --prefetch 2 "
                                 "--loader planned");
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
        snprintf(want, sizeof want, "rechunk --chunks t2m:time=2,lat=64,lon=64 %s %s", store,
                 taken);
        cm_readbench_part part = parts[0];
        memcpy(part.best_chunk, (uint64_t[]){2, 64, 64}, 3 * sizeof(uint64_t));
        const cm_readbench_session s = {.store = store,
                                        .format = (char[]){"Zarr v2"},
                                        .part = &part,
                                        .nparts = 1,
                                        .proposal = {.change = CM_CHANGE_CHUNKS}};
        expect(&s, 0, want);
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
                                       cmocka_unit_test(test_rewriting),
                                       cmocka_unit_test(test_rewriting_several_variables),
                                       cmocka_unit_test(test_settings),
                                       cmocka_unit_test(test_tuned),
                                       cmocka_unit_test(test_new_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
