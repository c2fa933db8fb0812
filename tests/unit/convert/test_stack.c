/* Several variables as one array, and dimensions that are taken out: which elements lie where. */

#include "job_fixture.h"

static const made_file LEVELS = {
    "f", .var = {{"t", "int32", "t*=2"},
                 {"z", "int32", "z=3", .values = "1000 500 100"},
                 {"a", "int16", "t*=2 x=2", .values = "1 2 3 4",
                  .attrs = "{'units': 'K', 'long_name': 'A'}"},
                 {"b", "float32", "t*=2 x=2", .values = "5 6 7 8",
                  .attrs = "{'units': 'K', 'long_name': 'B'}"},
                 {"c", "int16", "t*=2 z=3 x=2", .values = "0 1 2 3 4 5 6 7 8 9 10 11"},
                 {"d", "int16", "t*=2 y=2"}}};
static const made_file FILLED = {"f", .var = {{"a", "int16", "x=2", .values = "1 -9", .fill = "-9"},
                                              {"b", "int16", "x=2", .values = "-8 2", .fill = "-8"},
                                              {"p", "int16", "x=2", .values = "2 -1", .fill = "-1",
                                               .attrs = "{'scale_factor': 0.5}"}}};
static const made_file RUNS = {
    "f", .var = {{"e", "int32", "e=2", .values = "1 5"},
                 {"v", "int16", "t=3 e=2", .values = "10 20 -9 21 -9 -9", .fill = "-9"},
                 {"w", "int16", "t=3"}}};

/* "s: int16 2,3 = 1 2 3": NAME with its elements, its channels' names and attributes. */
static const char *say_elements(planned *p, const char *name)
{
    char type[32], text[64];
    tell_begin(&p->text);
    for (size_t i = 0; i < p->job.source->nvars; i++) {
        cm_variable *v = &p->job.source->var[i];
        cm_box box = {.rank = v->rank};
        if (strcmp(v->name, name) != 0)
            continue;
        memcpy(box.shape, v->shape, sizeof box.shape);
        tell(&p->text, "%s: %s", name, cm_dtype_name(&v->dtype, type, sizeof type));
        for (unsigned k = 0; k < v->rank; k++)
            tell(&p->text, " %s=%u", v->dim_name[k], (unsigned)v->shape[k]);
        if (v->has_fill_value)
            tell(&p->text, " fill %s", made_text(&v->dtype, v->fill_value, text, sizeof text));
        OK(cm_dataset_prepare(p->job.source, v, err));
        tell(&p->text, " =");
        if (v->dtype.kind == CM_KIND_STRING) {
            cm_strings s;
            cm_strings_init(&s, 1 << 20);
            OK(cm_array_read_strings(v->array, &box, &s, err));
            for (size_t k = 0; k < s.nelem; k++) {
                size_t n;
                const char *one = cm_strings_get(&s, k, &n);
                tell(&p->text, " %.*s", (int)n, one);
            }
            cm_strings_release(&s);
            continue;
        }
        uint8_t values[256];
        OK(cm_array_read(v->array, NULL, &box, values, err));
        for (uint64_t k = 0; k < cm_box_nelem(&box); k++)
            tell(&p->text, " %s",
                 made_text(&v->dtype, values + k * v->dtype.nbytes, text, sizeof text));
    }
    return (const char *)p->text.data;
}

static const struct {
    const char *name;
    const made_file *file;
    cm_transform_options options;
    const char *elements[2];
    const char *error;
} ROWS[] = {
    {"two variables of two types",
     &LEVELS,
     {.stack = TEXTS("s=a,b")},
     .elements = {"s: float32 t=2 channel=2 x=2 = 1 2 5 6 3 4 7 8",
                  "channel: string channel=2 = a b"}},
    {"in another order",
     &LEVELS,
     {.stack = TEXTS("s=b,a")},
     .elements = {"s: float32 t=2 channel=2 x=2 = 5 6 1 2 7 8 3 4"}},
    {"all levels of one",
     &LEVELS,
     {.stack = TEXTS("s=c@z")},
     .elements = {"s: int16 t=2 channel=3 x=2 = 0 1 2 3 4 5 6 7 8 9 10 11",
                  "channel: string channel=3 = c_1000 c_500 c_100"}},
    {"some levels, in the order that is asked for",
     &LEVELS,
     {.stack = TEXTS("s=c@z=100/1000,a")},
     .elements = {"s: int16 t=2 channel=3 x=2 = 4 5 0 1 1 2 10 11 6 7 3 4",
                  "channel: string channel=3 = c_100 c_1000 a"}},
    {"a level that is not there",
     &LEVELS,
     {.stack = TEXTS("s=c@z=300")},
     .error = "`stack` s=c@z=300: dimension z has no value 300.0"},
    {"other dimensions",
     &LEVELS,
     {.stack = TEXTS("s=a,d")},
     .error = "`stack` s=a,d: a 2x2 and d 2x2 do not have the same dimensions"},
    {"levels that are no channels",
     &LEVELS,
     {.stack = TEXTS("s=a,c")},
     .error = "`stack` s=a,c: a 2x2 and c 2x3x2 do not have the same dimensions; VAR@DIM makes "
              "channels of a dimension"},
    {"no variable",
     &LEVELS,
     {.stack = TEXTS("s=a,q")},
     .error = "`stack` s=a,q: the file has no variable q"},
    {"one twice",
     &LEVELS,
     {.stack = TEXTS("s=a,a")},
     .error = "`stack` s=a,a: two channels would be labelled a"},
    {"a name that is taken",
     &LEVELS,
     {.stack = TEXTS("a=a,b")},
     .error = "`stack` a=a,b: the name a is taken; choose another"},
    {"no text of an option",
     &LEVELS,
     {.stack = TEXTS("s")},
     .error =
         "`stack` s: not of the form NAME=A,B,C, where C may be VAR@DIM or VAR@DIM=VALUE/VALUE"},
    {"two fill values become the first",
     &FILLED,
     {.stack = TEXTS("s=a,b")},
     .elements = {"s: int16 channel=2 x=2 fill -9 = 1 -9 -9 2"}},
    {"packed variables are unpacked beside others",
     &FILLED,
     {.stack = TEXTS("s=a,p"), .unpack = TEXTS("s")},
     .elements = {"s: float64 channel=2 x=2 fill nan = 1 nan 1 nan"}},
    {"and refused, if not asked for",
     &FILLED,
     {.stack = TEXTS("s=a,p")},
     .error =
         "`stack` s=a,p: a and p are packed differently; `unpack` s makes plain values of them"},
    {"a dimension taken out: the first that is not missing",
     &RUNS,
     {.merge_along = TEXTS("e=1,5")},
     .elements = {"v: int16 t=3 fill -9 = 10 21 -9", "w: int16 t=3 = 0 1 2"}},
    {"or the other first",
     &RUNS,
     {.merge_along = TEXTS("e=5,1")},
     .elements = {"v: int16 t=3 fill -9 = 20 21 -9"}},
    {"of one value alone",
     &RUNS,
     {.merge_along = TEXTS("e=5")},
     .elements = {"v: int16 t=3 fill -9 = 20 21 -9"}},
    {"a value that is not there",
     &RUNS,
     {.merge_along = TEXTS("e=1,7")},
     .error = "`merge_along` e=1,7: e has no value 7.0"},
    {"a dimension that is not there",
     &RUNS,
     {.merge_along = TEXTS("q=1,5")},
     .error = "`merge_along` q=1,5: no variable has a dimension q"},
};

static void elements(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        planned_make(&p, ROWS[i].file, &ROWS[i].options, STEP_OPEN);
        tell_compare(ROWS[i].name, p.status == CM_OK ? "" : p.error.text,
                     ROWS[i].error != NULL ? ROWS[i].error : "", &bad);
        for (unsigned k = 0; k < 2 && ROWS[i].elements[k] != NULL; k++) {
            char name[64] = "";
            sscanf(ROWS[i].elements[k], "%63[^:]", name);
            tell_compare(ROWS[i].name, say_elements(&p, name), ROWS[i].elements[k], &bad);
        }
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(elements)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
