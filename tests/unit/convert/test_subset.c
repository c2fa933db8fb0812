/* Which elements of which type: ranges by index and by coordinate, casts, unpacking, characters. */

#include "job_fixture.h"

static const made_file GRID = {
    "f", .var = {{"t", "int32", "t*=6", .attrs = "{'units': 'days since 2000-01-30'}"},
                 {"y", "float32", "y=4", .values = "30.1 20 10 0"},
                 {"p", "int16", "p=3", .values = "1 2 -9", .fill = "-9",
                  .attrs = "{'scale_factor': 0.5}"},
                 {"v", "float32", "t*=6 y=4"},
                 {"w", "int16", "y=4 p=3"},
                 {"c", "char", "t*=6 n=3"}}};
static const made_file PACKED = {
    "f", .var = {{"y", "float64", "y=2", .attrs = "{'bounds': 'yb'}"},
                 {"yb", "float64", "y=2 n=2"},
                 {"v", "int16", "y=2 x=3", .fill = "-1", .attrs = "{'scale_factor': 0.5}"},
                 {"w", "float64", "y=2 x=3", .fill = "1e30"}}};

#define ONE(name) .variable = TEXTS(name), .defaults = CM_DEFAULTS_KEEP
static const planned_row INDICES[] = {
    {"all of it", {ONE("v")}, .views = "v: float32 6,4"},
    {"from and to",
     {ONE("v"), .subset = TEXTS("t=1:4")},
     .views = "v: float32 3,4 from 1,0 by 1,1"},
    {"from the end",
     {ONE("v"), .subset = TEXTS("t=-2:")},
     .views = "v: float32 2,4 from 4,0 by 1,1"},
    {"to the end", {ONE("v"), .subset = TEXTS("t=:-1")}, .views = "v: float32 5,4 from 0,0 by 1,1"},
    {"every second",
     {ONE("v"), .subset = TEXTS("t=1::2")},
     .views = "v: float32 3,4 from 1,0 by 2,1"},
    {"every fourth but the last",
     {ONE("v"), .subset = TEXTS("t=0:5:4")},
     .views = "v: float32 2,4 from 0,0 by 4,1"},
    {"one has no step",
     {ONE("v"), .subset = TEXTS("t=5::3")},
     .views = "v: float32 1,4 from 5,0 by 1,1"},
    {"past the end",
     {ONE("v"), .subset = TEXTS("t=4:99")},
     .views = "v: float32 2,4 from 4,0 by 1,1"},
    {"of two dimensions",
     {ONE("v"), .subset = TEXTS("t=0:2", "y=1:2")},
     .views = "v: float32 2,1 from 0,1 by 1,1"},
    {"of every variable that has it",
     {.subset = TEXTS("y=1:3")},
     .views = "t: int32 6; y: float32 2 from 1 by 1; p: int16 3; v: float32 6,2 from 0,1 by 1,1; "
              "w: int16 2,3 from 1,0 by 1,1; c: bytes1 6,3"},
    {"nothing",
     {ONE("v"), .subset = TEXTS("t=3:3")},
     .error = "`subset` t=3:3: selects none of the dimension's 6"},
    {"a step of nothing",
     {ONE("v"), .subset = TEXTS("t=0:3:0")},
     .error = "`subset` t=0:3:0: the step must be a positive integer"},
    {"no number",
     {ONE("v"), .subset = TEXTS("t=a:3")},
     .error = "`subset` t=a:3: \"a\" is not an integer"},
    {"no range",
     {ONE("v"), .subset = TEXTS("t=3")},
     .error = "`subset` t=3: write START:STOP or FROM..TO after the '='"},
    {"no dimension",
     {ONE("v"), .subset = TEXTS("p=0:1")},
     .error = "`subset` p=0:1: no chosen variable has a dimension p"},
    {"no text of an option",
     {ONE("v"), .subset = TEXTS("t")},
     .error = "`subset` t: not of the form DIM=RANGE"},
};

static const planned_row VALUES[] = {
    {"numbers, both ends counted",
     {ONE("v"), .subset = TEXTS("y=10..20")},
     .views = "v: float32 6,2 from 0,1 by 1,1"},
    {"in either direction",
     {ONE("v"), .subset = TEXTS("y=20..10")},
     .views = "v: float32 6,2 from 0,1 by 1,1"},
    {"a decimal that float32 does not hold",
     {ONE("v"), .subset = TEXTS("y=30.1..40")},
     .views = "v: float32 6,1 from 0,0 by 1,1"},
    {"open at one end",
     {ONE("v"), .subset = TEXTS("y=..5")},
     .views = "v: float32 6,1 from 0,3 by 1,1"},
    {"as they are unpacked, without what is missing",
     {ONE("w"), .subset = TEXTS("p=-9..1")},
     .views = "w: int16 4,2 from 0,0 by 1,1"},
    {"a month",
     {ONE("v"), .subset = TEXTS("t=2000-02..2000-02")},
     .views = "v: float32 4,4 from 2,0 by 1,1"},
    {"a day",
     {ONE("v"), .subset = TEXTS("t=2000-01-31..2000-02-01")},
     .views = "v: float32 2,4 from 1,0 by 1,1"},
    {"none there",
     {ONE("v"), .subset = TEXTS("y=50..60")},
     .error = "`subset` y=50..60: no coordinate lies in that range"},
    {"no number of the coordinate's",
     {ONE("v"), .subset = TEXTS("y=a..b")},
     .error = "`subset` y=a..b: \"a\" is not a number"},
    {"no coordinate",
     {ONE("c"), .subset = TEXTS("n=0..1")},
     .error = "`subset` n=0..1: dimension n has no numeric coordinate variable"},
};

static const planned_row TYPES[] = {
    {"characters stay", {ONE("c")}, .views = "c: bytes1 6,3"},
    {"strings", {ONE("c"), .char_mode = CM_CHAR_JOIN}, .views = "c: string 6"},
    {"numbers of characters", {ONE("c"), .char_mode = CM_CHAR_UINT8}, .views = "c: uint8 6,3"},
    {"one type for all fields, not for coordinates",
     {.dtype = TEXTS("float32")},
     .file = &PACKED,
     .views = "y: float64 2; yb: float64 2,2; v: float32 2,3; w: float32 2,3"},
    {"for one by its name",
     {.dtype = TEXTS("y:float32")},
     .file = &PACKED,
     .views = "y: float32 2; yb: float64 2,2; v: int16 2,3; w: float64 2,3"},
    {"unpacked as xarray does",
     {.unpack = TEXTS("all")},
     .file = &PACKED,
     .views = "y: float64 2; yb: float64 2,2; v: float64 2,3; w: float64 2,3"},
    {"unpacked in a type",
     {.unpack = TEXTS("v"), .dtype = TEXTS("v:float64")},
     .file = &PACKED,
     .views = "y: float64 2; yb: float64 2,2; v: float64 2,3; w: float64 2,3"},
    {"one that is not packed",
     {.unpack = TEXTS("w")},
     .file = &PACKED,
     .error = "`unpack` w: the variable has neither scale_factor nor add_offset"},
    {"a missing value that the type has not",
     {.dtype = TEXTS("w:int32")},
     .file = &PACKED,
     .error = "variable w: int32 has nothing to stand for its missing value 1e+30; a floating "
              "point `dtype` has"},
    {"text is no number",
     {.dtype = TEXTS("c:float32")},
     .error = "`dtype` c: variable c holds text, not numbers"},
    {"no type",
     {.dtype = TEXTS("v:float31")},
     .error = "`dtype` float31: 'float31' is not a type: write bool, int8 to int64, uint8 to "
              "uint64, float16 to float64, complex64, complex128 or string"},
    {"no bits", {.keepbits = TEXTS("v:0")}, .error = "`keepbits` 0: must be from 1 to 52"},
    {"another variable's",
     {.keepbits = TEXTS("x:3")},
     .error = "`keepbits` x: no chosen variable is named x"},
};

static void by_index(void **state)
{
    (void)state;
    planned_try(INDICES, COUNT(INDICES), &GRID, STEP_VIEW);
}

static void by_value(void **state)
{
    (void)state;
    planned_try(VALUES, COUNT(VALUES), &GRID, STEP_VIEW);
}

static void types(void **state)
{
    (void)state;
    planned_try(TYPES, COUNT(TYPES), &GRID, STEP_VIEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_index), cmocka_unit_test(by_value),
                                       cmocka_unit_test(types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
