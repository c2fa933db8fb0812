#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fileurl.h"
#include "base/outstream.h"
#include "crash.h"
#include "naming.h"
#include "print.h"
#include "progress.h"
#include "say.h"
#include "signals.h"
#include "store/net/url.h"
#include "store/open.h"

/*
 * A file that is opened must not become the standard output of a program that was started without
 * one: what is printed would go into it.  What is written to these is an error, as it was.
 */
static void hold_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return; /* without /dev/null nothing is held */
}

void cm_run_prepare(void)
{
    hold_standard_files();
    /* Unbuffered, a line goes out in pieces, between those of the other ranks of a launcher. */
    static char line[BUFSIZ];
    setvbuf(stderr, line, _IOLBF, sizeof(line));
    /*
     * Archives lie on file systems that are read-only or have no locks; a user's own choice
     * stands.
     */
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
    /*
     * Each arena of glibc keeps what its busiest moment held, and there would be one a
     * thread; --memory is a promise about the process.  Four cost no time with 2 to 16
     * threads.
     */
    mallopt(M_ARENA_MAX, 4);
    /*
     * glibc raises the size from which memory goes back to the system each time
     * such memory is freed, up to 32 MiB: chunk-sized buffers then stay in the
     * heap, a different hole for each.  60 variables verified under a limit of
     * 128 MiB took up to 244 MiB so, and 61 MiB with the threshold fixed.
     */
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    /*
     * With that the heap's end would go back to the system as soon as 128 KiB of it are free:
     * the buffers that libcurl allocates with each request, and page faults with the next.
     */
    mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
    cm_crash_catch(program_invocation_short_name);
}

char *cm_run_command_line(int argc, char **argv)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (!f)
        return NULL;
    for (int i = 0; i < argc; i++) {
        if (i > 0)
            putc(' ', f);
        cm_print_shell_word(argv[i], f);
    }
    return cm_outtext_close(&t);
}

int cm_run_refuse(const cm_tool *tool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cm_vsay(tool->name, format, args);
    va_end(args);
    return CM_EXIT_USAGE;
}

int cm_run_refuse_overflow(const cm_tool *tool, const cm_common_options *common)
{
    return cm_tool_given(tool, common, "overflow") && !cm_tool_given(tool, common, "dtype") &&
                   !cm_tool_given(tool, common, "unpack")
               ? cm_tool_usage_error(tool, "--overflow needs --dtype or --unpack")
               : CM_TOOL_RUN;
}

int cm_run_refuse_remote(const cm_tool *tool, const cm_texts *paths)
{
    for (size_t i = 0; i < paths->n; i++) {
        const char *path;
        bool is_url;
        cm_error err = {0};
        cm_url url = {0};
        bool remote = cm_store_url_is_remote(paths->text[i]);
        int rc = remote ? cm_url_parse(paths->text[i], &url, &err)
                        : cm_fileurl_strip(paths->text[i], &path, &is_url, &err);
        cm_url_release(&url);
        if (rc != CM_OK)
            return cm_run_refuse(tool, "%s", err.text);
    }
    return CM_TOOL_RUN;
}

int cm_run(const cm_tool *tool, const cm_common_options *common, cm_monitor *monitor,
           cm_run_job *job, void *context, cm_error *err)
{
    cm_progress_mode mode = common->verbosity < 0 && common->progress == CM_PROGRESS_AUTO
                                ? CM_PROGRESS_NEVER
                                : (cm_progress_mode)common->progress;
    cm_signals_catch(monitor);
    cm_progress *progress = cm_progress_start(tool->name, monitor, mode);
    int status = job(context, err);
    cm_progress_stop(progress, status == 0);
    cm_signals_release();
    cm_tool_name_error(tool, err);
    return status;
}

bool cm_run_stopped(int status)
{
    return status == CM_ECANCELED && cm_signals_caught() != 0;
}

void cm_run_say_stopped(const cm_tool *tool, const char *output, const cm_run_state *state)
{
    const char *then = "run the same command again";
    if (state->untouched)
        then = "nothing was changed";
    else if (state->complete)
        then = "the store is complete, but not verified";
    else if (state->resumable && state->part)
        then = "this part goes on when it is run again";
    else if (state->resumable && state->overwrite)
        then = "the same command with --resume in place of --overwrite goes on";
    else if (state->resumable)
        then = "the same command with --resume goes on";
    cm_say(tool->name, "%s: stopped by %s; %s", output, cm_signals_name(), then);
}

void cm_run_end(int status)
{
    if (cm_run_stopped(status))
        cm_signals_end();
}

void cm_run_say_all(const cm_tool *tool, const char *label, char *const *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cm_say(tool->name, "%s: %s", label, text[i]);
}
