/*
 * Moving everything: arrays that take one pass together, without a pause; then
 * those that need scratch, block by block; then strings and what is not
 * understood.
 */
#include <stdlib.h>
#include <string.h>

#include "exec/engine/spill.h"
#include "job/rechunk.h"

typedef struct run {
    cm_re_job *job;
    cm_engine_options engine;
    cm_engine_stats sum;
} run;

static int move(run *r, const cm_transfer *transfer, size_t n, cm_error *err)
{
    cm_engine_stats stats;
    int rc = cm_engine_run(transfer, n, &r->engine, &stats, err);
    for (int i = 0; i < CM_NSTAGES; i++) {
        r->sum.stage_ns[i] += stats.stage_ns[i];
        r->sum.stage_calls[i] += stats.stage_calls[i];
    }
    return rc;
}

static int move_direct(run *r, cm_error *err)
{
    size_t n = 0;
    cm_transfer *list = cm_calloc(r->job->narrays + 1, sizeof(list[0]), err);
    if (list == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < r->job->narrays; i++) {
        const cm_re_array *a = &r->job->array[i];
        if (a->how == CM_RE_ELEMENTS && !(a->routed && a->route.spills))
            list[n++] = a->transfer;
    }
    int rc = n > 0 ? move(r, list, n, err) : CM_OK;
    free(list);
    return rc;
}

/* ---- through scratch ---- */

/* What was spilled of the block is finished, tile by tile. */
static int finish_tiles(run *r, cm_re_array *a, cm_spill *spill, cm_error *err)
{
    size_t n = 0;
    cm_transfer *list = cm_calloc(cm_spill_ntiles(spill), sizeof(list[0]), err);
    if (list == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < cm_spill_ntiles(spill); i++) {
        cm_transfer *t = &list[n];
        *t = a->transfer;
        t->source = cm_spill_array(spill);
        t->sweep = a->route.tiled;
        if (!cm_spill_tile(spill, i, &t->first_block))
            continue;
        t->end_block = t->first_block + 1;
        n++;
    }
    int rc = n > 0 ? move(r, list, n, err) : CM_OK;
    free(list);
    return rc;
}

static int move_by_scratch(run *r, cm_re_array *a, cm_error *err)
{
    cm_spill *spill;
    int rc = cm_spill_create(r->job->scratch, a->source, &a->route.sweep, a->route.tile, &a->counts,
                             &spill, err);
    for (uint64_t b = 0; rc == CM_OK && b < a->route.sweep.total_blocks; b++) {
        cm_transfer pass = a->transfer;
        pass.spill = spill;
        pass.first_block = b;
        pass.end_block = b + 1;
        rc = cm_spill_enter(spill, b, a->writer, err);
        if (rc == CM_OK)
            rc = move(r, &pass, 1, err);
        if (rc == CM_OK)
            rc = finish_tiles(r, a, spill, err);
        if (rc == CM_OK)
            rc = cm_spill_leave(spill, err);
    }
    cm_spill_free(spill);
    return rc;
}

/* ---- all ---- */

static uint64_t total_nbytes(const cm_re_job *job)
{
    uint64_t total = 0;
    for (size_t i = 0; i < job->narrays; i++)
        if (job->array[i].how == CM_RE_ELEMENTS)
            total +=
                job->array[i].planned.element_nbytes_written + job->array[i].planned.scratch_nbytes;
    return total;
}

static int move_others(run *r, cm_store *store, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < r->job->narrays; i++) {
        cm_re_array *a = &r->job->array[i];
        if (a->how == CM_RE_STRINGS)
            rc = cm_re_move_strings(r->job, a, err);
        else if (a->how == CM_RE_OBJECTS)
            rc = cm_zarr_objects_copy(r->job->store, a->node->path, store, a->node->path,
                                      &a->ncopied, &a->copied_nbytes, err);
        else if (a->routed && a->route.spills)
            rc = move_by_scratch(r, a, err);
    }
    return rc;
}

int cm_re_run(cm_re_job *job, cm_store *store, cm_error *err)
{
    const cm_rechunk_options *o = job->options;
    run r = {.job = job,
             .engine = {.nthreads = job->nthreads,
                        .slots_nbytes = job->slots_nbytes,
                        .monitor = o->monitor}};
    cm_monitor_phase(o->monitor, CM_PHASE_WORKING, total_nbytes(job));
    int rc = o->trace == NULL ? CM_OK : cm_trace_open(&job->trace, &r.engine.trace, err);
    if (rc == CM_OK)
        rc = move_direct(&r, err);
    if (rc == CM_OK)
        rc = move_others(&r, store, err);
    cm_trace_close(r.engine.trace, &job->trace_error);
    for (int i = 0; i < CM_NSTAGES; i++)
        job->report->stage[job->report->nstages++] = (cm_stage_time){
            cm_stage_names[i], (double)r.sum.stage_ns[i] * 1e-9, r.sum.stage_calls[i]};
    for (size_t i = 0; rc == CM_OK && i < job->narrays; i++)
        if (job->array[i].writer != NULL)
            rc = cm_zarr_writer_finish(job->array[i].writer, err);
    return rc;
}
