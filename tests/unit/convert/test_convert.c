/*
 * One conversion of a small file: what memory is asked for is enough and not exceeded by the plan
 * (plan.c), and verification finds what was changed behind its back (verify.c).
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <netcdf.h>

#include <chunkmill/transform.h>

#include "../unit.h"

#define MIB      ((uint64_t)1 << 20)
#define NC(call) assert_int_equal(call, NC_NOERR)

enum {
    NT = 8,
    NY = 512,
    NX = 512
};

static char folder[] = "/tmp/chunkmill-convert-XXXXXX";
static char input[64], output[64];

/* v(t, y, x), 8 MiB of numbers that count, in maps; and t. */
static int make_file(void **state)
{
    (void)state;
    int file, dim[3], v, t;
    const size_t chunk[3] = {1, NY, NX};
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(input, sizeof input, "%s/in.nc", folder);
    snprintf(output, sizeof output, "%s/out.zarr", folder);
    NC(nc_create(input, NC_CLOBBER | NC_NETCDF4, &file));
    NC(nc_def_dim(file, "t", NT, &dim[0]));
    NC(nc_def_dim(file, "y", NY, &dim[1]));
    NC(nc_def_dim(file, "x", NX, &dim[2]));
    NC(nc_def_var(file, "t", NC_INT, 1, dim, &t));
    NC(nc_def_var(file, "v", NC_INT, 3, dim, &v));
    NC(nc_def_var_chunking(file, v, NC_CHUNKED, chunk));
    NC(nc_put_att_text(file, v, "units", 1, "K"));
    NC(nc_enddef(file));
    int *data = malloc(sizeof(int) * NT * NY * NX);
    assert_non_null(data);
    for (int i = 0; i < NT * NY * NX; i++)
        data[i] = i + 1;
    NC(nc_put_var_int(file, t, data));
    NC(nc_put_var_int(file, v, data));
    free(data);
    return nc_close(file);
}

static void wipe(const char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'*", path);
    assert_int_equal(system(command), 0);
}

static int remove_folder(void **state)
{
    (void)state;
    wipe(folder);
    return 0;
}

static cm_transform_options options_with(const cm_texts *chunks, const cm_texts *codec)
{
    cm_transform_options o;
    cm_transform_options_init(&o, CM_DEFAULTS_CHOOSE);
    o.source = input;
    o.target = output;
    o.chunks = *chunks;
    o.codec = *codec;
    o.nthreads = 4;
    return o;
}

/* ---- the memory ---- */

/* "... at least 123 MiB ..." */
static uint64_t least_of(const char *text)
{
    double mib = 0;
    const char *at = strstr(text, "at least ");
    if (at == NULL || sscanf(at, "at least %lf MiB", &mib) != 1)
        fail_msg("no least is told: %s", text);
    return (uint64_t)(mib * MIB) + MIB / 64;
}

static void test_memory(void **state)
{
    static const struct {
        const char *chunks;
        cm_verify verify;
    } rows[] = {{"v:8x64x64", CM_VERIFY_NONE},     {"v:8x64x64", CM_VERIFY_FULL},
                {"v:8x512x512", CM_VERIFY_NONE},   {"v:8x512x512", CM_VERIFY_FULL},
                {"v:1x512x512", CM_VERIFY_SAMPLE}, {"v:3x200x200", CM_VERIFY_NONE}};
    const cm_texts codec = {(const char *const[]){"zstd"}, 1};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const cm_texts chunks = {&rows[i].chunks, 1};
        cm_transform_options o = options_with(&chunks, &codec);
        cm_transform_report report;
        cm_error err = {0};
        o.dry_run = true;
        o.verify = rows[i].verify;
        /* Without a limit the plan takes what decoding everything once needs. */
        assert_int_equal(cm_transform(&o, &report, &err), CM_OK);
        const uint64_t plenty = report.memory_limit;
        assert_true(report.memory_planned <= plenty);
        for (size_t k = 0; k < report.nvariables; k++)
            assert_true(report.variable[k].decodes_per_chunk <= 1.0);
        cm_transform_report_release(&report);
        /* Too little is refused with what would do, and that does, exactly. */
        o.memory = 4 * MIB;
        assert_int_equal(cm_transform(&o, &report, &err), CM_EBUDGET);
        const uint64_t least = least_of(err.text);
        cm_transform_report_release(&report);
        assert_true(least > o.memory);
        /* This process may have grown meanwhile, with a sanitizer by tens of MiB. */
        o.memory = least + 2 * MIB;
        int rc = cm_transform(&o, &report, &err);
        for (int k = 0; k < 3 && rc == CM_EBUDGET; k++) {
            o.memory = least_of(err.text) + 2 * MIB;
            cm_transform_report_release(&report);
            rc = cm_transform(&o, &report, &err);
        }
        if (rc != CM_OK)
            fail_msg("row %zu with %llu: %s", i, (unsigned long long)o.memory, err.text);
        assert_true(report.memory_planned <= o.memory);
        assert_true(report.nthreads >= 1 && report.nthreads <= 4);
        cm_transform_report_release(&report);
        o.memory = least - 4 * MIB;
        assert_int_equal(cm_transform(&o, &report, &err), CM_EBUDGET);
        cm_transform_report_release(&report);
        assert_int_equal(access(output, F_OK), -1); /* a plan writes nothing */
    }
}

/* ---- verification ---- */

static void file_of(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", output, name);
}

static void flip(const char *name)
{
    char path[128];
    uint8_t byte;
    file_of(path, sizeof path, name);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, 4), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, 4), 1);
    close(fd);
}

static void cut(const char *name)
{
    char path[128];
    file_of(path, sizeof path, name);
    assert_int_equal(truncate(path, 100), 0);
}

static void drop(const char *name)
{
    char path[128];
    file_of(path, sizeof path, name);
    assert_int_equal(unlink(path), 0);
}

/* The same length, another word. */
static void reword(const char *name)
{
    char path[128], text[8192];
    file_of(path, sizeof path, name);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    char *at = strstr(text, "\"K\"");
    assert_non_null(at);
    at[1] = 'C';
    rewind(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static void nothing(const char *name)
{
    (void)name;
}

static void test_check(void **state)
{
    static const struct {
        void (*damage)(const char *name);
        const char *name;
        int rc;
        const char *told; /* in the one difference */
    } rows[] = {
        {nothing, "", CM_OK, NULL},
        {flip, "v/c/0/0/0", CM_EDIFFER, "v"},
        {flip, "v/c/7/1/1", CM_EDIFFER, "v"},
        {flip, "t/c/0", CM_EDIFFER, "t"},
        {cut, "v/c/3/0/1", CM_EDIFFER, "v"},
        {drop, "v/c/3/0/1", CM_EDIFFER, "v"},
        {drop, "t/zarr.json", CM_EDIFFER, "t"},
        {reword, "v/zarr.json", CM_EDIFFER, "v"},
    };
    const cm_texts chunks = {(const char *const[]){"v:1x256x256"}, 1};
    const cm_texts codec = {(const char *const[]){"none"}, 1};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cm_transform_options o = options_with(&chunks, &codec);
        cm_transform_report report;
        cm_error err = {0};
        o.verify = CM_VERIFY_FULL;
        o.no_consolidate = true;
        if (cm_transform(&o, &report, &err) != CM_OK)
            fail_msg("%s", err.text);
        assert_int_equal(report.ndifferences, 0);
        assert_int_equal(report.nverified, NT + (uint64_t)NT * NY * NX);
        cm_transform_report_release(&report);
        rows[i].damage(rows[i].name);
        o.check = true;
        const int rc = cm_transform(&o, &report, &err);
        if (rc != rows[i].rc)
            fail_msg("row %zu: %d %s", i, rc, err.text);
        assert_int_equal(report.ndifferences > 0, rows[i].told != NULL);
        if (rows[i].told != NULL && strstr(report.difference[0], rows[i].told) == NULL)
            fail_msg("row %zu: %s", i, report.difference[0]);
        cm_transform_report_release(&report);
        wipe(output);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests_name("convert", tests, make_file, remove_folder);
}
