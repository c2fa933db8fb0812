/* Plan, bound and counts of each array: what --dry-run shows, and -v after a run. */
#include <string.h>

#include "../common/print.h"
#include "../common/say.h"
#include "base/number.h"
#include "rechunk.h"

const char *rechunk_plan_name(cm_plan_kind plan)
{
    static const char *const NAMES[] = {"copy", "sweep", "column", "spill", "reread"};
    return NAMES[plan];
}

/* The fields of cm_plan_counts, in the order of the tables. */
static const struct {
    const char *title;
    size_t offset;
    bool nbytes;
} FIELDS[] = {
    {"reads", offsetof(cm_plan_counts, chunk_reads), false},
    {"decodes", offsetof(cm_plan_counts, chunk_decodes), false},
    {"writes", offsetof(cm_plan_counts, chunk_writes), false},
    {"read", offsetof(cm_plan_counts, element_nbytes_read), true},
    {"written", offsetof(cm_plan_counts, element_nbytes_written), true},
    {"scratch", offsetof(cm_plan_counts, scratch_nbytes), true},
};

enum {
    NFIELDS = sizeof(FIELDS) / sizeof(FIELDS[0])
};

static uint64_t field_of(const cm_plan_counts *c, size_t i)
{
    uint64_t v;
    memcpy(&v, (const char *)c + FIELDS[i].offset, sizeof(v));
    return v;
}

bool rechunk_as_planned(const cm_transform_variable *array)
{
    for (size_t i = 0; i < NFIELDS; i++)
        if (field_of(&array->planned, i) != field_of(&array->counted, i))
            return false;
    return true;
}

static void count_cells(cm_table *t, const cm_plan_counts *c)
{
    for (size_t i = 0; i < NFIELDS; i++) {
        char text[32];
        uint64_t v = field_of(c, i);
        cm_table_cell(t, "%s",
                      FIELDS[i].nbytes ? cm_format_size(v, text, sizeof(text))
                                       : cm_format_count(v, text, sizeof(text)));
    }
}

static void count_titles(cm_table *t)
{
    for (size_t i = 0; i < NFIELDS; i++)
        cm_table_cell(t, "%s", FIELDS[i].title);
}

static void name_cell(cm_table *t, const cm_transform_variable *a)
{
    cm_table_cell(t, "%s", a->name[0] ? a->name : "/");
}

static void print_and_release(cm_table *t, const char *what)
{
    if (!cm_table_print(t, 2, stdout))
        cm_say(RECHUNK.name, "no memory for the table of %s", what);
    cm_table_release(t);
}

/* How far the plan's traffic lies above the least: "0 %", "4.2 %", "-" where nothing moves. */
static void gap_cell(cm_table *t, const cm_transform_variable *a)
{
    char text[16];
    double over = (double)a->planned_nbytes - (double)a->bound_nbytes;
    cm_table_cell(t, "%s", cm_format_percent(over, (double)a->bound_nbytes, text, sizeof(text)));
}

static void print_traffic(const cm_transform_report *r)
{
    cm_table t = {.ncolumns = NFIELDS + 6};
    for (size_t c = 1; c < t.ncolumns; c++)
        t.right[c] = true;
    cm_table_cell(&t, "array");
    count_titles(&t);
    cm_table_cell(&t, "memory");
    cm_table_cell(&t, "traffic");
    cm_table_cell(&t, "bound");
    cm_table_cell(&t, "gap");
    cm_table_cell(&t, "time");
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *a = &r->variable[i];
        char text[32];
        name_cell(&t, a);
        count_cells(&t, &a->planned);
        cm_table_cell(&t, "%s", cm_format_size(a->memory_nbytes, text, sizeof(text)));
        cm_table_cell(&t, "%s", cm_format_size(a->planned_nbytes, text, sizeof(text)));
        cm_table_cell(&t, "%s", cm_format_size(a->bound_nbytes, text, sizeof(text)));
        gap_cell(&t, a);
        /* Where there is one way only, the machine is not probed. */
        cm_table_cell(
            &t, "%s",
            a->planned_seconds > 0 ? cm_format_time(a->planned_seconds, text, sizeof(text)) : "-");
    }
    print_and_release(&t, "plans");
}

static bool same_reason(const cm_transform_variable *a, const cm_transform_variable *b)
{
    return a->plan == b->plan && a->plan_reason && b->plan_reason &&
           strcmp(a->plan_reason, b->plan_reason) == 0;
}

/* "sweep of a, b: REASON", one line for each distinct one. */
static void print_reasons(const cm_transform_report *r)
{
    const cm_transform_variable *a = r->variable;
    for (size_t i = 0; i < r->nvariables; i++) {
        bool seen = !a[i].plan_reason;
        for (size_t k = 0; k < i && !seen; k++)
            seen = same_reason(&a[k], &a[i]);
        if (seen)
            continue;
        cm_print(stdout, "  %s of ", rechunk_plan_name(a[i].plan));
        for (size_t k = i; k < r->nvariables; k++) {
            if (!same_reason(&a[k], &a[i]))
                continue;
            fputs(k > i ? ", " : "", stdout);
            cm_print_clean(a[k].name[0] ? a[k].name : "/", stdout);
        }
        fputs(": ", stdout);
        cm_print_clean(a[i].plan_reason, stdout);
        putchar('\n');
    }
}

static void print_rate(const char *what, double rate, bool *first)
{
    char text[32];
    if (rate <= 0)
        return;
    cm_print(stdout, "%s%s %s", *first ? "  Measured here: " : ", ", what,
             cm_format_rate(rate, text, sizeof(text)));
    *first = false;
}

static void print_probe(const cm_transform_report *r)
{
    bool first = true;
    print_rate("read", r->probe_read_rate, &first);
    print_rate("decode", r->probe_decode_rate, &first);
    print_rate("encode", r->probe_encode_rate, &first);
    print_rate("write", r->probe_write_rate, &first);
    if (!first)
        putchar('\n');
}

void rechunk_print_plan(const cm_transform_report *report)
{
    char text[32];
    puts("\n  Stored chunks that are read, decoded and written; what they hold, decoded; bound is "
         "the\n  least traffic that this memory allows, gap what the plan moves above it:");
    print_traffic(report);
    putchar('\n');
    print_reasons(report);
    if (report->scratch_needed)
        cm_print(stdout, "  Scratch space: at most %s at one time\n",
                 cm_format_size(report->scratch_needed, text, sizeof(text)));
    print_probe(report);
}

void rechunk_print_counts(const cm_transform_report *report)
{
    cm_table t = {.ncolumns = NFIELDS + 2};
    for (size_t c = 2; c < t.ncolumns; c++)
        t.right[c] = true;
    puts("\n  Counted, beside what was planned:");
    cm_table_cell(&t, "array");
    cm_table_cell(&t, "%s", "");
    count_titles(&t);
    for (size_t i = 0; i < report->nvariables; i++) {
        const cm_transform_variable *a = &report->variable[i];
        name_cell(&t, a);
        cm_table_cell(&t, "%s", rechunk_as_planned(a) ? "as planned" : "counted");
        count_cells(&t, &a->counted);
        if (rechunk_as_planned(a))
            continue;
        name_cell(&t, a);
        cm_table_cell(&t, "planned");
        count_cells(&t, &a->planned);
    }
    print_and_release(&t, "counts");
    print_reasons(report);
}
