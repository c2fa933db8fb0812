/* The source of an append that is one dataset: joined with the store, or why it cannot be. */

#include "../fixtures/made_folder.h"
#include "convert/sink/growth/append_source.h"
#include "format/multi/multi.h"
#include "job_fixture.h"

/* A store of OLD in a folder, with its chunks after STEP_RUN, and NEW joined with it. */
typedef struct joining {
    made_folder folder;
    char store[256];
    cm_append append;
    planned old, new;
    cm_dataset *own; /* the source, which the join owns */
    int status;
    cm_error error;
} joining;

static void join_begin(joining *j, const made_file *old, const made_file *new, planned_step step)
{
    cm_store *store;
    cm_transform_options options = {.append = &j->append};
    made_folder_begin(&j->folder);
    snprintf(j->store, sizeof j->store, "%s/old.zarr", j->folder.path);
    OK(cm_store_open_dir(j->store, true, &store, err));
    planned_into(&j->old, old, NULL, step, store);
    if (j->old.status != CM_OK)
        fail_msg("%s", j->old.error.text);
    OK(cm_job_write_metadata(&j->old.job, store, err));
    j->append.opens = j->append.root = j->store;
    j->append.dimension = (char *)(uintptr_t) "t";
    planned_make(&j->new, new, &options, STEP_SELECT);
    assert_int_equal(j->new.status, CM_OK);
    j->own = j->new.made;
}

static void join_run(joining *j)
{
    j->status = cm_append_source_join(&j->new.job, &j->error);
    j->new.made = j->new.job.from.opened; /* the source itself is the join's */
    if (j->status != CM_OK)
        assert_null(j->new.job.from.opened);
}

static void join_end(joining *j)
{
    cm_append_source *a = j->new.job.from.grown;
    cm_store *store = j->old.store;
    planned_release(&j->new);
    cm_append_source_free(a);
    planned_release(&j->old);
    cm_store_free(store);
    made_folder_end(&j->folder);
}

/* "v 0+4; s": what is compared before anything is written. */
static const char *say_checks(joining *j)
{
    cm_buf *text = &j->new.text;
    const cm_multi_spec *spec = cm_multi_spec_of(j->new.job.source);
    tell_begin(text);
    for (size_t i = 0; spec != NULL && i < spec->nchecks; i++) {
        const cm_multi_check *c = &spec->check[i];
        const cm_multi_var *v = &spec->var[c->var];
        tell(text, "%s%s", i > 0 ? "; " : "", v->name);
        assert_int_equal(c->part[0].file, 0);
        assert_int_equal(c->part[1].file, 1);
        if (v->naxes == 0)
            continue;
        for (unsigned k = 0; k < 2; k++) {
            assert_int_equal(c->part[k].origin[0], c->part[0].first[0]);
            assert_int_equal(c->part[k].first[0], c->part[0].first[0]);
            assert_int_equal(c->part[k].count[0], c->part[0].count[0]);
        }
        tell(text, " %u+%u", (unsigned)c->part[0].first[0], (unsigned)c->part[0].count[0]);
    }
    return (const char *)text->data;
}

/* ---- what is refused, and what is compared ---- */

#define ONE(type, dims, ...)                                                                       \
    {                                                                                              \
        "/dev/null", .var = { {"v", type, dims, __VA_ARGS__} }                                     \
    }
#define OTHER(what) "variable v: its " what " is not that of the store; make the store anew"

static const struct {
    const char *name;
    made_file old, new;
    bool recheck;
    const char *checks, *error, *warning;
} ROWS[] = {
    {"one that grows, its coordinate, and one that does not",
     {"/dev/null",
      .var = {{"t", "int32", "t*=2"}, {"v", "int16", "t*=2 y=3"}, {"s", "int16", "y=3"}}},
     {"/dev/null",
      .var = {{"t", "int32", "t*=5"}, {"v", "int16", "t*=5 y=3"}, {"s", "int16", "y=3"}}},
     .checks = "t 0+2; v 0+2; s"},
    {"a large one: its last step", ONE("float64", "t*=2 y=70000"), ONE("float64", "t*=3 y=70000"),
     .checks = "v 1+1",
     .warning =
         "the source has no coordinate along t: of the elements that the store has already, the "
         "last step of each array is compared; `recheck` compares all"},
    {"all of it", ONE("float64", "t*=2 y=70000"), ONE("float64", "t*=3 y=70000"), .recheck = true,
     .checks = "v 0+2"},
    {"beside a coordinate",
     {"/dev/null", .var = {{"v", "float64", "t*=2 y=70000"}, {"t", "int32", "t*=2"}}},
     {"/dev/null", .var = {{"v", "float64", "t*=3 y=70000"}, {"t", "int32", "t*=3"}}},
     .checks = "v 1+1; t 0+2"},
    {"a large coordinate",
     {"/dev/null", .var = {{"t", "float64", "t*=131073"}}},
     {"/dev/null", .var = {{"t", "float64", "t*=131073"}}},
     .checks = "t 0+131073"},
    {"the largest that is compared whole", ONE("float64", "t*=2 y=65536"),
     ONE("float64", "t*=3 y=65536"), .checks = "v 0+2"},
    {"none has grown", ONE("int16", "t*=4"), ONE("int16", "t*=4"), .checks = "v 0+4"},
    {"nothing was there", ONE("int16", "t*=0"), ONE("int16", "t*=2"), .checks = ""},
    {"from the second dimension", ONE("int16", "y=2 t*=2"), ONE("int16", "y=2 t*=3"),
     .checks = "v 0+2"},
    {"another type", ONE("int16", "t*=2"), ONE("int32", "t*=3"),
     .error = "variable v: its elements are int32, and int16 in the store"},
    {"another rank", ONE("int16", "t*=2"), ONE("int16", "t*=3 y=1"),
     .error = "variable v: its dimensions are not those of the store"},
    {"another dimension", ONE("int16", "t*=2 y=2"), ONE("int16", "t*=3 x=2"),
     .error = "variable v: its dimensions are not those of the store"},
    {"dimensions the other way round", ONE("int16", "t*=2 y=2"), ONE("int16", "y=2 t*=2"),
     .error = "variable v: its dimensions are not those of the store"},
    {"a dimension that does not grow", ONE("int16", "t*=2 y=2"), ONE("int16", "t*=3 y=3"),
     .error =
         "variable v: dimension 1 has 3 elements, and 2 in the store, which grows along t only"},
    {"a source that became shorter", ONE("int16", "t*=3"), ONE("int16", "t*=2"),
     .error = "variable v: the source has 2 elements along t, and the store 3 already: a source "
              "that became shorter adds nothing"},
    {"other units", ONE("int16", "t*=2", .attrs = "{'units': 'K'}"),
     ONE("int16", "t*=3", .attrs = "{'units': 'degC'}"), .error = OTHER("units")},
    {"units that are new", ONE("int16", "t*=2", .attrs = "{'long_name': 'x'}"),
     ONE("int16", "t*=3", .attrs = "{'units': 'K'}"), .error = OTHER("units")},
    {"units that say nothing", ONE("int16", "t*=2"),
     ONE("int16", "t*=3", .attrs = "{'units': null}"), .error = OTHER("units")},
    {"that are gone", ONE("int16", "t*=2", .attrs = "{'scale_factor': 2.0}"), ONE("int16", "t*=3"),
     .error = OTHER("scale_factor")},
    {"another calendar", ONE("int16", "t*=2", .attrs = "{'calendar': 'noleap'}"),
     ONE("int16", "t*=3", .attrs = "{'calendar': 'standard'}"), .error = OTHER("calendar")},
    {"another way up", ONE("int16", "t*=2", .attrs = "{'positive': 'up'}"),
     ONE("int16", "t*=3", .attrs = "{'positive': 'down'}"), .error = OTHER("positive")},
    {"other flags", ONE("int16", "t*=2", .attrs = "{'flag_values': [1, 2]}"),
     ONE("int16", "t*=3", .attrs = "{'flag_values': [2, 1]}"), .error = OTHER("flag_values")},
    {"another history", ONE("int16", "t*=2", .attrs = "{'history': 'a'}"),
     ONE("int16", "t*=3", .attrs = "{'history': 'b'}"), .checks = "v 0+2"},
    {"another fill value", ONE("int16", "t*=2", .fill = "-1"), ONE("int16", "t*=3", .fill = "-2"),
     .error = "variable v: its fill value, which readers take for missing, is not that of the "
              "store; make the store anew"},
    {"one that is new", ONE("int16", "t*=2"), ONE("int16", "t*=3", .fill = "-2"),
     .error = "variable v: its fill value, which readers take for missing, is not that of the "
              "store; make the store anew"},
    {"one that elements have which were never written", ONE("int16", "t*=2"),
     ONE("int16", "t*=3", .fill = "0"),
     .error = "variable v: its fill value, which readers take for missing, is not that of the "
              "store; make the store anew"},
    {"a variable that the store has not",
     ONE("int16", "t*=2"),
     {"/dev/null", .var = {{"v", "int16", "t*=3"}, {"x", "int16", "t*=3"}}},
     .error = "variable x: is not in the store to add to; `exclude` leaves it out"},
};

static void joins(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        joining j = {.append.recheck = ROWS[i].recheck};
        join_begin(&j, &ROWS[i].old, &ROWS[i].new, STEP_DESCRIBE);
        join_run(&j);
        tell_compare(ROWS[i].name, j.status == CM_OK ? "" : j.error.text,
                     ROWS[i].error != NULL ? ROWS[i].error : "", &bad);
        if (ROWS[i].error == NULL)
            tell_compare(ROWS[i].name, say_checks(&j), ROWS[i].checks, &bad);
        const cm_transform_report *r = &j.new.report;
        tell_compare(ROWS[i].name, r->nwarnings > 0 ? r->warning[0] : "",
                     ROWS[i].warning != NULL ? ROWS[i].warning : "", &bad);
        join_end(&j);
    }
    assert_int_equal(bad, 0);
}

/* ---- the joined dataset ---- */

static const made_file OLD = {
    "/dev/null", .attrs = "{'title': 'old'}",
    .var = {{"t", "int32", "t*=2", .values = "10 20"},
            {"v", "int16", "y=2 t*=2", .values = "1 2 3 4", .attrs = "{'note': 'old'}"},
            {"s", "int16", "y=2", .values = "7 8"}}};
static const made_file NEW = {"/dev/null", .attrs = "{'title': 'new'}",
                              .var = {{"t", "int32", "t*=3", .values = "11 21 31"},
                                      {"v", "int16", "y=2 t*=3", .values = "-1 -2 -3 -4 -5 -6",
                                       .chunk = "1 2", .attrs = "{'note': 'new'}"},
                                      {"s", "int16", "y=2", .values = "9 9"}}};

static void say_values(joining *j, cm_variable *v, cm_dataset *ds)
{
    cm_box box = {.rank = v->rank};
    uint8_t values[256];
    char text[64];
    memcpy(box.shape, v->shape, sizeof box.shape);
    OK(cm_dataset_prepare(ds, v, err));
    OK(cm_array_read(v->array, NULL, &box, values, err));
    for (uint64_t k = 0; k < cm_box_nelem(&box); k++)
        tell(&j->new.text, " %s",
             made_text(&v->dtype, values + k * v->dtype.nbytes, text, sizeof text));
}

/* The store gives the elements that it has, its words, and whatever does not grow. */
static void elements(void **state)
{
    joining j = {0};
    (void)state;
    join_begin(&j, &OLD, &NEW, STEP_RUN);
    join_run(&j);
    if (j.status != CM_OK)
        fail_msg("%s", j.error.text);
    cm_job *job = &j.new.job;
    tell_begin(&j.new.text);
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        assert_ptr_equal(v->source, &job->source->var[i]);
        tell(&j.new.text, "%s%s", i > 0 ? "; " : "", v->name);
        say_values(&j, v->source, job->source);
    }
    assert_string_equal((const char *)j.new.text.data, "t 10 20 31; v 1 2 -3 3 4 -6; s 7 8");
    const cm_json *note = cm_json_member(job->var[1].source->attrs, "note");
    assert_string_equal(cm_json_text(note, NULL), "old");
    const cm_json *title = cm_json_member(job->source->group[0].attrs, "title");
    assert_string_equal(cm_json_text(title, NULL), "old");
    assert_int_equal(job->zarr_format, 3);
    assert_int_equal(job->report->zarr_format_after, 3);

    /* A window of new elements alone is read from the source itself. */
    cm_append_source_of(job, &job->var[1]);
    assert_ptr_equal(job->var[1].source, &j.own->var[1]);
    assert_ptr_equal(job->var[1].dataset, j.own);

    /* and is told of as that has it */
    cm_transform_variable layout = {.codec_before = strdup("another"), .shard_before = {9, 9}};
    j.own->var[1].source_shard[0] = 6; /* which is none */
    OK(cm_append_source_layout(job, &job->source->var[1], &layout, err));
    assert_true(layout.chunk_before[0] == 1 && layout.chunk_before[1] == 2);
    assert_true(layout.shard_before[0] == 0 && layout.shard_before[1] == 0);
    assert_null(layout.codec_before);
    OK(cm_append_source_layout(job, &job->source->var[2], &layout, err));
    assert_int_equal(layout.chunk_before[0], 0);
    join_end(&j);
}

/* A job that grows by files has no such source. */
static void another_job(void **state)
{
    planned p;
    cm_transform_variable layout = {.chunk_before = {5}};
    (void)state;
    planned_make(&p, &NEW, NULL, STEP_SELECT);
    cm_variable *was = p.job.var[0].source;
    cm_append_source_of(&p.job, &p.job.var[0]);
    assert_ptr_equal(p.job.var[0].source, was);
    assert_null(p.job.var[0].dataset);
    OK(cm_append_source_layout(&p.job, was, &layout, err));
    assert_int_equal(layout.chunk_before[0], 5);
    cm_append_source_free(NULL);
    planned_release(&p);
}

/* ---- what is not understood ---- */

static void not_understood(void **state)
{
    static const struct {
        const char *variable, *warning, *error;
        size_t nvars;
    } CASES[] = {
        {"s", "array s is not compared with that of the store: not understood", NULL, 2},
        {"v", "", NULL, 3}, /* one that grows is refused when it is prepared */
    };
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++) {
        joining j = {0};
        join_begin(&j, &OLD, &NEW, STEP_DESCRIBE);
        cm_dataset_find(j.own, CASES[i].variable)->unsupported = "is of a kind of its own";
        join_run(&j);
        tell_compare(CASES[i].variable, j.error.text, "", &bad);
        tell_compare(CASES[i].variable, j.new.report.nwarnings > 0 ? j.new.report.warning[0] : "",
                     CASES[i].warning, &bad);
        assert_int_equal(j.new.job.nvars, CASES[i].nvars);
        join_end(&j);
    }
    assert_int_equal(bad, 0);
}

static void no_store(void **state)
{
    joining j = {0};
    (void)state;
    join_begin(&j, &OLD, &NEW, STEP_DESCRIBE);
    strcat(j.store, "/none");
    join_run(&j);
    assert_int_equal(j.status, CM_ENOTFOUND);
    join_end(&j);

    j = (joining){0};
    join_begin(&j, &OLD, &NEW, STEP_DESCRIBE);
    j.new.job.var[0].name[0] = '\0'; /* as an array that is opened by itself is called */
    join_run(&j);
    assert_int_equal(j.status, CM_EINVAL);
    assert_string_equal(j.error.text,
                        "the source is an array by itself, and the store is a group of arrays");
    join_end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins), cmocka_unit_test(elements), cmocka_unit_test(another_job),
        cmocka_unit_test(not_understood), cmocka_unit_test(no_store)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
