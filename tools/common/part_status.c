/* --parts-status: which parts of a store are done, and how the others are run again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <chunkmill/parts.h>

#include "base/number.h"
#include "part.h"
#include "print.h"
#include "remote.h"
#include "say.h"

static const char *const STATES[] = {"missing", "stale", "running", "done"};

enum {
    UNDONE = 1 << CM_PART_MISSING | 1 << CM_PART_STALE
};

static void print_list(const cm_parts_report *r, unsigned states, const char *label)
{
    char *list = cm_parts_list(r, states, NULL);
    if (list && *list)
        cm_print(stdout, "  %-8s %s\n", label, list);
    free(list);
}

static void print_part(const cm_parts_report *r, uint64_t k)
{
    const cm_part_status *p = &r->part[k];
    cm_print(stdout, "  %-8s %" PRIu64 ": %s", STATES[p->state], k + 1, p->who ? p->who : "");
    if (p->state == CM_PART_STALE)
        cm_print(stdout, ", which has ended or is silent; last beat %" PRId64 " s ago",
                 p->silent_s);
    else if (p->total_nbytes > 0)
        cm_print(stdout, ", %.0f %% of its bytes",
                 100 * (double)p->done_nbytes / (double)p->total_nbytes);
    putchar('\n');
}

/* The numbers of what is to be run again, between spaces or commas; OF_ARRAY: its indices. */
static void print_numbers(const cm_parts_report *r, bool of_array, char between)
{
    bool first = true;
    for (uint64_t k = 0; k < r->nparts; k++) {
        if (((unsigned)UNDONE >> r->part[k].state & 1) == 0)
            continue;
        if (!first)
            putchar(between);
        first = false;
        cm_print(stdout, "%" PRIu64, of_array ? r->first + k * r->step : k + 1);
    }
}

/* Prints the same command, with the parts before its other arguments. */
static void print_command(const cm_parts_report *r, const char *part)
{
    const char *space = r->command ? strchr(r->command, ' ') : NULL;
    int n = space ? (int)(space - r->command) : 0;
    cm_print(stdout, "%.*s --part %s%s", n, r->command ? r->command : "", part, space ? space : "");
}

static void print_how(const cm_parts_report *r)
{
    char part[64];
    uint64_t undone = r->count[CM_PART_MISSING] + r->count[CM_PART_STALE];
    if (undone == 0 && r->count[CM_PART_DONE] < r->nparts)
        return;
    puts(undone == 0 ? "\nAll parts are done; any of them, run again, writes the metadata:"
                     : "\nRun them again:");
    if (r->folder) {
        fputs("  cd ", stdout);
        cm_print_shell_word(r->folder, stdout);
        putchar('\n');
    }
    bool of_array = r->launcher && strstr(r->launcher, "Slurm array");
    if (of_array && undone > 0) {
        fputs("  sbatch --array=", stdout);
        print_numbers(r, true, ',');
        puts(" JOBSCRIPT");
        return;
    }
    if (undone <= 1) {
        uint64_t k = 0;
        while (undone == 1 && ((unsigned)UNDONE >> r->part[k].state & 1) == 0)
            k++;
        snprintf(part, sizeof(part), "%" PRIu64 "/%" PRIu64, k + 1, r->nparts);
        fputs("  ", stdout);
        print_command(r, part);
        putchar('\n');
        return;
    }
    fputs("  for k in ", stdout);
    print_numbers(r, false, ' ');
    fputs("; do ", stdout);
    snprintf(part, sizeof(part), "$k/%" PRIu64, r->nparts);
    print_command(r, part);
    puts("; done");
}

static void print_text(const char *target, const cm_parts_report *r)
{
    cm_print_clean(target, stdout);
    if (r->complete) {
        cm_print(stdout, ": complete, made in %" PRIu64 " %s\n", r->nparts,
                 cm_of_count(r->nparts, "part", "parts"));
        return;
    }
    cm_print(stdout, ": %" PRIu64 " %s", r->nparts, cm_of_count(r->nparts, "part", "parts"));
    for (int s = CM_PART_DONE; s >= 0; s--)
        if (r->count[s] > 0 || s == CM_PART_DONE)
            cm_print(stdout, ", %" PRIu64 " %s", r->count[s], STATES[s]);
    puts("");
    for (uint64_t k = 0; k < r->nparts; k++)
        if (r->part[k].state == CM_PART_RUNNING || r->part[k].state == CM_PART_STALE)
            print_part(r, k);
    print_list(r, 1 << CM_PART_MISSING, "missing");
    print_list(r, 1 << CM_PART_DONE, "done");
    print_how(r);
}

static cm_json *part_json(cm_document *doc, const cm_part_status *p, uint64_t number)
{
    cm_json *o = cm_json_object();
    bool held = p->state == CM_PART_RUNNING || p->state == CM_PART_STALE;
    cm_document_u64(doc, o, "number", number);
    cm_document_text(doc, o, "state", STATES[p->state]);
    cm_document_text(doc, o, "who", p->who);
    cm_document_known_u64(doc, o, "silent_seconds", (uint64_t)p->silent_s, held);
    cm_document_known_u64(doc, o, "done_nbytes", p->done_nbytes, p->total_nbytes > 0);
    cm_document_known_u64(doc, o, "total_nbytes", p->total_nbytes, p->total_nbytes > 0);
    return o;
}

static int print_json(const cm_tool *tool, const char *target, const cm_parts_report *r,
                      const cm_error *failure, cm_error *err)
{
    char schema[64];
    cm_document doc = {CM_OK, err};
    cm_json *o = cm_json_object(), *parts = cm_json_array();
    snprintf(schema, sizeof(schema), "%s-parts/1", tool->name);
    cm_document_head(&doc, o, schema,
                     failure       ? "failed"
                     : r->complete ? "complete"
                                   : "incomplete",
                     failure);
    cm_document_text(&doc, o, "target", target);
    cm_document_u64(&doc, o, "nparts", r->nparts);
    for (int s = CM_PART_DONE; s >= 0; s--)
        cm_document_u64(&doc, o, STATES[s], r->count[s]);
    cm_document_text(&doc, o, "launcher", r->launcher);
    cm_document_text(&doc, o, "command", r->command);
    cm_document_text(&doc, o, "folder", r->folder);
    for (uint64_t k = 0; r->part && k < r->nparts; k++)
        cm_document_append(&doc, parts, part_json(&doc, &r->part[k], k + 1));
    cm_document_put(&doc, o, "parts", parts);
    return cm_document_print(&doc, o, stdout);
}

int cm_part_say_status(const cm_tool *tool, const cm_net_settings *settings,
                       const cm_common_options *common, const cm_texts *paths)
{
    cm_parts_report report = {0};
    cm_error err = {0}, print_err = {0};
    cm_net *net = NULL;
    if (paths->n != 1)
        return cm_tool_usage_error(tool, "--parts-status looks at one store; name OUTPUT alone");
    int status = cm_remote_open(settings, paths, NULL, NULL, &net, &err);
    if (status == CM_OK)
        status = cm_parts_status(paths->text[0], net, &report, &err);
    int exit_status = cm_tool_exit_status(status);
    if (common->json && print_json(tool, paths->text[0], &report, status == CM_OK ? NULL : &err,
                                   &print_err) != CM_OK) {
        cm_say(tool->name, "%s", print_err.text);
        exit_status = CM_EXIT_FAILED;
    }
    if (status != CM_OK)
        cm_say(tool->name, "%s", err.text);
    else if (!common->json)
        print_text(paths->text[0], &report);
    cm_parts_report_release(&report);
    cm_remote_say(tool, net, common);
    cm_net_free(net);
    return exit_status;
}
