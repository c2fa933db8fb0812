/* Fields without the joined dimension: all files must mean the same by them. */

#include "archive_fixture.h"

/* A coordinate, and its bounds. */
#define BOUNDED(bounds)                                                                            \
    {"y", "float64", "y=2", .attrs = "{'bounds': 'yb'}", .values = "0 10"},                        \
    {                                                                                              \
        "yb", "float64", "y=2 n=2", .values = bounds                                               \
    }

static const joined_row ROWS[] = {
    {"the same in all files",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .values = "1 2"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .values = "1 2"}}}},
     .findings = "",
     .variable = {"s: float32 y=2 | a"}},
    {"another number",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .values = "1 2"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .values = "1 2.5"}}}},
     .findings = "decision static s b: its values are not those of a: element 1 is 2.5, and 2.0 "
                 "there; they differ by up to 0.5"},
    {"and yet another: the most that files differ by",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .values = "1 2"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .values = "1 2.5"}}},
      {"c", .var = {STEP(2), {"s", "float32", "y=2", .values = "1 4"}}}},
     .findings = "decision static s b to c: its values are not those of a: element 1 is 2.5, and "
                 "2.0 there; they differ by up to 2.0"},
    {"the first file's",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .values = "1 2"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .values = "1 2.5"}}}},
     {.statics = TEXTS("first")},
     .findings = "warning static s b: its values are not those of a: element 1 is 2.5, and 2.0 "
                 "there; they differ by up to 0.5; the first file's are taken",
     .variable = {"s: float32 y=2 | a"}},
    {"the first file's, of another variable",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .values = "1 2"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .values = "1 2.5"}}}},
     {.statics = TEXTS("v:first")},
     .error = "`statics` v:first: no chosen variable is named v"},
    {"the first file's, and one that is to be alike",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .values = "1 2"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .values = "1 2.5"}}}},
     {.statics = TEXTS("first", "s:error")},
     .findings = "decision static s b: its values are not those of a: element 1 is 2.5, and 2.0 "
                 "there; they differ by up to 0.5"},
    {"no decision that there is",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .values = "1 2"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .values = "1 2"}}}},
     {.statics = TEXTS("last")},
     .error = "`statics` last: must be first or error, or VAR:first"},
    {"missing elements mean the same under other numbers",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .fill = "-9", .values = "1 -9"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .fill = "-8", .values = "1 -8"}}}},
     .variable = {"s: float32 y=2 fill -9 | a"}},
    {"what is missing in one is data in the other",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .fill = "-9", .values = "1 -9"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .fill = "-9", .values = "1 3"}}}},
     .findings =
         "decision static s b: its values are not those of a: element 1 is 3.0, and missing there"},
    {"NaN is NaN",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .values = "1 NaN"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .values = "1 NaN"}}}},
     .findings = ""},
    {"packed otherwise, and the same",
     {{"a", .var = {STEP(0),
                    {"s", "int16", "y=2", .attrs = "{'scale_factor': 0.5}", .values = "10 20"}}},
      {"b", .var = {STEP(1),
                    {"s", "int16", "y=2", .attrs = "{'scale_factor': 1.0}", .values = "5 10"}}}},
     {.unpack = true},
     .findings = "warning packing s b: scale_factor is 1.0, and 0.5 in a",
     .variable = {"s: float64 y=2 fill nan | a from int16 x0.5+0"}},
    {"dates counted otherwise, and the same",
     {{"a",
       .var = {STEP(0),
               {"s", "int32", "", .attrs = "{'units': 'days since 2000-01-01'}", .values = "31"}}},
      {"b",
       .var = {STEP(1),
               {"s", "int32", "", .attrs = "{'units': 'days since 2000-02-01'}", .values = "0"}}}},
     .findings = "note time-units s b: units is \"days since 2000-02-01\", and \"days since "
                 "2000-01-01\" in a",
     .variable = {"s: int32 = 31 {'units':'days since 2000-01-01'} |"}},
    {"dates that differ: in seconds",
     {{"a",
       .var = {STEP(0),
               {"s", "int32", "", .attrs = "{'units': 'days since 2000-01-01'}", .values = "31"}}},
      {"b",
       .var = {STEP(1),
               {"s", "int32", "", .attrs = "{'units': 'days since 2000-01-01'}", .values = "32"}}}},
     .findings =
         "decision static s b: its values are not those of a: element 0 is 2000-02-02T00:00:00, "
         "and 2000-02-01T00:00:00 there; they differ by up to 86400.0 s"},
    {"of other types, and the same",
     {{"a", .var = {STEP(0), {"s", "int16", "y=2", .values = "1 2"}}},
      {"b", .var = {STEP(1), {"s", "float64", "y=2", .values = "1 2"}}}},
     .findings = "note type s b: its type is float64, and int16 in a; float64 holds both",
     .variable = {"s: float64 y=2 | a from int16"}},
    {"bounds within the tolerance",
     {{"a", .var = {STEP(0), BOUNDED("0 5 5 10")}}, {"b", .var = {STEP(1), BOUNDED("0 5 5 10.5")}}},
     {.tolerance = 0.5},
     .findings = "warning static yb b: its values are not those of a: element 1/1 is 10.5, and "
                 "10.0 there; they differ by up to 0.5; the first file's are taken",
     .variable = {"yb: float64 y=2 n=2 | a"}},
    {"bounds without it",
     {{"a", .var = {STEP(0), BOUNDED("0 5 5 10")}}, {"b", .var = {STEP(1), BOUNDED("0 5 5 10.5")}}},
     .findings = "decision static yb b: its values are not those of a: element 1/1 is 10.5, and "
                 "10.0 there; they differ by up to 0.5"},
    {"a field of data has no tolerance",
     {{"a", .var = {STEP(0), {"s", "float32", "y=2", .values = "1 2"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=2", .values = "1 2.25"}}}},
     {.tolerance = 0.5},
     .findings = "decision static s b: its values are not those of a: element 1 is 2.25, and 2.0 "
                 "there; they differ by up to 0.25"},
    {"a field that is too large for the survey is compared while data move",
     {{"a", .var = {STEP(0), {"s", "float32", "y=5000"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=5000"}}}},
     .findings = "",
     .checks = "s a b"},
    {"and not if the first file's is taken",
     {{"a", .var = {STEP(0), {"s", "float32", "y=5000"}}},
      {"b", .var = {STEP(1), {"s", "float32", "y=5000"}}}},
     {.statics = TEXTS("first")},
     .checks = "s a b may differ"},
    {"a scalar that differs is a coordinate",
     {{"a", .var = {STEP(0), {"s", "float32", "", .values = "1"}}},
      {"b", .var = {STEP(1), {"s", "float32", "", .values = "2"}}}},
     .findings = "decision static s b: its values are not those of a: element 0 is 2.0, and 1.0 "
                 "there; they differ by up to 1.0"},
    {"given the joined dimension",
     {{"a", .var = {STEP(0), {"s", "float32", "", .values = "1"}}},
      {"b", .var = {STEP(1), {"s", "float32", "", .values = "2"}}}},
     {.promote = TEXTS("s")},
     .findings = "",
     .variable = {"s: float32 t*=2 = 1 2 |"}},
};

static void fields(void **state)
{
    (void)state;
    joined_try(ROWS, COUNT(ROWS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
