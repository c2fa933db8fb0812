/* Attributes, fill values, names and groups as nc.h promises them. */
#define H5_USE_110_API
#include <hdf5.h>
#include <math.h>
#include <netcdf.h>

#include "nc_support.h"

static void assert_json(const cm_json *j, const char *want)
{
    cm_buf text;
    cm_error err;
    cm_buf_init(&text, 0);
    ASSERT_OK(cm_json_write(j, false, &text, &err), err);
    ASSERT_OK(cm_buf_append(&text, "", 1, &err), err);
    assert_string_equal((const char *)text.data, want);
    cm_buf_release(&text);
}

static cm_nc_file *open_file(const char *path)
{
    cm_nc_file *file;
    cm_error err;
    ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
    return file;
}

static void assert_warned(const cm_nc_file *file, const char *text)
{
    for (size_t i = 0; i < cm_nc_nwarnings(file); i++)
        if (strcmp(cm_nc_warning_at(file, i), text) == 0)
            return;
    for (size_t i = 0; i < cm_nc_nwarnings(file); i++)
        print_message("  warning: %s\n", cm_nc_warning_at(file, i));
    fail_msg("no warning: %s", text);
}

/* One attribute "a" of a variable, and its JSON. */
static const struct {
    const char *name;
    nc_type type;
    size_t nelem;
    const void *value;
    const char *want;
    bool nc4_only;
} values[] = {
    {"byte", NC_BYTE, 1, (signed char[]){-5}, "-5", false},
    {"shorts", NC_SHORT, 3, (short[]){1, -2, 3}, "[1,-2,3]", false},
    {"int", NC_INT, 1, (int[]){INT32_MIN}, "-2147483648", false},
    {"float", NC_FLOAT, 1, (float[]){1e20f}, "1.0000000200408773e+20", false},
    {"whole float", NC_FLOAT, 1, (float[]){1}, "1.0", false},
    {"double", NC_DOUBLE, 1, (double[]){0.1}, "0.1", false},
    {"doubles", NC_DOUBLE, 2, (double[]){-0.0, 2}, "[-0.0,2.0]", false},
    {"not finite", NC_DOUBLE, 3, (double[]){NAN, INFINITY, -INFINITY},
     "[\"NaN\",\"Infinity\",\"-Infinity\"]", false},
    {"NaN", NC_FLOAT, 1, (float[]){NAN}, "\"NaN\"", false},
    {"empty", NC_INT, 0, (int[]){0}, "[]", false},
    {"text", NC_CHAR, 5, "hello", "\"hello\"", false},
    {"text of one", NC_CHAR, 1, "x", "\"x\"", false},
    {"no text", NC_CHAR, 0, "", "\"\"", false},
    {"NULs", NC_CHAR, 6, "a\0b\0\0\0", "\"ab\"", false},
    {"bad UTF-8", NC_CHAR, 3,
     "a\xff"
     "b",
     "\"a\xef\xbf\xbd"
     "b\"",
     false},
    {"UTF-8", NC_CHAR, 5, "\xc3\xa9\xe2\x82\xac", "\"\xc3\xa9\xe2\x82\xac\"", false},
    {"ubyte", NC_UBYTE, 1, (unsigned char[]){255}, "255", true},
    {"ushort", NC_USHORT, 1, (unsigned short[]){65535}, "65535", true},
    {"uint", NC_UINT, 1, (unsigned[]){UINT32_MAX}, "4294967295", true},
    {"int64", NC_INT64, 1, (int64_t[]){INT64_MIN}, "-9223372036854775808", true},
    {"uint64", NC_UINT64, 1, (uint64_t[]){UINT64_MAX}, "18446744073709551615", true},
    {"string", NC_STRING, 1, (const char *[]){"one"}, "\"one\"", true},
    {"strings", NC_STRING, 2, (const char *[]){"one", ""}, "[\"one\",\"\"]", true},
};

enum {
    NVALUES = sizeof values / sizeof *values
};

static void make_values(const char *path, int mode)
{
    int id, varid;
    assert_int_equal(nc_create(path, mode | NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_var(id, "v", NC_FLOAT, 0, NULL, &varid), 0);
    for (int i = 0; i < NVALUES; i++) {
        if (values[i].nc4_only && mode != NC_NETCDF4)
            continue;
        assert_int_equal(
            nc_put_att(id, varid, values[i].name, values[i].type, values[i].nelem, values[i].value),
            0);
        assert_int_equal(nc_put_att(id, NC_GLOBAL, values[i].name, values[i].type, values[i].nelem,
                                    values[i].value),
                         0);
    }
    assert_int_equal(nc_close(id), 0);
}

static void test_values(void **state)
{
    (void)state;
    static const int modes[] = {0, NC_NETCDF4};
    for (size_t m = 0; m < 2; m++) {
        const char *path = temp_path("values.nc");
        make_values(path, modes[m]);
        cm_nc_file *file = open_file(path);
        const cm_json *attrs = find_var(file, "v")->array.attrs;
        const cm_json *global = cm_nc_group_at(file, 0)->attrs;
        size_t n = 0;
        for (int i = 0; i < NVALUES; i++) {
            if (values[i].nc4_only && modes[m] != NC_NETCDF4)
                continue;
            n++;
            assert_json(cm_json_member(attrs, values[i].name), values[i].want);
            assert_json(cm_json_member(global, values[i].name), values[i].want);
        }
        assert_int_equal(cm_json_length(attrs), n);
        assert_int_equal(cm_json_length(global), n);
        assert_int_equal(cm_nc_nwarnings(file), 0);
        cm_nc_close(file);
        unlink(path);
    }
}

/* The order in which a user wrote them. */
static void test_order(void **state)
{
    (void)state;
    int id;
    const char *path = temp_path("order.nc");
    assert_int_equal(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id), 0);
    static const char *const names[] = {"z", "a", "m", "b"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(nc_put_att_int(id, NC_GLOBAL, names[i], NC_INT, 1, &i), 0);
    assert_int_equal(nc_close(id), 0);
    cm_nc_file *file = open_file(path);
    assert_json(cm_nc_group_at(file, 0)->attrs, "{\"z\":0,\"a\":1,\"m\":2,\"b\":3}");
    cm_nc_close(file);
    unlink(path);
}

/* A _FillValue of another type than its variable, which only HDF5 and old libraries write. */
static const struct {
    const char *name;
    cm_kind kind;
    uint32_t nbytes;
    nc_type fill_type;
    double fill;
    bool kept;
    double becomes;
    const char *warning;
} fills[] = {
    {"same", CM_KIND_INT, 2, NC_SHORT, -9, true, -9, ""},
    {"int", CM_KIND_INT, 2, NC_INT, -9, true, -9, "_FillValue -9 (int32) becomes -9 (int16)"},
    {"double", CM_KIND_INT, 2, NC_DOUBLE, 32767, true, 32767,
     "_FillValue 32767.0 (float64) becomes 32767 (int16)"},
    {"rounded", CM_KIND_FLOAT, 4, NC_DOUBLE, 1e20, true, 1e20f,
     "_FillValue 1e+20 (float64) becomes 1e+20 (float32)"},
    {"NaN", CM_KIND_INT, 4, NC_FLOAT, NAN, false, 0,
     "_FillValue NaN is left out, an integer cannot be NaN"},
    {"fraction", CM_KIND_INT, 2, NC_DOUBLE, 0.5, false, 0,
     "_FillValue 0.5 (float64) is left out, no int16 equals it"},
    {"too large", CM_KIND_INT, 2, NC_INT, 40000, false, 0,
     "_FillValue 40000 (int32) is left out, no int16 equals it"},
    {"negative", CM_KIND_UINT, 1, NC_SHORT, -1, false, 0,
     "_FillValue -1 (int16) is left out, no uint8 equals it"},
    {"float64 to float32", CM_KIND_FLOAT, 4, NC_DOUBLE, 1e300, false, 0,
     "_FillValue 1e+300 (float64) is left out, no float32 equals it"},
};

enum {
    NFILLS = sizeof fills / sizeof *fills
};

static hid_t h5_type(cm_kind kind, uint32_t nbytes)
{
    if (kind == CM_KIND_FLOAT)
        return nbytes == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
    if (kind == CM_KIND_UINT)
        return H5T_STD_U8LE;
    return nbytes == 2 ? H5T_STD_I16LE : H5T_STD_I32LE;
}

static void make_fills(const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t scalar = H5Screate(H5S_SCALAR);
    for (int i = 0; i < NFILLS; i++) {
        hid_t type = fills[i].fill_type == NC_SHORT   ? H5T_STD_I16LE
                     : fills[i].fill_type == NC_INT   ? H5T_STD_I32LE
                     : fills[i].fill_type == NC_FLOAT ? H5T_IEEE_F32LE
                                                      : H5T_IEEE_F64LE;
        hid_t d = H5Dcreate2(file, fills[i].name, h5_type(fills[i].kind, fills[i].nbytes), scalar,
                             H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        hid_t a = H5Acreate2(d, "_FillValue", type, scalar, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Awrite(a, H5T_NATIVE_DOUBLE, &fills[i].fill) >= 0);
        H5Aclose(a);
        H5Dclose(d);
    }
    H5Sclose(scalar);
    H5Fclose(file);
}

static void test_fill_of_another_type(void **state)
{
    (void)state;
    const char *path = temp_path("fills.h5");
    make_fills(path);
    cm_nc_file *file = open_file(path);
    for (int i = 0; i < NFILLS; i++) {
        cm_nc_var *var = find_var(file, fills[i].name);
        cm_error err;
        assert_false(cm_json_has(var->array.attrs, "_FillValue"));
        if (var->has_fill_value != fills[i].kept)
            fail_msg("%s: has_fill_value is %d", fills[i].name, var->has_fill_value);
        ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
        if (fills[i].warning[0]) {
            char text[256];
            snprintf(text, sizeof text, "variable %s: %s", fills[i].name, fills[i].warning);
            assert_warned(file, text);
        }
        if (!fills[i].kept)
            continue;
        short s;
        float f;
        memcpy(&s, var->fill_value, sizeof s);
        memcpy(&f, var->fill_value, sizeof f);
        assert_true((fills[i].kind == CM_KIND_FLOAT ? (double)f : (double)s) == fills[i].becomes);
    }
    cm_nc_close(file);
    unlink(path);
}

/* An integer's NaN missing_value says nothing; a float's does. */
static void test_missing_value(void **state)
{
    (void)state;
    int id, a, b;
    double nan = NAN;
    const char *path = temp_path("missing.nc");
    assert_int_equal(nc_create(path, NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_var(id, "i", NC_SHORT, 0, NULL, &a), 0);
    assert_int_equal(nc_def_var(id, "f", NC_FLOAT, 0, NULL, &b), 0);
    assert_int_equal(nc_put_att_double(id, a, "missing_value", NC_DOUBLE, 1, &nan), 0);
    assert_int_equal(nc_put_att_double(id, b, "missing_value", NC_DOUBLE, 1, &nan), 0);
    assert_int_equal(nc_close(id), 0);
    cm_nc_file *file = open_file(path);
    assert_json(find_var(file, "i")->array.attrs, "{}");
    assert_json(find_var(file, "f")->array.attrs, "{\"missing_value\":\"NaN\"}");
    assert_warned(file, "variable i: missing_value NaN is left out, an integer cannot be NaN");
    assert_int_equal(cm_nc_nwarnings(file), 1);
    cm_nc_close(file);
    unlink(path);
}

/* Floats whose attributes call NaN alone missing, before or behind those that pack them. */
static void test_nan_is_named_once(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool fills, packs, two;
        double second;
        bool has_fill;
        const char *want;
    } CASE[] = {
        {"plain", false, false, false, 0, false, "{\"missing_value\":\"NaN\"}"},
        {"packed", false, true, false, 0, true, "{\"scale_factor\":2}"},
        {"list", false, true, true, NAN, true, "{\"scale_factor\":2}"},
        {"others", false, true, true, 9, false, "{\"missing_value\":9.0,\"scale_factor\":2}"},
        {"infinite", false, true, true, INFINITY, false,
         "{\"missing_value\":[\"NaN\",\"Infinity\"],\"scale_factor\":2}"},
        {"both", true, false, false, 0, true, "{\"missing_value\":\"NaN\"}"},
        {"all", true, true, false, 0, true, "{\"scale_factor\":2}"},
    };
    enum {
        N = sizeof CASE / sizeof *CASE
    };
    int id, var;
    const float nan = NAN;
    const char *path = temp_path("nan.nc");
    assert_int_equal(nc_create(path, NC_CLOBBER, &id), 0);
    for (int i = 0; i < N; i++) {
        const double missing[] = {NAN, CASE[i].second};
        const int scale = 2;
        assert_int_equal(nc_def_var(id, CASE[i].name, NC_FLOAT, 0, NULL, &var), 0);
        assert_int_equal(
            nc_put_att_double(id, var, "missing_value", NC_DOUBLE, 1 + CASE[i].two, missing), 0);
        if (CASE[i].packs)
            assert_int_equal(nc_put_att_int(id, var, "scale_factor", NC_INT, 1, &scale), 0);
        if (CASE[i].fills)
            assert_int_equal(nc_put_att_float(id, var, "_FillValue", NC_FLOAT, 1, &nan), 0);
    }
    assert_int_equal(nc_close(id), 0);
    cm_nc_file *file = open_file(path);
    for (int i = 0; i < N; i++) {
        const cm_nc_var *v = find_var(file, CASE[i].name);
        float fill;
        memcpy(&fill, v->fill_value, sizeof fill);
        assert_json(v->array.attrs, CASE[i].want);
        assert_int_equal(v->has_fill_value, CASE[i].has_fill);
        assert_true(!v->has_fill_value || isnan(fill));
    }
    cm_nc_close(file);
    unlink(path);
}

/* _Unsigned may give a _FillValue of the other sign a meaning. */
static void test_fill_of_the_other_sign(void **state)
{
    (void)state;
    const char *path = temp_path("sign.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t scalar = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 4);
    for (int i = 0; i < 2; i++) {
        hid_t d = H5Dcreate2(file, i == 0 ? "signed" : "unsigned", H5T_STD_I8LE, scalar,
                             H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        hid_t a = H5Acreate2(d, "_FillValue", H5T_STD_U8LE, scalar, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Awrite(a, H5T_NATIVE_INT, &(int){255}) >= 0);
        H5Aclose(a);
        a = H5Acreate2(d, i == 0 ? "other" : "_Unsigned", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Awrite(a, text, "true") >= 0);
        H5Aclose(a);
        H5Dclose(d);
    }
    H5Tclose(text);
    H5Sclose(scalar);
    H5Fclose(file);
    cm_nc_file *opened = open_file(path);
    assert_false(find_var(opened, "signed")->has_fill_value);
    assert_warned(opened, "variable signed: _FillValue 255 (uint8) is left out, no int8 equals it");
    assert_true(find_var(opened, "unsigned")->has_fill_value);
    assert_int_equal(find_var(opened, "unsigned")->fill_value[0], 255);
    assert_warned(opened, "variable unsigned: _FillValue 255 (uint8) becomes -1 (int8)");
    cm_nc_close(opened);
    unlink(path);
}

/* Texts have two names for what is missing, and a store one. */
static void test_missing_texts(void **state)
{
    (void)state;
    int id, var;
    const char *fill[] = {""}, *none[] = {"NA", "-"};
    static const struct {
        const char *name;
        bool last;
        size_t n;
        const char *want;
    } CASE[] = {{"fill", false, 0, "{\"missing_value\":\"\"}"},
                {"first", false, 1, "{\"missing_value\":[\"NA\",\"\"]}"},
                {"last", true, 1, "{\"missing_value\":[\"NA\",\"\"]}"},
                {"list", true, 2, "{\"missing_value\":[\"NA\",\"-\",\"\"]}"}};
    const char *path = temp_path("texts.nc");
    assert_int_equal(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id), 0);
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        assert_int_equal(nc_def_var(id, CASE[i].name, NC_STRING, 0, NULL, &var), 0);
        if (!CASE[i].last)
            assert_int_equal(nc_put_att_string(id, var, "_FillValue", 1, fill), 0);
        if (CASE[i].n > 0)
            assert_int_equal(nc_put_att_string(id, var, "missing_value", CASE[i].n, none), 0);
        if (CASE[i].last)
            assert_int_equal(nc_put_att_string(id, var, "_FillValue", 1, fill), 0);
    }
    assert_int_equal(nc_close(id), 0);
    cm_nc_file *file = open_file(path);
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++)
        assert_json(find_var(file, CASE[i].name)->array.attrs, CASE[i].want);
    cm_nc_close(file);
    unlink(path);
}

static void test_user_types(void **state)
{
    (void)state;
    int id, dim, varid;
    nc_type compound, vlen, opaque, colour;
    signed char member[] = {-1, 0, 7};
    const char *names[] = {"not known", "red", "blue"};
    const char *path = temp_path("types.nc");
    assert_int_equal(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_compound(id, 4, "pair", &compound), 0);
    assert_int_equal(nc_insert_compound(id, compound, "x", 0, NC_SHORT), 0);
    assert_int_equal(nc_insert_compound(id, compound, "y", 2, NC_SHORT), 0);
    assert_int_equal(nc_def_vlen(id, "row", NC_INT, &vlen), 0);
    assert_int_equal(nc_def_opaque(id, 5, "blob", &opaque), 0);
    assert_int_equal(nc_def_enum(id, NC_BYTE, "colour", &colour), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(nc_insert_enum(id, colour, names[i], &member[i]), 0);
    assert_int_equal(nc_def_dim(id, "x", 2, &dim), 0);
    assert_int_equal(nc_def_var(id, "c", compound, 1, &dim, &varid), 0);
    assert_int_equal(nc_def_var(id, "l", vlen, 1, &dim, &varid), 0);
    assert_int_equal(nc_def_var(id, "o", opaque, 1, &dim, &varid), 0);
    assert_int_equal(nc_def_var(id, "plain", colour, 1, &dim, &varid), 0);
    short pair[2] = {1, 2};
    assert_int_equal(nc_put_att(id, varid, "pair", compound, 1, pair), 0);
    assert_int_equal(nc_put_att(id, varid, "shade", colour, 2, member), 0);
    signed char data[2] = {7, -1};
    assert_int_equal(nc_put_var(id, varid, data), 0);
    assert_int_equal(nc_def_var(id, "flagged", colour, 1, &dim, &varid), 0);
    assert_int_equal(nc_put_att_text(id, varid, "flag_meanings", 3, "own"), 0);
    assert_int_equal(nc_close(id), 0);

    cm_nc_file *file = open_file(path);
    cm_error err;
    static const char *const unsupported[][2] = {
        {"c", "compound type pair"}, {"l", "variable-length type row"}, {"o", "opaque type blob"}};
    for (size_t i = 0; i < 3; i++) {
        cm_nc_var *var = find_var(file, unsupported[i][0]);
        assert_string_equal(var->unsupported, unsupported[i][1]);
        assert_int_equal(cm_nc_var_prepare(file, var, &err), CM_EUNSUPPORTED);
        assert_non_null(strstr(err.text, unsupported[i][1]));
    }
    cm_nc_var *var = find_var(file, "plain");
    assert_int_equal(var->array.dtype.kind, CM_KIND_INT);
    assert_int_equal(var->array.dtype.nbytes, 1);
    assert_json(var->array.attrs, "{\"shade\":[-1,0],\"flag_values\":[-1,0,7],"
                                  "\"flag_meanings\":\"not_known red blue\"}");
    assert_warned(file, "variable plain: attribute pair is left out, it has compound type pair");
    ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
    assert_int_equal(var->access, CM_NC_ARITHMETIC);
    assert_same_as_library(file, var);
    assert_json(find_var(file, "flagged")->array.attrs, "{\"flag_meanings\":\"own\"}");
    cm_nc_close(file);
    unlink(path);
}

/* Groups, dimensions of parents, a variable named like a dimension that is not its own. */
static void test_hierarchy(void **state)
{
    (void)state;
    int id, g, h, x, t, y, varid;
    const char *path = temp_path("groups.nc");
    assert_int_equal(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_grp(id, "g", &g), 0);
    assert_int_equal(nc_def_grp(g, "h", &h), 0);
    assert_int_equal(nc_def_dim(id, "x", 4, &x), 0);
    assert_int_equal(nc_def_dim(id, "t", NC_UNLIMITED, &t), 0);
    assert_int_equal(nc_def_dim(g, "y", 3, &y), 0);
    int dims[2] = {t, x};
    assert_int_equal(nc_def_var(id, "x", NC_INT, 1, &x, &varid), 0);
    assert_int_equal(nc_put_att_text(id, varid, "units", 1, "m"), 0);
    assert_int_equal(nc_def_var(h, "deep", NC_FLOAT, 2, dims, &varid), 0);
    assert_int_equal(nc_def_var(g, "y", NC_SHORT, 1, &x, &varid), 0);
    short value[4] = {4, 3, 2, 1};
    assert_int_equal(nc_put_var_short(g, varid, value), 0);
    assert_int_equal(nc_put_att_text(h, NC_GLOBAL, "title", 4, "down"), 0);
    assert_int_equal(nc_close(id), 0);

    cm_nc_file *file = open_file(path);
    cm_error err;
    assert_string_equal(cm_nc_format_name(file), "NetCDF-4");
    assert_int_equal(cm_nc_ngroups(file), 3);
    assert_string_equal(cm_nc_group_at(file, 0)->path, "");
    assert_string_equal(cm_nc_group_at(file, 1)->path, "g");
    assert_string_equal(cm_nc_group_at(file, 2)->path, "g/h");
    assert_null(cm_nc_group_at(file, 3));
    assert_int_equal(cm_nc_group_at(file, 0)->ndims, 2);
    assert_true(cm_nc_group_at(file, 0)->dim[1].unlimited);
    assert_int_equal(cm_nc_group_at(file, 1)->ndims, 1);
    assert_json(cm_nc_group_at(file, 2)->attrs, "{\"title\":\"down\"}");
    assert_int_equal(cm_nc_nvars(file), 3); /* t and y have no coordinate variable */
    assert_int_equal(cm_nc_nwarnings(file), 0);

    cm_nc_var *var = find_var(file, "x");
    assert_true(var->is_coordinate);
    assert_json(var->array.attrs, "{\"units\":\"m\"}");
    var = find_var(file, "g/h/deep");
    assert_string_equal(var->array.dim_name[0], "t");
    assert_string_equal(var->array.dim_name[1], "x");
    assert_int_equal(var->array.shape[0], 0);
    assert_true(var->unlimited[0]);
    ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
    assert_same_as_library(file, var);
    var = find_var(file, "g/y");
    assert_false(var->is_coordinate);
    assert_string_equal(var->array.dim_name[0], "x");
    ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
    assert_int_equal(var->access, CM_NC_ARITHMETIC);
    assert_same_as_library(file, var);
    cm_nc_close(file);
    unlink(path);
}

static void test_strings(void **state)
{
    (void)state;
    int id, dim, varid;
    const char *text[6] = {"", "a", "\xe2\x82\xac", "long enough to be elsewhere", "b", "c"};
    const char *fill = "none";
    size_t start = 0, count = 6;
    const char *path = temp_path("strings.nc");
    assert_int_equal(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id), 0);
    assert_int_equal(nc_def_dim(id, "x", 8, &dim), 0);
    assert_int_equal(nc_def_var(id, "s", NC_STRING, 1, &dim, &varid), 0);
    assert_int_equal(nc_put_att_string(id, varid, "_FillValue", 1, &fill), 0);
    assert_int_equal(nc_put_vara_string(id, varid, &start, &count, text), 0);
    assert_int_equal(nc_close(id), 0);
    cm_nc_file *file = open_file(path);
    cm_error err;
    cm_nc_var *var = find_var(file, "s");
    ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
    assert_int_equal(var->access, CM_NC_LIBRARY);
    assert_int_equal(var->array.dtype.kind, CM_KIND_STRING);
    assert_string_equal(var->array.fill_text, "none");
    assert_false(var->has_fill_value);
    assert_json(var->array.attrs, "{\"missing_value\":\"none\"}"); /* as stores say it */
    cm_strings out = {0};
    cm_box box = {.rank = 1, .start = {1}, .shape = {7}};
    ASSERT_OK(var->array.ops->read_strings(&var->array, &box, &out, &err), err);
    assert_int_equal(out.nelem, 7);
    for (size_t i = 0; i < 7; i++) {
        size_t n;
        const char *got = cm_strings_get(&out, i, &n);
        const char *want = i < 5 ? text[i + 1] : fill;
        assert_int_equal(n, strlen(want));
        assert_memory_equal(got, want, n);
    }
    cm_strings_release(&out);
    cm_nc_close(file);
    unlink(path);
}

/* Attributes that netCDF-C does not show are named, not silently lost. */
static void test_unseen(void **state)
{
    (void)state;
    const char *path = temp_path("unseen.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t scalar = H5Screate(H5S_SCALAR);
    hid_t d = H5Dcreate2(file, "v", H5T_STD_I32LE, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t a = H5Acreate2(d, "where", H5T_STD_REF_OBJ, scalar, H5P_DEFAULT, H5P_DEFAULT);
    hobj_ref_t ref;
    assert_true(H5Rcreate(&ref, file, "v", H5R_OBJECT, -1) >= 0);
    assert_true(H5Awrite(a, H5T_STD_REF_OBJ, &ref) >= 0);
    H5Aclose(a);
    H5Dclose(d);
    H5Dclose(H5Dcreate2(file, "pointer", H5T_STD_REF_OBJ, scalar, H5P_DEFAULT, H5P_DEFAULT,
                        H5P_DEFAULT));
    hid_t null = H5Screate(H5S_NULL);
    H5Dclose(H5Dcreate2(file, "null", H5T_STD_I32LE, null, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(null);
    H5Sclose(scalar);
    H5Fclose(file);
    cm_nc_file *nc = open_file(path);
    assert_int_equal(cm_nc_nwarnings(nc), 1);
    assert_string_equal(find_var(nc, "pointer")->unsupported, "references");
    assert_string_equal(find_var(nc, "null")->unsupported, "a dataspace without elements");
    assert_json(find_var(nc, "v")->array.attrs, "{}");
    assert_warned(nc, "variable v: attribute where is left out, netCDF-C does not read its type");
    cm_nc_close(nc);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_fill_of_another_type),
        cmocka_unit_test(test_missing_value),
        cmocka_unit_test(test_nan_is_named_once),
        cmocka_unit_test(test_fill_of_the_other_sign),
        cmocka_unit_test(test_missing_texts),
        cmocka_unit_test(test_user_types),
        cmocka_unit_test(test_hierarchy),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_unseen),
    };
    return cmocka_run_group_tests_name("nc_attributes", tests, NULL, NULL);
}
