

#include "../unit.h"
#include "model/dtype.h"

static cm_dtype timed(cm_kind kind, const char *unit, uint32_t scale)
{
    cm_dtype t = cm_dtype_make(kind, 8);
    strcpy(t.unit, unit);
    t.scale_factor = scale;
    return t;
}

static void test_names_and_swaps(void **state)
{
    (void)state;
    const struct {
        cm_dtype type;
        const char *name;
        uint32_t swap;
    } ROW[] = {
        {cm_dtype_make(CM_KIND_BOOL, 1), "bool", 1},
        {cm_dtype_make(CM_KIND_INT, 2), "int16", 2},
        {cm_dtype_make(CM_KIND_UINT, 8), "uint64", 8},
        {cm_dtype_make(CM_KIND_FLOAT, 2), "float16", 2},
        {cm_dtype_make(CM_KIND_COMPLEX, 8), "complex64", 4},
        {cm_dtype_make(CM_KIND_COMPLEX, 16), "complex128", 8},
        {cm_dtype_make(CM_KIND_BYTES, 12), "bytes12", 1},
        {cm_dtype_make(CM_KIND_RAW, 3), "raw3", 1},
        {cm_dtype_make(CM_KIND_UTF32, 20), "unicode5", 4},
        {timed(CM_KIND_DATETIME, "ns", 1), "datetime64[ns]", 8},
        {timed(CM_KIND_DATETIME, "s", 10), "datetime64[10s]", 8},
        {timed(CM_KIND_TIMEDELTA, "generic", 1), "timedelta64", 8},
        {timed(CM_KIND_TIMEDELTA, "D", UINT32_MAX), "timedelta64[4294967295D]", 8},
        {cm_dtype_make(CM_KIND_STRING, 0), "string", 1},
        {cm_dtype_make(CM_KIND_VLEN_BYTES, 0), "variable_length_bytes", 1},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        char buf[32];
        assert_string_equal(cm_dtype_name(&ROW[i].type, buf, sizeof buf), ROW[i].name);
        assert_int_equal(cm_dtype_swap_nbytes(&ROW[i].type), ROW[i].swap);
        for (size_t j = 0; j < sizeof ROW / sizeof *ROW; j++)
            assert_int_equal(cm_dtype_equal(&ROW[i].type, &ROW[j].type), i == j);
    }
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        cm_kind kind; /* 0: refused */
        uint32_t nbytes;
    } ROW[] = {
        {"bool", CM_KIND_BOOL, 1},
        {"int8", CM_KIND_INT, 1},
        {"uint64", CM_KIND_UINT, 8},
        {"float16", CM_KIND_FLOAT, 2},
        {"float64", CM_KIND_FLOAT, 8},
        {"complex64", CM_KIND_COMPLEX, 8},
        {"complex128", CM_KIND_COMPLEX, 16},
        {"string", CM_KIND_STRING, 0},
        {"f4", CM_KIND_FLOAT, 4},
        {"<i2", CM_KIND_INT, 2},
        {"|u1", CM_KIND_UINT, 1},
        {"=c16", CM_KIND_COMPLEX, 16},
        {"|b1", CM_KIND_BOOL, 1},
        {">f4", 0, 0},
        {"", 0, 0},
        {"<", 0, 0},
        {"float", 0, 0},
        {"<float32", 0, 0},
        {"int24", 0, 0},
        {"f4 ", 0, 0},
        {"Float32", 0, 0},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_error err = {0};
        cm_dtype t = {0};
        print_message("  '%s'\n", ROW[i].text);
        const int rc = cm_dtype_parse(ROW[i].text, &t, &err);
        assert_int_equal(rc, ROW[i].kind ? CM_OK : CM_EINVAL);
        assert_int_equal(t.kind, ROW[i].kind);
        assert_int_equal(t.nbytes, ROW[i].nbytes);
        if (rc)
            assert_non_null(strstr(err.text, ROW[i].text));
    }
}

static void test_names_read_back(void **state)
{
    (void)state;
    static const char *const NAME[] = {"bool",    "int8",    "int16",     "int32",      "int64",
                                       "uint8",   "uint16",  "uint32",    "uint64",     "float16",
                                       "float32", "float64", "complex64", "complex128", "string"};
    for (size_t i = 0; i < sizeof NAME / sizeof *NAME; i++) {
        char buf[32];
        cm_dtype t;
        assert_int_equal(cm_dtype_parse(NAME[i], &t, NULL), CM_OK);
        assert_string_equal(cm_dtype_name(&t, buf, sizeof buf), NAME[i]);
    }
}

static void test_classes(void **state)
{
    (void)state;
    for (int kind = CM_KIND_BOOL; kind <= CM_KIND_VLEN_BYTES; kind++) {
        const cm_dtype t = cm_dtype_make((cm_kind)kind, 8);
        assert_int_equal(cm_dtype_is_number(&t),
                         kind == CM_KIND_INT || kind == CM_KIND_UINT || kind == CM_KIND_FLOAT);
        assert_int_equal(cm_dtype_is_vlen(&t),
                         kind == CM_KIND_STRING || kind == CM_KIND_VLEN_BYTES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_swaps),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_names_read_back),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
