/* A store that grows is the first of the files: what it has stays as it is. */

#include "archive_fixture.h"

#define BASE .base = "a"
#define X(n, list)                                                                                 \
    {                                                                                              \
        "t", "int32", "t*=" n, .values = list                                                      \
    }

static const joined_row ROWS[] = {
    {"what is new follows",
     {{"a", .var = {X("3", "0 1 2"), {"v", "int16", "t*=3", .fill = "-9"}}},
      {"b", .var = {X("2", "3 4"), {"v", "int16", "t*=2", .fill = "-9"}}}},
     {BASE},
     .axes = "t: 0 1 2 3 4 | a 0+3>0 b 0+2>3",
     .findings = "",
     .variable = {"v: int16 t*=5 fill -9 | a 0+3>0 b 0+2>3"}},
    {"steps that it has are its own, and compared",
     {{"a", .var = {X("3", "0 1 2"), {"v", "int16", "t*=3"}}},
      {"b", .var = {X("2", "2 3"), {"v", "int16", "t*=2"}}}},
     {BASE},
     .checks = "v a 2+1>2 b 0+1>2",
     .variable = {"v: int16 t*=4 | a 0+3>0 b 1+1>3"}},
    {"or are replaced",
     {{"a", .var = {X("3", "0 1 2"), {"v", "int16", "t*=3"}}},
      {"b", .var = {X("1", "1"), {"v", "int16", "t*=1"}}}},
     {BASE, .base_yields = true, .overlap = CM_OVERLAP_LAST},
     .variable = {"v: int16 t*=3 | a 0+1>0 b 0+1>1 a 2+1>2"}},
    {"nothing is put before or between what it has",
     {{"a", .var = {X("2", "1 2"), {"v", "int16", "t*=2"}}},
      {"b", .var = {X("1", "0"), {"v", "int16", "t*=1"}}}},
     {BASE},
     .findings =
         "decision interleaved t b: 0 lies before the end of the store, 2, which has no such step"},
    {"it keeps its types",
     {{"a", .var = {X("1", "0"), {"v", "int16", "t*=1"}}},
      {"b", .var = {X("1", "1"), {"v", "int32", "t*=1"}}}},
     {BASE},
     .findings = "decision type v b: its type is int32, and int16 in a; a store keeps its types"},
    {"a smaller type fits",
     {{"a", .var = {X("1", "0"), {"v", "int32", "t*=1"}}},
      {"b", .var = {X("1", "1"), {"v", "int16", "t*=1"}}}},
     {BASE},
     .findings = "note type v b: its type is int16, and int32 in a; int32 holds both",
     .variable = {"v: int32 t*=2 | a 0+1>0 b 0+1>1 from int16"}},
    {"it keeps its fill value",
     {{"a", .var = {X("1", "0"), {"v", "int16", "t*=1", .fill = "-9"}}},
      {"b", .var = {X("1", "1"), {"v", "int16", "t*=1", .fill = "-8"}}}},
     {BASE, .fill_value = TEXTS("v:-7")},
     .findings = "note fill-value v b: its fill value is not that of a, which the store has; a "
                 "value of the data that equals it stops the run",
     .variable = {"v: int16 t*=2 fill -9 | a 0+1>0 b 0+1>1 fill -8"}},
    {"and has none where it says none",
     {{"a", .var = {X("1", "0"), {"v", "int16", "t*=1"}}},
      {"b", .var = {X("1", "1"), {"v", "int16", "t*=1", .fill = "-8"}}}},
     {BASE},
     .findings = "note fill-value v b: it has a fill value, and the store has none; an element "
                 "that is missing stops the run",
     .variable = {"v: int16 t*=2 | a 0+1>0 b 0+1>1 refuses fill"}},
    {"it keeps the length of its texts",
     {{"a", .var = {X("1", "0"), {"name", "char", "t*=1 n=2", .values = "ab"}}},
      {"b", .var = {X("1", "1"), {"name", "char", "t*=1 n=3", .values = "xyz"}}}},
     {BASE},
     .findings = "decision type name b: its texts are 3 characters long, and 2 in the store, which "
                 "keeps that length"},
    {"shorter texts are filled up",
     {{"a", .var = {X("1", "0"), {"name", "char", "t*=1 n=3", .values = "abc"}}},
      {"b", .var = {X("1", "1"), {"name", "char", "t*=1 n=2", .values = "xy"}}}},
     {BASE},
     .variable = {"name: char t*=2 n=3 | a 0+1>0 b 0+1>1 width 2"}},
    {"it keeps its attributes",
     {{"a", .var = {X("1", "0"), {"v", "int16", "t*=1", .attrs = "{'history': 'x'}"}}},
      {"b", .var = {X("1", "1"), {"v", "int16", "t*=1", .attrs = "{'history': 'y'}"}}}},
     {BASE},
     .findings = "note attribute v b: the attribute history is not that of the store, which keeps "
                 "its own",
     .variable = {"v: int16 t*=2 {'history':'x'} | a 0+1>0 b 0+1>1"}},
    {"and those that no file contradicts without a word",
     {{"a", .attrs = "{'title': 'x'}",
       .var = {X("1", "0"), {"v", "int16", "t*=1", .attrs = "{'n': 1}"}}},
      {"b", .attrs = "{'history': 'x'}",
       .var = {X("1", "1"), {"v", "int16", "t*=1", .attrs = "{'n': 1.0, 'id': 5}"}}}},
     {BASE},
     .findings = "",
     .variable = {"v: int16 t*=2 {'n':1} | a 0+1>0 b 0+1>1"}},
    {"limits beyond which readers mask what files have",
     {{"a", .var = {X("1", "0"), {"v", "int16", "t*=1", .attrs = "{'valid_max': 5, 'id': 1}"}}},
      {"b", .var = {X("1", "1"), {"v", "int16", "t*=1", .attrs = "{'valid_max': 9, 'id': 2}"}}},
      {"c", .var = {X("1", "2"), {"v", "int16", "t*=1", .attrs = "{'id': 2}"}}}},
     {BASE},
     .findings = "warning attribute v b to c: the attributes valid_max and id are not those of the "
                 "store, which keeps its own; readers take what lies outside valid_max for missing",
     .variable = {"v: int16 t*=3 {'valid_max':5,'id':1} | a 0+1>0 b 0+1>1 c 0+1>2"}},
    {"and its global attributes",
     {{"a", .attrs = "{'comment': 'final', 'title': 'x', 'id': 1}", .var = {X("1", "0")}},
      {"b", .attrs = "{'comment': 'preliminary', 'title': 'x', 'history': 'y'}",
       .var = {X("1", "1")}}},
     {BASE},
     .findings = "note attribute b: attributes that are not the same in the store, which keeps its "
                 "own: comment"},
    {"it counts times as it did",
     {{"a", .var = {{"t", "int32", "t*=1", .values = "0",
                     .attrs = "{'units': 'days since 2000-01-01'}"}}},
      {"b", .var = {{"t", "int32", "t*=1", .values = "0",
                     .attrs = "{'units': 'days since 2000-01-05'}"}}}},
     {BASE},
     .variable = {"t: int32 t*=2 = 0 4 {'units':'days since 2000-01-01'} |"}},
    {"and refuses what its units cannot count",
     {{"a", .var = {{"t", "int32", "t*=1", .values = "0",
                     .attrs = "{'units': 'days since 2000-01-01'}"}}},
      {"b", .var = {{"t", "int32", "t*=1", .values = "30",
                     .attrs = "{'units': 'hours since 2000-01-01'}"}}}},
     {BASE},
     .findings = "note time-units t b: units is \"hours since 2000-01-01\", and \"days since "
                 "2000-01-01\" in a\n"
                 "decision time-units t b: 2000-01-02T06:00:00 has no exact value in the new units "
                 "and type; made anew of all files the store counts in units that hold every "
                 "time",
     .variable = {"t: none"}},
    {"options say where files lie that lack its dimension",
     {{"a", .var = {X("2", "0 1"), {"v", "int16", "t*=2 y=2"}, {"w", "int16", "y=2 t*=2"}}},
      {"r3", .var = {{"v", "int16", "y=2"}, {"w", "int16", "y=2"}}},
      {"r7", .var = {{"v", "int16", "t=1 y=2"}, {"w", "int16", "y=2"}}}},
     {BASE, .new_dim = TEXTS("t=r*")},
     .axes = "t: 0 1 3 7 | a 0+2>0 r3 0+1>2 r7 0+1>3",
     .findings = "",
     .variable = {"t: int32 t*=4 = 0 1 3 7 |",
                  "v: int16 t*=4 y=2 | a 0+2>0 r3 0+1>2 lacks 0 r7 0+1>3",
                  "w: int16 y=2 t*=4 | a 0+2>0 r3 0+1>2 lacks 0 r7 0+1>3 lacks 0"}},
    {"by a scalar of theirs",
     {{"a", .var = {X("2", "0 1"), {"v", "int16", "t*=2"}}},
      {"b", .var = {{"s", "int32", "", .values = "2"}, {"v", "int16", ""}}}},
     {BASE, .new_dim = TEXTS("t=@s")},
     .axes = "t: 0 1 2 | a 0+2>0 b 0+1>2",
     .findings = "",
     .variable = {"t: int32 t*=3 = 0 1 2 |", "v: int16 t*=3 | a 0+2>0 b 0+1>2 lacks 0"}},
    {"which it must hold exactly",
     {{"a", .var = {{"t", "int8", "t*=1", .values = "0"}, {"v", "int16", "t*=1"}}},
      {"r300", .var = {{"v", "int16", ""}}}},
     {BASE, .new_dim = TEXTS("t=r*")},
     .findings = NULL,
     .error = "`new_dim` t=r*: r300 is 300, which the store's t has no exact value for"},
    {"and has to have",
     {{"a", .var = {X("1", "0"), {"v", "int16", "t*=1"}}}, {"r3", .var = {{"v", "int16", ""}}}},
     {BASE, .new_dim = TEXTS("u=r*")},
     .findings = NULL,
     .error = "`new_dim` u=r*: the store has no dimension u"},
    {"it grows along one dimension",
     {{"a",
       .var = {X("2", "0 1"), {"m", "int32", "m=1", .values = "4"}, {"v", "int16", "m=1 t*=2"}}},
      {"r5_2", .var = {X("2", "2 3"), {"v", "int16", "t*=2"}}}},
     {BASE, .along = "t", .new_dim = TEXTS("m=r*_")},
     .findings = "decision coordinate m r5_2: 5 is not in the store, which grows along t alone"},
    {"though files have more of two",
     {{"a", .var = {X("2", "0 1"), {"v", "int16", "t*=2"}, {"w", "int16", "u=3"}}},
      {"b", .var = {X("2", "2 3"), {"v", "int16", "t*=2"}, {"w", "int16", "u=5"}}}},
     {BASE, .along = "t"},
     .findings = "decision length u b: the dimension has 5 elements, and 3 in a, which grows along "
                 "t alone"},
    {"a variable that it has along the dimension is repeated for a file's steps",
     {{"a", .var = {X("1", "0"), {"v", "int16", "t*=1"}, {"w", "int16", "t*=1 y=2"}}},
      {"b", .var = {X("2", "1 2"), {"v", "int16", "t*=2"}, {"w", "int16", "y=2"}}}},
     {BASE, .promote = TEXTS("w")},
     .findings = "",
     .variable = {"w: int16 t*=3 y=2 | a 0+1>0 b 0+2>1 order 0,0 lacks 0"}},
    {"not without being asked for",
     {{"a", .var = {X("1", "0"), {"v", "int16", "t*=1"}, {"w", "int16", "t*=1 y=2"}}},
      {"b", .var = {X("2", "1 2"), {"v", "int16", "t*=2"}, {"w", "int16", "y=2"}}}},
     {BASE},
     .findings = "decision dimensions w b: it has no dimension t here, and one in a"},
};

static void stays(void **state)
{
    (void)state;
    joined_try(ROWS, COUNT(ROWS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
