/* chunkcalc: options, one call of the library, a report. */
#include <stdlib.h>

#include "../common/naming.h"
#include "../common/passport_page.h"
#include "../common/remote.h"
#include "../common/run.h"
#include "../common/say.h"
#include "base/cpu.h"
#include "chunkcalc.h"
#include "replay.h"

/* Sentences for people, on standard error. */
static void say_findings(const cm_chunkcalc_report *r, const cm_passport *passport,
                         const cm_common_options *common)
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
    for (size_t i = 0; passport != NULL && i < passport->nwarnings; i++)
        cm_say(CHUNKCALC.name, "warning: %s", passport->warning[i]);
}

/* Output files, and what goes into the page. */
typedef struct outputs {
    cm_outfile plot, page;
    cm_passport *passport;
    char *command;
} outputs;

static int write_page(const chunkcalc_values *v, const cm_chunkcalc_report *r, const char *store,
                      outputs *out, cm_error *err)
{
    const passport_facts facts = {.passport = out->passport,
                                  .tool = CHUNKCALC.name,
                                  .target = store,
                                  .command = out->command,
                                  .census = r->has_census ? &r->census : NULL};
    return v->report != NULL ? passport_write(&facts, &out->page, err) : CM_OK;
}

static int report(int status, const cm_chunkcalc_report *r, const chunkcalc_values *v,
                  const cm_common_options *common, const char *store, outputs *out, cm_error *err)
{
    cm_error print_err = {0};
    bool json = common->json || v->format == FORMAT_JSON;
    int printed = CM_OK;

    if (status == CM_OK)
        say_findings(r, out->passport, common);
    if (json)
        printed = chunkcalc_print_json(r, v->report, out->passport, status == CM_OK ? NULL : err,
                                       &print_err);
    else if (status == CM_OK)
        printed = chunkcalc_print(r, v, common, &print_err);
    if (status == CM_OK && printed == CM_OK && v->plot != NULL)
        printed = chunkcalc_plot(r, &out->plot, &print_err);
    if (status == CM_OK && printed == CM_OK)
        printed = write_page(v, r, store, out, &print_err);
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

static int refuse(const chunkcalc_values *v, const cm_common_options *common, const cm_texts *paths)
{
    cm_error err = {0};
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
    if (v->report != NULL && paths->n == 0)
        return cm_tool_usage_error(&CHUNKCALC, "--report needs a STORE");
    return CM_TOOL_RUN;
}

static int claim(const chunkcalc_values *v, const cm_texts *paths, outputs *out)
{
    const cm_outputs named = {.read = paths, .overwrite = v->overwrite};
    int status = cm_outputs_check(&CHUNKCALC, v, &named);
    if (status == CM_TOOL_RUN && v->plot != NULL)
        status = cm_outputs_claim(&CHUNKCALC, v->plot, &CM_KIND_PLOT, &named, &out->plot);
    if (status == CM_TOOL_RUN && v->report != NULL)
        status = cm_outputs_claim(&CHUNKCALC, v->report, &CM_KIND_PAGE, &named, &out->page);
    return status;
}

static int run(const chunkcalc_values *v, const cm_common_options *common, const cm_texts *paths,
               outputs *out)
{
    cm_chunkcalc_options options = v->o;
    cm_chunkcalc_report r = {0};
    cm_error err = {0};
    int status = refuse(v, common, paths);
    if (status == CM_TOOL_RUN)
        status = claim(v, paths, out);
    if (status != CM_TOOL_RUN)
        return status;
    options.store = paths->n > 0 ? paths->text[0] : NULL;
    options.recommend = v->o.recommend || wants_answer(v, common, paths);
    options.census = v->report != NULL;
    options.seconds = v->stats || v->plot != NULL;
    options.nthreads = common->nthreads;
    options.worker_memory =
        common->memory / (common->nthreads != 0 ? common->nthreads : cm_cpu_count());
    status = cm_remote_open(&v->net, paths, NULL, NULL, &options.net, &err);
    if (status == CM_OK)
        status = cm_chunkcalc(&options, &r, &err);
    if (status == CM_OK && options.access != NULL && options.recommend)
        status = chunkcalc_measure_rate(&options, &r, &err);
    /* Where --variable says which array is read for samples, the page is of all. */
    if (status == CM_OK && v->report != NULL)
        status =
            cm_passport_read(options.store, r.nreads == 0 ? options.variable : NULL, options.net,
                             common->nthreads, common->memory, NULL, &out->passport, &err);
    cm_tool_name_error(&CHUNKCALC, &err);
    cm_tool_name_texts(&CHUNKCALC, r.warning, r.nwarnings);
    cm_tool_name_texts(&CHUNKCALC, r.note, r.nnotes);
    for (size_t i = 0; i < r.census.narrays; i++)
        cm_tool_name_text(&CHUNKCALC, &r.census.array[i].undecoded);
    if (out->passport != NULL)
        cm_tool_name_texts(&CHUNKCALC, out->passport->warning, out->passport->nwarnings);
    cm_tool_name_text(&CHUNKCALC, &r.reason);
    cm_tool_name_text(&CHUNKCALC, &r.audit);
    status = report(status, &r, v, common, options.store, out, &err);
    cm_remote_say(&CHUNKCALC, options.net, common);
    cm_chunkcalc_report_release(&r);
    cm_net_free(options.net);
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
    outputs out = {
        .plot = {.fd = -1}, .page = {.fd = -1}, .command = cm_run_command_line(argc, argv)};
    if (status == CM_TOOL_RUN)
        status = run(&v, &common, &paths, &out);
    cm_outfile_release(&out.plot);
    cm_outfile_release(&out.page);
    cm_passport_free(out.passport);
    free(out.command);
    cm_tool_release(&CHUNKCALC, &v, &paths);
    return cm_tool_finish(&CHUNKCALC, status);
}
