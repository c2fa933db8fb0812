/* -h, --help and the man page, from the option table. */
#include "options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <chunkmill/version.h>

enum {
    WIDTH = 80,      /* of --help, in columns */
    TEXT_COLUMN = 30 /* where the help texts of --help begin */
};

/* "-j, --threads N" or "    --variable, --variables A,B"; BRIEF: without the second name. */
static void label(const cm_option *o, bool brief, char *buf, size_t size)
{
    int n = o->letter ? snprintf(buf, size, "-%c, --%s", o->letter, o->name)
                      : snprintf(buf, size, "    --%s", o->name);
    if (o->alias && !brief && n > 0 && (size_t)n < size)
        n += snprintf(buf + n, size - (size_t)n, ", --%s", o->alias);
    if (cm_option_argument(o) && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, " %s", cm_option_argument(o));
    else if (cm_option_words_after(o) && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, " [%s]", cm_option_words_after(o));
}

/* TEXT from column AT on, broken between words so that lines end before WIDTH. */
static void print_wrapped(const char *text, int at, FILE *to)
{
    int column = at;
    bool first = true;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (!first && column + 1 + n > WIDTH) {
            fprintf(to, "\n%*s", at, "");
            column = at;
        } else if (!first) {
            putc(' ', to);
            column++;
        }
        fprintf(to, "%.*s", n, text);
        column += n;
        first = false;
        text += n;
        while (*text == ' ')
            text++;
    }
    putc('\n', to);
}

/* The help of O and its default; to be freed, NULL without memory. */
static char *help_of(const cm_option *o)
{
    const char *usual = cm_option_default(o);
    char *text = NULL;
    if (asprintf(&text, "%s%s%s%s", o->help, usual ? " Default: " : "", usual ? usual : "",
                 usual ? "." : "") < 0)
        return NULL;
    return text;
}

/* Where the help texts begin. */
static void print_label(const cm_option *o, bool brief, FILE *to)
{
    char left[128];
    label(o, brief, left, sizeof(left));
    int n = fprintf(to, "  %s", left);
    if (n + 2 > TEXT_COLUMN)
        fprintf(to, "\n%*s", TEXT_COLUMN, "");
    else
        fprintf(to, "%*s", TEXT_COLUMN - n, "");
}

static void print_option(const cm_option *o, FILE *to)
{
    print_label(o, false, to);
    char *text = help_of(o);
    print_wrapped(text ? text : o->help, TEXT_COLUMN, to);
    free(text);
}

static void print_examples(const cm_tool *tool, FILE *to)
{
    if (tool->example)
        fprintf(to, "\nExamples:\n");
    for (const cm_example *e = tool->example; e && e->command; e++)
        fprintf(to, "  %s:\n      %s\n", e->what, e->command);
}

static void print_first_sentence(const cm_option *o, FILE *to)
{
    char *text = strndup(o->help, cm_option_first_sentence(o->help) + 1);
    print_label(o, true, to);
    print_wrapped(text ? text : o->help, TEXT_COLUMN, to);
    free(text);
}

void cm_tool_print_brief(const cm_tool *tool, FILE *to)
{
    fprintf(to, "%s: %s\nUsage: %s %s\n", tool->name, tool->summary, tool->name, tool->usage[0]);
    print_examples(tool, to);
    fprintf(to, "\nThe most used options:\n");
    const cm_option *o;
    for (size_t i = 0; (o = cm_tool_option(tool, i, NULL)); i++)
        if (o->brief)
            print_first_sentence(o, to);
    fprintf(to, "\n%s --help prints all options.\n", tool->name);
}

void cm_tool_print_help(const cm_tool *tool, FILE *to)
{
    fprintf(to, "%s: %s\n\nUsage:\n", tool->name, tool->summary);
    for (size_t i = 0; tool->usage[i]; i++)
        fprintf(to, "  %s %s\n", tool->name, tool->usage[i]);
    const cm_option *o;
    bool surveys = false; /* and so may end with a decision to make */
    for (size_t i = 0; (o = cm_tool_option(tool, i, NULL)); i++) {
        surveys = surveys || strcmp(o->name, "survey") == 0;
        if (o->section)
            fprintf(to, "\n%s:\n", o->section);
        if (!o->hidden)
            print_option(o, to);
    }
    print_examples(tool, to);
    fprintf(to,
            "\nExit status: 0 done; 1 failed; 2 wrong command line, or a feature that does not\n"
            "exist yet; 3 done, but verification found a difference;%s 128+n ended by signal n.\n",
            surveys ? "\n4 nothing done, files disagree and need a decision;" : "");
}

/* ---- the man page --------------------------------------------------------------------------- */

/* TEXT as roff prints it literally. */
static void print_roff(const char *text, FILE *to)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", to);
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", to);
        else if (*text == '\\')
            fputs("\\e", to);
        else
            putc(*text, to);
    }
}

static void print_man_option(const cm_option *o, FILE *to)
{
    fputs(".TP\n", to);
    if (o->letter)
        fprintf(to, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", to);
    print_roff(o->name, to);
    fputs("\\fR", to);
    if (o->alias) {
        fputs(", \\fB\\-\\-", to);
        print_roff(o->alias, to);
        fputs("\\fR", to);
    }
    if (cm_option_argument(o)) {
        fputs(" \\fI", to);
        print_roff(cm_option_argument(o), to);
        fputs("\\fR", to);
    } else if (cm_option_words_after(o)) {
        fputs(" [\\fI", to);
        print_roff(cm_option_words_after(o), to);
        fputs("\\fR]", to);
    }
    putc('\n', to);
    char *text = help_of(o);
    print_roff(text ? text : o->help, to);
    free(text);
    putc('\n', to);
}

static void print_man_options(const cm_tool *tool, FILE *to)
{
    fputs(".SH OPTIONS\n", to);
    const cm_option *o;
    for (size_t i = 0; (o = cm_tool_option(tool, i, NULL)); i++) {
        if (o->section)
            fprintf(to, ".SS %s\n", o->section);
        if (!o->hidden)
            print_man_option(o, to);
    }
}

static void print_man_examples(const cm_tool *tool, FILE *to)
{
    if (!tool->example)
        return;
    fputs(".SH EXAMPLES\n", to);
    for (const cm_example *e = tool->example; e->command; e++) {
        fputs(".PP\n", to);
        print_roff(e->what, to);
        fputs(":\n.PP\n.RS 4\n.EX\n", to);
        print_roff(e->command, to);
        fputs("\n.EE\n.RE\n", to);
    }
}

void cm_tool_print_man(const cm_tool *tool, FILE *prose, FILE *to)
{
    fputs(".TH ", to);
    for (const char *c = tool->name; *c; c++)
        putc(toupper((unsigned char)*c), to);
    fprintf(to, " 1 \"\" \"Chunkmill %s\" \"Chunkmill manual\"\n.SH NAME\n%s \\- %s\n",
            cm_version(), tool->name, tool->summary);
    fputs(".SH SYNOPSIS\n.nf\n", to);
    for (size_t i = 0; tool->usage[i]; i++) {
        fprintf(to, "\\fB%s\\fR ", tool->name);
        print_roff(tool->usage[i], to);
        putc('\n', to);
    }
    fputs(".fi\n", to);
    print_man_examples(tool, to);

    char *line = NULL;
    size_t capacity = 0;
    bool options = false;
    while (prose && getline(&line, &capacity, prose) > 0) {
        if (strcmp(line, ".OPTIONS\n") == 0) {
            print_man_options(tool, to);
            options = true;
        } else {
            fputs(line, to);
        }
    }
    free(line);
    if (!options)
        print_man_options(tool, to);
}
