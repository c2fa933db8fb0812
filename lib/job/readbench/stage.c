/*
 * Batches on their way to the device: each rank has a device of its own and a
 * stage, the arena's share of the rank is where its batches lie, page-locked where
 * staging is pinned.  So workers decode straight into what the device fetches.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job/readbench/readbench.h"

static uint64_t tag_of(const cm_bench_rank *r, uint64_t epoch, uint64_t number)
{
    return epoch * r->share.nbatches + number;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int open_decoder(cm_bench *b, cm_bench_rank *r, cm_stage_options *options, cm_error *err)
{
    const char *name[CM_BENCH_MAX_PARTS];
    for (size_t i = 0; i < b->shared.data.narrays; i++)
        name[i] = cm_bench_array_name(b->shared.data.array[i]);
    const cm_decoder_options o = {.device = r->device,
                                  .library = b->options->nvcomp,
                                  .limits = b->bounds.limits,
                                  .nbuffers = cm_stage_nbuffers(options),
                                  .array = name,
                                  .narrays = b->shared.data.narrays};
    int rc = cm_decoder_open(&o, &r->decoder, err);
    options->decoder = r->decoder;
    options->batch_nbytes = b->session->batch_nbytes;
    options->parcel_nbytes = b->bounds.limits.parcel_nbytes;
    return rc;
}

static int open_rank(cm_bench *b, cm_bench_rank *r, cm_error *err)
{
    const struct cm_readbench_hook *hook = b->options->hook;
    const cm_stage_options base = {
        .staging = b->setting.pinned ? CM_STAGING_PINNED : CM_STAGING_PAGEABLE,
        .synchronous = b->options->no_overlap,
        .batch_nbytes = b->slot_nbytes,
        .step = b->options->device_step ? CM_STEP_DEVICE : CM_STEP_TIME,
        /* A rank sleeps by itself, as long as the batch asks for, and so that a signal wakes it. */
        .step_ns =
            b->options->device_step
                ? (uint64_t)(b->setting.step_ns + b->setting.step_per_sample_ns * (double)b->batch)
                : 0};
    cm_stage_options options = base;
    int rc =
        cm_device_open(b->options->device, hook != NULL ? hook->device : NULL, &r->device, err);
    options.device = r->device;
    if (rc == CM_OK && b->setting.device_decode)
        rc = open_decoder(b, r, &options, err);
    if (rc == CM_OK)
        rc = cm_stage_open(&options, &r->stage, err);
    if (rc == CM_OK)
        rc =
            cm_stage_lock(r->stage, b->arena.data + r->index * b->rank_nbytes, b->rank_nbytes, err);
    if (rc == CM_OK)
        rc = cm_stage_begin(r->stage, CM_VALIDATE_NONE, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "--device %s", b->options->device);
    return rc;
}

static char *link_text(const cm_device_link *link, cm_error *err)
{
    static const char *const speed[] = {"?", "1.0", "2.0", "3.0", "4.0", "5.0", "6.0", "7.0"};
    const unsigned g = link->generation < sizeof speed / sizeof *speed ? link->generation : 0;
    return cm_asprintf(err, "PCIe %s x%u", speed[g], link->width);
}

static int describe(cm_bench *b, cm_error *err)
{
    cm_readbench_device *out = &b->session->device;
    const cm_device_info *info = cm_device_get_info(b->rank[0].device);
    cm_link_rates rates;
    out->used = true;
    out->kind = cm_strdup(info->text, err);
    out->name = cm_strdup(info->name, err);
    out->driver =
        cm_asprintf(err, "%s%s%s%s", info->driver, info->driver[0] && info->api[0] ? ", " : "",
                    info->api[0] ? "CUDA " : "", info->api);
    if (out->kind == NULL || out->name == NULL || out->driver == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < b->setting.ranks; i++) {
        const cm_lock_report *lock = cm_stage_locked(b->rank[i].stage);
        out->lock_seconds += (double)(lock->alloc_ns + lock->touch_ns + lock->lock_ns) / 1e9;
        out->locked_nbytes += lock->locked ? (double)lock->nbytes : 0;
        if (i == 0 && b->setting.pinned && !lock->locked) {
            int rc =
                cm_bench_warn(b, err, "the memory of batches is not page-locked: %s", lock->note);
            if (rc != CM_OK)
                return rc;
        }
    }
    if (b->rank[0].decoder != NULL &&
        (out->decode.library = cm_strdup(cm_decoder_library(b->rank[0].decoder), err)) == NULL)
        return CM_ENOMEM;
    const struct cm_readbench_hook *hook = b->options->hook;
    if (hook != NULL && hook->no_probe)
        return CM_OK;
    int rc = cm_probe_link(b->rank[0].device, b->session->batch_nbytes, &rates, err);
    if (rc != CM_OK)
        return rc;
    out->link_pinned = rates.pinned;
    out->link_pageable = rates.pageable;
    if (rates.link.generation > 0 && (out->link = link_text(&rates.link, err)) == NULL)
        return CM_ENOMEM;
    return CM_OK;
}

int cm_bench_stage_open(cm_bench *b, cm_error *err)
{
    int rc = CM_OK;
    for (unsigned i = 0; i < b->setting.ranks && rc == CM_OK; i++)
        rc = open_rank(b, &b->rank[i], err);
    return rc == CM_OK ? describe(b, err) : rc;
}

/* The report of the timed pass outlives the stage; the validating pass has one of its own. */
static void keep_timed(cm_bench_rank *r)
{
    if (r->has_timed || r->stage == NULL)
        return;
    r->timed = *cm_stage_get_report(r->stage);
    r->has_timed = true;
}

void cm_bench_stage_close(cm_bench *b)
{
    for (unsigned i = 0; b->rank != NULL && i < b->setting.ranks; i++) {
        cm_bench_rank *r = &b->rank[i];
        keep_timed(r);
        cm_stage_free(r->stage);
        cm_decoder_free(r->decoder);
        cm_device_close(r->device);
        r->stage = NULL;
        r->decoder = NULL;
        r->device = NULL;
    }
}

/* ---- one batch ----------------------------------------------------------------------------- */

int cm_bench_stage_submit(cm_bench_rank *r, const cm_load_batch *batch, uint64_t epoch)
{
    return cm_stage_submit(r->stage, tag_of(r, epoch, batch->number), batch->data, batch->nbytes,
                           &r->err);
}

int cm_bench_stage_wait(cm_bench_rank *r, cm_staged *staged)
{
    return cm_stage_wait(r->stage, staged, &r->err);
}

int cm_bench_stage_step(cm_bench_rank *r)
{
    return cm_stage_step(r->stage, &r->err);
}

int cm_bench_stage_stepped(cm_bench_rank *r, cm_stage_step_times *times)
{
    return cm_stage_release(r->stage, times, &r->err);
}

/* ---- validation ---------------------------------------------------------------------------- */

static size_t make_spans(const cm_bench *b, const cm_load_batch *batch, cm_stage_span *span)
{
    const cm_bench_space *s = &b->shared.space;
    uint64_t at = 0;
    for (size_t p = 0; p < s->nparts; p++) {
        span[p] = (cm_stage_span){b->shared.data.array[s->part[p].array]->name, at,
                                  batch->nsamples * s->part_nbytes[p]};
        at += span[p].nbytes;
    }
    return s->nparts;
}

/* A batch that differs, or was not decoded, is counted; the first one's sentence is kept. */
static int validate_batch(void *context, const cm_load_batch *batch)
{
    cm_bench_direct *d = context;
    cm_bench_rank *r = d->rank;
    cm_stage_span span[CM_BENCH_MAX_PARTS];
    cm_error differs = {0};
    cm_staged staged;
    int rc = cm_bench_stage_submit(r, batch, 0);
    if (rc == CM_OK && r->decoder != NULL)
        rc = cm_bench_direct_read(d, batch);
    if (rc != CM_OK)
        return rc;
    rc = cm_bench_stage_wait(r, &staged);
    if (rc == CM_EFORMAT) {
        differs = r->err;
        r->nmismatches++;
        rc = CM_EDIFFER;
    } else if (rc == CM_OK) {
        const size_t n = make_spans(r->bench, batch, span);
        rc = cm_stage_validate(r->stage, r->decoder != NULL ? d->batch.data : NULL, span, n, NULL,
                               &differs);
    } else
        return rc;
    if (rc == CM_EDIFFER) {
        if (r->first_failure == NULL &&
            (r->first_failure = cm_strdup(differs.text, &r->err)) == NULL)
            return CM_ENOMEM;
    } else if (rc != CM_OK) {
        r->err = differs;
        return rc;
    }
    return cm_bench_stage_stepped(r, NULL);
}

int cm_bench_stage_validate(cm_bench_rank *r)
{
    const cm_bench *b = r->bench;
    const cm_validate how =
        b->setting.validate == CM_READBENCH_VALIDATE_FULL ? CM_VALIDATE_FULL : CM_VALIDATE_CHECKSUM;
    keep_timed(r);
    cm_bench_direct direct;
    int rc = cm_bench_direct_open(r, &direct);
    if (rc == CM_OK)
        rc = cm_stage_begin(r->stage, how, &r->err);
    if (rc == CM_OK)
        rc = cm_bench_rank_again(r, validate_batch, &direct);
    cm_bench_direct_release(&direct);
    const cm_stage_report *report = cm_stage_get_report(r->stage);
    r->nvalidated += report->validated_nbytes;
    r->nmismatches += report->nmismatches;
    return rc;
}

/* ---- numbers ------------------------------------------------------------------------------- */

int cm_bench_stage_summarise(cm_bench *b, cm_error *err)
{
    cm_readbench_session *s = b->session;
    cm_readbench_device *out = &s->device;
    double nbytes = 0, copying = 0, hidden = 0;
    size_t n = 0;
    double *wait = cm_calloc(s->nrecords + 1, sizeof *wait, err);
    if (wait == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < b->setting.ranks; i++) {
        const cm_stage_report *t = &b->rank[i].timed;
        nbytes += (double)t->nbytes;
        copying += (double)t->copy_ns / 1e9;
        hidden += (double)t->hidden_ns / 1e9;
    }
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *x = &s->record[i];
        if (x->failed || (x->epoch == 0 && x->number == 0)) /* reported apart */
            continue;
        const uint64_t from = x->got_ns > x->want_ns ? x->got_ns : x->want_ns;
        wait[n++] = x->ready_ns > from ? (double)(x->ready_ns - from) / 1e9 : 0;
    }
    out->wait = cm_bench_times(wait, n);
    free(wait);
    out->copied = copying > 0 ? nbytes / copying : 0;
    out->overlap = copying > 0 ? hidden / copying : 0;
    return CM_OK;
}
