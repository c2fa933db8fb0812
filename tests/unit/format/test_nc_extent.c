/* Datasets that end before their dimensions do: what they hold in its place, the fill elsewhere. */
#define H5_USE_110_API
#include <hdf5.h>
#include <netcdf.h>

#include "format/nc/extent.h"
#include "nc_support.h"

static uint32_t seed = 1;
static uint64_t next_random(uint64_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* Index of element I of BOX in an array of SHAPE; false where it lies outside EXTENT. */
static bool locate(const cm_box *box, uint64_t i, const uint64_t *extent, uint64_t *index)
{
    bool inside = true;
    for (unsigned j = box->rank; j-- > 0;) {
        index[j] = box->start[j] + i % box->shape[j];
        i /= box->shape[j];
        inside = inside && index[j] < extent[j];
    }
    return inside;
}

static cm_box random_box(unsigned rank, const uint64_t *shape)
{
    cm_box box = {.rank = rank};
    for (unsigned j = 0; j < rank; j++) {
        box.start[j] = next_random(shape[j]);
        box.shape[j] = 1 + next_random(shape[j] - box.start[j]);
    }
    return box;
}

static void test_clip_and_spread(void **state)
{
    (void)state;
    for (int n = 0; n < 2000; n++) {
        uint64_t shape[4], extent[4], index[4];
        unsigned rank = (unsigned)next_random(5);
        for (unsigned j = 0; j < rank; j++) {
            shape[j] = 1 + next_random(5);
            extent[j] = next_random(shape[j] + 2);
        }
        cm_box box = random_box(rank, shape), part;
        int32_t data[5 * 5 * 5 * 5 + 1], want[5 * 5 * 5 * 5];
        const int32_t fill = -0x01020304;
        size_t nelem = (size_t)cm_box_nelem(&box), kept = 0;
        memset(data, 0xAA, sizeof data);
        for (size_t i = 0; i < nelem; i++) {
            bool inside = locate(&box, i, extent, index);
            want[i] = inside ? (int32_t)i : fill;
            if (inside)
                data[kept++] = (int32_t)i;
        }
        assert_int_equal(cm_extent_clip(&box, extent, &part), kept > 0);
        assert_int_equal(cm_box_nelem(&part), kept);
        for (size_t i = 0; i < kept; i++)
            assert_int_equal(want[cm_extent_place(&box, &part, i)], data[i]);
        int32_t behind = data[nelem];
        cm_extent_spread(&box, &part, sizeof *data, &fill, data);
        assert_memory_equal(data, want, nelem * sizeof *data);
        assert_int_equal(data[nelem], behind);
    }
}

enum {
    T = 9,
    U = 7,
    X = 3
};

typedef enum filling {
    DEFAULT_FILL,
    OWN_FILL,
    NO_FILL
} filling;

/* "v" of T x U x X, or X x T x U, of which only EXTENT was written; "all" is as long as T and U. */
typedef struct row {
    const char *name;
    bool x_first;
    filling filling;
    size_t extent[2]; /* along the unlimited dimensions */
    size_t chunk[3];
    cm_nc_access access;
} row;

static const row rows[] = {
    {"second", false, DEFAULT_FILL, {9, 4}, {3, 3, 3}, CM_NC_LIBRARY},
    {"both", false, DEFAULT_FILL, {5, 4}, {3, 3, 3}, CM_NC_LIBRARY},
    {"both, own fill", false, OWN_FILL, {5, 4}, {3, 3, 3}, CM_NC_LIBRARY},
    {"both, no fill", false, NO_FILL, {5, 4}, {3, 3, 3}, CM_NC_LIBRARY},
    {"both, whole chunks", false, DEFAULT_FILL, {6, 3}, {3, 3, 3}, CM_NC_CHUNK_INDEX},
    {"both, whole chunks, own fill", false, OWN_FILL, {6, 3}, {3, 3, 3}, CM_NC_CHUNK_INDEX},
    {"both, whole chunks, no fill", false, NO_FILL, {6, 3}, {3, 3, 3}, CM_NC_LIBRARY},
    {"last", true, DEFAULT_FILL, {9, 2}, {3, 3, 5}, CM_NC_LIBRARY},
    {"middle", true, DEFAULT_FILL, {4, 7}, {1, 3, 7}, CM_NC_LIBRARY},
    {"last two, whole chunks", true, OWN_FILL, {4, 2}, {2, 2, 2}, CM_NC_CHUNK_INDEX},
    {"nothing", false, DEFAULT_FILL, {0, 0}, {3, 3, 3}, CM_NC_CHUNK_INDEX},
    {"nothing, no fill", false, NO_FILL, {0, 0}, {3, 3, 3}, CM_NC_LIBRARY},
    {"all of it", false, NO_FILL, {9, 7}, {3, 3, 3}, CM_NC_CHUNK_INDEX},
};

static float value_at(const uint64_t *index)
{
    return (float)(1 + index[0] * 100 + index[1] * 10 + index[2]);
}

static void make_file(const row *r, const char *path)
{
    int id, t, u, x, all, v;
    float own = -5;
    assert_int_equal(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_dim(id, "t", NC_UNLIMITED, &t), 0);
    assert_int_equal(nc_def_dim(id, "u", NC_UNLIMITED, &u), 0);
    assert_int_equal(nc_def_dim(id, "x", X, &x), 0);
    int dims[3] = {r->x_first ? x : t, r->x_first ? t : u, r->x_first ? u : x};
    int both[2] = {t, u};
    assert_int_equal(nc_def_var(id, "all", NC_BYTE, 2, both, &all), 0);
    assert_int_equal(nc_def_var(id, "v", NC_FLOAT, 3, dims, &v), 0);
    assert_int_equal(nc_def_var_chunking(id, v, NC_CHUNKED, r->chunk), 0);
    assert_int_equal(nc_def_var_deflate(id, v, 1, 1, 1), 0);
    if (r->filling != DEFAULT_FILL)
        assert_int_equal(nc_def_var_fill(id, v, r->filling == NO_FILL, &own), 0);
    signed char ones[T * U] = {0};
    size_t start[3] = {0}, whole_count[2] = {T, U};
    assert_int_equal(nc_put_vara(id, all, start, whole_count, ones), 0);
    size_t count[3] = {r->extent[0], r->extent[1], X};
    if (r->x_first) {
        count[0] = X;
        count[1] = r->extent[0];
        count[2] = r->extent[1];
    }
    cm_box box = {.rank = 3, .shape = {count[0], count[1], count[2]}};
    float data[T * U * X];
    uint64_t index[3];
    for (size_t i = 0; i < cm_box_nelem(&box); i++) {
        locate(&box, i, box.shape, index);
        data[i] = value_at(index);
    }
    if (cm_box_nelem(&box))
        assert_int_equal(nc_put_vara(id, v, start, count, data), 0);
    assert_int_equal(nc_close(id), 0);
}

static void check_box(const row *r, const cm_array *a, const cm_box *box, const float *got)
{
    uint64_t extent[3] = {r->extent[0], r->extent[1], X}, index[3];
    if (r->x_first)
        memcpy(extent, (uint64_t[]){X, r->extent[0], r->extent[1]}, sizeof extent);
    float fill = r->filling == OWN_FILL ? -5 : NC_FILL_FLOAT;
    assert_int_equal(a->shape[r->x_first], T);
    for (size_t i = 0; i < cm_box_nelem(box); i++) {
        float want = locate(box, i, extent, index) ? value_at(index) : fill;
        if (memcmp(&got[i], &want, sizeof want) != 0)
            fail_msg("%s: element %d/%d/%d is %g, not %g", r->name, (int)index[0], (int)index[1],
                     (int)index[2], (double)got[i], (double)want);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        const char *path = temp_path("extent.nc");
        cm_error err;
        cm_nc_file *file;
        float got[T * U * X];
        make_file(r, path);
        ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
        cm_nc_var *var = find_var(file, "v");
        ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
        if (var->access != r->access)
            fail_msg("%s: access %d", r->name, (int)var->access);
        cm_box box = whole(&var->array);
        ASSERT_OK(read_all(&var->array, got, &err), err);
        check_box(r, &var->array, &box, got);
        for (int n = 0; n < 50; n++) {
            memset(got, 0xAA, sizeof got);
            ASSERT_OK(cm_nc_read_library(file, var, &box, got, &err), err);
            check_box(r, &var->array, &box, got);
            box = random_box(3, var->array.shape);
        }
        cm_nc_close(file);
        unlink(path);
    }
}

static void test_strings(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        int id, dim[2], all, v;
        const char *path = temp_path("extent_strings.nc");
        const char *text[6] = {"a", "bc", "", "def", "g", "hi"};
        const char *none = "none";
        size_t start[2] = {0}, count[2] = {T, U}, part[2] = {2, 3};
        signed char ones[T * U] = {0};
        assert_int_equal(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id), 0);
        assert_int_equal(nc_def_dim(id, "t", NC_UNLIMITED, &dim[0]), 0);
        assert_int_equal(nc_def_dim(id, "u", NC_UNLIMITED, &dim[1]), 0);
        assert_int_equal(nc_def_var(id, "all", NC_BYTE, 2, dim, &all), 0);
        assert_int_equal(nc_def_var(id, "v", NC_STRING, 2, dim, &v), 0);
        if (own)
            assert_int_equal(nc_def_var_fill(id, v, 0, &none), 0);
        assert_int_equal(nc_put_vara(id, all, start, count, ones), 0);
        assert_int_equal(nc_put_vara_string(id, v, start, part, text), 0);
        assert_int_equal(nc_close(id), 0);
        cm_error err;
        cm_nc_file *file;
        cm_strings got = {0};
        ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
        cm_nc_var *var = find_var(file, "v");
        ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
        cm_box box = whole(&var->array);
        for (int n = 0; n < 30; n++) {
            ASSERT_OK(cm_nc_read_library_strings(file, var, &box, &got, &err), err);
            for (size_t i = 0; i < cm_box_nelem(&box); i++) {
                uint64_t index[2];
                size_t nbytes;
                const char *s = cm_strings_get(&got, i, &nbytes);
                const char *want = locate(&box, i, (uint64_t[]){2, 3}, index)
                                       ? text[index[0] * 3 + index[1]]
                                   : own ? none
                                         : "";
                assert_int_equal(nbytes, strlen(want));
                assert_memory_equal(s, want, nbytes);
            }
            box = random_box(2, var->array.shape);
        }
        cm_strings_release(&got);
        cm_nc_close(file);
        unlink(path);
    }
}

/* An HDF5 dataset whose fill value is not netCDF's, along a dimension scale that is longer. */
static void test_hdf5_fill(void **state)
{
    (void)state;
    int id, dim, varid;
    const char *path = temp_path("extent_fill.h5");
    double times[6] = {0, 1, 2, 3, 4, 5};
    size_t start = 0, count = 6, one = 1;
    int data[2] = {7, 8};
    assert_int_equal(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_dim(id, "t", NC_UNLIMITED, &dim), 0);
    assert_int_equal(nc_def_var(id, "t", NC_DOUBLE, 1, &dim, &varid), 0);
    assert_int_equal(nc_put_vara(id, varid, &start, &count, times), 0);
    assert_int_equal(nc_def_var(id, "v", NC_INT, 1, &dim, &varid), 0);
    assert_int_equal(nc_def_var_chunking(id, varid, NC_CHUNKED, &one), 0);
    count = 2;
    assert_int_equal(nc_put_vara(id, varid, &start, &count, data), 0);
    assert_int_equal(nc_close(id), 0);
    /* The same dataset again, with HDF5's default fill, in its place. */
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t old = H5Dopen2(file, "v", H5P_DEFAULT), space = H5Dget_space(old);
    hid_t list = H5Aopen(old, "DIMENSION_LIST", H5P_DEFAULT), type = H5Aget_type(list);
    hid_t list_space = H5Aget_space(list), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk = 1;
    hvl_t scales;
    H5Pset_chunk(dcpl, 1, &chunk);
    assert_true(H5Aread(list, type, &scales) >= 0);
    hid_t d = H5Dcreate2(file, "w", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    hid_t copy = H5Acreate2(d, "DIMENSION_LIST", type, list_space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(copy, type, &scales) >= 0);
    assert_true(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dvlen_reclaim(type, list_space, H5P_DEFAULT, &scales);
    H5Aclose(copy);
    H5Aclose(list);
    H5Tclose(type);
    H5Sclose(list_space);
    H5Sclose(space);
    H5Dclose(old);
    H5Dclose(d);
    H5Pclose(dcpl);
    H5Fclose(file);

    cm_error err;
    cm_nc_file *nc;
    ASSERT_OK(cm_nc_open(path, NULL, &nc, &err), err);
    cm_nc_var *var = find_var(nc, "w");
    ASSERT_OK(cm_nc_var_prepare(nc, var, &err), err);
    assert_int_equal(var->array.shape[0], 6);
    assert_int_equal(var->access, CM_NC_LIBRARY);
    int got[6], want[6] = {7, 8, NC_FILL_INT, NC_FILL_INT, NC_FILL_INT, NC_FILL_INT};
    ASSERT_OK(read_all(&var->array, got, &err), err);
    assert_memory_equal(got, want, sizeof want);
    cm_nc_close(nc);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clip_and_spread),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_hdf5_fill),
    };
    return cmocka_run_group_tests_name("nc_extent", tests, NULL, NULL);
}
