/* Chooses how many chunks to request before a thread wants them, for stores behind a network. */
#include "load/reader/lookahead.h"
#include "load/run.h"
#include "plan/meetings.h"
#include "store/net.h"

enum {
    USUAL_PLACES = 64, /* where the number of requests under way is found by their speed */
    SHARE = 8          /* of the memory, at most */
};

/* Of one place: the largest group of chunks that a part of a sample meets. */
static uint64_t place_nbytes(const cm_load_run *l)
{
    const cm_load_space *s = &l->shared.space;
    uint64_t most = 0;
    for (size_t p = 0; p < s->nparts; p++) {
        const cm_array *a = l->shared.data.array[s->part[p].array];
        const uint64_t n =
            a->chunked ? cm_reader_stored_nbytes(a, cm_load_group_nbytes(&l->setting)) : 0;
        most = n > most ? n : most;
    }
    return cm_add_sat(most,
                      cm_lookahead_place_nbytes() + cm_store_request_nbytes(l->shared.data.store));
}

/*
 * Batches, and the planned loader's chunks, are known in advance.  With a cache, whether a chunk is
 * read at all is decided late.
 */
static bool reads_ahead(const cm_load_run *l)
{
    const cm_load_setting *t = &l->setting;
    const cm_store *store = l->shared.data.store;
    return store != NULL && cm_store_reads_async(store) && t->engine == CM_LOAD_NATIVE &&
           !t->emulated && l->options->cache_nbytes == 0;
}

/* Twice the requests that may be under way: as many answers may wait for a thread. */
static uint64_t wanted(const cm_load_run *l)
{
    const unsigned n = cm_net_concurrency(l->options->net);
    return n > 0 ? 2 * (uint64_t)n : USUAL_PLACES;
}

static uint64_t readers(const cm_load_run *l)
{
    return l->setting.mode == CM_POOL_PROCESSES ? (uint64_t)l->npools * l->setting.workers : 1;
}

unsigned cm_load_lookahead_places(const cm_load_run *l)
{
    if (!reads_ahead(l))
        return 0;
    const uint64_t each = place_nbytes(l);
    uint64_t n = wanted(l);
    if (n > l->memory_limit / SHARE / each)
        n = l->memory_limit / SHARE / each;
    return (unsigned)(n / readers(l));
}

/* Whether threads wait for nothing but requests that were made ahead. */
static bool asks_for_all(const cm_load_run *l)
{
    const cm_load_data *d = &l->shared.data;
    for (size_t i = 0; i < d->narrays; i++)
        /* A shard's index has to come first, and a thread waits for it. */
        if (d->variable[i]->is_sharded || d->array[i]->ops->fetch_begin == NULL)
            return false;
    return true;
}

/*
 * More threads than CPUs decode no faster, and each takes its share of the CPUs from the one that
 * carries all requests: with 16 threads on 2 CPUs, which others wanted too, requests took 32 ms
 * instead of 26 where the server answered after 20.
 */
void cm_load_lookahead_threads(cm_load_run *l)
{
    const cm_load_options *o = l->options;
    if (l->nahead > 0 && l->setting.mode == CM_POOL_THREADS && o->workers == 0 &&
        o->worker_threads == 0 && asks_for_all(l))
        l->setting.worker_threads = 1;
}

uint64_t cm_load_lookahead_nbytes(const cm_load_run *l)
{
    return l->nahead > 0 ? cm_mul_sat(cm_mul_sat(readers(l), l->nahead), place_nbytes(l)) : 0;
}
