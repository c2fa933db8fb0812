/* Sentences about a census. */
#include "../../../tools/common/census_text.h"
#include "../unit.h"

static void test_holes(void **state)
{
    char *names[] = {"0/0", "0/1", "1/0", "1/1"};
    cm_census_array a = {.name = "t", .nchunks = 16, .npresent = 11};
    char text[CENSUS_TEXT];
    (void)state;
    assert_false(census_array_has_holes(&a));
    a.hole[CM_CENSUS_LEFT_OUT].n = 1;
    assert_false(census_array_has_holes(&a));
    a.hole[CM_CENSUS_ABSENT] = (cm_census_count){.n = 4, .name = names, .nnames = 4};
    assert_true(census_array_has_holes(&a));
    census_hole_text(&a, CM_CENSUS_ABSENT, text, sizeof text);
    assert_string_equal(text, "4 of 16 chunks are absent, read as fill (0/0, 0/1, 1/0, ...)");
    a.no_fill = true;
    a.hole[CM_CENSUS_ABSENT].nnames = 2;
    census_hole_text(&a, CM_CENSUS_ABSENT, text, sizeof text);
    assert_string_equal(text, "4 of 16 chunks are absent, read as zeros (0/0, 0/1)");
    a.hole[CM_CENSUS_ABSENT].more = true;
    census_hole_text(&a, CM_CENSUS_ABSENT, text, sizeof text);
    assert_string_equal(text, "4 of 16 chunks are absent, read as zeros (0/0, 0/1, ...)");
    a.hole[CM_CENSUS_TRUNCATED] = (cm_census_count){.n = 1, .why = "has 3 bytes"};
    census_hole_text(&a, CM_CENSUS_TRUNCATED, text, sizeof text);
    assert_string_equal(text, "1 of 16 chunks is truncated: has 3 bytes");
}

static void test_room(void **state)
{
    const cm_census_array a = {
        .name = "", .nchunks = 1, .hole[CM_CENSUS_EMPTY] = {.n = 1, .why = "a long reason"}};
    char text[24];
    (void)state;
    census_hole_text(&a, CM_CENSUS_EMPTY, text, sizeof text);
    assert_string_equal(text, "1 of 1 chunk is empty: ");
    assert_string_equal(census_array_name(&a), "/");
}

static void test_sum(void **state)
{
    cm_census_array a[2] = {{.npresent = 3}, {.npresent = 4}};
    cm_census c = {.array = a, .narrays = 2};
    char text[CENSUS_TEXT];
    (void)state;
    census_sum_text(&c, text, sizeof text);
    assert_string_equal(text, "All 7 chunks of 2 arrays are there.");
    c.decoded = true;
    a[1].hole[CM_CENSUS_LEFT_OUT].n = 2;
    census_sum_text(&c, text, sizeof text);
    assert_string_equal(text,
                        "All 7 chunks of 2 arrays are there, and decoded; 2 were left out: all "
                        "fill.");
    c.narrays = 0;
    c.decoded = false;
    census_sum_text(&c, text, sizeof text);
    assert_string_equal(text, "0 chunks of 0 arrays are there.");
}

static void test_places(void **state)
{
    const cm_census_places p = {.known = true, .ninline = 1};
    char text[CENSUS_TEXT];
    (void)state;
    assert_true(census_place_text(&p, false, text, sizeof text));
    assert_string_equal(text, "1 chunk is in manifests.");
    assert_false(census_place_text(&p, true, text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_holes), cmocka_unit_test(test_room),
                                       cmocka_unit_test(test_sum), cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
