/* Claims of parts: what they count, how they are noted, and which are taken back. */

#include "beside_fixture.h"
#include "convert/sink/part/parts_claim.h"
#include "job_fixture.h"

#define HASH "0123456789abcdef0123456789abcdef"
#define SUM  "00000000000000000000000000000000"

/* ---- as JSON ---- */

static void claims_agree(void **state)
{
    static const cm_part_claim CLAIM = {true, 3, 700, SUM, ""};
    cm_part_claim other[] = {CLAIM, CLAIM, CLAIM, CLAIM, CLAIM};
    (void)state;
    other[0].there = false; /* whoever claims it */
    assert_true(cm_part_claims_agree(&CLAIM, &other[0]));
    other[1].nobjects++;
    other[2].nbytes++;
    other[3].digest[31] = '1';
    other[4].counted[0] = '1';
    for (size_t i = 1; i < COUNT(other); i++)
        assert_false(cm_part_claims_agree(&CLAIM, &other[i]));
}

static const struct {
    const char *name;
    const char *made; /* of the note; NULL: it has no such member */
    bool there;
} NOTED[] = {
    {"a claim", "{'objects': 3, 'nbytes': 700, 'digest': '" SUM "'}", true},
    {"of nothing", "{'objects': 0, 'nbytes': 0, 'digest': '" SUM "'}", true},
    {"with tallies", "{'objects': 3, 'nbytes': 700, 'digest': '" SUM "', 'counted': '" HASH "'}",
     true},
    {"none", NULL, false},
    {"no digest", "{'objects': 3, 'nbytes': 700}", false},
    {"a short digest", "{'objects': 3, 'nbytes': 700, 'digest': '00'}", false},
    {"a long digest", "{'objects': 3, 'nbytes': 700, 'digest': '0" SUM "'}", false},
    {"no objects", "{'nbytes': 700, 'digest': '" SUM "'}", false},
    {"bytes that are no number", "{'objects': 3, 'nbytes': 'x', 'digest': '" SUM "'}", false},
};

static void claims_are_read(void **state)
{
    cm_parts parts = {.plan = {.nparts = 3, .hash = HASH}};
    const cm_job job = {.parts = &parts};
    cm_beside b = {.path = (char *)(uintptr_t) "beside", .fd = -1};
    (void)state;
    OK(cm_store_open_memory(&b.in, err));
    for (size_t i = 0; i < COUNT(NOTED); i++) {
        cm_part_claim claim;
        bool complete = true;
        char more[200];
        snprintf(more, sizeof more, "{'made': %s}", NOTED[i].made != NULL ? NOTED[i].made : "0");
        beside_note(&b, "part-2.done", HASH, more);
        OK(cm_part_claim_read(&job, &b, 1, &complete, &claim, err));
        if (claim.there != NOTED[i].there || complete)
            fail_msg("%s", NOTED[i].name);
        if (!claim.there)
            continue;
        assert_string_equal(claim.digest, SUM);
        /* and back */
        cm_json *json = cm_part_claim_json(&claim), *wanted = made_json(NOTED[i].made);
        assert_true(cm_json_equal(json, wanted));
        cm_json_free(json);
        cm_json_free(wanted);
    }
    cm_part_claim claim;
    bool complete;
    beside_note(&b, "part-2.done", "another plan", "{'made': {'objects': 1, 'nbytes': 1}}");
    OK(cm_part_claim_read(&job, &b, 1, &complete, &claim, err));
    assert_false(claim.there);
    /* In a store that is complete, one file has all; one of an older version may have none. */
    beside_note(&b, CM_PARTS_COMPLETE, HASH,
                "{'parts': [0, {'objects': 5, 'nbytes': 6, 'digest': '" SUM "'}]}");
    for (uint64_t k = 0; k < 3; k++) {
        OK(cm_part_claim_read(&job, &b, k, &complete, &claim, err));
        assert_true(complete);
        assert_int_equal(claim.there, k == 1);
        assert_int_equal(claim.nobjects, k == 1 ? 5 : 0);
    }
    cm_store_free(b.in);
}

/* ---- objects ---- */

enum {
    NPARTS = 3
};
static const made_file TWO = {"/dev/null",
                              .var = {{"v", "int16", "t*=12 y=4"}, {"w", "int16", "t*=3"}}};
static const cm_transform_options OPTIONS = {
    .defaults = CM_DEFAULTS_KEEP,
    .part = {.on = true, .nparts = NPARTS},
    .chunks = TEXTS("v:2x4", "w:3"), /* V has six objects, and W one */
    .codec = TEXTS("none"),
};

/* A store that is made, and its plan. */
typedef struct claimed {
    made_beside m;
    planned p;
    cm_parts parts;
    cm_output out;
} claimed;

static void claimed_begin(claimed *c)
{
    *c = (claimed){0};
    made_beside_begin(&c->m);
    planned_make(&c->p, &TWO, &OPTIONS, STEP_RUN);
    assert_int_equal(c->p.status, CM_OK);
    c->parts.plan = (cm_parts_plan){.nparts = NPARTS, .step = 1, .hash = HASH};
    OK(cm_parts_propose(&c->p.job, &c->parts.plan.json, err));
    c->p.job.parts = &c->parts;
    c->out = (cm_output){.store = c->p.store, .beside = c->m.beside}; /* which is now its own */
}

static void claimed_end(claimed *c)
{
    c->p.job.parts = NULL;
    c->m.beside = c->out.beside;
    cm_json_free(c->parts.plan.json);
    planned_release(&c->p);
    made_beside_end(&c->m);
}

/* Every part says what it made. */
static void claim_all(claimed *c)
{
    cm_part_claim seen[NPARTS];
    OK(cm_part_claims_see(&c->p.job, &c->out, 0, NPARTS, seen, err));
    for (uint64_t k = 0; k < NPARTS; k++) {
        char name[40];
        cm_json *note = cm_json_object();
        snprintf(name, sizeof name, "part-%u.done", (unsigned)k + 1);
        OK(cm_json_set(note, "made", cm_part_claim_json(&seen[k]), err));
        OK(cm_part_note(&c->out.beside, name, HASH, note, err));
    }
}

/* "3 objects of 40 bytes, ...": what the parts have. */
static const char *say_seen(claimed *c, cm_part_claim seen[NPARTS])
{
    OK(cm_part_claims_see(&c->p.job, &c->out, 0, NPARTS, seen, err));
    tell_begin(&c->p.text);
    for (uint64_t k = 0; k < NPARTS; k++) {
        assert_true(seen[k].there && strlen(seen[k].digest) == 32 && seen[k].counted[0] == '\0');
        tell(&c->p.text, "%s%u of %u", k > 0 ? ", " : "", (unsigned)seen[k].nobjects,
             (unsigned)seen[k].nbytes);
    }
    return (const char *)c->p.text.data;
}

typedef enum change {
    NOTHING,
    REMOVED,
    SHORTER,
    MOVED,
    FOREIGN,
    SHIFTED
} change;

static void make_change(claimed *c, change how)
{
    cm_store *store = c->p.store;
    switch (how) {
    case NOTHING:
        break;
    case REMOVED:
        OK(cm_store_delete(store, "v/c/3/0", err));
        break;
    case SHORTER:
        OK(cm_store_put(store, "v/c/3/0", "x", 1, err));
        break;
    case MOVED: /* to where the array has none */
        OK(cm_store_delete(store, "v/c/2/0", err));
        OK(cm_store_put(store, "v/c/9/0", "0123456789abcdef", 16, err));
        break;
    case FOREIGN:
        OK(cm_store_put(store, "v/c/9/9", "x", 1, err));
        OK(cm_store_put(store, "v/zarr.json", "x", 1, err));
        break;
    case SHIFTED: /* an array that begins at its second object in the store */
        c->p.job.var[0].window.first_object[0] = 1;
        break;
    }
}

static const struct {
    change change;
    const char *seen;
    bool same[NPARTS]; /* digests */
} SEEN[] = {
    {NOTHING, "2 of 32, 3 of 38, 2 of 32", {true, true, true}},
    {REMOVED, "2 of 32, 2 of 22, 2 of 32", {true, false, true}},
    {SHORTER, "2 of 32, 3 of 23, 2 of 32", {true, false, true}},
    {MOVED, "2 of 32, 2 of 22, 2 of 32", {true, false, true}},
    {FOREIGN, "2 of 32, 3 of 38, 2 of 32", {true, true, true}},
    {SHIFTED, "2 of 32, 3 of 38, 1 of 16", {true, true, false}},
};

static void objects_are_seen(void **state)
{
    unsigned bad = 0;
    cm_part_claim first[NPARTS], seen[NPARTS], one;
    (void)state;
    for (size_t i = 0; i < COUNT(SEEN); i++) {
        claimed c;
        claimed_begin(&c);
        if (i == 0)
            (void)say_seen(&c, first);
        make_change(&c, SEEN[i].change);
        tell_compare("seen", say_seen(&c, seen), SEEN[i].seen, &bad);
        for (uint64_t k = 0; k < NPARTS; k++) {
            if ((strcmp(seen[k].digest, first[k].digest) == 0) != SEEN[i].same[k])
                fail_msg("change %u: part %u", (unsigned)i, (unsigned)k);
            OK(cm_part_claims_see(&c.p.job, &c.out, k, 1, &one, err));
            assert_true(cm_part_claims_agree(&one, &seen[k]));
        }
        claimed_end(&c);
    }
    assert_int_equal(bad, 0);
}

/* Copied objects have any names, of which documents are none; all are one part's. */
static void copied_objects(void **state)
{
    claimed c;
    cm_part_claim seen[NPARTS], before[NPARTS];
    (void)state;
    claimed_begin(&c);
    c.p.job.var[0].stored.as_objects = true;
    OK(cm_store_put(c.p.store, "v/.zarray", "12345", 5, err));
    OK(cm_store_put(c.p.store, "v/of/any.name", "12345", 5, err));
    (void)say_seen(&c, before);
    uint64_t nobjects = 0;
    for (uint64_t k = 0; k < NPARTS; k++)
        nobjects += before[k].nobjects;
    assert_int_equal(nobjects, 6 + 1 + 1); /* those of V, that one, and that of W */
    OK(cm_store_delete(c.p.store, "v/of/any.name", err));
    OK(cm_store_put(c.p.store, "v/of/other.name", "12345", 5, err));
    (void)say_seen(&c, seen);
    unsigned ndiffer = 0;
    for (uint64_t k = 0; k < NPARTS; k++) {
        assert_int_equal(seen[k].nobjects, before[k].nobjects);
        assert_int_equal(seen[k].nbytes, before[k].nbytes);
        ndiffer += strcmp(seen[k].digest, before[k].digest) != 0;
    }
    assert_int_equal(ndiffer, 1);
    claimed_end(&c);
}

static void a_stop(void **state)
{
    claimed c;
    cm_part_claim seen[NPARTS];
    cm_error why = {0};
    cm_monitor *monitor = cm_monitor_create(NULL);
    (void)state;
    claimed_begin(&c);
    cm_monitor_cancel(monitor);
    c.p.options.monitor = monitor;
    assert_int_equal(cm_part_claims_see(&c.p.job, &c.out, 0, NPARTS, seen, &why), CM_ECANCELED);
    c.p.options.monitor = NULL;
    cm_monitor_free(monitor);
    claimed_end(&c);
}

/* ---- proving ---- */

static const struct {
    change change;
    bool complete; /* all parts were done, and one file says so */
    const char *wrong;
    bool done[NPARTS], still_complete; /* after it */
} PROVEN[] = {
    {NOTHING, false, NULL, {true, true, true}, false},
    {REMOVED, false, "2", {true, false, true}, false},
    {SHIFTED, false, "3", {true, true, false}, false},
    {NOTHING, true, NULL, {false, false, false}, true},
    {SHORTER, true, "2", {true, false, true}, false},
};

static void proven(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(PROVEN); i++) {
        claimed c;
        char *wrong = (char *)1;
        cm_part_lack lack = {0};
        claimed_begin(&c);
        claim_all(&c);
        if (PROVEN[i].complete) {
            OK(cm_part_claims_close(&c.p.job, &c.out, err));
            for (uint64_t k = 0; k < NPARTS; k++) {
                char *name = cm_part_file(k, "done", NULL);
                OK(cm_store_delete(c.out.beside.in, name, err));
                free(name);
            }
        }
        make_change(&c, PROVEN[i].change);
        OK(cm_part_claims_prove(&c.p.job, &c.out, 0, NPARTS, &wrong, &lack, err));
        if ((wrong == NULL) != (PROVEN[i].wrong == NULL) ||
            (wrong != NULL && strcmp(wrong, PROVEN[i].wrong) != 0))
            fail_msg("row %u: %s", (unsigned)i, wrong != NULL ? wrong : "nothing is wrong");
        if (wrong != NULL) {
            assert_int_equal(lack.number, strtoul(wrong, NULL, 10) - 1);
            assert_false(cm_part_claims_agree(&lack.claimed, &lack.there));
        }
        for (uint64_t k = 0; k < NPARTS; k++) {
            char *name = cm_part_file(k, "done", NULL);
            if (beside_has(&c.out.beside, name) != PROVEN[i].done[k])
                fail_msg("row %u: %s", (unsigned)i, name);
            free(name);
        }
        assert_int_equal(beside_has(&c.out.beside, CM_PARTS_COMPLETE), PROVEN[i].still_complete);
        free(wrong);
        claimed_end(&c);
    }
}

/* The part that another process makes now keeps its claim; an old version made none. */
static void not_taken_back(void **state)
{
    claimed c;
    char *wrong;
    cm_part_lack lack;
    (void)state;
    claimed_begin(&c);
    claim_all(&c);
    beside_put_lock(&c.out.beside, "part-2.lock", false);
    make_change(&c, REMOVED);
    OK(cm_part_claims_prove(&c.p.job, &c.out, 0, NPARTS, &wrong, &lack, err));
    assert_string_equal(wrong, "2");
    assert_true(beside_has(&c.out.beside, "part-2.done"));
    free(wrong);
    beside_note(&c.out.beside, CM_PARTS_COMPLETE, HASH, NULL);
    OK(cm_part_claims_prove(&c.p.job, &c.out, 0, NPARTS, &wrong, &lack, err));
    assert_null(wrong);
    claimed_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_agree),     cmocka_unit_test(claims_are_read),
        cmocka_unit_test(objects_are_seen), cmocka_unit_test(copied_objects),
        cmocka_unit_test(a_stop),           cmocka_unit_test(proven),
        cmocka_unit_test(not_taken_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
