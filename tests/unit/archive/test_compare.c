/* Descriptions of one variable: the same, made the same, or a finding. */

#include "archive_fixture.h"

/* Two times, counted so, and what hangs on them. */
#define TIMED(units, two)                                                                          \
    {"t", "int32", "t*=2", .attrs = "{'units': '" units "'}", .values = two},                      \
    {                                                                                              \
        "v", "int16", "t*=2"                                                                       \
    }

static const joined_row ATTRIBUTES[] = {
    {"alike",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2", .attrs = "{'units': 'K'}"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2", .attrs = "{'units': 'K'}"}}}},
     .findings = "",
     .variable = {"v: int16 t*=2 y=2 {'units':'K'} | a 0+1>0 b 0+1>1"}},
    {"units",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2", .attrs = "{'units': 'K'}"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2", .attrs = "{'units': 'C'}"}}}},
     .findings = "decision units v b: units is \"C\", and \"K\" in a"},
    {"units in one file alone",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2", .attrs = "{'units': 'K'}"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2"}}}},
     .findings = "decision units v b: units is absent, and \"K\" in a"},
    {"an attribute that files do not say alike is left out",
     {{"a", .var = {STEP(0),
                    {"v", "int16", "t*=1 y=2",
                     .attrs = "{'units': 'K', 'history': 'x', 'long_name': 'v'}"}}},
      {"b", .var = {STEP(1),
                    {"v", "int16", "t*=1 y=2",
                     .attrs = "{'units': 'K', 'history': 'y', 'long_name': 'v'}"}}}},
     .findings = "note attribute v b: the attribute history is not that of a, and left out",
     .variable = {"v: int16 t*=2 y=2 {'units':'K','long_name':'v'} | a 0+1>0 b 0+1>1"}},
    {"or the first file's",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2", .attrs = "{'history': 'x'}"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2", .attrs = "{'history': 'y'}"}}}},
     {.first_attrs = true},
     .findings = "",
     .variable = {"v: int16 t*=2 y=2 {'history':'x'} | a 0+1>0 b 0+1>1"}},
    {"one that the first file lacks",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2", .attrs = "{'history': 'y'}"}}}},
     .findings = "note attribute v b: the attribute history is not that of a, and left out",
     .variable = {"v: int16 t*=2 y=2 | a 0+1>0 b 0+1>1"}},
    {"all that files do not say alike",
     {{"a", .var = {STEP(0),
                    {"v", "int16", "t*=1 y=2",
                     .attrs = "{'low': 1, 'units': 'K', 'high': 2, 'history': 'x'}"}}},
      {"b", .var = {STEP(1),
                    {"v", "int16", "t*=1 y=2",
                     .attrs = "{'low': 1, 'units': 'K', 'high': 3, 'history': 'x'}"}}},
      {"c", .var = {STEP(2),
                    {"v", "int16", "t*=1 y=2",
                     .attrs = "{'low': 2, 'units': 'K', 'high': 3, 'history': 'x', 'id': 9}"}}}},
     .findings = "note attribute v b to c: the attributes high, low and id are not those of a, and "
                 "left out",
     .variable = {"v: int16 t*=3 y=2 {'units':'K','history':'x'} | a 0+1>0 b 0+1>1 c 0+1>2"}},
    {"all that says what numbers mean",
     {{"a", .var = {STEP(0),
                    {"v", "int16", "t*=1 y=2",
                     .attrs = "{'cell_methods': 'time: mean', 'axis': 'X', 'positive': 'up'}"}}},
      {"b", .var = {STEP(1),
                    {"v", "int16", "t*=1 y=2",
                     .attrs = "{'cell_methods': 'time: max', 'axis': 'Y', 'positive': 'down'}"}}}},
     .findings = "decision meaning v b: cell_methods is \"time: max\", and \"time: mean\" in a; "
                 "positive and axis differ too"},
    {"limits of valid numbers in which files differ are no file's, for readers mask what lies "
     "outside",
     {{"a", .var = {STEP(0),
                    {"v", "int16", "t*=1 y=2", .attrs = "{'valid_min': 0, 'valid_max': 5}"},
                    {"w", "int16", "t*=1 y=2", .attrs = "{'valid_range': [0, 5], 'axis': 'X'}"}}},
      {"b", .var = {STEP(1),
                    {"v", "int16", "t*=1 y=2", .attrs = "{'valid_min': 0, 'valid_max': 9}"},
                    {"w", "int16", "t*=1 y=2", .attrs = "{'axis': 'Y'}"}}}},
     {.first_attrs = true},
     .findings = "warning meaning v b: valid_max is 9, and 5 in a; valid_max is left out: readers "
                 "take what lies outside for missing\n"
                 "warning meaning w b: axis is \"Y\", and \"X\" in a; valid_range differs too; "
                 "valid_range is left out: readers take what lies outside for missing",
     .variable = {"v: int16 t*=2 y=2 {'valid_min':0} | a 0+1>0 b 0+1>1",
                  "w: int16 t*=2 y=2 {'axis':'X'} | a 0+1>0 b 0+1>1"}},
    {"what says what numbers mean is a decision",
     {{"a",
       .var = {STEP(0), {"v", "int16", "t*=1 y=2", .attrs = "{'cell_methods': 'time: mean'}"}}},
      {"b",
       .var = {STEP(1), {"v", "int16", "t*=1 y=2", .attrs = "{'cell_methods': 'time: max'}"}}}},
     .findings = "decision meaning v b: cell_methods is \"time: max\", and \"time: mean\" in a"},
    {"and that of the first, if asked for",
     {{"a",
       .var = {STEP(0), {"v", "int16", "t*=1 y=2", .attrs = "{'cell_methods': 'time: mean'}"}}},
      {"b",
       .var = {STEP(1), {"v", "int16", "t*=1 y=2", .attrs = "{'cell_methods': 'time: max'}"}}}},
     {.first_attrs = true},
     .findings = "warning meaning v b: cell_methods is \"time: max\", and \"time: mean\" in a",
     .variable = {"v: int16 t*=2 y=2 {'cell_methods':'time: mean'} | a 0+1>0 b 0+1>1"}},
    {"packing",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2", .attrs = "{'scale_factor': 0.5}"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2", .attrs = "{'scale_factor': 0.25}"}}}},
     .findings = "decision packing v b: scale_factor is 0.25, and 0.5 in a"},
    {"of packed numbers and plain ones limits are not compared",
     {{"a", .var = {STEP(0),
                    {"v", "int16", "t*=1 y=2",
                     .attrs = "{'scale_factor': 0.5, 'add_offset': 1.0, 'valid_min': 9}"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2"}}}},
     .findings =
         "decision packing v b: scale_factor is absent, and 0.5 in a; add_offset differs too"},
    {"packing into equal numbers, however they are written",
     {{"a",
       .var = {STEP(0),
               {"v", "int16", "t*=1 y=2", .attrs = "{'scale_factor': 2, 'valid_range': [0, 5]}"}}},
      {"b",
       .var = {STEP(1),
               {"v", "int16", "t*=1 y=2",
                .attrs = "{'scale_factor': 2.0, 'add_offset': 0.0, 'valid_range': [0.0, 5]}"}}}},
     .findings = "",
     .variable = {"v: int16 t*=2 y=2 {'scale_factor':2,'valid_range':[0,5]} | a 0+1>0 b 0+1>1"}},
    {"packing, unpacked: in double, for its numbers are",
     {{"a", .var = {STEP(0),
                    {"v", "int16", "t*=1 y=2", .fill = "-1",
                     .attrs = "{'scale_factor': 0.5, 'valid_max': 9}"}}},
      {"b", .var = {STEP(1),
                    {"v", "int16", "t*=1 y=2", .fill = "-2",
                     .attrs = "{'scale_factor': 0.25, 'add_offset': 1.0}"}}}},
     {.unpack = true},
     .findings = "warning packing v b: scale_factor is 0.25, and 0.5 in a; add_offset differs "
                 "too\n"
                 "note fill-value v b: its fill value is not that of a, which the store has; a "
                 "value of the data that equals it stops the run\n"
                 "note attribute v a: the attribute valid_max is left out, since its numbers are "
                 "unpacked",
     .variable = {"v: float64 t*=2 y=2 fill nan | a 0+1>0 from int16 x0.5+0 fill -1 b 0+1>1 from "
                  "int16 x0.25+1 fill -2"}},
    {"unpacked numbers of one that is not packed",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2", .attrs = "{'scale_factor': 0.5}"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2"}}}},
     {.unpack = true},
     .variable =
         {"v: float64 t*=2 y=2 fill nan | a 0+1>0 from int16 x0.5+0 b 0+1>1 from int16 x1+0"}},
    {"a grid mapping says all in its attributes",
     {{"a",
       .var = {STEP(0), {"crs", "int32", "", .attrs = "{'grid_mapping_name': 'x', 'radius': 1}"}}},
      {"b",
       .var = {STEP(1), {"crs", "int32", "", .attrs = "{'grid_mapping_name': 'x', 'radius': 2}"}}}},
     .findings = "decision meaning crs b: radius is 2, and 1 in a"},
    {"global attributes",
     {{"a", .attrs = "{'title': 'x', 'history': 'y'}", .var = {STEP(0)}},
      {"b", .attrs = "{'title': 'x', 'history': 'z'}", .var = {STEP(1)}}},
     .findings =
         "note attribute b: attributes that are not the same in all files are left out: history"},
};

static const joined_row SHAPES[] = {
    {"another order of dimensions is transposed",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2 x=3"}}},
      {"b", .var = {STEP(1), {"v", "int16", "x=3 t*=1 y=2"}}}},
     .findings = "note dimension-order v b: its dimensions are in another order than in a; they "
                 "are transposed",
     .variable = {"v: int16 t*=2 y=2 x=3 | a 0+1>0 b 0+1>1 order 1,2,0"}},
    {"other dimensions",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 x=2"}}}},
     .findings = "decision dimensions v b: its dimensions are not those of a"},
    {"a dimension that one file lacks",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 z=2 y=2"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2"}}}},
     .findings = "decision dimensions v b: it has no dimension z here, and one in a"},
    {"repeated along it",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 z=2 y=2"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2"}}}},
     {.promote = TEXTS("v")},
     .findings = "warning dimensions v b: it has no dimension z here, and one in a; its values are "
                 "repeated along it",
     .variable = {"v: int16 t*=2 z=2 y=2 | a 0+1>0 b 0+1>1 order 0,0,1 repeats 1"}},
    {"taken out by the conversion",
     {{"a",
       .var = {STEP(0), {"v", "int16", "t*=1 z=2 y=2"}, {"z", "int32", "z=2", .values = "1 5"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2"}}}},
     {.merge_along = TEXTS("z=1,5")},
     .findings = "warning dimensions v b: it has no dimension z here, and one in a; its values "
                 "stand for all along it",
     .variable = {"v: int16 t*=2 z=2 y=2 | a 0+1>0 b 0+1>1 order 0,0,1 repeats 1"}},
    {"chunks that differ are told",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2", .chunk = "1 2"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2", .chunk = "1 1"}}}},
     .findings = "note layout v b: its chunks are not those of a",
     .variable = {"v: int16 t*=2 y=2 | a 0+1>0 b 0+1>1"}},
    {"and refused, if chunks are to be alike",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2", .chunk = "1 2"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2", .chunk = "1 1"}}}},
     {.strict = true},
     .findings = "decision layout v b: its chunks are not those of a"},
};

static const joined_row TIMES[] = {
    {"from two dates: those of the first",
     {{"a", .var = {TIMED("days since 2000-01-01", "0 1")}},
      {"b", .var = {TIMED("days since 2000-01-03", "0 1")}}},
     .findings = "note time-units t b: units is \"days since 2000-01-03\", and \"days since "
                 "2000-01-01\" in a",
     .variable = {"t: int32 t*=4 = 0 1 2 3 {'units':'days since 2000-01-01'} |"}},
    {"in two units: the finer",
     {{"a", .var = {TIMED("days since 2000-01-01", "0 1")}},
      {"b", .var = {TIMED("hours since 2000-01-01", "48 54")}}},
     .findings = "note time-units t b: units is \"hours since 2000-01-01\", and \"days since "
                 "2000-01-01\" in a\n"
                 "warning time-units t b: all times are stored as int64, hours since 2000-01-01",
     .variable = {"t: int64 t*=4 = 0 24 48 54 {'units':'hours since 2000-01-01'} |"}},
    {"limits of valid times, which are counted anew",
     {{"a", .var = {{"t", "int32", "t*=2",
                     .attrs = "{'units': 'days since 2000-01-01', 'valid_range': [0, 9]}",
                     .values = "0 1"}}},
      {"b", .var = {{"t", "int32", "t*=2",
                     .attrs = "{'units': 'days since 2000-01-03', 'valid_range': [0, 8]}",
                     .values = "0 1"}}}},
     .findings = "note time-units t b: units is \"days since 2000-01-03\", and \"days since "
                 "2000-01-01\" in a\n"
                 "note attribute t a: the attribute valid_range is left out, since times are "
                 "counted anew",
     .variable = {"t: int32 t*=4 = 0 1 2 3 {'units':'days since 2000-01-01'} |"}},
    {"in units that are asked for",
     {{"a", .var = {TIMED("days since 2000-01-01", "0 1")}},
      {"b", .var = {TIMED("days since 2000-01-03", "0 1")}}},
     {.time_units = "hours since 1999-12-31"},
     .variable = {"t: int32 t*=4 = 24 48 72 96 {'units':'hours since 1999-12-31'} |"}},
    {"of two calendars",
     {{"a", .var = {{"t", "int32", "t*=1",
                     .attrs = "{'units': 'days since 2000-01-01', 'calendar': 'noleap'}",
                     .values = "0"}}},
      {"b", .var = {{"t", "int32", "t*=1",
                     .attrs = "{'units': 'days since 2000-01-01', 'calendar': '360_day'}",
                     .values = "1"}}}},
     .findings = "decision calendar t b: calendar is \"360_day\", and \"noleap\" in a"},
    {"of two names of one calendar",
     {{"a", .var = {{"t", "int32", "t*=1",
                     .attrs = "{'units': 'days since 2000-01-01', 'calendar': 'standard'}",
                     .values = "0"}}},
      {"b", .var = {{"t", "int32", "t*=1",
                     .attrs = "{'units': 'days since 2000-01-01', 'calendar': 'gregorian'}",
                     .values = "1"}}}},
     .findings = "",
     .variable = {"t: int32 t*=2 = 0 1 {'units':'days since 2000-01-01','calendar':'standard'} |"}},
    {"with bounds",
     {{"a", .var = {{"t", "int32", "t*=1",
                     .attrs = "{'units': 'days since 2000-01-01', 'bounds': 'tb'}", .values = "0"},
                    {"tb", "int32", "t*=1 n=2", .values = "0 1"}}},
      {"b", .var = {{"t", "int32", "t*=1",
                     .attrs = "{'units': 'days since 2000-01-02', 'bounds': 'tb'}", .values = "0"},
                    {"tb", "int32", "t*=1 n=2", .values = "0 1"}}}},
     .variable = {"t: int32 t*=2 = 0 1 {'units':'days since 2000-01-01','bounds':'tb'} |",
                  "tb: int32 t*=2 n=2 = 0 1 1 2 |"}},
    {"a field of times",
     {{"a", .var = {STEP(0),
                    {"v", "int32", "t*=1 y=2", .attrs = "{'units': 'days since 2000-01-01'}",
                     .values = "5 6"}}},
      {"b", .var = {STEP(1),
                    {"v", "int32", "t*=1 y=2", .attrs = "{'units': 'days since 2000-01-03'}",
                     .values = "5 6"}}}},
     .findings = "note time-units v b: units is \"days since 2000-01-03\", and \"days since "
                 "2000-01-01\" in a",
     .variable = {"v: int32 t*=2 y=2 = 5 6 7 8 {'units':'days since 2000-01-01'} |"}},
};

static void attributes(void **state)
{
    (void)state;
    joined_try(ATTRIBUTES, COUNT(ATTRIBUTES));
}

static void shapes(void **state)
{
    (void)state;
    joined_try(SHAPES, COUNT(SHAPES));
}

static void times(void **state)
{
    (void)state;
    joined_try(TIMES, COUNT(TIMES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(attributes), cmocka_unit_test(shapes),
                                       cmocka_unit_test(times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
