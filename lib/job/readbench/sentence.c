#include "job/readbench/sentence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "job/readbench/rules.h"

/* ---- the command --------------------------------------------------------------------------- */

typedef struct writer {
    char *buf;
    size_t size, used;
} writer;

static void put(writer *w, const char *text, size_t n)
{
    for (size_t i = 0; i < n && w->used + 1 < w->size; i++)
        w->buf[w->used++] = text[i];
    if (w->size > 0)
        w->buf[w->used] = '\0';
}

static void put_text(writer *w, const char *text)
{
    put(w, text, strlen(text));
}

/* As a shell takes it: in quotes where it has characters that mean something. */
static void put_word(writer *w, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+./:,=@%";
    if (word[0] != '\0' && strspn(word, plain) == strlen(word)) {
        put_text(w, word);
        return;
    }
    put_text(w, "'");
    for (; *word != '\0'; word++)
        put_text(w, *word == '\'' ? "'\\''" : (char[]){*word, '\0'});
    put_text(w, "'");
}

/* Bytes decoded in vain for a sample: along each dimension (S - 1 + C) / S of what is needed. */
static double waste(const cm_readbench_part *p)
{
    double ratio = 1;
    for (unsigned d = 0; d < p->rank; d++)
        if (p->sample[d] > 0)
            ratio *= ((double)p->sample[d] - 1 + (double)p->chunk[d]) / (double)p->sample[d];
    return (ratio - 1) * (double)p->nbytes;
}

/* By name where all have one that needs no escapes, otherwise in order. */
static void put_sample(writer *w, const cm_readbench_part *p)
{
    bool named = true;
    char text[300];

    for (unsigned d = 0; d < p->rank; d++)
        named &= p->dim_name[d] != NULL && strlen(p->dim_name[d]) < 256 &&
                 p->dim_name[d][0] != '\0' && strpbrk(p->dim_name[d], ",=:\\ '\"$`*") == NULL;
    for (unsigned d = 0; d < p->rank; d++) {
        if (named)
            snprintf(text, sizeof(text), "%s%s=%" PRIu64, d > 0 ? "," : "", p->dim_name[d],
                     p->sample[d]);
        else
            snprintf(text, sizeof(text), "%s%" PRIu64, d > 0 ? "x" : "", p->sample[d]);
        put_text(w, text);
    }
}

void cm_readbench_chunkcalc_text(const cm_readbench_session *s, char *buf, size_t size)
{
    const cm_readbench_part *worst = NULL;
    writer w = {buf, size, 0};

    for (size_t i = 0; i < s->nparts; i++) {
        const cm_readbench_part *p = &s->part[i];
        if (p->chunked && !p->is_static && p->rank > 0 &&
            (worst == NULL || waste(p) > waste(worst)))
            worst = p;
    }
    put_text(&w, "chunkcalc");
    if (worst != NULL) {
        put_text(&w, " --sample ");
        put_sample(&w, worst);
        put_text(&w, " --variable ");
        put_word(&w, worst->variable);
        put_text(&w, " --recommend");
    }
    put_text(&w, " ");
    put_word(&w, s->store);
}

/* ---- the bottleneck ------------------------------------------------------------------------ */

bool cm_readbench_by_library(const cm_readbench_session *s)
{
    return s->engine != NULL && strcmp(s->engine, "netcdf") == 0;
}

static const char *const stage_verbs[CM_READBENCH_STAGES] = {
    "reading from storage", "decoding", "copying elements into samples", "casting and unpacking"};

/*
 * What to try when storage takes the time: it is at its limit, or not asked enough.  A
 * library's time is counted as storage's, whatever it does in it.
 */
static void storage_text(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                         size_t size)
{
    if (s->engine != NULL && strncmp(s->engine, "exec:", 5) == 0)
        snprintf(text, size,
                 "the loader behind --engine exec is the bottleneck; try more workers, or the "
                 "native engine beside it");
    else if (cm_readbench_by_library(s))
        snprintf(text, size,
                 "reading and decoding through libnetcdf is the bottleneck (%.0f %% of the "
                 "loader's time), one call at a time in each process; try --engine native, "
                 "--mode processes, or a Zarr copy made by nc2zarr",
                 f->stage_share[0] * 100);
    else if (s->rates.efficiency <= 0)
        snprintf(text, size,
                 "reading from storage is the bottleneck (%.0f %% of the loader's time); try more "
                 "workers, a longer prefetch, or faster storage",
                 f->stage_share[0] * 100);
    else if (s->rates.efficiency < CM_RULE_STORAGE_RATE)
        snprintf(text, size,
                 "reading from storage is the bottleneck (%.0f %% of the loader's time) at %.0f %% "
                 "of the rate that it had without decoding; try more workers or a longer prefetch",
                 f->stage_share[0] * 100, s->rates.efficiency * 100);
    else
        snprintf(text, size,
                 "reading from storage is the bottleneck (%.0f %% of the loader's time), and it "
                 "gives no more; try faster storage, --cache-dir on a faster disk, or a codec that "
                 "stores fewer bytes",
                 f->stage_share[0] * 100);
}

/* What steps wait for, by what would change it most. */
static void cause_text(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                       size_t size)
{
    const bool planned = s->loader != NULL && strcmp(s->loader, "planned") == 0;

    if (s->device.decode.used && s->device.wait.total > s->wait.total / 2 &&
        s->device.decode.device <= s->device.decode.path)
        snprintf(text, size,
                 "decoding on the device is the bottleneck; try --decode host, or chunks nearer to "
                 "the samples");
    else if (s->device.used && s->device.wait.total > s->wait.total / 2)
        snprintf(text, size,
                 "the copy to the device is the bottleneck; try --staging pinned, more --slots, or "
                 "a smaller type with --cast");
    else if (s->amplification[0] > CM_RULE_AMPLIFICATION)
        snprintf(text, size,
                 "the chunks' shape is the bottleneck (%.1f bytes decoded for each byte of a "
                 "sample); rechunk for these samples%s",
                 s->amplification[0], planned ? "" : ", or try --loader planned");
    else if (f->stage_share[0] > CM_RULE_STORAGE)
        storage_text(s, f, text, size);
    else if (f->all_cores > CM_RULE_LOOKS)
        snprintf(
            text, size,
            "the CPUs are the bottleneck, all %u of them being busy; rechunk, or try a cheaper "
            "codec or more CPUs, not more workers",
            s->ncpus);
    else if (f->largest_stage < 0)
        snprintf(text, size, "the loader's own work is the bottleneck; try more workers");
    else if (f->nthreads < s->cpus || f->one_core > CM_RULE_LOOKS)
        snprintf(text, size,
                 "%s is the bottleneck (%.0f %% of the loader's time) while CPUs are idle; try "
                 "more workers",
                 stage_verbs[f->largest_stage], f->stage_share[f->largest_stage] * 100);
    else
        snprintf(text, size,
                 "%s is the bottleneck (%.0f %% of the loader's time); try a cheaper codec, chunks "
                 "nearer to the samples, or more CPUs",
                 stage_verbs[f->largest_stage], f->stage_share[f->largest_stage] * 100);
}

/* True where what was measured may have come from memory alone. */
static bool has_finding(const cm_readbench_session *s, const char *rule)
{
    for (size_t i = 0; i < s->nfindings; i++)
        if (strcmp(s->finding[i].rule, rule) == 0)
            return true;
    return false;
}

static void keeps_up_text(const cm_readbench_session *s, char *text, size_t size)
{
    const double spare =
        s->accelerators.needed > 0 ? s->rates.capacity / s->accelerators.needed : 0;

    int n = snprintf(text, size,
                     "the loader keeps up, the step is the bottleneck: steps waited %.1f %% of the "
                     "time",
                     s->wait_share * 100);
    if (spare > 1 && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, ", and the loader can give %.1f times as much",
                      spare);
    if (n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "; try %s",
                 s->workers > 1 ? "fewer workers, or spend the money on faster steps"
                                : "faster steps");
}

char *cm_readbench_sentence(const cm_readbench_session *s, const cm_readbench_facts *facts,
                            cm_error *err)
{
    const char *emulated = s->emulated ? "EMULATED: " : "";
    const char *cached = has_finding(s, "fits-in-memory")
                             ? "; the data fit in memory, so measure --cold before believing it"
                             : "";
    char text[512];

    if (s->counts.failed_batches > 0)
        return cm_asprintf(err,
                           "%s%" PRIu64 " of %" PRIu64 " batches failed, so the rates are not "
                           "those of this store; mend it first: %s",
                           emulated, s->counts.failed_batches, s->counts.batches,
                           s->first_failure != NULL ? s->first_failure : "no reason is known");
    if (s->counts.chunks > 0 && s->counts.missing_chunks == s->counts.chunks)
        return cm_asprintf(err,
                           "%snone of the chunks that were met is stored, so nothing was read and "
                           "the rates are those of filling; try samples where there are data",
                           emulated);
    if (s->wait.n == 0)
        return cm_asprintf(err, "%stoo few steps to say where the time goes; try more --batches",
                           emulated);
    if (s->wait_share <= CM_RULE_KEEPS_UP) {
        keeps_up_text(s, text, sizeof(text));
        return cm_asprintf(err, "%s%s%s", emulated, text, cached);
    }
    cause_text(s, facts, text, sizeof(text));
    return cm_asprintf(err, "%ssteps waited %.0f %% of the time: %s%s", emulated,
                       s->wait_share * 100, text, cached);
}
