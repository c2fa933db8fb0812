/* NetCDF classic by arithmetic: any box of any type is what netCDF-C reads. */
#include <math.h>
#include <netcdf.h>

#include "nc_support.h"

static const struct {
    nc_type type;
    bool only_cdf5;
    uint32_t nbytes;
    cm_kind kind;
} types[] = {
    {NC_BYTE, false, 1, CM_KIND_INT},    {NC_CHAR, false, 1, CM_KIND_BYTES},
    {NC_SHORT, false, 2, CM_KIND_INT},   {NC_INT, false, 4, CM_KIND_INT},
    {NC_FLOAT, false, 4, CM_KIND_FLOAT}, {NC_DOUBLE, false, 8, CM_KIND_FLOAT},
    {NC_UBYTE, true, 1, CM_KIND_UINT},   {NC_USHORT, true, 2, CM_KIND_UINT},
    {NC_UINT, true, 4, CM_KIND_UINT},    {NC_INT64, true, 8, CM_KIND_INT},
    {NC_UINT64, true, 8, CM_KIND_UINT},
};

enum {
    NTYPES = sizeof types / sizeof *types,
    NRECORDS = 7,
    NY = 5,
    NX = 3
};

static uint32_t seed = 1;
static uint32_t next_random(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void put(int id, int varid, const size_t *count, size_t nelem)
{
    static const size_t start[3] = {0, 0, 0};
    uint8_t data[NRECORDS * NY * NX * 8];
    for (size_t i = 0; i < nelem * 8; i++)
        data[i] = (uint8_t)next_random(256);
    assert_int_equal(nc_put_vara(id, varid, start, count, data), 0);
}

/* For every type a scalar, a fixed and a record variable; or one record variable alone. */
static void make_file(const char *path, int mode, int only)
{
    int id, dim[3], varid;
    bool cdf5 = mode == NC_64BIT_DATA;
    size_t records[3] = {NRECORDS, NY, NX};
    assert_int_equal(nc_create(path, mode | NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_dim(id, "t", NC_UNLIMITED, &dim[0]), 0);
    assert_int_equal(nc_def_dim(id, "y", NY, &dim[1]), 0);
    assert_int_equal(nc_def_dim(id, "x", NX, &dim[2]), 0);
    for (int i = 0; i < NTYPES; i++) {
        char name[16];
        if ((types[i].only_cdf5 && !cdf5) || (only >= 0 && only != i))
            continue;
        for (int kind = only >= 0 ? 2 : 0; kind < 3; kind++) {
            static const char letter[] = "sfr";
            snprintf(name, sizeof name, "%c%d", letter[kind], i);
            int rank = kind == 0 ? 0 : kind == 1 ? 2 : 3;
            assert_int_equal(nc_def_var(id, name, types[i].type, rank, dim + 3 - rank, &varid), 0);
        }
    }
    assert_int_equal(nc_enddef(id), 0);
    int nvars = 0;
    assert_int_equal(nc_inq_nvars(id, &nvars), 0);
    for (varid = 0; varid < nvars; varid++) {
        int rank = 0;
        assert_int_equal(nc_inq_varndims(id, varid, &rank), 0);
        size_t nelem = rank == 0 ? 1 : rank == 2 ? NY * NX : NRECORDS * NY * NX;
        put(id, varid, records + 3 - rank, nelem);
    }
    assert_int_equal(nc_close(id), 0);
}

static void compare_boxes(cm_nc_file *file, cm_nc_var *var)
{
    uint8_t own[NRECORDS * NY * NX * 8], library[sizeof own];
    cm_array *a = &var->array;
    cm_error err;
    for (int n = 0; n < 40; n++) {
        cm_box box = {.rank = a->rank};
        for (unsigned j = 0; j < a->rank; j++) {
            box.start[j] = next_random((uint32_t)a->shape[j]);
            box.shape[j] = 1 + next_random((uint32_t)(a->shape[j] - box.start[j]));
        }
        ASSERT_OK(a->ops->read_box(a, &box, own, &err), err);
        ASSERT_OK(cm_nc_read_library(file, var, &box, library, &err), err);
        assert_memory_equal(own, library, (size_t)cm_box_nelem(&box) * a->dtype.nbytes);
    }
}

static void compare_file(const char *path, int version)
{
    cm_nc_file *file;
    cm_error err;
    char name[32];
    ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
    snprintf(name, sizeof name, "NetCDF classic (CDF-%d)", version);
    assert_string_equal(cm_nc_format_name(file), name);
    assert_true(cm_nc_nvars(file) > 0);
    for (size_t i = 0; i < cm_nc_nvars(file); i++) {
        cm_nc_var *var = cm_nc_var_at(file, i);
        int type = atoi(var->array.name + 1);
        ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
        assert_int_equal(var->access, CM_NC_ARITHMETIC);
        assert_false(var->array.serial);
        assert_false(var->array.chunked);
        assert_int_equal(var->array.grid.nchunks, 1);
        assert_int_equal(var->array.dtype.kind, types[type].kind);
        assert_int_equal(var->array.dtype.nbytes, types[type].nbytes);
        assert_int_equal(var->unlimited[0], var->array.name[0] == 'r');
        assert_int_equal(var->stored_nbytes, array_nbytes(&var->array));
        compare_boxes(file, var);
        assert_same_as_library(file, var);
    }
    cm_nc_close(file);
}

static const struct {
    int mode;
    int version;
} modes[] = {{0, 1}, {NC_64BIT_OFFSET, 2}, {NC_64BIT_DATA, 5}};

static void test_all_types(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const char *path = temp_path("classic.nc");
        make_file(path, modes[i].mode, -1);
        compare_file(path, modes[i].version);
        unlink(path);
    }
}

/* A lone record variable has no padding between its records. */
static void test_one_record_variable(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (int type = 0; type < NTYPES; type++) {
            if (types[type].only_cdf5 && modes[i].version != 5)
                continue;
            const char *path = temp_path("record.nc");
            make_file(path, modes[i].mode, type);
            compare_file(path, modes[i].version);
            unlink(path);
        }
}

static void test_no_records(void **state)
{
    (void)state;
    int id, dim, varid;
    const char *path = temp_path("none.nc");
    assert_int_equal(nc_create(path, NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_dim(id, "t", NC_UNLIMITED, &dim), 0);
    assert_int_equal(nc_def_var(id, "t", NC_DOUBLE, 1, &dim, &varid), 0);
    assert_int_equal(nc_close(id), 0);
    cm_nc_file *file;
    cm_error err;
    ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
    cm_nc_var *var = find_var(file, "t");
    ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
    assert_int_equal(var->array.shape[0], 0);
    assert_int_equal(var->array.grid.nchunks, 0);
    assert_true(var->is_coordinate);
    cm_box box = whole(&var->array);
    ASSERT_OK(var->array.ops->read_box(&var->array, &box, NULL, &err), err);
    ASSERT_OK(cm_nc_read_library(file, var, &box, NULL, &err), err);
    cm_nc_close(file);
    unlink(path);
}

static const float f_nan = NAN, f_big = 1e20f, f_default = NC_FILL_FLOAT;
static const double d_nan = NAN, d_big = 1e20, d_default = NC_FILL_DOUBLE;
static const short s_own = -9, s_default = NC_FILL_SHORT;
static const int i_own = -9, i_default = NC_FILL_INT;
static const signed char b_own = 0, b_default = NC_FILL_BYTE;
static char long_text[900];

/* A variable, its _FillValue (which old libraries wrote of any type and length), and its fill. */
static const struct {
    const char *name;
    nc_type type, fill_type;
    size_t nelem; /* of _FillValue */
    const void *fill;
    const void *becomes;
    bool has;
} fills[] = {
    {"float", NC_FLOAT, NC_FLOAT, 1, &f_big, &f_big, true},
    {"float_nan", NC_FLOAT, NC_FLOAT, 1, &f_nan, &f_nan, true},
    {"float_of_double", NC_FLOAT, NC_DOUBLE, 1, &d_big, &f_big, true},
    {"float_nan_of_double", NC_FLOAT, NC_DOUBLE, 1, &d_nan, &f_nan, true},
    {"float_of_text", NC_FLOAT, NC_CHAR, sizeof long_text, long_text, &f_default, false},
    {"float_default", NC_FLOAT, NC_NAT, 0, NULL, &f_default, false},
    {"double_nan", NC_DOUBLE, NC_DOUBLE, 1, &d_nan, &d_nan, true},
    {"double_of_float", NC_DOUBLE, NC_FLOAT, 1, &f_nan, &d_nan, true},
    {"double_default", NC_DOUBLE, NC_NAT, 0, NULL, &d_default, false},
    {"short", NC_SHORT, NC_SHORT, 1, &s_own, &s_own, true},
    {"short_of_nan", NC_SHORT, NC_DOUBLE, 1, &d_nan, &s_default, false},
    {"short_of_int", NC_SHORT, NC_INT, 1, &i_own, &s_own, true},
    {"short_empty", NC_SHORT, NC_SHORT, 0, &s_own, &s_default, false},
    {"short_default", NC_SHORT, NC_NAT, 0, NULL, &s_default, false},
    {"int_of_short", NC_INT, NC_SHORT, 1, &s_own, &i_own, true},
    {"int_default", NC_INT, NC_NAT, 0, NULL, &i_default, false},
    {"byte_zero", NC_BYTE, NC_BYTE, 1, &b_own, &b_own, true},
    {"byte_default", NC_BYTE, NC_NAT, 0, NULL, &b_default, false},
    {"char", NC_CHAR, NC_CHAR, 1, "x", "x", true},
    {"char_default", NC_CHAR, NC_NAT, 0, NULL, "", false},
};

/* netCDF-C takes no _FillValue of another type, so that another name of its length is replaced. */
static void rename_fills(const char *path)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    char *data = malloc((size_t)n);
    rewind(f);
    assert_int_equal(fread(data, 1, (size_t)n, f), (size_t)n);
    for (long i = 0; i + 10 <= n; i++)
        if (memcmp(data + i, "_FillOther", 10) == 0)
            memcpy(data + i, "_FillValue", 10);
    rewind(f);
    assert_int_equal(fwrite(data, 1, (size_t)n, f), (size_t)n);
    free(data);
    assert_int_equal(fclose(f), 0);
}

/* Unwritten elements are the _FillValue, of any value, or netCDF's default for the type. */
static void test_fill(void **state)
{
    (void)state;
    enum {
        N = sizeof fills / sizeof *fills
    };
    memset(long_text, 'x', sizeof long_text);
    for (size_t m = 0; m < 3; m++) {
        int id, dim, varid;
        const char *path = temp_path("fill.nc");
        assert_int_equal(nc_create(path, modes[m].mode | NC_CLOBBER, &id), 0);
        assert_int_equal(nc_def_dim(id, "x", 2, &dim), 0);
        for (int i = 0; i < N; i++) {
            assert_int_equal(nc_def_var(id, fills[i].name, fills[i].type, 1, &dim, &varid), 0);
            if (fills[i].fill)
                assert_int_equal(nc_put_att(id, varid, "_FillOther", fills[i].fill_type,
                                            fills[i].nelem, fills[i].fill),
                                 0);
        }
        assert_int_equal(nc_close(id), 0);
        rename_fills(path);
        cm_nc_file *file;
        cm_error err;
        ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
        for (int i = 0; i < N; i++) {
            const cm_nc_var *var = find_var(file, fills[i].name);
            size_t nbytes = var->array.dtype.nbytes;
            if (var->has_fill_value != fills[i].has)
                fail_msg("%s: has_fill_value is %d", fills[i].name, var->has_fill_value);
            if (!var->array.fill || memcmp(var->array.fill, fills[i].becomes, nbytes) != 0)
                fail_msg("%s: another fill", fills[i].name);
            if (fills[i].has)
                assert_memory_equal(var->fill_value, fills[i].becomes, nbytes);
        }
        assert_true(find_var(file, "char")->is_char);
        cm_nc_close(file);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_one_record_variable),
        cmocka_unit_test(test_no_records),
        cmocka_unit_test(test_fill),
    };
    return cmocka_run_group_tests_name("nc_classic", tests, NULL, NULL);
}
