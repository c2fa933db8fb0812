#include "items.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../common/print.h"
#include "base/number.h"
#include "bench/tune.h"

#define ITEM(name) static bool name(const cm_readbench_session *s, char *buf, size_t size)

static bool rate(double v, char *buf, size_t size)
{
    if (!(v > 0) || !isfinite(v))
        return false;
    cm_format_rate(v, buf, size);
    return true;
}

static bool seconds(double v, char *buf, size_t size)
{
    if (!isfinite(v) || v < 0)
        return false;
    cm_format_time(v, buf, size);
    return true;
}

static bool share(double part, double whole, char *buf, size_t size)
{
    if (!isfinite(part) || !(whole > 0))
        return false;
    cm_format_percent(part, whole, buf, size);
    return true;
}

static bool times_over(double v, char *buf, size_t size)
{
    if (!(v > 0) || !isfinite(v))
        return false;
    snprintf(buf, size, v < 10 ? "%.2f" : "%.1f", v);
    return true;
}

static bool hits(uint64_t h, uint64_t m, uint64_t evicted, char *buf, size_t size)
{
    char a[32], b[32], c[32], p[32];
    if (h + m == 0)
        return false;
    snprintf(buf, size, "%s of %s (%s), %s evicted", cm_format_count(h, a, sizeof(a)),
             cm_format_count(h + m, b, sizeof(b)),
             cm_format_percent((double)h, (double)(h + m), p, sizeof(p)),
             cm_format_count(evicted, c, sizeof(c)));
    return true;
}

ITEM(samples_rate)
{
    const double rate = cm_readbench_rate(s);
    snprintf(buf, size, rate < 100 ? "%.2f" : "%.1f", rate);
    return isfinite(rate);
}

ITEM(logical)
{
    return rate(s->rates.logical, buf, size);
}

ITEM(decoded)
{
    return rate(s->rates.decoded, buf, size);
}

ITEM(physical)
{
    return rate(s->rates.physical, buf, size);
}

ITEM(asked)
{
    return rate(s->rates.asked, buf, size);
}

/* "13.4 GB/s (12.1 GB/s to 14.0 GB/s)". */
static bool probed(const cm_readbench_rates *r, char *buf, size_t size)
{
    char median[32], least[32], most[32];
    if (!(r->storage_least < r->storage_most))
        return rate(r->storage, buf, size);
    snprintf(buf, size, "%s (%s to %s)", cm_format_rate(r->storage, median, sizeof(median)),
             cm_format_rate(r->storage_least, least, sizeof(least)),
             cm_format_rate(r->storage_most, most, sizeof(most)));
    return r->storage > 0;
}

ITEM(storage)
{
    return !s->rates.from_memory && probed(&s->rates, buf, size);
}

ITEM(page_cache)
{
    return s->rates.from_memory && probed(&s->rates, buf, size);
}

ITEM(memory_rate)
{
    return rate(s->rates.memory, buf, size);
}

ITEM(efficiency)
{
    if (s->rates.uncompared != NULL)
        snprintf(buf, size, "not compared: %s", s->rates.uncompared);
    return s->rates.uncompared != NULL ||
           (s->rates.efficiency > 0 && share(s->rates.efficiency, 1, buf, size));
}

ITEM(capacity)
{
    return rate(s->rates.capacity, buf, size);
}

ITEM(more_bytes)
{
    return times_over(s->amplification[0], buf, size);
}

ITEM(more_chunks)
{
    return times_over(s->amplification[1], buf, size);
}

ITEM(more_requests)
{
    return times_over(s->amplification[2], buf, size);
}

ITEM(once)
{
    return s->decodes_per_chunk > 0 && times_over(s->decodes_per_chunk, buf, size);
}

ITEM(whole_epoch)
{
    snprintf(buf, size, "%.0f", s->epoch_rate);
    return s->epoch_rate > 0;
}

ITEM(displaced)
{
    snprintf(buf, size, "%.3f", s->displacement);
    return isfinite(s->displacement) && s->displacement > 0;
}

ITEM(wait_p50)
{
    return s->wait.n > 0 && seconds(s->wait.p50, buf, size);
}

ITEM(wait_p95)
{
    return s->wait.n > 0 && seconds(s->wait.p95, buf, size);
}

ITEM(wait_p99)
{
    return s->wait.n > 0 && seconds(s->wait.p99, buf, size);
}

ITEM(wait_p999)
{
    return s->wait.n > 0 && seconds(s->wait.p999, buf, size);
}

ITEM(wait_max)
{
    return s->wait.n > 0 && seconds(s->wait.max, buf, size);
}

ITEM(setup)
{
    return seconds(s->setup_seconds, buf, size);
}

ITEM(first_batch)
{
    return s->counts.batches > 0 && seconds(s->first_batch_seconds, buf, size);
}

ITEM(first_step)
{
    return s->counts.batches > 0 && seconds(s->first_step_seconds, buf, size);
}

ITEM(first_epoch)
{
    return s->epoch_seconds[0] > 0 && seconds(s->epoch_seconds[0], buf, size);
}

ITEM(later_epochs)
{
    return s->epoch_seconds[1] > 0 && seconds(s->epoch_seconds[1], buf, size);
}

ITEM(waited)
{
    return s->wait.n > 0 && share(s->wait_share, 1, buf, size);
}

ITEM(utilisation)
{
    return s->wait.n > 0 && share(s->utilisation, 1, buf, size);
}

ITEM(fed)
{
    snprintf(buf, size, "%u of %u", s->accelerators.fed, s->accelerators.n);
    return s->accelerators.n > 0 && s->accelerators.needed > 0;
}

ITEM(needed)
{
    return rate(s->accelerators.needed, buf, size);
}

ITEM(got)
{
    return rate(s->accelerators.got, buf, size);
}

ITEM(workers)
{
    if (s->pool_workers > s->workers)
        snprintf(buf, size, "%u in each pool, %u in all", s->workers, s->pool_workers);
    else if (s->worker_threads > 1)
        snprintf(buf, size, "%u with %u threads%s", s->workers, s->worker_threads,
                 s->workers > 1 ? " each" : "");
    else
        snprintf(buf, size, "%u", s->workers);
    return true;
}

ITEM(in_flight)
{
    char n[32];
    if (s->batches_in_flight == 0)
        return false;
    snprintf(buf, size, "%u, %s", s->batches_in_flight,
             cm_format_size(s->in_flight_nbytes, n, sizeof(n)));
    return true;
}

ITEM(cpu)
{
    snprintf(buf, size, "%.2f", s->cpu_seconds_per_gb);
    return isfinite(s->cpu_seconds_per_gb) && s->cpu_seconds_per_gb > 0;
}

ITEM(own_cpus)
{
    snprintf(buf, size, "%.1f of %u", s->own_cpus, s->ncpus);
    return s->own_cpus >= 0 && s->ncpus > 0;
}

ITEM(other_cpus)
{
    snprintf(buf, size, "%.1f of %u", s->other_cpus, s->ncpus);
    return s->other_cpus >= 0 && s->ncpus > 0;
}

ITEM(peak)
{
    cm_format_size(s->peak_nbytes, buf, size);
    return s->peak_nbytes > 0;
}

ITEM(limit)
{
    cm_format_size(s->memory_limit, buf, size);
    return s->memory_limit > 0;
}

ITEM(cache)
{
    return hits(s->counts.cache_hits, s->counts.cache_misses, s->counts.cache_evictions, buf, size);
}

ITEM(disk)
{
    const cm_readbench_counts *c = &s->counts;
    char gave[32];
    if (!hits(c->disk_hits, c->disk_misses, c->disk_evictions, buf, size))
        return false;
    const size_t n = strlen(buf);
    snprintf(buf + n, size - n, "; it gave %s", cm_format_size(c->disk_nbytes, gave, sizeof(gave)));
    return true;
}

ITEM(resident)
{
    char before[32] = "", after[32];
    if (s->resident_before >= 0)
        cm_format_percent(s->resident_before, 1, before, sizeof(before));
    if (s->resident_after >= 0)
        snprintf(buf, size, "%s%s%s", before, *before ? " to " : "",
                 cm_format_percent(s->resident_after, 1, after, sizeof(after)));
    else
        snprintf(buf, size, "%s", before);
    if (s->temperature) {
        size_t n = strlen(buf);
        snprintf(buf + n, size - n, "%s%s", n > 0 ? ", " : "", s->temperature);
    }
    return *buf != '\0';
}

ITEM(missing)
{
    char n[32], b[32];
    if (s->counts.missing_nbytes > 0)
        snprintf(buf, size, "%s (%s of fill)",
                 cm_format_count(s->counts.missing_chunks, n, sizeof(n)),
                 cm_format_size(s->counts.missing_nbytes, b, sizeof(b)));
    else
        cm_format_count(s->counts.missing_chunks, buf, size);
    return true;
}

ITEM(failed)
{
    char b[32], c[32];
    snprintf(buf, size, "%s batches, %s chunks",
             cm_format_count(s->counts.failed_batches, b, sizeof(b)),
             cm_format_count(s->counts.failed_chunks, c, sizeof(c)));
    return s->counts.failed_batches + s->counts.failed_chunks > 0;
}

ITEM(deaths)
{
    cm_format_count(s->counts.deaths, buf, size);
    return s->counts.deaths > 0;
}

ITEM(device_name)
{
    snprintf(buf, size, "%s%s%s", s->device.name ? s->device.name : s->device.kind,
             s->device.link ? ", " : "", s->device.link ? s->device.link : "");
    return s->device.used && (s->device.name || s->device.kind);
}

ITEM(driver)
{
    snprintf(buf, size, "%s", s->device.driver ? s->device.driver : "");
    return s->device.used && *buf != '\0';
}

/* Once, before the first batch: it is in no rate. */
ITEM(locked)
{
    char n[32], t[32];
    if (!s->device.used || !(s->device.locked_nbytes > 0))
        return false;
    snprintf(buf, size, "%s in %s", cm_format_size((uint64_t)s->device.locked_nbytes, n, sizeof(n)),
             cm_format_time(s->device.lock_seconds, t, sizeof(t)));
    return true;
}

ITEM(copied)
{
    return s->device.used && rate(s->device.copied, buf, size);
}

ITEM(link_pinned)
{
    return s->device.used && rate(s->device.link_pinned, buf, size);
}

ITEM(link_pageable)
{
    return s->device.used && rate(s->device.link_pageable, buf, size);
}

ITEM(overlap)
{
    return s->device.used && share(s->device.overlap, 1, buf, size);
}

ITEM(copy_wait)
{
    return s->device.used && s->device.wait.n > 0 && seconds(s->device.wait.p95, buf, size);
}

ITEM(validated)
{
    char b[32], n[32], m[32];
    if (s->device.validated_batches == 0)
        return false;
    snprintf(buf, size, "%s batches, %s, %s different",
             cm_format_count(s->device.validated_batches, b, sizeof(b)),
             cm_format_size(s->device.validated_nbytes, n, sizeof(n)),
             cm_format_count(s->device.mismatches, m, sizeof(m)));
    return true;
}

ITEM(validated_at)
{
    return s->device.validated_batches > 0 && rate(s->device.validated_rate, buf, size);
}

ITEM(format)
{
    if (s->format == NULL)
        return false;
    snprintf(buf, size, "%s", s->format);
    return true;
}

/* Of the variable that a sample takes the most of. */
ITEM(chunks)
{
    const cm_readbench_part *most = NULL;
    for (size_t i = 0; i < s->nparts; i++)
        if (s->part[i].chunked && (most == NULL || s->part[i].nbytes > most->nbytes))
            most = &s->part[i];
    if (most == NULL)
        return false;
    cm_format_shape(most->rank, most->chunk, buf, size);
    return true;
}

const readbench_item READBENCH_ITEMS[] = {
    {"The store", "format", format, false, NULL, NULL, false},
    {NULL, "chunks", chunks, false, NULL, NULL, false},
    {"Throughput", "samples/s", samples_rate, true, "samples/s", NULL, false},
    {NULL, "logical (before any cast)", logical, true, "logical",
     "bytes of the samples that were delivered", false},
    {NULL, "decoded", decoded, false, NULL, "bytes of the chunks that they lie in", false},
    {NULL, "physical (as stored)", physical, true, "physical",
     "compressed bytes that were read for them", false},
    {NULL, "physical, while asking for it", asked, false, NULL,
     "the same, over the time that reads took", false},
    {NULL, "raw storage here", storage, false, NULL,
     "the same chunks read again and not decoded: what storage can give", false},
    {NULL, "raw page cache here", page_cache, false, NULL,
     "the same chunks read again and not decoded, from memory", false},
    {NULL, "memory copied here", memory_rate, false, NULL, "by one thread, within memory", false},
    {NULL, "reading, of that raw rate", efficiency, false, NULL,
     "how near the loader's reads came to it", false},
    {NULL, "the loader's capacity", capacity, false, NULL,
     "what it could deliver if it never waited for a step", false},
    {"Read amplification", "bytes decoded over bytes used", more_bytes, true, "bytes x",
     "1 is ideal; what is above it is decoded and thrown away", false},
    {NULL, "chunks over the fewest", more_chunks, false, NULL,
     "1 is ideal: no sample lies in more chunks than it must", false},
    {NULL, "requests over chunks", more_requests, false, NULL,
     "below 1, neighbours were read together", false},
    {NULL, "decodes of a chunk an epoch", once, false, NULL, "1 is ideal", false},
    {NULL, "samples/s of a whole epoch, foreseen", whole_epoch, false, NULL,
     "by the time that chunks and samples took here", false},
    {NULL, "displacement of the shuffle", displaced, false, NULL,
     "how far samples came from their order in the store: 0 not shuffled, 0.33 fully", false},
    {"Waiting for a batch", "p50", wait_p50, false, NULL, "half of the waits were shorter", false},
    {NULL, "p95", wait_p95, true, "wait p95", "95 of 100 were shorter", false},
    {NULL, "p99", wait_p99, false, NULL, "99 of 100 were shorter", false},
    {NULL, "p99.9", wait_p999, false, NULL, "999 of 1000 were shorter", false},
    {NULL, "max", wait_max, false, NULL, NULL, false},
    {"Training", "set-up", setup, false, NULL, "opening the store and starting workers", false},
    {NULL, "time to first batch", first_batch, false, NULL, NULL, false},
    {NULL, "first step, waiting included", first_step, false, NULL, NULL, false},
    {NULL, "first epoch", first_epoch, false, NULL, NULL, false},
    {NULL, "later epochs, mean", later_epochs, false, NULL, NULL, false},
    {NULL, "share of time the step waited", waited, true, "waited",
     "above 30 % the loader is worth a look, above 40 % it is bound by I/O", false},
    {NULL, "accelerator utilisation", utilisation, false, NULL,
     "share of time that it worked and did not wait", false},
    {NULL, "accelerators fed at 90 %", fed, true, "fed", "that would work nine tenths of the time",
     true},
    {NULL, "needed", needed, false, NULL, "bytes of samples a second for all of them", false},
    {NULL, "got", got, false, NULL, NULL, false},
    {"Resources", "workers", workers, false, NULL, NULL, false},
    {NULL, "batches in flight", in_flight, false, NULL, "asked for and not yet used, at most",
     false},
    {NULL, "CPU seconds a GB", cpu, true, "CPU s/GB", "for a GB of samples", false},
    {NULL, "CPUs busy with this run", own_cpus, false, NULL, NULL, false},
    {NULL, "CPUs busy with other programs", other_cpus, false, NULL, NULL, false},
    {NULL, "peak memory", peak, true, "peak memory", NULL, false},
    {NULL, "memory limit", limit, false, NULL, NULL, false},
    {NULL, "cache hits", cache, false, NULL, NULL, false},
    {NULL, "disk cache hits", disk, false, NULL, NULL, false},
    {NULL, "store in the page cache", resident, false, NULL,
     "share of it that was in memory, before and after", false},
    {NULL, "missing chunks", missing, false, NULL, "not stored: readers get the fill value", false},
    {NULL, "failed", failed, false, NULL, NULL, false},
    {NULL, "workers that died", deaths, false, NULL, NULL, false},
    {"Device", "device", device_name, false, NULL, NULL, false},
    {NULL, "driver", driver, false, NULL, NULL, false},
    {NULL, "page-locked, apart", locked, false, NULL,
     "memory that the device copies from, made once", false},
    {NULL, "batches copied at", copied, false, NULL, NULL, false},
    {NULL, "plain pinned copy here", link_pinned, false, NULL,
     "from memory that is page-locked, nothing else at work", false},
    {NULL, "plain pageable copy here", link_pageable, false, NULL, "from other memory", false},
    {NULL, "copying during steps", overlap, false, NULL,
     "share of the copying that no step waited for", false},
    {NULL, "waiting for copies p95", copy_wait, false, NULL, NULL, false},
    {"Validation", "compared", validated, false, NULL, NULL, false},
    {NULL, "reading again and comparing", validated_at, false, NULL, NULL, false},
    {NULL, NULL, NULL, false, NULL, NULL, false},
};

bool readbench_item_any(const readbench_item *item, const cm_readbench_report *r)
{
    char buf[READBENCH_ITEM];
    for (size_t i = 0; i < r->nsessions; i++)
        if (item->value(&r->session[i], buf, sizeof(buf)))
            return true;
    return false;
}

char *readbench_feeds(const cm_readbench_session *s, char *buf, size_t size)
{
    char need[32], had[32];
    if (!(s->accelerators.needed > 0))
        snprintf(buf, size, "feeds: a step that takes no time needs more than anything gives");
    else
        snprintf(buf, size, "feeds %u of %u accelerator%s at 90 %%: needs %s, got %s",
                 s->accelerators.fed, s->accelerators.n, cm_of_count(s->accelerators.n, "", "s"),
                 cm_format_rate(s->accelerators.needed, need, sizeof(need)),
                 cm_format_rate(s->accelerators.got, had, sizeof(had)));
    return buf;
}

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

char *readbench_how(const cm_readbench_session *s, char *buf, size_t size)
{
    /* The planned loader shuffles samples that lie where the order says. */
    const bool planned = s->loader && strcmp(s->loader, "planned") == 0;
    int n = snprintf(buf, size, "%s, %s engine, %s %s, %s loader", or_dash(s->format),
                     or_dash(s->engine), or_dash(s->order),
                     planned ? "places in shuffled blocks" : "order", or_dash(s->loader));
    if (n < 0 || (size_t)n >= size)
        return buf;
    if (s->mode && strcmp(s->mode, "sync") == 0)
        snprintf(buf + n, size - (size_t)n, ", sync");
    else
        snprintf(buf + n, size - (size_t)n, ", %u worker%s in %s", s->workers,
                 cm_of_count(s->workers, "", "s"), or_dash(s->mode));
    return buf;
}
