/* How parts stand: of each its state and bytes, their numbers for people, and what they leave. */

#include "../fixtures/tell.h"
#include "beside_fixture.h"
#include "convert/sink/part/parts_status.h"

#define HASH "0123456789abcdef0123456789abcdef"

static cm_parts_plan plan_of(uint64_t nparts, cm_json *json)
{
    cm_parts_plan plan = {.json = json, .nparts = nparts, .first = 10, .step = 2, .hash = HASH};
    return plan;
}

/* ---- one part each ---- */

static const struct {
    const char *name;
    const char *done, *progress; /* members of these notes; NULL: there is none */
    const char *hash;            /* that they name */
    bool lock, ended, journal;
    const char *state;
} PARTS[] = {
    {"nobody is at it", NULL, NULL, HASH, false, false, false, "missing"},
    {"somebody was", NULL, "{'done_nbytes': 3, 'total_nbytes': 9}", HASH, false, false, true,
     "missing begun 3 of 9"},
    {"who was ended without a word", NULL, "{'done_nbytes': 3, 'total_nbytes': 9}", HASH, true,
     true, true, "stale begun 3 of 9 by"},
    {"somebody is", NULL, NULL, HASH, true, false, false, "running by"},
    {"and tells how far", NULL, "{'done_nbytes': 3, 'total_nbytes': 9}", HASH, true, false, false,
     "running 3 of 9 by"},
    {"who makes another plan", NULL, "{'done_nbytes': 3, 'total_nbytes': 9}", "another", true,
     false, false, "running by"},
    {"it is done", "{'done_nbytes': 9, 'total_nbytes': 9}", "{'done_nbytes': 3}", HASH, true, false,
     true, "done 9 of 9"},
    {"a part of another plan is", "{'done_nbytes': 9, 'total_nbytes': 9}", NULL, "another", false,
     false, false, "missing"},
    {"bytes that are none", "{'done_nbytes': -1, 'total_nbytes': 'x'}", NULL, HASH, false, false,
     false, "done"},
};

static void say_part(cm_buf *text, const cm_part_status *s)
{
    static const char *const STATE[] = {"missing", "stale", "running", "done"};
    tell_begin(text);
    tell(text, "%s%s", STATE[s->state], s->begun ? " begun" : "");
    if (s->done_nbytes + s->total_nbytes > 0)
        tell(text, " %u of %u", (unsigned)s->done_nbytes, (unsigned)s->total_nbytes);
    if (s->who != NULL)
        tell(text, " by");
}

static void one_part_each(void **state)
{
    made_beside m;
    cm_buf text = {0};
    cm_parts_report report;
    unsigned bad = 0;
    const cm_parts_plan plan = plan_of(COUNT(PARTS), NULL);
    (void)state;
    made_beside_begin(&m);
    for (size_t i = 0; i < COUNT(PARTS); i++) {
        char name[4][40];
        snprintf(name[0], sizeof name[0], "part-%zu.done", i + 1);
        snprintf(name[1], sizeof name[1], "part-%zu.progress", i + 1);
        snprintf(name[2], sizeof name[2], "part-%zu.lock", i + 1);
        snprintf(name[3], sizeof name[3], "part-%zu.journal", i + 1);
        if (PARTS[i].done != NULL)
            beside_note(&m.beside, name[0], PARTS[i].hash, PARTS[i].done);
        if (PARTS[i].progress != NULL)
            beside_note(&m.beside, name[1], PARTS[i].hash, PARTS[i].progress);
        if (PARTS[i].lock)
            beside_put_lock(&m.beside, name[2], PARTS[i].ended);
        if (PARTS[i].journal)
            beside_put(&m.beside, name[3], "x");
    }
    OK(cm_parts_look(&m.beside, &plan, &report, err));
    for (size_t i = 0; i < COUNT(PARTS); i++) {
        say_part(&text, &report.part[i]);
        tell_compare(PARTS[i].name, (const char *)text.data, PARTS[i].state, &bad);
    }
    assert_int_equal(bad, 0);
    assert_true(report.nparts == COUNT(PARTS) && report.first == 10 && report.step == 2);
    assert_int_equal(report.count[CM_PART_MISSING], 3);
    assert_int_equal(report.count[CM_PART_STALE], 1);
    assert_int_equal(report.count[CM_PART_RUNNING], 3);
    assert_int_equal(report.count[CM_PART_DONE], 2);
    assert_false(report.complete);
    assert_null(report.launcher);
    cm_parts_report_release(&report);
    cm_buf_release(&text);
    made_beside_end(&m);
}

/* ---- all of them ---- */

static void all_done(void **state)
{
    made_beside m;
    cm_parts_report report;
    cm_json *json = made_json("{'launcher': 'srun', 'command': 'nc2zarr a b', 'folder': '/data'}");
    cm_parts_plan plan = plan_of(3, json);
    (void)state;
    made_beside_begin(&m);
    beside_note(&m.beside, "part-1.done", HASH, NULL);
    OK(cm_parts_look(&m.beside, &plan, &report, err));
    assert_string_equal(report.launcher, "srun");
    assert_string_equal(report.command, "nc2zarr a b");
    assert_string_equal(report.folder, "/data");
    assert_int_equal(report.count[CM_PART_DONE], 1);
    cm_parts_report_release(&report);
    assert_true(report.launcher == NULL && report.part == NULL && report.nparts == 0);

    /* Another completed the store while the files, which go then, were looked at. */
    beside_note(&m.beside, CM_PARTS_COMPLETE, "another plan", NULL);
    OK(cm_parts_look(&m.beside, &plan, &report, err));
    assert_false(report.complete);
    cm_parts_report_release(&report);
    beside_note(&m.beside, CM_PARTS_COMPLETE, HASH, NULL);
    OK(cm_parts_look(&m.beside, &plan, &report, err));
    assert_true(report.complete && report.part == NULL);
    assert_int_equal(report.count[CM_PART_DONE], 3);
    assert_int_equal(report.count[CM_PART_MISSING], 0);
    cm_parts_report_release(&report);

    /* The plan was known to be complete. */
    plan.complete = true;
    OK(cm_store_delete(m.beside.in, CM_PARTS_COMPLETE, err));
    OK(cm_parts_look(&m.beside, &plan, &report, err));
    assert_true(report.complete && report.part == NULL && report.count[CM_PART_DONE] == 3);
    cm_parts_report_release(&report);
    cm_json_free(json);
    made_beside_end(&m);
}

static void of_a_store(void **state)
{
    made_beside m;
    cm_parts_report report;
    cm_error why = {0};
    bool published;
    cm_json *json = made_json("{'parts': 2, 'first index': 0, 'step': 1}");
    (void)state;
    made_beside_begin(&m);
    assert_int_equal(cm_parts_status(m.out, NULL, &report, &why), CM_ENOTFOUND);
    assert_non_null(strstr(why.text, ": was not begun in parts"));
    cm_parts_report_release(&report);
    OK(cm_parts_plan_publish(&m.beside, json, &published, err));
    OK(cm_parts_status(m.out, NULL, &report, err));
    assert_int_equal(report.nparts, 2);
    assert_int_equal(report.count[CM_PART_MISSING], 2);
    cm_parts_report_release(&report);
    cm_json_free(json);
    made_beside_end(&m);
}

/* ---- numbers ---- */

static const struct {
    const char *states; /* of each part: m, s, r, d */
    unsigned asked;
    const char *list;
} LISTS[] = {
    {"", 1, ""},
    {"d", 1, ""},
    {"m", 1, "1"},
    {"mm", 1, "1-2"},
    {"mdm", 1, "1,3"},
    {"dmmmd", 1, "2-4"},
    {"ddmmm", 1, "3-5"},
    {"mdmmdmd", 1, "1,3-4,6"},
    {"msrd", 1 << CM_PART_DONE, "4"},
    {"msrd", 1 << CM_PART_STALE | 1 << CM_PART_RUNNING, "2-3"},
    {"msrd", 15, "1-4"},
    {"msrd", 0, ""},
};

static void numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(LISTS); i++) {
        cm_part_status part[16] = {0};
        cm_parts_report r = {.part = part, .nparts = strlen(LISTS[i].states)};
        for (uint64_t k = 0; k < r.nparts; k++)
            part[k].state = (cm_part_state)(strchr("msrd", LISTS[i].states[k]) - "msrd");
        char *list = cm_parts_list(&r, LISTS[i].asked, NULL);
        if (list == NULL || strcmp(list, LISTS[i].list) != 0)
            fail_msg("%s: %s", LISTS[i].states, list);
        free(list);
    }
    const cm_parts_report complete = {.nparts = 7, .complete = true};
    char *list = cm_parts_list(&complete, 15, NULL); /* whose parts are not known any more */
    assert_string_equal(list, "");
    free(list);
}

/* ---- the end ---- */

static const struct {
    const char *name, *file; /* NULL: nothing */
    cm_left left;
    bool lock, ended, goes;
} LEFT[] = {
    {"nothing", NULL, CM_LEFT_NOTHING, .goes = false},
    {"the plan stays", "plan", CM_LEFT_NOTHING, .goes = false},
    {"as the end does", "complete", CM_LEFT_NOTHING, .goes = false},
    {"tallies stay", "part-1.statistics", CM_LEFT_NOTHING, .goes = false},
    {"what a part did", "part-1.done", CM_LEFT_FILES, .goes = true},
    {"and went on from", "part-12.journal", CM_LEFT_FILES, .goes = true},
    {"one that has ended has a lock", "part-1.lock", CM_LEFT_FILES, true, true, true},
    {"one that goes on", "part-1.lock", CM_LEFT_NOTHING, true, false, false},
    {"the output's lock", "lock", CM_LEFT_OTHER, true, true, false},
    {"a file of another's", "notes.txt", CM_LEFT_NOTHING, .goes = false},
};

static void left(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(LEFT); i++) {
        made_beside m;
        made_beside_begin(&m);
        if (LEFT[i].file != NULL && LEFT[i].lock)
            beside_put_lock(&m.beside, LEFT[i].file, LEFT[i].ended);
        else if (LEFT[i].file != NULL)
            beside_put(&m.beside, LEFT[i].file, "x");
        if (cm_parts_left(&m.beside) != LEFT[i].left)
            fail_msg("%s: %d", LEFT[i].name, cm_parts_left(&m.beside));
        cm_parts_tidy(&m.beside);
        if (LEFT[i].file != NULL && beside_has(&m.beside, LEFT[i].file) == LEFT[i].goes)
            fail_msg("%s: %s", LEFT[i].name, LEFT[i].goes ? "stays" : "goes");
        assert_null(m.beside.stays);
        made_beside_end(&m);
    }
    cm_beside none = {.fd = -1};
    assert_int_equal(cm_parts_left(&none), CM_LEFT_NOTHING);
    cm_parts_tidy(&none);
}

/* Files of parts count for more than a lock, and both for more than what stays. */
static void left_of_two_kinds(void **state)
{
    cm_beside b = {.fd = -1};
    (void)state;
    OK(cm_store_open_memory(&b.in, err)); /* which is listed in order */
    beside_put(&b, "lock", "x");
    beside_put(&b, "plan", "x");
    assert_int_equal(cm_parts_left(&b), CM_LEFT_OTHER);
    beside_put(&b, "part-2.progress", "x");
    assert_int_equal(cm_parts_left(&b), CM_LEFT_FILES);
    cm_store_free(b.in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_part_each), cmocka_unit_test(all_done),
        cmocka_unit_test(of_a_store),    cmocka_unit_test(numbers),
        cmocka_unit_test(left),          cmocka_unit_test(left_of_two_kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
