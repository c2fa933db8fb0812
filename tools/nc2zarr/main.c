/* nc2zarr: options, one call of the library, a report. */
#include "nc2zarr.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../common/outputs.h"
#include "../common/part.h"
#include "../common/remote.h"
#include "../common/repository.h"
#include "../common/run.h"
#include "../common/say.h"
#include "../common/summary.h"
#include "archive/survey/inputs.h"
#include "base/fileurl.h"
#include "base/path.h"
#include "store/open.h"

static bool ends_in(const char *name, size_t nbytes, const char *ending)
{
    size_t n = strlen(ending);
    return nbytes > n && strncasecmp(name + nbytes - n, ending, n) == 0;
}

/*
 * INPUT.zarr in the working folder from dir/INPUT.nc and from dir/INPUT.nc::group; NULL: no
 * memory.
 */
static char *default_output(const char *input)
{
    bool is_url;
    bool remote = cm_store_url_is_remote(input);
    is_url = remote && strncasecmp(input, "http", 4) == 0;
    if (!remote && cm_fileurl_strip(input, &input, &is_url, NULL) != CM_OK)
        return NULL;
    const char *node = !remote && access(input, F_OK) == 0 ? NULL : strstr(input, "::");
    const char *end = node ? node : input + strlen(input);
    const char *name = end;
    while (name > input && name[-1] != '/')
        name--;
    size_t n = (size_t)(end - name);
    n -= cm_path_netcdf_ending(name, n);
    char *output = NULL;
    if (n > INT_MAX || asprintf(&output, "%.*s.zarr", (int)n, name) < 0)
        return NULL;
    /* A name that cannot be decoded is an error of the input, which is reported there. */
    if (is_url)
        (void)cm_fileurl_decode(output, NULL);
    return output;
}

typedef struct conversion {
    const cm_transform_options *options;
    const cm_common_options *common;
    cm_transform_report report;
} conversion;

static int convert(void *context, cm_error *err)
{
    conversion *c = context;
    return cm_summary_transform(&NC2ZARR, c->common, c->options, &c->report, err);
}

static int run(const cm_net_settings *net, const cm_texts *paths, cm_transform_options *options,
               const cm_common_options *common, const nc2zarr_typed *typed)
{
    cm_error err = {0};
    conversion c = {.options = options, .common = common};
    cm_common_options shown = *common;
    shown.progress = cm_part_progress(&options->part, common->progress);
    int status = cm_remote_open(net, paths, options->target, options->monitor, &options->net, &err);
    if (status == CM_OK)
        status = cm_run(&NC2ZARR, &shown, options->monitor, convert, &c, &err);
    int exit_status = nc2zarr_report(status, options, &c.report, common, typed, NULL, &err);
    cm_remote_say(&NC2ZARR, options->net, common);
    cm_transform_report_release(&c.report);
    cm_net_free(options->net);
    cm_run_end(status);
    return exit_status;
}

/* PATH is not there, and no pattern, list or file of NetCDF that was mistyped. */
static bool is_free_name(const char *path)
{
    return !cm_store_url_is_remote(path) && access(path, F_OK) != 0 && !cm_input_is_many(path) &&
           cm_path_netcdf_ending(path, strlen(path)) == 0;
}

static int run_archive(int argc, char **argv, const nc2zarr_values *v,
                       const cm_common_options *common, const cm_texts *paths)
{
    cm_texts inputs = *paths;
    char *output = NULL, *command = cm_run_command_line(argc, argv);
    int status = CM_EXIT_FAILED;
    nc2zarr_typed typed = {.argc = argc, .argv = argv};
    if (v->survey) {
        /* A store among the paths is what would be made; so is a folder of stores. */
        const char *last = inputs.text[inputs.n - 1];
        const bool folder = v->a.store_per != NULL && is_free_name(last);
        if (inputs.n > 1 && (folder || ends_in(last, strlen(last), ".zarr"))) {
            typed.output = last;
            inputs.n--;
        }
    } else if (paths->n > 1) {
        output = strdup(paths->text[paths->n - 1]);
        inputs.n--;
    } else {
        output = default_output(paths->text[0]);
    }
    if (!v->survey)
        typed.output = output;
    if (command && (output || v->survey))
        status = nc2zarr_archive(v, common, &inputs, output, command, &typed);
    else
        cm_say(NC2ZARR.name, "no memory to begin");
    free(command);
    free(output);
    return status;
}

static int prepare_and_run(int argc, char **argv, const nc2zarr_values *v,
                           const cm_common_options *common, const cm_texts *paths)
{
    int status = CM_EXIT_FAILED;
    cm_error err = {0};
    cm_transform_options options = v->o;
    char *output = paths->n == 2 ? strdup(paths->text[1]) : default_output(paths->text[0]);
    char *command = cm_run_command_line(argc, argv);
    cm_monitor *monitor = cm_monitor_create(&err);
    if (!output || !command)
        cm_fail(&err, CM_ENOMEM, "no memory to begin");
    if (output && command && monitor) {
        options.source = paths->text[0];
        options.target = output;
        options.command = command;
        options.nthreads = common->nthreads;
        options.memory = common->memory;
        options.monitor = monitor;
        const cm_outputs outputs = {.read = &(cm_texts){paths->text, options.check ? paths->n : 1},
                                    .made = options.check ? NULL : output,
                                    .references =
                                        options.refer != NULL && !cm_is_repository(output),
                                    .overwrite = options.overwrite};
        const nc2zarr_typed typed = {argc, argv, output, {paths->text, 1}, false};
        status = cm_outputs_check(&NC2ZARR, v, &outputs);
        if (status == CM_TOOL_RUN && !v->o.check)
            status = cm_part_choose(&NC2ZARR, &v->part, common->verbosity < 0, &options.part);
        if (status == CM_TOOL_RUN)
            status = run(&v->net, paths, &options, common, &typed);
    } else {
        cm_say(NC2ZARR.name, "%s", err.text);
    }
    cm_monitor_free(monitor);
    free(command);
    free(output);
    return status;
}

int main(int argc, char **argv)
{
    cm_run_prepare();

    nc2zarr_values v = {0};
    cm_transform_options_init(&v.o, CM_DEFAULTS_CHOOSE);
    cm_common_options common;
    cm_texts paths;
    int status = cm_tool_parse(&NC2ZARR, argc, argv, &v, &common, &paths);
    char *command = cm_part_command(&NC2ZARR, argc, argv);
    v.o.part.command = command;
    if (status == CM_TOOL_RUN && v.part.status)
        status = cm_part_say_status(&NC2ZARR, &v.net, &common, &paths);
    if (status == CM_TOOL_RUN && v.consolidate)
        status = nc2zarr_consolidate(&v, &common, &paths);
    if (status == CM_TOOL_RUN)
        status = nc2zarr_refuse(&v, &common, &paths);
    if (status == CM_TOOL_RUN)
        status = nc2zarr_is_archive(&v, &common, &paths)
                     ? run_archive(argc, argv, &v, &common, &paths)
                     : prepare_and_run(argc, argv, &v, &common, &paths);
    free(command);
    cm_tool_release(&NC2ZARR, &v, &paths);
    return cm_tool_finish(&NC2ZARR, status);
}
