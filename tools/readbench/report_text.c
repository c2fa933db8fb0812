/* The closing summary, for people: one session or several side by side. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common/print.h"
#include "../common/say.h"
#include "base/number.h"
#include "base/outstream.h"
#include "items.h"
#include "remedy.h"

enum {
    MAX_BESIDE = 4 /* more sessions than that are rows, not columns */
};

/* TABLE without the spaces at the ends of lines, where columns on the right are empty. */
static bool print_trimmed(const cm_table *table, FILE *to)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (f == NULL)
        return false;
    bool ok = cm_table_print(table, 0, f);
    char *text = cm_outtext_close(&t);
    ok = text != NULL && ok;
    for (char *line = text; ok && *line;) {
        size_t n = strcspn(line, "\n"), used = n;
        while (used > 0 && line[used - 1] == ' ')
            used--;
        cm_print(to, "%.*s\n", (int)used, line);
        line += n + (line[n] == '\n');
    }
    free(text);
    return ok;
}

/* "2.91 (2.70 to 3.12)". */
static void print_ratio(cm_table *t, const cm_readbench_report *r, size_t i)
{
    if (!isfinite(r->ratio[i]))
        cm_table_cell(t, "-");
    else if (r->least_ratio && r->least_ratio[i] < r->most_ratio[i])
        cm_table_cell(t, "%.2f (%.2f to %.2f)", r->ratio[i], r->least_ratio[i], r->most_ratio[i]);
    else
        cm_table_cell(t, "%.2f", r->ratio[i]);
}

/* Items as rows, a column for each session. */
static bool print_beside(const cm_readbench_report *r, FILE *to)
{
    cm_table t = {.ncolumns = 1 + r->nsessions};
    char buf[READBENCH_ITEM];
    const char *group = NULL;

    if (r->nsessions > 1) {
        cm_table_cell(&t, "%s", "");
        for (size_t i = 0; i < r->nsessions; i++) {
            t.right[i + 1] = true;
            cm_table_cell(&t, "%s%s", r->session[i].label,
                          r->session[i].emulated ? " EMULATED" : "");
        }
    }
    for (const readbench_item *item = READBENCH_ITEMS; item->label; item++) {
        group = item->group ? item->group : group;
        if (!readbench_item_any(item, r))
            continue;
        if (group) {
            cm_table_cell(&t, "%s", group);
            for (size_t i = 0; i < r->nsessions; i++)
                cm_table_cell(&t, "%s", "");
            group = NULL;
        }
        cm_table_cell(&t, "  %s", item->label);
        for (size_t i = 0; i < r->nsessions; i++)
            cm_table_cell(&t, "%s", item->value(&r->session[i], buf, sizeof(buf)) ? buf : "-");
    }
    if (r->nsessions > 1 && r->ratio) {
        cm_table_cell(&t, "samples/s, ratio to the first");
        for (size_t i = 0; i < r->nsessions; i++)
            print_ratio(&t, r, i);
    }
    bool ok = print_trimmed(&t, to);
    cm_table_release(&t);
    return ok;
}

/* Sessions as rows, the brief items as columns. */
static bool print_rows(const cm_readbench_report *r, FILE *to)
{
    cm_table t = {0};
    char buf[READBENCH_ITEM];

    cm_table_cell(&t, "%s", "");
    t.ncolumns = 1;
    for (const readbench_item *item = READBENCH_ITEMS; item->label; item++) {
        if (!item->brief || !readbench_item_any(item, r))
            continue;
        t.right[t.ncolumns++] = true;
        cm_table_cell(&t, "%s", item->column);
    }
    t.right[t.ncolumns++] = true;
    cm_table_cell(&t, "ratio");
    for (size_t i = 0; i < r->nsessions; i++) {
        const cm_readbench_session *s = &r->session[i];
        cm_table_cell(&t, "%s%s%s", s->label, s->emulated ? " EMULATED" : "",
                      i == r->best ? " *" : "");
        for (const readbench_item *item = READBENCH_ITEMS; item->label; item++)
            if (item->brief && readbench_item_any(item, r))
                cm_table_cell(&t, "%s", item->value(s, buf, sizeof(buf)) ? buf : "-");
        if (r->ratio && isfinite(r->ratio[i]))
            cm_table_cell(&t, "%.2f", r->ratio[i]);
        else
            cm_table_cell(&t, "-");
    }
    bool ok = cm_table_print(&t, 0, to);
    cm_table_release(&t);
    return ok;
}

static void print_predicted(const cm_readbench_session *s, FILE *to)
{
    char planned[32], counted[32];
    const cm_readbench_predicted *p = &s->predicted;
    const bool once = s->loader != NULL && strcmp(s->loader, "planned") == 0;

    if (p->planned_chunks == 0)
        return;
    cm_print(to, "predicted: %s chunks for the samples drawn",
             cm_format_count(p->planned_chunks, planned, sizeof(planned)));
    if (s->counts.chunks == 0)
        fputs("; this engine does not count the chunks read", to);
    else
        cm_print(to,
                 once ? "; read %s, by a plan that reads each of a window once" : "; counted %s",
                 cm_format_count(s->counts.chunks, counted, sizeof(counted)));
    if (p->known)
        cm_print(to, "; %.2f chunks and %.2f requests a sample over all offsets", p->chunks,
                 p->requests);
    fputs("\n", to);
}

/* A batch alone: what was said of it, beside what came of it. */
static void print_foreseen(const cm_readbench_session *s, FILE *to)
{
    const cm_readbench_predicted *p = &s->predicted;
    const cm_readbench_measured *m = &s->measured;
    char said[32], took[32], cpu_said[32], cpu_took[32];

    if (m->rounds == 0 || p->batch_seconds <= 0)
        return;
    cm_print(to,
             "a batch alone, read by one thread: predicted %s, measured %s (%+.0f %%); "
             "CPU time %s and %s\n",
             cm_format_time(p->batch_seconds, said, sizeof(said)),
             cm_format_time(m->batch_seconds, took, sizeof(took)),
             100 * (p->batch_seconds / m->batch_seconds - 1),
             cm_format_time(p->batch_cpu_seconds, cpu_said, sizeof(cpu_said)),
             cm_format_time(m->batch_cpu_seconds, cpu_took, sizeof(cpu_took)));
}

static void print_line(const char *label, const char *text, FILE *to)
{
    if (text == NULL)
        return;
    cm_print(to, "%s", label);
    cm_print_clean(text, to);
    fputs("\n", to);
}

/* The command that tells more of WHAT, a rule or a cause. */
static void print_remedy(const readbench_run *run, const cm_readbench_session *s, const char *what,
                         FILE *to)
{
    char *command = readbench_remedy(run, s, what);
    print_line("  check: ", command, to);
    free(command);
}

static void print_session(const readbench_run *run, const cm_readbench_session *s, bool named,
                          const cm_common_options *common, FILE *to)
{
    char buf[512];

    if (named) {
        cm_print_clean(s->label, to);
        fputs(":\n", to);
    }
    print_line("", readbench_how(s, buf, sizeof(buf)), to);
    if (s->emulated)
        print_line("EMULATED: ", s->emulation ? s->emulation : "a slower storage", to);
    if (common->verbosity > 0)
        for (size_t i = 0; i < s->nsettings; i++) {
            snprintf(buf, sizeof(buf), "  %.200s: ", s->setting[i].name);
            print_line(buf, s->setting[i].value, to);
        }
    print_predicted(s, to);
    print_foreseen(s, to);
    if (s->accelerators.n > 0 && s->wait.n > 0)
        print_line("", readbench_feeds(s, buf, sizeof(buf)), to);
    for (size_t i = 0; i < s->nfindings; i++) {
        print_line("finding: ", s->finding[i].sentence, to);
        print_remedy(run, s, s->finding[i].rule, to);
    }
    print_line("first failure: ", s->first_failure, to);
    print_line("", s->sentence, to);
    char *proposed = readbench_proposed_command(run, s);
    print_line("  try: ", proposed, to);
    free(proposed);
    print_remedy(run, s, cm_readbench_cause_name(s->cause), to);
}

int readbench_print(const readbench_run *run, const cm_common_options *common, FILE *to,
                    cm_error *err)
{
    const cm_readbench_report *r = run->report;
    bool several = r->nsessions > 1;
    bool ok = r->nsessions <= MAX_BESIDE ? print_beside(r, to) : print_rows(r, to);

    if (!ok)
        return cm_fail(err, CM_ENOMEM, "no memory to print the summary");
    /* A sweep's rows are enough of all but the one that it was for. */
    for (size_t i = 0; i < r->nsessions; i++) {
        if (r->nsessions > MAX_BESIDE && common->verbosity <= 0 && i != r->best)
            continue;
        fputs("\n", to);
        print_session(run, &r->session[i], several, common, to);
    }
    if (r->best < r->nsessions || r->data_loader)
        fputs("\n", to);
    if (r->best < r->nsessions) {
        print_line("best: ", r->session[r->best].label, to);
        print_line("because ", r->reason, to);
        char *ran = readbench_tuned_command(run, &r->session[r->best]);
        print_line("it ran as: ", ran, to);
        free(ran);
    } else if (r->reason) {
        fputs("\n", to);
        print_line("", r->reason, to);
    }
    print_line("", r->data_loader, to);
    /* Notes of a preset say what it was measured for. */
    for (size_t i = 0; i < r->nnotes; i++)
        if (common->verbosity > 0 || run->preset)
            print_line(run->preset ? "" : "note: ", r->note[i], to);
    if (readbench_emulated(r))
        fputs("EMULATED: these numbers are of a delayed local store, not of that storage\n", to);
    if (run->out) {
        fputs("report: ", to);
        cm_print_clean(run->out, to);
        fputs("/report.html\n", to);
    }
    return CM_OK;
}
