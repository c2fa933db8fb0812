/* The memory that a measurement takes besides the batches themselves. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "codec/shard.h"
#include "job/readbench/readbench.h"
#include "plan/meetings.h"

/*
 * Code, libraries and their heaps of a process: 9 to 14 MiB resident were seen, 5 to 9 of a
 * worker's own.
 */
#define PROCESS_NBYTES ((uint64_t)20 << 20)
#define WORKER_NBYTES  ((uint64_t)12 << 20)
/*
 * What this process takes above what it has when memory is planned: threads, tasks, heaps of
 * threads.
 */
#define GROWTH_NBYTES ((uint64_t)6 << 20)
/* HDF5's own of an open file: its cache of metadata grows as it sees fit. */
#define HDF5_NBYTES ((uint64_t)8 << 20)

enum {
    PLACE_NBYTES = 40 /* of a chunk, while an index of places is made; 16 or 24 afterwards */
};

/* Of this process, all and what is not of files or shared; 0: not known. */
static void resident(uint64_t *all, uint64_t *own)
{
    unsigned long long pages[3] = {0};
    FILE *f = fopen("/proc/self/statm", "re");
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (f == NULL || fscanf(f, "%llu %llu %llu", &pages[0], &pages[1], &pages[2]) != 3)
        pages[1] = pages[2] = 0;
    if (f != NULL)
        fclose(f);
    *all = page * pages[1];
    *own = pages[1] > pages[2] ? page * (pages[1] - pages[2]) : 0;
}

/* ---- what each process that reads has ------------------------------------------------------- */

static uint64_t array_nbytes(const cm_array *a)
{
    uint64_t n = a->dtype.nbytes;
    for (unsigned d = 0; d < a->rank; d++)
        n = cm_mul_sat(n, a->shape[d]);
    return n;
}

/* Where the stored chunks of array I lie: what is kept of that once it is open. */
static uint64_t index_nbytes(const cm_bench *b, size_t i)
{
    const cm_array *a = b->shared.data.array[i];
    uint64_t shard[CM_MAX_RANK], n = a->chunked ? a->grid.nchunks : 0;
    if (b->shared.data.is_nc)
        return cm_mul_sat(n, PLACE_NBYTES);
    if (!cm_bench_data_shard(&b->shared.data, i, shard))
        return 0;
    n = sizeof(cm_shard_entry);
    for (unsigned d = 0; d < a->rank;
         d++) /* a shard at the edge has entries for all of its chunks */
        n = cm_mul_sat(n, cm_div_ceil(a->shape[d], shard[d]) * (shard[d] / a->grid.chunk[d]));
    return n < b->setting.index_nbytes ? n : b->setting.index_nbytes;
}

static uint64_t open_nbytes(const cm_bench *b)
{
    const cm_bench_data *d = &b->shared.data;
    uint64_t total = b->shared.data.is_nc ? HDF5_NBYTES : 0;
    for (size_t i = 0; i < d->narrays; i++) {
        total = cm_add_sat(total, index_nbytes(b, i));
        if (b->setting.engine == CM_BENCH_NETCDF)
            total = cm_add_sat(total, cm_nc_var_cache_nbytes(d->file, (cm_nc_var *)d->array[i]));
    }
    return total;
}

/* What one thread holds while it reads one sample. */
static uint64_t thread_nbytes(const cm_bench *b)
{
    const cm_bench_space *s = &b->shared.space;
    uint64_t total = 0;
    for (size_t p = 0; p < s->nparts; p++) {
        const cm_array *a = b->shared.data.array[s->part[p].array];
        if (p > 0 && s->part[p].array == s->part[p - 1].array)
            continue; /* lags share a reader's buffers */
        total = cm_add_sat(total, cm_reader_memory(a, &s->feed[p]));
        total = cm_add_sat(total, cm_bench_group_nbytes(&b->setting));
        if ((!a->chunked || b->setting.engine == CM_BENCH_NETCDF) &&
            !cm_feed_is_identity(&s->feed[p])) /* a box as it is stored, before it is converted */
            total = cm_add_sat(total, cm_mul_sat(s->part_nelem[p], a->dtype.nbytes));
    }
    return total;
}

static uint64_t fixed_nbytes(const cm_bench *b)
{
    uint64_t total = 0;
    for (size_t i = 0; i < b->shared.space.nfixed; i++)
        total =
            cm_add_sat(total, array_nbytes(b->shared.data.array[b->shared.space.fixed[i].array]));
    return total;
}

uint64_t cm_bench_workers_nbytes(const cm_bench *b)
{
    const cm_bench_setting *t = &b->setting;
    const bool processes = t->mode == CM_POOL_PROCESSES;
    const uint64_t workers = (uint64_t)b->npools * t->workers;
    /* Opened by this process for itself, and by each one that reads. */
    const uint64_t readers = processes ? workers : 1;
    uint64_t here, own, total;
    resident(&here, &own);
    total = here + GROWTH_NBYTES > PROCESS_NBYTES ? here + GROWTH_NBYTES : PROCESS_NBYTES;
    if (processes) /* pages that a fork copied when they are written to count as its own */
        total = cm_add_sat(total, cm_mul_sat(workers, own > WORKER_NBYTES ? own : WORKER_NBYTES));
    total = cm_add_sat(total, cm_mul_sat(workers * t->worker_threads, thread_nbytes(b)));
    total = cm_add_sat(total, cm_mul_sat(readers, b->options->cache_nbytes));
    total = cm_add_sat(total, cm_mul_sat(readers, open_nbytes(b)));
    return cm_add_sat(total, cm_mul_sat(workers, fixed_nbytes(b)));
}

int cm_bench_check_worker_memory(const cm_bench *b, cm_error *err)
{
    const uint64_t limit = b->options->worker_memory;
    uint64_t need = cm_mul_sat(b->setting.worker_threads, thread_nbytes(b));
    need = cm_add_sat(need, cm_add_sat(b->options->cache_nbytes, fixed_nbytes(b)));
    need = cm_add_sat(need, open_nbytes(b));
    if (limit == 0 || need <= limit || b->setting.engine == CM_BENCH_EXEC)
        return CM_OK;
    return cm_fail(err, CM_EBUDGET,
                   "--worker-memory: a worker takes up to %" PRIu64
                   " MiB for its chunks, and may take %" PRIu64 " MiB",
                   (need >> 20) + 1, limit >> 20);
}

/* ---- what is recorded, staged and compared -------------------------------------------------- */

/* Lists that double, collected into others at the end. */
static uint64_t records_nbytes(const cm_bench *b)
{
    const uint64_t epochs = cm_mul_sat(b->options->epochs, b->setting.ranks);
    const uint64_t batch = 3 * sizeof(cm_readbench_batch) + 6 * sizeof(cm_readbench_event);
    const uint64_t logged = b->options->log_samples ? 3 * sizeof(cm_readbench_sample) : 0;
    const cm_epoch_share *share = &b->rank[0].share;
    return cm_add_sat(
        cm_mul_sat(cm_mul_sat(epochs, share->nbatches), batch),
        cm_mul_sat(cm_mul_sat(cm_mul_sat(epochs, share->per_rank), b->shared.space.nparts),
                   logged));
}

/* The device `host` has its memory here; every device is probed, and checked, by way of buffers. */
static uint64_t device_nbytes(const cm_bench *b)
{
    const uint64_t batch = b->slot_nbytes;
    const bool is_host = strcmp(b->options->device, "host") == 0;
    const uint64_t buffers = b->options->no_overlap ? 1 : 2;
    const uint64_t probing = is_host ? 3 : 2, checking = 1;
    const uint64_t direct = b->setting.device_decode ? b->session->batch_nbytes : 0;
    return cm_add_sat(
        cm_mul_sat(cm_mul_sat(b->setting.ranks, batch), checking + (is_host ? buffers : 0)),
        cm_add_sat(cm_mul_sat(probing, batch), direct));
}

/* Validation without a device reads one sample at a time, as it is stored and as it is fed. */
static uint64_t checking_nbytes(const cm_bench *b)
{
    const cm_bench_space *s = &b->shared.space;
    uint64_t most = 0;
    for (size_t p = 0; p < s->nparts; p++) {
        const cm_array *a = b->shared.data.array[s->part[p].array];
        const uint64_t raw = cm_mul_sat(s->part_nelem[p], a->dtype.nbytes);
        const uint64_t n =
            cm_add_sat(cm_add_sat(raw, s->part_nbytes[p]), cm_reader_memory(a, NULL));
        most = n > most ? n : most;
    }
    if (b->setting.engine == CM_BENCH_EXEC) /* whose batches are read as a whole */
        for (size_t p = 0; p < s->nparts; p++)
            most = cm_add_sat(most, cm_mul_sat(b->batch, s->part_nbytes[p]));
    return cm_add_sat(most, open_nbytes(b));
}

uint64_t cm_bench_other_nbytes(const cm_bench *b)
{
    uint64_t total = cm_add_sat(records_nbytes(b), cm_bench_proof_nbytes(b));
    if (b->setting.uses_device)
        total = cm_add_sat(total, device_nbytes(b));
    else if (b->setting.validate != CM_READBENCH_VALIDATE_NONE)
        total = cm_add_sat(total, checking_nbytes(b));
    return total;
}

uint64_t cm_bench_room(const cm_bench *b)
{
    const uint64_t limit = cm_mul_sat(b->memory_limit, b->nsharing);
    uint64_t here, own;
    resident(&here, &own);
    return limit > here ? limit - here : 0;
}

/* ---- plans ---------------------------------------------------------------------------------- */

/* While a plan is made; what is kept of it, and what the loader keeps besides, is less. */
uint64_t cm_bench_plan_nbytes(const cm_epoch_plan *plan)
{
    return cm_add_sat(cm_mul_sat(plan->nuses, CM_BENCH_MEETING_NBYTES),
                      cm_add_sat(cm_mul_sat(plan->nplaces, 96), cm_mul_sat(plan->nchunks, 112)));
}
