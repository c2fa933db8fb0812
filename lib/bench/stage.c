/* Measurements of the device, and checks of its copies. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/readbench.h"

static char *link_text(const cm_device_link *link, cm_error *err)
{
    static const char *const speed[] = {"?", "1.0", "2.0", "3.0", "4.0", "5.0", "6.0", "7.0"};
    const unsigned g = link->generation < sizeof speed / sizeof *speed ? link->generation : 0;
    return cm_asprintf(err, "PCIe %s x%u", speed[g], link->width);
}

int cm_bench_stage_open(cm_bench *b, cm_error *err)
{
    const cm_readbench_options *o = b->options;
    const double step_ns =
        b->setting.step_ns + b->setting.step_per_sample_ns * (double)b->load.batch;
    const cm_stage_options steps = {
        .synchronous = o->no_overlap,
        .step = o->device_step ? CM_STEP_DEVICE : CM_STEP_TIME,
        /* A rank sleeps by itself, as long as the batch asks for, and so that a signal wakes it. */
        .step_ns = o->device_step ? (uint64_t)step_ns : 0};
    return cm_load_stage_open(&b->load, &steps, err);
}

int cm_bench_stage_describe(cm_bench *b, cm_error *err)
{
    cm_readbench_device *out = &b->session->device;
    const cm_device_info *info = cm_device_get_info(b->rank[0].load->device);
    cm_link_rates rates;
    out->used = true;
    out->kind = cm_strdup(info->text, err);
    out->name = cm_strdup(info->name, err);
    out->driver =
        cm_asprintf(err, "%s%s%s%s", info->driver, info->driver[0] && info->api[0] ? ", " : "",
                    info->api[0] ? "CUDA " : "", info->api);
    if (out->kind == NULL || out->name == NULL || out->driver == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < b->load.setting.ranks; i++) {
        const cm_lock_report *lock = cm_stage_locked(b->rank[i].load->stage);
        out->lock_seconds += (double)(lock->alloc_ns + lock->touch_ns + lock->lock_ns) / 1e9;
        out->locked_nbytes += lock->locked ? (double)lock->nbytes : 0;
        if (i == 0 && b->load.setting.pinned && !lock->locked) {
            int rc =
                cm_bench_warn(b, err, "the memory of batches is not page-locked: %s", lock->note);
            if (rc != CM_OK)
                return rc;
        }
    }
    const struct cm_readbench_hook *hook = b->options->hook;
    if (hook != NULL && hook->no_probe)
        return CM_OK;
    int rc = cm_probe_link(b->rank[0].load->device, b->session->batch_nbytes, &rates, err);
    if (rc != CM_OK)
        return rc;
    out->link_pinned = rates.pinned;
    out->link_pageable = rates.pageable;
    if (rates.link.generation > 0 && (out->link = link_text(&rates.link, err)) == NULL)
        return CM_ENOMEM;
    return CM_OK;
}

/* The report of the timed pass outlives the stage; the validating pass has one of its own. */
static void keep_timed(cm_bench_rank *r)
{
    if (r->has_timed || r->load->stage == NULL)
        return;
    r->timed = *cm_stage_get_report(r->load->stage);
    r->has_timed = true;
}

void cm_bench_stage_keep(cm_bench *b)
{
    for (unsigned i = 0; b->rank != NULL && i < b->load.setting.ranks; i++)
        keep_timed(&b->rank[i]);
}

/* ---- one batch ----------------------------------------------------------------------------- */

int cm_bench_stage_wait(cm_bench_rank *r, cm_staged *staged)
{
    return cm_stage_wait(r->load->stage, staged, &r->load->err);
}

int cm_bench_stage_step(cm_bench_rank *r)
{
    return cm_stage_step(r->load->stage, &r->load->err);
}

int cm_bench_stage_stepped(cm_bench_rank *r, cm_stage_step_times *times)
{
    return cm_stage_release(r->load->stage, times, &r->load->err);
}

/* ---- validation ---------------------------------------------------------------------------- */

static size_t make_spans(const cm_bench *b, const cm_load_batch *batch, cm_stage_span *span)
{
    const cm_load_space *s = &b->load.shared.space;
    uint64_t at = 0;
    for (size_t p = 0; p < s->nparts; p++) {
        span[p] = (cm_stage_span){b->load.shared.data.array[s->part[p].array]->name, at,
                                  batch->nsamples * s->part_nbytes[p]};
        at += span[p].nbytes;
    }
    return s->nparts;
}

/* Counts a batch that differs; keeps the first one's sentence. */
static int validate_batch(void *context, const cm_load_batch *batch)
{
    cm_bench_rank *r = context;
    cm_stage_span span[CM_LOAD_MAX_PARTS];
    cm_error differs = {0};
    cm_staged staged;
    int rc = cm_load_stage_submit(r->load, batch, 0);
    if (rc == CM_OK)
        rc = cm_bench_stage_wait(r, &staged);
    if (rc != CM_OK)
        return rc;
    const size_t n = make_spans(r->bench, batch, span);
    rc = cm_stage_validate(r->load->stage, span, n, NULL, &differs);
    if (rc == CM_EDIFFER) {
        if (r->first_failure == NULL &&
            (r->first_failure = cm_strdup(differs.text, &r->load->err)) == NULL)
            return CM_ENOMEM;
    } else if (rc != CM_OK) {
        r->load->err = differs;
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
    int rc = cm_stage_begin(r->load->stage, how, &r->load->err);
    if (rc == CM_OK)
        rc = cm_bench_rank_again(r, validate_batch, r);
    const cm_stage_report *report = cm_stage_get_report(r->load->stage);
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
    for (unsigned i = 0; i < b->load.setting.ranks; i++) {
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
