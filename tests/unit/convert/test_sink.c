/* Sinks: which one a job has, what it forbids, and in which order a job goes through it. */
#include "convert/sink/sink.h"
#include "job_fixture.h"

static struct cm_append *const GROWS = (struct cm_append *)(uintptr_t)&GROWS;
static struct cm_dataset *const FILES = (struct cm_dataset *)(uintptr_t)&FILES;

/* ---- which one, and what it forbids ---- */

#define ADDS .source = "a", .target = "b", .append = GROWS

static void refused(void **state)
{
    const struct {
        const char *name;
        cm_transform_options options;
        const char *error;
    } row[] = {
        {"a store", {.source = "a", .target = "b", .chunks = TEXTS("v:2"), .overwrite = true}, ""},
        {"layout of what grows",
         {ADDS, .fill_value = TEXTS("v:2")},
         "`fill_value`: a store that is changed in place keeps its layout"},
        {"values of a source that is added",
         {ADDS, .dtype = TEXTS("int8")},
         "`dtype`: a source is added as it is; make another store of it with this option first, "
         "and add from that one"},
        {"values of files that are added",
         {ADDS, .dataset = FILES, .dtype = TEXTS("int8")},
         "`dtype`: files are added as they are, to a store that keeps its dimensions and types"},
        {"variables of a source", {ADDS, .variable = TEXTS("v")}, ""},
        {"variables of files", {ADDS, .dataset = FILES, .variable = TEXTS("v")}, ""},
        {"a source's unsupported variables",
         {ADDS, .skip_unsupported = true},
         "`skip_unsupported`: not possible where a store is changed in place"},
        {"those of files", {ADDS, .dataset = FILES, .skip_unsupported = true}, ""},
        {"a dry run of that",
         {ADDS, .dry_run = true, .overwrite = true},
         "`overwrite`: not possible where a store is changed in place"},
        {"a check of what grows",
         {ADDS, .check = true},
         "`check`: not possible where a store is changed in place"},
        {"references in a store that grows",
         {ADDS, .refer = "icechunk"},
         "`refer`: only a repository grows by references"},
        {"references in a repository that grows, by parts",
         {.source = "a",
          .target = "icechunk:b",
          .append = GROWS,
          .refer = "icechunk",
          .part.on = true},
         "`refer` and `part`: one process adds references"},
        {"references in a repository that grows, of a dimension taken out",
         {.source = "a",
          .target = "icechunk:b",
          .append = GROWS,
          .refer = "icechunk",
          .merge_along = TEXTS("t=1,2")},
         "`merge_along`: references point to the files' own bytes and cannot change them"},
        {"references of other values",
         {.source = "a", .target = "b", .refer = "json", .subset = TEXTS("t=1:2")},
         "`subset`: references point to the files' own bytes and cannot change them"},
        {"references by parts",
         {.source = "a", .target = "b", .refer = "json", .part.on = true},
         "`part`: references point to the files' own bytes and cannot change them"},
        {"counted references",
         {.source = "a", .target = "b", .refer = "json", .statistics = true},
         "`statistics`: references are made without reading the data"},
        {"a check that counts",
         {.source = "a", .target = "b", .check = true, .statistics = true},
         "`statistics` and `check`: nothing is written"},
        {"a check of some chunks",
         {.source = "a", .target = "b", .check = true, .chunks = TEXTS("v:2")},
         ""},
    };
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_transform_options options = row[i].options;
        cm_terms terms;
        cm_error err = {0};
        cm_sink s;
        cm_sink_choose(&s, &options, &terms);
        const int rc = cm_sink_check_options(&options, s.ops->kind, &err);
        tell_compare(row[i].name, err.text, row[i].error, &bad);
        assert_int_equal(rc == CM_OK, *row[i].error == '\0');
    }
    assert_int_equal(bad, 0);
}

static void chosen(void **state)
{
    const struct {
        cm_transform_options options;
        const cm_sink_ops *ops;
    } row[] = {
        {{.source = "a"}, &cm_sink_store},
        {{.part.on = true}, &cm_sink_part},
        {{.dry_run = true}, &cm_sink_nothing},
        {{.dry_run = true, .part.on = true}, &cm_sink_nothing},
        {{.check = true}, &cm_sink_compared},
        {{.refer = "json"}, &cm_sink_references},
        {{.refer = "json", .dry_run = true}, &cm_sink_references_foreseen},
        {{.append = GROWS}, &cm_sink_growth},
        {{.append = GROWS, .part.on = true}, &cm_sink_growth_part},
        {{.append = GROWS, .part.on = true, .dry_run = true}, &cm_sink_growth_foreseen},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_transform_options options = row[i].options;
        cm_terms terms;
        cm_sink s;
        cm_sink_choose(&s, &options, &terms);
        assert_ptr_equal(s.ops, row[i].ops);
        assert_int_equal(terms.alike, options.part.on);
        assert_int_equal(terms.foreseen, options.dry_run);
        assert_int_equal(terms.grows, options.append != NULL);
    }
}

/* ---- the way through one ---- */

typedef struct way {
    const char *fails; /* at this step */
    bool rests;        /* nothing is to be moved */
    planned p;
    char took[128];
} way;

static way *WAY;

static int step(const char *name, cm_error *err)
{
    strcat(strcat(WAY->took, WAY->took[0] != '\0' ? " " : ""), name);
    return WAY->fails != NULL && strcmp(WAY->fails, name) == 0 ? cm_fail(err, CM_EIO, "%s", name)
                                                               : CM_OK;
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    (void)job;
    s->store = WAY->p.store;
    *moves = !WAY->rests;
    return step("begin", err);
}

static int commit(cm_sink *s, cm_job *job, cm_error *err)
{
    uint64_t n = 0;
    (void)s;
    for (size_t i = 0; i < job->nvars; i++)
        n += job->var[i].moved.counts.delivered;
    return step(n > 0 ? "moved commit" : "commit", err);
}

static void withdraw(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    (void)s;
    (void)job;
    (void)err;
    assert_int_equal(rc, CM_EIO);
    step("withdraw", NULL);
}

static int verify(cm_sink *s, cm_job *job, cm_error *err)
{
    (void)s;
    (void)job;
    return step("verify", err);
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    (void)s;
    (void)job;
    const int own = step("leave", rc == CM_OK ? err : NULL);
    return rc == CM_OK ? own : rc;
}

static void filled(void **state)
{
    static const made_file FILE_ = {"f", .var = {{"v", "int16", "t=4"}}};
    static const cm_sink_ops OPS = {
        .begin = begin, .commit = commit, .withdraw = withdraw, .verify = verify, .leave = leave};
    const struct {
        const char *name, *fails;
        bool rests;
        cm_verify verify;
        const char *took;
    } row[] = {
        {"all", NULL, false, CM_VERIFY_SAMPLE, "begin moved commit verify leave"},
        {"nothing to move", NULL, true, CM_VERIFY_SAMPLE, "begin commit verify leave"},
        {"no proof", NULL, false, CM_VERIFY_NONE, "begin moved commit leave"},
        {"not begun", "begin", false, CM_VERIFY_SAMPLE, "begin withdraw leave"},
        {"not committed", "moved commit", false, CM_VERIFY_SAMPLE,
         "begin moved commit withdraw leave"},
        {"not verified", "verify", false, CM_VERIFY_SAMPLE, "begin moved commit verify leave"},
        {"not left", "leave", false, CM_VERIFY_SAMPLE, "begin moved commit verify leave"},
    };
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(row); i++) {
        const cm_transform_options options = {.verify = row[i].verify};
        way w = {.fails = row[i].fails, .rests = row[i].rests};
        cm_error err = {0};
        cm_sink s = {.ops = &OPS};
        WAY = &w;
        planned_make(&w.p, &FILE_, &options, STEP_PLAN);
        assert_int_equal(w.p.status, CM_OK);
        const int rc = cm_sink_fill(&s, &w.p.job, &err);
        assert_int_equal(rc, row[i].fails == NULL ? CM_OK : CM_EIO);
        tell_compare(row[i].name, w.took, row[i].took, &bad);
        planned_release(&w.p);
    }
    assert_int_equal(bad, 0);
}

/* Another output file that cannot be made is no fault of the source. */
static void claimed(void **state)
{
    static const made_file FILE_ = {"f", .var = {{"v", "int16", "t=4"}}};
    cm_transform_options o = {.target = "/tmp/chunkmill-sink.zarr",
                              .certificate = "/dev/null/c.json",
                              .verify = CM_VERIFY_FULL};
    cm_transform_report report;
    cm_error err = {0};
    (void)state;
    o.dataset = made_open(&FILE_);
    assert_int_not_equal(cm_transform(&o, &report, &err), CM_OK);
    if (strncmp(err.text, o.certificate, strlen(o.certificate)) != 0)
        fail_msg("%s", err.text);
    cm_transform_report_release(&report);
    cm_dataset_close(o.dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chosen), cmocka_unit_test(refused),
                                       cmocka_unit_test(filled), cmocka_unit_test(claimed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
