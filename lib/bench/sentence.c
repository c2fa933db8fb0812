#include "bench/sentence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "bench/rules.h"

static const char *const stage_verbs[CM_READBENCH_STAGES] = {
    "reading from storage", "decoding", "copying elements into samples", "casting and unpacking"};

static void contention_text(const cm_readbench_facts *f, unsigned ncpus, char *text, size_t size)
{
    snprintf(text, size,
             "other programs kept %.1f of the %u CPUs busy and this run %.1f: the times are not "
             "those of this store; measure again on a quiet machine",
             f->other_cpus, ncpus, f->own_cpus);
}

static void storage_text(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                         size_t size)
{
    const double share = f->stage_share[0] * 100;
    if (f->cause == CM_CAUSE_USER_LOADER)
        snprintf(text, size, "your own loader is the bottleneck");
    else if (f->cause == CM_CAUSE_LIBRARY)
        snprintf(text, size,
                 "reading and decoding through libnetcdf is the bottleneck (%.0f %% of the "
                 "loader's time), one call at a time in each process",
                 share);
    else if (s->rates.efficiency <= 0)
        snprintf(text, size,
                 "reading from storage is the bottleneck (%.0f %% of the loader's time)", share);
    else
        snprintf(text, size,
                 "reading from storage is the bottleneck (%.0f %% of the loader's time) at %.0f %% "
                 "of the rate that it had without decoding",
                 share, s->rates.efficiency * 100);
}

/* " (2.9 to 3.4 in rounds of measuring)", where rounds lie apart. */
static void spread_text(const cm_readbench_predicted *p, char *text, size_t size)
{
    char least[16], most[16];
    snprintf(least, sizeof(least), "%.1f", p->least_times);
    snprintf(most, sizeof(most), "%.1f", p->most_times);
    text[0] = '\0';
    if (strcmp(least, most) != 0)
        snprintf(text, size, ", %s to %s in rounds of measuring", least, most);
}

static void shape_text(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                       size_t size)
{
    char best[64] = "", spread[64];
    if (f->spared > 0 && f->excess <= CM_RULE_EXCESS) {
        spread_text(&s->predicted, spread, sizeof(spread));
        snprintf(text, size,
                 "the chunks' shape is the bottleneck (a sample takes %.1f times as long to read "
                 "and decode as with the best chunks%s)",
                 1 / (1 - f->spared), spread);
        return;
    }
    if (f->excess > 0)
        snprintf(best, sizeof(best), " where %.1f would do", s->amplification[0] / f->excess);
    snprintf(text, size,
             "the chunks' shape is the bottleneck (%.1f bytes decoded for each byte of a "
             "sample%s)",
             s->amplification[0], best);
}

static void work_text(const cm_readbench_facts *f, char *text, size_t size)
{
    const char *idle = f->cause == CM_CAUSE_FEW_WORKERS ? " while CPUs are idle" : "";
    if (f->largest_stage < 0)
        snprintf(text, size, "the loader's own work is the bottleneck%s", idle);
    else
        snprintf(text, size, "%s is the bottleneck (%.0f %% of the loader's time)%s",
                 stage_verbs[f->largest_stage], f->stage_share[f->largest_stage] * 100, idle);
}

static void uneven_text(const cm_readbench_session *s, char *text, size_t size)
{
    char can[32], need[32];
    snprintf(text, size,
             "batches come unevenly, for the loader's capacity of %s is above the %s needed",
             cm_format_rate(s->rates.capacity, can, sizeof(can)),
             cm_format_rate(s->accelerators.needed, need, sizeof(need)));
}

static void cause_text(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                       size_t size)
{
    switch (f->cause) {
    case CM_CAUSE_CONTENTION:
        contention_text(f, s->ncpus, text, size);
        break;
    case CM_CAUSE_DEVICE_COPY:
        snprintf(text, size, "the copy to the device is the bottleneck");
        break;
    case CM_CAUSE_CHUNK_SHAPE:
        shape_text(s, f, text, size);
        break;
    case CM_CAUSE_USER_LOADER:
    case CM_CAUSE_LIBRARY:
    case CM_CAUSE_STORAGE:
    case CM_CAUSE_FEW_REQUESTS:
        storage_text(s, f, text, size);
        break;
    case CM_CAUSE_UNEVEN:
        uneven_text(s, text, size);
        break;
    case CM_CAUSE_CPUS:
        snprintf(text, size, "the CPUs are the bottleneck, all %u of them being busy", s->ncpus);
        break;
    default:
        work_text(f, text, size);
    }
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
        snprintf(text + n, size - (size_t)n, ", and the loader can give %.1f times as much", spare);
}

/* "8x32x32" of the part that decodes the most, or of the only one. */
static const char *chunks_text(const cm_readbench_session *s, bool light, char *buf, size_t size)
{
    const cm_readbench_part *p = s->nparts > 0 ? &s->part[0] : NULL;
    if (p == NULL || s->nparts > 1)
        return "other chunks";
    int n = snprintf(buf, size, "chunks of ");
    for (unsigned d = 0; d < p->rank && n > 0 && (size_t)n < size; d++)
        n += snprintf(buf + n, size - (size_t)n, "%s%" PRIu64, d > 0 ? "x" : "",
                      light ? p->light_chunk[d] : p->best_chunk[d]);
    return buf;
}

/* "; predicted 3.1 times the samples/s with 4 workers"; "" where nothing was simulated. */
static void proposal_text(const cm_readbench_session *s, char *text, size_t size)
{
    const cm_readbench_proposal *p = &s->proposal;
    char with[160] = "", chunks[128];
    const unsigned n = p->value;
    text[0] = '\0';
    switch (p->change) {
    case CM_CHANGE_NONE:
        if (p->simulated)
            snprintf(text, size, "; no other setting%s is predicted to help",
                     p->layouts ? " or layout" : "");
        return;
    case CM_CHANGE_CHUNKS:
        snprintf(with, sizeof(with), "in %s", chunks_text(s, false, chunks, sizeof(chunks)));
        break;
    case CM_CHANGE_CODEC:
        snprintf(with, sizeof(with), "in %s with codec %s",
                 chunks_text(s, true, chunks, sizeof(chunks)), CM_READBENCH_LIGHT_CODEC);
        break;
    case CM_CHANGE_WORKERS:
        snprintf(with, sizeof(with), "with %u worker%s", n, cm_of_count(n, "", "s"));
        break;
    case CM_CHANGE_PREFETCH:
        snprintf(with, sizeof(with), "with a prefetch of %u %s", n,
                 cm_of_count(n, "batch", "batches"));
        break;
    case CM_CHANGE_STAGING:
        snprintf(with, sizeof(with), "with pinned staging");
        break;
    }
    snprintf(text, size, "; predicted %.1f times the samples/s %s", p->gain, with);
}

char *cm_readbench_sentence(const cm_readbench_session *s, const cm_readbench_facts *f,
                            cm_error *err)
{
    const char *emulated = s->emulated ? "EMULATED: " : "";
    const char *cached = has_finding(s, "fits-in-memory")
                             ? "; the data fit in memory, so measure from cold before believing it"
                             : "";
    char text[512], proposal[256];

    proposal_text(s, proposal, sizeof(proposal));
    switch (f->cause) {
    case CM_CAUSE_FAILURES:
        return cm_asprintf(err,
                           "%s%" PRIu64 " of %" PRIu64 " %s failed, so the rates are not "
                           "those of this store; mend it first: %s",
                           emulated, s->counts.failed_batches, s->counts.batches,
                           cm_of_count(s->counts.batches, "batch", "batches"),
                           s->first_failure != NULL ? s->first_failure : "no reason is known");
    case CM_CAUSE_NOTHING:
        return cm_asprintf(err,
                           "%snone of the chunks that were met is stored, so nothing was read and "
                           "the rates are those of filling: choose samples where there are data",
                           emulated);
    case CM_CAUSE_UNKNOWN:
        return cm_asprintf(err, "%stoo few steps to say where the time goes: measure more batches",
                           emulated);
    case CM_CAUSE_STEP:
        keeps_up_text(s, text, sizeof(text));
        return cm_asprintf(err, "%s%s%s", emulated, text, cached);
    default:
        cause_text(s, f, text, sizeof(text));
        return cm_asprintf(err, "%ssteps waited %.0f %% of the time: %s%s%s", emulated,
                           s->wait_share * 100, text, proposal, cached);
    }
}
