/*
 * Shared by programs that run one long job of the library: settings of the process, the job under
 * progress and signals, and the messages around it.
 */
#ifndef CM_TOOLS_RUN_H
#define CM_TOOLS_RUN_H

#include <chunkmill/monitor.h>

#include "options.h"

/* Settings of the process, to be made before anything else. */
void cm_run_prepare(void);

/* ARGV as one could type it again; NULL: no memory. */
char *cm_run_command_line(int argc, char **argv);

/* One sentence about what the command line asks for and may not have.  Returns CM_EXIT_USAGE. */
int cm_run_refuse(const cm_tool *tool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Refuses URLs of other hosts and schemes.  Returns CM_TOOL_RUN when there is none. */
int cm_run_refuse_remote(const cm_tool *tool, const cm_texts *paths);

/* Refuses --overflow where no number is converted.  Returns CM_TOOL_RUN where it may decide. */
int cm_run_refuse_overflow(const cm_tool *tool, const cm_common_options *common);

/*
 * Calls JOB with CONTEXT while MONITOR is shown as progress and cancelled by SIGINT,
 * SIGTERM and SIGHUP.  Returns what it returned.
 */
typedef int cm_run_job(void *context, cm_error *err);
int cm_run(const cm_tool *tool, const cm_common_options *common, cm_monitor *monitor,
           cm_run_job *job, void *context, cm_error *err);

/* Whether STATUS, which a job returned, comes from a signal. */
bool cm_run_stopped(int status);

/* How a job that a signal stopped left its output. */
typedef struct cm_run_state {
    bool untouched; /* it was not to be written */
    bool complete;  /* what is missing is its verification */
    bool resumable;
    bool overwrite; /* --overwrite was given */
    bool part;      /* one of several: it goes on by itself */
} cm_run_state;

/* "OUTPUT: stopped by SIGINT; ..." on standard error: what is there, and how to go on. */
void cm_run_say_stopped(const cm_tool *tool, const char *output, const cm_run_state *state);

/* The process's last act: ends it by the signal that stopped STATUS, if one did. */
void cm_run_end(int status);

/* One line "TOOL: LABEL: TEXT" on standard error for each of N texts. */
void cm_run_say_all(const cm_tool *tool, const char *label, char *const *text, size_t n);

#endif
