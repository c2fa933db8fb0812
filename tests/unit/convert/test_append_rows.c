/* Rows of chunks of an array that grows: those that are there, and new ones. */
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "convert/sink/growth/append_rows.h"

static void read_array(const char *grid, uint64_t was, cm_zarr_meta *m)
{
    char text[1024];
    cm_error err = {0};
    cm_json *j;
    snprintf(text, sizeof text,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%u,2],\"data_type\":\"int16\","
             "\"chunk_grid\":{%s},\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,"
             "\"codecs\":[\"bytes\"]}",
             (unsigned)was, grid);
    assert_int_equal(cm_json_parse(text, strlen(text), &j, &err), CM_OK);
    if (cm_zarr_meta_from_v3(j, m, &err) != CM_OK)
        fail_msg("%s: %s", grid, err.text);
    cm_json_free(j);
}

#define REGULAR "\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4,2]}"
#define LISTED(lengths)                                                                            \
    "\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\",\"chunk_shapes\":[" lengths   \
    ",2]}"

/* "5 4|3": the lengths of rows that are there, and of new ones. */
static const char *say(const cm_rows *rows, char *text)
{
    *text = '\0';
    for (uint64_t k = 0; k < rows->n; k++)
        sprintf(text + strlen(text), "%s%u", k == rows->nbefore ? "|" : &" "[k == 0],
                (unsigned)cm_rows_length(rows, k));
    return text;
}

static void rows(void **state)
{
    static const struct {
        const char *grid;
        uint64_t was, length, border[3];
        size_t nborders;
        const char *rows;
    } row[] = {
        {REGULAR, 8, 13, {9}, 1, "4 4|4 4"},
        {REGULAR, 6, 7, {0}, 0, "4 4"},
        {LISTED("4"), 8, 9, {0}, 0, "4 4|4"},
        {LISTED("[4,3]"), 7, 9, {0}, 0, "4 3|2"},
        {LISTED("[4,3]"), 7, 12, {9, 12}, 2, "4 3|2 3"},
        {LISTED("[4,3]"), 7, 12, {7, 9, 20}, 3, "4 3|2 3"}, /* borders behind the end, and before */
        {LISTED("[4,3]"), 6, 7, {0}, 0, "4 3"},             /* room in the last one */
        {LISTED("[4,3]"), 6, 9, {8}, 1, "4 3|1 1"},
        {LISTED("[4,3,9]"), 7, 8, {0}, 0, "4 3|1"}, /* what lies behind the array is no chunk */
        {LISTED("[[4,2]]"), 8, 11, {0}, 0, "4 4|3"},
        {LISTED("[[4,90]]"), 5, 11, {0}, 0, "4 4|3"},
        {LISTED("[4,3]"), 7, 15, {0}, 0, "4 3|8"}, /* up to twice the longest, */
        {LISTED("[4,3]"), 7, 17, {0}, 0, "4 3|4 4 2"},
        {LISTED("[4,3]"), 0, 9, {2}, 1, "|2 7"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(row); i++) {
        char text[256];
        cm_zarr_meta m;
        cm_rows r;
        cm_error err = {0};
        read_array(row[i].grid, row[i].was, &m);
        const cm_variable t = {.rank = 2, .words = &m};
        assert_int_equal(cm_rows_begin(&t, 0, row[i].was, row[i].length, &r, &err), CM_OK);
        assert_int_equal(r.listed, strstr(row[i].grid, "[[") != NULL);
        if (r.listed)
            assert_int_equal(
                cm_rows_extend(&r, row[i].length, row[i].border, row[i].nborders, &err), CM_OK);
        if (strcmp(say(&r, text), row[i].rows) != 0)
            fail_msg("%s, %u to %u: %s", row[i].grid, (unsigned)row[i].was, (unsigned)row[i].length,
                     text);
        for (uint64_t k = 0; k < r.n; k++) {
            const uint64_t first = cm_rows_first(&r, k);
            assert_int_equal(cm_rows_first(&r, k + 1), first + cm_rows_length(&r, k));
            assert_int_equal(cm_rows_find(&r, first), k);
            assert_int_equal(cm_rows_find(&r, first + cm_rows_length(&r, k) - 1), k);
        }
        cm_rows_release(&r);
        cm_zarr_meta_release(&m);
    }
}

static void runs_of_one_length(void **state)
{
    cm_zarr_meta m;
    cm_rows r;
    cm_error err = {0};
    (void)state;
    read_array(LISTED("[4,4,3,3,3,4]"), 21, &m);
    const cm_variable t = {.rank = 2, .words = &m};
    assert_int_equal(cm_rows_begin(&t, 0, 21, 21, &r, &err), CM_OK);
    assert_int_equal(cm_rows_alike(&r, 0, 6), 2);
    assert_int_equal(cm_rows_alike(&r, 1, 6), 2);
    assert_int_equal(cm_rows_alike(&r, 2, 6), 5);
    assert_int_equal(cm_rows_alike(&r, 2, 3), 3);
    assert_int_equal(cm_rows_alike(&r, 5, 6), 6);
    cm_rows_release(&r);
    cm_zarr_meta_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows),
                                       cmocka_unit_test(runs_of_one_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
