#include "bench/sentence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "bench/rules.h"

static const char *const stage_verbs[CM_READBENCH_STAGES] = {
    "reading from storage", "decoding", "copying elements into samples", "casting and unpacking"};

static bool is_planned(const cm_readbench_session *s)
{
    return s->loader != NULL && strcmp(s->loader, "planned") == 0;
}

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
        snprintf(text, size,
                 "your own loader is the bottleneck; try more workers, or the native engine "
                 "beside it");
    else if (f->cause == CM_CAUSE_LIBRARY)
        snprintf(text, size,
                 "reading and decoding through libnetcdf is the bottleneck (%.0f %% of the "
                 "loader's time), one call at a time in each process; try the native engine, "
                 "worker processes, or a Zarr copy made by nc2zarr",
                 share);
    else if (s->rates.efficiency <= 0)
        snprintf(text, size,
                 "reading from storage is the bottleneck (%.0f %% of the loader's time); try more "
                 "workers or a longer prefetch, which keep more requests under way, or faster "
                 "storage",
                 share);
    else if (f->cause == CM_CAUSE_FEW_REQUESTS)
        snprintf(text, size,
                 "reading from storage is the bottleneck (%.0f %% of the loader's time) at %.0f %% "
                 "of the rate that it had without decoding; try more workers or a longer prefetch",
                 share, s->rates.efficiency * 100);
    else
        snprintf(text, size,
                 "reading from storage is the bottleneck (%.0f %% of the loader's time), and it "
                 "gives no more; try faster storage, or a cache on a faster disk",
                 share);
}

static void shape_text(const cm_readbench_session *s, const cm_readbench_facts *f, char *text,
                       size_t size)
{
    char best[64] = "";
    if (f->spared > 0 && f->excess <= CM_RULE_EXCESS) {
        snprintf(text, size,
                 "the chunks' shape is the bottleneck (a sample takes %.1f times as long to read "
                 "and decode as with the best chunks); rechunk for these samples",
                 1 / (1 - f->spared));
        return;
    }
    if (f->excess > 0)
        snprintf(best, sizeof(best), " where %.1f would do", s->amplification[0] / f->excess);
    snprintf(text, size,
             "the chunks' shape is the bottleneck (%.1f bytes decoded for each byte of a "
             "sample%s); rechunk for these samples%s",
             s->amplification[0], best, is_planned(s) ? "" : ", or try the planned loader");
}

static void work_text(const cm_readbench_facts *f, char *text, size_t size)
{
    const double share = f->largest_stage < 0 ? 0 : f->stage_share[f->largest_stage] * 100;
    if (f->largest_stage < 0)
        snprintf(text, size, "the loader's own work is the bottleneck; try more workers");
    else if (f->cause == CM_CAUSE_FEW_WORKERS)
        snprintf(text, size,
                 "%s is the bottleneck (%.0f %% of the loader's time) while CPUs are idle; try "
                 "more workers",
                 stage_verbs[f->largest_stage], share);
    else
        snprintf(text, size,
                 "%s is the bottleneck (%.0f %% of the loader's time); try a cheaper codec, chunks "
                 "nearer to the samples, or more CPUs",
                 stage_verbs[f->largest_stage], share);
}

static void uneven_text(const cm_readbench_session *s, char *text, size_t size)
{
    char can[32], need[32];
    snprintf(text, size,
             "batches come unevenly, for the loader's capacity of %s is above the %s needed; try a "
             "longer prefetch",
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
        snprintf(text, size,
                 "the copy to the device is the bottleneck; try pinned staging, more slots, or a "
                 "smaller type");
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
        snprintf(
            text, size,
            "the CPUs are the bottleneck, all %u of them being busy; rechunk, or try a cheaper "
            "codec or more CPUs, not more workers",
            s->ncpus);
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
        n += snprintf(text + n, size - (size_t)n, ", and the loader can give %.1f times as much",
                      spare);
    if (n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "; try %s",
                 s->workers > 1 ? "fewer workers, or spend the money on faster steps"
                                : "faster steps");
}

char *cm_readbench_sentence(const cm_readbench_session *s, const cm_readbench_facts *f,
                            cm_error *err)
{
    const char *emulated = s->emulated ? "EMULATED: " : "";
    const char *cached = has_finding(s, "fits-in-memory")
                             ? "; the data fit in memory, so measure from cold before believing it"
                             : "";
    char text[512];

    switch (f->cause) {
    case CM_CAUSE_FAILURES:
        return cm_asprintf(err,
                           "%s%" PRIu64 " of %" PRIu64 " batches failed, so the rates are not "
                           "those of this store; mend it first: %s",
                           emulated, s->counts.failed_batches, s->counts.batches,
                           s->first_failure != NULL ? s->first_failure : "no reason is known");
    case CM_CAUSE_NOTHING:
        return cm_asprintf(err,
                           "%snone of the chunks that were met is stored, so nothing was read and "
                           "the rates are those of filling; try samples where there are data",
                           emulated);
    case CM_CAUSE_UNKNOWN:
        return cm_asprintf(err, "%stoo few steps to say where the time goes; try more batches",
                           emulated);
    case CM_CAUSE_STEP:
        keeps_up_text(s, text, sizeof(text));
        return cm_asprintf(err, "%s%s%s", emulated, text, cached);
    default:
        cause_text(s, f, text, sizeof(text));
        return cm_asprintf(err, "%ssteps waited %.0f %% of the time: %s%s", emulated,
                           s->wait_share * 100, text, cached);
    }
}
