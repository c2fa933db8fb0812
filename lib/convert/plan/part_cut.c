/*
 * The share of each variable that this part makes: a run of objects; where chunks change, the boxes
 * that make up the run, each swept by itself within the slots that were planned for the whole.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/plan/part_cut.h"
#include "convert/plan/plan.h"

/* Rows of target objects after which source chunks end, too. */
static uint64_t grain_of(const cm_job_var *v)
{
    uint64_t chunk =
        v->source->has_source_chunks && v->view.rank > 0 ? v->source->source_chunk[0] : 1;
    /* Chunks of several lengths are those of the source. */
    if (v->view.rank == 0 || v->view.start[0] != 0 || v->view.step[0] != 1 ||
        v->layout.rectilinear || v->doc.meta.chunk[0] % chunk == 0)
        return 1;
    uint64_t a = v->doc.meta.chunk[0], b = chunk;
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return chunk / a;
}

static int describe_item(const cm_job_var *v, uint64_t nbytes, cm_part_item *item, cm_error *err)
{
    cm_grid outer;
    *item = (cm_part_item){.nbytes = nbytes, .grain = 1};
    item->whole = v->stored.as_objects || v->view.as_strings;
    if (v->stored.as_objects)
        return CM_OK; /* rank 0: one object */
    int rc = cm_zarr_meta_outer_grid(&v->doc.meta, &outer, err);
    if (rc != CM_OK)
        return rc;
    item->rank = outer.rank;
    memcpy(item->count, outer.count, sizeof(item->count));
    item->grain = grain_of(v);
    return CM_OK;
}

int cm_parts_runs(const cm_job *job, const cm_json *weights, uint64_t nparts, uint64_t part,
                  size_t many, cm_part_run *out, cm_error *err)
{
    cm_part_item *item = cm_calloc(job->nvars + 1, sizeof(item[0]), err);
    int rc = item == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        uint64_t nbytes;
        if (cm_json_get_u64(cm_json_member(cm_json_at(weights, i), "nbytes"), &nbytes))
            rc = describe_item(&job->var[i], nbytes, &item[i], err);
        else
            rc = cm_fail(err, CM_EFORMAT, "the plan does not say how heavy variable %s is",
                         job->var[i].name);
    }
    if (rc == CM_OK)
        rc = cm_part_cut(item, job->nvars, nparts, part, many, out, err);
    free(item);
    return rc;
}

/* Every variable's run of one part. */
static int cut(cm_job *job, const cm_json *weights, uint64_t nparts, uint64_t part, cm_error *err)
{
    cm_part_run *run = cm_calloc(job->nvars + 1, sizeof(run[0]), err);
    int rc = run == NULL ? CM_ENOMEM : cm_parts_runs(job, weights, nparts, part, 1, run, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        job->var[i].share.run = run[i], job->var[i].share.is_part = true;
    free(run);
    return rc;
}

/* ---- windows ---- */

/* The sweep of the objects in BOX, which holds no more slots than the whole's. */
static void sweep_box(const cm_job_var *v, const cm_box *box, cm_sweep *out)
{
    const cm_grid *grid = cm_zarr_writer_grid(v->move.writer);
    const cm_grid *outer = cm_zarr_writer_outer_grid(v->move.writer);
    const cm_sweep *whole = &v->plan.route.sweep;
    size_t itemsize = v->source->dtype.nbytes;
    uint64_t first[CM_MAX_RANK] = {0}, block[CM_MAX_RANK] = {0};
    cm_sweep_request r = {.rank = grid->rank,
                          .sliceable = cm_transfer_is_sliceable(&v->move.transfer),
                          .itemsize = itemsize,
                          .piece_nbytes = whole->piece_nelem * itemsize,
                          .max_slots = v->plan.route.slots > 0 ? v->plan.route.slots : 1};
    for (unsigned j = 0; j < grid->rank; j++) {
        uint64_t lo = box->start[j] * outer->chunk[j];
        uint64_t hi = (box->start[j] + box->shape[j]) * outer->chunk[j];
        hi = hi < grid->shape[j] ? hi : grid->shape[j];
        r.shape[j] = hi - lo;
        r.target[j] = grid->chunk[j];
        r.source[j] = v->source->array->grid.chunk[j];
        r.step[j] = v->view.step[j];
        r.start[j] = v->view.start[j] + lo * v->view.step[j];
        first[j] = lo / grid->chunk[j];
        block[j] = (r.shape[j] + grid->chunk[j] - 1) / grid->chunk[j];
    }
    /* One block of the whole: one of this, in the same order. */
    if (whole->total_blocks == 1 && !r.sliceable)
        cm_sweep_with(&r, block, whole->order, out);
    else
        cm_sweep_plan(&r, out);
    cm_sweep_shift(out, first);
}

static int make_windows(cm_job_var *v, cm_error *err)
{
    const cm_grid *outer = cm_zarr_writer_outer_grid(v->move.writer);
    cm_box box[CM_PART_MAX_BOXES];
    if (cm_transfer_is_direct(&v->move.transfer) || v->share.run.first == v->share.run.end)
        return CM_OK;
    bool cut = false;
    for (unsigned j = 0; j < v->view.rank; j++)
        cut |= v->move.cuts[j] != NULL;
    unsigned n = cut ? 1 : cm_part_boxes(outer->count, outer->rank, v->share.run, box);
    if ((v->share.sweep = cm_calloc(n, sizeof(v->share.sweep[0]), err)) == NULL)
        return CM_ENOMEM;
    v->share.nsweeps = n;
    /*
     * Boxes of a sliceable source are places in the whole sweep, which skips what the part does not
     * need.
     */
    if (cut)
        v->share.sweep[0] = v->plan.route.sweep;
    for (unsigned i = 0; i < n && !cut; i++)
        sweep_box(v, &box[i], &v->share.sweep[i]);
    return CM_OK;
}

/*
 * A part has no scratch: it reads again what its memory does not hold, and warns if that costs more
 * than the work itself.
 */
static int warn_of_rereading(cm_job *job, const cm_job_var *v, cm_error *err)
{
    uint64_t reads = 0, distinct = 0;
    for (unsigned i = 0; i < v->share.nsweeps && !cm_transfer_is_sliceable(&v->move.transfer);
         i++) {
        reads += v->share.sweep[i].total_pieces;
        distinct += v->share.sweep[i].source_chunks;
    }
    if (distinct == 0 || reads < 2 * distinct)
        return CM_OK;
    return cm_job_warn(job, err,
                       "%s %s: the memory holds %" PRIu64 " of this part's target chunks at once, "
                       "so each source chunk is decoded %.1f times; raise `memory`, or make more "
                       "parts (a part uses no scratch)",
                       cm_job_noun(job), v->name, v->plan.route.slots,
                       (double)reads / (double)distinct);
}

int cm_parts_narrow(cm_job *job, const cm_json *weights, uint64_t nparts, uint64_t part,
                    cm_error *err)
{
    int rc = cut(job, weights, nparts, part, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        if (v->move.writer == NULL)
            continue;
        rc = cm_zarr_writer_restrict(v->move.writer, v->share.run.first, v->share.run.end, err);
        if (rc == CM_OK && cm_job_has_transfer(v))
            rc = make_windows(v, err);
        if (rc == CM_OK)
            rc = warn_of_rereading(job, v, err);
    }
    return rc;
}

bool cm_parts_has(const cm_job_var *v)
{
    return !v->share.is_part || v->share.run.first < v->share.run.end;
}

unsigned cm_parts_transfers(const cm_job_var *v, cm_transfer *list)
{
    if (!cm_parts_has(v))
        return 0;
    for (unsigned i = 0; i < v->share.nsweeps; i++) {
        list[i] = v->move.transfer;
        list[i].sweep = v->share.sweep[i];
    }
    if (v->share.nsweeps > 0)
        return v->share.nsweeps;
    list[0] = v->move.transfer;
    list[0].first_object = v->share.run.first; /* of all of it: 0 and 0 */
    list[0].end_object = v->share.run.end;
    return 1;
}

unsigned cm_parts_areas(const cm_job_var *v, cm_box area[CM_PART_MAX_BOXES])
{
    if (!v->share.is_part || v->move.writer == NULL) { /* objects are copied all or none */
        area[0] = (cm_box){.rank = v->view.rank};
        memcpy(area[0].shape, v->view.shape, sizeof(area[0].shape));
        return cm_parts_has(v);
    }
    const cm_grid *outer = cm_zarr_writer_outer_grid(v->move.writer);
    unsigned n = cm_part_boxes(outer->count, outer->rank, v->share.run, area);
    for (unsigned i = 0; i < n; i++) {
        for (unsigned j = 0; j < outer->rank; j++) {
            const uint64_t end = area[i].start[j] + area[i].shape[j];
            const uint64_t lo = cm_grid_first(outer, j, area[i].start[j]);
            const uint64_t hi =
                end < outer->count[j] ? cm_grid_first(outer, j, end) : outer->shape[j];
            area[i].start[j] = lo;
            area[i].shape[j] = hi - lo;
        }
    }
    return n;
}

uint64_t cm_parts_nbytes(const cm_job_var *v)
{
    cm_box area[CM_PART_MAX_BOXES];
    uint64_t nelem = 0;
    unsigned n = cm_parts_areas(v, area);
    for (unsigned i = 0; i < n; i++)
        nelem += cm_box_nelem(&area[i]);
    return nelem * v->source->dtype.nbytes;
}
