/* Chunks and shards of each variable: what was asked for, what is best, and what the source has. */

#include "job_fixture.h"

#define ONE(name) .variable = TEXTS(name)
/* 1 MiB a step. */
static const made_file LARGE = {"f",
                                .var = {{"t", "int32", "t*=3"},
                                        {"y", "float32", "y=1024"},
                                        {"v", "float32", "t*=3 y=1024 x=256", .chunk = "1 64 256"},
                                        {"s", "float32", ""}}};
static const made_file SMALL = {"f", .var = {{"t", "int32", "t*=10"},
                                             {"v", "int16", "t*=10 y=6 x=7", .chunk = "3 6 4"},
                                             {"w", "int16", "t*=10 y=6"}}};

static const planned_row CHUNKS[] = {
    {"up to 4 MiB are one chunk, and coordinates are whole", .file = &LARGE,
     .layouts = "t: 3; y: 1024; v: 3,1024,256; s:"},
    {"of a size",
     {ONE("v"), .chunks = TEXTS("auto:1MiB")},
     .file = &LARGE,
     .layouts = "t: 3; y: 1024; v: 1,1024,256"},
    {"small",
     {ONE("v"), .chunks = TEXTS("auto:64KiB")},
     .file = &LARGE,
     .layouts = "t: 3; y: 1024; v: 1,256,64"},
    {"by dimension, the rest chosen",
     {ONE("v"), .chunks = TEXTS("t=1,y=128")},
     .file = &LARGE,
     .layouts = "t: 3; y: 1024; v: 1,128,256"},
    {"by place", {ONE("v"), .chunks = TEXTS("v:2x3x5")}, .layouts = "t: 10; v: 2,3,5"},
    {"whole dimensions", {ONE("v"), .chunks = TEXTS("v:2x6x7")}, .layouts = "t: 10; v: 2,6,7"},
    {"for all that it fits", {.chunks = TEXTS("y=2")}, .layouts = "t: 10; v: 10,2,7; w: 10,2"},
    {"for one by name, and for the others",
     {.chunks = TEXTS("y=2", "w:y=3")},
     .layouts = "t: 10; v: 10,2,7; w: 10,3"},
    {"past the end is the end",
     {ONE("v"), .chunks = TEXTS("x=100")},
     .layouts = "t: 10; v: 10,6,7"},
    {"but where it grows", {ONE("v"), .chunks = TEXTS("t=12")}, .layouts = "t: 10; v: 12,6,7"},
    {"the source's", {.chunks = TEXTS("source")}, .layouts = "t: 10; v: 3,6,4; w: 10,6"},
    {"what rechunk leaves", {.defaults = CM_DEFAULTS_KEEP}, .layouts = "t: 10; v: 3,6,4; w: 10,6"},
    {"the source's of a part",
     {.defaults = CM_DEFAULTS_KEEP, ONE("v"), .subset = TEXTS("t=0:2")},
     .layouts = "v: 2,6,4"},
    {"the source's of every second",
     {.defaults = CM_DEFAULTS_KEEP, ONE("v"), .subset = TEXTS("t=::2", "x=::3")},
     .layouts = "v: 1,6,1"},
    {"no dimension of that name",
     {.chunks = TEXTS("z=2")},
     .error = "`chunks` z=2: no chosen variable has a dimension z"},
    {"too many lengths for one",
     {.chunks = TEXTS("w:1x2x3")},
     .error = "`chunks` 1x2x3: variable w has 2 dimensions, not 3"},
    {"nothing is no length",
     {.chunks = TEXTS("v:0x1x1")},
     .error = "`chunks`: shape 0x1x1: \"0\" is not a length: use a positive integer, full, -1 or "
              "source"},
    {"there is no none",
     {.chunks = TEXTS("none")},
     .error = "`chunks` none: there is auto, source or a shape"},
    {"another variable's",
     {.chunks = TEXTS("x:1x2x3")},
     .error = "`chunks` x:1x2x3: no chosen variable is named x"},
    {"more chunks than anybody counts",
     {ONE("v"), .memory = 1 << 16, .chunks = TEXTS("1x1x1")},
     .file = &LARGE,
     .error = "variable v: 786432 chunks are more than the memory can keep account of; choose "
              "larger `chunks`"},
    {"a codec that keeps what lies there, in other chunks",
     {ONE("v"), .codec = TEXTS("keep"), .chunks = TEXTS("v:1x1x1")},
     .error = "`chunks` 1x1x1: variable v has `codec` keep, which keeps the file's chunks; leave "
              "out one of the two"},
    {"and no sample where all is said",
     {ONE("v"), .sample = "t=1", .chunks = TEXTS("v:1x1x1")},
     .error =
         "`sample` has no effect: `chunks` says the chunks of v, and none are left to be chosen"},
};

static const planned_row SHARDS[] = {
    {"none", {ONE("v"), .chunks = TEXTS("v:2x3x5")}, .layouts = "t: 10; v: 2,3,5"},
    {"of a shape, in whole chunks",
     {ONE("v"), .chunks = TEXTS("v:2x3x2"), .shards = TEXTS("v:4x6x6")},
     .layouts = "t: 10; v: 2,3,2 in 4,6,6"},
    {"which a chunk does not divide",
     {ONE("v"), .chunks = TEXTS("v:2x3x2"), .shards = TEXTS("v:3x6x6")},
     .error = "`shards` 3x6x6: variable v: 3 along t is not a multiple of the chunk's 2"},
    {"past the end is all of it",
     {ONE("v"), .chunks = TEXTS("v:2x3x2"), .shards = TEXTS("v:4x100x100")},
     .layouts = "t: 10; v: 2,3,2 in 4,6,8"},
    {"of a size",
     {ONE("v"), .chunks = TEXTS("v:1x6x7"), .shards = TEXTS("auto:300")},
     .layouts = "t: 10; v: 1,6,7 in 3,6,7"},
    {"of one chunk",
     {ONE("v"), .chunks = TEXTS("v:10x6x7"), .shards = TEXTS("auto")},
     .layouts = "t: 10; v: 10,6,7"},
    {"of a format that has none",
     {ONE("v"), .zarr_format = 2, .shards = TEXTS("auto")},
     .error = "`shards`: Zarr format 2 has no shards"},
    {"none, said so",
     {ONE("v"), .chunks = TEXTS("v:1x1x1"), .shards = TEXTS("none")},
     .layouts = "t: 10; v: 1,1,1"},
    {"of itself, for more than 10,000 objects",
     {ONE("v"), .chunks = TEXTS("v:1x8x8")},
     .file = &LARGE,
     .layouts = "t: 3; y: 1024; v: 1,8,8 in 3,1024,256",
     .warning =
         "12290 chunks: written into shards of about 256 MiB; `shards` none makes a file of each"},
    {"not of format 2",
     {ONE("v"), .zarr_format = 2, .chunks = TEXTS("v:1x8x8")},
     .file = &LARGE,
     .layouts = "t: 3; y: 1024; v: 1,8,8",
     .warning = ""},
};

static void chunks(void **state)
{
    (void)state;
    planned_try(CHUNKS, COUNT(CHUNKS), &SMALL, STEP_LAYOUT);
}

static void shards(void **state)
{
    (void)state;
    planned_try(SHARDS, COUNT(SHARDS), &SMALL, STEP_LAYOUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chunks), cmocka_unit_test(shards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
