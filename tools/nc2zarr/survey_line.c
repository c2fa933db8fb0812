/* The command line that converts what was surveyed. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "../common/again.h"
#include "../common/outputs.h"
#include "../common/print.h"
#include "../common/say.h"
#include "base/outstream.h"
#include "survey.h"

enum {
    PATTERN_FROM = 4 /* inputs: fewer are named one by one */
};

/* Text that a shell leaves as it is. */
static bool is_plain(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strchr(" \t\n*?[]{}'\"\\$&;|<>()`!#~^", text[i]) != NULL)
            return false;
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether PATTERN gives INPUTS, in whatever order, and nothing else. */
static bool gives(const char *pattern, const cm_texts *inputs)
{
    glob_t found;
    bool same = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    const char **text = malloc((inputs->n + 1) * sizeof(*text));
    if (same && text != NULL && found.gl_pathc == inputs->n) {
        memcpy(text, inputs->text, inputs->n * sizeof(*text));
        qsort(text, inputs->n, sizeof(*text), by_text);
        qsort(found.gl_pathv, inputs->n, sizeof(*found.gl_pathv), by_text);
        for (size_t i = 0; same && i < inputs->n; i++)
            same = strcmp(text[i], found.gl_pathv[i]) == 0;
    } else {
        same = false;
    }
    free(text);
    globfree(&found);
    return same;
}

/* The end that A and B have in common, of at most N bytes. */
static size_t common_end(const char *a, const char *b, size_t n)
{
    const size_t na = strlen(a), nb = strlen(b);
    size_t k = 0;
    while (k < n && k < na && k < nb && a[na - 1 - k] == b[nb - 1 - k])
        k++;
    return k;
}

/* The pattern that a shell made INPUTS of; NULL: there is none, or no memory. */
static char *pattern_of(const cm_texts *inputs)
{
    const char *first = inputs->text[0];
    size_t begin = strlen(first), end = begin, folder, dot;
    char *pattern = NULL;
    for (size_t i = 0; i < inputs->n; i++) {
        size_t k = 0;
        while (k < begin && inputs->text[i][k] == first[k])
            k++;
        begin = k;
        end = common_end(first, inputs->text[i], end);
        if (!is_plain(inputs->text[i], strlen(inputs->text[i])) || inputs->text[i][0] == '-')
            return NULL;
    }
    for (folder = begin; folder > 0 && first[folder - 1] != '/';)
        folder--;
    const char *tail = first + strlen(first) - end;
    for (dot = end; dot > 0 && tail[end - dot] != '.';)
        dot--;
    for (int whole = 0; whole < 2; whole++) {
        char *p = NULL;
        if (asprintf(&p, "%.*s*%s", (int)(whole ? begin : folder), first,
                     tail + end - (whole ? end : dot)) >= 0 &&
            pattern == NULL && gives(p, inputs))
            pattern = p;
        else
            free(p);
    }
    return pattern;
}

void nc2zarr_print_inputs(const cm_texts *inputs, bool ordered, FILE *f)
{
    char *pattern = inputs->n >= PATTERN_FROM && !ordered ? pattern_of(inputs) : NULL;
    if (pattern != NULL)
        cm_print(f, " %s", pattern);
    for (size_t i = 0; pattern == NULL && i < inputs->n; i++) {
        fputs(inputs->text[i][0] == '-' ? " ./" : " ", f);
        cm_print_shell_word(inputs->text[i], f);
    }
    free(pattern);
}

char *nc2zarr_free_output(const char *name, unsigned from)
{
    const size_t n = strlen(name);
    const bool zarr = n > 5 && strcmp(name + n - 5, ".zarr") == 0;
    const size_t ending = zarr ? 5 : n > 4 && strcmp(name + n - 4, ".zip") == 0 ? 4 : 0;
    return cm_outputs_free_name(name, n - ending, name + n - ending, from);
}

static char *output_of(const archive_job *job, const nc2zarr_decisions *d)
{
    const char *named = job->typed.output;
    const cm_transform_options *o = &job->v->o;
    if (named != NULL && nc2zarr_makes_stores(d)) { /* a name for one store is none for a folder */
        const size_t n = strlen(named);
        const bool zarr = n > 5 && strcmp(named + n - 5, ".zarr") == 0;
        return cm_outputs_free_name(named, zarr ? n - 5 : n, "", 1);
    }
    if (named == NULL) {
        const bool folder = job->asked.store_per != NULL || nc2zarr_makes_stores(d);
        return cm_outputs_free_name("out", 3,
                                    folder             ? ""
                                    : o->refer != NULL ? ".json"
                                                       : ".zarr",
                                    1);
    }
    const size_t n = strlen(named);
    const bool kept = !job->v->survey || o->overwrite || o->resume || n <= 5;
    return kept ? strdup(named) : cm_outputs_free_name(named, n - 5, named + n - 5, 1);
}

void nc2zarr_print_option(const nc2zarr_option *o, FILE *f)
{
    cm_print(f, "--%s", o->name);
    if (o->value[0] == '\0')
        return;
    putc(' ', f);
    cm_print_shell_word(o->value, f);
}

char *nc2zarr_command_line(const archive_job *job, const nc2zarr_decisions *d, cm_error *err)
{
    /* Options of the survey alone, and those that decisions replace. */
    const char *without[32] = {"survey"};
    size_t nwithout = 1;
    if (job->v->survey) {
        static const char *const SAID[] = {"json", "verbose", "quiet"};
        for (size_t i = 0; i < sizeof(SAID) / sizeof(SAID[0]); i++)
            without[nwithout++] = SAID[i];
    }
    for (size_t i = 0; i < d->n && nwithout < 31; i++)
        if (cm_tool_option_named(&NC2ZARR, d->of[i].option.name, strlen(d->of[i].option.name), NULL)
                ->kind != CM_OPTION_LIST)
            without[nwithout++] = d->of[i].option.name;
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    char *options = cm_again_options(&NC2ZARR, job->typed.argc, job->typed.argv, without);
    char *output = output_of(job, d);
    if (f != NULL && options != NULL && output != NULL) {
        cm_print_shell_word(job->typed.argv[0], f);
        cm_print(f, "%s", options);
        for (size_t i = 0; i < d->n; i++) {
            putc(' ', f);
            nc2zarr_print_option(&d->of[i].option, f);
        }
        nc2zarr_print_inputs(&job->asked.inputs, job->asked.order == CM_ORDER_GIVEN, f);
        fputs(output[0] == '-' ? " ./" : " ", f);
        cm_print_shell_word(output, f);
    }
    char *line = f != NULL ? cm_outtext_close(&t) : NULL;
    const bool whole = line != NULL && options != NULL && output != NULL;
    free(options);
    free(output);
    if (whole)
        return line;
    free(line);
    (void)cm_fail(err, CM_ENOMEM, "no memory for a command line");
    return NULL;
}
