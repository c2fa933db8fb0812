/* Faults of coordinates: rows of times, and what is found in them. */
#include <math.h>
#include <stdio.h>

#include "../unit.h"
#include "passport/findings.h"

static const struct {
    const char *name;
    double time[16];
    size_t n;
    const char *found; /* "kind first-last value; ..." */
} ROWS[] = {
    {"regular", {0, 1, 2, 3, 4, 5, 6, 7}, 8, ""},
    {"backwards", {7, 6, 5, 4, 3, 2, 1, 0}, 8, ""},
    {"months", {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365}, 13, ""},
    {"few", {0, 10, 11}, 3, ""},
    {"one", {5}, 1, ""},
    {"a gap", {0, 1, 2, 3, 6, 7, 8, 9}, 8, "gap 3-4 2"},
    {"a gap backwards", {9, 8, 7, 6, 3, 2, 1, 0}, 8, "gap 3-4 2"},
    {"two gaps", {0, 1, 2, 5, 6, 7, 8, 12, 13, 14}, 10, "gap 2-3 2; gap 6-7 3"},
    {"without a step", {0, 5, 6, 20, 21, 33, 50, 51}, 8, ""},
    {"twice", {0, 1, 2, 2, 3, 4, 5, 6}, 8, "duplicate-time 3-3 2"},
    {"three times", {0, 1, 2, 2, 2, 3, 4, 5}, 8, "duplicate-time 3-4 2"},
    {"exchanged", {0, 1, 3, 2, 4, 5, 6, 7}, 8, "out-of-order 3-3 2"},
    {"a block that comes late", {0, 1, 5, 6, 2, 3, 4, 7}, 8, "out-of-order 4-6 2"},
    {"none", {0, 1, NAN, 3, 4}, 5, "missing-time 2-2 nan"},
    {"weekends", {0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 14, 15, 16, 17, 18}, 15, "gap 4-5 2; gap 9-10 2"},
};

static const struct {
    const char *name;
    double value[8];
    size_t n;
    bool may_wrap;
    const char *found;
} PLACES[] = {
    {"up", {-60, -20, 20, 60}, 4, false, ""},
    {"down", {60, 20, -20, -60}, 4, false, ""},
    {"exchanged", {60, 20, 40, 0, -20}, 5, false, "coordinate-order 2-2 40"},
    {"around the date line", {160, 170, 180, -170, -160}, 5, true, ""},
    {"twice around", {160, 180, -170, 170, -160}, 5, true, "coordinate-order 4-4 -160"},
    {"the same twice", {0, 10, 10, 20}, 4, true, "coordinate-order 2-2 10"},
    {"one", {5}, 1, false, ""},
};

static const char *tell(const cm_findings *f)
{
    static char text[512];
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < f->n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %llu-%llu %g", i > 0 ? "; " : "",
                              f->item[i].kind, (unsigned long long)f->item[i].first,
                              (unsigned long long)f->item[i].last, f->item[i].value);
    return text;
}

static void times(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        cm_findings f = {0};
        assert_int_equal(cm_find_in_times("time", ROWS[i].time, ROWS[i].n, &f, NULL), CM_OK);
        if (strcmp(tell(&f), ROWS[i].found) != 0) {
            print_error("%s: %s\n", ROWS[i].name, tell(&f));
            bad++;
        }
        cm_findings_release(&f);
    }
    assert_int_equal(bad, 0);
}

static void places(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(PLACES); i++) {
        cm_findings f = {0};
        assert_int_equal(
            cm_find_in_positions("lat", PLACES[i].value, PLACES[i].n, PLACES[i].may_wrap, &f, NULL),
            CM_OK);
        if (strcmp(tell(&f), PLACES[i].found) != 0) {
            print_error("%s: %s\n", PLACES[i].name, tell(&f));
            bad++;
        }
        cm_findings_release(&f);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),
        cmocka_unit_test(places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
