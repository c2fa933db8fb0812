/*
 * Fitting the work into the memory: writers and transfers are made, and each
 * transfer is planned with as many target chunks as there is room for.
 *
 *     limit = what the process holds already + reserve
 *           + workers x scratch + target chunks in flight + shards in assembly
 *
 * Scratch grows with the number of workers and takes room from target chunks;
 * too few of these mean that source chunks are decoded more than once.  So the
 * number of workers is halved where that makes the whole quicker.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/number.h"
#include "job/budget.h"
#include "job/verify_memory.h"

enum {
    /*
     * A larger piece would be a whole map of ERA5 (4.15 MB), which meets all target
     * chunks of its block at once; with less the sweep finds an order that holds
     * few.  Classic maps to 16x128x128: 103 MB at the peak with 4 MiB, 36 MB with 1.
     */
    MAX_PIECE = 1 << 20,
    MIN_PIECE = 64 << 10
};

static size_t resident(void)
{
    return (size_t)cm_peak_rss();
}

/* However large it is: a dataset of HDF5 takes no space before its first element is written. */
static bool nothing_is_stored(const cm_variable *v)
{
    return v->located && v->stored_nbytes == 0;
}

static int prepare(cm_job *job, cm_store *store, cm_error *err)
{
    job->transfer = cm_calloc(job->nvars > 0 ? job->nvars : 1, sizeof(job->transfer[0]), err);
    if (job->transfer == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        cm_array *a = v->source->array;
        int rc = cm_zarr_writer_create(store, v->name, &v->meta, &v->writer, err);
        if (rc != CM_OK)
            return rc;
        v->absent = v->fill_stays && nothing_is_stored(v->source);
        if (v->as_strings || v->absent)
            continue;
        cm_transfer *t = &job->transfer[job->ntransfers++];
        t->source = a;
        t->target = v->writer;
        t->target_type = v->type;
        t->pass = v->pass;
        t->conversion = v->converts ? &v->conversion : NULL;
        memcpy(t->start, v->start, sizeof(t->start));
        memcpy(t->step, v->step, sizeof(t->step));
        if (v->meta.has_fill) {
            t->target_fill = v->meta.fill;
            t->skip_empty = v->fill_survives;
            t->absent_is_empty = v->fill_stays;
        }
        bool integer = v->type.kind == CM_KIND_INT || v->type.kind == CM_KIND_UINT;
        if (job->options->zarr_format == 3 && integer && v->rank >= 2 &&
            !v->source->has_fill_value && !v->source->is_char)
            t->found_fill = &v->found_fill;
    }
    return CM_OK;
}

/* One worker: its buffers stay from variable to variable, each as large as the largest needs it. */
static size_t max_worker(const cm_job *job, size_t piece_nbytes)
{
    cm_worker_need need = {0};
    for (size_t i = 0; i < job->ntransfers; i++)
        cm_transfer_worker_need(&job->transfer[i], piece_nbytes, &need);
    return cm_worker_need_nbytes(&need) + CM_BUDGET_PER_THREAD;
}

static size_t max_slot(const cm_job *job)
{
    size_t most = 0;
    for (size_t i = 0; i < job->ntransfers; i++) {
        size_t n = cm_transfer_slot_nbytes(&job->transfer[i]);
        most = n > most ? n : most;
    }
    return most;
}

static size_t piece_for(size_t free, unsigned nthreads)
{
    size_t piece = free / (8 * (size_t)nthreads);
    return piece > MAX_PIECE ? MAX_PIECE : piece < MIN_PIECE ? MIN_PIECE : piece;
}

/*
 * Plans all transfers for NTHREADS workers in FREE bytes.  *cost weighs decoding
 * again against fewer workers: a chunk's decode costs about as much as its
 * encode.  False when there is no room.
 */
static bool plan_for(cm_job *job, size_t free, unsigned nthreads, size_t *slots_nbytes,
                     double *cost)
{
    size_t piece = piece_for(free, nthreads), worker = max_worker(job, piece);
    double work = 0;
    *slots_nbytes = 0;
    if (free / nthreads < worker || free - nthreads * worker < max_slot(job))
        return false;
    size_t room = free - nthreads * worker;
    for (size_t i = 0; i < job->ntransfers; i++) {
        cm_transfer *t = &job->transfer[i];
        if (cm_zarr_writer_grid(t->target)->nchunks == 0)
            continue;
        size_t shard = cm_zarr_writer_shard_memory(t->target), shards = 0;
        size_t slot = cm_transfer_slot_nbytes(t);
        for (int pass = 0; pass < 3; pass++) {
            if (shards > room || room - shards < slot)
                return false;
            cm_transfer_plan(t, (room - shards) / slot, piece);
            size_t open = cm_transfer_open_shards(t, &t->sweep, nthreads);
            if (shard == 0 || (open * shard <= shards))
                break;
            shards = open * shard;
        }
        double volume = (double)cm_zarr_writer_grid(t->target)->nchunks * (double)slot;
        double again = (double)t->sweep.total_pieces / (double)t->sweep.source_chunks;
        work += volume * (1 + again);
        /* One more for each worker, so that one can fill while another empties. */
        size_t want = (t->sweep.slots + nthreads) * slot;
        want = want > room - shards ? room - shards : want;
        *slots_nbytes = want > *slots_nbytes ? want : *slots_nbytes;
    }
    *cost = work / nthreads;
    return true;
}

/* What comparing with one thread needs afterwards; 0: nothing is compared, or the store's own chunks count. */
static double least_to_verify(const cm_job *job)
{
    cm_verify_memory memory = {.held = job->held};
    if (job->options->verify == CM_VERIFY_NONE || job->options->check)
        return 0;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_zarr_writer *w = job->var[i].writer;
        cm_verify_memory_add(&memory, &job->var[i], cm_zarr_writer_chain(w),
                             cm_zarr_writer_grid(w)->chunk_nelem);
    }
    return cm_verify_memory_least(&memory, 1);
}

static int refuse(const cm_job *job, cm_error *err)
{
    char limit[32], least[32];
    double move = (double)(job->held + max_worker(job, MIN_PIECE) + max_slot(job));
    double verify = least_to_verify(job);
    return cm_fail(
        err, CM_EBUDGET,
        "%s of memory do not suffice: these chunks need at least %s%s; give more with "
        "--memory, or choose smaller --chunks",
        cm_format_size(job->memory_limit, limit, sizeof(limit)),
        cm_format_size((uint64_t)(verify > move ? verify : move) + (1 << 20), least, sizeof(least)),
        verify > move ? " to be verified" : "");
}

int cm_job_plan(cm_job *job, cm_store *store, cm_error *err)
{
    const cm_convert_options *o = job->options;
    unsigned most = o->nthreads > 0 ? o->nthreads : cm_cpu_count();
    int rc = prepare(job, store, err);
    if (rc != CM_OK)
        return rc;
    job->held = resident() + CM_BUDGET_RESERVE;
    job->memory_limit = o->memory > 0 ? o->memory : cm_memory_available() / 2 + resident();
    if (job->memory_limit <= job->held || least_to_verify(job) > (double)job->memory_limit)
        return refuse(job, err);
    size_t free = (size_t)(job->memory_limit - job->held), slots;
    double best = 0, cost;
    job->nthreads = 0;
    for (unsigned n = most; n > 0; n /= 2) {
        if (plan_for(job, free, n, &slots, &cost) && (job->nthreads == 0 || cost < best)) {
            job->nthreads = n;
            best = cost;
        }
    }
    if (job->nthreads == 0)
        return refuse(job, err);
    plan_for(job, free, job->nthreads, &job->slots_nbytes, &cost);
    if (o->memory == 0)
        job->memory_limit = job->held +
                            job->nthreads * max_worker(job, piece_for(free, job->nthreads)) +
                            job->slots_nbytes;
    if (job->nthreads < most)
        return cm_job_note(job, err, "%u of %u threads are used, to stay below the memory limit",
                           job->nthreads, most);
    return CM_OK;
}
