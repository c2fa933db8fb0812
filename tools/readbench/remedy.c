#include "remedy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../common/print.h"

/* ---- words of a command -------------------------------------------------------------------- */

/* Bytes decoded in vain for a sample: along each dimension (S - 1 + C) / S of what is needed. */
static double waste(const cm_readbench_part *p)
{
    double ratio = 1;
    for (unsigned d = 0; d < p->rank; d++)
        if (p->sample[d] > 0)
            ratio *= ((double)p->sample[d] - 1 + (double)p->chunk[d]) / (double)p->sample[d];
    return (ratio - 1) * (double)p->nbytes;
}

/* The part of a sample that decodes the most in vain; NULL: none is stored in chunks. */
static const cm_readbench_part *worst_part(const cm_readbench_session *s)
{
    const cm_readbench_part *worst = NULL;
    for (size_t i = 0; i < s->nparts; i++) {
        const cm_readbench_part *p = &s->part[i];
        if (p->chunked && !p->is_static && p->rank > 0 &&
            (worst == NULL || waste(p) > waste(worst)))
            worst = p;
    }
    return worst;
}

/* By name where all have one that needs no escapes, otherwise in order. */
static void put_sample(const cm_readbench_part *p, FILE *to)
{
    bool named = true;

    for (unsigned d = 0; d < p->rank; d++)
        named &= p->dim_name[d] != NULL && strlen(p->dim_name[d]) < 256 &&
                 p->dim_name[d][0] != '\0' && strpbrk(p->dim_name[d], ",=:\\ '\"$`*") == NULL;
    for (unsigned d = 0; d < p->rank; d++)
        if (named)
            fprintf(to, "%s%s=%" PRIu64, d > 0 ? "," : "", p->dim_name[d], p->sample[d]);
        else
            fprintf(to, "%s%" PRIu64, d > 0 ? "x" : "", p->sample[d]);
}

static bool is_netcdf(const cm_readbench_session *s)
{
    return s->format != NULL && strncmp(s->format, "Zarr", 4) != 0;
}

/* " era5.zarr era5-rechunked.zarr": the store, and a new one beside it. */
static void put_paths(const cm_readbench_session *s, FILE *to)
{
    size_t n = strlen(s->store);
    while (n > 1 && s->store[n - 1] == '/')
        n--;
    size_t stem = n;
    while (stem > 0 && s->store[stem - 1] != '.' && s->store[stem - 1] != '/')
        stem--;
    if (stem == 0 || s->store[stem - 1] == '/' || stem == 1)
        stem = n + 1; /* no suffix */
    char *target = malloc(n + 32);
    if (target == NULL)
        return;
    snprintf(target, n + 32, "%.*s-rechunked.zarr", (int)(stem - 1), s->store);
    fputc(' ', to);
    cm_print_shell_word(s->store, to);
    fputc(' ', to);
    cm_print_shell_word(target, to);
    free(target);
}

/* ---- commands: each writes nothing where it has none ---------------------------------------- */

typedef void remedy_fn(const readbench_run *run, const cm_readbench_session *s, FILE *to);

/* The command that was typed, with one option more; only where it measured S as it stands. */
static bool put_again(const readbench_run *run, FILE *to)
{
    if (run->command == NULL || run->report->best != SIZE_MAX || run->report->baseline != SIZE_MAX)
        return false;
    fputs(run->command, to);
    return true;
}

static void again(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    (void)s;
    put_again(run, to);
}

static void again_cold(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    (void)s;
    if (put_again(run, to))
        fputs(" --cold", to);
}

static void with_more_workers(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    if (s->mode != NULL && strcmp(s->mode, "sync") == 0) {
        if (put_again(run, to))
            fputs(" --mode threads", to);
    } else if (put_again(run, to)) {
        fprintf(to, " --workers %u", s->workers * 2);
    }
}

static void with_fewer_workers(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    const unsigned threads = s->worker_threads > 0 ? s->worker_threads : 1;
    const unsigned ranks = s->ranks > 0 ? s->ranks : 1;
    const unsigned fit = s->cpus / threads / ranks;
    if (fit > 0 && fit < s->workers && put_again(run, to))
        fprintf(to, " --workers %u", fit);
}

static void with_the_native_engine(const readbench_run *run, const cm_readbench_session *s,
                                   FILE *to)
{
    (void)s;
    if (put_again(run, to))
        fputs(" --engine native", to);
}

static void with_staging(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    (void)s;
    if (put_again(run, to))
        fputs(" --staging pinned --slots 8", to);
}

static void decoded_here(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    (void)s;
    if (put_again(run, to))
        fputs(" --decode host", to);
}

static void for_the_sample(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    const cm_readbench_part *p = s->nparts > 0 ? &s->part[0] : NULL;
    const cm_readbench_part *worst = worst_part(s);
    (void)run;
    p = worst != NULL ? worst : p;
    if (p == NULL || p->rank == 0)
        return;
    fprintf(to, "%s --sample ", is_netcdf(s) ? "nc2zarr" : "rechunk");
    put_sample(p, to);
    put_paths(s, to);
}

static void ask_chunkcalc(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    const cm_readbench_part *worst = worst_part(s);
    (void)run;
    fputs("chunkcalc", to);
    if (worst != NULL) {
        fputs(" --sample ", to);
        put_sample(worst, to);
        fputs(" --variable ", to);
        cm_print_shell_word(worst->variable, to);
        fputs(" --recommend", to);
    }
    fputc(' ', to);
    cm_print_shell_word(s->store, to);
}

static void with_codec(const cm_readbench_session *s, const char *codec, FILE *to)
{
    fprintf(to, "%s --codec %s", is_netcdf(s) ? "nc2zarr" : "rechunk", codec);
    put_paths(s, to);
}

static void with_a_cheaper_codec(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    (void)run;
    with_codec(s, "blosc:lz4", to);
}

static void with_fewer_bytes(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    (void)run;
    with_codec(s, "blosc:zstd:7:shuffle", to);
}

static void read_it_all(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    (void)run;
    fputs("rechunk --digest ", to);
    cm_print_shell_word(s->store, to);
}

static const struct {
    const char *what; /* of a rule or a cause */
    remedy_fn *put;
} remedies[] = {
    {"failed-chunks", read_it_all},
    {"failures", read_it_all},
    {"contended", again},
    {"contention", again},
    {"one-core", with_more_workers},
    {"few-workers", with_more_workers},
    {"few-requests", with_more_workers},
    {"oversubscribed", with_fewer_workers},
    {"cpu-bound", with_a_cheaper_codec},
    {"cpus", with_a_cheaper_codec},
    {"work", with_a_cheaper_codec},
    {"storage", with_fewer_bytes},
    {"amplification", ask_chunkcalc},
    {"chunk-shape", for_the_sample},
    {"library", for_the_sample},
    {"user-loader", with_the_native_engine},
    {"device-copy", with_staging},
    {"device-decode", decoded_here},
    {"fits-in-memory", again_cold},
};

char *readbench_remedy(const readbench_run *run, const cm_readbench_session *s, const char *what)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (to == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
        if (strcmp(remedies[i].what, what) == 0)
            remedies[i].put(run, s, to);
    if (fclose(to) != 0 || n == 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* The typed line without the words --tune. */
static void put_untuned(const char *command, FILE *to)
{
    static const char word[] = " --tune";
    const size_t n = strlen(word);
    for (const char *at; (at = strstr(command, word)) != NULL; command = at + n) {
        const bool whole = at[n] == ' ' || at[n] == '\0';
        fprintf(to, "%.*s", (int)(at - command), command);
        if (!whole)
            fputs(word, to);
    }
    fputs(command, to);
}

char *readbench_tuned_command(const readbench_run *run, const cm_readbench_session *s)
{
    char *text = NULL;
    size_t n = 0;
    if (run->command == NULL || run->report->baseline == SIZE_MAX)
        return NULL;
    FILE *to = open_memstream(&text, &n);
    if (to == NULL)
        return NULL;
    put_untuned(run->command, to);
    if (s->mode != NULL && strcmp(s->mode, "sync") == 0)
        fputs(" --mode sync", to);
    else
        fprintf(to, " --mode %s --workers %u --worker-threads %u --prefetch %u", s->mode,
                s->workers, s->worker_threads, s->prefetch);
    fprintf(to, " --loader %s", s->loader);
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
