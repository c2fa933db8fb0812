/* One type and one fill value for what files have in several. */

#include "archive_fixture.h"

static const joined_row TYPES[] = {
    {"int8 and int16",
     {{"a", .var = {STEP(0), {"v", "int8", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1"}}}},
     .findings = "note type v b: its type is int16, and int8 in a; int16 holds both",
     .variable = {"v: int16 t*=2 | a 0+1>0 from int8 b 0+1>1"}},
    {"int16 and int8",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "int8", "t*=1"}}}},
     .findings = "note type v b: its type is int8, and int16 in a; int16 holds both",
     .variable = {"v: int16 t*=2 | a 0+1>0 b 0+1>1 from int8"}},
    {"int16 and uint16",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "uint16", "t*=1"}}}},
     .findings = "note type v b: its type is uint16, and int16 in a; int32 holds both",
     .variable = {"v: int32 t*=2 | a 0+1>0 from int16 b 0+1>1 from uint16"}},
    {"uint8 and int8",
     {{"a", .var = {STEP(0), {"v", "uint8", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "int8", "t*=1"}}}},
     .findings = "note type v b: its type is int8, and uint8 in a; int16 holds both",
     .variable = {"v: int16 t*=2 | a 0+1>0 from uint8 b 0+1>1 from int8"}},
    {"float32 and float64",
     {{"a", .var = {STEP(0), {"v", "float32", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "float64", "t*=1"}}}},
     .findings = "note type v b: its type is float64, and float32 in a; float64 holds both",
     .variable = {"v: float64 t*=2 | a 0+1>0 from float32 b 0+1>1"}},
    {"int16 and float32",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "float32", "t*=1"}}}},
     .findings = "note type v b: its type is float32, and int16 in a; float32 holds both",
     .variable = {"v: float32 t*=2 | a 0+1>0 from int16 b 0+1>1"}},
    {"int32 and float32",
     {{"a", .var = {STEP(0), {"v", "int32", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "float32", "t*=1"}}}},
     .findings = "note type v b: its type is float32, and int32 in a; float64 holds both",
     .variable = {"v: float64 t*=2 | a 0+1>0 from int32 b 0+1>1 from float32"}},
    {"int64 and float32",
     {{"a", .var = {STEP(0), {"v", "int64", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "float32", "t*=1"}}}},
     .findings = "decision type v b: its type is float32, and int64 in a; no type holds every "
                 "value of both",
     .variable = {"v: none"}},
    {"uint64 and int64",
     {{"a", .var = {STEP(0), {"v", "uint64", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "int64", "t*=1"}}}},
     .findings =
         "decision type v b: its type is int64, and uint64 in a; no type holds every value of both",
     .variable = {"v: none"}},
    {"float32 and char",
     {{"a", .var = {STEP(0), {"v", "float32", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "char", "t*=1"}}}},
     .findings = "decision type v b: its type is bytes1, and float32 in a; no type holds every "
                 "value of both",
     .variable = {"v: none"}},
    {"three types",
     {{"a", .var = {STEP(0), {"v", "int8", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "int32", "t*=1"}}},
      {"c", .var = {STEP(2), {"v", "uint8", "t*=1"}}}},
     .findings = "note type v b to c: its type is int32, and int8 in a; int32 holds both",
     .variable = {"v: int32 t*=3 | a 0+1>0 from int8 b 0+1>1 c 0+1>2 from uint8"}},
    {"that one does not hold exactly, if asked for",
     {{"a", .var = {STEP(0), {"v", "int64", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "float32", "t*=1"}}}},
     {.dtype = TEXTS("v:float64")},
     .findings = "warning type v b: its type is float32, and int64 in a; they are joined as "
                 "float64, and a number that it does not hold exactly stops the run",
     .variable = {"v: float64 t*=2 | a 0+1>0 from int64 exactly b 0+1>1 from float32 exactly"}},
    {"a smaller one is for the conversion",
     {{"a", .var = {STEP(0), {"v", "int64", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "uint64", "t*=1"}}}},
     {.dtype = TEXTS("v:int16")},
     .variable = {"v: int64 t*=2 | a 0+1>0 b 0+1>1 from uint64 exactly"}},
    {"asked for another variable",
     {{"a", .var = {STEP(0), {"v", "int64", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "float32", "t*=1"}}}},
     {.dtype = TEXTS("w:float64")},
     .findings = "decision type v b: its type is float32, and int64 in a; no type holds every "
                 "value of both"},
    {"read with the other sign",
     {{"a", .var = {STEP(0), {"v", "int8", "t*=1", .attrs = "{'_Unsigned': 'true'}"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1", .attrs = "{'_Unsigned': 'true'}"}}}},
     .findings =
         "decision type v b: its type is int16, and int8 in a; no type holds every value of both"},
};

static const joined_row FILLS[] = {
    {"one fill value",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .fill = "-9"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1", .fill = "-9"}}}},
     .findings = "",
     .variable = {"v: int16 t*=2 fill -9 | a 0+1>0 b 0+1>1"}},
    {"two fill values",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .fill = "-9"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1", .fill = "-8"}}}},
     .findings = "note fill-value v b: its fill value is not that of a, which the store has; a "
                 "value of the data that equals it stops the run",
     .variable = {"v: int16 t*=2 fill -9 | a 0+1>0 b 0+1>1 fill -8"}},
    {"of the second file alone",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1", .fill = "-8"}}}},
     .findings = "note fill-value v b: it has a fill value, and none in a; the store has one, and "
                 "a value of the data that equals it stops the run",
     .variable = {"v: int16 t*=2 fill -8 | a 0+1>0 checks fill b 0+1>1"}},
    {"of the first alone",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .fill = "-8"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1"}}}},
     .findings = "note fill-value v b: its fill value is not that of a, which the store has; a "
                 "value of the data that equals it stops the run",
     .variable = {"v: int16 t*=2 fill -8 | a 0+1>0 b 0+1>1 checks fill"}},
    {"the same number in a wider type",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .fill = "-9"}}},
      {"b", .var = {STEP(1), {"v", "int32", "t*=1", .fill = "-9"}}}},
     .variable = {"v: int32 t*=2 fill -9 | a 0+1>0 from int16 fill -9 b 0+1>1"}},
    {"one that the joined type does not have is not taken",
     {{"a", .var = {STEP(0), {"v", "int64", "t*=1", .fill = "9007199254740993"}}},
      {"b", .var = {STEP(1), {"v", "float32", "t*=1", .fill = "-9"}}}},
     {.dtype = TEXTS("v:float64")},
     .variable = {"v: float64 t*=2 fill -9 | a 0+1>0 from int64 exactly fill 9007199254740993 b "
                  "0+1>1 from float32 exactly fill -9"}},
    {"none that the joined type has: the type's own",
     {{"a", .var = {STEP(0), {"v", "int64", "t*=1", .fill = "9007199254740993"}}},
      {"b", .var = {STEP(1), {"v", "float32", "t*=1"}}}},
     {.dtype = TEXTS("v:float64")},
     .variable = {"v: float64 t*=2 fill nan | a 0+1>0 from int64 exactly fill 9007199254740993 b "
                  "0+1>1 from float32 exactly"}},
    {"asked for",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .fill = "-9"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1", .fill = "-8"}}}},
     {.fill_value = TEXTS("v:-7")},
     .variable = {"v: int16 t*=2 fill -7 | a 0+1>0 fill -9 b 0+1>1 fill -8"}},
    {"asked for where files agree: it is for the conversion",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .fill = "-9"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1", .fill = "-9"}}}},
     {.fill_value = TEXTS("v:-7")},
     .variable = {"v: int16 t*=2 fill -9 | a 0+1>0 b 0+1>1"}},
    {"asked for, and no value of the type",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .fill = "-9"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1", .fill = "-8"}}}},
     {.fill_value = TEXTS("v:70000")},
     .variable = {"v: int16 t*=2 fill -9 | a 0+1>0 b 0+1>1 fill -8"}},
    {"of a variable that a file lacks",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .fill = "-9"}}},
      {"b", .var = {STEP(1), {"w", "int16", "t*=1"}}}},
     {.fill_missing = true},
     .findings = "warning missing v b: the variable is missing; it is filled\n"
                 "warning missing w a: the variable is missing; it is filled",
     .variable = {"v: int16 t*=2 fill -9 | a 0+1>0",
                  "w: int16 t*=2 fill -32767 | b 0+1>1 checks fill"}},
    {"and is not to be filled",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .fill = "-9"}}}, {"b", .var = {STEP(1)}}},
     .findings = "decision missing v b: the variable is missing"},
    {"numbers that one file calls missing",
     {{"a", .var = {STEP(0), {"v", "int16", "t*=1", .attrs = "{'missing_value': -9}"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1", .attrs = "{'missing_value': -8}"}}}},
     .findings = "decision missing-value v b: missing_value is -8, and -9 in a"},
    {"two ways to say that a number is missing",
     {{"a",
       .var = {STEP(0), {"v", "int16", "t*=1", .fill = "-9", .attrs = "{'missing_value': -9}"}}},
      {"b", .var = {STEP(1), {"v", "int16", "t*=1", .fill = "-9"}}}},
     .findings = "",
     .variable = {"v: int16 t*=2 fill -9 {'missing_value':-9} | a 0+1>0 b 0+1>1"}},
};

static void types(void **state)
{
    (void)state;
    joined_try(TYPES, COUNT(TYPES));
}

static void fill_values(void **state)
{
    (void)state;
    joined_try(FILLS, COUNT(FILLS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(types), cmocka_unit_test(fill_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
