/* Keys of a store judged: chunks, documents, and foreign objects. */
#include "../unit.h"
#include "format/zarr/chunk_name.h"
#include "format/zarr/foreign_key.h"

/* A 4 x 6 array in chunks of 2 x 2. */
static cm_zarr_meta array_of(int format, char separator, bool key_v2)
{
    cm_zarr_meta m = {.zarr_format = format, .separator = separator, .key_v2 = key_v2, .rank = 2};
    m.shape[0] = 4;
    m.shape[1] = 6;
    m.chunk[0] = m.chunk[1] = 2;
    return m;
}

static void test_names(void **state)
{
    static const struct {
        const char *below;
        cm_chunk_name v3, v3_dot, v3_key_v2, v2, v2_slash;
    } row[] = {
#define OTHER   CM_CHUNK_NAME_OTHER
#define CHUNK   CM_CHUNK_NAME_CHUNK
#define ABOVE   CM_CHUNK_NAME_ABOVE
#define OUTSIDE CM_CHUNK_NAME_OUTSIDE
        {"c/1/2", CHUNK, OTHER, OTHER, OTHER, OTHER},
        {"c.1.2", OTHER, CHUNK, OTHER, OTHER, OTHER},
        {"1.2", OTHER, OTHER, CHUNK, CHUNK, OTHER},
        {"1/2", OTHER, OTHER, OTHER, OTHER, CHUNK},
        {"c/1/3", OUTSIDE, OTHER, OTHER, OTHER, OTHER},
        {"2.0", OTHER, OTHER, OUTSIDE, OUTSIDE, OTHER},
        {"c/1", ABOVE, OTHER, OTHER, OTHER, OTHER},
        {"c", ABOVE, OTHER, OTHER, OTHER, OTHER},
        {"1", OTHER, OTHER, OTHER, OTHER, ABOVE},
        {"c/2", OUTSIDE, OTHER, OTHER, OTHER, OTHER},
        {"c/01/2", OTHER, OTHER, OTHER, OTHER, OTHER},
        {"c/1/2/0", OTHER, OTHER, OTHER, OTHER, OTHER},
        {"c/1/", OTHER, OTHER, OTHER, OTHER, OTHER},
        {"c/-1/2", OTHER, OTHER, OTHER, OTHER, OTHER},
        {"c/1/99999999999999999999", OTHER, OTHER, OTHER, OTHER, OTHER},
        {"c/9999999999999999999/0", OUTSIDE, OTHER, OTHER, OTHER, OTHER},
        {"", OTHER, OTHER, OTHER, OTHER, OTHER},
        {"c//2", OTHER, OTHER, OTHER, OTHER, OTHER},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        const cm_zarr_meta meta[] = {array_of(3, '/', false), array_of(3, '.', false),
                                     array_of(3, '.', true), array_of(2, '.', false),
                                     array_of(2, '/', false)};
        const cm_chunk_name want[] = {row[i].v3, row[i].v3_dot, row[i].v3_key_v2, row[i].v2,
                                      row[i].v2_slash};
        for (size_t k = 0; k < 5; k++) {
            cm_chunk_names names;
            uint64_t coord[CM_MAX_RANK] = {0};
            cm_chunk_names_init(&meta[k], &names);
            cm_chunk_name got = cm_chunk_name_parse(&names, row[i].below, coord);
            if (got != want[k])
                fail_msg("%s, layout %zu: %d", row[i].below, k, (int)got);
            if (got == CHUNK && (coord[0] != 1 || coord[1] != 2))
                fail_msg("%s: chunk %d %d", row[i].below, (int)coord[0], (int)coord[1]);
        }
    }
}

static void test_scalars(void **state)
{
    static const struct {
        int format;
        bool key_v2;
        const char *below;
        cm_chunk_name want;
    } row[] = {{3, false, "c", CHUNK}, {3, false, "0", OTHER}, {3, true, "0", CHUNK},
               {2, false, "0", CHUNK}, {2, false, "1", OTHER}, {3, false, "c/0", OTHER}};
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        const cm_zarr_meta m = {
            .zarr_format = row[i].format, .key_v2 = row[i].key_v2, .separator = '/'};
        cm_chunk_names names;
        cm_chunk_names_init(&m, &names);
        assert_int_equal(cm_chunk_name_parse(&names, row[i].below, NULL), row[i].want);
    }
}

static void test_why_a_key_is_foreign(void **state)
{
    static const struct {
        const char *below, *why;
    } row[] = {{"c/2/0", "outside the grid of chunks"},
               {"1.2", "named as chunks of another layout"},
               {"1/2", "named as chunks of another layout"},
               {"c.1.2", "named as chunks of another layout"},
               {"C/1/2", "a chunk's name but for the case"},
               {"t2m/zarr.json", "of a node below an array"},
               {"c/0/.chunkmill-12-3.tmp", "a temporary file"},
               {"c/0/0.8f14e45f.partial", "a temporary file"},
               {"c/0/.nfs0000000012", "a temporary file"},
               {"notes.txt", "no chunk of its array"},
               {"c/00/1", "no chunk of its array"}};
    const cm_zarr_meta meta = array_of(3, '/', false);
    cm_chunk_names names;
    (void)state;
    cm_chunk_names_init(&meta, &names);
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
        assert_string_equal(cm_foreign_chunk_key(&names, row[i].below), row[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_why_a_key_is_foreign),
    };
    return cmocka_run_group_tests_name("format/census", tests, NULL, NULL);
}
