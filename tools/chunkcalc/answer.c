/* The recommendation: which chunks, the command that makes them, and why. */
#include "answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/outputs.h"
#include "../common/print.h"
#include "../common/say.h"
#include "base/number.h"
#include "base/path.h"
#include "options/varopt.h"
#include "store/open.h"

#define STORE_ENDING ".zarr"

/* TEXT as one word of a shell; frees it.  NULL: there was no memory for it. */
static int print_word(char *text, cm_error *err)
{
    if (text == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the command");
    putchar(' ');
    cm_print_shell_word(text, stdout);
    free(text);
    return CM_OK;
}

/* " --OPTION VAR:SHAPE", without VAR where the option needs none. */
static int print_option(const cm_chunkcalc_report *r, const char *option, const char *shape,
                        cm_error *err)
{
    const bool named = r->pattern != NULL && r->pattern[0] != '\0';
    cm_print(stdout, " --%s", option);
    return print_word(named ? cm_varopt_make(r->pattern, shape, NULL) : strdup(shape), err);
}

/* Options without which the store could not be read here, and the command could not either. */
static void print_net(const cm_net_settings *net)
{
    if (net->anonymous)
        fputs(" --anonymous", stdout);
    if (net->absent_403)
        fputs(" --absent-403", stdout);
    if (net->timeout > 0)
        cm_print(stdout, " --timeout %gs", net->timeout);
    for (size_t i = 0; i < net->allow.n; i++) {
        fputs(" --allow ", stdout);
        cm_print_shell_word(net->allow.text[i], stdout);
    }
}

/* PATH, so that it is neither an option nor a list of inputs. */
static char *as_path(const char *path)
{
    char *text = NULL;
    return asprintf(&text, "%s%s", path[0] == '-' || path[0] == '@' ? "./" : "", path) < 0 ? NULL
                                                                                           : text;
}

/*
 * Names a new store in the working folder: weather.zarr of weather.nc, a-rechunked.zarr of a and of
 * icechunk:a@main; beside the source where that is the working folder.
 */
static char *output_of(const cm_chunkcalc_report *r)
{
    const char *repository = cm_icechunk_path(r->path);
    const char *path = repository != NULL ? repository : r->path;
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t from = end;
    while (from > 0 && path[from - 1] != '/')
        from--;
    const char *name = path + from;
    size_t n = repository != NULL ? strcspn(name, "@/") : end - from;
    char *output = NULL;
    if (n == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) /* not in the source itself */
        return asprintf(&output, "%s/../rechunked" STORE_ENDING, path) < 0 ? NULL : output;
    const size_t zarr = strlen(STORE_ENDING);
    if (n > zarr && strncmp(name + n - zarr, STORE_ENDING, zarr) == 0)
        n -= zarr;
    n -= cm_path_netcdf_ending(name, n);
    if (asprintf(&output, "%s%.*s%s", n > 0 && strchr("-@", name[0]) != NULL ? "./" : "", (int)n,
                 name, r->is_netcdf ? "" : "-rechunked") < 0)
        return NULL;
    char *unused = cm_outputs_free_name(output, strlen(output), STORE_ENDING, 1);
    free(output);
    return unused;
}

static bool has_shards(const char *option)
{
    return option != NULL && strcmp(option, "none") != 0;
}

/* One line to paste, which gives the array these CHUNKS; SHARDS NULL: as the program does it. */
static int print_command(const cm_chunkcalc_report *r, const chunkcalc_values *v,
                         const char *chunks, const char *shards, cm_error *err)
{
    const bool markdown = v->format == FORMAT_MARKDOWN;
    const bool file = r->path == NULL || r->is_netcdf;

    cm_print(stdout, "\n%s%s", markdown ? "    " : "  ", file ? "nc2zarr" : "rechunk");
    int rc = print_option(r, "chunks", chunks, err);
    if (rc == CM_OK && shards != NULL)
        rc = print_option(r, "shards", shards, err);
    if (has_shards(shards) && r->zarr_format == 2)
        fputs(" --zarr-format 3", stdout);
    print_net(&v->net);
    if (rc == CM_OK)
        rc = print_word(as_path(r->path != NULL ? r->path : "INPUT.nc"), err);
    if (rc == CM_OK)
        rc = print_word(r->path != NULL ? output_of(r) : strdup("OUTPUT.zarr"), err);
    fputs("\n\n", stdout);
    return rc;
}

static void print_of_variable(const cm_chunkcalc_report *r)
{
    if (r->variable != NULL && r->variable[0] != '\0')
        cm_print(stdout, " of %s", r->variable);
}

/* Rates of recorded reads count more than the model does: handing the elements over. */
static const char *a_read(const cm_chunkcalc_report *r)
{
    return r->access.reads > 0 ? "fetching and decoding a read takes" : "a read takes";
}

/* Cost of reads with the present chunks, in the audit's words where there is one. */
static void print_present(const cm_chunkcalc_report *r)
{
    char time[32];

    if (r->audit != NULL)
        cm_print(stdout, "Audit: %s: %s.\n", r->verdict, r->audit);
    else if (r->present != SIZE_MAX && !r->keep)
        cm_print(stdout, "Now: with %s %s %s and %.3g %s on average, %s.\n", r->present_option,
                 a_read(r), cm_format_time(r->layout[r->present].seconds, time, sizeof(time)),
                 r->layout[r->present].requests,
                 cm_of_mean(r->layout[r->present].requests, "request", "requests"), r->compared);
}

static int print_keep(const cm_chunkcalc_report *r, const chunkcalc_values *v, cm_error *err)
{
    const cm_chunkcalc_layout *now = &r->layout[r->present], *best = &r->layout[r->recommended];
    char time[32], other[32];
    int rc = CM_OK;

    fputs("Keep the present chunks", stdout);
    print_of_variable(r);
    cm_print(stdout, ": %s\n", r->present_option);
    if (r->is_netcdf)
        rc = print_command(r, v, r->present_option, NULL, err);
    cm_print(stdout, "Why: %s %s and %.3g %s on average; ", a_read(r),
             cm_format_time(now->seconds, time, sizeof(time)), now->requests,
             cm_of_mean(now->requests, "request", "requests"));
    if (memcmp(now->chunk, best->chunk, r->rank * sizeof(*now->chunk)) == 0)
        cm_print(stdout, "no other shape has a lower %s.\n", r->objective);
    else if (r->gain <= 1)
        cm_print(stdout, "no shape between %s and %s has a lower %s.\n",
                 cm_format_size(r->min_nbytes, time, sizeof(time)),
                 cm_format_size(r->max_nbytes, other, sizeof(other)), r->objective);
    else
        cm_print(stdout,
                 "with the best shape, %s, it would take %s and %.3g: %s %.3g times as "
                 "high, which no model tells apart.\n",
                 r->chunks_option, cm_format_time(best->seconds, other, sizeof(other)),
                 best->requests, r->objective, r->gain);
    return rc;
}

static int print_change(const cm_chunkcalc_report *r, const chunkcalc_values *v, cm_error *err)
{
    const cm_chunkcalc_layout *best = &r->layout[r->recommended];
    const bool sharded = has_shards(r->shards_option), forced = v->o.shards != NULL;
    char size[32], count[32];

    fputs("Recommended chunks", stdout);
    print_of_variable(r);
    cm_print(stdout, ": %s", r->chunks_option);
    if (sharded)
        cm_print(stdout, ", in shards of %s", r->shards_option);
    putchar('\n');
    int rc =
        print_command(r, v, r->chunks_option, sharded || forced ? r->shards_option : NULL, err);
    cm_print(stdout, "Why: %s decoded a chunk",
             cm_format_size(best->chunk_nbytes, size, sizeof(size)));
    if (best->has_footprint)
        cm_print(stdout, ", %s chunks", cm_format_count(best->nchunks, count, sizeof(count)));
    if (r->sharded_objects > 0)
        cm_print(stdout, " in %s file%s", cm_format_count(r->sharded_objects, count, sizeof(count)),
                 cm_of_count(r->sharded_objects, "", "s"));
    cm_print(stdout, "; %s.\n", r->reason);
    return rc;
}

int chunkcalc_print_answer(const cm_chunkcalc_report *r, const chunkcalc_values *v, cm_error *err)
{
    int rc = r->keep ? print_keep(r, v, err) : print_change(r, v, err);

    if (v->format == FORMAT_MARKDOWN)
        putchar('\n');
    print_present(r);
    return rc;
}
