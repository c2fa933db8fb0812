/* rechunk: options, one call of the library, a report. */
#include <stdlib.h>
#include <string.h>

#include <chunkmill/append.h>

#include "../common/growth.h"
#include "../common/outputs.h"
#include "../common/part.h"
#include "../common/remote.h"
#include "../common/repository.h"
#include "../common/run.h"
#include "../common/say.h"
#include "../common/summary.h"
#include "rechunk.h"

/* STATUS is what cm_transform returned, with its sentence in ERR.  Returns the
 * exit status. */
static int report(int status, const cm_transform_options *options, const cm_transform_report *r,
                  const cm_common_options *common, const cm_error *err)
{
    bool whole = status == CM_OK || status == CM_EDIFFER;
    int exit_status = cm_tool_exit_status(status);
    if (whole)
        cm_summary_say(&RECHUNK, common, r);
    if (common->json) {
        cm_error print_err = {0};
        if (rechunk_print_json(options, r, status == CM_OK ? NULL : err, &print_err) != CM_OK) {
            cm_say(RECHUNK.name, "%s", print_err.text);
            exit_status = CM_EXIT_FAILED;
        }
    } else if (whole && (status == CM_OK || r->written) && common->verbosity >= 0 && !r->finished) {
        rechunk_print_summary(options, r, common);
    }
    if (r->finished && whole && common->verbosity >= 0)
        cm_say(RECHUNK.name,
               "%s: the target is complete, nothing to resume; equal --digest of source and "
               "target prove it",
               options->target);
    cm_run_state state = {.untouched = options->dry_run,
                          .complete = r->written,
                          .resumable = r->resumable,
                          .overwrite = options->overwrite,
                          .part = options->part.on};
    if (cm_run_stopped(status))
        cm_run_say_stopped(&RECHUNK, options->target, &state);
    else if (status != CM_OK)
        cm_say(RECHUNK.name, "%s%s", err->text,
               r->unverified ? "; rechunk --digest SOURCE TARGET tells whether both hold the same"
               : r->resumable && r->written ? "; the same command with --resume finishes that"
                                            : "");
    return exit_status;
}

typedef struct job {
    const rechunk_values *v;
    const cm_common_options *common;
    cm_transform_options *options;
    cm_append *append;
    cm_transform_report report;
} job;

/* The store is locked before the source is looked at. */
static int open_append(job *j, cm_error *err)
{
    const cm_append_options options = {.store = j->options->target,
                                       .branch = j->options->branch,
                                       .dimension = j->v->append,
                                       .break_lock = j->options->break_lock,
                                       .recheck = j->v->recheck,
                                       .hold = j->v->append_rest != 0,
                                       .look = j->options->dry_run,
                                       .net = j->options->net,
                                       .monitor = j->options->monitor};
    char *note;
    int rc = cm_append_open(&options, &j->append, &note, err);
    if (rc != CM_OK)
        return rc;
    if (note && j->common->verbosity >= 0)
        cm_say(RECHUNK.name, "%s", note);
    free(note);
    j->options->append = j->append;
    return CM_OK;
}

static int rechunk(void *context, cm_error *err)
{
    job *j = context;
    int status = j->v->append ? open_append(j, err) : CM_OK;
    if (status == CM_OK)
        status = cm_summary_transform(&RECHUNK, j->common, j->options, &j->report, err);
    return status;
}

static int refuse_append(const rechunk_values *v, const cm_common_options *common)
{
    if (!v->append && (v->recheck || v->append_rest))
        return cm_tool_usage_error(&RECHUNK, "--%s: only with --append",
                                   v->recheck ? "recheck" : "append-rest");
    if (v->append &&
        ((v->part.part && strcmp(v->part.part, "none") != 0 && strcmp(v->part.part, "auto") != 0) ||
         cm_tool_given(&RECHUNK, common, "parts")))
        return cm_tool_usage_error(&RECHUNK, "--part: not with --append; one process adds what a "
                                             "source has grown by");
    return v->append ? cm_growth_refuse(&RECHUNK, common, "append", &v->o, false) : CM_TOOL_RUN;
}

static int run(int argc, char **argv, const rechunk_values *v, const cm_common_options *common,
               const cm_texts *paths)
{
    if (v->digest)
        return rechunk_digest(&v->net, common, paths);
    if (v->part.status)
        return cm_part_say_status(&RECHUNK, &v->net, common, paths);
    if (paths->n < 2)
        return cm_tool_usage_error(&RECHUNK, paths->n == 0 ? "no source" : "no target");
    if (paths->n > 2)
        return cm_tool_usage_error(&RECHUNK, "one source and one target, not %zu paths", paths->n);
    int refused = cm_run_refuse_overflow(&RECHUNK, common);
    if (refused == CM_TOOL_RUN)
        refused = refuse_append(v, common);
    if (refused != CM_TOOL_RUN)
        return refused;
    const cm_outputs outputs = {
        .read = &(cm_texts){paths->text, 1}, .made = paths->text[1], .overwrite = v->o.overwrite};
    refused = cm_outputs_check(&RECHUNK, v, &outputs);
    if (refused != CM_TOOL_RUN)
        return refused;
    cm_error err = {0};
    cm_transform_options options = v->o;
    options.source = paths->text[0];
    options.target = paths->text[1];
    options.nthreads = common->nthreads;
    options.memory = common->memory;
    refused = cm_part_choose(&RECHUNK, &v->part, common->verbosity < 0, &options.part);
    if (refused != CM_TOOL_RUN)
        return refused;
    char *command = cm_part_command(&RECHUNK, argc, argv);
    options.part.command = command;
    options.monitor = cm_monitor_create(&err);
    if (!options.monitor) {
        cm_say(RECHUNK.name, "%s", err.text);
        free(command);
        return CM_EXIT_FAILED;
    }
    job j = {.v = v, .common = common, .options = &options};
    cm_common_options shown = *common;
    shown.progress = cm_part_progress(&options.part, common->progress);
    int status =
        cm_remote_open(&v->net, paths, options.target, options.monitor, &options.net, &err);
    if (status == CM_OK)
        status = cm_run(&RECHUNK, &shown, options.monitor, rechunk, &j, &err);
    int exit_status = report(status, &options, &j.report, common, &err);
    cm_remote_say(&RECHUNK, options.net, common);
    cm_transform_report_release(&j.report);
    cm_append_close(j.append);
    cm_net_free(options.net);
    cm_monitor_free(options.monitor);
    free(command);
    cm_run_end(status);
    return exit_status;
}

int main(int argc, char **argv)
{
    cm_run_prepare();

    rechunk_values v = {0};
    cm_transform_options_init(&v.o, CM_DEFAULTS_KEEP);
    cm_common_options common;
    cm_texts paths;
    int status = cm_tool_parse(&RECHUNK, argc, argv, &v, &common, &paths);
    if (status == CM_TOOL_RUN)
        status = cm_run_refuse_remote(&RECHUNK, &paths);
    if (status == CM_TOOL_RUN)
        status = run(argc, argv, &v, &common, &paths);
    cm_tool_release(&RECHUNK, &v, &paths);
    return cm_tool_finish(&RECHUNK, status);
}
