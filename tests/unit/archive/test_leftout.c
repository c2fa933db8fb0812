/* Metadata of a file that the joined dataset lacks, or has otherwise. */

#include "archive_fixture.h"

#define V(type, ...)                                                                               \
    {                                                                                              \
        STEP(0),                                                                                   \
        {                                                                                          \
            "v", type, "t*=1 y=2", __VA_ARGS__                                                     \
        }                                                                                          \
    }
#define W(type, ...)                                                                               \
    {                                                                                              \
        STEP(1),                                                                                   \
        {                                                                                          \
            "v", type, "t*=1 y=2", __VA_ARGS__                                                     \
        }                                                                                          \
    }

static const struct {
    const char *name;
    made_file file[3];
    cm_archive_options options;
    const char *left[2]; /* of each file, as JSON with ' for "; "": nothing */
} ROWS[] = {
    {"nothing",
     {{"a", .var = V("int16", .attrs = "{'units': 'K'}")},
      {"b", .var = W("int16", .attrs = "{'units': 'K'}")}},
     {.first_attrs = false},
     {"", ""}},
    {"an attribute that files do not say alike",
     {{"a", .var = V("int16", .attrs = "{'units': 'K', 'note': 'x'}")},
      {"b", .var = W("int16", .attrs = "{'units': 'K', 'note': 'y'}")}},
     {.first_attrs = false},
     {"{'attributes':{'v':{'note':'x'}}}", "{'attributes':{'v':{'note':'y'}}}"}},
    {"that of the first",
     {{"a", .var = V("int16", .attrs = "{'note': 'x'}")},
      {"b", .var = W("int16", .attrs = "{'note': 'y'}")}},
     {.first_attrs = true},
     {"", "{'attributes':{'v':{'note':'y'}}}"}},
    {"attributes of the files",
     {{"a", .attrs = "{'title': 'all', 'history': 'x'}", .var = V("int16", .attrs = NULL)},
      {"b", .attrs = "{'title': 'all', 'history': 'y'}", .var = W("int16", .attrs = NULL)}},
     {.first_attrs = false},
     {"{'attributes':{'/':{'history':'x'}}}", "{'attributes':{'/':{'history':'y'}}}"}},
    {"types",
     {{"a", .var = V("int16", .attrs = NULL)}, {"b", .var = W("int32", .attrs = NULL)}},
     {.first_attrs = false},
     {"{'types':{'v':'int16'}}", ""}},
    {"fill values",
     {{"a", .var = V("int16", .fill = "-9")}, {"b", .var = W("int16", .fill = "-8")}},
     {.first_attrs = false},
     {"", "{'fill_values':{'v':'-8'}}"}},
    {"both",
     {{"a", .var = V("int16", .fill = "-9")}, {"b", .var = W("float32", .fill = "-9")}},
     {.first_attrs = false},
     {"{'types':{'v':'int16'},'fill_values':{'v':'-9'}}", ""}},
    {"one of equal bytes in a wider type",
     {{"a", .var = V("int16", .fill = "-9")}, {"b", .var = W("int32", .fill = "-9")}},
     {.first_attrs = false},
     {"{'types':{'v':'int16'},'fill_values':{'v':'-9'}}", ""}},
    {"lengths of texts",
     {{"a", .var = {STEP(0), {"c", "char", "t*=1 n=3", .values = "abc"}}},
      {"b", .var = {STEP(1), {"c", "char", "t*=1 n=5", .values = "abcde"}}}},
     {.first_attrs = false},
     {"{'text_lengths':{'c':3}}", ""}},
    {"of a variable that is left out",
     {{"a", .var = V("int16", .attrs = "{'note': 'x'}")},
      {"b", .var = W("int16", .attrs = "{'note': 'y'}")}},
     {.exclude = TEXTS("v")},
     {"", ""}},
};

static void left_out(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        joined a;
        joined_make(&a, ROWS[i].file, &ROWS[i].options);
        if (a.status != CM_OK)
            fail_msg("%s: %s", ROWS[i].name, a.error.text);
        for (uint32_t f = 0; f < 2; f++) {
            cm_json *json = NULL;
            cm_buf text = {0};
            OK(cm_join_left_out(a.join, f, &json, err));
            if (json != NULL)
                OK(cm_json_write(json, false, &text, err));
            for (size_t k = 0; k < text.nbytes; k++)
                text.data[k] = text.data[k] == '"' ? '\'' : text.data[k];
            tell_begin(&a.text);
            tell(&a.text, "%.*s", (int)text.nbytes,
                 text.data != NULL ? (const char *)text.data : "");
            tell_compare(ROWS[i].name, (const char *)a.text.data, ROWS[i].left[f], &bad);
            cm_buf_release(&text);
            cm_json_free(json);
        }
        joined_release(&a);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
