#include "growth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/sink/rules.h"
#include "naming.h"
#include "print.h"
#include "run.h"
#include "say.h"

int cm_growth_refuse(const cm_tool *tool, const cm_common_options *common, const char *asked,
                     const cm_transform_options *o, bool of_files)
{
    cm_error err = {0};
    for (const cm_sink_rule *r = cm_sink_rules; r->setting || r->option; r++)
        if (r->option && cm_sink_rule_is_of(r, of_files) && cm_tool_given(tool, common, r->option))
            return cm_tool_usage_error(tool, "--%s: not with --%s%s", r->option, asked, r->typed);
    if (cm_sink_check_rules(o, CM_SINK_GROWS, of_files, &err) == CM_OK)
        return CM_TOOL_RUN;
    cm_tool_name_error(tool, &err);
    return cm_run_refuse(tool, "%s", err.text);
}

bool cm_growth_forbids(const cm_tool *tool, const char *option, bool of_files)
{
    for (const cm_sink_rule *r = cm_sink_rules; r->setting || r->option; r++) {
        char *named = r->setting ? cm_tool_name_options(tool, r->setting) : NULL;
        const bool is = named ? strcmp(named + strlen("--"), option) == 0
                              : r->option && strcmp(r->option, option) == 0;
        free(named);
        if (is && cm_sink_rule_is_of(r, of_files) && (r->option || r->why[CM_SINK_GROWS]))
            return true;
    }
    return false;
}

void cm_growth_print(const cm_append_report *a)
{
    char was[32], length[32];
    fputs(": ", stdout);
    cm_print_clean(a->dimension, stdout);
    cm_print(stdout, " %s to %s from ", cm_format_count(a->was, was, sizeof(was)),
             cm_format_count(a->length, length, sizeof(length)));
}

static void print_listed(const cm_append_report *a, const char *before)
{
    cm_print(stdout, "%s%zu file%s in the store already, and not read", before, a->nlisted,
             cm_of_count(a->nlisted, " is", "s are"));
}

void cm_growth_print_nothing(const cm_append_report *a)
{
    fputs("  Nothing is to be added", stdout);
    if (a->nheld > 0)
        cm_print(stdout, "; %llu %s held back until %s a chunk or shard",
                 (unsigned long long)a->nheld, cm_of_count(a->nheld, "is", "are"),
                 cm_of_count(a->nheld, "it fills", "they fill"));
    if (a->nlisted > 0)
        print_listed(a, "; ");
    putchar('\n');
}

void cm_growth_print_rest(const cm_append_report *a)
{
    if (a->nheld > 0)
        cm_print(stdout, "  Held back until they fill a chunk or shard: %llu along %s\n",
                 (unsigned long long)a->nheld, a->dimension);
    if (a->nlisted > 0) {
        print_listed(a, "  ");
        putchar('\n');
    }
}

void cm_growth_document(cm_document *doc, cm_json *o, const cm_append_report *a)
{
    cm_json *p = cm_document_object(doc, o, "append", a->on);
    if (p == NULL)
        return;
    cm_document_text(doc, p, "dimension", a->dimension);
    cm_document_u64(doc, p, "was", a->was);
    cm_document_u64(doc, p, "length", a->length);
    cm_document_u64(doc, p, "nheld", a->nheld);
    cm_document_u64(doc, p, "nlisted", a->nlisted);
}
