/* Files that must agree: which difference is told, and which only counts. */

#include "convert/source/clashes.h"
#include "job_fixture.h"

#define FILE_OF(name, text)                                                                        \
    {                                                                                              \
        name, .var = { {"v", "float64", "t*=4", .values = text}, {"w", "float64", "t*=4"} }        \
    }
#define PAIR(a, b)                                                                                 \
    {                                                                                              \
        FILE_OF("a.nc", a), FILE_OF("b.nc", b)                                                     \
    }

/* Elements FIRST to + COUNT of both files must be the same. */
typedef struct made_check {
    unsigned first, count;
    bool may_differ;
    double tolerance;
    const char *what, *decide;
} made_check;

static const struct {
    const char *name;
    made_file file[2];
    made_check check[3]; /* the first without a name ends them */
    bool unwanted, copied;
    const char *error, *warning, *clash;
} ROWS[] = {
    {"the same", PAIR("1 2 3 4", "1 2 3 4"), {{0, 4, .what = "overlapping steps"}}, .error = NULL},
    {"one element",
     PAIR("1 2 3 4", "1 2 3.5 4"),
     {{0, 4, .what = "overlapping steps"}},
     .error = "b.nc: variable v: overlapping steps differ: element 2 is 3.5, and 3 in a.nc; 1 "
              "element differs by up to 0.5",
     .clash = "overlapping steps"},
    {"several, and how far",
     PAIR("1 2 3 4", "1 5 3.5 4"),
     {{0, 4, .what = "static fields", .decide = "`static` first decides"}},
     .error = "b.nc: variable v: static fields differ: element 1 is 5, and 2 in a.nc; 2 elements "
              "differ by up to 3.0; `static` first decides",
     .clash = "static fields"},
    {"outside of what is checked",
     PAIR("1 2 3 4", "1 2 3 9"),
     {{0, 3, .what = "steps"}},
     .error = NULL},
    {"within a tolerance",
     PAIR("1 2 3 4", "1 2 3.5 4"),
     {{0, 4, .tolerance = 0.5, .what = "steps"}},
     .error = NULL},
    {"no numbers",
     PAIR("1 NaN 3 4", "1 2 3 4"),
     {{0, 4, .what = "steps"}},
     .error = "b.nc: variable v: steps differ: element 1 is 2, and nan in a.nc; 1 element differs",
     .clash = "steps"},
    {"of two clashes the first check's",
     PAIR("1 2 3 4", "9 2 3 8"),
     {{0, 2, .what = "first"}, {2, 2, .what = "second"}},
     .error = "b.nc: variable v: first differ: element 0 is 9, and 1 in a.nc; 1 element differs by "
              "up to 8.0",
     .clash = "first"},
    {"in a variable that is not converted",
     PAIR("1 2 3 4", "1 2 3 9"),
     {{0, 4, .what = "steps"}},
     .unwanted = true},
    {"in one whose objects are copied",
     PAIR("1 2 3 4", "1 2 3 9"),
     {{0, 4, .what = "steps"}},
     .copied = true},
    {"decided: counted",
     PAIR("1 2 3 4", "1 2 3.5 4"),
     {{0, 4, .may_differ = true, .what = "overlapping steps"}},
     .warning = "v: 1 element differs by up to 0.5 between files that have the same ones "
                "(overlapping steps), in 1 pair of files; the first is b.nc"},
    {"in several pairs",
     PAIR("1 2 3 4", "6 2 3.5 7"),
     {{0, 2, .may_differ = true, .what = "steps"}, {2, 2, .may_differ = true, .what = "steps"}},
     .warning = "v: 3 elements differ by up to 5.0 between files that have the same ones (steps), "
                "in 2 pairs of files; the first is b.nc"},
    {"beside a clash",
     PAIR("1 2 3 4", "3 2 3.5 4"),
     {{0, 2, .may_differ = true, .what = "steps"}, {2, 2, .what = "others"}},
     .error = "b.nc: variable v: others differ: element 2 is 3.5, and 3 in a.nc; 1 element differs "
              "by up to 0.5",
     .clash = "others"},
    {"decided, and the same",
     PAIR("1 2 3 4", "1 2 3 4"),
     {{0, 4, .may_differ = true, .what = "steps"}},
     .error = NULL},
};

typedef struct clashing {
    cm_dataset *ds[2], *joined;
    cm_multi_file file[2];
    cm_multi_group root;
    cm_multi_part part[2];
    cm_multi_var var[2];
    cm_multi_check check[3];
    cm_form form;
    cm_located located;
    cm_multi_spec spec;
    cm_json *empty;
    cm_transform_options options;
    cm_transform_report report;
    cm_job_var v[2];
    cm_job job;
} clashing;

static void clash_begin(clashing *c, const made_file *file, const made_check *check)
{
    static const cm_dataset_options NONE;
    const cm_dtype type = cm_dtype_make(CM_KIND_FLOAT, 8);
    *c = (clashing){.empty = cm_json_object(), .options.nthreads = 2};
    c->form = (cm_form){.kind = CM_LOCATED_NOT, .dtype = type, .rank = 1, .chunk = {2}};
    c->located = (cm_located){.form = &c->form};
    c->root = (cm_multi_group){"", c->empty};
    for (uint32_t k = 0; k < 2; k++) {
        c->ds[k] = made_open(&file[k]);
        for (size_t i = 0; i < 2; i++)
            OK(cm_dataset_prepare(c->ds[k], &c->ds[k]->var[i], err));
        c->file[k] = (cm_multi_file){.path = file[k].path, .open = c->ds[k]};
    }
    c->part[0] = (cm_multi_part){.name = "v", .count = {4}, .length = {4}, .located = &c->located};
    c->part[1] = (cm_multi_part){.name = "w", .count = {4}, .length = {4}, .located = &c->located};
    for (size_t i = 0; i < 2; i++)
        c->var[i] = (cm_multi_var){.name = i == 0 ? "v" : "w",
                                   .dtype = type,
                                   .rank = 1,
                                   .shape = {4},
                                   .dim_name = {"t"},
                                   .attrs = c->empty,
                                   .naxes = 1,
                                   .part = &c->part[i],
                                   .nparts = 1};
    size_t n = 0;
    for (; n < 3 && check[n].what != NULL; n++) {
        c->check[n] = (cm_multi_check){.may_differ = check[n].may_differ,
                                       .tolerance = check[n].tolerance,
                                       .what = check[n].what,
                                       .decide = check[n].decide};
        for (uint32_t k = 0; k < 2; k++)
            c->check[n].part[k] = (cm_multi_part){.file = k,
                                                  .name = "v",
                                                  .origin = {check[n].first},
                                                  .first = {check[n].first},
                                                  .count = {check[n].count},
                                                  .length = {4},
                                                  .located = &c->located};
    }
    c->spec = (cm_multi_spec){.name = "both",
                              .file = c->file,
                              .nfiles = 2,
                              .group = &c->root,
                              .ngroups = 1,
                              .var = c->var,
                              .nvars = 2,
                              .check = c->check,
                              .nchecks = n};
    OK(cm_multi_dataset_open(&c->spec, &NONE, &c->joined, err));
    for (size_t i = 0; i < 2; i++) {
        OK(cm_dataset_prepare(c->joined, &c->joined->var[i], err));
        c->v[i] = (cm_job_var){.source = &c->joined->var[i]};
    }
    c->job = (cm_job){
        .options = &c->options, .report = &c->report, .source = c->joined, .var = c->v, .nvars = 2};
}

static void clash_end(clashing *c)
{
    cm_transform_report_release(&c->report);
    cm_dataset_close(c->joined);
    cm_dataset_close(c->ds[0]);
    cm_dataset_close(c->ds[1]);
    cm_json_free(c->empty);
}

static void clashes(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        clashing c;
        cm_error why = {0};
        clash_begin(&c, ROWS[i].file, ROWS[i].check);
        c.v[0].stored.as_objects = ROWS[i].copied;
        if (ROWS[i].unwanted) /* W alone is */
            c.job.var = &c.v[1], c.job.nvars = 1;
        const int rc = cm_job_compare_inputs(&c.job, &why);
        assert_int_equal(rc, ROWS[i].error != NULL ? CM_EFORMAT : CM_OK);
        tell_compare(ROWS[i].name, rc == CM_OK ? "" : why.text,
                     ROWS[i].error != NULL ? ROWS[i].error : "", &bad);
        tell_compare(ROWS[i].name, c.report.nwarnings > 0 ? c.report.warning[0] : "",
                     ROWS[i].warning != NULL ? ROWS[i].warning : "", &bad);
        tell_compare(ROWS[i].name, c.report.clash != NULL ? c.report.clash : "",
                     ROWS[i].clash != NULL ? ROWS[i].clash : "", &bad);
        assert_int_equal(c.job.evidence.inputs_differ, ROWS[i].warning != NULL);
        /* It is done once. */
        assert_int_equal(cm_job_compare_inputs(&c.job, NULL), CM_OK);
        clash_end(&c);
    }
    assert_int_equal(bad, 0);
}

/* A variable that a stack takes is converted, too. */
static void taken(void **state)
{
    clashing c;
    (void)state;
    clash_begin(&c, ROWS[1].file, ROWS[1].check);
    c.job.nvars = 0;
    c.joined->var[0].is_taken = true;
    assert_int_equal(cm_job_compare_inputs(&c.job, NULL), CM_EFORMAT);
    clash_end(&c);
}

static void a_stop(void **state)
{
    clashing c;
    cm_error why = {0};
    cm_monitor *monitor = cm_monitor_create(NULL);
    (void)state;
    clash_begin(&c, ROWS[0].file, ROWS[0].check);
    cm_monitor_cancel(monitor);
    c.options.monitor = monitor;
    assert_int_equal(cm_job_compare_inputs(&c.job, &why), CM_ECANCELED);
    assert_string_equal(why.text, "stopped by request");
    cm_monitor_free(monitor);
    clash_end(&c);
}

/* One file has nothing to agree with. */
static void alone(void **state)
{
    planned p;
    (void)state;
    planned_make(&p, &ROWS[0].file[0], NULL, STEP_VIEW);
    OK(cm_job_compare_inputs(&p.job, err));
    OK(cm_job_inputs_unchanged(&p.job, err));
    planned_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(clashes), cmocka_unit_test(taken),
                                       cmocka_unit_test(a_stop), cmocka_unit_test(alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
