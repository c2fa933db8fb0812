/* When a holder that cannot be seen has ended: by its age, and by the clock of who watches it. */
#include <stdio.h>

#include "../unit.h"
#include "convert/beside/silence.h"

#define SECOND UINT64_C(1000000000)
#define LONG   (CM_SILENCE_S + 1)

/* One look: at this time of the watcher, in seconds, at a beat of this age. */
typedef struct seen {
    uint64_t now_s;
    uint64_t beat_mark;
    int64_t age_s;
    cm_holder_state state;
} seen;

typedef struct row {
    const char *name;
    bool remote;
    seen look[5]; /* up to one whose NOW_S is 0 */
} row;

static const row ROWS[] = {
    {"a holder that beats",
     false,
     {{1, 1, 0, CM_HOLDER_ELSEWHERE}, {5, 2, 0, CM_HOLDER_ELSEWHERE}}},
    {"one that ended long ago",
     false,
     {{1, 1, LONG, CM_HOLDER_SILENT},
      {9, 1, LONG + 8, CM_HOLDER_SILENT},
      {12, 1, LONG + 11, CM_HOLDER_ENDED}}},
    {"one that ended long ago, of a bucket",
     true,
     {{1, 1, LONG, CM_HOLDER_SILENT},
      {40, 1, LONG + 39, CM_HOLDER_SILENT},
      {52, 1, LONG + 51, CM_HOLDER_ENDED}}},
    {"the clock is set forward while it is held",
     false,
     {{1, 1, 3600, CM_HOLDER_SILENT},
      {4, 2, 0, CM_HOLDER_ELSEWHERE},
      {20, 6, 0, CM_HOLDER_ELSEWHERE}}},
    {"forward again and again",
     false,
     {{1, 1, 3600, CM_HOLDER_SILENT},
      {9, 2, 3600, CM_HOLDER_ELSEWHERE},
      {18, 3, 3600, CM_HOLDER_ELSEWHERE},
      {29, 3, 3600, CM_HOLDER_ENDED}}},
    {"the clock is set back, and the holder goes on",
     false,
     {{1, 1, -3600, CM_HOLDER_ELSEWHERE}, {5, 2, 0, CM_HOLDER_ELSEWHERE}}},
    {"the clock is set back after the holder has ended",
     false,
     {{1, 1, -86400, CM_HOLDER_ELSEWHERE},
      {CM_SILENCE_S, 1, -86101, CM_HOLDER_ELSEWHERE},
      {CM_SILENCE_S + 1, 1, -86100, CM_HOLDER_ENDED}}},
    {"no beat is known", true, {{1, 0, 0, CM_HOLDER_ELSEWHERE}, {9999, 0, 0, CM_HOLDER_ELSEWHERE}}},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        cm_silence *s = cm_silence_create(NULL);
        assert_non_null(s);
        for (size_t k = 0; k < 5 && ROWS[i].look[k].now_s > 0; k++) {
            const seen *l = &ROWS[i].look[k];
            const cm_holder h = {.beats = true, .beat_mark = l->beat_mark};
            cm_holder_state is = cm_silence_judge(s, "lock", &h, l->age_s, ROWS[i].remote,
                                                  l->now_s * SECOND, CM_HOLDER_ELSEWHERE);
            if (is != l->state)
                fail_msg("%s, look %zu: %d, not %d", ROWS[i].name, k, is, l->state);
        }
        cm_silence_free(s);
    }
}

/* Each lock has a watch of its own; those of processes that can be seen have none. */
static void test_others(void **state)
{
    char name[32];
    const cm_holder h = {.beats = true, .beat_mark = 1}, never = {.beat_mark = 1};
    cm_silence *s = cm_silence_create(NULL);
    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "part-%u.lock", i);
        assert_int_equal(
            cm_silence_judge(s, name, &h, LONG, false, (1 + i) * SECOND, CM_HOLDER_ELSEWHERE),
            CM_HOLDER_SILENT);
    }
    assert_int_equal(
        cm_silence_judge(s, "part-0.lock", &h, LONG, false, 12 * SECOND, CM_HOLDER_ELSEWHERE),
        CM_HOLDER_ENDED);
    assert_int_equal(
        cm_silence_judge(s, "part-9.lock", &h, LONG, false, 12 * SECOND, CM_HOLDER_ELSEWHERE),
        CM_HOLDER_SILENT);
    assert_int_equal(cm_silence_judge(s, "a", &h, LONG, false, SECOND, CM_HELD), CM_HELD);
    assert_int_equal(cm_silence_judge(s, "a", &h, 0, false, SECOND, CM_HOLDER_ENDED),
                     CM_HOLDER_ENDED);
    assert_int_equal(
        cm_silence_judge(s, "a", &never, LONG, false, 9999 * SECOND, CM_HOLDER_ELSEWHERE),
        CM_HOLDER_ELSEWHERE);
    /* Without memory to watch nobody ends. */
    assert_int_equal(cm_silence_judge(NULL, "a", &h, LONG, false, SECOND, CM_HOLDER_ELSEWHERE),
                     CM_HOLDER_SILENT);
    cm_silence_free(s);
    cm_silence_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
