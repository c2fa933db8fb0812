/* Metadata of a store, held against what the rules make of the file. */

#include "job_fixture.h"

static const made_file GRID = {
    "f", .attrs = "{'title': 'all', 'n': 1}",
    .var = {{"v", "int16", "t*=3 y=4", .fill = "-9",
             .attrs = "{'units': 'K', 'long_name': 'V', 'range': [0, 9]}"},
            {"s", "float32", ""}}};

#define GROUP_TEXT "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}"
#define COUNTED                                                                                    \
    "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"chunkmill\":\"statistics\"}}"

enum {
    MOST_EDITS = 3
};

/* In document KEY, FROM becomes TO; no TO: the document goes; no FROM: it is TO. */
typedef struct edit {
    const char *key, *from, *to;
} edit;

static const struct {
    const char *name;
    cm_transform_options options;
    edit edit[MOST_EDITS];
    bool part;               /* it is compared as a part of an array that is longer */
    const char *differences; /* "; " between them */
} ROWS[] = {
    {"nothing", {.zarr_format = 3}, .differences = ""},
    {"nothing of format 2", {.zarr_format = 2}, .differences = ""},
    {"in groups of its own", {.rename = TEXTS("v=g/h/v")}, .differences = ""},
    {"a part of an array, which need not have its attributes",
     {.zarr_format = 3},
     {{"v/zarr.json", "[3,4]", "[9,4]"}, {"v/zarr.json", "\"units\":\"K\",", ""}},
     true,
     ""},
    {"but which does not reach so far",
     {.zarr_format = 3},
     {{"v/zarr.json", "[3,4]", "[2,4]"}},
     true,
     "v: shape 3x4 became 2x4"},
    {"another length",
     {.zarr_format = 3},
     {{"v/zarr.json", "[3,4]", "[9,4]"}},
     false,
     "v: shape 3x4 became 9x4"},
    {"another rank",
     {.zarr_format = 3},
     {{"s/zarr.json", "\"shape\":[]", "\"shape\":[1]"},
      {"s/zarr.json", "\"chunk_shape\":[]", "\"chunk_shape\":[1]"},
      {"s/zarr.json", "\"dimension_names\":[]", "\"dimension_names\":[\"x\"]"}},
     false,
     "s: shape scalar became 1"},
    {"another type",
     {.zarr_format = 3},
     {{"v/zarr.json", "\"int16\"", "\"uint16\""},
      {"v/zarr.json", "\"fill_value\":-9", "\"fill_value\":9"}},
     false,
     "v: type int16 became uint16"},
    {"another fill value",
     {.zarr_format = 3},
     {{"v/zarr.json", "\"fill_value\":-9", "\"fill_value\":-8"}},
     false,
     "v: the fill value is another"},
    {"another dimension",
     {.zarr_format = 3},
     {{"v/zarr.json", "[\"t\",\"y\"]", "[\"t\",\"x\"]"}},
     false,
     "v: its dimensions have other names"},
    {"one without a name",
     {.zarr_format = 3},
     {{"v/zarr.json", "[\"t\",\"y\"]", "[\"t\",null]"}},
     false,
     "v: its dimensions have other names"},
    {"another attribute",
     {.zarr_format = 3},
     {{"v/zarr.json", "\"K\"", "\"degC\""}},
     false,
     "v: attribute units: \"K\" became \"degC\""},
    {"a number in a list",
     {.zarr_format = 3},
     {{"v/zarr.json", "[0,9]", "[0,9.0]"}},
     false,
     "v: attribute range: [0,9] became [0,9.0]"},
    {"one that is missing",
     {.zarr_format = 3},
     {{"v/zarr.json", "\"units\":\"K\",", ""}},
     false,
     "v: attribute units is missing"},
    {"one that is new",
     {.zarr_format = 3},
     {{"v/zarr.json", "\"units\":\"K\",", "\"units\":\"K\",\"new\":1,"}},
     false,
     "v: attribute new is not in the file"},
    {"another name for one",
     {.zarr_format = 3},
     {{"v/zarr.json", "\"units\"", "\"unit\""}},
     false,
     "v: attribute units is missing; v: attribute unit is not in the file"},
    {"in another order",
     {.zarr_format = 3},
     {{"v/zarr.json", "\"units\":\"K\",\"long_name\":\"V\"",
       "\"long_name\":\"V\",\"units\":\"K\""}},
     false,
     "v: its attributes are in another order"},
    {"of the root",
     {.zarr_format = 3},
     {{"zarr.json", "\"n\":1", "\"n\":2"}},
     false,
     "/: attribute n: 1 became 2"},
    {"an array that is missing",
     {.zarr_format = 3},
     {{"s/zarr.json", "", NULL}},
     false,
     "s: the array is missing"},
    {"one that is a group",
     {.zarr_format = 3},
     {{"s/zarr.json", NULL, GROUP_TEXT}},
     false,
     "s: is a group, not an array; /s: the file has no such group"},
    {"a group that is new",
     {.zarr_format = 3},
     {{"g/zarr.json", NULL, GROUP_TEXT}},
     false,
     "/g: the file has no such group"},
    {"an array that is",
     {.variable = TEXTS("v")},
     {{"s/zarr.json", NULL, ""}},
     false,
     "s: the file has no such variable"},
    {"statistics, with all below them",
     {.variable = TEXTS("v")},
     {{"st/zarr.json", NULL, COUNTED}, {"st/mean/zarr.json", NULL, ""}},
     false,
     ""},
    {"a name that begins like theirs",
     {.variable = TEXTS("v")},
     {{"st/zarr.json", NULL, COUNTED}, {"st2/zarr.json", NULL, ""}},
     false,
     "st2: the file has no such variable"},
    {"a long text",
     {.zarr_format = 3},
     {{"v/zarr.json", "\"K\"",
       "\"a long text that nobody reads to its end, since it goes on and on\""}},
     false,
     "v: attribute units: \"K\" became \"a long text that nobody reads to its end, since it goes "
     "on ..."},
};

static void apply(cm_store *store, const edit *e, const char *array)
{
    cm_buf text = {0}, out = {0};
    if (e->to == NULL) {
        OK(cm_store_delete(store, e->key, err));
        return;
    }
    if (e->from == NULL) {
        const char *to = *e->to != '\0' ? e->to : array;
        OK(cm_store_put(store, e->key, to, strlen(to), err));
        return;
    }
    OK(cm_store_get(store, e->key, 1 << 20, &text, err));
    for (size_t i = 0; i < text.nbytes; i++) /* without what is only for people */
        if (strchr(" \n", text.data[i]) == NULL)
            OK(cm_buf_append(&out, &text.data[i], 1, err));
    OK(cm_buf_append(&out, "", 1, err));
    char *at = strstr((char *)out.data, e->from);
    if (at == NULL)
        fail_msg("%s is not in %s", e->from, (char *)out.data);
    const size_t before = (size_t)(at - (char *)out.data);
    text.nbytes = 0;
    OK(cm_buf_printf(&text, err, "%.*s%s%s", (int)before, (char *)out.data, e->to,
                     at + strlen(e->from)));
    OK(cm_store_put(store, e->key, text.data, text.nbytes, err));
    cm_buf_release(&text);
    cm_buf_release(&out);
}

static void compared(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        cm_zarr_tree tree;
        cm_transform_options options = ROWS[i].options;
        cm_buf array = {0};
        options.no_consolidate = true;
        planned_make(&p, &GRID, &options, STEP_DESCRIBE);
        if (p.status != CM_OK)
            fail_msg("%s: %s", ROWS[i].name, p.error.text);
        OK(cm_job_write_metadata(&p.job, p.store, err));
        if (options.variable.n > 0) { /* the text of an array */
            OK(cm_store_get(p.store, "v/zarr.json", 1 << 20, &array, err));
            OK(cm_buf_append(&array, "", 1, err));
        }
        for (size_t k = 0; k < MOST_EDITS && ROWS[i].edit[k].key != NULL; k++)
            apply(p.store, &ROWS[i].edit[k], (const char *)array.data);
        OK(cm_zarr_open(p.store, &tree, err));
        for (size_t k = 0; k < p.job.nvars; k++)
            p.job.var[k].window.is_part = ROWS[i].part;
        OK(cm_job_compare_meta(&p.job, &tree, err));
        tell_begin(&p.text);
        for (size_t k = 0; k < p.report.ndifferences; k++)
            tell(&p.text, "%s%s", k > 0 ? "; " : "", p.report.difference[k]);
        tell_compare(ROWS[i].name, (const char *)p.text.data, ROWS[i].differences, &bad);
        cm_zarr_tree_release(&tree);
        cm_buf_release(&array);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(compared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
