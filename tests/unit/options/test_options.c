/* Options for one variable: names, shapes and codecs. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "options/codec_option.h"
#include "options/shape_option.h"
#include "options/store_path.h"
#include "options/varopt.h"

static void test_values_for_variables(void **state)
{
    static const char *const text[] = {"24x64x64",  "tas:1x2x3", "pr*:source",
                                       "auto:8MiB", "a\\:b:4x4", "g/deep:full"};
    static const struct {
        const char *variable;
        bool general;
        const char *value;
        bool named;
    } rows[] = {
        {"tas", true, "1x2x3", true},       {"tas", false, "1x2x3", true},
        {"prw", true, "source", true},      {"hus", true, "auto:8MiB", false},
        {"hus", false, NULL, false},        {"a:b", true, "4x4", true},
        {"g/deep", true, "full", true},     {"h/deep", true, "auto:8MiB", false},
        {"group/tas", true, "1x2x3", true},
    };
    static const char *const keywords[] = {"auto", "source", NULL};
    (void)state;
    cm_varopts opts;
    cm_texts texts = {text, sizeof(text) / sizeof(text[0])};
    assert_int_equal(cm_varopts_parse("`chunks`", &texts, keywords, &opts, NULL), CM_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool named;
        const char *value = cm_varopts_get(&opts, rows[i].variable, rows[i].general, &named);
        if (rows[i].value == NULL)
            assert_null(value);
        else
            assert_string_equal(value, rows[i].value);
        assert_int_equal(named, rows[i].named);
    }
    assert_int_equal(cm_varopts_check_used(&opts, NULL), CM_OK);
    cm_varopts_release(&opts);
}

static void test_globs(void **state)
{
    static const struct {
        const char *pattern, *matching, *others; /* separated by spaces */
    } rows[] = {
        {"tas", "tas a/tas a/b/tas", "tasmax a/tas/b Tas"},
        {"t*", "t tas a/tas a/b/tas", "pr a/pr t/pr"},
        {"*", "tas a/tas a/b/tas", ""},
        {"**", "tas a/tas a/b/tas", ""},
        {"a/*", "a/tas a/pr", "tas b/tas a/b/tas a"},
        {"a/t*", "a/tas a/t", "a/b/tas a/pr"},
        {"a/*/tas", "a/b/tas a/c/tas", "a/tas a/b/c/tas"},
        {"*/tas", "a/tas b/tas", "tas a/b/tas"},
        {"a/**", "a/tas a/b/tas a/b/c/tas", "a tas b/a/tas ab/tas"},
        {"**/tas", "tas a/tas a/b/tas", "a/btas tas/a"},
        {"a/**/tas", "a/tas a/b/tas a/b/c/tas", "tas a/b/pr ab/tas"},
        {"a**s", "as atas x/abs", "a/s"},
        {"a/t**", "a/tas", "a/t/s"},
        {"**/b/**", "b/x a/b/x a/b/c/x", "a/b x/ab/c"},
        {"t?s", "tas t\303\244s a/tos", "ts taas t/s"},
        {"[a-c]?", "ax bx x/cx", "dx a"},
        {"[!a-c]x", "dx x/zx", "ax bx"},
        {"[^a]x", "bx", "ax"},
        {"[\303\244\303\266]x", "\303\244x \303\266x", "\303\274x \303x"},
        {"[]x]", "] x", "y"},
        {"[a-]", "a -", "b"},
        {"flux[1]", "flux[1] flux1", "flux2"},
        {"flux[1", "flux[1", "flux1"},
        {"a[b/c]d", "a[b/c]d", "abd a/d"},
        {"t\\*", "t*", "tas"},
        {"t\\[1]", "t[1]", "t1"},
        {"*a*a*a*a*a*b", "aaaaab", "aaaaaaaaaaaaaaaaaaaaaa"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int want = 0; want < 2; want++) {
            char names[128], *rest = names, *name;
            strcpy(names, want ? rows[i].matching : rows[i].others);
            while ((name = strsep(&rest, " ")) != NULL)
                if (*name != '\0' && cm_name_matches(rows[i].pattern, name) != want)
                    fail_msg("%s %s %s", rows[i].pattern, want ? "misses" : "matches", name);
        }
    }
}

static void test_store_paths(void **state)
{
    char folder[] = "/tmp/chunkmill-XXXXXX", literal[64], text[128];
    static const struct {
        const char *text, *path, *node;
        int status;
    } rows[] = {
        {"a.nc", "a.nc", "", CM_OK},
        {"a.nc::g/v", "a.nc", "g/v", CM_OK},
        {"a.nc:://g/v//", "a.nc", "g/v", CM_OK},
        {"a.nc::", "a.nc", "", CM_OK},
        {"a::b::c", "a", "b::c", CM_OK},
        {"file:///x/a.zarr", "/x/a.zarr", "", CM_OK},
        {"file:///x/a.zarr::g", "/x/a.zarr", "g", CM_OK},
        {"file://localhost/x/a.zarr::g/v", "/x/a.zarr", "g/v", CM_OK},
        {"file:///x/a%20b%3a%3A.zarr::g%20", "/x/a b::.zarr", "g%20", CM_OK},
        {"file:///x/100%.zarr::g", NULL, NULL, CM_EINVAL},
        {"file://other/x/a.zarr", NULL, NULL, CM_EINVAL},
        {"file://a.zarr::g", NULL, NULL, CM_EINVAL},
        {"gs://bucket/a", "gs://bucket/a", "", CM_OK},
        {"az://bucket/a", NULL, NULL, CM_EINVAL},
        {"s3://bucket/a/", "s3://bucket/a", "", CM_OK},
        {"https://host:80/a%20b::g", "https://host:80/a%20b", "g", CM_OK},
    };
    (void)state;
    cm_store_path p;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(cm_store_path_split(rows[i].text, &p, NULL), rows[i].status);
        if (rows[i].status == CM_OK) {
            assert_string_equal(p.path, rows[i].path);
            assert_string_equal(p.node, rows[i].node);
        }
        cm_store_path_release(&p);
    }
    assert_non_null(mkdtemp(folder));
    snprintf(literal, sizeof(literal), "%s/a::b", folder);
    assert_int_equal(mkdir(literal, 0777), 0);
    assert_int_equal(cm_store_path_find(literal, NULL, &p, NULL), CM_OK);
    assert_string_equal(p.path, literal);
    assert_true(p.is_folder);
    cm_store_path_release(&p);
    snprintf(text, sizeof(text), "file://%s::c", literal);
    assert_int_equal(cm_store_path_find(text, NULL, &p, NULL), CM_ENOTFOUND);
    cm_store_path_release(&p);
    rmdir(literal);
    rmdir(folder);
}

static void test_a_name_that_no_variable_has(void **state)
{
    static const char *const text[] = {"tsa:4x4"};
    (void)state;
    cm_varopts opts;
    cm_error err;
    cm_texts texts = {text, 1};
    assert_int_equal(cm_varopts_parse("`chunks`", &texts, NULL, &opts, NULL), CM_OK);
    assert_null(cm_varopts_get(&opts, "tas", true, NULL));
    assert_int_equal(cm_varopts_check_used(&opts, &err), CM_EINVAL);
    assert_non_null(strstr(err.text, "tsa"));
    cm_varopts_release(&opts);
}

static void test_shapes(void **state)
{
    static char *dims[] = {"time", "lat", "lon"};
    static const uint64_t shape[] = {100, 50, 7};
    static const struct {
        const char *text;
        bool fits;
        uint64_t length[3];
    } rows[] = {
        {"24x64x3", true, {24, 50, 3}},  {"full x1x1", false, {0}},
        {"fullx1x1", true, {100, 1, 1}}, {"24x64", false, {24, 50, 0}},
        {"lat=8", true, {0, 8, 0}},      {"lon=full,time=1000", true, {100, 0, 7}},
        {"level=3", false, {0, 0, 0}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cm_shape_option option;
        uint64_t length[3];
        if (cm_shape_option_parse(rows[i].text, &option, NULL) != CM_OK) {
            assert_false(rows[i].fits);
            continue;
        }
        if (cm_shape_option_fits(&option, 3, dims) != rows[i].fits)
            fail_msg("%s", rows[i].text);
        cm_shape_option_apply(&option, 3, shape, dims, NULL, length);
        for (unsigned j = 0; j < 3; j++)
            if (length[j] != rows[i].length[j])
                fail_msg("%s: %llu along %s", rows[i].text, (unsigned long long)length[j], dims[j]);
        cm_shape_option_release(&option);
    }
}

static void test_shapes_that_are_none(void **state)
{
    static const char *const rows[] = {
        "",
        "0x4",
        "-3",
        "4x",
        "x4",
        "time=",
        "=4",
        "4x4x?",
        "time=0",
        "1.5",
        "time=4,4",
        "time=1,time=2",
        "999999999999999999999999999999",
        "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cm_shape_option option;
        cm_error err = {0};
        if (cm_shape_option_parse(rows[i], &option, &err) != CM_EINVAL)
            fail_msg("\"%s\" was taken for a shape", rows[i]);
        assert_true(strlen(err.text) > 10);
    }
}

static void test_codecs(void **state)
{
    static const struct {
        const char *text, *meaning; /* NULL: refused */
    } rows[] = {
        {"none", "none"},
        {"zstd", "zstd:3"},
        {"zstd:9", "zstd:9"},
        {"zstd:23", NULL},
        {"gzip", "gzip:5"},
        {"gzip:10", NULL},
        {"gzip:1:2", NULL},
        {"blosc", "blosc:zstd:2:shuffle"},
        {"blosc:lz4", "blosc:lz4:2:shuffle"},
        {"blosc:lz4:5:bitshuffle", "blosc:lz4:5:bitshuffle"},
        {"blosc:lz4:5:bitshuffle:1", NULL},
        {"blosc:lz5", NULL},
        {"blosc:zstd:two", NULL},
        {"keep", "keep"},
        {"keep:gzip", "keep:gzip"},
        {"keep:zstd", NULL},
        {"", NULL},
        {"zip", NULL},
        {"none:1", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cm_codec_choice choice;
        char text[64];
        int rc = cm_codec_choice_parse(rows[i].text, &choice, NULL);
        if (rc != (rows[i].meaning == NULL ? CM_EINVAL : CM_OK))
            fail_msg("%s: %d", rows[i].text, rc);
        if (rc == CM_OK)
            assert_string_equal(cm_codec_choice_text(&choice, text, sizeof(text)), rows[i].meaning);
    }
}

static void test_codecs_fit_the_type(void **state)
{
    static const struct {
        cm_kind kind;
        uint32_t nbytes;
        cm_codec_id first;
        uint32_t elementsize;
        cm_blosc_shuffle shuffle;
    } rows[] = {
        {CM_KIND_FLOAT, 4, CM_CODEC_BYTES, 4, CM_BLOSC_SHUFFLE},
        {CM_KIND_INT, 2, CM_CODEC_BYTES, 2, CM_BLOSC_SHUFFLE},
        {CM_KIND_UINT, 1, CM_CODEC_BYTES, 1, CM_BLOSC_NOSHUFFLE},
        {CM_KIND_BYTES, 1, CM_CODEC_BYTES, 1, CM_BLOSC_NOSHUFFLE},
        {CM_KIND_STRING, 0, CM_CODEC_VLEN_UTF8, 1, CM_BLOSC_NOSHUFFLE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cm_dtype type = cm_dtype_make(rows[i].kind, rows[i].nbytes);
        cm_codec_choice choice;
        cm_codec_spec *spec;
        size_t n;
        assert_int_equal(cm_codec_choice_parse("blosc", &choice, NULL), CM_OK);
        assert_int_equal(cm_codec_choice_specs(&choice, &type, &spec, &n, NULL), CM_OK);
        assert_int_equal(n, 2);
        assert_int_equal(spec[0].id, rows[i].first);
        assert_int_equal(spec[1].elementsize, rows[i].elementsize);
        assert_int_equal(spec[1].blosc.shuffle, rows[i].shuffle);
        cm_codec_specs_free(spec, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_for_variables),
        cmocka_unit_test(test_globs),
        cmocka_unit_test(test_store_paths),
        cmocka_unit_test(test_a_name_that_no_variable_has),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_shapes_that_are_none),
        cmocka_unit_test(test_codecs),
        cmocka_unit_test(test_codecs_fit_the_type),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
