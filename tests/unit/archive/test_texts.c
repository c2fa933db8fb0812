/* Texts of other lengths, and of lengths with other names. */

#include "archive_fixture.h"

static const joined_row ROWS[] = {
    {"of one length",
     {{"a", .var = {STEP(0), {"name", "char", "t*=1 n=3", .values = "abc"}}},
      {"b", .var = {STEP(1), {"name", "char", "t*=1 n=3", .values = "xyz"}}}},
     .findings = "",
     .variable = {"name: char t*=2 n=3 | a 0+1>0 b 0+1>1"}},
    {"of two lengths: the longer, whichever file has it",
     {{"a", .var = {STEP(0), {"name", "char", "t*=1 n=2", .values = "ab"}}},
      {"b", .var = {STEP(1), {"name", "char", "t*=1 n=3", .values = "xyz"}}}},
     .findings = "note type name b: its texts are 3 characters long, and 2 in a; they are filled "
                 "up with NULs to 3",
     .variable = {"name: char t*=2 n=3 | a 0+1>0 width 2 b 0+1>1"}},
    {"the first is the longer",
     {{"a", .var = {STEP(0), {"name", "char", "t*=1 n=4", .values = "abcd"}}},
      {"b", .var = {STEP(1), {"name", "char", "t*=1 n=3", .values = "xyz"}}}},
     .findings = "note type name b: its texts are 3 characters long, and 4 in a; they are filled "
                 "up with NULs to 4",
     .variable = {"name: char t*=2 n=4 | a 0+1>0 b 0+1>1 width 3"}},
    {"other names of the length",
     {{"a", .var = {STEP(0), {"name", "char", "t*=1 n=3", .values = "abc"}}},
      {"b", .var = {STEP(1), {"name", "char", "t*=1 len=3", .values = "xyz"}}}},
     .findings = "note dimensions name b: the length of its texts is called len, and n in a",
     .variable = {"name: char t*=2 n=3 | a 0+1>0 b 0+1>1"}},
    {"another name and another length",
     {{"a", .var = {STEP(0), {"name", "char", "t*=1 n=2", .values = "ab"}}},
      {"b", .var = {STEP(1), {"name", "char", "t*=1 len=3", .values = "xyz"}}}},
     .findings = "note type name b: its texts are 3 characters long, and 2 in a; they are filled "
                 "up with NULs to 3",
     .variable = {"name: char t*=2 len=3 | a 0+1>0 width 2 b 0+1>1"}},
    {"two variables share a length",
     {{"a", .var = {STEP(0),
                    {"name", "char", "t*=1 n=2", .values = "ab"},
                    {"other", "char", "t*=1 n=2", .values = "cd"}}},
      {"b", .var = {STEP(1),
                    {"name", "char", "t*=1 n=3", .values = "xyz"},
                    {"other", "char", "t*=1 n=3", .values = "uvw"}}}},
     .findings = "note type name b: its texts are 3 characters long, and 2 in a; they are filled "
                 "up with NULs to 3\n"
                 "note type other b: its texts are 3 characters long, and 2 in a; they are filled "
                 "up with NULs to 3",
     .variable = {"name: char t*=2 n=3 | a 0+1>0 width 2 b 0+1>1",
                  "other: char t*=2 n=3 | a 0+1>0 width 2 b 0+1>1"}},
    {"a length that numbers have too is a dimension",
     {{"a", .var = {STEP(0), {"name", "char", "t*=1 n=2", .values = "ab"}, {"v", "int8", "n=2"}}},
      {"b", .var = {STEP(1), {"name", "char", "t*=1 n=3", .values = "xyz"}, {"v", "int8", "n=3"}}}},
     .findings = "decision length n b: the dimension has 3 elements, 2 in a, and no coordinate "
                 "that says which"},
    {"nor one that other characters have in another place",
     {{"a",
       .var = {STEP(0), {"name", "char", "t*=1 n=2", .values = "ab"}, {"v", "char", "n=2 m=1"}}},
      {"b",
       .var = {STEP(1), {"name", "char", "t*=1 n=3", .values = "xyz"}, {"v", "char", "n=3 m=1"}}}},
     .findings = "decision length n b: the dimension has 3 elements, 2 in a, and no coordinate "
                 "that says which"},
    {"texts without a joined dimension that differ",
     {{"a", .var = {STEP(0), {"name", "char", "n=2", .values = "ab"}}},
      {"b", .var = {STEP(1), {"name", "char", "n=3", .values = "abc"}}}},
     .findings = "note type name b: its texts are 3 characters long, and 2 in a; they are filled "
                 "up with NULs to 3\n"
                 "decision static name b: its values are not those of a: element 0 is \"abc\", and "
                 "\"ab\" there"},
    {"texts that differ in what fills them up",
     {{"a", .var = {STEP(0), {"name", "char", "n=2", .values = "ab"}}},
      {"b", .var = {STEP(1), {"name", "char", "n=4", .values = "ab\0"}}}},
     .findings = "note type name b: its texts are 4 characters long, and 2 in a; they are filled "
                 "up with NULs to 4",
     .variable = {"name: char n=4 | a width 2"}},
};

static void texts(void **state)
{
    (void)state;
    joined_try(ROWS, COUNT(ROWS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
