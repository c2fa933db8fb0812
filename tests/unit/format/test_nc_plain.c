/*
 * Files that are opened without a library are what the libraries say they are; all others are
 * left to them.
 */
#define H5_USE_110_API
#include <hdf5.h>
#include <netcdf.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "../../support/repair.h"
#include "nc_alike.h"
#include "nc_support.h"

#define NC(call) assert_int_equal(call, NC_NOERR)

/* ---- files ---- */

static int define(int nc, const char *name, nc_type type, int ndims, const int *dims)
{
    int id;
    NC(nc_def_var(nc, name, type, ndims, dims, &id));
    return id;
}

static void put_text(int nc, int var, const char *name, const char *text)
{
    NC(nc_put_att_text(nc, var, name, strlen(text), text));
}

static void put_step(int nc, int var)
{
    size_t at[4] = {2, 0, 0, 0}, n[4] = {1, 3, 4, 1};
    double value[12];
    for (size_t i = 0; i < 12; i++)
        value[i] = (double)i;
    NC(nc_put_vara_double(nc, var, at, n, value));
}

/* An unlimited dimension with a variable, one without, and a fixed one that has none. */
static void make_usual(int nc)
{
    int dim[3];
    NC(nc_def_dim(nc, "time", NC_UNLIMITED, &dim[0]));
    NC(nc_def_dim(nc, "lat", 3, &dim[1]));
    NC(nc_def_dim(nc, "lon", 4, &dim[2]));
    int time = define(nc, "time", NC_DOUBLE, 1, dim), lat = define(nc, "lat", NC_FLOAT, 1, dim + 1);
    int t2m = define(nc, "t2m", NC_FLOAT, 3, dim), count = define(nc, "count", NC_SHORT, 2, dim);
    define(nc, "crs", NC_CHAR, 0, NULL);
    define(nc, "unwritten", NC_UINT64, 1, dim + 2);
    NC(nc_def_var_deflate(nc, t2m, 1, 1, 4));
    NC(nc_def_var_fletcher32(nc, count, 1));
    NC(nc_def_var_fill(nc, count, 0, (short[]){-9}));
    NC(nc_def_var_endian(nc, count, NC_ENDIAN_BIG));
    put_text(nc, time, "units", "hours since 1979-01-01");
    put_text(nc, NC_GLOBAL, "Conventions", "CF-1.8");
    NC(nc_put_att_float(nc, t2m, "scale_factor", NC_FLOAT, 1, (float[]){0.5F}));
    NC(nc_put_att_double(nc, t2m, "add_offset", NC_DOUBLE, 1, (double[]){273.15}));
    NC(nc_put_att_short(nc, t2m, "levels", NC_SHORT, 3, (short[]){1, -2, 3}));
    NC(nc_put_att_text(nc, t2m, "empty", 0, ""));
    NC(nc_put_var_float(nc, lat, (float[]){1, 2, 3}));
    put_step(nc, t2m);
}

/* Beyond what an object header holds: links and attributes lie in heaps, long ones outside. */
static void make_many(int nc)
{
    char name[32];
    static char text[6000];
    int dim;
    memset(text, 'x', sizeof(text));
    NC(nc_def_dim(nc, "x", 5, &dim));
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "v%d", i);
        int var = define(nc, name, i % 2 ? NC_INT : NC_BYTE, i % 3 != 0, &dim);
        for (int k = 0; k < i; k++) {
            snprintf(name, sizeof(name), "a%d", (k * 7) % i);
            NC(nc_put_att_int(nc, var, name, NC_INT, 1, &k));
        }
    }
    for (size_t i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "long%zu", i);
        NC(nc_put_att_text(nc, NC_GLOBAL, name, i * 200, text));
    }
}

static void make_strings(int nc)
{
    int dim;
    NC(nc_def_dim(nc, "x", 2, &dim));
    int var = define(nc, "x", NC_INT64, 1, &dim);
    NC(nc_put_att_string(nc, var, "one", 1, (const char *[]){"one"}));
    NC(nc_put_att_string(nc, var, "three", 3, (const char *[]){"a", "", "long enough"}));
    NC(nc_put_att_string(nc, NC_GLOBAL, "none", 0, NULL));
}

/* Dimensions whose variables are none of their coordinates, or have several dimensions. */
static void make_names(int nc)
{
    int dim[3];
    NC(nc_def_dim(nc, "b", 2, &dim[0]));
    NC(nc_def_dim(nc, "a", NC_UNLIMITED, &dim[1]));
    NC(nc_def_dim(nc, "len", 3, &dim[2]));
    define(nc, "a", NC_CHAR, 2, dim + 1);
    define(nc, "len", NC_INT, 0, NULL);
    define(nc, "z", NC_FLOAT, 2, (int[]){dim[1], dim[0]});
    define(nc, "square", NC_FLOAT, 2, (int[]){dim[2], dim[2]});
}

static void make_text_variable(int nc)
{
    define(nc, "s", NC_STRING, 0, NULL);
}

static void make_group(int nc)
{
    int group;
    NC(nc_def_grp(nc, "inside", &group));
}

static void make_type(int nc)
{
    nc_type type;
    NC(nc_def_opaque(nc, 4, "four", &type));
}

static void make_compact(int nc)
{
    int dim;
    NC(nc_def_dim(nc, "x", 2, &dim));
    NC(nc_def_var_chunking(nc, define(nc, "v", NC_INT, 1, &dim), NC_COMPACT, NULL));
}

static void make_utf8(int nc)
{
    put_text(nc, NC_GLOBAL, "h\xc3\xb6he", "1 m");
}

static void make_nothing(int nc)
{
    (void)nc;
}

static const struct {
    const char *name;
    void (*make)(int nc);
    int mode;
    alike_answer want;
} files[] = {
    {"usual", make_usual, 0, ALIKE_SAME},
    {"usual, classic model", make_usual, NC_CLASSIC_MODEL, ALIKE_LEFT},
    {"many", make_many, 0, ALIKE_SAME},
    {"strings", make_strings, 0, ALIKE_SAME},
    {"names", make_names, 0, ALIKE_SAME},
    {"nothing", make_nothing, 0, ALIKE_SAME},
    {"nothing, classic model", make_nothing, NC_CLASSIC_MODEL, ALIKE_SAME},
    {"text variable", make_text_variable, 0, ALIKE_LEFT},
    {"group", make_group, 0, ALIKE_LEFT},
    {"user's type", make_type, 0, ALIKE_LEFT},
    {"compact", make_compact, 0, ALIKE_LEFT},
    {"UTF-8", make_utf8, 0, ALIKE_LEFT},
};

static void make(const char *path, void (*fill)(int nc), int mode)
{
    int nc;
    NC(nc_create(path, NC_NETCDF4 | NC_CLOBBER | mode, &nc));
    fill(nc);
    NC(nc_close(nc));
}

static void assert_answer(const char *name, const char *path, alike_answer want)
{
    const char *why;
    alike_answer got = alike_path(path, &why);
    if (got != want)
        fail_msg("%s: %d and not %d: %s", name, got, want, why != NULL ? why : "");
}

static void test_files(void **state)
{
    (void)state;
    const char *path = temp_path("plain.nc");
    for (size_t i = 0; i < COUNT(files); i++) {
        if (files[i].mode != 0 && files[i].make == make_usual)
            continue; /* uint64 is no type of the classic model */
        make(path, files[i].make, files[i].mode);
        assert_answer(files[i].name, path, files[i].want);
    }
    unlink(path);
}

/* Bytes that HDF5 writes for readers of before 1.8: another superblock, and no header with
   checksums; and with a user block. */
static void test_other_formats(void **state)
{
    (void)state;
    const char *path = temp_path("other.h5");
    for (int i = 0; i < 2; i++) {
        hid_t create = H5Pcreate(H5P_FILE_CREATE);
        if (i > 0)
            H5Pset_userblock(create, 512);
        hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, create, H5P_DEFAULT);
        hsize_t n = 4;
        hid_t space = H5Screate_simple(1, &n, NULL);
        hid_t set =
            H5Dcreate2(file, "v", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Dclose(set);
        H5Sclose(space);
        H5Fclose(file);
        H5Pclose(create);
        assert_answer("other", path, ALIKE_LEFT);
    }
    unlink(path);
}

/* ---- damage ---- */

typedef struct image {
    uint8_t *data;
    size_t nbytes;
} image;

static image load(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    image im = {.data = malloc(1 << 20)};
    im.nbytes = fread(im.data, 1, 1 << 20, f);
    fclose(f);
    return im;
}

static void save(const char *path, const image *im)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(im->data, 1, im->nbytes, f), im->nbytes);
    fclose(f);
}

/* In a process of its own: libraries crash and hang over what is left to them. */
static bool differs(const char *path)
{
    enum {
        DIFFERS = 77
    };
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const char *why;
        const int deaths[] = {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGALRM};
        for (size_t i = 0; i < COUNT(deaths); i++)
            signal(deaths[i], SIG_DFL); /* cmocka has handlers */
        alarm(20);
        _exit(alike_path(path, &why) == ALIKE_DIFFER ? DIFFERS : 0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == DIFFERS;
}

/*
 * One byte after the other is another one, every STEP of them.  With REPAIRED, checksums are
 * right all the same, and what is in the file is what it says.
 */
static void damage(void (*fill)(int nc), size_t step, bool repaired)
{
    char path[256];
    snprintf(path, sizeof(path), "%s", temp_path("damaged.nc"));
    make(path, fill, 0);
    image good = load(path), bad = {malloc(good.nbytes), good.nbytes};
    uint64_t seed = 88172645463325252u + step;
    for (size_t at = 8; at < good.nbytes; at += 1 + seed % (2 * step)) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        memcpy(bad.data, good.data, good.nbytes);
        bad.data[at] =
            seed & 1 ? (uint8_t)(seed >> 8) : (uint8_t)(bad.data[at] ^ 1U << (seed >> 8 & 7));
        if (repaired)
            repair(bad.data, bad.nbytes);
        save(path, &bad);
        if (differs(path))
            fail_msg("byte %zu, made %02x, is read in two ways", at, bad.data[at]);
    }
    free(good.data);
    free(bad.data);
    unlink(path);
}

static void test_damage(void **state)
{
    (void)state;
    damage(make_usual, 150, false);
    damage(make_strings, 100, false);
}

static void test_damage_with_checksums(void **state)
{
    (void)state;
    damage(make_usual, 100, true);
    damage(make_strings, 100, true);
    damage(make_names, 150, true);
}

/* Integers of a string of more bits than they have: HDF5 reads them or not, by its version. */
static void test_bits_of_text(void **state)
{
    (void)state;
    static const uint8_t usual[] = {0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0};
    char path[256];
    size_t found = 0;
    snprintf(path, sizeof(path), "%s", temp_path("bits.nc"));
    make(path, make_strings, 0);
    image im = load(path);
    for (size_t at = 0; at + sizeof(usual) <= im.nbytes; at++) {
        if (memcmp(im.data + at, usual, sizeof(usual)) != 0)
            continue;
        for (size_t i = 8; i < sizeof(usual); i++) {
            im.data[at + i] ^= 2;
            repair(im.data, im.nbytes);
            save(path, &im);
            assert_answer("bits of text", path, ALIKE_LEFT);
            im.data[at + i] ^= 2;
        }
        found++;
    }
    assert_int_equal(found, 3);
    free(im.data);
    unlink(path);
}

/* Cut off anywhere: never opened. */
static void test_cut(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof(path), "%s", temp_path("cut.nc"));
    make(path, make_usual, 0);
    image im = load(path);
    for (size_t n = im.nbytes - 1; n > 100; n -= 97) {
        cm_nc_file *file;
        im.nbytes = n;
        save(path, &im);
        assert_int_not_equal(cm_nc_open(path, &(cm_nc_options){.plain = true}, &file, NULL), CM_OK);
    }
    free(im.data);
    unlink(path);
}

/* The published values of the function. */
static void test_checksum(void **state)
{
    (void)state;
    assert_int_equal(cm_h5_checksum("", 0), 0xdeadbeef);
    assert_int_equal(cm_h5_checksum("Four score and seven years ago", 30), 0x17770551);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),        cmocka_unit_test(test_other_formats),
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_damage_with_checksums),
        cmocka_unit_test(test_cut),          cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_bits_of_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
