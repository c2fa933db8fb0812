/* Windows of a store that grows: which rows of chunks files touch, what cannot grow, leftovers. */

#include <inttypes.h>

#include "convert/sink/growth/append.h"
#include "format/multi/multi.h"
#include "job_fixture.h"

#define LENGTH(n)                                                                                  \
    {                                                                                              \
        "f", .var = {                                                                              \
            {"t", "int32", "t*=" n},                                                               \
            {"v", "int16", "t*=" n " y=4"},                                                        \
            {"w", "int16", "y=4 t*=" n},                                                           \
            {"u", "int16", "t*=" n}                                                                \
        }                                                                                          \
    }

static const made_file OLD = LENGTH("10"), NEW = LENGTH("13"), SAME = LENGTH("10");
static const cm_transform_options CHUNKS = {.nthreads = 1,
                                            .chunks = TEXTS("t:100", "v:4x4", "w:4x3", "u:1")};
static const cm_transform_options FOUR_AND_SIX = {.nthreads = 1,
                                                  .chunks = TEXTS("v:4x4", "w:4x6", "u:1")};

/* A store of OLD, opened, and a job of NEW that is to add to it. */
typedef struct growing {
    planned old, new;
    cm_append append;
    char dimension[8];
    cm_append_state state;
} growing;

static void grow_begin(growing *g, const made_file *old, const cm_transform_options *of,
                       const made_file *new)
{
    planned_make(&g->old, old, of, STEP_DESCRIBE);
    if (g->old.status != CM_OK)
        fail_msg("%s", g->old.error.text);
    OK(cm_job_write_metadata(&g->old.job, g->old.store, err));
    const cm_dataset_options options = {.store = g->old.store};
    strcpy(g->dimension, "t");
    g->append = (cm_append){.dimension = g->dimension, .store = g->old.store};
    g->state = (cm_append_state){.append = &g->append};
    OK(cm_dataset_open("memory", "", &options, &g->state.target, err));
    planned_make(&g->new, new, NULL, STEP_VIEW);
    assert_int_equal(g->new.status, CM_OK);
}

static void grow_end(growing *g)
{
    cm_append_state_release(&g->state);
    planned_release(&g->new);
    planned_release(&g->old);
}

/* "v 4+4 12+1": the elements of each window of NAME along t. */
static void say_windows_of(planned *p, const char *name)
{
    tell(&p->text, "%s", name);
    for (size_t i = 0; i < p->job.nvars; i++) {
        const cm_job_var *v = &p->job.var[i];
        const unsigned axis = strcmp(name, "w") == 0;
        if (strcmp(v->name, name) != 0)
            continue;
        tell(&p->text, " %u+%u", (unsigned)v->window.at[axis], (unsigned)v->view.shape[axis]);
        assert_int_equal(v->view.start[axis], v->window.at[axis]);
        assert_int_equal(v->view.shape[!axis], v->view.rank == 2 ? 4 : 0);
    }
}

/* ---- what files touch ---- */

enum {
    MOST_PARTS = 4
};

static const struct {
    const char *name;
    const made_file *new;
    struct {
        uint64_t origin, count;
        bool store;
    } part[MOST_PARTS]; /* of files, the last of which has no elements */
    const char *windows;
} TOUCHED[] = {
    {"nothing that is there", &NEW, {{10, 3, false}}, "t 0+13; v 12+1 8+4; w 12+1 9+3"},
    {"the first element",
     &NEW,
     {{0, 1, false}, {10, 3, false}},
     "t 0+13; v 12+1 0+4 8+4; w 12+1 0+3 9+3"},
    {"the last of a chunk and the first of the next",
     &NEW,
     {{3, 2, false}, {10, 3, false}},
     "t 0+13; v 12+1 0+12; w 12+1 3+3 9+3"},
    {"two that lie in one chunk",
     &NEW,
     {{4, 1, false}, {7, 1, false}, {10, 3, false}},
     "t 0+13; v 12+1 4+8; w 12+1 3+9"},
    {"two whose chunks meet",
     &NEW,
     {{0, 4, false}, {4, 4, false}, {10, 3, false}},
     "t 0+13; v 12+1 0+12; w 12+1 0+12"},
    {"one that another holds",
     &NEW,
     {{0, 8, false}, {1, 2, false}, {10, 3, false}},
     "t 0+13; v 12+1 0+12; w 12+1 0+12"},
    {"in any order",
     &NEW,
     {{8, 1, false}, {0, 1, false}, {10, 3, false}},
     "t 0+13; v 12+1 0+4 8+4; w 12+1 0+3 6+6"},
    {"one that goes on behind the end", &NEW, {{9, 4, false}}, "t 0+13; v 12+1 8+4; w 12+1 9+3"},
    {"all", &NEW, {{0, 13, false}}, "t 0+13; v 12+1 0+12; w 12+1 0+12"},
    {"the store itself", &NEW, {{0, 10, true}, {10, 3, false}}, "t 0+13; v 12+1 8+4; w 12+1 9+3"},
    {"a store that gets no longer", &SAME, {{5, 1, false}}, "t; v 4+4; w 3+3"},
    {"and of which nothing is touched", &SAME, {{0, 10, true}}, "t; v; w"},
};

static void touched(void **state)
{
    static const cm_dataset_options NONE;
    cm_json *empty = cm_json_object();
    const cm_multi_group root = {"", empty};
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(TOUCHED); i++) {
        growing g;
        grow_begin(&g, &OLD, &CHUNKS, TOUCHED[i].new);
        cm_multi_file file[MOST_PARTS] = {{.path = "a"}, {.path = "b"}, {.path = "c"}};
        cm_multi_part part[2][MOST_PARTS]; /* by turns of one variable and another */
        size_t n = 0;
        for (; n < MOST_PARTS && TOUCHED[i].part[n].count > 0; n++) {
            part[n % 2][n / 2] = (cm_multi_part){.file = (uint32_t)n,
                                                 .origin = {TOUCHED[i].part[n].origin},
                                                 .count = {TOUCHED[i].part[n].count},
                                                 .length = {TOUCHED[i].part[n].count}};
            file[n].open = TOUCHED[i].part[n].store ? g.new.made : NULL;
        }
        const cm_multi_var one = {.name = "one",
                                  .dtype = cm_dtype_make(CM_KIND_INT, 2),
                                  .rank = 2,
                                  .shape = {4, 13},
                                  .dim_name = {"y", "t"},
                                  .attrs = empty,
                                  .naxes = 1,
                                  .axis = {1},
                                  .part = part[0],
                                  .nparts = (n + 1) / 2};
        cm_multi_var var[] = {one, one, one};
        var[0].dim_name[1] = "other"; /* along which nothing grows */
        var[0].part = &(const cm_multi_part){.count = {13}, .length = {13}};
        var[0].nparts = 1;
        var[2].name = "two";
        var[2].part = part[1];
        var[2].nparts = n / 2;
        const cm_multi_spec spec = {.name = "all",
                                    .file = file,
                                    .nfiles = n,
                                    .group = &root,
                                    .ngroups = 1,
                                    .var = var,
                                    .nvars = n > 1 ? 3 : 2};
        cm_dataset *joined;
        OK(cm_multi_dataset_open(&spec, &NONE, &joined, err));
        g.new.job.source = joined;
        OK(cm_append_make_windows(&g.new.job, &g.state, err));
        g.new.job.source = g.new.made;
        tell_begin(&g.new.text);
        say_windows_of(&g.new, "t");
        tell(&g.new.text, "; ");
        say_windows_of(&g.new, "v");
        tell(&g.new.text, "; ");
        say_windows_of(&g.new, "w");
        tell_compare(TOUCHED[i].name, (const char *)g.new.text.data, TOUCHED[i].windows, &bad);
        cm_dataset_close(joined);
        grow_end(&g);
    }
    cm_json_free(empty);
    assert_int_equal(bad, 0);
}

/* Each window belongs to its array, in the order in which arrays stand. */
static void windows_of_arrays(void **state)
{
    growing g;
    (void)state;
    grow_begin(&g, &OLD, &CHUNKS, &NEW);
    OK(cm_append_make_windows(&g.new.job, &g.state, err));
    assert_int_equal(g.state.ngrown, 4);
    assert_int_equal(g.state.was, 10);
    assert_int_equal(g.state.length, 13);
    size_t n = 0;
    for (size_t i = 0; i < g.state.ngrown; i++) {
        const cm_grown *one = &g.state.grown[i];
        assert_int_equal(one->first, n);
        assert_int_equal(one->growth.axis, strcmp(one->growth.path, "w") == 0);
        assert_false(one->growth.in_place);
        for (size_t k = 0; k < one->nwindows; k++, n++)
            assert_string_equal(g.new.job.var[n].name, one->growth.path);
    }
    assert_int_equal(g.new.job.nvars, n);
    grow_end(&g);
}

/* ---- refusals ---- */

typedef enum fault {
    NOT_UNDERSTOOD,
    NO_DOCUMENT,
    VERBATIM,
    CUT,
    CUT_SHARDS,
    LENGTHS_DIFFER,
    NO_DIMENSION,
    CONVERTED,
    SHORTER,
    NO_COMMON_LENGTH
} fault;

static const struct {
    fault fault;
    int status;
    const char *error;
} REFUSED[] = {
    {NOT_UNDERSTOOD, CM_EUNSUPPORTED, "array v: cannot grow: its codec is not known"},
    {NO_DOCUMENT, CM_EUNSUPPORTED, "array v: cannot grow: it is not understood"},
    {VERBATIM, CM_EUNSUPPORTED, "array v: cannot grow: it is not understood"},
    {CUT, CM_EUNSUPPORTED,
     "array v: cannot grow: its chunks differ in length along y (a rectilinear chunk grid), and "
     "may along t alone; rechunk makes a store with a regular one"},
    {CUT_SHARDS, CM_EUNSUPPORTED,
     "array v: cannot grow: its shards differ in length (a rectilinear chunk grid); rechunk makes "
     "a store with a regular one"},
    {LENGTHS_DIFFER, CM_EFORMAT, "array v: has 9 elements along t, and other arrays 10"},
    {NO_DIMENSION, CM_EINVAL, "no array of the store has the dimension q"},
    {CONVERTED, CM_EINVAL, "variable v: an append cannot change values"},
    {SHORTER, CM_EINVAL, "variable v: its shape is not that of the store"},
    {NO_COMMON_LENGTH, CM_EUNSUPPORTED, "chunks of no common length along t"},
};

static void make_fault(growing *g, fault f, cm_zarr_meta *words)
{
    cm_variable *t = cm_dataset_find(g->state.target, "v");
    cm_job_var *v = &g->new.job.var[1];
    assert_string_equal(v->name, "v");
    *words = *t->words;
    switch (f) {
    case NOT_UNDERSTOOD:
        t->unsupported = "its codec is not known";
        break;
    case NO_DOCUMENT:
        t->words = NULL;
        break;
    case VERBATIM:
        words->verbatim = true;
        t->words = words;
        break;
    case CUT:
    case CUT_SHARDS:
        words->cuts[1] = calloc(1, sizeof(cm_cuts));
        t->is_sharded = f == CUT_SHARDS;
        t->words = words;
        break;
    case LENGTHS_DIFFER:
        t->shape[0] = 9;
        break;
    case NO_DIMENSION:
        g->dimension[0] = 'q';
        break;
    case CONVERTED:
        v->view.converts = true;
        break;
    case SHORTER:
        v->view.shape[0] = 9;
        break;
    case NO_COMMON_LENGTH:
        g->append.hold = true;
        words->chunk[0] = ((uint64_t)1 << 63) - 1; /* beside chunks of 3 */
        t->words = words;
        break;
    }
}

static void refused(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(REFUSED); i++) {
        growing g;
        cm_error why = {0};
        cm_zarr_meta words;
        grow_begin(&g, &OLD, &CHUNKS, &NEW);
        make_fault(&g, REFUSED[i].fault, &words);
        const int rc = cm_append_make_windows(&g.new.job, &g.state, &why);
        assert_int_equal(rc, REFUSED[i].status);
        tell_compare(REFUSED[i].error, why.text, REFUSED[i].error, &bad);
        if (REFUSED[i].fault == CUT || REFUSED[i].fault == CUT_SHARDS)
            free(words.cuts[1]);
        grow_end(&g);
    }
    assert_int_equal(bad, 0);
}

/* ---- held back ---- */

static const struct {
    const char *name;
    const made_file old, new;
    unsigned length, nheld; /* chunks of 4 and of 6: 12 fills both */
} HELD[] = {
    {"to where chunks of 4 and of 6 are full", LENGTH("10"), LENGTH("13"), 12, 1},
    {"as far as that", LENGTH("10"), LENGTH("12"), 12, 0},
    {"nothing that the store has", LENGTH("10"), LENGTH("11"), 10, 1},
    {"from there on", LENGTH("12"), LENGTH("23"), 12, 11},
    {"two of them", LENGTH("1"), LENGTH("25"), 24, 1},
};

static void held_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(HELD); i++) {
        growing g;
        grow_begin(&g, &HELD[i].old, &FOUR_AND_SIX, &HELD[i].new);
        g.append.hold = true;
        OK(cm_append_make_windows(&g.new.job, &g.state, err));
        if (g.state.length != HELD[i].length || g.state.nheld != HELD[i].nheld)
            fail_msg("%s: %u, %u are held back", HELD[i].name, (unsigned)g.state.length,
                     (unsigned)g.state.nheld);
        grow_end(&g);
    }
}

/* ---- what a run that was killed left ---- */

static const struct {
    const char *name;
    unsigned length, reach;
    const char *left; /* which of the chunks v/c/0/0 to v/c/5/0 stay */
} REACHED[] = {
    {"nobody wrote", 10, 0, "012345"},
    {"no further than the end", 10, 10, "012345"},
    {"within the last chunk", 10, 12, "012345"},
    {"one chunk", 10, 13, "01245"},
    {"two, where the end is that of a chunk", 12, 17, "0125"},
    {"to a chunk's end", 10, 16, "01245"},
    {"an empty store is not known", 0, 17, "012345"},
};

static void reach(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(REACHED); i++) {
        growing g;
        char left[8] = "";
        grow_begin(&g, &OLD, &CHUNKS, &NEW);
        OK(cm_append_make_windows(&g.new.job, &g.state, err));
        g.append.reach = REACHED[i].reach;
        g.state.length = REACHED[i].length;
        for (unsigned k = 0; k < 6; k++) {
            char key[32];
            snprintf(key, sizeof key, "v/c/%u/0", k);
            OK(cm_store_put(g.old.store, key, "x", 1, err));
        }
        OK(cm_store_put(g.old.store, "u/c/0", "x", 1, err));
        OK(cm_append_remove_reach(&g.state, err));
        for (unsigned k = 0; k < 6; k++) {
            char key[32];
            snprintf(key, sizeof key, "v/c/%u/0", k);
            if (cm_store_size(g.old.store, key, NULL, NULL) == CM_OK)
                sprintf(left + strlen(left), "%u", k);
        }
        OK(cm_store_size(g.old.store, "u/c/0", NULL, err));
        tell_compare(REACHED[i].name, left, REACHED[i].left, &bad);
        grow_end(&g);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(touched), cmocka_unit_test(windows_of_arrays), cmocka_unit_test(refused),
        cmocka_unit_test(held_back), cmocka_unit_test(reach)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
