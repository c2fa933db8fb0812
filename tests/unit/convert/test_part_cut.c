/* The share of one part: runs of objects, the boxes of elements that these are, and their bytes. */

#include "convert/layout/rectilinear.h"
#include "job_fixture.h"

static const made_file GRID = {
    "/dev/null", .var = {{"v", "int16", "t*=12 y=4", .chunk = "3 4"}, {"s", "int32", ""}}};
static const made_file LONG = {"/dev/null", .var = {{"v", "int16", "t*=4004", .chunk = "6"}}};

static void say_box(planned *p, const cm_box *box)
{
    say_numbers(p, " ", box->start, box->rank);
    say_numbers(p, "+", box->shape, box->rank);
}

/* "v 0-2: 1 transfers, 24 bytes, 0,0+6,2; s none": share by share. */
static const char *say_shares(planned *p)
{
    tell_begin(&p->text);
    for (size_t i = 0; i < p->job.nvars; i++) {
        const cm_job_var *v = &p->job.var[i];
        cm_box area[CM_PART_MAX_BOXES];
        cm_transfer list[CM_PART_MAX_BOXES];
        tell(&p->text, "%s%s", i > 0 ? "; " : "", v->name);
        const unsigned n = cm_parts_areas(v, area), ntransfers = cm_parts_transfers(v, list);
        assert_int_equal(cm_parts_has(v), n > 0);
        if (!cm_parts_has(v)) {
            assert_int_equal(ntransfers, 0);
            assert_int_equal(cm_parts_nbytes(v), 0);
            tell(&p->text, " none");
            continue;
        }
        tell(&p->text, " %u-%u: %u transfers, %u bytes,", (unsigned)v->share.run.first,
             (unsigned)v->share.run.end, ntransfers, (unsigned)cm_parts_nbytes(v));
        for (unsigned k = 0; k < n; k++)
            say_box(p, &area[k]);
    }
    return (const char *)p->text.data;
}

static const struct {
    const char *name;
    const made_file *file;
    cm_transform_options options;
    const char *weights; /* NULL: nobody cut it */
    unsigned nparts, part;
    const char *shares, *error;
} SHARES[] = {
    {"all of it",
     &GRID,
     {0},
     NULL,
     0,
     0,
     "v 0-0: 1 transfers, 96 bytes, 0,0+12,4; s 0-0: 1 transfers, 4 bytes,",
     NULL},
    {"the only part",
     &GRID,
     {.chunks = TEXTS("v:3x4")},
     "[{'nbytes': 96}, {'nbytes': 4}]",
     1,
     0,
     "v 0-4: 1 transfers, 96 bytes, 0,0+12,4; s 0-1: 1 transfers, 4 bytes,",
     NULL},
    {"chunks that stay",
     &GRID,
     {.chunks = TEXTS("v:3x4")},
     "[{'nbytes': 96}, {'nbytes': 4}]",
     2,
     0,
     "v 0-2: 1 transfers, 48 bytes, 0,0+6,4; s none",
     NULL},
    {"and its other half",
     &GRID,
     {.chunks = TEXTS("v:3x4")},
     "[{'nbytes': 96}, {'nbytes': 4}]",
     2,
     1,
     "v 2-4: 1 transfers, 48 bytes, 6,0+6,4; s 0-1: 1 transfers, 4 bytes,",
     NULL},
    {"a run within rows is boxes",
     &GRID,
     {.chunks = TEXTS("v:5x1")},
     "[{'nbytes': 96}, {'nbytes': 0}]",
     4,
     1,
     "v 3-6: 2 transfers, 30 bytes, 0,3+5,1 5,0+5,2; s none",
     NULL},
    {"the last chunk ends where the array ends",
     &GRID,
     {.chunks = TEXTS("v:5x4")},
     "[{'nbytes': 96}, {'nbytes': 4}]",
     3,
     2,
     "v 2-3: 1 transfers, 16 bytes, 10,0+2,4; s 0-1: 1 transfers, 4 bytes,",
     NULL},
    {"nothing is left for some",
     &GRID,
     {.chunks = TEXTS("v:12x4")},
     "[{'nbytes': 96}, {'nbytes': 4}]",
     9,
     5,
     "v none; s none",
     NULL},
    {"shards are objects",
     &GRID,
     {.chunks = TEXTS("v:1x2"), .shards = TEXTS("v:4x4")},
     "[{'nbytes': 96}, {'nbytes': 4}]",
     3,
     1,
     "v 1-2: 1 transfers, 32 bytes, 4,0+4,4; s none",
     NULL},
    {"one weight is not said",
     &GRID,
     {0},
     "[{'nbytes': 96}]",
     2,
     0,
     NULL,
     "the plan does not say how heavy variable s is"},
    {"a weight is no number",
     &GRID,
     {0},
     "[{'nbytes': '96'}, {'nbytes': 4}]",
     2,
     0,
     NULL,
     "the plan does not say how heavy variable v is"},
    {"a weight is below zero",
     &GRID,
     {0},
     "[{'nbytes': -1}, {'nbytes': 4}]",
     2,
     0,
     NULL,
     "the plan does not say how heavy variable v is"},
    {"weights that are more than numbers hold",
     &GRID,
     {0},
     "[{'nbytes': 18446744073709551615}, {'nbytes': 1}]",
     2,
     0,
     NULL,
     "the source has more bytes than can be counted"},
    {"cut where source chunks end, too, which is at every third object",
     &LONG,
     {.chunks = TEXTS("v:4"), .subset = TEXTS("t=0:4000")},
     "[{'nbytes': 8000}]",
     2,
     0,
     "v 0-501: 1 transfers, 4008 bytes, 0+2004",
     NULL},
    {"at every object, where each ends with a source chunk",
     &LONG,
     {.chunks = TEXTS("v:12"), .subset = TEXTS("t=0:3984")},
     "[{'nbytes': 7968}]",
     4,
     0,
     "v 0-83: 1 transfers, 1992 bytes, 0+996",
     NULL},
    {"anywhere in a subset that begins elsewhere",
     &LONG,
     {.chunks = TEXTS("v:4"), .subset = TEXTS("t=1:4001")},
     "[{'nbytes': 8000}]",
     2,
     0,
     "v 0-500: 1 transfers, 4000 bytes, 0+2000",
     NULL},
    {"or that has not all elements",
     &LONG,
     {.chunks = TEXTS("v:4"), .subset = TEXTS("t=0:4000:2")},
     "[{'nbytes': 8000}]",
     2,
     0,
     "v 0-250: 1 transfers, 2000 bytes, 0+1000",
     NULL},
};

static void shares(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(SHARES); i++) {
        planned p;
        cm_error why = {0};
        planned_make(&p, SHARES[i].file, &SHARES[i].options, STEP_PLAN);
        if (p.status != CM_OK)
            fail_msg("%s: %s", SHARES[i].name, p.error.text);
        cm_json *weights = SHARES[i].weights != NULL ? made_json(SHARES[i].weights) : NULL;
        const int rc = weights == NULL ? CM_OK
                                       : cm_parts_narrow(&p.job, weights, SHARES[i].nparts,
                                                         SHARES[i].part, &why);
        tell_compare(SHARES[i].name, rc == CM_OK ? "" : why.text,
                     SHARES[i].error != NULL ? SHARES[i].error : "", &bad);
        tell_compare(SHARES[i].name, say_shares(&p), SHARES[i].shares, &bad);
        cm_json_free(weights);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

/* Parts end where such chunks do, and their elements follow. */
static void several_lengths(void **state)
{
    static const char *const PART[] = {"v 0-1: 1 transfers, 40 bytes, 0,0+5,4; s none",
                                       "v 1-2: 1 transfers, 32 bytes, 5,0+4,4; s none",
                                       "v 2-3: 1 transfers, 24 bytes, 9,0+3,4; s 0-1: 1 transfers, "
                                       "4 bytes,"};
    const cm_transform_options options = {.chunks = TEXTS("v:3x4")};
    unsigned bad = 0;
    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        planned p;
        cm_cuts cuts = {0};
        planned_make(&p, &GRID, &options, STEP_DESCRIBE);
        cm_job_var *v = &p.job.var[0];
        cm_array *a = v->source->array;
        for (uint64_t length = 5; length > 2; length--)
            OK(cm_cuts_add(&cuts, length, 1, err));
        OK(cm_grid_init_cut(&a->grid, 2, a->shape, a->grid.chunk, (const cm_cuts *[]){&cuts, NULL},
                            err));
        OK(cm_job_set_cuts(v, &v->doc.meta, err));
        v->layout.rectilinear = true;
        OK(cm_job_plan(&p.job, p.store, err));
        cm_json *weights = made_json("[{'nbytes': 96}, {'nbytes': 4}]");
        OK(cm_parts_narrow(&p.job, weights, 3, k, err));
        tell_compare("part", say_shares(&p), PART[k], &bad);
        cm_json_free(weights);
        planned_release(&p);
        cm_cuts_release(&cuts);
    }
    assert_int_equal(bad, 0);
}

/* The runs of several parts at once are those of each by itself. */
static void many_at_once(void **state)
{
    const cm_transform_options options = {.chunks = TEXTS("v:1x1")};
    enum {
        NPARTS = 5
    };
    planned p;
    cm_part_run all[2 * NPARTS], one[2];
    (void)state;
    planned_make(&p, &GRID, &options, STEP_PLAN);
    cm_json *weights = made_json("[{'nbytes': 96}, {'nbytes': 4}]");
    OK(cm_parts_runs(&p.job, weights, NPARTS, 0, NPARTS, all, err));
    for (uint64_t k = 0; k < NPARTS; k++) {
        OK(cm_parts_runs(&p.job, weights, NPARTS, k, 1, one, err));
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(one[i].first, all[i * NPARTS + k].first);
            assert_int_equal(one[i].end, all[i * NPARTS + k].end);
            assert_int_equal(one[i].first, k == 0 ? 0 : all[i * NPARTS + k - 1].end);
        }
    }
    assert_int_equal(all[NPARTS - 1].end, 48);
    assert_int_equal(all[2 * NPARTS - 1].end, 1);
    cm_json_free(weights);
    planned_release(&p);
}

/* Reading again is told of from twice on. */
static void rereading(void **state)
{
    static const struct {
        const char *name, *chunks;
        uint64_t slots;
        const char *warning;
    } ROWS[] = {
        {"all slots", "v:12x1", 4, NULL},
        {"half of them", "v:12x1", 2,
         "variable v: the memory holds 2 of this part's target chunks at once, so each source "
         "chunk is decoded 2.0 times; raise `memory`, or make more parts (a part uses no scratch)"},
        {"one", "v:12x1", 1,
         "variable v: the memory holds 1 of this part's target chunks at once, so each source "
         "chunk is decoded 4.0 times; raise `memory`, or make more parts (a part uses no scratch)"},
        {"one, where source chunks lie in one target chunk", "v:6x4", 1, NULL},
    };
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const cm_transform_options options = {.chunks = TEXTS(ROWS[i].chunks)};
        planned p;
        planned_make(&p, &GRID, &options, STEP_PLAN);
        cm_json *weights = made_json("[{'nbytes': 96}, {'nbytes': 4}]");
        /* As a plan has them that has not the memory for all at once. */
        p.job.var[0].plan.route.slots = ROWS[i].slots;
        p.job.var[0].plan.route.sweep.total_blocks = 2;
        OK(cm_parts_narrow(&p.job, weights, 1, 0, err));
        tell_compare(ROWS[i].name, p.report.nwarnings > 0 ? p.report.warning[0] : "",
                     ROWS[i].warning != NULL ? ROWS[i].warning : "", &bad);
        cm_json_free(weights);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

/* Where chunks stay, one transfer has all objects of the run; 0 and 0 are all that there are. */
static void chunks_that_stay(void **state)
{
    static const struct {
        cm_share share;
        unsigned n;
    } ROWS[] = {
        {{.is_part = false}, 1},
        {{.is_part = true, .run = {2, 5}}, 1},
        {{.is_part = true, .run = {5, 5}}, 0},
        {{.is_part = true, .run = {0, 0}}, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        cm_job_var v = {.share = ROWS[i].share};
        cm_transfer t;
        assert_int_equal(cm_parts_transfers(&v, &t), ROWS[i].n);
        if (ROWS[i].n == 0)
            continue;
        assert_int_equal(t.first_object, ROWS[i].share.run.first);
        assert_int_equal(t.end_object, ROWS[i].share.run.end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares), cmocka_unit_test(several_lengths), cmocka_unit_test(many_at_once),
        cmocka_unit_test(chunks_that_stay), cmocka_unit_test(rereading)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
