/*
 * Moving everything: arrays that take one pass together, without a pause, those of
 * many files in rounds (rounds.h); then those that need scratch, block by block;
 * then strings and what is not understood.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/move/rounds.h"
#include "convert/plan/part_cut.h"
#include "convert/plan/plan.h"
#include "convert/source/clashes.h"
#include "engine/spill.h"

typedef struct run {
    cm_job *job;
    unsigned phase; /* of the variables that are moved */
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
    size_t n = 0, most = 1;
    for (size_t i = 0; i < r->job->nvars; i++)
        most += r->job->var[i].share.nsweeps + 1;
    cm_transfer *list = cm_calloc(most, sizeof(list[0]), err);
    if (list == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < r->job->nvars; i++) {
        const cm_job_var *v = &r->job->var[i];
        if (!cm_job_has_transfer(v) || (v->plan.routed && v->plan.route.spills) ||
            v->window.phase != r->phase)
            continue;
        n += cm_parts_transfers(v, list + n);
    }
    r->engine.rounds = cm_rounds_plan(r->job, list, n);
    int rc = n > 0 ? move(r, list, n, err) : CM_OK;
    r->engine.rounds = 1;
    free(list);
    return rc;
}

/* ---- through scratch ---- */

/* Finishes the part of the block that was spilled, tile by tile. */
static int finish_tiles(run *r, cm_job_var *v, cm_spill *spill, cm_error *err)
{
    size_t n = 0;
    cm_transfer *list = cm_calloc(cm_spill_ntiles(spill), sizeof(list[0]), err);
    if (list == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < cm_spill_ntiles(spill); i++) {
        cm_transfer *t = &list[n];
        *t = v->move.transfer;
        t->source = cm_spill_array(spill);
        t->from_scratch = true;
        t->sweep = v->plan.route.tiled;
        if (!cm_spill_tile(spill, i, &t->first_block))
            continue;
        t->end_block = t->first_block + 1;
        n++;
    }
    int rc = n > 0 ? move(r, list, n, err) : CM_OK;
    free(list);
    return rc;
}

static int move_by_scratch(run *r, cm_job_var *v, cm_error *err)
{
    cm_spill *spill;
    int rc = cm_spill_create(r->job->scratch.folder, v->source->array, &v->plan.route.sweep,
                             v->plan.route.tile, &v->moved.counts, &spill, err);
    for (uint64_t b = 0; rc == CM_OK && b < v->plan.route.sweep.total_blocks; b++) {
        cm_transfer pass = v->move.transfer;
        pass.spill = spill;
        pass.first_block = b;
        pass.end_block = b + 1;
        rc = cm_spill_enter(spill, b, v->move.transfer.target, err);
        if (rc == CM_OK)
            rc = move(r, &pass, 1, err);
        if (rc == CM_OK)
            rc = finish_tiles(r, v, spill, err);
        if (rc == CM_OK)
            rc = cm_spill_leave(spill, err);
    }
    cm_spill_free(spill);
    return rc;
}

/* ---- all ---- */

static uint64_t total_nbytes(const cm_job *job)
{
    uint64_t total = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (cm_job_has_transfer(v))
            total += cm_parts_nbytes(v) + v->plan.counts.scratch_nbytes;
    }
    return total;
}

static int move_others(run *r, cm_store *store, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < r->job->nvars; i++) {
        cm_job_var *v = &r->job->var[i];
        if (!cm_parts_has(v) || v->window.phase != r->phase)
            continue;
        if (v->stored.as_objects)
            rc = cm_zarr_objects_copy(cm_dataset_store(r->job->source), v->source->name, store,
                                      v->name, &v->moved.ncopied, &v->moved.copied_nbytes, err);
        else if (v->view.as_strings)
            rc = cm_job_move_strings(r->job, v, err);
        else if (v->plan.routed && v->plan.route.spills)
            rc = move_by_scratch(r, v, err);
    }
    return rc;
}

static unsigned last_phase(const cm_job *job)
{
    unsigned last = 0;
    for (size_t i = 0; i < job->nvars; i++)
        last = job->var[i].window.phase > last ? job->var[i].window.phase : last;
    return last;
}

int cm_job_run(cm_job *job, cm_store *store, cm_error *err)
{
    const cm_transform_options *o = job->options;
    run r = {.job = job,
             .engine = {.nthreads = job->budget.nthreads,
                        .slots_nbytes = job->budget.slots_nbytes,
                        .ahead = job->budget.ahead,
                        .monitor = o->monitor}};
    cm_monitor_phase(o->monitor, CM_PHASE_WORKING, total_nbytes(job));
    int rc = cm_job_compare_inputs(job, err);
    if (rc == CM_OK && o->trace != NULL)
        rc = cm_trace_open(&job->files.trace, &r.engine.trace, err);
    for (unsigned last = last_phase(job); rc == CM_OK && r.phase <= last; r.phase++) {
        rc = move_direct(&r, err);
        if (rc == CM_OK)
            rc = move_others(&r, store, err);
    }
    cm_trace_close(r.engine.trace, &job->files.trace_error);
    for (int i = 0; i < CM_NSTAGES; i++)
        job->report->stage[job->report->nstages++] = (cm_stage_time){
            cm_stage_names[i], (double)r.sum.stage_ns[i] * 1e-9, r.sum.stage_calls[i]};
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        if (job->var[i].move.writer != NULL && !job->var[i].move.absent)
            rc = cm_zarr_writer_finish(job->var[i].move.writer, err);
    return rc == CM_OK ? cm_job_inputs_unchanged(job, err) : rc;
}
