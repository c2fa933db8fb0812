/* The recommendation: which chunks, the command that makes them, and why. */
#include "answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/print.h"
#include "../common/say.h"
#include "base/number.h"
#include "base/path.h"

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

/* NAME as the VAR of an option, its signs of the option's grammar escaped. */
static char *as_variable(const char *name)
{
    char *text = malloc(2 * strlen(name) + 1), *to = text;
    if (text == NULL)
        return NULL;
    for (; *name != '\0'; name++) {
        if (strchr(":,=*\\", *name) != NULL)
            *to++ = '\\';
        *to++ = *name;
    }
    *to = '\0';
    return text;
}

/* " --OPTION VAR:SHAPE", without VAR where the store is one array, or there is none. */
static int print_option(const cm_chunkcalc_report *r, const char *option, const char *shape,
                        cm_error *err)
{
    char *name = r->variable != NULL && r->variable[0] != '\0' ? as_variable(r->variable) : NULL;
    char *word = NULL;
    if (asprintf(&word, "%s%s%s", name != NULL ? name : "", name != NULL ? ":" : "", shape) < 0)
        word = NULL;
    free(name);
    cm_print(stdout, " --%s", option);
    return print_word(word, err);
}

/* Names a new store in the working folder: weather.zarr of weather.nc, a-rechunked.zarr of a. */
static char *output_of(const cm_chunkcalc_report *r)
{
    size_t end = strlen(r->path);
    while (end > 1 && r->path[end - 1] == '/')
        end--;
    size_t from = end;
    while (from > 0 && r->path[from - 1] != '/')
        from--;
    const char *name = r->path + from;
    size_t n = end - from;
    const size_t zarr = strlen(STORE_ENDING);
    if (n > zarr && strncmp(name + n - zarr, STORE_ENDING, zarr) == 0)
        n -= zarr;
    n -= cm_path_netcdf_ending(name, n);
    char *output = NULL;
    if (asprintf(&output, "%.*s%s%s", (int)n, name, r->is_netcdf ? "" : "-rechunked",
                 STORE_ENDING) < 0)
        return NULL;
    return output;
}

/* One line to paste, which gives the array these CHUNKS; SHARDS NULL: as the program does it. */
static int print_command(const cm_chunkcalc_report *r, const char *chunks, const char *shards,
                         bool markdown, cm_error *err)
{
    const bool file = r->path == NULL || r->is_netcdf;

    cm_print(stdout, "\n%s%s", markdown ? "    " : "  ", file ? "nc2zarr" : "rechunk");
    int rc = print_option(r, "chunks", chunks, err);
    if (rc == CM_OK && shards != NULL)
        rc = print_option(r, "shards", shards, err);
    if (rc == CM_OK)
        rc = print_word(strdup(r->path != NULL ? r->path : "INPUT.nc"), err);
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

/* Cost of reads with the present chunks, in the audit's words where there is one. */
static void print_present(const cm_chunkcalc_report *r)
{
    char time[32];

    if (r->audit != NULL)
        cm_print(stdout, "Audit: %s: %s.\n", r->verdict, r->audit);
    else if (r->present != SIZE_MAX && !r->keep)
        cm_print(stdout,
                 "Now: with %s a read takes %s and %.3g requests on average, %s %.3g times "
                 "as high.\n",
                 r->present_option,
                 cm_format_time(r->layout[r->present].seconds, time, sizeof(time)),
                 r->layout[r->present].requests, r->objective, r->gain);
}

static int print_keep(const cm_chunkcalc_report *r, bool markdown, cm_error *err)
{
    const cm_chunkcalc_layout *now = &r->layout[r->present], *best = &r->layout[r->recommended];
    char time[32], other[32];
    int rc = CM_OK;

    fputs("Keep the present chunks", stdout);
    print_of_variable(r);
    cm_print(stdout, ": %s\n", r->present_option);
    if (r->is_netcdf)
        rc = print_command(r, r->present_option, NULL, markdown, err);
    cm_print(stdout, "Why: a read takes %s and %.3g requests on average; ",
             cm_format_time(now->seconds, time, sizeof(time)), now->requests);
    if (memcmp(now->chunk, best->chunk, r->rank * sizeof(*now->chunk)) == 0)
        cm_print(stdout, "no other shape has a lower %s.\n", r->objective);
    else
        cm_print(stdout,
                 "with the best shape, %s, it would take %s and %.3g: %s %.3g times as "
                 "high, which no model tells apart.\n",
                 r->chunks_option, cm_format_time(best->seconds, other, sizeof(other)),
                 best->requests, r->objective, r->gain);
    return rc;
}

static int print_change(const cm_chunkcalc_report *r, bool forced, bool markdown, cm_error *err)
{
    const cm_chunkcalc_layout *best = &r->layout[r->recommended];
    const bool sharded = strcmp(r->shards_option, "none") != 0;
    char size[32], count[32];

    fputs("Recommended chunks", stdout);
    print_of_variable(r);
    cm_print(stdout, ": %s", r->chunks_option);
    if (sharded)
        cm_print(stdout, ", in shards of %s", r->shards_option);
    putchar('\n');
    int rc = print_command(r, r->chunks_option, sharded || forced ? r->shards_option : NULL,
                           markdown, err);
    cm_print(stdout, "Why: %s decoded a chunk",
             cm_format_size(best->chunk_nbytes, size, sizeof(size)));
    if (best->has_footprint)
        cm_print(stdout, ", %s chunks", cm_format_count(best->nchunks, count, sizeof(count)));
    if (r->sharded_objects > 0)
        cm_print(stdout, " in %s file%s", cm_format_count(r->sharded_objects, count, sizeof(count)),
                 r->sharded_objects == 1 ? "" : "s");
    cm_print(stdout, "; %s.\n", r->reason);
    return rc;
}

int chunkcalc_print_answer(const cm_chunkcalc_report *r, bool shards_given, bool markdown,
                           cm_error *err)
{
    int rc = r->keep ? print_keep(r, markdown, err) : print_change(r, shards_given, markdown, err);

    if (markdown)
        putchar('\n');
    print_present(r);
    return rc;
}
