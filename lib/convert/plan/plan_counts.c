/*
 * The engine's counts, predicted from the routes that were chosen.
 */
#include <string.h>

#include "convert/plan/plan.h"

enum {
    MAX_COUNTED = 1 << 24 /* chunks of a file, one by one */
};

static bool is_present(const cm_job_var *v, uint64_t number)
{
    if (v->move.transfer.may_be_absent)
        return !cm_transfer_is_absent(&v->move.transfer, number);
    return v->stored.presence.bit == NULL ||
           (v->stored.presence.bit[number / 64] >> number % 64 & 1) != 0;
}

/* Pieces whose chunk is absent are neither read nor spilled; they are counted one by one. */
static int predict_with_gaps(const cm_job *job, cm_job_var *v, cm_error *err)
{
    const cm_sweep *s = &v->plan.route.sweep;
    const cm_grid *grid = &v->source->array->grid;
    size_t itemsize = v->source->dtype.nbytes;
    cm_plan_counts *p = &v->plan.counts;
    cm_sweep_cursor c;
    for (cm_sweep_begin(s, 0, &c); !c.done; cm_sweep_next(s, &c)) {
        cm_box box;
        uint64_t spilled = 1, resident = 1, coord[CM_MAX_RANK];
        if (cm_monitor_canceled(job->options->monitor))
            return cm_fail(err, CM_ECANCELED, "stopped by request");
        for (unsigned j = 0; j < s->rank; j++)
            coord[j] = cm_axis_source_chunk(&s->axis[j], c.piece[j]);
        if (!is_present(v, cm_grid_number(grid, coord)))
            continue;
        cm_grid_box(&v->source->array->grid, coord, &box);
        p->chunk_reads++;
        p->element_nbytes_read += cm_box_nelem(&box) * itemsize;
        for (unsigned j = 0; j < s->rank; j++) {
            cm_range span = cm_axis_piece_span(&s->axis[j], c.span[j], c.piece[j]);
            uint64_t end = c.span[j].lo + v->plan.route.tile[j] * s->axis[j].target;
            spilled *= span.hi - span.lo;
            resident *= span.lo >= end ? 0 : (span.hi < end ? span.hi : end) - span.lo;
        }
        if (v->plan.route.spills)
            p->scratch_nbytes += (spilled - resident) * itemsize;
    }
    return CM_OK;
}

/* Chunks of several lengths that stay as they are: each is read and written once. */
static int predict_direct(const cm_job *job, cm_job_var *v, cm_error *err)
{
    const cm_grid *grid = &v->source->array->grid;
    cm_plan_counts *p = &v->plan.counts;
    for (uint64_t number = 0; number < grid->nchunks; number++) {
        cm_box box;
        if (number % 4096 == 0 && cm_monitor_canceled(job->options->monitor))
            return cm_fail(err, CM_ECANCELED, "stopped by request");
        if (!is_present(v, number))
            continue;
        cm_grid_chunk_box(grid, number, &box);
        p->chunk_reads++;
        p->element_nbytes_read += cm_box_nelem(&box) * v->source->dtype.nbytes;
    }
    return CM_OK;
}

/* Arrays that are not understood are copied object by object. */
static int predict_objects(const cm_job *job, cm_job_var *v, cm_error *err)
{
    uint64_t n = 0;
    int rc = cm_zarr_objects_count(cm_dataset_store(job->source), v->source->name, &n, err);
    v->plan.counts.chunk_reads = v->plan.counts.chunk_writes = n;
    return rc;
}

int cm_job_predict(const cm_job *job, cm_job_var *v, cm_error *err)
{
    cm_plan_counts *p = &v->plan.counts;
    const cm_route *r = &v->plan.route;
    uint64_t nelem = 1;
    int rc = CM_OK;
    memset(p, 0, sizeof(*p));
    if (v->stored.as_objects)
        return predict_objects(job, v, err);
    for (unsigned j = 0; j < v->view.rank; j++)
        nelem *= v->view.shape[j];
    if (v->move.writer == NULL || nelem == 0 || v->move.absent)
        return CM_OK;
    p->chunk_writes = cm_zarr_writer_grid(v->move.writer)->nchunks;
    p->element_nbytes_written = nelem * v->view.type.nbytes;
    if (v->view.as_strings)
        return CM_OK;
    size_t itemsize = v->source->dtype.nbytes;
    /* Routes count chunks of several lengths by the longest. */
    if (v->layout.rectilinear)
        rc = predict_direct(job, v, err);
    else if (cm_job_is_cut(v) && v->source->array->grid.nchunks <= MAX_COUNTED)
        rc = predict_with_gaps(job, v, err);
    /* Of a file with too many chunks to be counted it is not known which are there. */
    else if (v->stored.presence.bit != NULL
                 ? v->stored.presence.npresent < v->stored.presence.nchunks
                 : v->move.transfer.may_be_absent &&
                       v->source->array->grid.nchunks <= MAX_COUNTED) {
        rc = predict_with_gaps(job, v, err);
    } else {
        p->chunk_reads = cm_transfer_is_sliceable(&v->move.transfer) ? 0 : r->chunk_reads;
        p->element_nbytes_read = r->nelem_read * itemsize;
        p->scratch_nbytes = r->nelem_spilled * itemsize;
    }
    /* Chunks that pass as they are stored are decoded for those alone who look at elements. */
    p->chunk_decodes =
        v->doc.pass != CM_PASS_NOTHING && v->move.transfer.see == NULL ? 0 : p->chunk_reads;
    return rc;
}
