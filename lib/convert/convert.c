/*
 * The verb behind nc2zarr and rechunk, from the options to the report: the steps
 * of transform.h in order.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "convert/layout/refer.h"
#include "convert/passport/job_passport.h"
#include "convert/select/merge_along.h"
#include "convert/sink/growth/append_source.h"
#include "convert/sink/sink.h"
#include "convert/sink/store/files.h"
#include "convert/sink/store/store.h"
#include "convert/stack/stack.h"
#include "convert/statistics/statistics.h"
#include "options/store_path.h"
#include "store/open.h"

void cm_transform_options_init(cm_transform_options *options, cm_defaults defaults)
{
    *options = (cm_transform_options){.defaults = defaults, .verify = CM_VERIFY_SAMPLE};
}

/* ---- the source ---- */

static int find_scratch(cm_job *job, cm_error *err)
{
    const cm_transform_options *o = job->options;
    struct stat st;
    if (o->scratch == NULL) {
        job->scratch.folder = cm_sink_folder_above(
            o->target != NULL && !cm_store_url_is_remote(o->target) ? o->target : "./x", err);
        return job->scratch.folder == NULL ? CM_ENOMEM : CM_OK;
    }
    if (stat(o->scratch, &st) != 0 || !S_ISDIR(st.st_mode))
        return cm_fail(err, CM_EINVAL, "`scratch` %s: is not a folder", o->scratch);
    job->scratch.folder = cm_strdup(o->scratch, err);
    return job->scratch.folder == NULL ? CM_ENOMEM : CM_OK;
}

/* The node after "::" is a group, or one variable, which is then converted with what it needs. */
static int check_group(cm_job *job, cm_transform_options *effective, cm_error *err)
{
    const cm_dataset *ds = job->source;
    for (size_t i = 0; i < ds->ngroups; i++)
        if (strcmp(ds->group[i].path, job->from.group) == 0)
            return CM_OK;
    if (cm_dataset_find(ds, job->from.group) != NULL) {
        job->from.chosen = job->from.group;
        effective->variable = (cm_texts){&job->from.chosen, 1};
        job->from.group = "";
        return CM_OK;
    }
    return cm_fail(err, CM_ENOTFOUND, "the file has no group or variable %s", job->from.group);
}

static int open_source(cm_job *job, const cm_store_path *at, cm_transform_options *effective,
                       cm_error *err)
{
    cm_transform_report *r = job->report;
    const cm_dataset_options options = {.canceled = cm_monitor_cancels,
                                        .canceled_context = job->options->monitor,
                                        .net = job->options->net,
                                        .memory = job->options->memory};
    int rc = CM_OK;
    job->source = job->options->dataset;
    if (job->source == NULL) {
        rc = cm_dataset_open(at->path, at->node, &options, &job->source, err);
        job->from.opened = job->source;
    }
    if (rc != CM_OK)
        return rc;
    r->source_nbytes = job->source->nbytes;
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    r->nfiles = spec != NULL ? spec->nfiles : 0;
    r->zarr_format_before = job->source->zarr_format;
    if ((r->source_format = cm_strdup(job->source->format_name, err)) == NULL)
        return CM_ENOMEM;
    if (job->source->kind == CM_DATASET_ZARR)
        job->from.group = "";
    else
        rc = check_group(job, effective, err);
    job->zarr_format = effective->zarr_format;
    if (job->zarr_format == 0)
        job->zarr_format = job->source->zarr_format != 0 ? job->source->zarr_format : 3;
    r->zarr_format_after = job->zarr_format;
    if (rc == CM_OK)
        rc = cm_job_merge_along(job, err);
    return rc == CM_OK ? cm_job_stack(job, &options, err) : rc;
}

/* A dataset that is there goes by its own name. */
static int find_source(const cm_job *job, cm_store_path *at, cm_error *err)
{
    const cm_transform_options *o = job->options;
    const cm_dataset *ds = o->dataset;
    if (ds == NULL) {
        int rc = cm_store_path_split(o->source, at, err);
        return rc == CM_OK ? cm_store_path_fetch(at, o->net, o->scratch, err) : rc;
    }
    at->path = cm_strdup(ds->path, err);
    at->node = cm_strdup("", err);
    return at->path == NULL || at->node == NULL ? CM_ENOMEM : CM_OK;
}

/* From the source to a layout: nothing is touched. */
static int prepare(cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = cm_sink_check_apart(s, job, err);
    cm_monitor_phase(job->options->monitor, CM_PHASE_PLANNING, 0);
    if (rc == CM_OK)
        rc = find_scratch(job, err);
    if (rc == CM_OK)
        rc = cm_job_select(job, err);
    if (rc == CM_OK && s->ops->join != NULL)
        rc = s->ops->join(job, err);
    if (rc == CM_OK)
        rc = cm_job_tell_stacks(job, err);
    if (rc == CM_OK)
        rc = cm_job_open_arrays(job, err);
    if (rc == CM_OK)
        rc = cm_job_view(job, err);
    return rc == CM_OK && s->ops->layout != NULL ? s->ops->layout(job, err) : rc;
}

static void release(cm_job *job)
{
    cm_job_release_writers(job);
    for (size_t i = 0; i < job->nvars; i++) {
        cm_refer_free(job->var[i].layout.refer);
        cm_statistics_free(job->var[i].statistics);
        cm_presence_release(&job->var[i].stored.presence);
        for (size_t k = 0; k < sizeof(job->var[i].move.own_cuts) / sizeof(cm_cuts); k++)
            cm_cuts_release(&job->var[i].move.own_cuts[k]);
        cm_zarr_meta_release(&job->var[i].doc.meta);
        free(job->var[i].share.sweep);
        free(job->var[i].name);
    }
    cm_job_passport_free(job);
    free(job->var);
    cm_early_free(job->scratch.early);
    free(job->scratch.folder);
    cm_json_free(job->sample_chunks);
    free(job->files.guarded);
    free(job->evidence.agreed);
    cm_outfile_release(&job->files.trace);
    cm_job_unstack(job);
    cm_job_unmerge(job);
    /* Where the source was joined with the store, it is closed after what was made of both. */
    if (job->source == job->from.opened)
        cm_dataset_close(job->from.opened);
    cm_append_source_free(job->from.grown);
}

/* Everything that one call holds until it returns. */
typedef struct held {
    cm_transform_options options; /* in force */
    cm_sink sink;
    cm_job job;
    cm_store_path at;
    cm_outfile certificate;
} held;

/* Where the target is, and what stands there. */
static int find_output(held *h, cm_error *err)
{
    const char *target = h->options.target;
    char **out = &h->job.report->target;
    int rc = cm_sink_check_options(&h->options, h->sink.ops->kind, err);
    if (rc == CM_OK)
        rc = h->sink.ops->find(&h->sink, &h->job, err);
    if (rc == CM_OK && target != NULL && (*out = cm_strdup(target, err)) == NULL)
        rc = CM_ENOMEM;
    return rc;
}

/* Opens the source, after the other output files have been claimed. */
static int find_input(held *h, cm_error *err)
{
    cm_transform_options *o = &h->options;
    cm_store_path *at = &h->at;
    int rc = find_source(&h->job, at, err);
    h->job.from.path = at->url != NULL ? at->url : at->path;
    h->job.from.group = at->node;
    if (rc == CM_OK)
        rc = cm_job_claim_files(&h->job, at->path, h->sink.into.root, &h->certificate, err);
    return rc == CM_OK ? open_source(&h->job, at, o, err) : rc;
}

/* Plans the work. */
static int find_work(held *h, cm_error *err)
{
    int rc = CM_OK;
    h->job.report->finished = h->sink.out.finished;
    if (h->sink.out.finished)
        rc = cm_sink_finished(&h->sink, &h->job, err);
    return rc == CM_OK ? prepare(&h->sink, &h->job, err) : rc;
}

/* Of the sink, what others wait for. */
static int give_back(held *h, cm_error *err)
{
    const char *stays = h->sink.ops->give_back != NULL ? h->sink.ops->give_back(&h->sink) : NULL;
    if (stays == NULL)
        return CM_OK;
    int rc = cm_job_warn(&h->job, err, "%s", stays);
    h->job.report->blocks = rc == CM_OK;
    return rc;
}

int cm_transform(const cm_transform_options *asked, cm_transform_report *report, cm_error *err)
{
    held h = {.options = *asked, .certificate = {.fd = -1}};
    cm_job *job = &h.job;
    uint64_t start = cm_now_ns();
    *job = (cm_job){.options = &h.options, .report = report, .from.group = ""};
    cm_sink_choose(&h.sink, &h.options, &job->terms);
    memset(report, 0, sizeof(*report));
    cm_monitor_phase(asked->monitor, CM_PHASE_OPENING, 0);
    int rc = find_output(&h, err);
    if (rc == CM_OK)
        rc = find_input(&h, err);
    if (rc == CM_OK)
        rc = find_work(&h, err);
    report->seconds = (double)(cm_now_ns() - start) * 1e-9;
    if (rc == CM_OK)
        rc = cm_sink_fill(&h.sink, job, err);
    rc = cm_job_finish_files(job, rc, &h.certificate, err);
    if (job->source != NULL && rc != CM_OK && rc != CM_ECANCELED && rc != CM_EDIFFER)
        cm_job_name_source(job, err);
    if (rc != CM_OK)
        cm_store_path_name(&h.at, err);
    cm_budget_report(&job->budget, report);
    cm_monitor_phase(asked->monitor, CM_PHASE_DONE, 0);
    release(job);
    cm_outfile_release(&h.certificate);
    int given_back = give_back(&h, rc == CM_OK ? err : NULL);
    if (rc == CM_OK)
        rc = given_back;
    cm_sink_release(&h.sink);
    cm_store_path_release(&h.at);
    return rc;
}
