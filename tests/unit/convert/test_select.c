/* Which variables are converted, with what they need, and under which names. */

#include "job_fixture.h"

static const made_file FILE_OF_ALL = {
    "f",
    .var = {{"t", "int32", "t*=2", .attrs = "{'bounds': 'tb'}"},
            {"tb", "int32", "t*=2 n=2"},
            {"y", "float32", "y=3"},
            {"v", "float32", "t*=2 y=3", .attrs = "{'coordinates': 'h', 'grid_mapping': 'crs: y'}"},
            {"w", "float32", "y=3"},
            {"h", "float32", ""},
            {"crs", "int32", ""}}};
static const made_file GROUPS = {
    "f", .var = {{"t", "int32", "t*=2"},
                 {"h", "float32", ""},
                 {"a/h", "float32", ""},
                 {"a/v", "float32", "t*=2", .attrs = "{'coordinates': 'h'}"},
                 {"a/b/v", "float32", "t*=2", .attrs = "{'coordinates': '/h'}"}}};

static const planned_row ROWS[] = {
    {"all", .names = "t tb y v w h crs"},
    {"one, and what it needs: coordinates, their bounds, and what attributes name",
     {.variable = TEXTS("v")},
     .names = "t tb y v h crs"},
    {"rechunk takes what is named, and nothing else",
     {.defaults = CM_DEFAULTS_KEEP, .variable = TEXTS("v")},
     .names = "v"},
    {"two", {.variable = TEXTS("w,crs")}, .names = "y w crs"},
    {"a pattern", {.variable = TEXTS("t*")}, .names = "t tb"},
    {"all but some", {.exclude = TEXTS("t*,crs")}, .names = "y v w h"},
    {"left out though it is needed",
     {.variable = TEXTS("v"), .exclude = TEXTS("h")},
     .names = "t tb y v crs"},
    {"none that there is",
     {.variable = TEXTS("x")},
     .error = "`variable` x: the file has no such variable"},
    {"an empty name",
     {.variable = TEXTS("v,")},
     .error = "`variable`: an empty name stands in the list"},
    {"none is left", {.exclude = TEXTS("*")}, .error = "`exclude` leaves no variable of the file"},
    {"another name", {.variable = TEXTS("w"), .rename = TEXTS("w=z")}, .names = "y z(w)"},
    {"a name that is taken", {.rename = TEXTS("w=v")}, .error = "two variables would be named v"},
    {"two that change names",
     {.variable = TEXTS("v,w"), .rename = TEXTS("v=w", "w=v")},
     .names = "t tb y w(v) v(w) h crs"},
    {"a name for nothing",
     {.rename = TEXTS("x=v")},
     .error = "`rename` x=v: no chosen variable is named x"},
    {"of groups", {.variable = TEXTS("a/v")}, .file = &GROUPS, .names = "t a/h a/v"},
    {"of a group below", {.variable = TEXTS("a/b/v")}, .file = &GROUPS, .names = "t h a/b/v"},
    {"of all groups below",
     {.variable = TEXTS("a/**")},
     .file = &GROUPS,
     .names = "t h a/h a/v a/b/v"},
    {"a name that is a group's",
     {.rename = TEXTS("t=a")},
     .file = &GROUPS,
     .error = "a/h would lie below a, which is an array"},
};

static void names(void **state)
{
    (void)state;
    planned_try(ROWS, COUNT(ROWS), &FILE_OF_ALL, STEP_SELECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
