/*
 * A transform over a dataset in memory, taken as far as a test wants, and what it decided as text.
 */
#ifndef TESTS_JOB_JOB_FIXTURE_H
#define TESTS_JOB_JOB_FIXTURE_H

#include "../fixtures/made_dataset.h"
#include "../fixtures/tell.h"
#include "convert/plan/part_cut.h"
#include "convert/select/merge_along.h"
#include "convert/sink/part/parts.h"
#include "convert/sink/store/store.h"
#include "convert/stack/stack.h"
#include "convert/statistics/statistics.h"
#include "format/zarr/early.h"

/* The last step that is taken. */
typedef enum planned_step {
    STEP_OPEN, /* dimensions are taken out, and variables stacked */
    STEP_SELECT,
    STEP_VIEW,
    STEP_LAYOUT,
    STEP_DESCRIBE,
    STEP_PLAN, /* with statistics, if they are asked for */
    STEP_RUN
} planned_step;

typedef struct planned {
    cm_transform_options options;
    cm_transform_report report;
    cm_dataset *made;
    cm_store *store; /* in memory */
    bool borrowed;   /* it is another's */
    cm_job job;
    int status; /* of the steps, and why they ended: */
    cm_error error;
    cm_buf text; /* the last that was told */
} planned;

static inline int planned_steps(planned *p, planned_step last, cm_error *err)
{
    static const cm_dataset_options NONE;
    cm_job *job = &p->job;
    int rc = cm_job_merge_along(job, err);
    if (rc == CM_OK)
        rc = cm_job_stack(job, &NONE, err);
    if (rc == CM_OK && last >= STEP_SELECT)
        rc = cm_job_select(job, err);
    if (rc == CM_OK && last >= STEP_VIEW)
        rc = cm_job_open_arrays(job, err);
    if (rc == CM_OK && last >= STEP_VIEW)
        rc = cm_job_view(job, err);
    if (rc == CM_OK && last >= STEP_LAYOUT)
        rc = cm_job_layout(job, err);
    if (rc == CM_OK && last >= STEP_DESCRIBE)
        rc = cm_job_describe(job, err);
    if (rc == CM_OK && last >= STEP_PLAN && p->options.statistics)
        rc = cm_statistics_prepare(job, NULL, err);
    if (rc == CM_OK && last >= STEP_PLAN)
        rc = cm_job_plan(job, p->store, err);
    if (rc == CM_OK && last >= STEP_RUN)
        rc = cm_job_run(job, p->store, err);
    return rc;
}

/* Into STORE, which is the caller's; OPTIONS may be NULL: those of nc2zarr. */
static inline void planned_into(planned *p, const made_file *file,
                                const cm_transform_options *options, planned_step last,
                                cm_store *store)
{
    *p = (planned){.store = store, .borrowed = true};
    if (options != NULL)
        p->options = *options;
    p->made = made_open(file);
    p->job = (cm_job){.options = &p->options,
                      .terms = {.alike = p->options.part.on, .grows = p->options.append != NULL},
                      .report = &p->report,
                      .source = p->made,
                      .from = {.path = file->path, .group = ""},
                      .scratch.folder = strdup("/tmp"),
                      .zarr_format = p->options.zarr_format == 0 ? 3 : p->options.zarr_format};
    p->status = planned_steps(p, last, &p->error);
}

static inline void planned_make(planned *p, const made_file *file,
                                const cm_transform_options *options, planned_step last)
{
    cm_store *store = NULL;
    OK(cm_store_open_memory(&store, err));
    planned_into(p, file, options, last, store);
    p->borrowed = false;
}

static inline void planned_release(planned *p)
{
    cm_job *job = &p->job;
    cm_job_release_writers(job);
    for (size_t i = 0; i < job->nvars; i++) {
        cm_statistics_free(job->var[i].statistics);
        cm_zarr_meta_release(&job->var[i].doc.meta);
        free(job->var[i].share.sweep);
        free(job->var[i].name);
    }
    free(job->var);
    cm_early_free(job->scratch.early);
    free(job->scratch.folder);
    cm_json_free(job->sample_chunks);
    cm_job_unstack(job);
    cm_job_unmerge(job);
    cm_dataset_close(p->made);
    if (!p->borrowed)
        cm_store_free(p->store);
    cm_transform_report_release(&p->report);
    cm_buf_release(&p->text);
}

/* ---- as text ---- */

static inline void say_numbers(planned *p, const char *what, const uint64_t *number, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        tell(&p->text, "%s%u", k == 0 ? what : ",", (unsigned)number[k]);
}

/* "v y; w": the variables, with their names in the source where these are others. */
static inline const char *say_names(planned *p)
{
    tell_begin(&p->text);
    for (size_t i = 0; i < p->job.nvars; i++) {
        const cm_job_var *v = &p->job.var[i];
        tell(&p->text, "%s%s", i > 0 ? " " : "", v->name);
        if (strcmp(v->name, v->source->name) != 0)
            tell(&p->text, "(%s)", v->source->name);
    }
    return (const char *)p->text.data;
}

/* "v: float32 2,3 from 1,0 by 1,2; ...": types and elements, where these are not all. */
static inline const char *say_views(planned *p)
{
    char type[32];
    tell_begin(&p->text);
    for (size_t i = 0; i < p->job.nvars; i++) {
        const cm_job_var *v = &p->job.var[i];
        tell(&p->text, "%s%s: %s", i > 0 ? "; " : "", v->name,
             cm_dtype_name(&v->view.type, type, sizeof type));
        say_numbers(p, " ", v->view.shape, v->view.rank);
        if (v->view.whole)
            continue;
        say_numbers(p, " from ", v->view.start, v->view.rank);
        say_numbers(p, " by ", v->view.step, v->view.rank);
    }
    return (const char *)p->text.data;
}

/* "v: 2,3 in 4,6; ...": chunks, and shards. */
static inline const char *say_layouts(planned *p)
{
    tell_begin(&p->text);
    for (size_t i = 0; i < p->job.nvars; i++) {
        const cm_job_var *v = &p->job.var[i];
        tell(&p->text, "%s%s:", i > 0 ? "; " : "", v->name);
        say_numbers(p, " ", v->layout.chunk, v->view.rank);
        if (v->layout.sharded)
            say_numbers(p, " in ", v->layout.shard, v->view.rank);
    }
    return (const char *)p->text.data;
}

/* "v: int16 2,3 = 0 1 2": what lies in the store, whose documents are written for it. */
static inline const char *say_stored(planned *p)
{
    const cm_dataset_options options = {.store = p->store};
    char type[32], text[64];
    cm_dataset *ds;
    uint8_t values[512];
    OK(cm_job_write_metadata(&p->job, p->store, err));
    OK(cm_dataset_open("memory", "", &options, &ds, err));
    tell_begin(&p->text);
    for (size_t i = 0; i < ds->nvars; i++) {
        cm_variable *v = &ds->var[i];
        cm_box box = {.rank = v->rank};
        memcpy(box.shape, v->shape, sizeof box.shape);
        OK(cm_dataset_prepare(ds, v, err));
        cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
        OK(cm_array_read(v->array, ctx, &box, values, err));
        cm_codec_ctx_free(ctx);
        tell(&p->text, "%s%s: %s", i > 0 ? "; " : "", v->name,
             cm_dtype_name(&v->dtype, type, sizeof type));
        say_numbers(p, " ", v->shape, v->rank);
        tell(&p->text, " =");
        for (uint64_t k = 0; k < cm_box_nelem(&box); k++)
            tell(&p->text, " %s",
                 made_text(&v->dtype, values + k * v->dtype.nbytes, text, sizeof text));
    }
    cm_dataset_close(ds);
    return (const char *)p->text.data;
}

/* ---- rows ---- */

typedef struct planned_row {
    const char *name;
    cm_transform_options options;
    const char *names, *views, *layouts; /* as the functions above say it; NULL: not asked for */
    const char *error;                   /* NULL: nothing fails */
    const char *warning;                 /* the last; NULL: not asked for */
    const made_file *file;               /* NULL: that of all rows */
} planned_row;

static inline void planned_try(const planned_row *row, size_t n, const made_file *file,
                               planned_step last)
{
    unsigned bad = 0;
    for (; n-- > 0; row++) {
        planned p;
        planned_make(&p, row->file != NULL ? row->file : file, &row->options, last);
        tell_compare(row->name, p.status == CM_OK ? "" : p.error.text,
                     row->error != NULL ? row->error : "", &bad);
        tell_compare(row->name, say_names(&p), row->names, &bad);
        tell_compare(row->name, say_views(&p), row->views, &bad);
        tell_compare(row->name, say_layouts(&p), row->layouts, &bad);
        const size_t nwarnings = p.report.nwarnings;
        tell_compare(row->name, nwarnings > 0 ? p.report.warning[nwarnings - 1] : "", row->warning,
                     &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

#endif
