/* Dimensions that files call differently, and which by their coordinates are one. */

#include "archive_fixture.h"

#define AXIS(dim, says, value)                                                                     \
    {                                                                                              \
        dim, "int32", dim "*=1", .attrs = says, .values = value                                    \
    }
#define TIME "{'standard_name': 'time', 'units': 'days since 2000-01-01'}"
#define DAYS "{'units': 'days since 2000-01-01'}"
#define LAT  "{'standard_name': 'latitude', 'units': 'degrees_north'}"

static const joined_row ROWS[] = {
    {"one standard_name",
     {{"a", .var = {AXIS("time", TIME, "0"), {"v", "int16", "time*=1"}}},
      {"b", .var = {AXIS("t", TIME, "1"), {"v", "int16", "t*=1"}}}},
     .findings = "decision name t b: by its standard_name it is time in a"},
    {"times without one",
     {{"a", .var = {AXIS("time", DAYS, "0"), {"v", "int16", "time*=1"}}},
      {"b", .var = {AXIS("t", DAYS, "1"), {"v", "int16", "t*=1"}}}},
     .findings = "decision name t b: by its units it is time in a"},
    {"a time, and one that says so",
     {{"a", .var = {AXIS("time", TIME, "0"), {"v", "int16", "time*=1"}}},
      {"b", .var = {AXIS("t", DAYS, "1"), {"v", "int16", "t*=1"}}}},
     .findings = "decision name t b: by its units it is time in a"},
    {"one of another standard_name",
     {{"a", .var = {AXIS("time",
                         "{'standard_name': 'forecast_reference_time', 'units': 'days "
                         "since 2000-01-01'}",
                         "0"),
                    {"v", "int16", "time*=1"}}},
      {"b", .var = {AXIS("t", DAYS, "1"), {"v", "int16", "t*=1"}}}},
     .findings = "decision dimensions v b: its dimensions are not those of a"},
    {"or the other has one",
     {{"a", .var = {AXIS("t", DAYS, "1"), {"v", "int16", "t*=1"}}},
      {"b",
       .var = {AXIS(
                   "time",
                   "{'standard_name': 'forecast_reference_time', 'units': 'days since 2000-01-01'}",
                   "0"),
               {"v", "int16", "time*=1"}}}},
     .findings = "decision dimensions v b: its dimensions are not those of a"},
    {"numbers that are no times",
     {{"a", .var = {AXIS("t", "{'units': 'm'}", "1"), {"v", "int16", "t*=1"}}},
      {"b", .var = {AXIS("time", "{'units': 'm'}", "0"), {"v", "int16", "time*=1"}}}},
     .findings = "decision dimensions v b: its dimensions are not those of a"},
    {"a time and a length",
     {{"a", .var = {AXIS("time", DAYS, "1"), {"v", "int16", "time*=1"}}},
      {"b", .var = {AXIS("t", "{'units': 'm'}", "0"), {"v", "int16", "t*=1"}}}},
     .findings = "decision dimensions v b: its dimensions are not those of a"},
    {"the second file has both",
     {{"a", .var = {AXIS("time", TIME, "0"), {"v", "int16", "time*=1"}}},
      {"b", .var = {AXIS("t", TIME, "1"), AXIS("time", TIME, "1"), {"v", "int16", "time*=1"}}}},
     .findings = ""},
    {"in several files",
     {{"a", .var = {AXIS("lat", LAT, "0"), {"v", "int16", "lat*=1"}}},
      {"b", .var = {AXIS("latitude", LAT, "1"), {"v", "int16", "latitude*=1"}}},
      {"c", .var = {AXIS("latitude", LAT, "2"), {"v", "int16", "latitude*=1"}}}},
     .findings = "decision name latitude b to c: by its standard_name it is lat in a"},
    {"both in one file",
     {{"a", .var = {AXIS("time", TIME, "0"), AXIS("t", TIME, "0"), {"v", "int16", "time*=1"}}},
      {"b", .var = {AXIS("t", TIME, "1"), AXIS("time", TIME, "1"), {"v", "int16", "time*=1"}}}},
     .findings = ""},
    {"other lengths without coordinates",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 x=2"}}}},
     .findings = "decision dimensions v b: its dimensions are not those of a"},
    {"taken for one",
     {{"a", .var = {AXIS("time", TIME, "0"), {"v", "int16", "time*=1"}}},
      {"b", .var = {AXIS("t", TIME, "1"), {"v", "int16", "t*=1"}}}},
     {.rename = TEXTS("t=time")},
     .axes = "time: 2000-01-01T00:00:00 2000-01-02T00:00:00 | a 0+1>0 b 0+1>1",
     .findings = ""},
};

static void renamed(void **state)
{
    (void)state;
    joined_try(ROWS, COUNT(ROWS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(renamed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
