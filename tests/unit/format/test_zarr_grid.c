/* Rectilinear chunk grids: documents that are read, refused and written again. */
#include <stdio.h>

#include "../unit.h"
#include "format/zarr/meta.h"

static int read_grid(const char *shape, const char *grid, cm_zarr_meta *m, cm_error *err)
{
    char text[4096];
    cm_json *j;
    snprintf(text, sizeof text,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":%s,\"data_type\":\"int16\","
             "\"chunk_grid\":%s,\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,"
             "\"codecs\":[\"bytes\"]}",
             shape, grid);
    assert_int_equal(cm_json_parse(text, strlen(text), &j, err), CM_OK);
    int rc = cm_zarr_meta_from_v3(j, m, err);
    cm_json_free(j);
    return rc;
}

#define RECTILINEAR(shapes)                                                                        \
    "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\",\"chunk_shapes\":" shapes "}}"

/* The lengths of dimension 0, "31 28 31", and behind a slash what the last stores. */
static const char *lengths(const cm_grid *g, char *buf, size_t size)
{
    size_t used = 0;
    uint64_t last[CM_MAX_RANK] = {0}, coord[CM_MAX_RANK] = {0};
    buf[0] = '\0';
    for (coord[0] = 0; coord[0] < g->count[0]; coord[0]++) {
        cm_box box;
        cm_grid_box(g, coord, &box);
        cm_grid_chunk_shape(g, coord, last);
        used += (size_t)snprintf(buf + used, size - used, "%s%llu", coord[0] > 0 ? " " : "",
                                 (unsigned long long)box.shape[0]);
    }
    snprintf(buf + used, size - used, "/%llu", (unsigned long long)last[0]);
    return buf;
}

static void test_lengths(void **state)
{
    static const struct {
        const char *shape, *grid, *lengths, *written;
    } row[] = {
        {"[90]", "[[31,28,31]]", "31 28 31/31", "[[31,28,31]]"},
        {"[121]", "[[31,[28,2],31,3]]", "31 28 28 31 3/3", "[[31,[28,2],31,3]]"},
        /* neighbouring runs of one length are one */
        {"[12]", "[[[2,2],2,[3,1],3]]", "2 2 2 3 3/3", "[[[2,3],[3,2]]]"},
        /* chunks behind the array are not there, and the last may reach past it */
        {"[33]", "[[31,28,31]]", "31 2/28", "[[31,28]]"},
        {"[62]", "[[31,28,31,31]]", "31 28 3/31", "[[31,28,31]]"},
        {"[31]", "[[31,28,31]]", "31/31", NULL},
        /* one length: a regular grid */
        {"[25]", "[[10,10,10]]", "10 10 5/10", NULL},
        {"[25]", "[10]", "10 10 5/10", NULL},
        {"[25]", "[[[10,100000000000]]]", "10 10 5/10", NULL},
        {"[25]", "[[10,10,5]]", "10 10 5/5", "[[[10,2],5]]"},
        {"[0]", "[[3,4]]", "/0", NULL},
        {"[5,4]", "[[2,3],[1,3]]", "2 3/3", "[[2,3],[1,3]]"},
        {"[5,4]", "[[2,3],2]", "2 3/3", "[[2,3],2]"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(row); i++) {
        char grid[512], text[256];
        cm_zarr_meta m;
        cm_grid g;
        cm_json *again, *written = NULL;
        cm_error err = {0};
        snprintf(grid, sizeof grid, RECTILINEAR("%s"), row[i].grid);
        if (read_grid(row[i].shape, grid, &m, &err) != CM_OK)
            fail_msg("%s: %s", row[i].grid, err.text);
        assert_int_equal(cm_zarr_meta_grid(&m, &g, &err), CM_OK);
        assert_string_equal(lengths(&g, text, sizeof text), row[i].lengths);
        assert_int_equal(cm_zarr_meta_is_cut(&m), row[i].written != NULL);
        assert_int_equal(cm_zarr_meta_to_v3(&m, &again, &err), CM_OK);
        const cm_json *config =
            cm_json_member(cm_json_member(again, "chunk_grid"), "configuration");
        assert_int_equal(cm_json_has(config, "kind"), row[i].written != NULL);
        if (row[i].written != NULL) {
            assert_int_equal(cm_json_parse(row[i].written, strlen(row[i].written), &written, &err),
                             CM_OK);
            assert_true(cm_json_equal(cm_json_member(config, "chunk_shapes"), written));
        }
        cm_json_free(written);
        cm_json_free(again);
        cm_zarr_meta_release(&m);
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *shape, *grid;
        int rc;
        const char *error;
    } row[] = {
        {"[5]", "\"rectilinear\"", CM_EFORMAT, "has no kind"},
        {"[5]", "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"file\"}}", CM_EUNSUPPORTED,
         "kind 'file' is not supported"},
        {"[5]", "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\"}}", CM_EFORMAT,
         "chunk_shapes is not a list"},
        {"[5]", RECTILINEAR("[]"), CM_EFORMAT, "chunk_shapes has 0 dimensions, the array 1"},
        {"[5]", RECTILINEAR("[5,5]"), CM_EFORMAT, "chunk_shapes has 2 dimensions, the array 1"},
        {"[5]", RECTILINEAR("[[]]"), CM_EFORMAT, "dimension 0 has no lengths"},
        {"[5]", RECTILINEAR("[0]"), CM_EFORMAT, "neither a length of at least 1 nor a list"},
        {"[5]", RECTILINEAR("[null]"), CM_EFORMAT, "neither a length of at least 1 nor a list"},
        {"[5]", RECTILINEAR("[\"auto\"]"), CM_EFORMAT, "neither a length"},
        {"[5]", RECTILINEAR("[[0,5]]"), CM_EFORMAT, "a length that is not at least 1"},
        {"[5]", RECTILINEAR("[[-5,10]]"), CM_EFORMAT, "a length that is not at least 1"},
        {"[5]", RECTILINEAR("[[2.0,3]]"), CM_EFORMAT, "a length that is not at least 1"},
        {"[5]", RECTILINEAR("[[null,5]]"), CM_EFORMAT, "a length that is not at least 1"},
        {"[5]", RECTILINEAR("[[[5]]]"), CM_EFORMAT, "a run that is not [length, count]"},
        {"[5]", RECTILINEAR("[[[5,1,1]]]"), CM_EFORMAT, "a run that is not [length, count]"},
        {"[5]", RECTILINEAR("[[[]]]"), CM_EFORMAT, "a run that is not [length, count]"},
        {"[5]", RECTILINEAR("[[[5,0]]]"), CM_EFORMAT, "a count that is not at least 1"},
        {"[5]", RECTILINEAR("[[[5,-1]]]"), CM_EFORMAT, "a count that is not at least 1"},
        {"[5]", RECTILINEAR("[[[5,[1]]]]"), CM_EFORMAT, "a count that is not at least 1"},
        {"[5]", RECTILINEAR("[[[[5],1]]]"), CM_EFORMAT, "a length that is not at least 1"},
        {"[5]", RECTILINEAR("[[2,2]]"), CM_EFORMAT,
         "the chunks of dimension 0 have 4 elements, the array has 5"},
        {"[5]", RECTILINEAR("[[18446744073709551615]]"), CM_EFORMAT, "not at least 1"},
        {"[5]", RECTILINEAR("[[9223372036854775807,9223372036854775807,2]]"), CM_EFORMAT,
         "add up to more than 2^64 - 1"},
        {"[5]", RECTILINEAR("[[[4294967296,4294967296]]]"), CM_EFORMAT,
         "add up to more than 2^64 - 1"},
        {"[4611686018427387904,4611686018427387904]",
         RECTILINEAR("[[1,4611686018427387903],[1,4611686018427387903]]"), CM_EFORMAT,
         "more than 2^64 elements"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_zarr_meta m;
        cm_error err = {0};
        int rc = read_grid(row[i].shape, row[i].grid, &m, &err);
        if (rc != row[i].rc || strstr(err.text, row[i].error) == NULL)
            fail_msg("%s: %d %s", row[i].grid, rc, err.text);
        cm_zarr_meta_release(&m);
    }
}

/* Runs of any number of chunks are no more memory than their text. */
static void test_many_chunks(void **state)
{
    (void)state;
    cm_zarr_meta m;
    cm_grid g;
    cm_error err = {0};
    assert_int_equal(read_grid("[1000000000000000]",
                               RECTILINEAR("[[[1,500000000000000],[2,400000000000000]]]"), &m,
                               &err),
                     CM_OK);
    assert_int_equal(m.cuts[0]->nruns, 2);
    assert_int_equal(cm_zarr_meta_grid(&m, &g, &err), CM_OK);
    assert_int_equal(g.nchunks, 750000000000000);
    assert_int_equal(cm_grid_find(&g, 0, 500000000000003), 500000000000001);
    cm_zarr_meta_release(&m);
}

/* Each shape of a chunk needs a chain of codecs: an array with very many is not understood. */
static void test_many_shapes(void **state)
{
    (void)state;
    char shapes[4096] = "[[", *p = shapes + 2;
    cm_zarr_meta m;
    cm_error err = {0};
    for (int i = 1; i <= 260; i++)
        p += sprintf(p, "%s%d", i > 1 ? "," : "", i);
    char both[2 * sizeof shapes + 8], grid[sizeof both + 128];
    snprintf(both, sizeof both, "[%s],%s]]", shapes + 1, shapes + 1);
    snprintf(grid, sizeof grid, RECTILINEAR("%s"), both);
    char text[sizeof grid + 512];
    cm_json *j;
    snprintf(text, sizeof text,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[33930,33930],"
             "\"data_type\":\"int16\",\"chunk_grid\":%s,\"chunk_key_encoding\":"
             "{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[\"bytes\"]}",
             grid);
    assert_int_equal(cm_json_parse(text, strlen(text), &j, &err), CM_OK);
    assert_int_equal(cm_zarr_meta_from_v3(j, &m, &err), CM_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "chunks of more than 65536 shapes"));
    assert_true(m.verbatim);
    cm_json_free(j);
    cm_zarr_meta_release(&m);
}

static void test_formats(void **state)
{
    (void)state;
    cm_zarr_meta m, copy;
    cm_error err = {0};
    assert_int_equal(read_grid("[90]", RECTILINEAR("[[31,28,31]]"), &m, &err), CM_OK);
    assert_int_equal(cm_zarr_meta_set_format(&m, 2, &err), CM_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "Zarr v2 has no rectilinear chunk grid"));
    assert_int_equal(cm_zarr_meta_copy(&m, &copy, &err), CM_OK);
    assert_true(cm_cuts_equal(m.cuts[0], copy.cuts[0]));
    cm_zarr_meta_drop_cuts(&m);
    assert_int_equal(cm_zarr_meta_set_format(&m, 2, &err), CM_OK);
    cm_zarr_meta_release(&m);
    cm_zarr_meta_release(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_many_chunks), cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
