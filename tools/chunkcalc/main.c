/* chunkcalc: options, one call of the library, a report. */
#include <stdlib.h>

#include "../common/naming.h"
#include "../common/remote.h"
#include "../common/run.h"
#include "../common/say.h"
#include "chunkcalc.h"
#include "replay.h"

/* Sentences for people, on standard error. */
static void say_findings(const cm_chunkcalc_report *r, const cm_common_options *common)
{
    if (common->verbosity < 0)
        return;
    if (r->assumed_itemsize)
        cm_say(CHUNKCALC.name,
               "one byte an element is assumed; --dtype or --itemsize changes that");
    for (size_t i = 0; i < r->nnotes; i++)
        cm_say(CHUNKCALC.name, "%s", r->note[i]);
    for (size_t i = 0; i < r->nwarnings; i++)
        cm_say(CHUNKCALC.name, "warning: %s", r->warning[i]);
}

static int report(int status, const cm_chunkcalc_report *r, const chunkcalc_values *v,
                  const cm_common_options *common, cm_outfile *plot, cm_error *err)
{
    cm_error print_err = {0};
    bool json = common->json || v->format == FORMAT_JSON;
    int printed = CM_OK;

    if (status == CM_OK)
        say_findings(r, common);
    if (json)
        printed = chunkcalc_print_json(r, status == CM_OK ? NULL : err, &print_err);
    else if (status == CM_OK)
        printed = chunkcalc_print(r, v, common, &print_err);
    if (status == CM_OK && printed == CM_OK && v->plot != NULL)
        printed = chunkcalc_plot(r, plot, &print_err);
    if (status != CM_OK)
        cm_say(CHUNKCALC.name, "%s", err->text);
    if (printed != CM_OK)
        cm_say(CHUNKCALC.name, "%s", print_err.text);
    return cm_tool_exit_status(status != CM_OK ? status : printed);
}

/*
 * A store and how it is read ask which chunks to take, unless an option asks for numbers: of
 * candidates, in more columns, or for a program.
 */
static bool wants_answer(const chunkcalc_values *v, const cm_common_options *common,
                         const cm_texts *paths)
{
    const bool reads = v->o.sample != NULL || v->o.read.n > 0 || v->o.access != NULL;
    if (v->o.against.n > 0)
        return true;
    return paths->n > 0 && reads && v->o.chunks.n == 0 && !v->stats && !common->json &&
           v->format == FORMAT_TABLE;
}

static int run(const chunkcalc_values *v, const cm_common_options *common, const cm_texts *paths)
{
    cm_chunkcalc_options options = v->o;
    cm_chunkcalc_report r;
    cm_error err = {0};
    cm_outfile plot = {.fd = -1};
    const cm_outputs outputs = {.read = paths, .overwrite = v->overwrite};

    if (paths->n > 1)
        return cm_tool_usage_error(&CHUNKCALC, "one store at a time, not %zu", paths->n);
    if (paths->n == 0 && v->o.sample == NULL && v->o.read.n == 0 && v->o.access == NULL)
        return cm_tool_usage_error(&CHUNKCALC, "no --sample and no store");
    if (common->json && v->format != FORMAT_TABLE && v->format != FORMAT_JSON)
        return cm_tool_usage_error(&CHUNKCALC, "--json and --format exclude each other");
    if (v->plot != NULL && chunkcalc_plot_check(v->plot, &err) != CM_OK)
        return cm_tool_usage_error(&CHUNKCALC, "%s", err.text);
    if (v->plot != NULL && v->o.sample == NULL && v->o.read.n == 0 && v->o.access == NULL)
        return cm_tool_usage_error(&CHUNKCALC, "--plot needs --sample, --read or --access");
    int status = cm_outputs_check(&CHUNKCALC, v, &outputs);
    if (status == CM_TOOL_RUN && v->plot != NULL)
        status = cm_outputs_claim(&CHUNKCALC, v->plot, &CM_KIND_PLOT, &outputs, &plot);
    if (status != CM_TOOL_RUN)
        return status;
    options.store = paths->n > 0 ? paths->text[0] : NULL;
    options.recommend = v->o.recommend || wants_answer(v, common, paths);
    options.seconds = v->stats || v->plot != NULL;
    options.nthreads = common->nthreads;
    options.worker_memory =
        common->nthreads != 0 ? common->memory / common->nthreads : common->memory;
    r = (cm_chunkcalc_report){0};
    status = cm_remote_open(&v->net, paths, NULL, NULL, &options.net, &err);
    if (status == CM_OK)
        status = cm_chunkcalc(&options, &r, &err);
    if (status == CM_OK && options.access != NULL && options.recommend)
        status = chunkcalc_measure_rate(&options, &r, &err);
    cm_tool_name_error(&CHUNKCALC, &err);
    cm_tool_name_texts(&CHUNKCALC, r.warning, r.nwarnings);
    cm_tool_name_texts(&CHUNKCALC, r.note, r.nnotes);
    cm_tool_name_text(&CHUNKCALC, &r.reason);
    cm_tool_name_text(&CHUNKCALC, &r.audit);
    status = report(status, &r, v, common, &plot, &err);
    cm_remote_say(&CHUNKCALC, options.net, common);
    cm_chunkcalc_report_release(&r);
    cm_net_free(options.net);
    cm_outfile_release(&plot);
    return status;
}

int main(int argc, char **argv)
{
    cm_run_prepare();

    chunkcalc_values v = {0};
    cm_chunkcalc_options_init(&v.o);
    cm_common_options common;
    cm_texts paths;
    int status = cm_tool_parse(&CHUNKCALC, argc, argv, &v, &common, &paths);
    if (status == CM_TOOL_RUN)
        status = cm_run_refuse_remote(&CHUNKCALC, &paths);
    if (status == CM_TOOL_RUN)
        status = run(&v, &common, &paths);
    cm_tool_release(&CHUNKCALC, &v, &paths);
    return cm_tool_finish(&CHUNKCALC, status);
}
