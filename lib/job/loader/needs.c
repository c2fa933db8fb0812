/* The memory that is taken besides the batches themselves. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "codec/shard.h"
#include "job/loader/run.h"
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
static uint64_t index_nbytes(const cm_load_run *l, size_t i)
{
    const cm_variable *v = l->shared.data.variable[i];
    const cm_array *a = v->array;
    uint64_t n = a->chunked ? a->grid.nchunks : 0;
    if (l->shared.data.is_nc)
        return cm_add_sat(cm_mul_sat(n, PLACE_NBYTES), v->cache_nbytes);
    if (!v->is_sharded)
        return 0;
    n = sizeof(cm_shard_entry);
    for (unsigned d = 0; d < a->rank;
         d++) /* a shard at the edge has entries for all of its chunks */
        n = cm_mul_sat(n, cm_div_ceil(a->shape[d], v->source_shard[d]) *
                              (v->source_shard[d] / a->grid.chunk[d]));
    return n < l->setting.index_nbytes ? n : l->setting.index_nbytes;
}

uint64_t cm_load_open_nbytes(const cm_load_run *l)
{
    const cm_load_data *d = &l->shared.data;
    uint64_t total = l->shared.data.is_nc ? HDF5_NBYTES : 0;
    for (size_t i = 0; i < d->narrays; i++)
        total = cm_add_sat(total, index_nbytes(l, i));
    return total;
}

/* What one thread holds while it reads one sample. */
static uint64_t thread_nbytes(const cm_load_run *l)
{
    const cm_load_space *s = &l->shared.space;
    uint64_t total = 0;
    for (size_t p = 0; p < s->nparts; p++) {
        const cm_array *a = l->shared.data.array[s->part[p].array];
        if (p > 0 && s->part[p].array == s->part[p - 1].array)
            continue; /* lags share a reader's buffers */
        total = cm_add_sat(total, cm_reader_memory(a, &s->feed[p]));
        total = cm_add_sat(total, cm_load_group_nbytes(&l->setting));
        if ((!a->chunked || l->setting.engine == CM_LOAD_NETCDF) &&
            !cm_feed_is_identity(&s->feed[p])) /* a box as it is stored, before it is converted */
            total = cm_add_sat(total, cm_mul_sat(s->part_nelem[p], a->dtype.nbytes));
    }
    return total;
}

static uint64_t fixed_nbytes(const cm_load_run *l)
{
    uint64_t total = 0;
    for (size_t i = 0; i < l->shared.space.nfixed; i++)
        total =
            cm_add_sat(total, array_nbytes(l->shared.data.array[l->shared.space.fixed[i].array]));
    return total;
}

uint64_t cm_load_workers_nbytes(const cm_load_run *l)
{
    const cm_load_setting *t = &l->setting;
    const bool processes = t->mode == CM_POOL_PROCESSES;
    const uint64_t workers = (uint64_t)l->npools * t->workers;
    /* Opened by this process for itself, and by each one that reads. */
    const uint64_t readers = processes ? workers : 1;
    uint64_t here, own, total;
    resident(&here, &own);
    total = here + GROWTH_NBYTES > PROCESS_NBYTES ? here + GROWTH_NBYTES : PROCESS_NBYTES;
    if (l->apart)
        total = GROWTH_NBYTES;
    if (processes) /* pages that a fork copied when they are written to count as its own */
        total = cm_add_sat(total, cm_mul_sat(workers, own > WORKER_NBYTES ? own : WORKER_NBYTES));
    total = cm_add_sat(total, cm_mul_sat(workers * t->worker_threads, thread_nbytes(l)));
    total = cm_add_sat(total, cm_mul_sat(readers, l->options->cache_nbytes));
    total = cm_add_sat(total, cm_mul_sat(readers, cm_load_open_nbytes(l)));
    return cm_add_sat(total, cm_mul_sat(workers, fixed_nbytes(l)));
}

int cm_load_check_worker_memory(const cm_load_run *l, cm_error *err)
{
    const uint64_t limit = l->options->worker_memory;
    uint64_t need = cm_mul_sat(l->setting.worker_threads, thread_nbytes(l));
    need = cm_add_sat(need, cm_add_sat(l->options->cache_nbytes, fixed_nbytes(l)));
    need = cm_add_sat(need, cm_load_open_nbytes(l));
    if (limit == 0 || need <= limit || l->setting.engine == CM_LOAD_COMMAND)
        return CM_OK;
    return cm_fail(err, CM_EBUDGET,
                   "`worker_memory`: a worker takes up to %" PRIu64
                   " MiB for its chunks, and may take %" PRIu64 " MiB",
                   (need >> 20) + 1, limit >> 20);
}

uint64_t cm_load_room(const cm_load_run *l)
{
    const uint64_t limit = cm_mul_sat(l->memory_limit, l->nsharing);
    uint64_t here, own;
    resident(&here, &own);
    return limit > here ? limit - here : 0;
}

/* ---- plans ---------------------------------------------------------------------------------- */

/* While a plan is made; what is kept of it, and what the loader keeps besides, is less. */
uint64_t cm_load_plan_nbytes(const cm_epoch_plan *plan)
{
    return cm_add_sat(cm_mul_sat(plan->nuses, CM_LOAD_MEETING_NBYTES),
                      cm_add_sat(cm_mul_sat(plan->nplaces, 96), cm_mul_sat(plan->nchunks, 112)));
}
