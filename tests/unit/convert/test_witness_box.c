/* Boxes of a store, held against the files that lie in them. */

#include "convert/verify/witness_impl.h"
#include "job_fixture.h"

enum {
    MOST_FILES = 3
};

typedef struct made_values {
    const char *t, *v; /* elements along "t*=N" */
    const char *dims;
    bool is_store; /* that grows */
} made_values;

#define F(t, v, dims)                                                                              \
    {                                                                                              \
        t, v, dims, false                                                                          \
    }
#define STORE(t, v, dims)                                                                          \
    {                                                                                              \
        t, v, dims, true                                                                           \
    }

static const struct {
    const char *name;
    const char *store, *fill; /* v of six steps, whose coordinate counts from 0 */
    made_values file[MOST_FILES];
    bool any, yields, fills_gaps, computed; /* decisions */
    unsigned start, count;                  /* of the box */
    const char *result;                     /* "": the same; "2 from 1: want 5, got 6 in a" */
} ROWS[] = {
    {"all files agree",
     "10 11 12 13 14 15",
     NULL,
     {F("0 1 2", "10 11 12", "t*=3"), F("3 4 5", "13 14 15", "t*=3")},
     .start = 0,
     .count = 6,
     .result = ""},
    {"one element",
     "10 11 99 13 14 15",
     NULL,
     {F("0 1 2", "10 11 12", "t*=3"), F("3 4 5", "13 14 15", "t*=3")},
     .start = 0,
     .count = 6,
     .result = "1 from 2: want 12, got 99 in a"},
    {"in a box behind it",
     "10 11 99 13 14 15",
     NULL,
     {F("0 1 2", "10 11 12", "t*=3"), F("3 4 5", "13 14 15", "t*=3")},
     .start = 3,
     .count = 3,
     .result = ""},
    {"in a box that ends with it",
     "10 11 99 13 14 15",
     NULL,
     {F("0 1 2", "10 11 12", "t*=3"), F("3 4 5", "13 14 15", "t*=3")},
     .start = 1,
     .count = 2,
     .result = "1 from 1: want 12, got 99 in a"},
    {"in the second file of it",
     "10 11 12 13 14 99",
     NULL,
     {F("0 1 2", "10 11 12", "t*=3"), F("3 4 5", "13 14 15", "t*=3")},
     .start = 2,
     .count = 4,
     .result = "1 from 3: want 15, got 99 in b"},
    {"several: the first is told",
     "10 99 12 99 99 15",
     NULL,
     {F("3 4 5", "13 14 15", "t*=3"), F("0 1 2", "10 11 12", "t*=3")},
     .start = 0,
     .count = 6,
     .result = "3 from 1: want 11, got 99 in b"},
    {"what no file has is missing",
     "10 11 -1 -1 14 15",
     "-1",
     {F("0 1", "10 11", "t*=2"), F("4 5", "14 15", "t*=2")},
     .start = 0,
     .count = 6,
     .result = ""},
    {"and not a number",
     "10 11 -1 7 14 15",
     "-1",
     {F("0 1", "10 11", "t*=2"), F("4 5", "14 15", "t*=2")},
     .start = 0,
     .count = 6,
     .result = "1 from 3: want what no file has, got 7"},
    {"before one that a file has otherwise",
     "10 11 7 -1 14 99",
     "-1",
     {F("0 1", "10 11", "t*=2"), F("4 5", "14 15", "t*=2")},
     .start = 0,
     .count = 6,
     .result = "2 from 2: want what no file has, got 7"},
    {"or the fill value of the join",
     "10 11 -5 -1 14 15",
     "-1",
     {F("0 1", "10 11", "t*=2"), F("4 5", "14 15", "t*=2")},
     .start = 0,
     .count = 6,
     .result = ""},
    {"unless it was made for gaps",
     "10 11 2 3 14 15",
     "-1",
     {F("0 1", "10 11", "t*=2"), F("4 5", "14 15", "t*=2")},
     .fills_gaps = true,
     .computed = true,
     .start = 0,
     .count = 6,
     .result = ""},
    {"two files have a step: both must agree",
     "10 11 12 13 14 15",
     NULL,
     {F("0 1 2 3", "10 11 12 13", "t*=4"), F("3 4 5", "99 14 15", "t*=3")},
     .start = 0,
     .count = 6,
     .result = "1 from 3: want 99, got 13 in b"},
    {"or one of them",
     "10 11 12 13 14 15",
     NULL,
     {F("0 1 2 3", "10 11 12 13", "t*=4"), F("3 4 5", "99 14 15", "t*=3")},
     .any = true,
     .start = 0,
     .count = 6,
     .result = ""},
    {"a long file behind short ones",
     "10 11 12 13 14 15",
     NULL,
     {F("0", "10", "t*=1"), F("1", "11", "t*=1"), F("0 1 2 3 4 5", "10 11 12 13 14 99", "t*=6")},
     .start = 5,
     .count = 1,
     .result = "1 from 0: want 99, got 15 in c"},
    {"the store that grows, against its files",
     "10 11 12 13 14 15",
     NULL,
     {STORE("0 1 2", "10 11 99", "t*=3"), F("2 3 4 5", "12 13 14 15", "t*=4")},
     .start = 0,
     .count = 6,
     .result = "1 from 2: want 99, got 12 in a"},
    {"which it yields to",
     "10 11 12 13 14 15",
     NULL,
     {STORE("0 1 2", "10 11 99", "t*=3"), F("2 3 4 5", "12 13 14 15", "t*=4")},
     .yields = true,
     .start = 0,
     .count = 6,
     .result = ""},
    {"but not what they do not have",
     "10 11 12 13 14 15",
     NULL,
     {STORE("0 1 2", "10 98 99", "t*=3"), F("2 3 4 5", "12 13 14 15", "t*=4")},
     .yields = true,
     .start = 0,
     .count = 6,
     .result = "1 from 1: want 98, got 11 in a"},
};

typedef struct boxing {
    planned p; /* the store */
    cm_zarr_tree tree;
    made_file file[MOST_FILES];
    cm_dataset *ds[MOST_FILES], *joined;
    cm_multi_file open[MOST_FILES], seen[MOST_FILES];
    cm_multi_part part[MOST_FILES];
    cm_multi_var var[2];
    cm_multi_group root;
    cm_json *empty;
    cm_multi_spec source, spec; /* of the dataset, and as witnesses see it */
    cm_witness_var known[2];
    uint64_t has;
    cm_job_var v;
    cm_job job;
    cm_transform_report report;
    cm_witnesses w;
} boxing;

static void make_files(boxing *t, size_t row)
{
    static const char *const PATHS[] = {"a", "b", "c"};
    uint32_t n = 0;
    for (; n < MOST_FILES && ROWS[row].file[n].t != NULL; n++) {
        const made_values *m = &ROWS[row].file[n];
        t->file[n] = (made_file){PATHS[n], .var = {{"t", "float64", m->dims, .values = m->t},
                                                   {"v", "float64", m->dims, .values = m->v}}};
        t->ds[n] = made_open(&t->file[n]);
        for (size_t i = 0; i < 2; i++)
            OK(cm_dataset_prepare(t->ds[n], &t->ds[n]->var[i], err));
        t->open[n] = (cm_multi_file){.path = PATHS[n], .open = t->ds[n]};
        t->seen[n] = (cm_multi_file){.path = PATHS[n], .open = m->is_store ? t->ds[n] : NULL};
        t->has |= (uint64_t)1 << n;
    }
    t->part[0] = (cm_multi_part){.count = {6}, .length = {6}};
    for (size_t i = 0; i < 2; i++)
        t->var[i] = (cm_multi_var){.name = i == 0 ? "t" : "v",
                                   .dtype = cm_dtype_make(CM_KIND_FLOAT, 8),
                                   .rank = 1,
                                   .shape = {6},
                                   .dim_name = {"t"},
                                   .attrs = t->empty,
                                   .is_coordinate = i == 0,
                                   .naxes = 1,
                                   .part = t->part,
                                   .nparts = 1};
    t->source = (cm_multi_spec){.name = "all",
                                .file = t->open,
                                .nfiles = n,
                                .group = &t->root,
                                .ngroups = 1,
                                .var = t->var,
                                .nvars = 2};
}

static void boxing_begin(boxing *t, size_t row)
{
    static const cm_dataset_options NONE;
    static const double HOLE = -5; /* what readers take for missing is another */
    const made_file store = {"store", .var = {F("t", "float64", "t*=6"),
                                              {"v", "float64", "t*=6", .values = ROWS[row].store,
                                               .fill = ROWS[row].fill}}};
    *t = (boxing){.empty = cm_json_object()};
    t->root = (cm_multi_group){"", t->empty};
    planned_make(&t->p, &store, NULL, STEP_RUN);
    assert_int_equal(t->p.status, CM_OK);
    OK(cm_job_write_metadata(&t->p.job, t->p.store, err));
    OK(cm_zarr_open(t->p.store, &t->tree, err));
    make_files(t, row);
    if (ROWS[row].fill != NULL) {
        t->var[1].has_fill = true;
        memcpy(t->var[1].fill, &HOLE, sizeof HOLE);
    }
    OK(cm_multi_dataset_open(&t->source, &NONE, &t->joined, err));
    t->spec = t->source;
    t->spec.file = t->seen;
    t->spec.any_overlap = ROWS[row].any;
    t->spec.base_yields = ROWS[row].yields;
    t->spec.fills_gaps = ROWS[row].fills_gaps;
    t->v = (cm_job_var){
        .source = &t->joined->var[1],
        .view = {.rank = 1, .shape = {6}, .step = {1}, .type = cm_dtype_make(CM_KIND_FLOAT, 8)}};
    t->job = (cm_job){.report = &t->report, .source = t->joined};
    t->w = (cm_witnesses){.job = &t->job, .spec = &t->spec, .tree = &t->tree, .var = t->known};
    for (size_t i = 0; i < 2; i++) {
        cm_witness_var *k = &t->known[i];
        *k = (cm_witness_var){.of = &t->var[i],
                              .job = &t->v,
                              .node = cm_zarr_find(&t->tree, t->var[i].name),
                              .is_known = true,
                              .njoined = 1,
                              .has = &t->has,
                              .nfiles = t->spec.nfiles};
        OK(cm_witness_decoding_in(&t->w, k, &k->store, err));
    }
    OK(cm_witness_dims_make(&t->w, err));
    for (uint32_t f = 0; f < t->spec.nfiles; f++)
        OK(cm_witness_place(&t->w, f, t->ds[f], err));
    OK(cm_witness_places_sort(&t->w, err));
    if (ROWS[row].computed)
        t->var[1].values = t; /* whatever they are */
}

static void boxing_end(boxing *t)
{
    t->var[1].values = NULL;
    cm_witness_dims_release(&t->w);
    cm_dataset_close(t->joined);
    for (size_t i = 0; i < MOST_FILES; i++)
        cm_dataset_close(t->ds[i]);
    cm_transform_report_release(&t->report);
    cm_zarr_tree_release(&t->tree);
    cm_json_free(t->empty);
    planned_release(&t->p);
}

static void boxes(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        boxing t;
        cm_array *array;
        cm_comparison c;
        cm_digest digest = {0}, none = {0};
        cm_compare_buffers b = {.ctx = cm_codec_ctx_create(NULL)};
        const cm_box box = {.rank = 1, .start = {ROWS[i].start}, .shape = {ROWS[i].count}};
        boxing_begin(&t, i);
        OK(cm_zarr_array_open(&t.tree, t.known[1].node, 0, &array, err));
        assert_true(cm_witnesses_know(&t.w, &t.v));
        OK(cm_witness_box(&t.w, &t.v, array, &box, &b, &digest, &c, err));
        assert_false(c.store_failed);
        assert_true(memcmp(&digest, &none, sizeof digest) != 0);
        tell_begin(&t.p.text);
        if (c.ndiffer > 0)
            tell(&t.p.text, "%u from %u: want %s, got %s%s%s", (unsigned)c.ndiffer,
                 (unsigned)c.first, c.want, c.got, c.file != NULL ? " in " : "",
                 c.file != NULL ? c.file : "");
        tell_compare(ROWS[i].name, (const char *)t.p.text.data, ROWS[i].result, &bad);
        cm_array_free(array);
        cm_compare_buffers_release(&b);
        boxing_end(&t);
    }
    assert_int_equal(bad, 0);
}

/* Which variables are compared so at all. */
static void known(void **state)
{
    boxing t;
    (void)state;
    boxing_begin(&t, 0);
    assert_true(cm_witnesses_know(&t.w, &t.v));
    assert_false(cm_witnesses_know(NULL, &t.v));
    t.known[1].is_known = false;
    assert_false(cm_witnesses_know(&t.w, &t.v));
    t.known[1].is_known = true;
    t.known[1].njoined = 0;
    assert_false(cm_witnesses_know(&t.w, &t.v));
    t.known[1].njoined = 1;
    t.known[1].nfiles = 0;
    assert_false(cm_witnesses_know(&t.w, &t.v));
    t.known[1].nfiles = 2;
    t.v.dataset = t.ds[0]; /* of another dataset: stacked */
    assert_false(cm_witnesses_know(&t.w, &t.v));
    t.v.dataset = NULL;
    t.spec.nvars = 1;
    assert_false(cm_witnesses_know(&t.w, &t.v));
    t.spec.nvars = 2;
    boxing_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(boxes), cmocka_unit_test(known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
