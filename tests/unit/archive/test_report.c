/* Beyond findings: options that would decide, steps that variables have, words left out. */

#include "archive/axes/coverage.h"
#include "archive_fixture.h"

/* "new_dim s=@s": what would decide the first finding that needs a decision. */
static const char *say_proposal(joined *a)
{
    static const char *const BY[] = {"",      "along",     "new_dim", "promote",
                                     "dtype", "tolerance", "char"};
    tell_begin(&a->text);
    for (size_t i = 0; i < a->report.nfindings; i++) {
        const cm_finding *f = &a->report.finding[i];
        if (f->weight == CM_WEIGHT_DECISION && !f->decided) {
            tell(&a->text, "%s %s", BY[f->by], f->value != NULL ? f->value : "");
            break;
        }
    }
    return (const char *)a->text.data;
}

/* "v w: 2x1 1x0 2x1": of each set of variables, so many steps that so many files have. */
static const char *say_coverage(joined *a)
{
    tell_begin(&a->text);
    const cm_archive_axis *axis = &a->report.axis[0];
    for (size_t i = 0; i < axis->ncoverages; i++) {
        const cm_coverage *c = &axis->coverage[i];
        tell(&a->text, "%s", i > 0 ? "; " : "");
        for (size_t k = 0; k < c->nvariables; k++)
            tell(&a->text, "%s%s", k > 0 ? " " : "", c->variable[k]);
        tell(&a->text, ":");
        for (size_t k = 0; k < c->nspans; k++)
            tell(&a->text, " %ux%u", (unsigned)c->span[k].nsteps, c->span[k].nfiles);
    }
    return (const char *)a->text.data;
}

/* Words of file 1 that the dataset does not say alike. */
static const char *say_left_out(joined *a)
{
    cm_json *json = NULL;
    OK(cm_join_left_out(a->join, 1, &json, err));
    tell_begin(&a->text);
    if (json != NULL)
        told_attrs(a, json);
    cm_json_free(json);
    return (const char *)a->text.data;
}

typedef struct row {
    const char *name;
    made_file file[JOINED_FILES];
    cm_archive_options options;
    const char *said;
} row;

static void try_all(const row *r, size_t n, const char *(*say)(joined *))
{
    unsigned bad = 0;
    for (; n-- > 0; r++) {
        joined a;
        joined_make(&a, r->file, &r->options);
        assert_int_equal(a.status, CM_OK);
        tell_compare(r->name, say(&a), r->said, &bad);
        joined_release(&a);
    }
    assert_int_equal(bad, 0);
}

static void proposals(void **state)
{
    static const row ROWS[] = {
        {"numbers in names",
         {{"run1.nc", .var = {{"v", "int16", "y=2"}}}, {"run2.nc", .var = {{"v", "int16", "y=2"}}}},
         {.nprocesses = 0},
         "new_dim file=run*.nc"},
        {"dates in names",
         {{"x_20000101.nc", .var = {{"v", "int16", "y=2"}}},
          {"x_20000102.nc", .var = {{"v", "int16", "y=2"}}}},
         {.nprocesses = 0},
         "new_dim time=%Y%m%d"},
        {"a scalar that differs",
         {{"a", .var = {{"v", "int16", "y=2"},
                        {"s", "int32", "", .values = "1",
                         .attrs = "{'units': 'days since 2000-01-01'}"}}},
          {"b", .var = {{"v", "int16", "y=2"},
                        {"s", "int32", "", .values = "2",
                         .attrs = "{'units': 'days since 2000-01-01'}"}}}},
         {.nprocesses = 0},
         "new_dim s=@s"},
        {"types that none holds both of",
         {{"a", .var = {STEP(0), {"v", "int64", "t*=1"}}},
          {"b", .var = {STEP(1), {"v", "float32", "t*=1"}}}},
         {.nprocesses = 0},
         "dtype v:float64"},
        {"integers that none holds both of",
         {{"a", .var = {STEP(0), {"v", "int64", "t*=1"}}},
          {"b", .var = {STEP(1), {"v", "uint64", "t*=1"}}}},
         {.nprocesses = 0},
         "dtype v:int64"},
        {"a static field that differs in each file",
         {{"a", .var = {STEP(0), {"s", "float32", "y=2", .values = "1 2"}}},
          {"b", .var = {STEP(1), {"s", "float32", "y=2", .values = "3 4"}}}},
         {.nprocesses = 0},
         "promote s"},
        {"a dimension that a file lacks",
         {{"a", .var = {STEP(0), {"v", "int16", "t*=1 z=2"}}},
          {"b", .var = {STEP(1), {"v", "int16", "t*=1"}}}},
         {.nprocesses = 0},
         "promote v"},
        {"units: nothing would do",
         {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .attrs = "{'units': 'K'}"}}},
          {"b", .var = {STEP(1), {"v", "int16", "t*=1", .attrs = "{'units': 'C'}"}}}},
         {.nprocesses = 0},
         " "},
    };
    (void)state;
    try_all(ROWS, COUNT(ROWS), say_proposal);
}

#define X(n, list)                                                                                 \
    {                                                                                              \
        "t", "int32", "t*=" n, .values = list                                                      \
    }
static void coverage(void **state)
{
    static const row ROWS[] = {
        {"all have all",
         {{"a", .var = {X("2", "0 1"), {"v", "int16", "t*=2"}}},
          {"b", .var = {X("2", "2 3"), {"v", "int16", "t*=2"}}}},
         {.nprocesses = 0},
         "v: 4x1"},
        {"steps that two have",
         {{"a", .var = {X("3", "0 1 2"), {"v", "int16", "t*=3"}}},
          {"b", .var = {X("2", "2 3"), {"v", "int16", "t*=2"}}}},
         {.nprocesses = 0},
         "v: 2x1 1x2 1x1"},
        {"steps that none has",
         {{"a", .var = {X("3", "0 1 2"), {"v", "int16", "t*=3"}}},
          {"b", .var = {X("2", "5 6"), {"v", "int16", "t*=2"}}}},
         {.nprocesses = 0},
         "v: 3x1 2x0 2x1"},
        {"a variable that one file lacks",
         {{"a", .var = {X("2", "0 1"), {"v", "int16", "t*=2"}, {"w", "int16", "t*=2"}}},
          {"b", .var = {X("2", "2 3"), {"v", "int16", "t*=2"}}}},
         {.fill_missing = true},
         "v: 4x1; w: 2x1 2x0"},
    };
    (void)state;
    try_all(ROWS, COUNT(ROWS), say_coverage);
}

static void left_out(void **state)
{
    static const row ROWS[] = {
        {"nothing",
         {{"a", .var = {STEP(0), {"v", "int16", "t*=1"}}},
          {"b", .var = {STEP(1), {"v", "int16", "t*=1"}}}},
         {.nprocesses = 0},
         ""},
        {"attributes of the file and of a variable",
         {{"a", .attrs = "{'history': 'x'}",
           .var = {STEP(0), {"v", "int16", "t*=1", .attrs = "{'note': 'x'}"}}},
          {"b", .attrs = "{'history': 'y'}",
           .var = {STEP(1), {"v", "int16", "t*=1", .attrs = "{'note': 'y'}"}}}},
         {.nprocesses = 0},
         " {'attributes':{'/':{'history':'y'},'v':{'note':'y'}}}"},
        {"a type and a fill value",
         {{"a", .var = {STEP(0), {"v", "int32", "t*=1", .fill = "-9"}}},
          {"b", .var = {STEP(1), {"v", "int16", "t*=1", .fill = "-8"}}}},
         {.nprocesses = 0},
         " {'types':{'v':'int16'},'fill_values':{'v':'-8'}}"},
        {"a length of texts",
         {{"a", .var = {STEP(0), {"name", "char", "t*=1 n=3", .values = "abc"}}},
          {"b", .var = {STEP(1), {"name", "char", "t*=1 n=2", .values = "xy"}}}},
         {.nprocesses = 0},
         " {'text_lengths':{'name':2}}"},
    };
    (void)state;
    try_all(ROWS, COUNT(ROWS), say_left_out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(proposals), cmocka_unit_test(coverage),
                                       cmocka_unit_test(left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
