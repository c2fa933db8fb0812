/* Changes that a replacement makes: how many elements, and by how much at most. */

#include "convert/sink/growth/append.h"
#include "job_fixture.h"

/* "3 by 2.5": of NAME, elements FIRST to END along dimension AXIS. */
static const char *say_changes(planned *p, cm_dataset *was, cm_dataset *now, const char *name,
                               unsigned axis, uint64_t first, uint64_t end)
{
    cm_grown grown = {.growth = {.path = name, .axis = axis}, .source = cm_dataset_find(now, name)};
    cm_append_state s = {.target = was, .grown = &grown, .ngrown = 1, .first = first, .end = end};
    char number[32];
    cm_dataset *source = p->job.source;
    p->job.source = now;
    OK(cm_dataset_prepare(now, grown.source, err));
    OK(cm_replace_compare(&p->job, &s, err));
    p->job.source = source;
    assert_true(s.compared);
    tell_begin(&p->text);
    tell(&p->text, "%llu by %s", (unsigned long long)grown.nchanged,
         cm_format_double(grown.largest, number, sizeof number));
    return (const char *)p->text.data;
}

/* ---- numbers ---- */

#define TWO(type, old, new, ...)                                                                   \
    {"f", .var = {{"v", type, "t*=4", .values = old, __VA_ARGS__}}},                               \
    {                                                                                              \
        "g", .var = { {"v", type, "t*=4", .values = new, __VA_ARGS__} }                            \
    }

static const struct {
    const char *name;
    made_file old, new;
    unsigned first, end;
    const char *changes;
} NUMBERS[] = {
    {"nothing", TWO("int16", "1 2 3 4", "1 2 3 4", 0), 0, 4, "0 by NaN"},
    {"the largest change, whatever its sign", TWO("int16", "1 2 3 4", "2 -5 3 9", 0), 0, 4,
     "3 by 7.0"},
    {"only what is replaced", TWO("int16", "1 2 3 4", "9 3 5 9", 0), 1, 3, "2 by 2.0"},
    {"an empty range", TWO("int16", "1 2 3 4", "9 3 5 9", 0), 2, 2, "0 by NaN"},
    {"what was missing", TWO("int16", "-9 2 3 4", "1 2 3 4", .fill = "-9"), 0, 4, "1 by NaN"},
    {"what gets missing, beside a change", TWO("int16", "1 2 3 4", "-9 2 3 5", .fill = "-9"), 0, 4,
     "2 by 1.0"},
    {"a number that is none", TWO("float32", "1 2 3 4", "nan 2 3 4", 0), 0, 4, "1 by NaN"},
    {"what has no end", TWO("float64", "-1e308 2 3 4", "1e308 2 3 4.5", 0), 0, 4, "2 by 0.5"},
    {"another zero", TWO("float64", "0 2 3 4", "-0 2 3 4", 0), 0, 4, "1 by 0.0"},
    {"one more than what a double tells apart",
     TWO("int64", "9007199254740992 0 0 0", "9007199254740993 0 0 0", 0), 0, 4, "1 by 1.0"},
    {"and one less", TWO("int64", "-9007199254740992 0 0 0", "-9007199254740993 0 0 0", 0), 0, 4,
     "1 by 1.0"},
    {"from one end of its type to the other",
     TWO("int64", "-9223372036854775808 0 0 0", "9223372036854775807 0 0 0", 0), 0, 4,
     "1 by 1.8446744073709552e+19"},
    {"the largest that has no sign", TWO("uint64", "18446744073709551615 0 0 0", "0 1 0 0", 0), 0,
     4, "2 by 1.8446744073709552e+19"},
    {"packed numbers", TWO("int16", "1 2 3 4", "3 2 3 4", .attrs = "{'scale_factor': -0.5}"), 0, 4,
     "1 by 1.0"},
    {"and times", TWO("int64", "10 20 30 40", "10 20 30 41", .attrs = "{'units': 's'}"), 3, 4,
     "1 by 1.0"},
};

static void numbers(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(NUMBERS); i++) {
        planned old;
        planned_make(&old, &NUMBERS[i].old, &(cm_transform_options){.nthreads = 1}, STEP_RUN);
        if (old.status != CM_OK)
            fail_msg("%s: %s", NUMBERS[i].name, old.error.text);
        OK(cm_job_write_metadata(&old.job, old.store, err));
        const cm_dataset_options options = {.store = old.store};
        cm_dataset *was, *now = made_open(&NUMBERS[i].new);
        OK(cm_dataset_open("memory", "", &options, &was, err));
        tell_compare(NUMBERS[i].name,
                     say_changes(&old, was, now, "v", 0, NUMBERS[i].first, NUMBERS[i].end),
                     NUMBERS[i].changes, &bad);
        cm_dataset_close(now);
        cm_dataset_close(was);
        planned_release(&old);
    }
    assert_int_equal(bad, 0);
}

/* ---- boxes ---- */

static const made_file LARGE = {
    "f", .var = {{"v", "int32", "a=5 b=11 c=401"}, {"long", "int32", "n=20000"}}};
static const struct {
    const char *name, *variable;
    cm_transform_options options;
    unsigned nthreads, axis, first, end;
    uint64_t memory;
    const char *changes;
} BOXES[] = {
    {"all at once", "v", {0}, 1, 0, 0, 5, UINT64_MAX, "22055 by 1.0"},
    {"in boxes of 64 KiB", "v", {0}, 3, 0, 0, 5, 1, "22055 by 1.0"},
    {"of one chunk's rows", "v", {.chunks = TEXTS("v:5x11x401")}, 3, 0, 0, 5, 1, "22055 by 1.0"},
    {"along another dimension", "v", {.chunks = TEXTS("v:2x3x70")}, 2, 1, 2, 10, 1, "16040 by 1.0"},
    {"along the last", "v", {.chunks = TEXTS("v:5x11x37")}, 2, 2, 1, 400, 1, "21945 by 1.0"},
    {"in shards",
     "v",
     {.chunks = TEXTS("v:1x11x401"), .shards = TEXTS("v:5x11x401")},
     2,
     0,
     3,
     5,
     1,
     "8822 by 1.0"},
    {"of one dimension", "long", {0}, 4, 0, 1, 19999, 1, "19998 by 1.0"},
};

/* Each element is compared once, however small the memory is and along whichever dimension. */
static void boxes(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(BOXES); i++) {
        planned old;
        cm_transform_options made_with = BOXES[i].options;
        made_with.nthreads = 1;
        planned_make(&old, &LARGE, &made_with, STEP_RUN);
        if (old.status != CM_OK)
            fail_msg("%s: %s", BOXES[i].name, old.error.text);
        OK(cm_job_write_metadata(&old.job, old.store, err));
        const cm_dataset_options options = {.store = old.store};
        cm_dataset *was, *now = made_open(&LARGE);
        OK(cm_dataset_open("memory", "", &options, &was, err));
        for (size_t k = 0; k < now->nvars; k++) {
            int32_t *element = (int32_t *)(void *)((made_dataset *)now)->array[k].values;
            for (unsigned n = 0; n < (k == 0 ? 5 * 11 * 401 : 20000); n++)
                element[n] ^= 1;
        }
        old.options.nthreads = BOXES[i].nthreads;
        old.job.budget.limit_nbytes = BOXES[i].memory;
        tell_compare(BOXES[i].name,
                     say_changes(&old, was, now, BOXES[i].variable, BOXES[i].axis, BOXES[i].first,
                                 BOXES[i].end),
                     BOXES[i].changes, &bad);
        cm_dataset_close(now);
        cm_dataset_close(was);
        planned_release(&old);
    }
    assert_int_equal(bad, 0);
}

/* ---- texts ---- */

/* An array "v" of three texts, in one chunk. */
static cm_dataset *texts_of(cm_store **store, const char *const *text)
{
    static const char GROUP[] = "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}";
    static const char ARRAY[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[3],\"data_type\":\"string\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[3]}},"
        "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":\"\","
        "\"codecs\":[{\"name\":\"vlen-utf8\"}],\"attributes\":{},\"dimension_names\":[\"t\"]}";
    uint8_t chunk[64] = {3};
    size_t n = 4;
    cm_dataset *ds;
    for (size_t i = 0; i < 3; i++) {
        chunk[n] = (uint8_t)strlen(text[i]);
        memcpy(chunk + n + 4, text[i], strlen(text[i]));
        n += 4 + strlen(text[i]);
    }
    OK(cm_store_open_memory(store, err));
    OK(cm_store_put(*store, "zarr.json", GROUP, sizeof GROUP - 1, err));
    OK(cm_store_put(*store, "v/zarr.json", ARRAY, sizeof ARRAY - 1, err));
    OK(cm_store_put(*store, "v/c/0", chunk, n, err));
    const cm_dataset_options options = {.store = *store};
    OK(cm_dataset_open("memory", "", &options, &ds, err));
    return ds;
}

static void texts(void **state)
{
    static const struct {
        const char *name, *old[3], *new[3], *changes;
    } ROWS[] = {
        {"none", {"a", "", "c"}, {"a", "", "c"}, "0 by NaN"},
        {"another letter", {"a", "b", "c"}, {"a", "x", "c"}, "1 by NaN"},
        {"one that goes on", {"a", "b", "c"}, {"a", "b", "cc"}, "1 by NaN"},
        {"to nothing, and from nothing", {"", "b", "c"}, {"a", "b", ""}, "2 by NaN"},
    };
    static const made_file NONE = {"f", .var = {{"v", "int16", "t=3"}}};
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        cm_store *store[2];
        planned_make(&p, &NONE, NULL, STEP_VIEW);
        cm_dataset *was = texts_of(&store[0], ROWS[i].old), *now = texts_of(&store[1], ROWS[i].new);
        tell_compare(ROWS[i].name, say_changes(&p, was, now, "v", 0, 0, 3), ROWS[i].changes, &bad);
        cm_dataset_close(was);
        cm_dataset_close(now);
        cm_store_free(store[0]);
        cm_store_free(store[1]);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

/* ---- what ends it ---- */

static void failures(void **state)
{
    static const made_file OLD = {"f", .var = {{"v", "int16", "t*=4"}}};
    planned old;
    cm_error why = {0};
    cm_monitor *monitor = cm_monitor_create(NULL);
    (void)state;
    cm_monitor_cancel(monitor);
    planned_make(&old, &OLD, NULL, STEP_RUN);
    OK(cm_job_write_metadata(&old.job, old.store, err));
    const cm_dataset_options options = {.store = old.store};
    cm_dataset *was, *now = made_open(&OLD);
    OK(cm_dataset_open("memory", "", &options, &was, err));
    cm_grown grown = {.growth.path = "v", .source = &now->var[0]};
    cm_append append = {.dimension = "t"};
    cm_append_state s = {
        .append = &append, .target = was, .grown = &grown, .ngrown = 1, .first = 1, .end = 4};
    grown.nwindows = 1;
    old.job.source = now;
    old.options.monitor = monitor;
    assert_int_equal(cm_replace_compare(&old.job, &s, &why), CM_ECANCELED);
    assert_string_equal(why.text, "stopped by request");
    assert_false(s.compared);
    old.options.monitor = NULL;
    cm_monitor_free(monitor);
    OK(cm_store_put(old.store, "v/c/0", "x", 1, err)); /* a chunk that does not decode */
    assert_int_equal(cm_replace_compare(&old.job, &s, &why), CM_EFORMAT);
    assert_non_null(strstr(why.text, "; `replace` t=0:4, of whole chunks, reads none"));
    assert_false(s.compared || grown.unread);
    s.first = 0;
    OK(cm_replace_compare(&old.job, &s, err));
    assert_true(s.compared && grown.unread);
    grown.growth.path = "none"; /* an array that is not there has no change */
    assert_int_equal(cm_replace_compare(&old.job, &s, &why), CM_OK);
    assert_true(s.compared);
    old.job.source = old.made;
    cm_dataset_close(now);
    cm_dataset_close(was);
    planned_release(&old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers), cmocka_unit_test(boxes),
                                       cmocka_unit_test(texts), cmocka_unit_test(failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
