#include "remedy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../common/again.h"
#include "../common/outputs.h"
#include "../common/print.h"
#include "../common/say.h"
#include "base/outstream.h"

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

/* LENGTHS by name where all have one that needs no escapes, otherwise in order. */
static void put_lengths(const cm_readbench_part *p, const uint64_t *length, FILE *to)
{
    bool named = true;

    for (unsigned d = 0; d < p->rank; d++)
        named &= p->dim_name[d] != NULL && strlen(p->dim_name[d]) < 256 &&
                 p->dim_name[d][0] != '\0' && strpbrk(p->dim_name[d], ",=:\\ '\"$`*") == NULL;
    for (unsigned d = 0; d < p->rank; d++)
        if (named)
            cm_print(to, "%s%s=%" PRIu64, d > 0 ? "," : "", p->dim_name[d], length[d]);
        else
            cm_print(to, "%s%" PRIu64, d > 0 ? "x" : "", length[d]);
}

static bool is_netcdf(const cm_readbench_session *s)
{
    return s->format != NULL && strncmp(s->format, "Zarr", 4) != 0;
}

static bool is_web(const char *store)
{
    return strncmp(store, "http://", 7) == 0 || strncmp(store, "https://", 8) == 0;
}

/* STORE as an operand, whatever it begins with. */
static void put_store(const char *store, FILE *to)
{
    fputs(store[0] == '-' ? " ./" : " ", to);
    cm_print_shell_word(store, to);
}

/*
 * Where in STORE a name for another one beside it lies, and its length without a suffix.  Beside a
 * web server's nothing can be written, and inside of a store nothing should be: the node is cut.
 */
static size_t bare_name(const char *store, const char **start)
{
    const char *node = strstr(store, "::");
    size_t end = node != NULL && node > store ? (size_t)(node - store) : strlen(store);
    size_t begin = 0;
    if (is_web(store) && strcspn(store, "?#") < end)
        end = strcspn(store, "?#");
    while (end > 1 && store[end - 1] == '/')
        end--;
    for (begin = is_web(store) ? end : 0; begin > 0 && store[begin - 1] != '/';)
        begin--;
    size_t stem = end;
    while (stem > begin && store[stem - 1] != '.' && store[stem - 1] != '/')
        stem--;
    *start = store + begin;
    const bool has_suffix = stem > begin + 1 && store[stem - 1] == '.' && store[stem - 2] != '/';
    return (has_suffix ? stem - 1 : end) - begin;
}

/* " era5.zarr era5-rechunked.zarr": the store, and one beside it that does not exist yet. */
static void put_paths(const cm_readbench_session *s, FILE *to)
{
    const char *start;
    const size_t n = bare_name(s->store, &start);
    char *name = NULL;
    if (asprintf(&name, "%.*s-rechunked", (int)n, start) < 0)
        return;
    char *target = cm_outputs_free_name(name, strlen(name), ".zarr", 1);
    free(name);
    if (target == NULL)
        return;
    put_store(s->store, to);
    put_store(target, to);
    free(target);
}

/* ---- commands that find out more: each writes nothing where it has none --------------------- */

typedef void remedy_fn(const readbench_run *run, const cm_readbench_session *s, FILE *to);

/*
 * The command that was typed, for more options behind it, without UNFIT, which they exclude (NULL:
 * none).
 */
static bool put_typed(const readbench_run *run, const char *unfit, FILE *to)
{
    const readbench_typed *typed = run->typed;
    const char *without[5] = {"tune"};
    size_t n = 1;
    if (typed == NULL)
        return false;
    if (!typed->overwrite) {
        without[n++] = "out";
        without[n++] = "trace";
    }
    without[n] = unfit;
    char *command = cm_again_command(&READBENCH, typed->argc, typed->argv, without);
    if (command != NULL)
        cm_print(to, "%s", command);
    free(command);
    return command != NULL;
}

/* The same, only where it measured S as it stands. */
static bool put_again(const readbench_run *run, const char *unfit, FILE *to)
{
    return run->report->best == SIZE_MAX && run->report->baseline == SIZE_MAX &&
           put_typed(run, unfit, to);
}

static void again(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    (void)s;
    put_again(run, NULL, to);
}

static void again_cold(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    (void)s;
    if (put_again(run, "warm", to))
        fputs(" --cold", to);
}

static void with_the_native_engine(const readbench_run *run, const cm_readbench_session *s,
                                   FILE *to)
{
    (void)s;
    if (put_again(run, NULL, to))
        fputs(" --engine native", to);
}

static void with_the_planned_loader(const readbench_run *run, const cm_readbench_session *s,
                                    FILE *to)
{
    (void)s;
    if (put_again(run, NULL, to))
        fputs(" --loader planned", to);
}

/* The log whose reads S replayed; NULL: none. */
static const char *replayed(const cm_readbench_session *s)
{
    for (size_t i = 0; i < s->nsettings; i++)
        if (strcmp(s->setting[i].name, "replay") == 0)
            return s->setting[i].value;
    return NULL;
}

static void ask_chunkcalc(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    const cm_readbench_part *worst = worst_part(s);
    const char *log = replayed(s);
    (void)run;
    fputs("chunkcalc", to);
    if (log != NULL) {
        fputs(" --access ", to);
        cm_print_shell_word(log, to);
    } else if (worst != NULL) {
        fputs(" --sample ", to);
        put_lengths(worst, worst->sample, to);
        fputs(" --variable ", to);
        cm_print_shell_word(worst->variable, to);
        fputs(" --recommend", to);
    }
    put_store(s->store, to);
}

static void read_it_all(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    (void)run;
    fputs("rechunk --digest", to);
    put_store(s->store, to);
}

static const struct {
    const char *what; /* of a rule or a cause */
    remedy_fn *put;
} remedies[] = {
    {"failed-chunks", read_it_all},
    {"failures", read_it_all},
    {"contended", again},
    {"contention", again},
    {"amplification", ask_chunkcalc},
    {"decoded-again", with_the_planned_loader},
    {"library", with_the_native_engine},
    {"user-loader", with_the_native_engine},
    {"fits-in-memory", again_cold},
};

/* ---- commands that make samples come faster ------------------------------------------------- */

/* The name of a variable as options take it, exactly; false: it looks like a pattern or more. */
static bool is_plain_name(const char *name)
{
    return name != NULL && name[0] != '\0' && strpbrk(name, "*?[]{}\\,:=") == NULL;
}

/* "t2m:time=4,lat=32,lon=32", quoted where it has to be. */
static void put_chunks(const cm_readbench_part *p, const uint64_t *chunk, FILE *to)
{
    cm_outtext t;
    FILE *word = cm_outtext_open(&t);
    if (word == NULL)
        return;
    cm_print(word, "%s:", p->variable);
    put_lengths(p, chunk, word);
    char *text = cm_outtext_close(&t);
    if (text != NULL)
        cm_print_shell_word(text, to);
    free(text);
}

static void put_for_variable(const char *option, const cm_readbench_part *p, const char *value,
                             FILE *to)
{
    cm_outtext t;
    FILE *word = cm_outtext_open(&t);
    if (word == NULL)
        return;
    cm_print(to, " --%s ", option);
    cm_print(word, "%s:%s", p->variable, value);
    char *text = cm_outtext_close(&t);
    if (text != NULL)
        cm_print_shell_word(text, to);
    free(text);
}

/* Whether an earlier part of S is of the same variable, at another lag. */
static bool is_told(const cm_readbench_session *s, size_t part)
{
    for (size_t i = 0; i < part; i++)
        if (strcmp(s->part[i].variable, s->part[part].variable) == 0)
            return true;
    return false;
}

static bool is_version_2(const cm_readbench_session *s)
{
    return s->format != NULL && strcmp(s->format, "Zarr v2") == 0;
}

/* The store written anew for these samples; nothing where an option cannot name a variable. */
static void rewrite(const cm_readbench_session *s, bool light, FILE *to)
{
    for (size_t i = 0; i < s->nparts; i++)
        if (!is_plain_name(s->part[i].variable))
            return;
    cm_print(to, "%s", is_netcdf(s) ? "nc2zarr" : "rechunk");
    for (size_t i = 0; i < s->nparts; i++) {
        const cm_readbench_part *p = &s->part[i];
        const uint64_t *chunk = light ? p->light_chunk : p->best_chunk;
        if (p->is_static || chunk[0] == 0 || is_told(s, i))
            continue;
        fputs(" --chunks ", to);
        put_chunks(p, chunk, to);
        if (!is_version_2(s))
            put_for_variable("shards", p,
                             (light ? p->light_in_shards : p->best_in_shards) ? "auto" : "none",
                             to);
        if (light)
            put_for_variable("codec", p, CM_READBENCH_LIGHT_CODEC, to);
    }
    put_paths(s, to);
}

static void with_workers(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    const unsigned workers = s->proposal.value, ranks = s->ranks > 0 ? s->ranks : 1;
    if (!put_again(run, NULL, to))
        return;
    if (s->mode != NULL && strcmp(s->mode, "sync") == 0)
        fputs(" --mode threads", to);
    cm_print(to, " --workers %u", workers);
    /* The limit that was typed refuses more of them. */
    if (run->nthreads > 0)
        cm_print(to, " --threads %u",
                 workers * ranks * (s->worker_threads > 0 ? s->worker_threads : 1));
}

static void put_proposed(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    switch (s->proposal.change) {
    case CM_CHANGE_NONE:
        break;
    case CM_CHANGE_CHUNKS:
    case CM_CHANGE_CODEC:
        rewrite(s, s->proposal.change == CM_CHANGE_CODEC, to);
        break;
    case CM_CHANGE_WORKERS:
        with_workers(run, s, to);
        break;
    case CM_CHANGE_PREFETCH:
        if (put_again(run, NULL, to))
            cm_print(to, " --prefetch %u", s->proposal.value);
        break;
    case CM_CHANGE_STAGING:
        if (put_again(run, NULL, to))
            fputs(" --staging pinned", to);
        break;
    }
}

/* The text that was written; NULL: none, or no memory. */
static char *written(cm_outtext *t)
{
    char *text = cm_outtext_close(t);
    if (text != NULL && *text != '\0')
        return text;
    free(text);
    return NULL;
}

char *readbench_remedy(const readbench_run *run, const cm_readbench_session *s, const char *what)
{
    cm_outtext t;
    FILE *to = cm_outtext_open(&t);
    if (to == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
        if (strcmp(remedies[i].what, what) == 0)
            remedies[i].put(run, s, to);
    return written(&t);
}

char *readbench_proposed_command(const readbench_run *run, const cm_readbench_session *s)
{
    cm_outtext t;
    FILE *to = cm_outtext_open(&t);
    if (to == NULL)
        return NULL;
    put_proposed(run, s, to);
    return written(&t);
}

char *readbench_tuned_command(const readbench_run *run, const cm_readbench_session *s)
{
    cm_outtext t;
    if (run->report->baseline == SIZE_MAX)
        return NULL;
    FILE *to = cm_outtext_open(&t);
    if (to == NULL)
        return NULL;
    const bool planned = s->loader != NULL && strcmp(s->loader, "planned") == 0;
    if (!put_typed(run, planned ? NULL : "shuffle-window", to))
        return written(&t);
    if (s->mode != NULL && strcmp(s->mode, "sync") == 0)
        fputs(" --mode sync", to);
    else
        cm_print(to, " --mode %s --workers %u --worker-threads %u --prefetch %u", s->mode,
                 s->workers, s->worker_threads, s->prefetch);
    cm_print(to, " --loader %s", s->loader);
    return written(&t);
}
