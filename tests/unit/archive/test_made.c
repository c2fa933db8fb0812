/* Dimensions that options make, names that they join, variables that they choose. */

#include "archive_fixture.h"

static const joined_row NEW[] = {
    {"of names: numbers",
     {{"run12.nc", .var = {{"v", "int16", "y=2"}}}, {"run7.nc", .var = {{"v", "int16", "y=2"}}}},
     {.new_dim = TEXTS("member=run*.nc")},
     .axes = "member: 7 12 | run12.nc 0+1>1 run7.nc 0+1>0",
     .variable = {"v: int16 member*=2 y=2 | run7.nc 0+1>0 lacks 0 run12.nc 0+1>1 lacks 0",
                  "member: int64 member*=2 = 7 12 |"}},
    {"of names: texts",
     {{"x_a.nc", .var = {{"v", "int16", "y=2"}}}, {"x_b.nc", .var = {{"v", "int16", "y=2"}}}},
     {.new_dim = TEXTS("member=x_*.nc")},
     .axes = "member: a b | x_a.nc 0+1>0 x_b.nc 0+1>1",
     .variable = {"member: string member*=2 = a b |"}},
    {"of names: dates",
     {{"x_200003.nc", .var = {{"v", "int16", "y=2"}}},
      {"x_199912.nc", .var = {{"v", "int16", "y=2"}}}},
     {.new_dim = TEXTS("time=%Y%m")},
     .axes = "time: 1999-12-01T00:00:00 2000-03-01T00:00:00 | x_200003.nc 0+1>1 x_199912.nc 0+1>0",
     .variable = {"v: int16 time*=2 y=2 | x_199912.nc 0+1>0 lacks 0 x_200003.nc 0+1>1 lacks 0",
                  "time: int64 time*=2 = 0 91 {'units':'days since 1999-12-01 "
                  "00:00:00','calendar':'proleptic_gregorian','standard_name':'time'} |"}},
    {"of an attribute",
     {{"a", .attrs = "{'r': 2}", .var = {{"v", "int16", "y=2"}}},
      {"b", .attrs = "{'r': 1}", .var = {{"v", "int16", "y=2"}}}},
     {.new_dim = TEXTS("member=@r")},
     .axes = "member: 1 2 | a 0+1>1 b 0+1>0",
     .variable = {"v: int16 member*=2 y=2 | b 0+1>0 lacks 0 a 0+1>1 lacks 0",
                  "member: int64 member*=2 = 1 2 |"}},
    {"of a scalar",
     {{"a", .var = {{"v", "int16", "y=2"}, {"s", "int32", "", .values = "5"}}},
      {"b", .var = {{"v", "int16", "y=2"}, {"s", "int32", "", .values = "3"}}}},
     {.new_dim = TEXTS("s=@s")},
     .axes = "s: 3 5 | a 0+1>1 b 0+1>0",
     .variable = {"v: int16 s*=2 y=2 | b 0+1>0 lacks 0 a 0+1>1 lacks 0", "s: int32 s*=2 = 3 5 |"}},
    {"a name that does not match",
     {{"a1", .var = {{"v", "int16", "y=2"}}}, {"b2", .var = {{"v", "int16", "y=2"}}}},
     {.new_dim = TEXTS("m=a*")},
     .error = "b2: its name does not match a*"},
    {"no pattern",
     {{"a1", .var = {{"v", "int16", "y=2"}}}, {"a2", .var = {{"v", "int16", "y=2"}}}},
     {.new_dim = TEXTS("m=a")},
     .error = "`new_dim` m=a: 'a' must have %Y (a date), one '*' (the value), or begin with '@' "
              "(an attribute)"},
    {"an attribute that a file lacks",
     {{"a", .attrs = "{'r': 2}", .var = {{"v", "int16", "y=2"}}},
      {"b", .var = {{"v", "int16", "y=2"}}}},
     {.new_dim = TEXTS("m=@r")},
     .error = "b: has no global attribute r"},
    {"beside a joined dimension",
     {{"a1", .var = {STEP(0), {"v", "int16", "t*=1"}}},
      {"a2", .var = {STEP(0), {"v", "int16", "t*=1"}}},
      {"b1", .var = {STEP(1), {"v", "int16", "t*=1"}}},
      {"b2", .var = {STEP(1), {"v", "int16", "t*=1"}}}},
     {.new_dim = TEXTS("m=?*")},
     .axes = "m: 1 2 | a1 0+1>0 a2 0+1>1 b1 0+1>0 b2 0+1>1; t: 0 1 | a1 0+1>0 a2 0+1>0 b1 0+1>1 b2 "
             "0+1>1",
     .variable = {"v: int16 m*=2 t*=2 | a1 0+1>0 0+1>0 lacks 0 b1 0+1>0 0+1>1 lacks 0 a2 0+1>1 "
                  "0+1>0 lacks 0 b2 0+1>1 0+1>1 lacks 0"}},
    {"an attribute as a coordinate",
     {{"a", .attrs = "{'run': 'x'}", .var = {STEP(0), {"v", "int16", "t*=1"}}},
      {"b", .attrs = "{'run': 'y'}", .var = {STEP(1), {"v", "int16", "t*=1"}}}},
     {.file_attr = TEXTS("run")},
     .variable = {"run: string t*=2 = x y |"}},
};

static const joined_row NAMES[] = {
    {"one name for two",
     {{"a", .var = {STEP(0), {"tas", "int16", "t*=1"}}},
      {"b", .var = {STEP(1), {"t2m", "int16", "t*=1"}}}},
     {.rename = TEXTS("t2m=tas")},
     .findings = "",
     .variable = {"tas: int16 t*=2 | a 0+1>0 b:t2m 0+1>1"}},
    {"a dimension with two names, as its coordinates",
     {{"a", .var = {STEP(0), {"lat", "int32", "lat=2"}, {"v", "int16", "t*=1 lat=2"}}},
      {"b", .var = {STEP(1), {"y", "int32", "y=2"}, {"v", "int16", "t*=1 y=2"}}}},
     {.rename = TEXTS("y=lat")},
     .findings = "",
     .variable = {"v: int16 t*=2 lat=2 | a 0+1>0 b 0+1>1", "lat: int32 lat=2 | a", "y: none"}},
    {"a variable with two names is proposed by its standard_name",
     {{"a",
       .var = {STEP(0), {"tas", "int16", "t*=1", .attrs = "{'standard_name': 'air_temperature'}"}}},
      {"b", .var = {STEP(1),
                    {"t2m", "int16", "t*=1", .attrs = "{'standard_name': 'air_temperature'}"}}}},
     .findings = "decision name t2m b: by its standard_name it is tas in a"},
    {"chosen variables, and what they need",
     {{"a", .var = {STEP(0),
                    {"v", "int16", "t*=1 y=2", .attrs = "{'coordinates': 'lat'}"},
                    {"lat", "float32", "y=2"},
                    {"w", "int16", "t*=1"}}},
      {"b", .var = {STEP(1),
                    {"v", "int16", "t*=1 y=2", .attrs = "{'coordinates': 'lat'}"},
                    {"lat", "float32", "y=2"},
                    {"w", "int32", "t*=1"}}}},
     {.variable = TEXTS("v")},
     .findings = "",
     .variable = {"lat: float32 y=2 | a", "w: none", "t: int32 t*=2 = 0 1 |"}},
    {"all but one",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1"}, {"w", "int16", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1"}, {"w", "float32", "t*=1"}}}},
     {.exclude = TEXTS("w")},
     .findings = "",
     .variable = {"w: none", "v: int16 t*=2 | a 0+1>0 b 0+1>1"}},
};

static void new_dimensions(void **state)
{
    (void)state;
    joined_try(NEW, COUNT(NEW));
}

static void names(void **state)
{
    (void)state;
    joined_try(NAMES, COUNT(NAMES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(new_dimensions), cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
