/* Progress of parts: the note of each, and the sum that the first one shows. */

#include "beside_fixture.h"
#include "convert/sink/part/parts.h"
#include "convert/sink/part/parts_status.h"
#include "job_fixture.h"
#include "watch/monitor.h"

#define HASH "0123456789abcdef0123456789abcdef"

static const made_file TWO = {"/dev/null",
                              .var = {{"v", "int16", "t*=12 y=4"}, {"w", "float64", "t*=3"}}};

enum {
    NPARTS = 3,
    ALL = 12 * 4 * 2 + 3 * 8 /* decoded bytes */
};

/* Part NUMBER of a job, beside its output. */
typedef struct telling {
    made_beside m;
    planned p;
    cm_parts parts;
    cm_monitor *monitor;
} telling;

static void telling_begin(telling *t, uint64_t number)
{
    *t = (telling){0};
    made_beside_begin(&t->m);
    planned_make(&t->p, &TWO, NULL, STEP_VIEW);
    assert_int_equal(t->p.status, CM_OK);
    t->parts = (cm_parts){.number = number,
                          .progress = cm_part_file(number, "progress", NULL),
                          .plan = {.nparts = NPARTS, .step = 1, .hash = HASH}};
    t->p.job.parts = &t->parts;
    t->p.options.monitor = t->monitor = cm_monitor_create(NULL);
}

static void telling_end(telling *t)
{
    t->p.options.monitor = NULL;
    t->p.job.parts = NULL;
    free(t->parts.progress);
    cm_monitor_free(t->monitor);
    planned_release(&t->p);
    made_beside_end(&t->m);
}

/* The note of this part must say DONE of TOTAL. */
static void expect_note(const telling *t, uint64_t done, uint64_t total)
{
    cm_json *note = NULL;
    uint64_t n[2] = {99, 99};
    OK(cm_part_noted(&t->m.beside, t->parts.progress, HASH, &note, err));
    assert_non_null(note);
    assert_true(cm_json_get_u64(cm_json_member(note, "done_nbytes"), &n[0]));
    assert_true(cm_json_get_u64(cm_json_member(note, "total_nbytes"), &n[1]));
    assert_int_equal(n[0], done);
    assert_int_equal(n[1], total);
    cm_json_free(note);
}

/* It is written at once, and as it stands in the end. */
static void notes(void **state)
{
    telling t;
    cm_parts_teller *teller;
    cm_snapshot s;
    (void)state;
    telling_begin(&t, 1);
    cm_monitor_phase(t.monitor, CM_PHASE_WORKING, 1000);
    cm_monitor_add(t.monitor, 300);
    OK(cm_parts_tell(&t.p.job, &t.m.beside, &teller, err));
    assert_non_null(teller);
    expect_note(&t, 300, 1000);
    cm_monitor_add(t.monitor, 400);
    cm_parts_tell_end(teller);
    expect_note(&t, 700, 1000);
    cm_monitor_snapshot(t.monitor, &s);
    assert_int_equal(s.nparts, 0); /* the first part alone shows all */

    /* All of it is done while it is finished. */
    cm_monitor_phase(t.monitor, CM_PHASE_FINISHING, 1000);
    OK(cm_parts_tell(&t.p.job, &t.m.beside, &teller, err));
    expect_note(&t, 1000, 1000);
    cm_parts_tell_end(teller);
    telling_end(&t);
}

static const struct {
    const char *name;
    bool done, complete;        /* of the part that tells: its file is there; all of them */
    const char *second, *third; /* progress of the others; NULL: there is none */
    bool third_done;
    unsigned parts_done, sum;
} SUMS[] = {
    {"nobody else has begun", false, false, NULL, NULL, false, 0, 30},
    {"others tell", false, false, "{'done_nbytes': 5, 'total_nbytes': 40}",
     "{'done_nbytes': 7, 'total_nbytes': 40}", false, 0, 42},
    {"one of them is done", false, false, "{'done_nbytes': 5, 'total_nbytes': 40}",
     "{'done_nbytes': 40, 'total_nbytes': 40}", true, 1, 75},
    {"this one is done", true, false, "{'done_nbytes': 5, 'total_nbytes': 40}", NULL, false, 1, 45},
    {"all are", true, true, NULL, NULL, false, NPARTS, ALL},
};

static void sums(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(SUMS); i++) {
        telling t;
        cm_parts_teller *teller;
        cm_snapshot s;
        telling_begin(&t, 0);
        if (SUMS[i].done) /* with 40 bytes, whatever it tells of itself */
            beside_note(&t.m.beside, "part-1.done", HASH, "{'done_nbytes': 40}");
        if (SUMS[i].second != NULL)
            beside_note(&t.m.beside, "part-2.progress", HASH, SUMS[i].second);
        if (SUMS[i].third != NULL)
            beside_note(&t.m.beside, SUMS[i].third_done ? "part-3.done" : "part-3.progress", HASH,
                        SUMS[i].third);
        if (SUMS[i].complete)
            beside_note(&t.m.beside, CM_PARTS_COMPLETE, HASH, NULL);
        cm_monitor_phase(t.monitor, CM_PHASE_WORKING, 40);
        cm_monitor_add(t.monitor, 30);
        OK(cm_parts_tell(&t.p.job, &t.m.beside, &teller, err));
        cm_monitor_snapshot(t.monitor, &s);
        if (s.nparts != NPARTS || s.parts_done != SUMS[i].parts_done ||
            s.all_done_nbytes != SUMS[i].sum || s.all_total_nbytes != ALL)
            fail_msg("%s: %u of %u parts, %u of %u bytes", SUMS[i].name, (unsigned)s.parts_done,
                     (unsigned)s.nparts, (unsigned)s.all_done_nbytes, (unsigned)s.all_total_nbytes);
        cm_parts_tell_end(teller);
        telling_end(&t);
    }
}

/* Without anybody who watches nothing is written, nor does a note that cannot be fail a run. */
static void nobody_watches(void **state)
{
    telling t;
    cm_parts_teller *teller = (cm_parts_teller *)&t;
    (void)state;
    telling_begin(&t, 0);
    t.p.options.monitor = NULL;
    OK(cm_parts_tell(&t.p.job, &t.m.beside, &teller, err));
    assert_null(teller);
    assert_false(beside_has(&t.m.beside, "part-1.progress"));
    cm_parts_tell_end(NULL);
    t.p.options.monitor = t.monitor;
    free(t.parts.progress);
    t.parts.progress = strdup("../outside"); /* a name that no store takes */
    OK(cm_parts_tell(&t.p.job, &t.m.beside, &teller, err));
    cm_parts_tell_end(teller);
    telling_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(notes), cmocka_unit_test(sums),
                                       cmocka_unit_test(nobody_watches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
