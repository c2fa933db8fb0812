/* nc2zarr: options, one call of the library, a report. */
#include "nc2zarr.h"

#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../common/print.h"
#include "../common/progress.h"
#include "../common/say.h"
#include "../common/signals.h"

/*
 * Each arena of glibc keeps what its busiest moment held, and there would be one a
 * thread; --memory is a promise about the process.  Four cost no time with 2 to 16
 * threads.  The thresholds stay as they are: with large ones, so that what codec
 * libraries allocate at every call is kept, the sample conversion took the same
 * time and 62 instead of 50 MiB.
 */
static void tune_allocator(void)
{
    mallopt(M_ARENA_MAX, 4);
}

static bool ends_in(const char *name, size_t nbytes, const char *ending)
{
    size_t n = strlen(ending);
    return nbytes > n && strncasecmp(name + nbytes - n, ending, n) == 0;
}

/* INPUT.zarr in the working folder from dir/INPUT.nc and from dir/INPUT.nc::group; NULL: no memory. */
static char *default_output(const char *input)
{
    static const char *const ENDINGS[] = {".nc", ".nc3", ".nc4",  ".cdf", ".netcdf",
                                          ".h5", ".he5", ".hdf5", ".hdf"};
    const char *node = access(input, F_OK) == 0 ? NULL : strstr(input, "::");
    const char *end = node ? node : input + strlen(input);
    const char *name = end;
    while (name > input && name[-1] != '/')
        name--;
    size_t n = (size_t)(end - name);
    for (size_t i = 0; i < sizeof(ENDINGS) / sizeof(ENDINGS[0]); i++) {
        if (ends_in(name, n, ENDINGS[i])) {
            n -= strlen(ENDINGS[i]);
            break;
        }
    }
    char *output = NULL;
    if (n > INT_MAX || asprintf(&output, "%.*s.zarr", (int)n, name) < 0)
        return NULL;
    return output;
}

/* ARGV as one could type it again; NULL: no memory. */
static char *command_line(int argc, char **argv)
{
    char *text = NULL;
    size_t nbytes = 0;
    FILE *f = open_memstream(&text, &nbytes);
    if (!f)
        return NULL;
    for (int i = 0; i < argc; i++) {
        if (i > 0)
            putc(' ', f);
        cm_print_shell_word(argv[i], f);
    }
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static cm_texts texts(const cm_list *list)
{
    return (cm_texts){list->text, list->n};
}

static void fill_options(cm_convert_options *o, const nc2zarr_values *v,
                         const cm_common_options *common)
{
    o->zarr_format = v->zarr_format == 0 ? 3 : 2;
    o->chunks = texts(&v->chunks);
    o->shards = texts(&v->shards);
    o->codec = texts(&v->codec);
    o->sample = v->sample;
    o->variable = texts(&v->variable);
    o->exclude = texts(&v->exclude);
    o->rename = texts(&v->rename);
    o->subset = texts(&v->subset);
    o->dtype = texts(&v->dtype);
    o->unpack = texts(&v->unpack);
    o->keepbits = texts(&v->keepbits);
    o->fill_value = texts(&v->fill_value);
    o->char_mode = (cm_char_mode)v->char_mode;
    o->skip_unsupported = v->skip_unsupported;
    o->overwrite = v->overwrite;
    o->resume = v->resume;
    o->dry_run = v->dry_run;
    o->durable = v->durable;
    o->no_consolidate = v->no_consolidate;
    o->verify = (cm_verify)v->verify;
    o->check = v->check;
    o->certificate = v->certificate;
    o->trace = v->trace;
    o->nthreads = common->nthreads;
    o->memory = common->memory;
}

/* About a store that is there.  On standard error, so that results stay alone on standard output. */
static void say_findings(const cm_convert_report *r, const cm_common_options *common)
{
    for (size_t i = 0; i < r->nwarnings && common->verbosity >= 0; i++)
        cm_say(NC2ZARR.name, "warning: %s", r->warning[i]);
    for (size_t i = 0; i < r->ndifferences; i++)
        cm_say(NC2ZARR.name, "difference: %s", r->difference[i]);
}

/* Why it ended, in what state it left the output, and how to go on. */
static void say_stopped(const cm_convert_options *options, const cm_convert_report *r)
{
    const char *name = cm_signals_caught() == SIGINT ? "SIGINT" : "SIGTERM";
    const char *state = options->check || options->dry_run ? "nothing was changed"
                        : r->written   ? "the store is complete, but not verified"
                        : r->resumable ? "the same command with --resume goes on"
                                       : "run the same command again";
    if (r->resumable && options->overwrite)
        state = "the same command with --resume in place of --overwrite goes on";
    cm_say(NC2ZARR.name, "%s: stopped by %s; %s", options->output, name, state);
}

/* STATUS is what cm_convert returned, with its sentence in ERR.  Returns the exit status. */
static int report(int status, const cm_convert_options *options, const cm_convert_report *r,
                  const cm_common_options *common, const cm_error *err)
{
    bool whole = status == CM_OK || status == CM_EDIFFER;
    int exit_status = cm_tool_exit_status(status);
    if (whole)
        say_findings(r, common);
    if (common->json) {
        cm_error print_err = {0};
        if (nc2zarr_print_json(options, r, status == CM_OK ? NULL : err, &print_err) != CM_OK) {
            cm_say(NC2ZARR.name, "%s", print_err.text);
            exit_status = CM_EXIT_FAILED;
        }
    } else if (whole && common->verbosity >= 0) {
        nc2zarr_print_summary(options, r, common);
    }
    if (status == CM_ECANCELED && cm_signals_caught())
        say_stopped(options, r);
    else if (status != CM_OK)
        cm_say(NC2ZARR.name, "%s", err->text);
    return exit_status;
}

static int run(const cm_convert_options *options, const cm_common_options *common)
{
    cm_error err = {0};
    cm_convert_report r;
    memset(&r, 0, sizeof(r));
    cm_progress_mode mode = common->verbosity < 0 && common->progress == CM_PROGRESS_AUTO
                                ? CM_PROGRESS_NEVER
                                : (cm_progress_mode)common->progress;
    cm_signals_catch(options->monitor);
    cm_progress *progress = cm_progress_start(NC2ZARR.name, options->monitor, mode);
    int status = cm_convert(options, &r, &err);
    cm_progress_stop(progress);
    cm_signals_release();
    int exit_status = report(status, options, &r, common, &err);
    cm_convert_report_release(&r);
    if (status == CM_ECANCELED && cm_signals_caught())
        cm_signals_end();
    return exit_status;
}

static int prepare_and_run(int argc, char **argv, const nc2zarr_values *v,
                           const cm_common_options *common, const cm_list *paths)
{
    int status = CM_EXIT_FAILED;
    cm_error err = {0};
    cm_convert_options options;
    cm_convert_options_init(&options);
    fill_options(&options, v, common);
    char *output = paths->n == 2 ? strdup(paths->text[1]) : default_output(paths->text[0]);
    char *command = command_line(argc, argv);
    cm_monitor *monitor = cm_monitor_create(&err);
    if (!output || !command)
        cm_fail(&err, CM_ENOMEM, "no memory to begin");
    if (output && command && monitor) {
        options.input = paths->text[0];
        options.output = output;
        options.command = command;
        options.monitor = monitor;
        status = run(&options, common);
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
    /* Archives lie on file systems that are read-only or have no locks; a user's own choice stands. */
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
    tune_allocator();

    nc2zarr_values v = {.char_mode = CM_CHAR_KEEP, .verify = CM_VERIFY_SAMPLE};
    cm_common_options common;
    cm_list paths;
    int status = cm_tool_parse(&NC2ZARR, argc, argv, &v, &common, &paths);
    if (status == CM_TOOL_RUN)
        status = nc2zarr_refuse(&v, &paths);
    if (status == CM_TOOL_RUN)
        status = prepare_and_run(argc, argv, &v, &common, &paths);
    cm_tool_release(&NC2ZARR, &v, &paths);
    return cm_tool_finish(&NC2ZARR, status);
}
