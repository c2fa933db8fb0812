/* The archive of archive.h: one survey, and a join for each store. */
#include <chunkmill/archive.h>

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "archive/emit.h"
#include "archive/stores.h"
#include "archive/survey/records.h"
#include "base/clock.h"
#include "base/number.h"

typedef struct store {
    cm_join *join;
    cm_archive_report report;
    cm_dataset *dataset, *base;
} store;

struct cm_archive {
    cm_archive_options options;
    cm_survey own, *survey; /* OWN, or that of the archive that this one joins again */
    cm_store_plan *plan;
    store *store; /* of each plan */
    size_t nstores;
    double seconds;
};

static int plan_stores(cm_archive *a, cm_error *err)
{
    int rc = cm_stores_plan(&a->options, a->survey, &a->plan, &a->nstores, err);
    a->store = cm_calloc(a->nstores + 1, sizeof(a->store[0]), err);
    return rc == CM_OK && a->store == NULL ? CM_ENOMEM : rc;
}

int cm_archive_open(const cm_archive_options *options, cm_archive **out, cm_error *err)
{
    cm_archive *a = cm_calloc(1, sizeof(*a), err);
    *out = NULL;
    if (a == NULL)
        return CM_ENOMEM;
    a->options = *options;
    a->survey = &a->own;
    uint64_t start = cm_now_ns();
    const cm_survey_options survey = {.inputs = options->inputs,
                                      .standard = options->standard,
                                      .zero = options->zero,
                                      .avoid = options->target,
                                      .scratch = options->scratch,
                                      .fetched = options->fetched,
                                      .fetched_nbytes = options->fetched_nbytes,
                                      .cache = options->cache,
                                      .base = options->base,
                                      .net = options->net,
                                      .listed = options->listed,
                                      .listed_context = options->listed_context,
                                      .nprocesses = options->nprocesses,
                                      .memory = options->memory,
                                      .monitor = options->monitor};
    int rc = cm_survey_run(&survey, a->survey, err);
    a->seconds = (double)(cm_now_ns() - start) * 1e-9;
    if (rc == CM_OK)
        rc = plan_stores(a, err);
    if (rc == CM_OK)
        *out = a;
    else
        cm_archive_close(a);
    return rc;
}

int cm_archive_open_again(cm_archive *surveyed, const cm_archive_options *options, cm_archive **out,
                          cm_error *err)
{
    cm_archive *a = cm_calloc(1, sizeof(*a), err);
    *out = NULL;
    if (a == NULL)
        return CM_ENOMEM;
    a->options = *options;
    a->survey = surveyed->survey;
    a->seconds = surveyed->seconds;
    int rc = plan_stores(a, err);
    if (rc == CM_OK)
        *out = a;
    else
        cm_archive_close(a);
    return rc;
}

int cm_archive_store_patterns(const cm_archive *a, cm_store_pattern **out, size_t *n, cm_error *err)
{
    return cm_store_patterns_find(&a->options, a->survey, out, n, err);
}

int cm_archive_sets_apart(const cm_archive *a, const char *pattern, const char *x, const char *y,
                          bool *out, cm_error *err)
{
    cm_archive_options options = a->options;
    cm_store_plan *plan = NULL;
    size_t n = 0;
    options.store_per = pattern;
    int rc = cm_stores_plan(&options, a->survey, &plan, &n, err);
    *out = rc == CM_OK;
    for (size_t i = 0; i < n; i++) {
        bool has_x = false, has_y = false;
        for (size_t k = 0; k < plan[i].nfiles; k++) {
            const char *path = a->survey->file[plan[i].file[k]].path;
            has_x |= strcmp(path, x) == 0;
            has_y |= strcmp(path, y) == 0;
        }
        *out &= !(has_x && has_y);
    }
    cm_stores_free(plan, n);
    return rc;
}

bool cm_archive_renames(const cm_archive *a, size_t i, size_t pair)
{
    const cm_join *j = a->store[i].join;
    return j != NULL && j->tables.renames != NULL && j->tables.renames[pair];
}

const char *cm_archive_cache_refused(const cm_archive *a)
{
    return a->survey->cache_refused;
}

size_t cm_archive_nstores(const cm_archive *a)
{
    return a->nstores;
}

static int find_repeated(cm_archive *a, store *s, cm_error *err)
{
    const cm_inputs *in = &a->survey->inputs;
    if (in->nrepeated == 0)
        return CM_OK;
    cm_finding *f = cm_join_find(&s->join->findings, CM_FINDING_REPEATED, CM_WEIGHT_NOTE, false,
                                 NULL, CM_JOIN_NONE, err,
                                 "%zu file%s named more than once; each counts "
                                 "once",
                                 in->nrepeated, cm_of_count(in->nrepeated, " is", "s are"));
    if (f == NULL || (f->file = cm_strdup(in->repeated, err)) == NULL)
        return CM_ENOMEM;
    f->nfiles = in->nrepeated;
    return CM_OK;
}

int cm_archive_join(cm_archive *a, size_t i, const cm_archive_report **report, cm_error *err)
{
    store *s = &a->store[i];
    const cm_store_plan *p = &a->plan[i];
    int rc = CM_OK;
    *report = &s->report;
    if (s->join != NULL)
        return CM_OK;
    s->report.seconds = a->seconds;
    s->report.nlooked = a->survey->nlooked;
    /* The store that grows is no file that somebody gave. */
    for (size_t k = 0; k < p->nfiles; k++) {
        const cm_surveyed *f = cm_survey_file(a->survey, p->file[k]);
        s->report.nopened += f->opened && !f->is_base;
    }
    s->report.nlisted = a->survey->nlisted;
    if (p->name != NULL && (s->report.store = cm_strdup(p->name, err)) == NULL)
        return CM_ENOMEM;
    rc = cm_join_create(&a->options, a->survey, p->file, p->nfiles, p->only.n > 0 ? &p->only : NULL,
                        &s->report, &s->join, err);
    cm_records_let_go(a->survey->records);
    if (rc != CM_OK && p->name != NULL)
        cm_error_prefix(err, "%s", p->name);
    return rc == CM_OK && i == 0 ? find_repeated(a, s, err) : rc;
}

/* Its arrays are read by many threads: all are prepared before. */
static int open_base(cm_archive *a, store *s, cm_error *err)
{
    const cm_dataset_options options = {.net = a->options.net};
    int rc = cm_dataset_open(a->options.base, "", &options, &s->base, err);
    for (size_t i = 0; rc == CM_OK && i < s->base->nvars; i++) {
        rc = cm_dataset_prepare(s->base, &s->base->var[i], err);
        if (rc == CM_EUNSUPPORTED)
            rc = CM_OK; /* told of where it is wanted */
    }
    if (rc == CM_OK)
        ((cm_multi_file *)(uintptr_t)s->join->spec.file)[0].open = s->base;
    else
        cm_error_place(err, a->options.base);
    return rc;
}

int cm_archive_dataset(cm_archive *a, size_t i, cm_dataset **out, cm_error *err)
{
    store *s = &a->store[i];
    int rc = CM_OK;
    if (s->join == NULL || !s->join->whole)
        return cm_fail(err, CM_EINVAL, "the files need a decision first");
    if (s->dataset == NULL && a->options.base != NULL)
        rc = open_base(a, s, err);
    if (rc == CM_OK && s->dataset == NULL)
        rc = cm_multi_dataset_open(&s->join->spec, NULL, &s->dataset, err);
    /* Lists that are gone leave half a MiB of heap in memory, of 10,000 files. */
    (void)malloc_trim(0);
    *out = s->dataset;
    return rc;
}

int cm_archive_left_out(const cm_archive *a, size_t i, size_t file, const char **path,
                        cm_json **out, cm_error *err)
{
    const cm_join *j = a->store[i].join;
    *path = j != NULL && file < j->in.nfiles ? j->in.file[file]->path : NULL;
    *out = NULL;
    /* Of no join, and before all variables were compared, nothing is known. */
    return *path == NULL || j->emitted->ngroups == 0
               ? CM_OK
               : cm_join_left_out(j, (uint32_t)file, out, err);
}

void cm_archive_close(cm_archive *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; a->store != NULL && i < a->nstores; i++) {
        cm_dataset_close(a->store[i].dataset);
        cm_dataset_close(a->store[i].base);
        cm_join_free(a->store[i].join);
        cm_report_release(&a->store[i].report);
    }
    free(a->store);
    cm_stores_free(a->plan, a->nstores);
    cm_survey_release(&a->own);
    free(a);
}
