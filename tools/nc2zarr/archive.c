/* Several inputs: a survey, and a conversion of what needs no decision. */
#include <stdlib.h>
#include <string.h>

#include "../common/part.h"
#include "../common/remote.h"
#include "../common/repository.h"
#include "../common/run.h"
#include "../common/say.h"
#include "../common/summary.h"
#include "archive/survey/inputs.h"
#include "survey.h"

enum {
    MOST_TRIES = 3 /* the second finds the plan that was in the first one's way */
};

bool nc2zarr_is_archive(const nc2zarr_values *v, const cm_common_options *common,
                        const cm_texts *paths)
{
    static const char *const OPTION[] = {"survey",     "survey-cache", "along",
                                         "new-dim",    "store-per",    "file-attr",
                                         "time-units", "promote",      NULL};
    for (size_t i = 0; OPTION[i] != NULL; i++)
        if (cm_tool_given(&NC2ZARR, common, OPTION[i]))
            return true;
    return v->survey || v->append || v->replace || paths->n > 2 ||
           (paths->n > 0 && cm_input_is_many(paths->text[0]));
}

/* The store is locked before it is surveyed with the files. */
static int open_append(archive_job *job, cm_error *err)
{
    const cm_append_options options = {.store = job->options.target,
                                       .branch = job->options.branch,
                                       .dimension = job->v->append,
                                       .replace = job->v->replace,
                                       .break_lock = job->options.break_lock,
                                       .recheck = job->v->recheck,
                                       .overlaps = job->asked.overlap != CM_OVERLAP_ERROR,
                                       .hold = job->v->append_rest != 0,
                                       .look = job->options.dry_run || job->v->survey,
                                       .part = job->options.part.on,
                                       .net = job->options.net,
                                       .monitor = job->options.monitor};
    char *note;
    int rc = cm_append_open(&options, &job->append, &note, err);
    if (rc != CM_OK)
        return rc;
    if (note && job->common->verbosity >= 0)
        cm_say(NC2ZARR.name, "%s", note);
    free(note);
    job->asked.base = cm_append_store(job->append);
    job->asked.along = cm_append_dimension(job->append);
    job->asked.listed = cm_append_listed;
    job->asked.listed_context = job->append;
    job->asked.base_yields = job->v->replace != NULL;
    job->asked.base_rechecks = job->v->recheck;
    job->options.append = job->append;
    /* The survey chooses them. */
    job->options.variable = job->options.exclude = (cm_texts){0};
    return CM_OK;
}

static int survey(archive_job *job, cm_error *err)
{
    int rc = job->v->append || job->v->replace ? open_append(job, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_archive_open(&job->asked, &job->archive, err);
    if (rc != CM_OK)
        return rc;
    if (cm_archive_cache_refused(job->archive) && job->common->verbosity >= 0)
        cm_say(NC2ZARR.name, "warning: %s", cm_archive_cache_refused(job->archive));
    job->nstores = cm_archive_nstores(job->archive);
    job->survey = calloc(job->nstores + 1, sizeof(*job->survey));
    if (!job->survey)
        return cm_fail(err, CM_ENOMEM, "no memory for a survey");
    for (size_t i = 0; rc == CM_OK && i < job->nstores; i++) {
        rc = cm_archive_join(job->archive, i, &job->survey[i], err);
        job->ndecisions += job->survey[i]->ndecisions;
    }
    return rc;
}

int nc2zarr_convert_store(void *context, cm_error *err)
{
    archive_job *job = context;
    struct cm_dataset *dataset = NULL;
    int rc = cm_archive_dataset(job->archive, job->store, &dataset, err);
    if (rc != CM_OK)
        return rc;
    /* Pairs that joined names of files have done what they were for. */
    cm_texts left = {calloc(job->v->o.rename.n + 1, sizeof(char *)), 0};
    if (!left.text)
        return cm_fail(err, CM_ENOMEM, "no memory for names");
    for (size_t i = 0; i < job->v->o.rename.n; i++)
        if (!cm_archive_renames(job->archive, job->store, i))
            ((const char **)(uintptr_t)left.text)[left.n++] = job->v->o.rename.text[i];
    job->options.rename = left;
    job->options.dataset = dataset;
    job->options.source = NULL;
    job->began = true;
    rc = cm_summary_transform(&NC2ZARR, job->common, &job->options, &job->report, err);
    job->report.nfiles_opened = job->survey[job->store]->nopened;
    free((void *)(uintptr_t)left.text);
    job->options.rename = job->v->o.rename;
    return rc;
}

/* A failure may come from a store that another process adds to: name that cause. */
static int explain(archive_job *job, int status, cm_error *err)
{
    cm_error why = {0};
    if (status == CM_OK || status == CM_ECANCELED || status == CM_EDIFFER ||
        cm_append_check(job->append, &why) != CM_EEXIST)
        return status;
    *err = why;
    return CM_EEXIST;
}

static int try(archive_job *job, cm_error *err)
{
    int rc = explain(job, survey(job, err), err);
    if (rc == CM_OK && job->ndecisions > 0)
        rc = cm_append_check(job->append, err);
    if (rc == CM_OK && (job->v->survey || job->ndecisions > 0))
        rc = nc2zarr_decide(job, &job->decisions, err);
    if (rc != CM_OK || job->v->survey || job->ndecisions > 0 || job->asked.store_per)
        return rc;
    rc = explain(job, nc2zarr_convert_store(job, err), err);
    if (rc == CM_EFORMAT)
        nc2zarr_explain_clash(job, err);
    return rc;
}

static void release(archive_job *job)
{
    cm_transform_report_release(&job->report);
    nc2zarr_decisions_release(&job->decisions);
    cm_archive_close(job->archive);
    cm_append_close(job->append);
    free(job->survey);
}

/* Whether parts of a commit, which begin in any order, began with another snapshot. */
static bool is_late(archive_job *job)
{
    const cm_texts *inputs = &job->asked.inputs;
    for (size_t i = 0; i < inputs->n; i++)
        if (strcmp(inputs->text[i], "@-") == 0) /* which was read */
            return false;
    return job->options.part.on && cm_is_repository(job->options.target) &&
           cm_append_check(job->append, NULL) == CM_EEXIST;
}

static int survey_and_convert(void *context, cm_error *err)
{
    archive_job *job = context;
    int rc = try(job, err);
    for (int i = 0; rc == CM_EEXIST && i < MOST_TRIES && is_late(job); i++) {
        release(job);
        job->report = (cm_transform_report){0};
        job->decisions = (nc2zarr_decisions){0};
        job->archive = NULL;
        job->options.append = job->append = NULL;
        job->survey = NULL;
        job->nstores = job->ndecisions = 0;
        job->began = false;
        rc = try(job, err);
    }
    return rc;
}

/* Reports the survey, before or instead of a conversion.  Returns the exit status. */
static int report_survey(archive_job *job, int status, const cm_error *err)
{
    const cm_common_options *common = job->common;
    cm_error print_err = {0};
    int exit_status = cm_tool_exit_status(status);
    if (status == CM_OK && job->ndecisions > 0)
        exit_status = CM_EXIT_DECISION;
    if (common->json &&
        nc2zarr_print_survey_json(job->archive, job->survey, job->nstores, &job->decisions,
                                  status == CM_OK ? NULL : err, &print_err) != CM_OK) {
        cm_say(NC2ZARR.name, "%s", print_err.text);
        exit_status = CM_EXIT_FAILED;
    } else if (!common->json && status == CM_OK && job->v->survey) {
        nc2zarr_print_survey(job, &job->decisions);
    }
    if (status == CM_OK && !job->v->survey)
        nc2zarr_say_refused(job, &job->decisions);
    if (cm_run_stopped(status))
        cm_run_say_stopped(&NC2ZARR, job->options.target ? job->options.target : "survey",
                           &(cm_run_state){.untouched = true});
    else if (status != CM_OK)
        cm_say(NC2ZARR.name, "%s", err->text);
    return exit_status;
}

static int run(archive_job *job)
{
    cm_error err = {0};
    int status = cm_remote_open(&job->v->net, &job->asked.inputs, job->options.target,
                                job->asked.monitor, &job->options.net, &err);
    job->asked.net = job->options.net;
    if (status == CM_OK)
        status = cm_run(&NC2ZARR, job->common, job->asked.monitor, survey_and_convert, job, &err);
    int exit_status;
    if (status == CM_OK && job->asked.store_per && !job->v->survey && job->ndecisions == 0) {
        exit_status = nc2zarr_convert_stores(job, &status);
    } else if (job->began) {
        job->options.source = job->survey[0]->name; /* for people */
        nc2zarr_say_findings(job->survey[0], job->common);
        const nc2zarr_of of = {.archive = job->archive, .survey = job->survey[0]};
        exit_status = nc2zarr_report(status, &job->options, &job->report, job->common, &job->typed,
                                     &of, &err);
    } else {
        exit_status = report_survey(job, status, &err);
    }
    release(job);
    /* The lock was given back over the network. */
    cm_remote_say(&NC2ZARR, job->options.net, job->common);
    cm_net_free(job->options.net);
    cm_run_end(status);
    return exit_status;
}

int nc2zarr_archive(const nc2zarr_values *v, const cm_common_options *common,
                    const cm_texts *inputs, const char *output, const char *command,
                    const nc2zarr_typed *typed)
{
    cm_error err = {0};
    int status = CM_EXIT_FAILED;
    archive_job job = {.v = v, .common = common, .typed = *typed, .asked = v->a, .options = v->o};
    cm_monitor *monitor = cm_monitor_create(&err);
    job.asked.inputs = job.typed.inputs = *inputs;
    job.typed.ordered = v->a.order == CM_ORDER_GIVEN;
    job.asked.standard = stdin;
    job.asked.target = output;
    job.asked.nprocesses = common->nthreads;
    job.asked.monitor = monitor;
    job.asked.fetched = v->o.scratch;
    job.asked.rename = v->o.rename;
    job.asked.merge_along = v->o.merge_along;
    job.asked.variable = v->o.variable;
    job.asked.exclude = v->o.exclude;
    job.asked.dtype = v->o.dtype;
    job.asked.fill_value = v->o.fill_value;
    job.options.target = output;
    job.options.command = command;
    job.options.nthreads = common->nthreads;
    job.options.memory = common->memory;
    job.asked.memory = common->memory;
    job.options.monitor = monitor;
    if (!monitor) {
        cm_say(NC2ZARR.name, "%s", err.text);
        return CM_EXIT_FAILED;
    }
    const cm_texts both = {inputs->text, inputs->n + (v->o.check ? 1 : 0)};
    const cm_outputs outputs = {.read = &both,
                                .made = v->o.check ? NULL : output,
                                .references = v->o.refer != NULL && !cm_is_repository(output),
                                .overwrite = v->o.overwrite};
    status = v->a.store_per ? nc2zarr_check_stores(v, output, &outputs)
                            : cm_outputs_check(&NC2ZARR, v, &outputs);
    if (status == CM_TOOL_RUN)
        status = nc2zarr_check_grown(v, output);
    if (status == CM_TOOL_RUN && !v->o.check && !v->survey)
        status = cm_part_choose(&NC2ZARR, &v->part, common->verbosity < 0, &job.options.part);
    if (status == CM_TOOL_RUN)
        status = run(&job);
    cm_monitor_free(monitor);
    return status;
}
