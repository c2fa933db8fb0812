/* Where files lie along a joined dimension: by their own coordinates, or as the join says. */

#include "convert/verify/witness_impl.h"
#include "job_fixture.h"

enum {
    MOST_FILES = 3
};

/* A file's coordinate, and what the join says: COUNT elements from FIRST on lie at ORIGIN. */
typedef struct made_claim {
    const char *values, *attrs, *dims; /* NULL: the file has no coordinate; "t*=N" */
    unsigned origin, first, count;
} made_claim;

static const struct {
    const char *name;
    const char *store, *dims, *attrs; /* of the store's coordinate */
    made_claim file[MOST_FILES];
    unsigned length;      /* of the joined dimension; of which the store has, */
    unsigned start, step; /* from START on, every STEP-th */
    bool in_part;
    const char *runs; /* "a 0+2>0": elements of a file and where they lie; "0+2/3>0" by a stride */
    const char *differences;
} ROWS[] = {
    {"in their order",
     "0 1 2 3",
     "t*=4",
     NULL,
     {{"0 1", NULL, "t*=2", 0, 0, 2}, {"2 3", NULL, "t*=2", 2, 0, 2}},
     4,
     0,
     1,
     false,
     "a 0+2>0 b 0+2>2",
     ""},
    {"in another",
     "0 1 2 3",
     "t*=4",
     NULL,
     {{"2 3", NULL, "t*=2", 2, 0, 2}, {"0 1", NULL, "t*=2", 0, 0, 2}},
     4,
     0,
     1,
     false,
     "a 0+2>2 b 0+2>0",
     ""},
    {"whatever the join says",
     "0 1 2 3",
     "t*=4",
     NULL,
     {{"2 3", NULL, "t*=2", 0, 0, 2}, {"0 1", NULL, "t*=2", 2, 0, 2}},
     4,
     0,
     1,
     false,
     "a 0+2>2 b 0+2>0",
     ""},
    {"one between the other's",
     "0 1 2 3",
     "t*=4",
     NULL,
     {{"0 2", NULL, "t*=2", 0, 0, 1}, {"1 3", NULL, "t*=2", 1, 0, 1}},
     4,
     0,
     1,
     false,
     "a 0+1>0 a 1+1>2 b 0+1>1 b 1+1>3",
     ""},
    {"in a store that descends",
     "3 2 1 0",
     "t*=4",
     NULL,
     {{"3 2", NULL, "t*=2", 0, 0, 2}, {"0 1", NULL, "t*=2", 2, 0, 2}},
     4,
     0,
     1,
     false,
     "a 0+2>0 b 0+1>3 b 1+1>2",
     ""},
    {"in one without an order",
     "5 9 1 7",
     "t*=4",
     NULL,
     {{"1 7", NULL, "t*=2", 2, 0, 2}, {"9 5", NULL, "t*=2", 0, 0, 2}},
     4,
     0,
     1,
     false,
     "a 0+2>2 b 0+1>1 b 1+1>0",
     ""},
    {"of values that the store has twice",
     "4 4 4 5",
     "t*=4",
     NULL,
     {{"4 4", NULL, "t*=2", 0, 0, 2}, {"4 5", NULL, "t*=2", 2, 0, 2}},
     4,
     0,
     1,
     false,
     "a 0+2>0 b 0+2>2",
     ""},
    {"times in other units",
     "0 1 2",
     "t*=3",
     "{'units': 'days since 2000-01-01'}",
     {{"24 48", "{'units': 'hours since 2000-01-01'}", "t*=2", 1, 0, 2},
      {"366", "{'units': 'days since 1998-12-31'}", "t*=1", 0, 0, 1}},
     3,
     0,
     1,
     false,
     "a 0+2>1 b 0+1>0",
     ""},
    {"packed coordinates",
     "0 5 10",
     "t*=3",
     NULL,
     {{"0 1 2", "{'scale_factor': 5.0}", "t*=3", 0, 0, 3}},
     3,
     0,
     1,
     false,
     "a 0+3>0",
     ""},
    {"one number",
     "7 8",
     "t*=2",
     NULL,
     {{"8", NULL, "", 1, 0, 1}, {"7", NULL, "", 0, 0, 1}},
     2,
     0,
     1,
     false,
     "a 0+1>1 b 0+1>0",
     ""},
    {"numbers, whatever the join says",
     "7 8",
     "t*=2",
     NULL,
     {{"8", NULL, "", 0, 0, 1}, {"7", NULL, "", 1, 0, 1}},
     2,
     0,
     1,
     false,
     "a 0+1>1 b 0+1>0",
     ""},
    {"an element that nobody claims",
     "0 1 2",
     "t*=3",
     NULL,
     {{"0 1 9", NULL, "t*=3", 0, 0, 2}, {"2", NULL, "t*=1", 2, 0, 1}},
     3,
     0,
     1,
     false,
     "a 0+2>0 b 0+1>2",
     "t: element 2 of a, 9, is not in the store"},
    {"missing is at no place",
     "NaN 1",
     "t*=2",
     NULL,
     {{"NaN 1", NULL, "t*=2", 0, 0, 2}},
     2,
     0,
     1,
     false,
     "a 1+1>1",
     "t: element 0 of a, missing, is not in the store"},
    {"files without a coordinate lie as the join says",
     "0 1 2 3",
     "t*=4",
     NULL,
     {{NULL, NULL, NULL, 2, 5, 2}, {"0 1", NULL, "t*=2", 0, 0, 2}},
     4,
     0,
     1,
     false,
     "a 5+2>2 b 0+2>0",
     ""},
    {"in one part of several all do",
     "0 1 2 3",
     "t*=4",
     NULL,
     {{"9 9", NULL, "t*=2", 0, 0, 2}, {"9 9", NULL, "t*=2", 2, 1, 2}},
     4,
     0,
     1,
     true,
     "a 0+2>0 b 1+2>2",
     ""},
    {"a value that the store has not",
     "0 1 2 3",
     "t*=4",
     NULL,
     {{"0 9", NULL, "t*=2", 0, 0, 2}, {"2 3", NULL, "t*=2", 2, 0, 2}},
     4,
     0,
     1,
     false,
     "a 0+1>0 b 0+2>2",
     "t: element 1 of a, 9, is not in the store"},
    {"several: the first is told",
     "0 1 2 3",
     "t*=4",
     NULL,
     {{"7 8 9", NULL, "t*=3", 0, 0, 3}, {"3", NULL, "t*=1", 3, 0, 1}},
     4,
     0,
     1,
     false,
     "b 0+1>3",
     "t: element 0 of a, 7, is not in the store"},
    {"none at all",
     "0 1",
     "t*=2",
     NULL,
     {{"NaN 1", NULL, "t*=2", 0, 0, 2}},
     2,
     0,
     1,
     false,
     "a 1+1>1",
     "t: element 0 of a, missing, is not in the store"},
    {"some of the steps",
     "1 3",
     "t*=2",
     NULL,
     {{"0 1 2", NULL, "t*=3", 0, 0, 3}, {"3 4", NULL, "t*=2", 3, 0, 2}},
     5,
     1,
     2,
     false,
     "a 1+1>0 b 0+1>1",
     ""},
    {"of a file, side by side",
     "1 3 5",
     "t*=3",
     NULL,
     {{"0 1 2 3 4 5", NULL, "t*=6", 0, 0, 6}},
     6,
     1,
     2,
     false,
     "a 1+3/2>0",
     ""},
    {"as the join says",
     "1 3 5",
     "t*=3",
     NULL,
     {{NULL, NULL, NULL, 0, 0, 6}},
     6,
     1,
     2,
     false,
     "a 1+3/2>0",
     ""},
    {"one that was not chosen",
     "1 2",
     "t*=2",
     NULL,
     {{"1 0 2", NULL, "t*=3", 0, 0, 3}},
     3,
     1,
     1,
     false,
     "a 0+2/2>0",
     "t: element 0 of a, 1, is in the store, and was not chosen"},
};

typedef struct placing {
    planned p; /* the store */
    cm_zarr_tree tree;
    made_file file[MOST_FILES];
    cm_dataset *ds[MOST_FILES];
    cm_multi_file multi[MOST_FILES];
    cm_multi_part part[MOST_FILES];
    cm_multi_var var[1];
    cm_multi_spec spec;
    cm_witness_var known[1];
    cm_job_var v;
    cm_job job;
    cm_transform_report report;
    cm_witnesses w;
} placing;

static void placing_begin(placing *t, size_t row)
{
    static const char *const PATHS[] = {"a", "b", "c"};
    const made_file store = {"store",
                             .var = {{"t", "float64", ROWS[row].dims, .values = ROWS[row].store,
                                      .attrs = ROWS[row].attrs}}};
    uint32_t n = 0;
    *t = (placing){0};
    planned_make(&t->p, &store, NULL, STEP_RUN);
    if (t->p.status != CM_OK)
        fail_msg("%s: %s", ROWS[row].name, t->p.error.text);
    OK(cm_job_write_metadata(&t->p.job, t->p.store, err));
    OK(cm_zarr_open(t->p.store, &t->tree, err));
    for (; n < MOST_FILES && ROWS[row].file[n].count > 0; n++) {
        const made_claim *c = &ROWS[row].file[n];
        t->file[n].path = PATHS[n];
        if (c->dims != NULL)
            t->file[n].var[0] =
                (made_var){"t", "float64", c->dims, .values = c->values, .attrs = c->attrs};
        t->ds[n] = made_open(&t->file[n]);
        t->multi[n].path = PATHS[n];
        t->part[n] = (cm_multi_part){
            .file = n, .origin = {c->origin}, .first = {c->first}, .count = {c->count}};
    }
    t->var[0] = (cm_multi_var){.name = "t",
                               .dtype = cm_dtype_make(CM_KIND_FLOAT, 8),
                               .rank = 1,
                               .shape = {ROWS[row].length},
                               .dim_name = {"t"},
                               .is_coordinate = true,
                               .naxes = 1,
                               .part = t->part,
                               .nparts = n};
    t->spec = (cm_multi_spec){.file = t->multi, .nfiles = n, .var = t->var, .nvars = 1};
    t->v = (cm_job_var){.view = {.rank = 1, .start = {ROWS[row].start}, .step = {ROWS[row].step}}};
    t->job = (cm_job){.report = &t->report, .terms.in_part = ROWS[row].in_part};
    t->known[0] = (cm_witness_var){
        .of = &t->var[0], .job = &t->v, .node = cm_zarr_find(&t->tree, "t"), .is_known = true};
    const cm_decoding_of of = {.dtype = t->var[0].dtype, .attrs = t->known[0].node->meta.attrs};
    OK(cm_decoding_read(&of, &t->known[0].store, err));
    t->w = (cm_witnesses){.job = &t->job, .spec = &t->spec, .tree = &t->tree, .var = t->known};
    OK(cm_witness_dims_make(&t->w, err));
    for (uint32_t f = 0; f < n; f++)
        OK(cm_witness_place(&t->w, f, t->ds[f], err));
    OK(cm_witness_places_sort(&t->w, err));
}

static void placing_end(placing *t)
{
    cm_witness_dims_release(&t->w);
    for (size_t i = 0; i < MOST_FILES; i++)
        cm_dataset_close(t->ds[i]);
    cm_transform_report_release(&t->report);
    cm_zarr_tree_release(&t->tree);
    planned_release(&t->p);
}

static const char *say_runs(placing *t)
{
    const cm_witness_dim *d = &t->w.dim[0];
    tell_begin(&t->p.text);
    assert_int_equal(t->w.ndims, 1);
    for (uint32_t f = 0; f < t->spec.nfiles; f++)
        for (size_t i = d->begin[f]; i < d->begin[f + 1]; i++) {
            const cm_witness_run *r = &d->run.item[i];
            assert_int_equal(r->file, f);
            assert_true(r->count <= d->longest);
            tell(&t->p.text, "%s%s %u+%u", t->p.text.nbytes > 0 ? " " : "", t->multi[f].path,
                 (unsigned)r->first, (unsigned)r->count);
            if (r->stride != 1)
                tell(&t->p.text, "/%u", (unsigned)r->stride);
            tell(&t->p.text, ">%u", (unsigned)r->position);
        }
    for (size_t i = 1; i < d->run.n; i++)
        assert_true(d->run.item[d->by_position[i - 1]].position <=
                    d->run.item[d->by_position[i]].position);
    return (const char *)t->p.text.data;
}

static void places(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        placing t;
        placing_begin(&t, i);
        tell_compare(ROWS[i].name, say_runs(&t), ROWS[i].runs, &bad);
        assert_true(t.report.ndifferences <= 1 + (size_t)(i > 0));
        tell_compare(ROWS[i].name, t.report.ndifferences > 0 ? t.report.difference[0] : "",
                     ROWS[i].differences, &bad);
        placing_end(&t);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
