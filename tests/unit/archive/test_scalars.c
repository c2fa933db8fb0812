/* Scalar variables whose values become the steps of a dimension. */

#include "archive/tables/scalars.h"
#include "archive_fixture.h"

#define FILE_OF(path, day)                                                                         \
    {                                                                                              \
        path, .var = {                                                                             \
            {"s", "int32", "", .values = day, .attrs = "{'units': 'm'}"},                          \
            {"v", "int16", "y=2"}                                                                  \
        }                                                                                          \
    }
#define NOTED(path, day)                                                                           \
    {                                                                                              \
        path, .attrs = "{'s': " day "}", .var = {                                                  \
            {"s", "int32", "", .values = "9"},                                                     \
            {"v", "int16", "y=2"}                                                                  \
        }                                                                                          \
    }

static const joined_row ROWS[] = {
    {"values of a scalar are the steps",
     {FILE_OF("a", "4"), FILE_OF("b", "7")},
     {.new_dim = TEXTS("day=@s")},
     .axes = "day: 4 7 | a 0+1>0 b 0+1>1",
     .findings = "",
     .variable = {"day: int32 day*=2 = 4 7 {'units':'m'} |",
                  "v: int16 day*=2 y=2 | a 0+1>0 lacks 0 b 0+1>1 lacks 0"}},
    {"of its own name",
     {FILE_OF("a", "7"), FILE_OF("b", "4")},
     {.new_dim = TEXTS("s=@s")},
     .axes = "s: 4 7 | a 0+1>1 b 0+1>0",
     .findings = ""},
    {"an attribute of that name is what is meant",
     {NOTED("a", "5"), NOTED("b", "6")},
     {.new_dim = TEXTS("day=@s")},
     .axes = "day: 5 6 | a 0+1>0 b 0+1>1",
     .findings = "note attribute b: attributes that are not the same in all files are left out: s"},
    {"neither a variable nor an attribute",
     {FILE_OF("a", "4"), FILE_OF("b", "7")},
     {.new_dim = TEXTS("day=@none")},
     .findings = NULL,
     .error = "a: has no global attribute none"},
    {"the same value twice",
     {FILE_OF("a", "4"), FILE_OF("b", "4")},
     {.new_dim = TEXTS("day=@s")},
     .findings = "note overlap day b: 1 step is in more than one file (a has them too); identical "
                 "data are taken once, anything else stops the run"},
};

static void joins(void **state)
{
    (void)state;
    joined_try(ROWS, COUNT(ROWS));
}

/* ---- the names ---- */

static void options(void **state)
{
    static const struct {
        const char *option, *variable; /* NULL: another pattern */
    } OPTIONS[] = {
        {"t=@s", "s"}, {"t=@a/b", "a/b"}, {"t=@", ""},  {"t=*.nc", NULL},    {"t", NULL},
        {"t=", NULL},  {"t=a@s", NULL},   {"@s", NULL}, {"t=@s=@u", "s=@u"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(OPTIONS); i++) {
        const char *variable = cm_join_scalar_in(OPTIONS[i].option);
        if ((variable == NULL) != (OPTIONS[i].variable == NULL) ||
            (variable != NULL && strcmp(variable, OPTIONS[i].variable) != 0))
            fail_msg("%s", OPTIONS[i].option);
    }
}

/* Two options, of which the first takes a scalar and the second an attribute. */
static void names(void **state)
{
    static const struct {
        const char *name, *is;
        bool step;
    } NAMES[] = {
        {"s", "day", false}, {"v", "v", false},       {"u", "u", false},     {"day", "day", true},
        {"da", "da", false}, {"days", "days", false}, {"run", "run", false}, {"", "", false},
    };
    const cm_archive_options asked = {.new_dim = TEXTS("day=@s", "run=@u")};
    const cm_join_input in = {.options = &asked};
    bool scalar[] = {true, false};
    const cm_join_tables tables = {.scalar = scalar};
    char buf[64];
    (void)state;
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        const char *is = cm_join_scalar_name(&in, &tables, NAMES[i].name, buf, sizeof buf);
        if (strcmp(is, NAMES[i].is) != 0 ||
            cm_join_is_step(&in, &tables, NAMES[i].name) != NAMES[i].step)
            fail_msg("%s: %s", NAMES[i].name, is);
    }
    /* without room for the name it stays what it was */
    assert_string_equal(cm_join_scalar_name(&in, &tables, "s", buf, 4), "day");
    assert_string_equal(cm_join_scalar_name(&in, &tables, "s", buf, 3), "s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(joins), cmocka_unit_test(options),
                                       cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
