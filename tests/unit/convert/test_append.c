/* A store that grows: windows of its arrays, and documents that get another length. */

#include "convert/sink/growth/append.h"
#include "job_fixture.h"

#define OLD(n)                                                                                     \
    {                                                                                              \
        "f", .var = {                                                                              \
            {"t", "int32", "t*=" n},                                                               \
            {"v", "int16", "t*=" n " y=4"},                                                        \
            {"s", "int16", "y=4"}                                                                  \
        }                                                                                          \
    }

/* "t beyond 5+2 object 3": of each window its phase, first element + elements, first object. */
static const char *say_windows(planned *p)
{
    static const char *const PHASE[] = {"beyond", "within", "labels"};
    tell_begin(&p->text);
    for (size_t i = 0; i < p->job.nvars; i++) {
        const cm_job_var *v = &p->job.var[i];
        tell(&p->text, "%s%s %s %u+%u object %u", i > 0 ? "; " : "", v->name,
             PHASE[v->window.phase], (unsigned)v->window.at[0], (unsigned)v->view.shape[0],
             (unsigned)v->window.first_object[0]);
        assert_int_equal(v->view.start[0], v->window.at[0]);
        assert_true(v->window.is_part);
    }
    return (const char *)p->text.data;
}

/* The lengths that documents get: "t 3>5; v 3>5". */
static const char *say_grown(planned *p, const cm_append_state *s)
{
    tell_begin(&p->text);
    for (size_t i = 0; i < s->ngrown; i++)
        tell(&p->text, "%s%s %u>%u", i > 0 ? "; " : "", s->grown[i].growth.path,
             (unsigned)s->grown[i].growth.was, (unsigned)s->grown[i].growth.length);
    return (const char *)p->text.data;
}

static const struct {
    const char *name;
    made_file old, new;
    cm_transform_options options; /* that the store was made with */
    bool hold;
    const char *windows, *grown, *error;
} ROWS[] = {
    {"chunks that end where the store ends",
     OLD("4"),
     OLD("6"),
     {.chunks = TEXTS("v:2x4", "t:2")},
     false,
     "t labels 4+2 object 2; v beyond 4+2 object 2",
     "t 4>6; v 4>6",
     NULL},
    {"a last chunk that is not full",
     OLD("3"),
     OLD("7"),
     {.chunks = TEXTS("v:2x4", "t:4")},
     false,
     "t labels 4+3 object 1; t labels 0+4 object 0; v beyond 4+3 object 2; v within 2+2 object 1",
     "t 3>7; v 3>7",
     NULL},
    {"within the last chunk",
     OLD("3"),
     OLD("4"),
     {.chunks = TEXTS("v:8x4", "t:8")},
     false,
     "t labels 0+4 object 0; v within 0+4 object 0",
     "t 3>4; v 3>4",
     NULL},
    {"whole shards",
     OLD("4"),
     OLD("9"),
     {.chunks = TEXTS("v:1x4", "t:8"), .shards = TEXTS("v:4x4")},
     false,
     "t labels 8+1 object 1; t labels 0+8 object 0; v beyond 4+5 object 1",
     "t 4>9; v 4>9",
     NULL},
    {"what does not fill a chunk is held back",
     OLD("4"),
     OLD("7"),
     {.chunks = TEXTS("v:2x4", "t:8")},
     true,
     "t labels 0+6 object 0; v beyond 4+2 object 2",
     "t 4>6; v 4>6",
     NULL},
    {"and all of it where it fills none",
     OLD("4"),
     OLD("5"),
     {.chunks = TEXTS("v:2x4", "t:8")},
     true,
     "",
     "t 4>4; v 4>4",
     NULL},
    {"and no more than what is new",
     OLD("5"),
     OLD("7"),
     {.chunks = TEXTS("v:4x4", "t:8")},
     true,
     "",
     "t 5>5; v 5>5",
     NULL},
    {"another type",
     OLD("2"),
     {"f", .var = {{"t", "int32", "t*=3"}, {"v", "int32", "t*=3 y=4"}}},
     {.chunks = TEXTS("t:8")},
     false,
     NULL,
     NULL,
     "variable v: its elements would be int32, and are int16 in the store"},
    {"another shape",
     OLD("2"),
     {"f", .var = {{"t", "int32", "t*=3"}, {"v", "int16", "t*=3 y=5"}}},
     {.chunks = TEXTS("t:8")},
     false,
     NULL,
     NULL,
     "variable v: its shape is not that of the store"},
    {"an array that is not added",
     OLD("2"),
     {"f", .var = {{"t", "int32", "t*=3"}}},
     {.chunks = TEXTS("t:8")},
     false,
     NULL,
     NULL,
     "array v: has the dimension t, and is not among the variables that are added; all arrays "
     "along it grow together"},
    {"a variable that the store has not",
     OLD("2"),
     {"f", .var = {{"t", "int32", "t*=3"}, {"v", "int16", "t*=3 y=4"}, {"x", "int16", "t*=3"}}},
     {.chunks = TEXTS("t:8")},
     false,
     NULL,
     NULL,
     "variable x: is not in the store to add to; `exclude` leaves it out"},
    {"of two lengths",
     OLD("2"),
     {"f", .var = {{"t", "int32", "t*=3"}, {"v", "int16", "t*=4 y=4"}}},
     {.chunks = TEXTS("t:8")},
     false,
     NULL,
     NULL,
     "variable v: has 4 elements along t, and others 3"},
};

static void windows(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned old, new;
        cm_error why = {0};
        planned_make(&old, &ROWS[i].old, &ROWS[i].options, STEP_RUN);
        if (old.status != CM_OK)
            fail_msg("%s: %s", ROWS[i].name, old.error.text);
        OK(cm_job_write_metadata(&old.job, old.store, err));
        const cm_dataset_options options = {.store = old.store};
        cm_append append = {.dimension = (char[]){"t"}, .hold = ROWS[i].hold};
        cm_append_state s = {.append = &append};
        OK(cm_dataset_open("memory", "", &options, &s.target, err));
        planned_make(&new, &ROWS[i].new, NULL, STEP_VIEW);
        const int rc = cm_append_make_windows(&new.job, &s, &why);
        tell_compare(ROWS[i].name, rc == CM_OK ? "" : why.text,
                     ROWS[i].error != NULL ? ROWS[i].error : "", &bad);
        tell_compare(ROWS[i].name, say_windows(&new), ROWS[i].windows, &bad);
        tell_compare(ROWS[i].name, say_grown(&new, &s), ROWS[i].grown, &bad);
        cm_dataset_close(s.target);
        s.target = NULL;
        free(s.grown);
        planned_release(&new);
        planned_release(&old);
    }
    assert_int_equal(bad, 0);
}

/* A document changes in its length and in nothing else. */
static void documents(void **state)
{
    static const int FORMAT[] = {2, 3};
    (void)state;
    for (size_t f = 0; f < COUNT(FORMAT); f++) {
        static const made_file FILE_OF_3 = OLD("3"), FILE_OF_5 = OLD("5");
        const cm_transform_options options = {.zarr_format = FORMAT[f],
                                              .chunks = TEXTS("v:2x4", "t:8")};
        const cm_growth growth[] = {{.path = "t", .was = 3, .length = 5},
                                    {.path = "v", .was = 3, .length = 5}};
        planned old, new;
        cm_commit commit;
        planned_make(&old, &FILE_OF_3, &options, STEP_DESCRIBE);
        planned_make(&new, &FILE_OF_5, &options, STEP_DESCRIBE);
        OK(cm_job_write_metadata(&old.job, old.store, err));
        OK(cm_job_write_metadata(&new.job, new.store, err));
        OK(cm_commit_make(old.store, FORMAT[f], growth, 2, NULL, &commit, err));
        const cm_json *list = cm_json_member(commit.record, "objects");
        assert_int_equal(cm_json_length(list), 3); /* those of t and v, and what has both */
        for (size_t i = 0; i < cm_json_length(list); i++) {
            const char *key = cm_json_text(cm_json_member(cm_json_at(list, i), "key"), NULL);
            const char *text = cm_json_text(cm_json_member(cm_json_at(list, i), "text"), NULL);
            cm_buf wanted = {0};
            OK(cm_store_get(new.store, key, 1 << 20, &wanted, err));
            assert_int_equal(strlen(text), wanted.nbytes);
            assert_memory_equal(text, wanted.data, wanted.nbytes);
            cm_buf_release(&wanted);
        }
        cm_commit_release(&commit);
        planned_release(&old);
        planned_release(&new);
    }
}

/* Documents that say another length than is expected are not touched. */
static void documents_of_another_length(void **state)
{
    static const made_file FILE_OF_3 = OLD("3");
    const cm_growth growth = {.path = "v", .was = 4, .length = 5},
                    none = {.path = "x", .was = 3, .length = 5};
    planned old;
    cm_commit commit;
    cm_error why = {0};
    (void)state;
    planned_make(&old, &FILE_OF_3, NULL, STEP_DESCRIBE);
    OK(cm_job_write_metadata(&old.job, old.store, err));
    assert_int_equal(cm_commit_make(old.store, 3, &growth, 1, NULL, &commit, &why), CM_EFORMAT);
    cm_commit_release(&commit);
    assert_int_not_equal(cm_commit_make(old.store, 3, &none, 1, NULL, &commit, &why), CM_OK);
    cm_commit_release(&commit);
    planned_release(&old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows), cmocka_unit_test(documents),
                                       cmocka_unit_test(documents_of_another_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
