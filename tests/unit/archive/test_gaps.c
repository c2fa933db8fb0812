/* Steps that no file has: which they are, and what becomes of them. */

#include "archive_fixture.h"

static const joined_row KEPT[] = {
    {"no step is missing",
     {{"a", .var = {{"t", "int32", "t*=2", .values = "0 1"}, {"v", "float32", "t*=2"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "2 3"}, {"v", "float32", "t*=2"}}}},
     .findings = ""},
    {"steps between files",
     {{"a", .var = {{"t", "int32", "t*=3", .values = "0 1 2"}, {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "6 7"}, {"v", "float32", "t*=2"}}}},
     .axes = "t: 0 1 2 6 7 | a 0+3>0 b 0+2>3",
     .findings = "warning gap t a: 3 steps are missing: 3 to 5",
     .variable = {"v: float32 t*=5 | a 0+3>0 b 0+2>3"}},
    {"within a file",
     {{"a", .var = {{"t", "int32", "t*=3", .values = "0 1 3"}, {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "4 5"}, {"v", "float32", "t*=2"}}}},
     .findings = "warning gap t a: 1 step is missing: 2"},
    {"between the first and the second, the second and the last",
     {{"a", .var = {{"t", "int32", "t*=2", .values = "0 1"}, {"v", "float32", "t*=2"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "3 4"}, {"v", "float32", "t*=2"}}},
      {"c", .var = {{"t", "int32", "t*=2", .values = "7 8"}, {"v", "float32", "t*=2"}}}},
     .findings = "warning gap t a to c: 3 steps are missing: 2, 5 to 6"},
    {"of three elements and more: of two nobody knows the step",
     {{"a", .var = {{"t", "int32", "t*=1", .values = "0"}, {"v", "float32", "t*=1"}}},
      {"b", .var = {{"t", "int32", "t*=1", .values = "5"}, {"v", "float32", "t*=1"}}}},
     .findings = ""},
    {"irregular coordinates have no step",
     {{"a", .var = {{"t", "float64", "t*=3", .values = "0 1 5"}, {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "float64", "t*=2", .values = "17 18.5"}, {"v", "float32", "t*=2"}}}},
     .findings = ""},
    {"an hour of a day",
     {{"a", .var = {{"t", "int32", "t*=3", .values = "0 1 2",
                     .attrs = "{'units': 'hours since 2000-01-01'}"},
                    {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "4 5",
                     .attrs = "{'units': 'hours since 2000-01-01'}"},
                    {"v", "float32", "t*=2"}}}},
     .findings = "warning gap t a: 1 step is missing: 2000-01-01T03:00:00"},
    {"months are no number of days",
     {{"a", .var = {{"t", "int32", "t*=3", .values = "0 29 60",
                     .attrs = "{'units': 'days since 2000-01-31'}"},
                    {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "121 151",
                     .attrs = "{'units': 'days since 2000-01-31'}"},
                    {"v", "float32", "t*=2"}}}},
     .findings = "warning gap t a: 1 step is missing: 2000-04-30T00:00:00"},
    {"files in their order have no gaps",
     {{"a", .var = {{"t", "int32", "t*=3", .values = "0 1 2"}, {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "6 7"}, {"v", "float32", "t*=2"}}}},
     {.order = CM_ORDER_NAME},
     .findings = ""},
    {"members of an ensemble",
     {{"a", .var = {{"t", "int32", "t*=3", .values = "1 2 3",
                     .attrs = "{'standard_name': 'realization'}"},
                    {"v", "float32", "t*=3"}}},
      {"b",
       .var = {{"t", "int32", "t*=2", .values = "6 7", .attrs = "{'standard_name': 'realization'}"},
               {"v", "float32", "t*=2"}}}},
     .findings = ""},
};

static const joined_row OTHERWISE[] = {
    {"filled",
     {{"a", .var = {{"t", "int32", "t*=3", .values = "0 1 2"}, {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "5 6"}, {"v", "float32", "t*=2"}}}},
     {.gaps = CM_GAPS_FILL},
     .axes = "t: 0 1 2 3 4 5 6 | a 0+3>0 b 0+2>5",
     .findings = "warning gap t a: 2 steps are missing and filled: 3 to 4",
     .variable = {"v: float32 t*=7 fill nan | a 0+3>0 b 0+2>5", "t: int32 t*=7 = 0 1 2 3 4 5 6 |"}},
    {"filled, of two gaps",
     {{"a", .var = {{"t", "int32", "t*=3", .values = "0 1 3"}, {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "4 6"}, {"v", "float32", "t*=2"}}}},
     {.gaps = CM_GAPS_FILL},
     .axes = "t: 0 1 2 3 4 5 6 | a 0+2>0 a 2+1>3 b 0+1>4 b 1+1>6",
     .findings = "warning gap t a to b: 2 steps are missing and filled: 2, 5"},
    {"filled with integers that no double is",
     {{"a", .var = {{"t", "int64", "t*=3",
                     .values = "9007199254740993 9007199254740994 9007199254740995"},
                    {"v", "float32", "t*=3"}}},
      {"b",
       .var = {{"t", "int64", "t*=1", .values = "9007199254740997"}, {"v", "float32", "t*=1"}}}},
     {.gaps = CM_GAPS_FILL},
     .axes = "t: 9007199254740993 9007199254740994 9007199254740995 9007199254740996 "
             "9007199254740997 | a 0+3>0 b 0+1>4"},
    {"filled with fractions",
     {{"a", .var = {{"t", "float64", "t*=3", .values = "0 0.25 0.5"}, {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "float64", "t*=2", .values = "1 1.25"}, {"v", "float32", "t*=2"}}}},
     {.gaps = CM_GAPS_FILL},
     .axes = "t: 0.0 0.25 0.5 0.75 1.0 1.25 | a 0+3>0 b 0+2>4"},
    {"filled hours",
     {{"a", .var = {{"t", "int32", "t*=3", .values = "0 6 12",
                     .attrs = "{'units': 'hours since 2000-01-01'}"},
                    {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "24 30",
                     .attrs = "{'units': 'hours since 2000-01-01'}"},
                    {"v", "float32", "t*=2"}}}},
     {.gaps = CM_GAPS_FILL},
     .variable = {"t: int32 t*=6 = 0 6 12 18 24 30 {'units':'hours since 2000-01-01'} |"}},
    {"refused",
     {{"a", .var = {{"t", "int32", "t*=3", .values = "0 1 2"}, {"v", "float32", "t*=3"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "5 6"}, {"v", "float32", "t*=2"}}}},
     {.gaps = CM_GAPS_ERROR},
     .findings = "decision gap t a: 2 steps are missing: 3 to 4"},
    {"found only where coordinates ascend",
     {{"a", .var = {{"t", "int32", "t*=2", .values = "6 5"}, {"v", "float32", "t*=2"}}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "4 3"}, {"v", "float32", "t*=2"}}}},
     {.gaps = CM_GAPS_FILL},
     .error = "t: it descends, and missing steps are found only where it ascends"},
};

static void kept(void **state)
{
    (void)state;
    joined_try(KEPT, COUNT(KEPT));
}

static void filled_or_refused(void **state)
{
    (void)state;
    joined_try(OTHERWISE, COUNT(OTHERWISE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept), cmocka_unit_test(filled_or_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
