/* The document of a run: --json, summary.json and summary.yaml, described by tools/schema. */
#include <math.h>
#include <stdlib.h>

#include "../common/census_json.h"
#include "../common/print.h"
#include "../common/remote.h"
#include "bench/tune.h"
#include "remedy.h"

/* A number that was measured, or null where it was not. */
static void number(cm_document *d, cm_json *o, const char *name, double v)
{
    cm_document_double(d, o, name, v, isfinite(v));
}

static void known(cm_document *d, cm_json *o, const char *name, double v)
{
    cm_document_double(d, o, name, v, isfinite(v) && v > 0);
}

static cm_json *times(cm_document *d, const cm_readbench_times *t)
{
    cm_json *o = cm_json_object();
    cm_document_u64(d, o, "n", t->n);
    number(d, o, "total", t->total);
    number(d, o, "mean", t->mean);
    number(d, o, "p50", t->p50);
    number(d, o, "p95", t->p95);
    number(d, o, "p99", t->p99);
    number(d, o, "p999", t->p999);
    number(d, o, "max", t->max);
    return o;
}

static cm_json *part(cm_document *d, const cm_readbench_part *p)
{
    cm_json *o = cm_json_object();
    cm_document_text(d, o, "variable", p->variable);
    cm_document_text(d, o, "type", p->type);
    cm_document_text(d, o, "stored_type", p->stored_type);
    cm_document_names(d, o, "dimensions", p->rank, p->dim_name);
    cm_document_shape(d, o, "shape", p->rank, p->shape, true);
    cm_document_shape(d, o, "sample", p->rank, p->sample, true);
    cm_document_shape(d, o, "chunk", p->rank, p->chunk, p->chunked);
    cm_document_shape(d, o, "shard", p->rank, p->shard, p->sharded);
    cm_document_shape(d, o, "best_chunk", p->rank, p->best_chunk, p->best_chunk[0] > 0);
    cm_document_put(d, o, "lag", cm_json_i64(p->lag));
    cm_document_bool(d, o, "static", p->is_static);
    cm_document_u64(d, o, "nbytes", p->nbytes);
    return o;
}

static cm_json *parts(cm_document *d, const cm_readbench_session *s)
{
    cm_json *a = cm_json_array();
    for (size_t i = 0; i < s->nparts; i++)
        cm_document_append(d, a, part(d, &s->part[i]));
    return a;
}

cm_json *readbench_settings(cm_document *d, const cm_readbench_session *s)
{
    cm_json *o = cm_json_object();
    for (size_t i = 0; i < s->nsettings; i++)
        cm_document_text(d, o, s->setting[i].name, s->setting[i].value);
    return o;
}

static cm_json *loader(cm_document *d, const cm_readbench_session *s)
{
    cm_json *o = cm_json_object();
    cm_document_text(d, o, "kind", s->loader);
    cm_document_text(d, o, "mode", s->mode);
    cm_document_text(d, o, "pool", s->pool);
    cm_document_u64(d, o, "workers", s->workers);
    cm_document_u64(d, o, "pool_workers", s->pool_workers);
    cm_document_u64(d, o, "worker_threads", s->worker_threads);
    cm_document_u64(d, o, "prefetch", s->prefetch);
    cm_document_u64(d, o, "ranks", s->ranks);
    cm_document_u64(d, o, "batch", s->batch);
    cm_document_u64(d, o, "batch_nbytes", s->batch_nbytes);
    cm_document_known_u64(d, o, "window", s->window, s->window > 0);
    cm_document_double(d, o, "decodes_per_chunk", s->decodes_per_chunk, s->decodes_per_chunk > 0);
    cm_document_double(d, o, "blocks_mixed", s->blocks_mixed, s->blocks_mixed > 0);
    cm_document_double(d, o, "epoch_rate", s->epoch_rate, s->epoch_rate > 0);
    cm_document_double(d, o, "displacement", s->displacement, s->displacement >= 0);
    cm_document_u64(d, o, "batches_in_flight", s->batches_in_flight);
    cm_document_u64(d, o, "in_flight_nbytes", s->in_flight_nbytes);
    return o;
}

static cm_json *training(cm_document *d, const cm_readbench_session *s)
{
    cm_json *o = cm_json_object();
    number(d, o, "setup_seconds", s->setup_seconds);
    number(d, o, "first_batch_seconds", s->first_batch_seconds);
    number(d, o, "first_step_seconds", s->first_step_seconds);
    known(d, o, "first_epoch_seconds", s->epoch_seconds[0]);
    known(d, o, "later_epoch_seconds", s->epoch_seconds[1]);
    number(d, o, "wall_seconds", s->wall_seconds);
    cm_document_put(d, o, "wait", times(d, &s->wait));
    cm_document_put(d, o, "step", times(d, &s->step));
    cm_document_put(d, o, "batch_time", times(d, &s->batch_time));
    number(d, o, "wait_share", s->wait_share);
    number(d, o, "utilisation", s->utilisation);
    return o;
}

static cm_json *stages(cm_document *d, const cm_readbench_session *s)
{
    double all = 0;
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
        all += s->stage[k].total;
    cm_json *o = cm_json_object();
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++) {
        cm_json *stage = times(d, &s->stage[k]);
        cm_document_double(d, stage, "share", s->stage[k].total / all, all > 0);
        cm_document_put(d, o, READBENCH_STAGE[k], stage);
    }
    return o;
}

static cm_json *breakdown(cm_document *d, const cm_readbench_session *s, double host_share)
{
    readbench_breakdown b;
    readbench_break_down(s, host_share, &b);
    cm_json *o = cm_json_object();
    cm_document_u64(d, o, "n", b.n);
    number(d, o, "step", b.step);
    number(d, o, "kernel", b.kernel);
    number(d, o, "memcpy", b.memcpy);
    number(d, o, "memset", b.memset);
    number(d, o, "runtime", b.runtime);
    number(d, o, "loader", b.loader);
    number(d, o, "cpu", b.cpu);
    number(d, o, "other", b.other);
    return o;
}

static cm_json *predicted(cm_document *d, const cm_readbench_session *s)
{
    const cm_readbench_predicted *p = &s->predicted;
    cm_json *o = cm_json_object();
    cm_document_double(d, o, "chunks_per_sample", p->chunks, p->known);
    cm_document_double(d, o, "decoded_nbytes_per_sample", p->decoded_nbytes, p->known);
    cm_document_double(d, o, "requests_per_sample", p->requests, p->known);
    cm_document_double(d, o, "fewest_chunks_per_sample", p->fewest_chunks, p->known);
    cm_document_double(d, o, "best_decoded_nbytes_per_sample", p->best_decoded_nbytes,
                       p->best_decoded_nbytes > 0);
    cm_document_double(d, o, "seconds_per_sample", p->read_seconds, p->read_seconds > 0);
    cm_document_double(d, o, "best_seconds_per_sample", p->best_read_seconds,
                       p->best_read_seconds > 0);
    cm_document_double(d, o, "least_times_the_best", p->least_times, p->least_times > 0);
    cm_document_double(d, o, "most_times_the_best", p->most_times, p->most_times > 0);
    cm_document_double(d, o, "planned_chunks_per_sample", p->planned_per_sample,
                       p->planned_per_sample > 0);
    cm_document_double(d, o, "light_seconds_per_sample", p->light_read_seconds,
                       p->light_read_seconds > 0);
    cm_document_text(d, o, "costs", p->costs);
    bool counted = p->planned_chunks > 0;
    cm_document_known_u64(d, o, "chunks", p->planned_chunks, counted);
    cm_document_known_u64(d, o, "decoded_nbytes", p->planned_decoded_nbytes, counted);
    cm_document_double(d, o, "batch_seconds", p->batch_seconds, p->batch_seconds > 0);
    cm_document_double(d, o, "batch_cpu_seconds", p->batch_cpu_seconds, p->batch_seconds > 0);
    cm_document_double(d, o, "batch_requests", p->batch_requests, p->batch_seconds > 0);
    return o;
}

static cm_json *measured(cm_document *d, const cm_readbench_session *s)
{
    const cm_readbench_measured *m = &s->measured;
    const bool known = m->rounds > 0;
    cm_json *o = cm_json_object();
    cm_document_double(d, o, "batch_seconds", m->batch_seconds, known);
    cm_document_double(d, o, "batch_cpu_seconds", m->batch_cpu_seconds, known);
    cm_document_u64(d, o, "batches", m->batches);
    cm_document_u64(d, o, "rounds", m->rounds);
    return o;
}

static cm_json *counts(cm_document *d, const cm_readbench_session *s)
{
    const cm_readbench_counts *c = &s->counts;
    cm_json *o = cm_json_object();
    cm_document_u64(d, o, "batches", c->batches);
    cm_document_u64(d, o, "samples", c->samples);
    cm_document_u64(d, o, "failed_batches", c->failed_batches);
    cm_document_u64(d, o, "chunks", c->chunks);
    cm_document_u64(d, o, "decoded", c->decoded);
    cm_document_u64(d, o, "requests", c->requests);
    cm_document_u64(d, o, "stored_nbytes", c->stored_nbytes);
    cm_document_u64(d, o, "decoded_nbytes", c->decoded_nbytes);
    cm_document_u64(d, o, "logical_nbytes", c->logical_nbytes);
    cm_document_u64(d, o, "cache_hits", c->cache_hits);
    cm_document_u64(d, o, "cache_misses", c->cache_misses);
    cm_document_u64(d, o, "cache_evictions", c->cache_evictions);
    cm_document_u64(d, o, "disk_hits", c->disk_hits);
    cm_document_u64(d, o, "disk_misses", c->disk_misses);
    cm_document_u64(d, o, "disk_evictions", c->disk_evictions);
    cm_document_u64(d, o, "disk_nbytes", c->disk_nbytes);
    cm_document_u64(d, o, "missing_chunks", c->missing_chunks);
    cm_document_u64(d, o, "missing_nbytes", c->missing_nbytes);
    cm_document_u64(d, o, "failed_chunks", c->failed_chunks);
    cm_document_u64(d, o, "deaths", c->deaths);
    return o;
}

static cm_json *amplification(cm_document *d, const cm_readbench_session *s)
{
    static const char *const NAMES[] = {"bytes", "chunks", "requests"};
    cm_json *o = cm_json_object();
    for (size_t k = 0; k < 3; k++)
        known(d, o, NAMES[k], s->amplification[k]);
    return o;
}

static cm_json *rates(cm_document *d, const cm_readbench_session *s)
{
    const cm_readbench_rates *r = &s->rates;
    cm_json *o = cm_json_object();
    number(d, o, "samples", cm_readbench_rate(s));
    number(d, o, "logical", r->logical);
    number(d, o, "decoded", r->decoded);
    number(d, o, "physical", r->physical);
    known(d, o, "asked", r->asked);
    known(d, o, "storage", r->storage);
    known(d, o, "storage_least", r->storage_least);
    known(d, o, "storage_most", r->storage_most);
    known(d, o, "storage_more", r->storage_more);
    cm_document_known_u64(d, o, "storage_more_threads", r->more_threads, r->storage_more > 0);
    known(d, o, "memory", r->memory);
    known(d, o, "efficiency", r->efficiency);
    known(d, o, "capacity", r->capacity);
    return o;
}

static cm_json *resources(cm_document *d, const cm_readbench_session *s)
{
    cm_json *o = cm_json_object();
    cm_document_u64(d, o, "cpus", s->cpus);
    cm_document_double(d, o, "own_cpus", s->own_cpus, s->own_cpus >= 0);
    cm_document_double(d, o, "other_cpus", s->other_cpus, s->other_cpus >= 0);
    number(d, o, "cpu_seconds", s->cpu_seconds);
    number(d, o, "cpu_seconds_per_gb", s->cpu_seconds_per_gb);
    cm_document_u64(d, o, "peak_nbytes", s->peak_nbytes);
    cm_document_known_u64(d, o, "memory_limit", s->memory_limit, s->memory_limit > 0);
    cm_document_u64(d, o, "memory_planned", s->memory_planned);
    cm_document_known_u64(d, o, "store_nbytes", s->store_nbytes, s->store_nbytes > 0);
    cm_document_double(d, o, "resident_before", s->resident_before, s->resident_before >= 0);
    cm_document_double(d, o, "resident_after", s->resident_after, s->resident_after >= 0);
    cm_document_text(d, o, "temperature", s->temperature);
    return o;
}

static cm_json *device(cm_document *d, const cm_readbench_device *v)
{
    cm_json *o = cm_json_object();
    cm_document_text(d, o, "kind", v->kind);
    cm_document_text(d, o, "name", v->name);
    cm_document_text(d, o, "driver", v->driver);
    cm_document_text(d, o, "link", v->link);
    number(d, o, "lock_seconds", v->lock_seconds);
    number(d, o, "locked_nbytes", v->locked_nbytes);
    known(d, o, "link_pinned", v->link_pinned);
    known(d, o, "link_pageable", v->link_pageable);
    known(d, o, "copied", v->copied);
    number(d, o, "overlap", v->overlap);
    cm_document_put(d, o, "wait", times(d, &v->wait));
    return o;
}

static cm_json *validation(cm_document *d, const cm_readbench_device *v)
{
    cm_json *o = cm_json_object();
    cm_document_u64(d, o, "batches", v->validated_batches);
    cm_document_u64(d, o, "nbytes", v->validated_nbytes);
    cm_document_u64(d, o, "mismatches", v->mismatches);
    known(d, o, "rate", v->validated_rate);
    return o;
}

static cm_json *accelerators(cm_document *d, const cm_readbench_accelerators *a)
{
    cm_json *o = cm_json_object();
    cm_document_u64(d, o, "n", a->n);
    cm_document_u64(d, o, "fed", a->fed);
    number(d, o, "needed", a->needed);
    number(d, o, "got", a->got);
    return o;
}

static void remedy(cm_document *d, cm_json *o, const readbench_run *run,
                   const cm_readbench_session *s, const char *what)
{
    char *command = readbench_remedy(run, s, what);
    cm_document_text(d, o, "command", command);
    free(command);
}

static void proposal(cm_document *d, cm_json *to, const readbench_run *run,
                     const cm_readbench_session *s)
{
    const cm_readbench_proposal *p = &s->proposal;
    cm_json *o = cm_document_object(d, to, "proposal", p->change != CM_CHANGE_NONE);
    if (p->change == CM_CHANGE_NONE)
        return;
    char *command = readbench_proposed_command(run, s);
    cm_document_text(d, o, "change", cm_readbench_change_name(p->change));
    number(d, o, "gain", p->gain);
    cm_document_text(d, o, "command", command);
    free(command);
}

static cm_json *diagnosis(cm_document *d, const readbench_run *run, const cm_readbench_session *s)
{
    const char *cause = cm_readbench_cause_name(s->cause);
    cm_json *o = cm_json_object();
    cm_document_text(d, o, "cause", cause);
    cm_document_text(d, o, "sentence", s->sentence);
    proposal(d, o, run, s);
    remedy(d, o, run, s, cause);
    return o;
}

static cm_json *findings(cm_document *d, const readbench_run *run, const cm_readbench_session *s)
{
    cm_json *a = cm_json_array();
    for (size_t i = 0; i < s->nfindings; i++) {
        cm_json *o = cm_json_object();
        cm_document_text(d, o, "rule", s->finding[i].rule);
        cm_document_text(d, o, "sentence", s->finding[i].sentence);
        remedy(d, o, run, s, s->finding[i].rule);
        cm_document_append(d, a, o);
    }
    return a;
}

static cm_json *rounds(cm_document *d, const cm_readbench_session *s)
{
    cm_json *a = cm_json_array();
    for (unsigned i = 0; i < s->nrounds; i++)
        cm_document_append(d, a, cm_json_double(s->round[i]));
    return a;
}

static cm_json *session(cm_document *d, const readbench_run *run, size_t i)
{
    const cm_readbench_report *r = run->report;
    const cm_readbench_session *s = &r->session[i];
    cm_json *o = cm_json_object();
    cm_document_text(d, o, "label", s->label);
    cm_document_text(d, o, "sentence", s->sentence);
    cm_document_text(d, o, "store", s->store);
    cm_document_text(d, o, "format", s->format);
    cm_document_census(d, o, "census", s->census.narrays > 0 ? &s->census : NULL);
    cm_document_text(d, o, "engine", s->engine);
    cm_document_text(d, o, "io", s->io);
    cm_document_text(d, o, "order", s->order);
    cm_document_bool(d, o, "emulated", s->emulated);
    cm_document_text(d, o, "emulation", s->emulation);
    cm_document_double(d, o, "ratio", r->ratio ? r->ratio[i] : 0,
                       r->ratio && isfinite(r->ratio[i]));
    const bool spread = r->least_ratio != NULL && r->most_ratio != NULL;
    cm_document_double(d, o, "least_ratio", spread ? r->least_ratio[i] : 0, spread);
    cm_document_double(d, o, "most_ratio", spread ? r->most_ratio[i] : 0, spread);
    cm_document_put(d, o, "rounds", rounds(d, s));
    cm_document_put(d, o, "rates", rates(d, s));
    cm_document_put(d, o, "accelerators", accelerators(d, &s->accelerators));
    cm_document_put(d, o, "training", training(d, s));
    cm_document_put(d, o, "stages", stages(d, s));
    cm_document_put(d, o, "breakdown", breakdown(d, s, run->host_share));
    cm_document_put(d, o, "loader", loader(d, s));
    cm_document_put(d, o, "counts", counts(d, s));
    cm_document_put(d, o, "predicted", predicted(d, s));
    cm_document_put(d, o, "measured", measured(d, s));
    cm_document_put(d, o, "amplification", amplification(d, s));
    cm_document_put(d, o, "resources", resources(d, s));
    if (s->device.used)
        cm_document_put(d, o, "device", device(d, &s->device));
    else
        cm_document_null(d, o, "device");
    if (s->device.validated_batches > 0)
        cm_document_put(d, o, "validation", validation(d, &s->device));
    else
        cm_document_null(d, o, "validation");
    cm_document_put(d, o, "diagnosis", diagnosis(d, run, s));
    cm_document_put(d, o, "findings", findings(d, run, s));
    cm_document_text(d, o, "first_failure", s->first_failure);
    cm_document_put(d, o, "sample", parts(d, s));
    cm_document_put(d, o, "settings", readbench_settings(d, s));
    return o;
}

static const char *outcome(const cm_error *failure)
{
    if (failure == NULL || failure->status == CM_OK)
        return "done";
    if (failure->status == CM_EDIFFER)
        return "differs";
    return failure->status == CM_ECANCELED ? "canceled" : "failed";
}

int readbench_document(const readbench_run *run, size_t only, cm_json **out, cm_error *err)
{
    const cm_readbench_report *r = run->report;
    cm_document d = {CM_OK, err};
    cm_json *o = cm_json_object(), *a = cm_json_array();

    cm_document_head(&d, o, "readbench/1", outcome(run->failure), run->failure);
    cm_document_text(&d, o, "started", run->started);
    cm_document_text(&d, o, "command", run->command);
    cm_document_text(&d, o, "out", run->out);
    cm_document_bool(&d, o, "emulated", readbench_emulated(r));
    for (size_t i = 0; i < r->nsessions; i++)
        if (only == SIZE_MAX || only == i)
            cm_document_append(&d, a, session(&d, run, i));
    bool all = only == SIZE_MAX;
    cm_document_put(&d, o, "sessions", a);
    cm_document_known_u64(&d, o, "best", r->best, all && r->best < r->nsessions);
    cm_document_known_u64(&d, o, "baseline", r->baseline, all && r->baseline < r->nsessions);
    cm_document_text(&d, o, "reason", all ? r->reason : NULL);
    char *tuned =
        all && r->best < r->nsessions ? readbench_tuned_command(run, &r->session[r->best]) : NULL;
    cm_document_text(&d, o, "tuned_command", tuned);
    free(tuned);
    cm_document_text(&d, o, "data_loader", all ? r->data_loader : NULL);
    cm_document_texts(&d, o, "warnings", r->warning, r->nwarnings);
    cm_document_texts(&d, o, "notes", r->note, r->nnotes);
    if (all) /* not counted for each session */
        cm_remote_document(&d, o, run->net);
    if (d.status != CM_OK) {
        cm_json_free(o);
        return d.status;
    }
    *out = o;
    return CM_OK;
}

int readbench_print_json(const readbench_run *run, cm_error *err)
{
    cm_document d = {CM_OK, err};
    cm_json *o = NULL;
    int rc = readbench_document(run, SIZE_MAX, &o, err);
    return rc != CM_OK ? rc : cm_document_print(&d, o, stdout);
}
