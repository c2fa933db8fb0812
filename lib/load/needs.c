/* The memory that is taken besides the batches themselves. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "codec/shard.h"
#include "load/run.h"
#include "plan/meetings.h"

/* Code, libraries and their heaps, where the system does not tell: 14 to 21 MiB were seen. */
#define PROCESS_NBYTES ((uint64_t)24 << 20)
/* Growth of a process beyond its size when memory is planned, or when it is forked. */
#define GROWTH_NBYTES ((uint64_t)1 << 20)
#define THREAD_NBYTES ((uint64_t)512 << 10) /* a thread's stack, tasks and heap */
/*
 * HDF5's own of an open file: its cache of metadata grows as it sees fit, at first to what the
 * places of the chunks take there.
 */
#define HDF5_NBYTES       ((uint64_t)8 << 20)
#define HDF5_LEAST_NBYTES ((uint64_t)1 << 20)

enum {
    PLACE_NBYTES = 40, /* of a chunk, while an index of places is made; 16 or 24 afterwards */
    NODE_NBYTES = 128  /* of a chunk in HDF5's own index, as read and as decoded */
};

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

static uint64_t hdf5_nbytes(const cm_load_run *l)
{
    const cm_load_data *d = &l->shared.data;
    uint64_t n = HDF5_LEAST_NBYTES;
    for (size_t i = 0; i < d->narrays; i++)
        if (d->array[i]->chunked)
            n = cm_add_sat(n, cm_mul_sat(d->array[i]->grid.nchunks, NODE_NBYTES));
    return n < HDF5_NBYTES && l->setting.engine != CM_LOAD_NETCDF ? n : HDF5_NBYTES;
}

uint64_t cm_load_open_nbytes(const cm_load_run *l)
{
    const cm_load_data *d = &l->shared.data;
    uint64_t total = d->is_nc ? hdf5_nbytes(l) : 0;
    for (size_t i = 0; i < d->narrays; i++)
        total = cm_add_sat(total, index_nbytes(l, i));
    return d->store != NULL ? cm_add_sat(total, cm_store_index_nbytes(d->store)) : total;
}

/* Bytes that one thread holds while it reads one sample. */
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

uint64_t cm_load_here_nbytes(const cm_load_run *l)
{
    const uint64_t all = cm_resident(NULL);
    return all > l->sharing_nbytes ? all - l->sharing_nbytes : all;
}

uint64_t cm_load_workers_nbytes(const cm_load_run *l)
{
    const cm_load_setting *t = &l->setting;
    const bool processes = t->mode == CM_POOL_PROCESSES;
    const uint64_t workers = (uint64_t)l->npools * t->workers;
    /* Processes that open the arrays for themselves. */
    const uint64_t readers = processes ? workers : 1;
    const uint64_t here = cm_load_here_nbytes(l);
    uint64_t own, total = GROWTH_NBYTES;
    (void)cm_resident(&own);
    total += processes ? 0 : cm_mul_sat(workers * t->worker_threads, THREAD_NBYTES);
    if (!l->apart)
        total += here > 0 ? here : PROCESS_NBYTES;
    if (processes) /* pages that a fork copied when they are written to count as its own */
        total = cm_add_sat(total, cm_mul_sat(workers, own + GROWTH_NBYTES));
    total = cm_add_sat(total, cm_mul_sat(workers * t->worker_threads, thread_nbytes(l)));
    total = cm_add_sat(total, cm_mul_sat(readers, l->options->cache_nbytes));
    total = cm_add_sat(total, cm_mul_sat(readers, cm_load_open_nbytes(l)));
    total = cm_add_sat(total, cm_load_lookahead_nbytes(l));
    return cm_add_sat(total, cm_mul_sat(workers, fixed_nbytes(l)));
}

int cm_load_check_worker_memory(const cm_load_run *l, cm_error *err)
{
    const uint64_t limit = l->options->worker_memory;
    uint64_t need = cm_mul_sat(l->setting.worker_threads, thread_nbytes(l));
    need = cm_add_sat(need, cm_add_sat(l->options->cache_nbytes, fixed_nbytes(l)));
    need = cm_add_sat(need, cm_load_open_nbytes(l));
    need =
        cm_add_sat(need, cm_load_lookahead_nbytes(l) / ((uint64_t)l->npools * l->setting.workers));
    if (limit == 0 || need <= limit || l->setting.engine == CM_LOAD_COMMAND)
        return CM_OK;
    return cm_fail(err, CM_EBUDGET,
                   "`worker_memory`: a worker takes up to %" PRIu64
                   " MiB for its chunks%s, and may take %" PRIu64 " MiB",
                   (need >> 20) + 1, l->options->cache_nbytes > 0 ? " and `cache_nbytes`" : "",
                   limit >> 20);
}

uint64_t cm_load_room(const cm_load_run *l)
{
    const uint64_t limit = cm_mul_sat(l->memory_limit, l->nsharing);
    const uint64_t here = cm_resident(NULL);
    return limit > here ? limit - here : 0;
}
