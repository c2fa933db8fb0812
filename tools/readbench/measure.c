/* One call of the library, and what is told of it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../common/naming.h"
#include "../common/outputs.h"
#include "../common/remote.h"
#include "../common/run.h"
#include "../common/say.h"
#include "../common/signals.h"
#include "file.h"
#include "files.h"
#include "preset.h"
#include "ranks.h"
#include "readbench.h"

typedef struct job {
    const cm_readbench_options *options;
    bool preset;
    cm_monitor *monitor;
    cm_readbench_report report;
} job;

/* Options for settings in the sentences of R. */
static void name_options(cm_readbench_report *r)
{
    cm_tool_name_texts(&READBENCH, r->warning, r->nwarnings);
    cm_tool_name_texts(&READBENCH, r->note, r->nnotes);
    cm_tool_name_text(&READBENCH, &r->reason);
    cm_tool_name_text(&READBENCH, &r->advice.warning);
    for (size_t i = 0; i < r->nsessions; i++) {
        cm_readbench_session *s = &r->session[i];
        cm_tool_name_text(&READBENCH, &s->sentence);
        cm_tool_name_text(&READBENCH, &s->first_failure);
        for (size_t k = 0; k < s->nfindings; k++)
            cm_tool_name_text(&READBENCH, &s->finding[k].sentence);
    }
}

static int measure(void *context, cm_error *err)
{
    job *j = context;
    int rc = cm_readbench(j->options, j->monitor, &j->report, err);
    cm_error inner = {0};
    if (j->preset && readbench_preset_judge(&j->report, &inner) != CM_OK && rc == CM_OK)
        rc = cm_fail(err, CM_ENOMEM, "%s", inner.text);
    name_options(&j->report);
    return rc;
}

/* Of a step, by --step-time: the part that is on the CPU. */
static double host_share(const cm_readbench_options *o)
{
    double device = o->step_forward + o->step_backward + o->step_per_sample * (double)o->batch;
    double all = device + o->step_other;
    return o->step_other > 0 && all > 0 ? o->step_other / all : 0;
}

static void say_warnings(const cm_readbench_report *r, const cm_common_options *common)
{
    if (common->verbosity >= 0)
        cm_run_say_all(&READBENCH, "warning", r->warning, r->nwarnings);
}

/* --trace: of the first session, where the user says. */
static int write_trace(const readbench_run *run, cm_outfile *file, cm_error *err)
{
    int rc = cm_outfile_open(file, err);
    FILE *to = rc == CM_OK ? cm_outfile_stream(file, err) : NULL;
    if (to == NULL)
        return rc != CM_OK ? rc : CM_ENOMEM;
    rc = readbench_chrome_trace(&run->report->session[0], to, err);
    return rc == CM_OK ? cm_outfile_commit(file, err) : rc;
}

/* Writes the files and prints the result.  STATUS is what the library returned. */
static int tell(int status, readbench_run *run, const cm_common_options *common, cm_outfile *trace)
{
    cm_error err = {0};
    int exit_status = cm_tool_exit_status(status), rc = CM_OK;
    bool measured = run->report->nsessions > 0;

    say_warnings(run->report, common);
    if (run->out && !measured)
        run->out = NULL;
    if (run->out) {
        rc = readbench_write_files(run, &err);
        if (rc != CM_OK) {
            cm_say(READBENCH.name, "%s", err.text);
            run->out = NULL; /* there is no report to point to */
        }
    }
    if (run->trace && measured) {
        int traced = write_trace(run, trace, &err);
        if (traced != CM_OK)
            cm_say(READBENCH.name, "%s", err.text);
        rc = rc != CM_OK ? rc : traced;
    }
    int printed = CM_OK;
    if (common->json)
        printed = readbench_print_json(run, &err);
    else if (measured && common->verbosity >= 0)
        printed = readbench_print(run, common, stdout, &err);
    if (printed != CM_OK)
        cm_say(READBENCH.name, "%s", err.text);
    return exit_status == CM_EXIT_DONE && (rc != CM_OK || printed != CM_OK) ? CM_EXIT_FAILED
                                                                            : exit_status;
}

static void say_end(int status, const readbench_run *run, const cm_error *err)
{
    if (!cm_run_stopped(status)) {
        if (status != CM_OK)
            cm_say(READBENCH.name, "%s", err->text);
        return;
    }
    const char *name = cm_signals_name();
    if (run->report->nsessions == 0)
        cm_say(READBENCH.name, "stopped by %s before anything was measured", name);
    else
        cm_say(READBENCH.name, "stopped by %s; the measurements so far are printed%s%s", name,
               run->out ? " and in " : "", run->out ? run->out : "");
}

static void stamp(char *buf, size_t size)
{
    time_t now = time(NULL);
    struct tm tm;
    if (!gmtime_r(&now, &tm) || strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        buf[0] = '\0';
}

static int run_job(job *j, const readbench_values *v, const cm_common_options *common,
                   const readbench_run *typed, cm_outfile *trace, readbench_ranks *ranks)
{
    cm_error err = {0};
    char *out = NULL, started[32];
    bool made = false;

    stamp(started, sizeof(started));
    /* Made first: hours of measuring end in no folder that cannot be made. */
    if (!v->no_out && readbench_out_create(v->out, v->overwrite, &out, &made, &err) != CM_OK) {
        cm_say(READBENCH.name, "%s", err.text);
        return CM_EXIT_FAILED;
    }
    int status = cm_run(&READBENCH, common, j->monitor, measure, j, &err);
    /* A session that failed before its first batch has nothing to tell but its error. */
    cm_readbench_report told = j->report;
    while (status != CM_OK && told.nsessions > 0 && told.session[told.nsessions - 1].nrecords == 0)
        told.nsessions--;
    readbench_run run = {.report = &told,
                         .failure = status == CM_OK ? NULL : &err,
                         .command = typed->command,
                         .typed = typed->typed,
                         .nthreads = j->options->nthreads,
                         .started = started,
                         .out = out,
                         .replaces = out && !made,
                         .trace = v->trace,
                         .net = v->o.net,
                         .host_share = host_share(j->options),
                         .preset = j->preset};
    int exit_status = tell(status, &run, common, trace);
    say_end(status, &run, &err);
    cm_error apart = {0};
    int met = readbench_ranks_end(ranks, status == CM_OK ? NULL : &err, common->verbosity < 0,
                                  common->json, &apart);
    if (met != CM_OK) {
        cm_say(READBENCH.name, "%s", apart.text);
        exit_status = exit_status == CM_EXIT_DONE ? CM_EXIT_FAILED : exit_status;
    }
    if (made)
        readbench_out_remove(out);
    free(out);
    cm_readbench_report_release(&j->report);
    if (cm_run_stopped(status)) { /* a signal ends the process without flushing */
        exit_status = cm_tool_finish(&READBENCH, exit_status);
        cm_remote_say(&READBENCH, v->o.net, common);
    }
    cm_run_end(status);
    return exit_status;
}

int readbench_measure(readbench_values *v, const cm_common_options *common, const cm_texts *paths,
                      const char *command, const readbench_typed *words)
{
    cm_error err = {0};
    readbench_sweep sweep = {0};
    readbench_ranks ranks = {0};
    char *sample = NULL; /* of the preset */
    cm_monitor *monitor = cm_monitor_create(&err);
    int rc = monitor == NULL ? CM_ENOMEM : readbench_complete(v, common, paths, &err);
    if (rc == CM_OK)
        rc = cm_remote_open(&v->net, paths, NULL, monitor, &v->o.net, &err);
    if (rc == CM_OK)
        rc = readbench_ranks_begin(&ranks, v, monitor, &err);
    if (rc == CM_OK)
        rc = v->preset != NULL ? readbench_preset_make(v, common, paths, &sweep, &sample, &err)
                               : readbench_sweep_make(v, common, paths, &sweep, &err);
    v->o.point = sweep.point;
    v->o.npoints = sweep.n;
    job j = {.options = &v->o, .preset = v->preset != NULL, .monitor = monitor};
    cm_outfile trace = {.fd = -1};
    const readbench_run typed = {.command = command, .typed = words};
    const cm_outputs outputs = {.read = paths, .overwrite = v->overwrite};
    int status;
    if (rc == CM_EINVAL)
        status = cm_tool_usage_error(&READBENCH, "%s", err.text);
    else if (rc == CM_OK) {
        status = cm_outputs_check(&READBENCH, v, &outputs);
        if (status == CM_TOOL_RUN && v->trace != NULL)
            status = cm_outputs_claim(&READBENCH, v->trace, &CM_KIND_TRACE, &outputs, &trace);
        if (status == CM_TOOL_RUN)
            status = run_job(&j, v, common, &typed, &trace, &ranks);
    } else {
        cm_say(READBENCH.name, "%s", err.text);
        status = CM_EXIT_FAILED;
    }
    cm_remote_say(&READBENCH, v->o.net, common);
    cm_net_free(v->o.net);
    cm_monitor_free(monitor);
    cm_outfile_release(&trace);
    readbench_sweep_release(&sweep);
    readbench_ranks_release(&ranks);
    free(sample);
    return status;
}
