/* Chunks of several lengths: obstacles to keeping them, what options say, what is written. */

#include "convert/layout/rectilinear.h"
#include "job_fixture.h"

/* An array of 10 elements in chunks of 4, 4 and 2, and of 6 in chunks of 3. */
typedef struct made_cut {
    cm_cuts cuts;
    cm_array array;
    cm_array_ops ops;
    cm_variable source;
    cm_job_var v;
    cm_transform_options options;
    cm_transform_report report;
    cm_dataset ds;
    cm_job job;
} made_cut;

/* Chunks of files, of which the second is longer in its file than what is joined of it. */
static void place_longer(cm_array *a, const uint64_t *coord, uint64_t *origin, uint64_t *shape)
{
    origin[0] = cm_grid_first(&a->grid, 0, coord[0]);
    cm_grid_chunk_shape(&a->grid, coord, shape);
    shape[0] += coord[0] == 1;
}

static void place_earlier(cm_array *a, const uint64_t *coord, uint64_t *origin, uint64_t *shape)
{
    origin[0] = cm_grid_first(&a->grid, 0, coord[0]) - (coord[0] == 2);
    cm_grid_chunk_shape(&a->grid, coord, shape);
}

static void place_whole(cm_array *a, const uint64_t *coord, uint64_t *origin, uint64_t *shape)
{
    origin[0] = cm_grid_first(&a->grid, 0, coord[0]);
    cm_grid_chunk_shape(&a->grid, coord, shape);
}

static void cut_begin(made_cut *m)
{
    *m = (made_cut){.job = {.zarr_format = 3, .nvars = 1}};
    OK(cm_cuts_add(&m->cuts, 4, 2, err));
    OK(cm_cuts_add(&m->cuts, 2, 1, err));
    m->array = (cm_array){.ops = &m->ops,
                          .chunked = true,
                          .chain = (cm_chain *)(uintptr_t)m, /* never looked at */
                          .rank = 2,
                          .shape = {10, 6}};
    OK(cm_grid_init(&m->array.grid, 2, m->array.shape, (uint64_t[]){4, 3}, err));
    m->array.grid.cuts[0] = &m->cuts;
    m->source = (cm_variable){.name = "v", .rank = 2, .array = &m->array};
    m->v = (cm_job_var){.source = &m->source,
                        .name = (char *)(uintptr_t) "v",
                        .view = {.rank = 2, .shape = {10, 6}, .step = {1, 1}}};
    m->job.var = &m->v;
    m->job.options = &m->options;
    m->job.report = &m->report;
    m->job.source = &m->ds;
}

static void cut_end(made_cut *m)
{
    cm_transform_report_release(&m->report);
    cm_cuts_release(&m->cuts);
}

/* ---- obstacles ---- */

typedef enum obstacle {
    NONE,
    WHOLE_FILES,
    TEXT,
    NO_ARRAY,
    UNCHUNKED,
    NO_CHAIN,
    SHORTER,
    LATER,
    STEPS,
    LONGER_IN_FILE,
    EARLIER_IN_FILE,
    FORMAT_2
} obstacle;

static void make_obstacle(made_cut *m, obstacle o)
{
    switch (o) {
    case NONE:
        break;
    case WHOLE_FILES:
        m->ops.place = place_whole;
        break;
    case TEXT:
        m->v.view.as_strings = true;
        break;
    case NO_ARRAY:
        m->source.array = NULL;
        break;
    case UNCHUNKED:
        m->array.chunked = false;
        break;
    case NO_CHAIN:
        m->array.chain = NULL;
        break;
    case SHORTER:
        m->v.view.shape[1] = 5;
        break;
    case LATER:
        m->v.view.start[0] = 1;
        break;
    case STEPS:
        m->v.view.step[1] = 2;
        break;
    case LONGER_IN_FILE:
        m->ops.place = place_longer;
        break;
    case EARLIER_IN_FILE:
        m->ops.place = place_earlier;
        break;
    case FORMAT_2:
        m->job.zarr_format = 2;
        break;
    }
}

static const struct {
    obstacle obstacle;
    const char *why; /* NULL: chunks stay */
} OBSTACLES[] = {
    {NONE, NULL},
    {WHOLE_FILES, NULL},
    {TEXT, "text is stored anew"},
    {NO_ARRAY, "its chunks cannot be read one by one"},
    {UNCHUNKED, "its chunks cannot be read one by one"},
    {NO_CHAIN, "its chunks cannot be read one by one"},
    {SHORTER, "only a part of it is converted"},
    {LATER, "only a part of it is converted"},
    {STEPS, "only a part of it is converted"},
    {LONGER_IN_FILE, "chunks of its files reach past what is joined"},
    {EARLIER_IN_FILE, "chunks of its files reach past what is joined"},
    {FORMAT_2, "Zarr format 2 has no rectilinear grid"},
};

static void obstacles(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(OBSTACLES); i++) {
        made_cut m;
        cm_layout layout = {0};
        char note[200] = "";
        cut_begin(&m);
        make_obstacle(&m, OBSTACLES[i].obstacle);
        const char *why = cm_job_rectilinear_obstacle(&m.job, &m.v);
        if (why != OBSTACLES[i].why &&
            (why == NULL || OBSTACLES[i].why == NULL || strcmp(why, OBSTACLES[i].why) != 0))
            fail_msg("%u: %s", OBSTACLES[i].obstacle, why);
        /* It gets a regular grid then, which is noted. */
        OK(cm_job_choose_rectilinear(&m.job, &m.v, NULL, false, &layout, err));
        assert_int_equal(layout.rectilinear, why == NULL);
        if (why != NULL)
            snprintf(note, sizeof note, "variable v gets a regular grid: %s", why);
        assert_string_equal(m.report.nnotes > 0 ? m.report.note[0] : "", note);
        if (layout.rectilinear)
            assert_true(layout.chunk[0] == 4 && layout.chunk[1] == 3);
        cut_end(&m);
    }
}

/* ---- options ---- */

static const struct {
    const char *chunks;
    bool names, stays;
    const char *error;
} CHUNKS[] = {
    {NULL, false, true, NULL},
    {"source", false, true, NULL},
    {"source", true, true, NULL},
    {"none", true, true, NULL},
    {"2x3", true, false, NULL},
    {"auto", true, false, NULL},
    {"2x3", false, false,
     "`chunks` 2x3: `grid` rectilinear keeps the chunks of variable v; leave out one of the two, "
     "or "
     "name the array with `chunks`"},
    {"auto:1MiB", false, false,
     "`chunks` auto:1MiB: `grid` rectilinear keeps the chunks of variable v; leave out one of the "
     "two, or name the array with `chunks`"},
};

static void other_chunks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(CHUNKS); i++) {
        made_cut m;
        cm_layout layout = {0};
        cm_error why = {0};
        cut_begin(&m);
        const int rc = cm_job_choose_rectilinear(&m.job, &m.v, CHUNKS[i].chunks, CHUNKS[i].names,
                                                 &layout, &why);
        if (rc != (CHUNKS[i].error != NULL ? CM_EINVAL : CM_OK) ||
            layout.rectilinear != CHUNKS[i].stays ||
            (rc != CM_OK && strcmp(why.text, CHUNKS[i].error) != 0))
            fail_msg("%s: %d %s", CHUNKS[i].chunks, rc, why.text);
        cut_end(&m);
    }
}

static void shards(void **state)
{
    static const struct {
        const char *shards;
        const char *error;
    } SHARDS[] = {
        {NULL, NULL},
        {"none", NULL},
        {"source", NULL},
        {"10x6", "`shards` 10x6: chunks of variable v stay of several lengths, and are not put "
                 "into shards"},
        {"auto", "`shards` auto: chunks of variable v stay of several lengths, and are not put "
                 "into shards"},
    };
    made_cut m;
    (void)state;
    cut_begin(&m);
    for (size_t i = 0; i < COUNT(SHARDS); i++) {
        cm_error why = {0};
        const int rc = cm_job_check_unsharded(&m.job, &m.v, SHARDS[i].shards, &why);
        assert_int_equal(rc, SHARDS[i].error != NULL ? CM_EINVAL : CM_OK);
        assert_string_equal(why.text, SHARDS[i].error != NULL ? SHARDS[i].error : "");
    }
    cut_end(&m);
}

static void nothing_to_keep(void **state)
{
    made_cut m;
    (void)state;
    cut_begin(&m);
    assert_true(cm_job_is_cut(&m.v));
    OK(cm_job_note_regular(&m.job, err));
    assert_int_equal(m.report.nnotes, 0);
    m.array.grid.cuts[0] = NULL;
    assert_false(cm_job_is_cut(&m.v));
    OK(cm_job_note_regular(&m.job, err));
    assert_string_equal(m.report.note[0],
                        "every grid is regular: no chunks of the source differ in length");
    m.source.is_cut = true; /* as its document says, before it is opened */
    assert_true(cm_job_is_cut(&m.v));
    cut_end(&m);
}

/* The document gets lengths of its own, in the place of those that it had. */
static void written(void **state)
{
    made_cut m;
    cm_zarr_meta meta = {.rank = 2, .chunk = {9, 9}};
    (void)state;
    cut_begin(&m);
    meta.cuts[1] = calloc(1, sizeof *meta.cuts[1]);
    OK(cm_cuts_add(meta.cuts[1], 6, 1, err));
    OK(cm_job_set_cuts(&m.v, &meta, err));
    assert_true(meta.chunk[0] == 4 && meta.chunk[1] == 3);
    assert_non_null(meta.cuts[0]);
    assert_null(meta.cuts[1]);
    assert_ptr_not_equal(meta.cuts[0], &m.cuts);
    assert_true(cm_cuts_equal(meta.cuts[0], &m.cuts));
    cm_zarr_meta_drop_cuts(&meta);
    cut_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(obstacles), cmocka_unit_test(other_chunks),
                                       cmocka_unit_test(shards), cmocka_unit_test(nothing_to_keep),
                                       cmocka_unit_test(written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
