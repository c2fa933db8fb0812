/*
 * HDF5 datasets of every layout, written here through HDF5: how they are reached, and what is
 * read.
 */
#define H5_USE_110_API
#include <hdf5.h>
#include <netcdf.h>

#include "many_support.h"
#include "nc_support.h"

enum {
    ROWS = 11,
    COLS = 13
};

/* How the one dataset "v" of a file is made, and what must come of it. */
typedef struct row {
    const char *name;
    cm_nc_access access;
    const char *reason; /* part of access_reason; NULL: none */
    bool latest;        /* newest file format */
    hsize_t user_block;
    hid_t type; /* index into types() */
    H5D_layout_t layout;
    hsize_t chunk[2];
    bool unlimited0, unlimited1;
    const char *filters; /* s shuffle, d deflate, f fletcher32, z szip, n nbit, o scaleoffset */
    bool edges_unfiltered;
    int fill;  /* 0 default, 1 a value, 2 undefined, 3 never */
    int write; /* 0 nothing, 1 all, 2 the upper left quarter */
} row;

enum {
    I16,
    I16BE,
    F32,
    F64BE,
    I24,
    F16,
    U8,
    CHAR
};

static hid_t make_type(int which)
{
    hid_t t;
    switch (which) {
    case I16:
        return H5Tcopy(H5T_STD_I16LE);
    case I16BE:
        return H5Tcopy(H5T_STD_I16BE);
    case F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case F64BE:
        return H5Tcopy(H5T_IEEE_F64BE);
    case I24: /* 24 bits of precision in 32 */
        t = H5Tcopy(H5T_STD_I32LE);
        H5Tset_precision(t, 24);
        return t;
    case F16: /* as h5py writes numpy's */
        t = H5Tcopy(H5T_IEEE_F32LE);
        H5Tset_fields(t, 15, 10, 5, 0, 10);
        H5Tset_size(t, 2);
        H5Tset_ebias(t, 15);
        return t;
    case CHAR:
        return H5Tcopy(H5T_C_S1);
    default:
        return H5Tcopy(H5T_STD_U8LE);
    }
}

static void add_filters(hid_t dcpl, const char *filters)
{
    for (; *filters; filters++) {
        switch (*filters) {
        case 's':
            assert_true(H5Pset_shuffle(dcpl) >= 0);
            break;
        case 'd':
            assert_true(H5Pset_deflate(dcpl, 4) >= 0);
            break;
        case 'f':
            assert_true(H5Pset_fletcher32(dcpl) >= 0);
            break;
        case 'z':
            assert_true(H5Pset_szip(dcpl, H5_SZIP_NN_OPTION_MASK, 8) >= 0);
            break;
        case 'n':
            assert_true(H5Pset_nbit(dcpl) >= 0);
            break;
        case 'o':
            assert_true(H5Pset_scaleoffset(dcpl, H5Z_SO_INT, 0) >= 0);
            break;
        default:
            fail_msg("no filter %c", *filters);
        }
    }
}

static hid_t make_dcpl(const row *r)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    if (r->layout == H5D_CHUNKED)
        H5Pset_chunk(dcpl, 2, r->chunk);
    else
        H5Pset_layout(dcpl, r->layout);
    add_filters(dcpl, r->filters ? r->filters : "");
    if (r->edges_unfiltered)
        assert_true(H5Pset_chunk_opts(dcpl, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) >= 0);
    int value = 77;
    if (r->fill == 1)
        H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &value);
    if (r->fill == 2)
        H5Pset_fill_value(dcpl, H5T_NATIVE_INT, NULL);
    if (r->fill == 3)
        H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER);
    return dcpl;
}

static void write_some(hid_t dataset, int which, bool chars)
{
    hsize_t start[2] = {0, 0}, count[2] = {ROWS, COLS};
    if (which == 2) {
        count[0] = ROWS / 2;
        count[1] = COLS / 2;
    }
    static int data[ROWS * COLS];
    static char text[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        data[i] = (i * 37) % 101 - (i % 3 ? 0 : 50);
        text[i] = (char)('a' + i % 26);
    }
    hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(2, count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    hid_t type = chars ? H5Tcopy(H5T_C_S1) : H5Tcopy(H5T_NATIVE_INT);
    assert_true(H5Dwrite(dataset, type, memory, space, H5P_DEFAULT,
                         chars ? (void *)text : (void *)data) >= 0);
    H5Tclose(type);
    H5Sclose(memory);
    H5Sclose(space);
}

static hid_t create_file(const char *path, bool latest, hsize_t user_block)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), fcpl = H5Pcreate(H5P_FILE_CREATE);
    if (latest)
        H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Pset_userblock(fcpl, user_block);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl);
    assert_true(file >= 0);
    H5Pclose(fapl);
    H5Pclose(fcpl);
    return file;
}

static void make_file(const row *r, const char *path)
{
    hid_t file = create_file(path, r->latest, r->user_block);
    hsize_t shape[2] = {ROWS, COLS};
    hsize_t max[2] = {r->unlimited0 ? H5S_UNLIMITED : ROWS, r->unlimited1 ? H5S_UNLIMITED : COLS};
    hid_t space = H5Screate_simple(2, shape, max), type = make_type((int)r->type);
    hid_t dcpl = make_dcpl(r);
    hid_t dataset = H5Dcreate2(file, "v", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(dataset >= 0);
    if (r->write)
        write_some(dataset, r->write, r->type == CHAR);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    H5Tclose(type);
    H5Sclose(space);
    H5Fclose(file);
}

#define CHUNKS .layout = H5D_CHUNKED, .chunk = {4, 5}
static const row rows[] = {
    {"chunked", CM_NC_CHUNK_INDEX, CHUNKS, .type = I16, .write = 1},
    {"shuffle deflate", CM_NC_CHUNK_INDEX, CHUNKS, .type = I16, .filters = "sd", .write = 1},
    {"fletcher32 last", CM_NC_CHUNK_INDEX, CHUNKS, .type = F32, .filters = "sdf", .write = 1},
    {"fletcher32 first", CM_NC_CHUNK_INDEX, CHUNKS, .type = F64BE, .filters = "fsd", .write = 1},
    {"fletcher32 alone", CM_NC_CHUNK_INDEX, CHUNKS, .type = U8, .filters = "f", .write = 1},
    {"szip", CM_NC_CHUNK_INDEX, CHUNKS, .type = I16, .filters = "z", .write = 1},
    {"big-endian", CM_NC_CHUNK_INDEX, CHUNKS, .type = I16BE, .filters = "d", .write = 1},
    {"characters", CM_NC_CHUNK_INDEX, CHUNKS, .type = CHAR, .filters = "d", .write = 1},
    {"a user block", CM_NC_CHUNK_INDEX, CHUNKS, .user_block = 1024, .type = F32, .write = 1},
    {"unlimited", CM_NC_CHUNK_INDEX, CHUNKS, .type = F32, .unlimited0 = true, .write = 1},
    {"one chunk larger than the array", CM_NC_CHUNK_INDEX, .layout = H5D_CHUNKED, .chunk = {64, 64},
     .unlimited0 = true, .unlimited1 = true, .type = F32, .filters = "sd", .write = 1},
    {"half written", CM_NC_CHUNK_INDEX, CHUNKS, .type = I16, .write = 2},
    {"half written, a fill", CM_NC_CHUNK_INDEX, CHUNKS, .type = I16BE, .fill = 1, .write = 2},
    {"nothing written", CM_NC_CHUNK_INDEX, CHUNKS, .type = F32, .fill = 1},
    {"nothing written, no fill", CM_NC_CHUNK_INDEX, CHUNKS, .type = F32, .fill = 2},
    {"half written, never filled", CM_NC_CHUNK_INDEX, CHUNKS, .type = F32, .fill = 3, .write = 2},
    {"contiguous", CM_NC_ARITHMETIC, .layout = H5D_CONTIGUOUS, .type = F32, .write = 1},
    {"contiguous, big-endian", CM_NC_ARITHMETIC, .layout = H5D_CONTIGUOUS, .type = F64BE,
     .write = 1},
    {"contiguous, user block", CM_NC_ARITHMETIC, .layout = H5D_CONTIGUOUS, .type = F32,
     .user_block = 512, .write = 1},
    {"contiguous, unwritten", CM_NC_ARITHMETIC, .layout = H5D_CONTIGUOUS, .type = I16, .fill = 1},
    {"contiguous, unwritten, no fill", CM_NC_ARITHMETIC, .layout = H5D_CONTIGUOUS, .type = I16,
     .fill = 2},
    {"contiguous, newest", CM_NC_ARITHMETIC, .latest = true, .layout = H5D_CONTIGUOUS, .type = I16,
     .write = 2},
    {"compact", CM_NC_LIBRARY, "object header", .layout = H5D_COMPACT, .type = F32, .write = 1},
    {"24 bits", CM_NC_LIBRARY, "another form", CHUNKS, .type = I24, .write = 1},
    {"half precision", CM_NC_LIBRARY, "another form", CHUNKS, .type = F16, .write = 1},
    {"nbit", CM_NC_LIBRARY, "nbit (5)", CHUNKS, .type = I16, .filters = "n", .write = 1},
    {"scaleoffset", CM_NC_LIBRARY, "scaleoffset (6)", CHUNKS, .type = I16, .filters = "o",
     .write = 1},
    {"single chunk", CM_NC_CHUNK_INDEX, "single chunk", .latest = true, .layout = H5D_CHUNKED,
     .chunk = {ROWS, COLS}, .type = I16, .filters = "sd", .write = 1},
    {"single chunk, raw", CM_NC_CHUNK_INDEX, "single chunk", .latest = true, .layout = H5D_CHUNKED,
     .chunk = {ROWS, COLS}, .type = I16, .write = 1},
    {"fixed array", CM_NC_CHUNK_INDEX, "fixed array", .latest = true, CHUNKS, .type = F32,
     .filters = "sd", .write = 1},
    {"fixed array, half", CM_NC_CHUNK_INDEX, "fixed array", .latest = true, CHUNKS, .type = F32,
     .fill = 1, .write = 2},
    {"extensible array", CM_NC_CHUNK_INDEX, "extensible array", .latest = true, CHUNKS, .type = F32,
     .filters = "sd", .unlimited0 = true, .write = 2},
    {"version 2 B-tree", CM_NC_CHUNK_INDEX, "version 2 B-tree", .latest = true, CHUNKS, .type = F32,
     .filters = "sd", .unlimited0 = true, .unlimited1 = true, .write = 2},
    {"newest, user block", CM_NC_CHUNK_INDEX, "version 2 B-tree", .latest = true, .user_block = 512,
     CHUNKS, .type = F32, .unlimited0 = true, .unlimited1 = true, .write = 1},
    {"edges unfiltered", CM_NC_CHUNK_INDEX, "fixed array", .latest = true, CHUNKS, .type = F32,
     .filters = "sdf", .edges_unfiltered = true, .write = 1},
};

/*
 * Whether a chunk index of the newest format can be read depends on the version of
 * HDF5.
 */
static void check_access(const row *r, const cm_nc_var *var)
{
    bool may_lock = r->access == CM_NC_CHUNK_INDEX && r->reason;
    if (may_lock && var->access == CM_NC_CHUNK_LOCKED) {
        assert_non_null(var->access_reason);
        if (!strstr(var->access_reason, r->reason))
            fail_msg("%s: %s", r->name, var->access_reason);
        return;
    }
    if (var->access != r->access)
        fail_msg("%s: access %d, not %d: %s", r->name, (int)var->access, (int)r->access,
                 var->access_reason ? var->access_reason : "");
    if (r->access == CM_NC_LIBRARY && !strstr(var->access_reason, r->reason))
        fail_msg("%s: %s", r->name, var->access_reason);
    if (r->access != CM_NC_LIBRARY)
        assert_null(var->access_reason);
}

static void test_layouts(void **state)
{
    (void)state;
    cm_fetch_many many = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        const char *path = temp_path("layout.h5");
        cm_error err;
        cm_nc_file *file;
        print_message("  %s\n", r->name);
        make_file(r, path);
        if (cm_nc_open(path, NULL, &file, &err) != CM_OK)
            fail_msg("%s: %s", r->name, err.text);
        cm_nc_var *var = find_var(file, "v");
        if (cm_nc_var_prepare(file, var, &err) != CM_OK)
            fail_msg("%s: %s", r->name, err.text);
        check_access(r, var);
        assert_int_equal(var->has_source_chunks, r->layout == H5D_CHUNKED);
        assert_int_equal(!var->array.fill, r->fill >= 2);
        assert_int_equal(var->unlimited[0], r->unlimited0);
        assert_same_as_library(file, var);
        if (var->array.chunked)
            check_fetch_many(&var->array, &many);
        cm_nc_close(file);
        unlink(path);
    }
    cm_fetch_many_release(&many);
}

/* Past the page cache, or refused: never through a library after all. */
static void test_direct(void **state)
{
    (void)state;
    cm_fetch_many many = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        const char *path = temp_path("direct.h5");
        cm_error err;
        cm_nc_file *file;
        make_file(r, path);
        cm_nc_options options = {.io = CM_IO_MMAP};
        assert_int_equal(cm_nc_open(path, &options, &file, &err), CM_EUNSUPPORTED);
        options.io = CM_IO_DIRECT;
        int rc = cm_nc_open(path, &options, &file, &err);
        unlink(path);
        if (rc == CM_EUNSUPPORTED) {
            print_message("%s\n", err.text);
            skip();
        }
        ASSERT_OK(rc, err);
        cm_nc_var *var = find_var(file, "v");
        for (int again = 0; again < 2; again++) {
            rc = cm_nc_var_prepare(file, var, &err);
            bool known = var->access == CM_NC_CHUNK_INDEX || var->access == CM_NC_ARITHMETIC;
            assert_int_equal(rc, known ? CM_OK : CM_EUNSUPPORTED);
            assert_true(known || strstr(err.text, "variable v: is not read past the page cache"));
        }
        if (rc == CM_OK)
            assert_same_as_library(file, var);
        if (rc == CM_OK && var->array.chunked)
            check_fetch_many(&var->array, &many);
        cm_nc_close(file);
    }
    cm_fetch_many_release(&many);
}

/* Chunks written raw: one of them skipped a filter, as its mask says. */
static void test_filter_mask(void **state)
{
    (void)state;
    const char *path = temp_path("mask.h5");
    row r = {.layout = H5D_CHUNKED, .chunk = {4, 5}, .type = U8, .filters = "sd"};
    make_file(&r, path);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(file, "v", H5P_DEFAULT);
    uint8_t raw[20];
    for (int i = 0; i < 20; i++)
        raw[i] = (uint8_t)(i * 3);
    hsize_t offset[2] = {4, 5};
    assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 2, offset, sizeof raw, raw) >= 0);
    H5Dclose(dataset);
    H5Fclose(file);

    cm_error err;
    cm_nc_file *nc;
    ASSERT_OK(cm_nc_open(path, NULL, &nc, &err), err);
    cm_nc_var *var = find_var(nc, "v");
    ASSERT_OK(cm_nc_var_prepare(nc, var, &err), err);
    cm_buf buf;
    cm_fetch fetch;
    cm_buf_init(&buf, 0);
    ASSERT_OK(var->array.ops->fetch(&var->array, 4, &buf, &fetch, &err), err);
    assert_true(fetch.present);
    assert_int_equal(fetch.skip, 2);
    assert_int_equal(var->stored_nbytes, 20);
    assert_int_equal(var->array.max_stored_nbytes, 20);
    cm_buf_release(&buf);
    assert_same_as_library(nc, var);
    cm_nc_close(nc);
    unlink(path);
}

/* Two variables along one unlimited dimension, one with fewer records: netCDF-C's fill follows. */
static void make_short(const char *path, size_t chunk, size_t nrecords, bool own_fill)
{
    int id, dim[2], a, b;
    float value[64];
    size_t start[2] = {0, 0}, count[2] = {8, 3}, chunks[2] = {chunk, 3};
    for (int i = 0; i < 64; i++)
        value[i] = (float)i;
    assert_int_equal(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_dim(id, "time", NC_UNLIMITED, &dim[0]), 0);
    assert_int_equal(nc_def_dim(id, "x", 3, &dim[1]), 0);
    assert_int_equal(nc_def_var(id, "long", NC_FLOAT, 2, dim, &a), 0);
    assert_int_equal(nc_def_var(id, "short", NC_FLOAT, 2, dim, &b), 0);
    assert_int_equal(nc_def_var_chunking(id, b, NC_CHUNKED, chunks), 0);
    float fill = -5;
    if (own_fill)
        assert_int_equal(nc_def_var_fill(id, b, 0, &fill), 0);
    assert_int_equal(nc_put_vara_float(id, a, start, count, value), 0);
    count[0] = nrecords;
    assert_int_equal(nc_put_vara_float(id, b, start, count, value), 0);
    assert_int_equal(nc_close(id), 0);
}

static void test_short_of_dimension(void **state)
{
    (void)state;
    static const struct {
        size_t chunk, nrecords;
        bool own_fill;
        cm_nc_access access;
    } table[] = {
        {1, 3, false, CM_NC_CHUNK_INDEX},
        {1, 3, true, CM_NC_CHUNK_INDEX},
        {2, 4, true, CM_NC_CHUNK_INDEX},
        {4, 3, false, CM_NC_LIBRARY},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *path = temp_path("short.nc");
        cm_error err;
        cm_nc_file *file;
        make_short(path, table[i].chunk, table[i].nrecords, table[i].own_fill);
        ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
        cm_nc_var *var = find_var(file, "short");
        ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
        assert_int_equal(var->array.shape[0], 8);
        assert_int_equal(var->access, table[i].access);
        assert_same_as_library(file, var);
        cm_nc_close(file);
        unlink(path);
    }
}

/* Unwritten elements in netCDF-C, for every type and way to fill. */
static void make_unwritten(const char *path)
{
    static const nc_type types[] = {NC_BYTE,  NC_CHAR,   NC_SHORT, NC_INT,   NC_FLOAT, NC_DOUBLE,
                                    NC_UBYTE, NC_USHORT, NC_UINT,  NC_INT64, NC_UINT64};
    static const uint8_t own[8] = {'x', 2, 3, 4, 5, 6, 7, 0x40};
    size_t chunk = 3;
    int id, dim, varid;
    nc_type colour;
    signed char member = 4;
    assert_int_equal(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_enum(id, NC_BYTE, "colour", &colour), 0);
    assert_int_equal(nc_insert_enum(id, colour, "red", &member), 0);
    assert_int_equal(nc_def_dim(id, "x", 10, &dim), 0);
    for (size_t i = 0; i <= sizeof types / sizeof *types; i++)
        for (int how = 0; how < 6; how++) {
            nc_type type = i < sizeof types / sizeof *types ? types[i] : colour;
            char name[32];
            snprintf(name, sizeof name, "v%zu_%d", i, how);
            if (type == colour && how % 3 == 1)
                continue;
            assert_int_equal(nc_def_var(id, name, type, 1, &dim, &varid), 0);
            if (how >= 3)
                assert_int_equal(nc_def_var_chunking(id, varid, NC_CHUNKED, &chunk), 0);
            if (how % 3 == 1)
                assert_int_equal(nc_def_var_fill(id, varid, 0, own), 0);
            if (how % 3 == 2)
                assert_int_equal(nc_def_var_fill(id, varid, 1, NULL), 0);
        }
    assert_int_equal(nc_close(id), 0);
}

static void test_unwritten(void **state)
{
    (void)state;
    const char *path = temp_path("unwritten.nc");
    cm_error err;
    cm_nc_file *file;
    make_unwritten(path);
    ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
    assert_int_equal(cm_nc_nvars(file), 12 * 6 - 2);
    for (size_t i = 0; i < cm_nc_nvars(file); i++) {
        cm_nc_var *var = cm_nc_var_at(file, i);
        int how = atoi(strchr(var->array.name, '_') + 1);
        ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
        assert_int_equal(var->access, how >= 3 ? CM_NC_CHUNK_INDEX : CM_NC_ARITHMETIC);
        if (var->has_fill_value != (how % 3 == 1))
            fail_msg("%s: has_fill_value %d", var->array.name, var->has_fill_value);
        if (how % 3 == 1)
            assert_memory_equal(var->fill_value, var->array.fill, var->array.dtype.nbytes);
        assert_same_as_library(file, var);
    }
    cm_nc_close(file);
    unlink(path);
}

static void test_library_only(void **state)
{
    (void)state;
    const char *path = temp_path("only.h5");
    row r = {.layout = H5D_CHUNKED, .chunk = {4, 5}, .type = U8, .filters = "sd", .fill = 1};
    make_file(&r, path);
    cm_nc_options options = {.library_only = true};
    cm_error err;
    cm_nc_file *file;
    ASSERT_OK(cm_nc_open(path, &options, &file, &err), err);
    cm_nc_var *var = find_var(file, "v");
    ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
    assert_int_equal(var->access, CM_NC_LIBRARY);
    assert_true(var->array.serial);
    assert_int_equal(var->array.grid.chunk[1], 5);
    assert_int_equal(var->array.fill[0], 77);
    assert_same_as_library(file, var);
    cm_nc_close(file);
    unlink(path);
}

/* Datasets whose bytes lie elsewhere. */
static void test_elsewhere(void **state)
{
    (void)state;
    char path[256], raw[256], other[256];
    snprintf(path, sizeof path, "%s", temp_path("elsewhere.h5"));
    snprintf(raw, sizeof raw, "%s", temp_path("elsewhere.raw"));
    snprintf(other, sizeof other, "%s", temp_path("other.h5"));
    row r = {.layout = H5D_CHUNKED, .chunk = {4, 5}, .type = U8, .filters = "sd", .write = 1};
    make_file(&r, other);

    hid_t file = create_file(path, false, 0);
    hsize_t n = 4;
    int value[4] = {1, 2, 3, 4};
    hid_t space = H5Screate_simple(1, &n, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(dcpl, raw, 0, sizeof value);
    hid_t dataset =
        H5Dcreate2(file, "external", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t shape[2] = {ROWS, COLS};
    hid_t plane = H5Screate_simple(2, shape, NULL);
    H5Pset_virtual(dcpl, plane, other, "v", plane);
    dataset = H5Dcreate2(file, "virtual", H5T_STD_U8LE, plane, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    H5Dclose(dataset);
    assert_true(H5Lcreate_external(other, "v", file, "linked", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Pclose(dcpl);
    H5Sclose(plane);
    H5Sclose(space);
    H5Fclose(file);

    cm_error err;
    cm_nc_file *nc;
    ASSERT_OK(cm_nc_open(path, NULL, &nc, &err), err);
    static const char *const names[][2] = {
        {"external", "external files"}, {"virtual", "virtual dataset"}, {"linked", "another file"}};
    for (size_t i = 0; i < 3; i++) {
        cm_nc_var *var = find_var(nc, names[i][0]);
        ASSERT_OK(cm_nc_var_prepare(nc, var, &err), err);
        assert_int_equal(var->access, CM_NC_LIBRARY);
        assert_non_null(strstr(var->access_reason, names[i][1]));
        assert_same_as_library(nc, var);
    }
    cm_nc_close(nc);
    unlink(path);
    unlink(raw);
    unlink(other);
}

/* Floats that are no netCDF type: netCDF-C takes some for text, and would crash over those. */
static void test_other_floats(void **state)
{
    (void)state;
    const char *path = temp_path("floats.h5");
    hid_t file = create_file(path, false, 0);
    hsize_t n = 5, chunk = 2;
    float data[5] = {0, -1.5f, 2, 65504, 6.1035156e-05f}, got[5];
    const float fill = 3;
    hid_t space = H5Screate_simple(1, &n, NULL), half = make_type(F16);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 1, &chunk);
    hid_t d = H5Dcreate2(file, "half", half, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(d);
    H5Dclose(H5Dcreate2(file, "unwritten", half, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "long", H5T_NATIVE_LDOUBLE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, &fill);
    H5Dclose(
        H5Dcreate2(file, "long_fill", H5T_NATIVE_LDOUBLE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "half_fill", half, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Pclose(dcpl);
    H5Tclose(half);
    H5Sclose(space);
    H5Fclose(file);

    cm_error err;
    cm_nc_file *nc;
    ASSERT_OK(cm_nc_open(path, NULL, &nc, &err), err);
    cm_nc_var *var = find_var(nc, "half");
    ASSERT_OK(cm_nc_var_prepare(nc, var, &err), err);
    assert_int_equal(var->access, CM_NC_LIBRARY);
    assert_int_equal(var->array.dtype.kind, CM_KIND_FLOAT);
    ASSERT_OK(read_all(&var->array, got, &err), err);
    assert_memory_equal(got, data, sizeof data);
    var = find_var(nc, "unwritten");
    ASSERT_OK(cm_nc_var_prepare(nc, var, &err), err);
    ASSERT_OK(read_all(&var->array, got, &err), err);
    assert_memory_equal(got, (float[5]){0}, sizeof got);
    static const char *const names[] = {"long", "long_fill"};
    for (size_t i = 0; i < 2; i++) {
        var = find_var(nc, names[i]);
        assert_string_equal(var->unsupported, "a floating-point type of more than 64 bits");
        assert_int_equal(cm_nc_var_prepare(nc, var, &err), CM_EUNSUPPORTED);
    }
    /* Before HDF5 1.14.4 netCDF-C reads these as float32. */
    var = find_var(nc, "half_fill");
    if (!var->unsupported) {
        ASSERT_OK(cm_nc_var_prepare(nc, var, &err), err);
        ASSERT_OK(read_all(&var->array, got, &err), err);
        assert_memory_equal(got, ((float[5]){3, 3, 3, 3, 3}), sizeof got);
    }
    cm_nc_close(nc);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),      cmocka_unit_test(test_direct),
        cmocka_unit_test(test_filter_mask),  cmocka_unit_test(test_short_of_dimension),
        cmocka_unit_test(test_library_only), cmocka_unit_test(test_unwritten),
        cmocka_unit_test(test_elsewhere),    cmocka_unit_test(test_other_floats),
    };
    return cmocka_run_group_tests_name("nc_hdf5", tests, NULL, NULL);
}
