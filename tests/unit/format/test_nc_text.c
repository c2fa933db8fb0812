/* HDF5 strings of one length: every element, by either way, whatever their padding and layout. */
#define H5_USE_110_API
#include <hdf5.h>

#include "nc_support.h"

typedef struct row {
    const char *name;
    unsigned rank;
    hsize_t shape[2];
    hsize_t chunk; /* along each dimension; 0: contiguous */
    size_t nbytes; /* of each string */
    H5T_str_t padding;
    bool unwritten;
} row;

static const row rows[] = {
    {"scalar", 0, {0}, 0, 8, H5T_STR_NULLPAD, false},
    {"one dimension", 1, {5}, 0, 8, H5T_STR_NULLPAD, false},
    {"terminated", 1, {5}, 2, 8, H5T_STR_NULLTERM, false},
    {"padded with blanks", 1, {5}, 2, 8, H5T_STR_SPACEPAD, false},
    {"two dimensions", 2, {7, 5}, 3, 6, H5T_STR_NULLPAD, false},
    {"unwritten", 2, {3, 4}, 2, 6, H5T_STR_NULLPAD, true},
    /* Longer than what is read at once, in rows, in parts of rows and one by one. */
    {"long", 2, {5, 3}, 2, 1500000, H5T_STR_NULLPAD, false},
    {"longer", 2, {2, 5}, 1, 2000000, H5T_STR_NULLPAD, false},
    {"longest", 1, {3}, 1, 6000000, H5T_STR_NULLPAD, false},
};

/* Element I: of every length up to the whole of its room. */
static size_t text_of(const row *r, size_t i, char *text)
{
    size_t nbytes = i * 3 % (r->nbytes < 99 ? r->nbytes + 1 : 99);
    if (r->padding == H5T_STR_NULLTERM && nbytes == r->nbytes)
        nbytes--;
    for (size_t k = 0; k < nbytes; k++)
        text[k] = (char)('a' + (i + k) % 26);
    if (r->padding != H5T_STR_SPACEPAD)
        return nbytes;
    memset(text + nbytes, ' ', r->nbytes - nbytes); /* netCDF-C gives the blanks */
    return r->nbytes;
}

static size_t nelem_of(const row *r)
{
    size_t n = 1;
    for (unsigned j = 0; j < r->rank; j++)
        n *= r->shape[j];
    return n;
}

static void make_file(const row *r, const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = H5Tcopy(H5T_C_S1), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Tset_size(type, r->nbytes);
    H5Tset_strpad(type, r->padding);
    hid_t space = r->rank ? H5Screate_simple((int)r->rank, r->shape, NULL) : H5Screate(H5S_SCALAR);
    hsize_t chunk[2] = {r->chunk, r->chunk};
    if (r->chunk) {
        H5Pset_chunk(dcpl, (int)r->rank, chunk);
        H5Pset_deflate(dcpl, 1);
    }
    hid_t d = H5Dcreate2(file, "v", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(d >= 0);
    char *data = calloc(nelem_of(r), r->nbytes);
    for (size_t i = 0; i < nelem_of(r); i++)
        text_of(r, i, data + i * r->nbytes);
    if (!r->unwritten)
        assert_true(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    free(data);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(dcpl);
    H5Tclose(type);
    H5Fclose(file);
}

static void check(const row *r, const cm_box *box, const cm_strings *got)
{
    assert_int_equal(got->nelem, cm_box_nelem(box));
    for (size_t i = 0; i < got->nelem; i++) {
        char want[128];
        size_t nbytes, index = 0, rest = i, stride = 1;
        for (unsigned j = box->rank; j-- > 0;) {
            index += (box->start[j] + rest % box->shape[j]) * stride;
            rest /= box->shape[j];
            stride *= r->shape[j];
        }
        const char *text = cm_strings_get(got, i, &nbytes);
        size_t n = text_of(r, index, want);
        if (r->unwritten)
            n = 0;
        if (nbytes != n || memcmp(text, want, n) != 0)
            fail_msg("%s: element %zu is '%.*s', not '%.*s'", r->name, index, (int)nbytes, text,
                     (int)n, want);
    }
}

static void test_fixed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        const char *path = temp_path("text.h5");
        cm_error err;
        cm_nc_file *file;
        make_file(r, path);
        ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
        cm_nc_var *var = find_var(file, "v");
        ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
        assert_int_equal(var->array.dtype.kind, CM_KIND_STRING);
        assert_string_equal(var->array.fill_text, "");
        assert_int_equal(var->has_source_chunks, r->chunk != 0);
        cm_strings got = {0};
        cm_box box = whole(&var->array);
        ASSERT_OK(var->array.ops->read_strings(&var->array, &box, &got, &err), err);
        check(r, &box, &got);
        for (unsigned j = 0; j < r->rank; j++) {
            box.start[j] = 1;
            box.shape[j] -= 1;
        }
        ASSERT_OK(cm_nc_read_library_strings(file, var, &box, &got, &err), err);
        check(r, &box, &got);
        cm_strings_release(&got);
        cm_nc_close(file);
        unlink(path);
    }
}

/* A length that nothing in the file stands for is not allocated. */
static void test_claimed_length(void **state)
{
    (void)state;
    const row r = {"claimed", 1, {1000000}, 1, (size_t)1 << 30, H5T_STR_NULLPAD, true};
    const char *path = temp_path("claimed.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = H5Tcopy(H5T_C_S1), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(1, r.shape, NULL);
    H5Tset_size(type, r.nbytes);
    H5Pset_chunk(dcpl, 1, &r.chunk);
    H5Dclose(H5Dcreate2(file, "v", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(dcpl);
    H5Tclose(type);
    H5Fclose(file);
    cm_error err;
    cm_nc_file *nc;
    cm_strings got = {0};
    cm_box box = {.rank = 1, .shape = {1}};
    ASSERT_OK(cm_nc_open(path, NULL, &nc, &err), err);
    cm_nc_var *var = find_var(nc, "v");
    ASSERT_OK(cm_nc_var_prepare(nc, var, &err), err);
    assert_int_equal(cm_nc_read_library_strings(nc, var, &box, &got, &err), CM_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "strings of 1073741824 bytes each"));
    cm_strings_release(&got);
    cm_nc_close(nc);
    unlink(path);
}

/* netCDF-C would write such a fill value where it has room for a pointer. */
static void test_fill_value(void **state)
{
    (void)state;
    enum {
        NBYTES = 5000
    };
    const char *path = temp_path("text_fill.h5");
    hsize_t n = 4;
    int four[4] = {1, 2, 3, 4};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = H5Tcopy(H5T_C_S1), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(1, &n, NULL);
    char *fill = malloc(NBYTES);
    memset(fill, 'x', NBYTES);
    H5Tset_size(type, NBYTES);
    assert_true(H5Pset_fill_value(dcpl, type, fill) >= 0);
    H5Dclose(H5Dcreate2(group, "v", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    hid_t d =
        H5Dcreate2(group, "plain", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, four) >= 0);
    H5Dclose(d);
    free(fill);
    H5Sclose(space);
    H5Pclose(dcpl);
    H5Tclose(type);
    H5Gclose(group);
    H5Fclose(file);
    cm_error err;
    cm_nc_file *nc;
    ASSERT_OK(cm_nc_open(path, NULL, &nc, &err), err);
    assert_int_equal(cm_nc_nvars(nc), 2);
    assert_int_equal(cm_nc_nwarnings(nc), 0);
    cm_nc_var *var = find_var(nc, "g/v");
    assert_int_equal(cm_nc_var_prepare(nc, var, &err), CM_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "variable g/v: strings of one length with a fill value"));
    var = find_var(nc, "g/plain");
    ASSERT_OK(cm_nc_var_prepare(nc, var, &err), err);
    assert_same_as_library(nc, var);
    cm_nc_close(nc);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_claimed_length),
        cmocka_unit_test(test_fill_value),
    };
    return cmocka_run_group_tests_name("nc_text", tests, NULL, NULL);
}
