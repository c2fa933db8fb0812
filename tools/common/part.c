#include "part.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/outstream.h"
#include "launcher.h"
#include "print.h"
#include "say.h"

int cm_part_progress(const cm_part_choice *part, int progress)
{
    bool other = part->on && !part->by_index && part->launcher && part->number != 0;
    return other && progress == CM_PROGRESS_AUTO ? CM_PROGRESS_NEVER : progress;
}

char *cm_part_command(const cm_tool *tool, int argc, char **argv)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (!f)
        return NULL;
    fputs(tool->name, f);
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (strcmp(a, "--part") == 0 || strcmp(a, "--parts") == 0) {
            i++; /* and its value */
            continue;
        }
        if (strncmp(a, "--part=", 7) == 0 || strncmp(a, "--parts=", 8) == 0)
            continue;
        putc(' ', f);
        cm_print_shell_word(a, f);
    }
    return cm_outtext_close(&t);
}

/* "3/16": the third of sixteen. */
static bool parse(const char *text, cm_part_choice *out)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    unsigned long long k = strtoull(text, &end, 10);
    if (*end != '/' || end[1] < '0' || end[1] > '9')
        return false;
    unsigned long long n = strtoull(end + 1, &end, 10);
    if (*end != '\0' || k < 1 || k > n || n > UINT32_MAX)
        return false;
    out->on = true;
    out->nparts = n;
    out->number = k - 1;
    return true;
}

static int choose_by_hand(const cm_tool *tool, const char *part, unsigned nparts, bool quiet,
                          cm_part_choice *out)
{
    if (!parse(part, out))
        return cm_tool_usage_error(
            tool, "--part %s: must be K/N with K from 1 to N, as in 3/16, or auto or none", part);
    if (nparts != 0 && nparts != out->nparts)
        return cm_tool_usage_error(tool, "--part %s and --parts %u contradict each other", part,
                                   nparts);
    if (!quiet)
        cm_say(tool->name, "part %" PRIu64 " of %" PRIu64, out->number + 1, out->nparts);
    return CM_TOOL_RUN;
}

static int choose_by_step(const cm_tool *tool, const cm_launcher *l, unsigned nparts, bool asked,
                          bool quiet, cm_part_choice *out)
{
    if (nparts != 0 && nparts != l->count)
        return cm_tool_usage_error(tool, "--parts %u, but %s started %" PRIu64 " tasks", nparts,
                                   l->name, l->count);
    if (l->count == 1 && !asked)
        return CM_TOOL_RUN;
    *out =
        (cm_part_choice){.on = true, .nparts = l->count, .number = l->index, .launcher = l->name};
    if (!quiet)
        cm_say(tool->name, "part %" PRIu64 " of %" PRIu64 ", by %s (%s=%" PRIu64 ")", l->index + 1,
               l->count, l->name, l->variable, l->index);
    return CM_TOOL_RUN;
}

static int choose_by_array(const cm_tool *tool, const cm_launcher *l, unsigned nparts, bool quiet,
                           cm_part_choice *out)
{
    if (nparts != 0 && l->count != 0 && nparts != l->count)
        return cm_tool_usage_error(tool, "--parts %u, but %s has %" PRIu64 " tasks", nparts,
                                   l->name, l->count);
    out->on = out->by_index = true;
    out->launcher = l->name;
    out->nparts = nparts != 0 ? nparts : l->count;
    out->index = l->index;
    out->first = l->first;
    out->step = l->step;
    if (quiet)
        return CM_TOOL_RUN;
    if (out->nparts == 0)
        cm_say(tool->name, "the part of index %" PRIu64 " in the plan, by %s (%s=%" PRIu64 ")",
               l->index, l->name, l->variable, l->index);
    else
        cm_say(tool->name, "one of %" PRIu64 " parts, by %s (%s=%" PRIu64 ", from %" PRIu64 ")",
               out->nparts, l->name, l->variable, l->index, l->first);
    return CM_TOOL_RUN;
}

int cm_part_choose(const cm_tool *tool, const cm_part_values *v, bool quiet, cm_part_choice *out)
{
    const char *part = v->part;
    unsigned nparts = v->nparts;
    cm_launcher l;
    cm_error err = {0};
    bool asked = part != NULL && strcmp(part, "auto") == 0;
    *out = (cm_part_choice){.command = out->command};
    if (part != NULL && strcmp(part, "none") == 0)
        return nparts == 0 ? CM_TOOL_RUN
                           : cm_tool_usage_error(tool,
                                                 "--parts %u and --part none contradict "
                                                 "each other",
                                                 nparts);
    if (part != NULL && !asked)
        return choose_by_hand(tool, part, nparts, quiet, out);
    if (cm_launcher_find(cm_launcher_getenv, asked || nparts != 0, &l, &err) != CM_OK)
        return cm_tool_usage_error(tool, "%s; name the part with --part K/N", err.text);
    if (l.kind == CM_LAUNCHER_STEP)
        return choose_by_step(tool, &l, nparts, asked, quiet, out);
    if (l.kind == CM_LAUNCHER_ARRAY)
        return choose_by_array(tool, &l, nparts, quiet, out);
    if (l.idle_tasks > 0 && !quiet)
        cm_say(tool->name,
               "one process: this job has %" PRIu64 " tasks, but no step; srun starts one in each",
               l.idle_tasks);
    else if (asked && nparts == 0 && !quiet)
        cm_say(tool->name, "no launcher was found: this process does everything");
    if (nparts != 0)
        return cm_tool_usage_error(
            tool, "--parts %u: no launcher says which part this is; name it with --part K/%u",
            nparts, nparts);
    return CM_TOOL_RUN;
}

void cm_part_document(cm_document *doc, cm_json *o, const cm_part_report *r)
{
    cm_json *p = cm_document_object(doc, o, "part", r->on);
    if (p == NULL)
        return;
    cm_document_u64(doc, p, "number", r->number + 1);
    cm_document_u64(doc, p, "parts", r->nparts > 0 ? r->nparts : 1);
    cm_document_bool(doc, p, "was_done", r->was_done);
    cm_document_u64(doc, p, "done", r->ndone);
    cm_document_u64(doc, p, "running", r->nrunning);
    cm_document_text(doc, p, "missing", r->missing);
    cm_document_bool(doc, p, "complete", r->complete);
    cm_document_bool(doc, p, "finished", r->finished);
}

void cm_part_print(const cm_part_report *r)
{
    cm_print(stdout, "  Part %" PRIu64 " of %" PRIu64 " %s; ", r->number + 1, r->nparts,
             r->was_done ? "was done before" : "is done");
    if (r->complete) {
        puts(r->finished ? "it was the last: the store is complete" : "the store is complete");
        return;
    }
    cm_print(stdout, "%" PRIu64 " done", r->ndone);
    if (r->nrunning > 0)
        cm_print(stdout, ", %" PRIu64 " running", r->nrunning);
    if (r->missing != NULL && *r->missing != '\0')
        cm_print(stdout, ", missing: %s", r->missing);
    puts("");
}
