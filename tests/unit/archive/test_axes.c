/* Which dimensions are joined, in which order their steps lie, and which file gives which. */

#include "archive/axes/coordinate.h"
#include "archive_fixture.h"

/* A grid of two points, and a field on it. */
#define GRID(y)                                                                                    \
    {"y", "float64", "y=2", .values = y},                                                          \
    {                                                                                              \
        "v", "float32", "t*=1 y=2"                                                                 \
    }

#define T(n, list)                                                                                 \
    {                                                                                              \
        "t", "int32", "t*=" n, .values = list                                                      \
    }
#define V(n)                                                                                       \
    {                                                                                              \
        "v", "float32", "t*=" n                                                                    \
    }
#define DAYS(date, n, list)                                                                        \
    {                                                                                              \
        "t", "int32", "t*=" n, .values = list, .attrs = "{'units': 'days since " date "'}"         \
    }

#define NANOSECONDS(list)                                                                          \
    {                                                                                              \
        "t", "int64", "t*=2", .values = list, .attrs = "{'units': 'nanoseconds since 2000-01-01'}" \
    }

static const joined_row ORDER[] = {
    {"instants of which microseconds say enough",
     {{"a", .var = {NANOSECONDS("2500 4001"), V("2")}},
      {"b", .var = {NANOSECONDS("1 1999"), V("2")}}},
     .axes = "t: 2000-01-01T00:00:00 2000-01-01T00:00:00.000001 "
             "2000-01-01T00:00:00.000002 2000-01-01T00:00:00.000004 | a 0+2>2 b 0+2>0"},
    {"the order is that of coordinates, whatever the names of files",
     {{"a", .var = {T("2", "7 8"), V("2")}},
      {"b", .var = {T("2", "1 2"), V("2")}},
      {"c", .var = {T("3", "3 4 5"), V("3")}}},
     .axes = "t: 1 2 3 4 5 7 8 | a 0+2>5 b 0+2>0 c 0+3>2",
     .variable = {"v: float32 t*=7 | b 0+2>0 c 0+3>2 a 0+2>5"}},
    {"coordinates that descend",
     {{"a", .var = {T("2", "2 1"), V("2")}}, {"b", .var = {T("2", "4 3"), V("2")}}},
     .axes = "t: 4 3 2 1 | a 0+2>2 b 0+2>0",
     .variable = {"v: float32 t*=4 | b 0+2>0 a 0+2>2"}},
    {"one element has no direction",
     {{"a", .var = {T("1", "9"), V("1")}}, {"b", .var = {T("2", "8 7"), V("2")}}},
     .axes = "t: 9 8 7 | a 0+1>0 b 0+2>1"},
    {"by name",
     {{"a", .var = {T("2", "7 8"), V("2")}}, {"b", .var = {T("2", "1 2"), V("2")}}},
     {.order = CM_ORDER_NAME},
     .axes = "t: 7 8 1 2 | a 0+2>0 b 0+2>2"},
    {"as given",
     {{"a", .var = {T("2", "1 2"), V("2")}}, {"b", .var = {T("2", "7 8"), V("2")}}},
     {.order = CM_ORDER_GIVEN},
     .axes = "t: 7 8 1 2 | a 0+2>2 b 0+2>0"},
    {"times are ordered by their dates, not by their numbers",
     {{"a", .var = {DAYS("2001-01-01", "2", "0 1"), V("2")}},
      {"b", .var = {DAYS("2000-12-30", "2", "0 1"), V("2")}}},
     .axes = "t: 2000-12-30T00:00:00 2000-12-31T00:00:00 2001-01-01T00:00:00 2001-01-02T00:00:00 | "
             "a 0+2>2 b 0+2>0",
     .variable = {"t: int32 t*=4 = -2 -1 0 1 {'units':'days since 2001-01-01'} |"}},
    {"integers and floating-point numbers are one axis",
     {{"a", .var = {{"t", "float64", "t*=2", .values = "0.5 2.5"}, V("2")}},
      {"b", .var = {T("2", "3 4"), V("2")}}},
     .axes = "t: 0.5 2.5 3.0 4.0 | a 0+2>0 b 0+2>2"},
    {"negative numbers lie before others",
     {{"a", .var = {{"t", "float64", "t*=2", .values = "0 1.5"}, V("2")}},
      {"b", .var = {{"t", "float64", "t*=2", .values = "-2.5 -0.25"}, V("2")}}},
     .axes = "t: -2.5 -0.25 0.0 1.5 | a 0+2>2 b 0+2>0"},
    {"texts are a coordinate of a dimension that may grow",
     {{"a", .var = {{"name", "char", "t*=2 n=3", .values = "foogoo"}, V("2")}},
      {"b", .var = {{"name", "char", "t*=1 n=3", .values = "bar"}, V("1")}}},
     .axes = "t: bar foo goo | a 0+2>1 b 0+1>0"},
    {"a text that two files share tells no step from another",
     {{"a", .var = {{"name", "char", "t*=2 n=3", .values = "barfoo"}, V("2")}},
      {"b", .var = {{"name", "char", "t*=3 n=3", .values = "foogoohoo"}, V("3")}}},
     .axes = "t: 0 1 2 3 4 | a 0+2>0 b 0+3>2",
     .findings = "warning coordinate name b: its texts are not those of one file each, so that it "
                 "does not say how files follow each other along t"},
    {"an unlimited dimension without a coordinate: files follow each other",
     {{"a", .var = {V("2")}}, {"b", .var = {V("3")}}},
     {.along = "t"},
     .axes = "t: 0 1 2 3 4 | a 0+2>0 b 0+3>2",
     .variable = {"v: float32 t*=5 | a 0+2>0 b 0+3>2"}},
    {"a file without steps has no part",
     {{"a", .var = {T("2", "0 1"), V("2")}},
      {"b", .var = {T("0", ""), V("0")}},
      {"c", .var = {T("1", "2"), V("1")}}},
     .axes = "t: 0 1 2 | a 0+2>0 c 0+1>2",
     .findings = ""},
};

static const joined_row OVERLAPS[] = {
    {"the end of one is the begin of the next",
     {{"a", .var = {T("3", "0 1 2"), V("3")}}, {"b", .var = {T("3", "2 3 4"), V("3")}}},
     .axes = "t: 0 1 2 3 4 | a 0+3>0 b 0+3>2",
     .checks = "v a 2+1>2 b 0+1>2",
     .variable = {"v: float32 t*=5 | a 0+3>0 b 1+2>3"}},
    {"the first has steps that both have",
     {{"a", .var = {T("3", "0 1 2"), V("3")}}, {"b", .var = {T("3", "1 2 3"), V("3")}}},
     {.overlap = CM_OVERLAP_FIRST},
     .checks = "v a 1+2>1 b 0+2>1 may differ",
     .variable = {"v: float32 t*=4 | a 0+3>0 b 2+1>3"}},
    {"the last has them",
     {{"a", .var = {T("3", "0 1 2"), V("3")}}, {"b", .var = {T("3", "1 2 3"), V("3")}}},
     {.overlap = CM_OVERLAP_LAST},
     .variable = {"v: float32 t*=4 | a 0+1>0 b 0+3>1"}},
    {"the last given has them: files were given from the last to the first",
     {{"a", .var = {T("3", "0 1 2"), V("3")}}, {"b", .var = {T("3", "1 2 3"), V("3")}}},
     {.overlap = CM_OVERLAP_LAST, .order = CM_ORDER_GIVEN},
     .variable = {"v: float32 t*=4 | a 0+3>0 b 2+1>3"}},
    {"within another",
     {{"a", .var = {T("5", "0 1 2 3 4"), V("5")}}, {"b", .var = {T("2", "2 3"), V("2")}}},
     {.overlap = CM_OVERLAP_LAST},
     .axes = "t: 0 1 2 3 4 | a 0+5>0 b 0+2>2",
     .variable = {"v: float32 t*=5 | a 0+2>0 b 0+2>2 a 4+1>4"}},
    {"copies of the same steps",
     {{"a", .var = {T("2", "0 1"), V("2")}}, {"b", .var = {T("2", "0 1"), V("2")}}},
     .axes = "t: 0 1 | a 0+2>0 b 0+2>0",
     .checks = "v a 0+2>0 b 0+2>0"},
    {"every second step",
     {{"a", .var = {T("3", "0 2 4"), V("3")}}, {"b", .var = {T("2", "1 3"), V("2")}}},
     .findings =
         "decision coordinate t b: 1 in b lies between 0 and 4 in a, which has no such step"},
    {"dates between those of another",
     {{"a", .var = {DAYS("2000-01-01", "2", "0 4"), V("2")}},
      {"b", .var = {DAYS("2000-01-01", "1", "2"), V("1")}}},
     .findings = "decision interleaved t b: 2000-01-03T00:00:00 in b lies between "
                 "2000-01-01T00:00:00 and 2000-01-05T00:00:00 in a, which has no such step"},
    {"in the order of files a step would be there twice",
     {{"a", .var = {T("2", "0 1"), V("2")}}, {"b", .var = {T("2", "1 2"), V("2")}}},
     {.order = CM_ORDER_NAME},
     .findings = "decision overlap t b: 1 step is in more than one file, the first 1 (a has it "
                 "too), and would be there twice in this order"},
};

static const joined_row REFUSED[] = {
    {"the other way",
     {{"a", .var = {T("2", "0 1"), V("2")}}, {"b", .var = {T("2", "3 2"), V("2")}}},
     .findings =
         "decision direction t b: its values run the other way than those of the files before"},
    {"neither up nor down",
     {{"a", .var = {T("2", "0 1"), V("2")}}, {"b", .var = {T("3", "2 4 3"), V("3")}}},
     .findings = "decision coordinate t b: its values neither rise nor fall throughout: element 2 "
                 "is 3, behind 4"},
    {"twice the same step in one file",
     {{"a", .var = {T("2", "0 1"), V("2")}}, {"b", .var = {T("3", "2 3 3"), V("3")}}},
     .findings = "decision coordinate t b: its values neither rise nor fall throughout: element 2 "
                 "is 3, behind 3"},
    {"a missing coordinate",
     {{"a", .var = {T("2", "0 1"), V("2")}},
      {"b", .var = {{"t", "int32", "t*=2", .values = "2 -9", .fill = "-9"}, V("2")}}},
     .findings = "note fill-value t b: it has a fill value, and none in a; the store has one, and "
                 "a value of the data that equals it stops the run\n"
                 "decision coordinate t b: element 1 is missing, so that its step has no place"},
    {"a coordinate that is no number",
     {{"a", .var = {{"t", "float64", "t*=2", .values = "0 1"}, V("2")}},
      {"b", .var = {{"t", "float64", "t*=2", .values = "2 NaN"}, V("2")}}},
     .findings =
         "decision coordinate t b: element 1 is not a number, so that its step has no place"},
    {"no coordinate where others have one",
     {{"a", .var = {T("2", "0 1"), V("2")}}, {"b", .var = {V("3")}}},
     .findings = "decision coordinate t b: its 3 steps have no coordinate, which other files have, "
                 "and so no place"},
    {"no coordinate, and two files of its length have different ones",
     {{"a", .var = {T("2", "0 1"), V("2")}},
      {"b", .var = {T("2", "2 3"), V("2")}},
      {"c", .var = {V("2")}}},
     .findings = "decision coordinate t c: its 2 steps have no coordinate, which other files have, "
                 "and so no place"},
    {"instants within a microsecond",
     {{"a", .var = {NANOSECONDS("0 1000"), V("2")}},
      {"b", .var = {NANOSECONDS("2500 4000"), V("2")}},
      {"c", .var = {NANOSECONDS("4001 6000"), V("2")}}},
     .error = "c: t: two instants, here and in b, are less than a microsecond apart, and cannot be "
              "put in order"},
    {"a grid of another length without a coordinate",
     {{"a", .var = {T("1", "0"), {"v", "float32", "t*=1 y=2"}}},
      {"b", .var = {T("1", "1"), {"v", "float32", "t*=1 y=3"}}}},
     .findings = "decision length y b: the dimension has 3 elements, 2 in a, and no coordinate "
                 "that says which"},
    {"a grid that is another",
     {{"a", .var = {T("1", "0"), GRID("0 1")}}, {"b", .var = {T("1", "1"), GRID("0.75 1.75")}}},
     .findings = "decision coordinate y b: its values are not those of a"},
    {"a grid that is the same, computed otherwise",
     {{"a", .var = {T("1", "0"), GRID("0 1")}}, {"b", .var = {T("1", "1"), GRID("0 1.125")}}},
     .findings = "decision coordinate y b: its values differ from those of a by up to 0.125"},
    {"and within the tolerance",
     {{"a", .var = {T("1", "0"), GRID("0 1")}}, {"b", .var = {T("1", "1"), GRID("0 1.125")}}},
     {.tolerance = 0.125},
     .axes = "t: 0 1 | a 0+1>0 b 0+1>1",
     .findings = "warning coordinate y b: its values differ from those of a by up to 0.125; those "
                 "of the first file are taken",
     .variable = {"y: float64 y=2 | a"}},
    {"no dimension of that name",
     {{"a", .var = {T("1", "0"), V("1")}}, {"b", .var = {T("1", "1"), V("1")}}},
     {.along = "z"},
     .error = "`along` z: no file has such a dimension"},
    {"nothing says how files follow each other",
     {{"a", .var = {{"v", "float32", "y=2"}}}, {"b", .var = {{"v", "float32", "y=2"}}}},
     .findings = "decision along b: it holds the same variables as a, and no coordinate says how "
                 "they follow each other"},
    {"some files have no elements along a dimension that is not joined",
     {{"a", .var = {T("1", "0"), {"v", "float32", "t*=1 y=2"}}},
      {"b", .var = {T("1", "1"), {"v", "float32", "t*=1 y=0"}}}},
     .findings = "decision length y b: the dimension has 0 elements, 2 in a"},
};

static const joined_row TWO[] = {
    {"tiles of two dimensions",
     {{"a",
       .var = {T("1", "0"), {"x", "int32", "x=2", .values = "0 1"}, {"v", "float32", "t*=1 x=2"}}},
      {"b",
       .var = {T("1", "0"), {"x", "int32", "x=1", .values = "2"}, {"v", "float32", "t*=1 x=1"}}},
      {"c",
       .var = {T("1", "1"), {"x", "int32", "x=2", .values = "0 1"}, {"v", "float32", "t*=1 x=2"}}},
      {"d",
       .var = {T("1", "1"), {"x", "int32", "x=1", .values = "2"}, {"v", "float32", "t*=1 x=1"}}}},
     .axes = "t: 0 1 | a 0+1>0 b 0+1>0 c 0+1>1 d 0+1>1; x: 0 1 2 | a 0+2>0 b 0+1>2 c 0+2>0 d 0+1>2",
     .findings = "",
     .variable =
         {"v: float32 t*=2 x*=3 | a 0+1>0 0+2>0 b 0+1>0 0+1>2 c 0+1>1 0+2>0 d 0+1>1 0+1>2"}},
    {"a tile that no file has",
     {{"a",
       .var = {T("1", "0"), {"x", "int32", "x=2", .values = "0 1"}, {"v", "float32", "t*=1 x=2"}}},
      {"b",
       .var = {T("1", "0"), {"x", "int32", "x=1", .values = "2"}, {"v", "float32", "t*=1 x=1"}}},
      {"c",
       .var = {T("1", "1"), {"x", "int32", "x=2", .values = "0 1"}, {"v", "float32", "t*=1 x=2"}}}},
     .findings = "decision holes v: t and x make a rectangle of which 1 place is in no file, the "
                 "first t 1, x 2"},
    {"rows that go on in one file are one part",
     {{"a",
       .var = {T("2", "0 1"), {"x", "int32", "x=1", .values = "0"}, {"v", "float32", "t*=2 x=1"}}},
      {"b",
       .var = {T("2", "0 1"), {"x", "int32", "x=1", .values = "1"}, {"v", "float32", "t*=2 x=1"}}}},
     .variable = {"v: float32 t*=2 x*=2 | a 0+1>0 b 0+1>1"}},
    {"a file that gives some rows to another is more than one part",
     {{"a", .var = {T("3", "0 1 2"),
                    {"x", "int32", "x=1", .values = "0"},
                    {"v", "float32", "t*=3 x=1"}}},
      {"b",
       .var = {T("1", "1"), {"x", "int32", "x=1", .values = "0"}, {"v", "float32", "t*=1 x=1"}}},
      {"c", .var = {T("3", "0 1 2"),
                    {"x", "int32", "x=1", .values = "1"},
                    {"v", "float32", "t*=3 x=1"}}}},
     {.overlap = CM_OVERLAP_LAST},
     .variable = {"v: float32 t*=3 x*=2 | a 0+1>0 0+1>0 c 0+2>0 0+1>1 b 0+1>1 0+1>0 a 2+1>2 0+1>0 "
                  "c 2+1>2 0+1>1"}},
    {"variables of files are merged where nothing differs",
     {{"a", .var = {T("2", "0 1"), {"v", "float32", "t*=2"}}},
      {"b", .var = {T("2", "0 1"), {"w", "float32", "t*=2"}}}},
     .axes = "",
     .findings = "",
     .variable = {"v: float32 t*=2 | a", "w: float32 t*=2 | b"}},
};

static void order(void **state)
{
    (void)state;
    joined_try(ORDER, COUNT(ORDER));
}

static void overlaps(void **state)
{
    (void)state;
    joined_try(OVERLAPS, COUNT(OVERLAPS));
}

static void refused(void **state)
{
    (void)state;
    joined_try(REFUSED, COUNT(REFUSED));
}

static void two_dimensions(void **state)
{
    (void)state;
    joined_try(TWO, COUNT(TWO));
}

/* The order of keys is that of numbers, and each is its number again. */
static void keys_of_numbers(void **state)
{
    static const double X[] = {-1e308, -2.5, -1, -1e-300, 0, 1e-300, 0.5, 1, 3e307};
    (void)state;
    for (size_t i = 0; i < COUNT(X); i++) {
        assert_true(cm_key_real(cm_key_of_real(X[i])) == X[i]);
        assert_true(i == 0 || cm_key_of_real(X[i - 1]) < cm_key_of_real(X[i]));
    }
    assert_true(cm_key_of_real(-0.0) == cm_key_of_real(0.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(order), cmocka_unit_test(overlaps),
                                       cmocka_unit_test(refused), cmocka_unit_test(two_dimensions),
                                       cmocka_unit_test(keys_of_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
