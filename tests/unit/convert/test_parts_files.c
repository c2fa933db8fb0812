/* Files of parts beside a store: notes that count, a plan that is published once, who is at it. */

#include <dirent.h>
#include <sys/stat.h>

#include "../fixtures/tell.h"
#include "beside_fixture.h"

/* ---- names ---- */

static void names(void **state)
{
    static const struct {
        const char *name;
        bool is;
    } NAMES[] = {
        {"plan", true},         {"complete", true}, {"part-1.done", true}, {"part-12.lock", true},
        {"part-", true},        {"lock", false},    {"plan2", false},      {"complet", false},
        {"apart-1", false},     {"part", false},    {"", false},           {"journal", false},
        {"append-left", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(NAMES); i++)
        if (cm_parts_is_file(NAMES[i].name) != NAMES[i].is)
            fail_msg("%s", NAMES[i].name);
    char *first = cm_part_file(0, "done", NULL), *last = cm_part_file(UINT64_MAX - 1, "x", NULL);
    assert_string_equal(first, "part-1.done");
    assert_string_equal(last, "part-18446744073709551615.x");
    free(first);
    free(last);
}

/* ---- notes ---- */

/* A folder in memory: what has no locks needs no other. */
static cm_beside in_memory(void)
{
    cm_beside b = {.path = (char *)(uintptr_t) "/out.chunkmill",
                   .shown = (char *)(uintptr_t) "out",
                   .fd = -1,
                   .remote = true};
    OK(cm_store_open_memory(&b.in, err));
    return b;
}

/* "1b2a3f4c {...}\n" as it is written, where PLACE is changed to BYTE; -1: the end. */
static void damage(const cm_beside *b, const char *name, long place, int byte)
{
    cm_buf text = {0};
    OK(cm_store_get(b->in, name, 1 << 20, &text, err));
    if (byte < 0)
        text.nbytes = (size_t)((long)text.nbytes + place);
    else
        text.data[place] = (uint8_t)byte;
    OK(cm_store_put(b->in, name, text.data, text.nbytes, err));
    cm_buf_release(&text);
}

static const struct {
    const char *name;
    const char *hash, *asked;
    long place; /* that is damaged, with */
    int byte;   /* this; 0: nothing is, below: the note is cut there */
    bool counts;
} NOTES[] = {
    {"about this plan", "ab", "ab", 0, 0, true},
    {"about another", "ab", "ac", 0, 0, false},
    {"about one that begins so", "ab", "a", 0, 0, false},
    {"a checksum that is another", "ab", "ab", 0, 'x', false},
    {"a byte that is another", "ab", "ab", 12, '?', false},
    {"without its end", "ab", "ab", -1, -1, false},
    {"cut in the middle", "ab", "ab", -9, -1, false},
    {"a NUL in it", "ab", "ab", 12, 256, false},
};

static void notes(void **state)
{
    cm_beside b = in_memory();
    (void)state;
    for (size_t i = 0; i < COUNT(NOTES); i++) {
        cm_json *found = NULL;
        uint64_t n = 0;
        beside_note(&b, "part-1.done", NOTES[i].hash, "{'n': 7}");
        if (NOTES[i].byte != 0)
            damage(&b, "part-1.done", NOTES[i].place, NOTES[i].byte == 256 ? 0 : NOTES[i].byte);
        OK(cm_part_noted(&b, "part-1.done", NOTES[i].asked, &found, err));
        if ((found != NULL) != NOTES[i].counts)
            fail_msg("%s", NOTES[i].name);
        if (found != NULL)
            assert_true(cm_json_get_u64(cm_json_member(found, "n"), &n) && n == 7);
        cm_json_free(found);
    }
    cm_json *found = NULL;
    OK(cm_part_noted(&b, "part-2.done", "ab", &found, err)); /* which is not there */
    assert_null(found);
    beside_note(&b, "bare", "ab", NULL);
    OK(cm_part_noted(&b, "bare", "ab", &found, err));
    assert_int_equal(cm_json_length(found), 1);
    cm_json_free(found);
    cm_store_free(b.in);
    b.in = NULL; /* nor is the folder */
    OK(cm_part_noted(&b, "bare", "ab", &found, err));
    assert_null(found);
}

/* ---- the plan ---- */

static const struct {
    const char *name, *plan;
    bool reads;
} PLANS[] = {
    {"all that it takes", "{'parts': 3, 'first index': 10, 'step': 2}", true},
    {"and more", "{'parts': 1, 'first index': 0, 'step': 1, 'variables': []}", true},
    {"no parts", "{'parts': 0, 'first index': 0, 'step': 1}", false},
    {"parts that are not said", "{'first index': 0, 'step': 1}", false},
    {"parts below zero", "{'parts': -3, 'first index': 0, 'step': 1}", false},
    {"no first", "{'parts': 3, 'step': 1}", false},
    {"no step", "{'parts': 3, 'first index': 0}", false},
    {"a step of nothing", "{'parts': 3, 'first index': 0, 'step': 0}", false},
    {"a list", "[3]", false},
};

static void plans_are_read(void **state)
{
    cm_beside b = in_memory();
    cm_parts_plan plan;
    (void)state;
    OK(cm_parts_plan_read(&b, &plan, err)); /* there is none */
    assert_true(plan.json == NULL && plan.nparts == 0 && !plan.complete && plan.hash[0] == '\0');
    for (size_t i = 0; i < COUNT(PLANS); i++) {
        cm_json *json = made_json(PLANS[i].plan);
        cm_error why = {0};
        bool published;
        OK(cm_store_delete(b.in, "plan", err));
        OK(cm_parts_plan_publish(&b, json, &published, err));
        assert_true(published);
        const int rc = cm_parts_plan_read(&b, &plan, &why);
        if (rc != (PLANS[i].reads ? CM_OK : CM_EFORMAT))
            fail_msg("%s: %d", PLANS[i].name, rc);
        if (rc != CM_OK) {
            assert_string_equal(
                why.text, "out: /out.chunkmill/plan: is damaged; remove the folder to begin again");
            assert_null(plan.json);
        }
        cm_parts_plan_release(&plan);
        cm_json_free(json);
    }
    cm_json *json = made_json(PLANS[0].plan);
    bool published;
    char hash[33];
    OK(cm_store_delete(b.in, "plan", err));
    OK(cm_parts_plan_publish(&b, json, &published, err));
    OK(cm_parts_plan_read(&b, &plan, err));
    assert_true(plan.nparts == 3 && plan.first == 10 && plan.step == 2 && !plan.complete);
    assert_int_equal(strlen(plan.hash), 32);
    memcpy(hash, plan.hash, sizeof hash);
    cm_parts_plan_release(&plan);
    beside_note(&b, "complete", "another", NULL);
    OK(cm_parts_plan_read(&b, &plan, err));
    assert_false(plan.complete);
    cm_parts_plan_release(&plan);
    beside_note(&b, "complete", hash, NULL);
    OK(cm_parts_plan_read(&b, &plan, err));
    assert_true(plan.complete);
    assert_string_equal(plan.hash, hash);
    cm_parts_plan_release(&plan);
    damage(&b, "plan", -1, -1);
    assert_int_equal(cm_parts_plan_read(&b, &plan, NULL), CM_EFORMAT);
    cm_json_free(json);
    cm_store_free(b.in);
}

/* Files in the folder PATH, those of any name. */
static unsigned count_files(const char *path)
{
    unsigned n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    closedir(dir);
    return n;
}

/* The first plan stays; behind a network the same one, put twice, is no other's. */
static void published_once(void **state)
{
    cm_json *one = made_json(PLANS[0].plan), *other = made_json(PLANS[1].plan);
    (void)state;
    for (unsigned remote = 0; remote < 2; remote++) {
        made_beside m;
        cm_parts_plan plan;
        bool published;
        made_beside_begin(&m);
        cm_beside b = remote ? in_memory() : m.beside;
        OK(cm_parts_plan_publish(&b, one, &published, err));
        assert_true(published);
        OK(cm_parts_plan_publish(&b, other, &published, err));
        assert_false(published);
        OK(cm_parts_plan_publish(&b, one, &published, err));
        assert_int_equal(published, remote);
        OK(cm_parts_plan_read(&b, &plan, err));
        assert_int_equal(plan.nparts, 3);
        cm_parts_plan_release(&plan);
        if (!remote)
            assert_int_equal(count_files(b.path), 1); /* no temporary stays */
        if (remote)
            cm_store_free(b.in);
        made_beside_end(&m);
    }
    cm_json_free(one);
    cm_json_free(other);
}

/* A folder has the name. */
static void a_folder_in_its_place(void **state)
{
    made_beside m;
    char path[260];
    bool published;
    cm_error why = {0};
    cm_json *json = made_json(PLANS[0].plan);
    (void)state;
    made_beside_begin(&m);
    snprintf(path, sizeof path, "%s/plan", m.beside.path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(cm_parts_plan_publish(&m.beside, json, &published, &why), CM_EEXIST);
    assert_false(published);
    assert_non_null(strstr(why.text, "plan"));
    cm_json_free(json);
    made_beside_end(&m);
}

/* ---- others ---- */

static void forgotten(void **state)
{
    static const char *const GO[] = {"plan", "complete", "part-1.done", "part-2.journal"};
    static const char *const STAY[] = {"lock", "journal", "append-left"};
    made_beside m;
    (void)state;
    made_beside_begin(&m);
    for (size_t i = 0; i < COUNT(GO); i++)
        beside_put(&m.beside, GO[i], "x");
    for (size_t i = 0; i < COUNT(STAY); i++)
        beside_put(&m.beside, STAY[i], "x");
    OK(cm_parts_forget(&m.beside, err));
    OK(cm_parts_forget(&m.beside, err)); /* nothing is left to go */
    for (size_t i = 0; i < COUNT(GO); i++)
        assert_false(beside_has(&m.beside, GO[i]));
    for (size_t i = 0; i < COUNT(STAY); i++)
        assert_true(beside_has(&m.beside, STAY[i]));
    const cm_beside none = {.fd = -1};
    OK(cm_parts_forget(&none, err));
    made_beside_end(&m);
}

static void running(void **state)
{
    made_beside m;
    cm_lock_holder who;
    uint64_t n = 99;
    (void)state;
    made_beside_begin(&m);
    beside_put_lock(&m.beside, "part-1.lock", true);  /* ended */
    beside_put_lock(&m.beside, "lock", false);        /* of the output */
    beside_put_lock(&m.beside, "part-1.done", false); /* no lock */
    OK(cm_parts_running(&m.beside, &n, &who, err));
    assert_int_equal(n, 0);
    beside_put_lock(&m.beside, "part-2.lock", false);
    beside_put_lock(&m.beside, "part-10.lock", false);
    OK(cm_parts_running(&m.beside, &n, &who, err));
    assert_int_equal(n, 2);
    assert_int_equal(who.state, CM_LOCK_OF_PART);
    const cm_beside none = {.fd = -1};
    OK(cm_parts_running(&none, &n, &who, err));
    assert_int_equal(n, 0);
    made_beside_end(&m);
}

static const struct {
    const char *name, *plan; /* NULL: there is none */
    bool complete, runs, two, overwrite;
    const char *error; /* behind the output's name and ": "; NULL: nothing is in the way */
} IN_THE_WAY[] = {
    {.name = "nothing"},
    {.name = "a plan that is complete",
     .plan = "{'parts': 3, 'first index': 0, 'step': 1}",
     .complete = true},
    {.name = "one that is not",
     .plan = "{'parts': 3, 'first index': 0, 'step': 1}",
     .error = "was begun in 3 parts, and is not complete; run what is missing; to begin again "
              "remove it and use `overwrite`"},
    {.name = "of one part",
     .plan = "{'parts': 1, 'first index': 0, 'step': 1}",
     .error = "was begun in 1 part, and is not complete; run what is missing; to begin again "
              "remove it and use `overwrite`"},
    {.name = "that is overwritten",
     .plan = "{'parts': 3, 'first index': 0, 'step': 1}",
     .overwrite = true},
    {.name = "that adds",
     .plan = "{'parts': 2, 'first index': 0, 'step': 1, 'append': {}}",
     .error = "2 parts add to it, and not all is done; run what is missing; an append by one "
              "process with `break_lock` gives it up"},
    {.name = "that added",
     .plan = "{'parts': 2, 'first index': 0, 'step': 1, 'append': {}}",
     .complete = true},
    {.name = "a part that runs",
     .runs = true,
     .overwrite = true,
     .error = "1 part of it is being written ("},
    {.name = "two", .runs = true, .two = true, .error = "2 parts of it are being written ("},
};

static void in_the_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(IN_THE_WAY); i++) {
        made_beside m;
        cm_error why = {0};
        char wanted[400];
        bool published;
        made_beside_begin(&m);
        if (IN_THE_WAY[i].plan != NULL) {
            cm_json *json = made_json(IN_THE_WAY[i].plan);
            cm_parts_plan plan;
            OK(cm_parts_plan_publish(&m.beside, json, &published, err));
            OK(cm_parts_plan_read(&m.beside, &plan, err));
            if (IN_THE_WAY[i].complete)
                beside_note(&m.beside, "complete", plan.hash, NULL);
            cm_parts_plan_release(&plan);
            cm_json_free(json);
        }
        if (IN_THE_WAY[i].runs)
            beside_put_lock(&m.beside, "part-1.lock", false);
        if (IN_THE_WAY[i].two)
            beside_put_lock(&m.beside, "part-2.lock", false);
        cm_beside_close(&m.beside);
        const int rc = cm_parts_check_none(&m.beside, IN_THE_WAY[i].overwrite, &why);
        snprintf(wanted, sizeof wanted, "%s: %s", m.out,
                 IN_THE_WAY[i].error != NULL ? IN_THE_WAY[i].error : "");
        if (rc != (IN_THE_WAY[i].error != NULL ? CM_EEXIST : CM_OK) ||
            (rc != CM_OK && strncmp(why.text, wanted, strlen(wanted)) != 0))
            fail_msg("%s: %s", IN_THE_WAY[i].name, why.text);
        made_beside_end(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names),
                                       cmocka_unit_test(notes),
                                       cmocka_unit_test(plans_are_read),
                                       cmocka_unit_test(published_once),
                                       cmocka_unit_test(a_folder_in_its_place),
                                       cmocka_unit_test(forgotten),
                                       cmocka_unit_test(running),
                                       cmocka_unit_test(in_the_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
