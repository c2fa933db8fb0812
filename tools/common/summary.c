#include "summary.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "naming.h"
#include "passport_run.h"
#include "print.h"
#include "run.h"
#include "say.h"

static void name_options(const cm_tool *tool, cm_transform_report *r)
{
    cm_tool_name_texts(tool, r->warning, r->nwarnings);
    cm_tool_name_texts(tool, r->note, r->nnotes);
    cm_tool_name_texts(tool, r->skipped, r->nskipped);
    cm_tool_name_texts(tool, r->difference, r->ndifferences);
    for (size_t i = 0; i < r->nvariables; i++) {
        cm_tool_name_text(tool, &r->variable[i].access);
        cm_tool_name_text(tool, &r->variable[i].plan_reason);
        cm_tool_name_text(tool, &r->variable[i].readers);
    }
}

static void warn(void *context, char *const *warning, size_t n)
{
    const cm_tool *tool = context;
    for (size_t i = 0; i < n; i++) {
        char *text = cm_tool_name_options(tool, warning[i]);
        cm_say(tool->name, "warning: %s", text != NULL ? text : warning[i]);
        free(text);
    }
}

int cm_summary_transform(const cm_tool *tool, const cm_common_options *common,
                         const cm_transform_options *options, cm_transform_report *r, cm_error *err)
{
    cm_transform_options loud = *options;
    loud.warn = warn;
    loud.warn_context = (void *)(uintptr_t)tool;
    cm_outfile page;
    *r = (cm_transform_report){0};
    int rc = passport_claim(options, &page, err);
    if (rc == CM_OK)
        rc = cm_transform(common->verbosity >= 0 ? &loud : options, r, err);
    name_options(tool, r);
    rc = passport_finish(tool, options, r, &page, rc, err);
    cm_outfile_release(&page);
    return rc;
}

void cm_summary_say(const cm_tool *tool, const cm_common_options *common,
                    const cm_transform_report *r)
{
    if (common->verbosity >= 0 && r->nwarnings > r->nwarned)
        cm_run_say_all(tool, "warning", r->warning + r->nwarned, r->nwarnings - r->nwarned);
    else if (r->blocks) /* quiet as the run may be, the next one would fail */
        cm_run_say_all(tool, "warning", r->warning + r->nwarnings - 1, 1);
    cm_run_say_all(tool, "difference", r->difference, r->ndifferences);
}

void cm_print_remark(const char *label, const char *text)
{
    cm_print(stdout, "  %s: ", label);
    cm_print_clean(text, stdout);
    putchar('\n');
}

void cm_print_verdict(const char *verb, const char *with, const cm_transform_report *r)
{
    char count[32], time[32];
    const uint64_t n = r->ndifferences;
    if (r->nverified == 0 && n == 0) {
        cm_print(stdout, "  %s %s: %s\n",
                 r->not_compared ? "Not verified against" : "Nothing to compare with", with,
                 r->not_compared ? "no variable could be compared" : "there are no elements");
        return;
    }
    cm_print(stdout, "  %s against %s: %s elements", verb, with,
             cm_format_count(r->nverified, count, sizeof(count)));
    if (r->verify_seconds > 0)
        cm_print(stdout, " in %s", cm_format_time(r->verify_seconds, time, sizeof(time)));
    if (n > 0)
        cm_print(stdout, ", %s %s, listed above", cm_format_count(n, count, sizeof(count)),
                 cm_of_count(n, "difference", "differences"));
    else
        fputs(", no difference", stdout);
    puts(r->not_compared ? "; not all variables could be compared" : "");
}

void cm_print_planned_memory(uint64_t planned, uint64_t limit, unsigned nthreads)
{
    char most[32], of[32];
    cm_print(stdout, "  Memory: at most %s of %s, %u thread%s\n",
             cm_format_size(planned, most, sizeof(most)), cm_format_size(limit, of, sizeof(of)),
             nthreads, cm_of_count(nthreads, "", "s"));
}

void cm_print_statistics(const char *folder, size_t nvariables, double seconds, double share)
{
    char text[32];
    if (folder == NULL)
        return;
    cm_print(stdout, "  Statistics of %zu variable%s in ", nvariables,
             cm_of_count(nvariables, "", "s"));
    cm_print_clean(folder, stdout);
    cm_print(stdout, " (%s, %.1f %% of the work)\n", cm_format_time(seconds, text, sizeof(text)),
             100 * share);
}

void cm_print_inodes(const cm_transform_report *r)
{
    const cm_transform_inodes *n = &r->inodes;
    char folders[32], files[32];
    const bool fewer = n->nin_shards < n->nfiles / 2;
    if (!n->many || (n->nfolders == 0 && !fewer))
        return;
    fputs("  ", stdout);
    if (n->nfolders > 0)
        cm_print(stdout, "%s folder%s beside these files%s",
                 cm_format_count(n->nfolders, folders, sizeof folders),
                 cm_of_count(n->nfolders, "", "s"), fewer ? "; " : "");
    if (fewer)
        cm_print(stdout, "%s--shards auto makes about %s file%s",
                 r->zarr_format_after == 2 ? "--zarr-format 3 " : "",
                 cm_format_count(n->nin_shards, files, sizeof files),
                 cm_of_count(n->nin_shards, "", "s"));
    putchar('\n');
}

void cm_print_cost(double seconds, uint64_t decoded_nbytes, unsigned nthreads, uint64_t peak)
{
    char time[32], rate[32], most[32];
    double per_s = seconds > 0 ? (double)decoded_nbytes / seconds : 0;
    cm_print(stdout, "  %s, %s decoded, %u thread%s, at most %s of memory\n",
             cm_format_time(seconds, time, sizeof(time)), cm_format_rate(per_s, rate, sizeof(rate)),
             nthreads, cm_of_count(nthreads, "", "s"), cm_format_size(peak, most, sizeof(most)));
}

void cm_print_stages(const char *tool, const cm_stage_time *stage, size_t n)
{
    cm_table t = {.ncolumns = 3, .right = {false, true, true}};
    if (n == 0)
        return;
    puts("\n  Where the time went, all threads together:");
    for (size_t i = 0; i < n; i++) {
        char count[32];
        cm_table_cell(&t, "%s", stage[i].name);
        cm_table_cell(&t, "%.3f s", stage[i].seconds);
        cm_table_cell(&t, "%s calls", cm_format_count(stage[i].calls, count, sizeof(count)));
    }
    if (!cm_table_print(&t, 4, stdout))
        cm_say(tool, "no memory for the table of stages");
    cm_table_release(&t);
}
