/* Files that cannot be opened are refused with one sentence that says why. */
#define H5_USE_110_API
#include <fcntl.h>
#include <hdf5.h>
#include <netcdf.h>
#include <sys/stat.h>

#include "nc_support.h"

static void write_file(const char *path, const void *data, size_t nbytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, nbytes, f), nbytes);
    assert_int_equal(fclose(f), 0);
}

static off_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void assert_refused(const char *path, cm_status status, const char *text)
{
    cm_nc_file *file;
    cm_error err;
    int rc = cm_nc_open(path, NULL, &file, &err);
    assert_null(file);
    if (rc == CM_OK)
        fail_msg("%s was opened", path);
    if (rc != (int)status || !strstr(err.text, text) || strncmp(err.text, path, strlen(path)) != 0)
        fail_msg("status %d: %s; wanted: %s", rc, err.text, text);
}

static void test_not_files(void **state)
{
    (void)state;
    const char *path = temp_path("nothing");
    unlink(path);
    assert_refused(path, CM_ENOTFOUND, "No such file");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused(path, CM_EFORMAT, "is a folder");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, CM_EFORMAT, "not a regular file");
    unlink(path);
    write_file(path, "", 0);
    assert_refused(path, CM_EFORMAT, "is empty");
    if (geteuid() != 0) { /* root may read everything */
        chmod(path, 0);
        assert_refused(path, CM_EIO, "Permission denied");
    }
    unlink(path);
}

/* Other first bytes than those of NetCDF and HDF5 are refused before anything else. */
static void test_recognised_by_first_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t nbytes;
        cm_status status;
    } table[] = {
        {"PK\003\004 and so on", 13, CM_EUNSUPPORTED},
        {"{\"refs\": {}}", 12, CM_EUNSUPPORTED},
        {"\211HD", 3, CM_EUNSUPPORTED},
        {"CDF\1", 4, CM_EFORMAT},
        {"\211HDF\r\n\032\n", 8, CM_EFORMAT},
    };
    const char *path = temp_path("head");
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        cm_nc_file *file;
        cm_error err;
        write_file(path, table[i].bytes, table[i].nbytes);
        assert_int_equal(cm_nc_open(path, &(cm_nc_options){.recognises = true}, &file, &err),
                         table[i].status);
    }
    unlink(path);
}

/* Bytes that begin like something, by hand. */
static void test_headers(void **state)
{
    (void)state;
#define CDF1   "CDF\1\0\0\0\0"
#define ABSENT "\0\0\0\0\0\0\0\0"
    static const struct {
        const char *name;
        const char *bytes;
        size_t nbytes;
        const char *text;
    } table[] = {
        {"text", "hello, world", 12, "neither NetCDF nor HDF5"},
        {"two bytes", "CD", 2, "neither NetCDF nor HDF5"},
        {"an unknown version", "CDF\3\0\0\0\0", 8, "neither NetCDF nor HDF5"},
        {"HDF4", "\016\003\023\001\0\0\0\0", 8, "neither NetCDF nor HDF5"},
        {"a magic number", "CDF\1", 4, "the number of records would reach past the end"},
        {"no dimensions", CDF1, 8, "cut off"},
        {"a wrong tag", CDF1 "\0\0\0\13\0\0\0\1", 16, "begins no list of dimensions"},
        {"a count from nowhere", CDF1 "\0\0\0\12\177\377\377\377", 16,
         "it counts 2147483647 dimensions in a file of 16 bytes"},
        {"a long name", CDF1 "\0\0\0\12\0\0\0\1\0\1\0\0xxxxxxxx", 28, "longer than NetCDF allows"},
        {"two unlimited dimensions",
         CDF1 "\0\0\0\12\0\0\0\2\0\0\0\1a\0\0\0\0\0\0\0\0\0\0\1b\0\0\0\0\0\0\0", 40,
         "b is a second unlimited dimension"},
        {"an attribute's length",
         CDF1 ABSENT "\0\0\0\14\0\0\0\1\0\0\0\1a\0\0\0\0\0\0\6\377\377\377\377", 40,
         "an attribute's value would reach past the end"},
        {"an attribute's type", CDF1 ABSENT "\0\0\0\14\0\0\0\1\0\0\0\1a\0\0\0\0\0\0\7\0\0\0\0", 40,
         "an attribute has type 7"},
        {"a rank from nowhere",
         CDF1 ABSENT ABSENT "\0\0\0\13\0\0\0\1\0\0\0\1v\0\0\0\0\1\0\0" ABSENT ABSENT, 60,
         "variable v has 65536 dimensions"},
        {"a dimension from nowhere",
         CDF1 ABSENT ABSENT "\0\0\0\13\0\0\0\1\0\0\0\1v\0\0\0\0\0\0\1\0\0\0\5" ABSENT ABSENT, 64,
         "variable v has dimension 5 of 0"},
        {"data in the header",
         CDF1 ABSENT ABSENT "\0\0\0\13\0\0\0\1\0\0\0\1v\0\0\0\0\0\0\0" ABSENT
                            "\0\0\0\6\0\0\0\10\0\0\0\10",
         64, "variable v begins at 8, before the end of the header at 64"},
        {"data behind the end",
         CDF1 ABSENT ABSENT "\0\0\0\13\0\0\0\1\0\0\0\1v\0\0\0\0\0\0\0" ABSENT
                            "\0\0\0\6\0\0\0\10\0\0\0\100",
         64, "truncated: the header promises 72 bytes, the file has 64"},
        {"an HDF5 signature", "\211HDF\r\n\032\n", 8, "cut off"},
        {"an HDF5 version", "\211HDF\r\n\032\n\11\10\10\0" ABSENT, 20, "superblock version 9"},
        {"HDF5 widths", "\211HDF\r\n\032\n\2\77\10\0" ABSENT ABSENT ABSENT ABSENT, 44,
         "addresses of 63 and lengths of 8 bytes"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *path = temp_path("header");
        write_file(path, table[i].bytes, table[i].nbytes);
        assert_refused(path, CM_EFORMAT, table[i].text);
        unlink(path);
    }
}

/*
 * A file of fixed variables, records, or both; 3 bytes at the end of each, so that padding
 * follows.
 */
static void make_classic(const char *path, int mode, bool fixed, bool records)
{
    int id, dim, rec, v;
    signed char value[3] = {1, 2, 3};
    size_t start[2] = {0, 0}, count[2] = {1, 3};
    assert_int_equal(nc_create(path, mode | NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_dim(id, "x", 3, &dim), 0);
    assert_int_equal(nc_def_dim(id, "t", NC_UNLIMITED, &rec), 0);
    int dims[2] = {rec, dim};
    if (fixed)
        assert_int_equal(nc_def_var(id, "fixed", NC_BYTE, 1, &dim, &v), 0);
    if (records) {
        assert_int_equal(nc_def_var(id, "a", NC_BYTE, 2, dims, &v), 0);
        assert_int_equal(nc_def_var(id, "b", NC_BYTE, 2, dims, &v), 0);
    }
    assert_int_equal(nc_enddef(id), 0);
    for (start[0] = 0; records && start[0] < 4; start[0]++) {
        assert_int_equal(nc_put_vara_schar(id, fixed, start, count, value), 0);
        assert_int_equal(nc_put_vara_schar(id, fixed + 1, start, count, value), 0);
    }
    assert_int_equal(nc_close(id), 0);
}

/* The file may lack the padding of its last variable, and not one byte more. */
static void test_truncated_classic(void **state)
{
    (void)state;
    static const struct {
        int mode;
        bool fixed, records;
    } table[] = {
        {0, true, false},
        {0, false, true},
        {0, true, true},
        {NC_64BIT_OFFSET, true, true},
        {NC_64BIT_DATA, true, true},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *path = temp_path("classic.nc");
        make_classic(path, table[i].mode, table[i].fixed, table[i].records);
        off_t size = size_of(path);
        cm_nc_file *file;
        cm_error err;
        assert_int_equal(truncate(path, size - 1), 0); /* the padding */
        ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
        cm_nc_close(file);
        char text[128];
        snprintf(text, sizeof text, "truncated: the header promises %ld bytes, the file has %ld",
                 (long)size - 1, (long)size - 2);
        assert_int_equal(truncate(path, size - 2), 0);
        assert_refused(path, CM_EFORMAT, text);
        unlink(path);
    }
}

static void make_hdf5(const char *path, hsize_t user_block, bool latest)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), fcpl = H5Pcreate(H5P_FILE_CREATE);
    if (latest)
        H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Pset_userblock(fcpl, user_block);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl);
    hsize_t n = 100;
    int data[100] = {0};
    hid_t space = H5Screate_simple(1, &n, NULL);
    hid_t d = H5Dcreate2(file, "v", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(fapl);
    H5Pclose(fcpl);
}

static void test_truncated_hdf5(void **state)
{
    (void)state;
    static const struct {
        hsize_t user_block;
        bool latest;
    } table[] = {{0, false}, {512, false}, {4096, false}, {0, true}, {1024, true}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *path = temp_path("truncated.h5");
        make_hdf5(path, table[i].user_block, table[i].latest);
        long size = (long)size_of(path);
        cm_nc_file *file;
        cm_error err;
        ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
        assert_int_equal(cm_nc_file_nbytes(file), size);
        assert_string_equal(cm_nc_format_name(file), "HDF5");
        cm_nc_close(file);
        char text[128];
        snprintf(text, sizeof text, "truncated: the header promises %ld bytes, the file has %ld",
                 size, size - 1);
        assert_int_equal(truncate(path, size - 1), 0);
        assert_refused(path, CM_EFORMAT, text);
        unlink(path);
    }
}

/* A user block put in front of a finished file: the superblock's own base address is then wrong. */
static void test_user_block_put_in_front(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof path, "%s", temp_path("bare.h5"));
    make_hdf5(path, 0, false);
    size_t size = (size_t)size_of(path);
    uint8_t *data = calloc(1, size + 512);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(data + 512, 1, size, f), size);
    fclose(f);
    write_file(path, data, size + 512);
    cm_nc_file *file;
    cm_error err;
    ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
    cm_nc_var *var = find_var(file, "v");
    ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
    assert_same_as_library(file, var);
    cm_nc_close(file);
    write_file(path, data, size + 511);
    assert_refused(path, CM_EFORMAT, "truncated");
    free(data);
    unlink(path);
}

/* netCDF-C would walk such groups for ever, or say no more than "HDF error". */
static void test_groups_refused(void **state)
{
    (void)state;
    const char *path = temp_path("cycle.h5");
    for (int kind = 0; kind < 3; kind++) {
        make_hdf5(path, 0, false);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (kind == 0)
            H5Lcreate_hard(file, "/", group, "up", H5P_DEFAULT, H5P_DEFAULT);
        else
            H5Lcreate_soft(kind == 1 ? "/g" : "/nowhere", group, "up", H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(group);
        H5Fclose(file);
        assert_refused(path, kind == 2 ? CM_EFORMAT : CM_EUNSUPPORTED,
                       kind == 2 ? "the link up leads nowhere" : "group up contains itself");
    }
    unlink(path);
}

/* The number of records was not written: it follows from the size of the file. */
static void test_streaming(void **state)
{
    (void)state;
    const char *path = temp_path("streaming.nc");
    make_classic(path, 0, true, true);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "\377\377\377\377", 4, 4), 4);
    close(fd);
    cm_nc_file *file;
    cm_error err;
    ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
    cm_nc_var *var = find_var(file, "b");
    assert_int_equal(var->array.shape[0], 4);
    assert_int_equal(cm_nc_group_at(file, 0)->dim[1].length, 4);
    ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
    cm_box box = whole(&var->array);
    signed char value[12];
    ASSERT_OK(var->array.ops->read_box(&var->array, &box, value, &err), err);
    for (int i = 0; i < 12; i++)
        assert_int_equal(value[i], 1 + i % 3);
    cm_nc_close(file);
    unlink(path);
}

static hid_t number_of_new_list(void)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(list >= 0);
    H5Pclose(list);
    return list;
}

/* netCDF-C 4.9.0 leaves a list open for each file, which took a survey 5 KiB of memory. */
static void test_nothing_left_open(void **state)
{
    (void)state;
    const char *path = temp_path("left.nc");
    for (int variant = 0; variant < 3; variant++) {
        make_classic(path,
                     variant == 0   ? NC_NETCDF4
                     : variant == 1 ? NC_NETCDF4 | NC_CLASSIC_MODEL
                                    : NC_64BIT_DATA,
                     true, true);
        cm_nc_file *file;
        cm_error err;
        ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err); /* what is made once is made now */
        cm_nc_close(file);
        hid_t before = number_of_new_list();
        ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
        for (size_t i = 0; i < cm_nc_nvars(file); i++)
            ASSERT_OK(cm_nc_var_prepare(file, cm_nc_var_at(file, i), &err), err);
        cm_nc_close(file);
        for (hid_t id = before, after = number_of_new_list(); id <= after; id++)
            if (H5Iis_valid(id) > 0)
                fail_msg("variant %d: property list %lld is still open", variant, (long long)id);
        unlink(path);
    }
}

static void test_versions(void **state)
{
    (void)state;
    char text[32];
    unsigned n[3];
    char rest;
    assert_int_equal(sscanf(cm_nc_netcdf_version(), "%u.%u.%u%c", &n[0], &n[1], &n[2], &rest), 3);
    cm_nc_hdf5_version(text, sizeof text);
    assert_int_equal(sscanf(text, "%u.%u.%u%c", &n[0], &n[1], &n[2], &rest), 3);
}

static void test_shared_bad(void **state)
{
    (void)state;
    const char *path = "../shared/data/bad/bad_cdf5_begin.nc";
    if (access(path, R_OK) != 0) {
        print_message("  SKIPPED: %s is not there\n", path);
        skip();
    }
    assert_refused(path, CM_EFORMAT, "variable var_small begins at");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_files),         cmocka_unit_test(test_recognised_by_first_bytes),
        cmocka_unit_test(test_headers),           cmocka_unit_test(test_truncated_classic),
        cmocka_unit_test(test_truncated_hdf5),    cmocka_unit_test(test_user_block_put_in_front),
        cmocka_unit_test(test_groups_refused),    cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_nothing_left_open), cmocka_unit_test(test_versions),
        cmocka_unit_test(test_shared_bad),
    };
    return cmocka_run_group_tests_name("nc_open", tests, NULL, NULL);
}
