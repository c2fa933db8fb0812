/* Whether a store that others may add to is still the one that was opened. */

#include "../fixtures/made_folder.h"
#include "convert/sink/growth/append.h"
#include "job_fixture.h"

#define LENGTH(n)                                                                                  \
    {                                                                                              \
        "f", .var = { {"t", "int32", "t*=" n}, {"v", "int16", "y=4 t*=" n} }                       \
    }

/* ---- lengths of what was opened later ---- */

static const struct {
    const char *name;
    bool knows;
    unsigned was;
    made_file now;
    bool same;
} LATER[] = {
    {"as it was", true, 3, LENGTH("3"), true},
    {"longer", true, 3, LENGTH("4"), false},
    {"shorter", true, 3, LENGTH("2"), false},
    {"nothing is known of it", false, 3, LENGTH("4"), true},
    {"one array is longer",
     true,
     3,
     {"f", .var = {{"t", "int32", "t*=3"}, {"v", "int16", "t*=4"}}},
     false},
    {"one is shorter",
     true,
     3,
     {"f", .var = {{"t", "int32", "t*=2"}, {"v", "int16", "t*=3"}}},
     false},
    {"no array has the dimension any more", true, 3, {"f", .var = {{"y", "int32", "y=3"}}}, false},
    {"another dimension is longer",
     true,
     3,
     {"f", .var = {{"t", "int32", "t*=3"}, {"v", "int16", "y=9 t*=3"}}},
     true},
};

static void lengths_later(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(LATER); i++) {
        const cm_append a = {.dimension = (char[]){"t"},
                             .root = (char[]){"out.zarr"},
                             .knows_was = LATER[i].knows,
                             .was = LATER[i].was};
        cm_error why = {0};
        cm_dataset *now = made_open(&LATER[i].now);
        const int rc = cm_append_check_length(&a, now, &why);
        if (rc != (LATER[i].same ? CM_OK : CM_EEXIST))
            fail_msg("%s: %d", LATER[i].name, rc);
        if (!LATER[i].same)
            assert_string_equal(why.text,
                                "out.zarr: another process added to it meanwhile; start again");
        cm_dataset_close(now);
    }
}

/* ---- a store in a folder ---- */

static void write_store(const char *path, const made_file *file)
{
    cm_store *store;
    planned p;
    OK(cm_store_open_dir(path, true, &store, err));
    planned_into(&p, file, NULL, STEP_DESCRIBE, store);
    assert_int_equal(p.status, CM_OK);
    OK(cm_job_write_metadata(&p.job, store, err));
    planned_release(&p);
    cm_store_free(store);
}

static const struct {
    const char *name;
    made_file file;
    bool knows;
    unsigned was;
} NOTED[] = {
    {"one length", LENGTH("3"), true, 3},
    {"an empty store", LENGTH("0"), true, 0},
    {"two lengths", {"f", .var = {{"t", "int32", "t*=2"}, {"v", "int16", "t*=3"}}}, false, 3},
    {"no such dimension", {"f", .var = {{"y", "int32", "y=3"}}}, false, 0},
};

static void lengths_noted(void **state)
{
    static const made_file LONGER = LENGTH("4");
    (void)state;
    for (size_t i = 0; i < COUNT(NOTED); i++) {
        made_folder folder;
        cm_error why = {0};
        made_folder_begin(&folder);
        cm_append a = {.dimension = (char[]){"t"}, .root = folder.path, .opens = folder.path};
        write_store(folder.path, &NOTED[i].file);
        OK(cm_append_note_length(&a, err));
        assert_false(a.knows_was); /* it has the lock */
        a.look = true;
        OK(cm_append_note_length(&a, err));
        if (a.knows_was != NOTED[i].knows || (a.knows_was && a.was != NOTED[i].was))
            fail_msg("%s: %u", NOTED[i].name, (unsigned)a.was);
        OK(cm_append_check(&a, err));
        write_store(folder.path, &LONGER);
        assert_int_equal(cm_append_check(&a, &why), a.knows_was ? CM_EEXIST : CM_OK);
        made_folder_end(&folder);
    }
}

static void no_store(void **state)
{
    made_folder folder;
    cm_error why = {0};
    (void)state;
    made_folder_begin(&folder);
    cm_append a = {.dimension = (char[]){"t"}, .opens = folder.path, .knows_was = true};
    assert_int_not_equal(cm_append_check(&a, &why), CM_OK);
    assert_int_not_equal(cm_append_note_length(&a, &why), CM_OK);
    a.knows_was = false; /* nothing is asked */
    assert_int_equal(cm_append_check(&a, NULL), CM_OK);
    assert_int_equal(cm_append_check(NULL, NULL), CM_OK);
    made_folder_end(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lengths_later),
                                       cmocka_unit_test(lengths_noted), cmocka_unit_test(no_store)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
