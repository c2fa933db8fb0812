/*
 * Bounds of this machine, measured in the same run: memory copied by one thread,
 * and stored bytes of chunks that the samples met, read without decoding by as many
 * threads as the workers had.
 *
 * Storage is asked after the epochs, so that it is as warm as they left it; where
 * the run was cold it is made cold again first.  It is asked several times, in turn by
 * as many threads as the workers had and by more, so that what others do meanwhile meets
 * both; the medians count.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/number.h"
#include "bench/readbench.h"
#include "plan/meetings.h"
#include "watch/monitor.h"
#include "watch/probe.h"

enum {
    PROBED_CHUNKS = 4096,
    ROUNDS = 3,
    MORE = 4,         /* times the threads, */
    MOST_THREADS = 64 /* up to so many */
};
#define PROBE_SECONDS  0.1 /* a round */
#define MEMORY_SECONDS 0.1
#define LEAST_MEMORY   ((uint64_t)2 << 20)
#define MEMORY_NBYTES  ((uint64_t)512 << 20) /* several times the caches */

/* Chunks that samples of the first epoch begin in. */
static size_t choose(const cm_bench *b, cm_probe_item *item)
{
    const cm_load_space *s = &b->load.shared.space;
    cm_load_rank *rank = b->rank[0].load;
    const cm_epoch_share *share = &rank->share;
    const uint64_t step = share->per_rank / PROBED_CHUNKS + 1;
    size_t n = 0;
    for (uint64_t k = 0; k < share->per_rank && n < PROBED_CHUNKS; k += step) {
        uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK];
        cm_box sample;
        const size_t p = n % s->nparts;
        cm_array *a = b->load.shared.data.array[s->part[p].array];
        cm_sample_at(&s->space, 0, cm_load_number(rank, 0, k), &sample);
        cm_sample_part_box(&s->part[p], &sample, &item[n].box);
        item[n].array = a;
        if (a->chunked) {
            cm_grid_cover(&a->grid, &item[n].box, first, count);
            item[n].number = cm_grid_number(&a->grid, first);
        }
        n++;
    }
    return n;
}

static unsigned probing_threads(const cm_bench *b)
{
    const cm_load_setting *t = &b->load.setting;
    return b->load.npools * t->workers * t->worker_threads;
}

/* Bytes that N threads take. */
static uint64_t threads_nbytes(const cm_bench *b, unsigned n)
{
    const cm_load_space *s = &b->load.shared.space;
    uint64_t most = 0;
    for (size_t p = 0; p < s->nparts; p++) {
        const cm_array *a = b->load.shared.data.array[s->part[p].array];
        const uint64_t one =
            a->chunked ? cm_probe_fetch_nbytes(a) : cm_mul_sat(s->part_nelem[p], a->dtype.nbytes);
        most = one > most ? one : most;
    }
    return cm_add_sat(cm_mul_sat(most, n), PROBED_CHUNKS * sizeof(cm_probe_item));
}

uint64_t cm_bench_probing_nbytes(const cm_bench *b)
{
    return threads_nbytes(b, probing_threads(b));
}

/* Bytes a second of one round; 0: none were read. */
static int ask(cm_bench *b, const cm_probe_item *item, size_t n, unsigned nthreads, double *rate,
               cm_error *err)
{
    cm_probe_result result;
    int rc = b->options->cold ? cm_bench_evict(b, err) : CM_OK;
    *rate = 0;
    if (rc == CM_OK)
        rc = cm_probe_storage(item, n, nthreads, PROBE_SECONDS, &result, err);
    if (rc == CM_OK && result.seconds > 0)
        *rate = (double)result.nbytes / result.seconds;
    return rc;
}

/* The rounds; MORE 0: only with the workers' threads. */
static int ask_in_turn(cm_bench *b, const cm_probe_item *item, size_t n, unsigned more,
                       cm_readbench_rates *r, cm_error *err)
{
    double own[ROUNDS], with_more[ROUNDS] = {0};
    int rc = CM_OK;
    for (int i = 0; i < ROUNDS && rc == CM_OK; i++) {
        rc = ask(b, item, n, probing_threads(b), &own[i], err);
        if (rc == CM_OK && more > 0)
            rc = ask(b, item, n, more, &with_more[i], err);
    }
    if (rc != CM_OK)
        return rc;
    cm_sort_doubles(own, ROUNDS);
    cm_sort_doubles(with_more, ROUNDS);
    r->storage = own[ROUNDS / 2];
    r->storage_least = own[0];
    r->storage_most = own[ROUNDS - 1];
    r->storage_more = with_more[ROUNDS / 2];
    r->more_threads = more;
    return CM_OK;
}

/*
 * Memory of the batches, for the buffers of probing: no more than planned, so that a small run
 * stays small.
 */
static uint64_t planned_nbytes(const cm_bench *b)
{
    const uint64_t here = cm_resident(NULL), planned = b->session->memory_planned;
    return planned > here ? planned - here : 0;
}

static int probe_storage(cm_bench *b, cm_readbench_rates *r, cm_error *err)
{
    const unsigned nthreads = probing_threads(b);
    if (cm_bench_probing_nbytes(b) > cm_load_room(&b->load))
        return cm_bench_note(b, err,
                             "the rate of storage without decoding was not measured: `memory` is "
                             "too small for %u threads to ask for many chunks at once",
                             nthreads);
    const bool fits =
        MORE * nthreads <= MOST_THREADS && threads_nbytes(b, MORE * nthreads) <= planned_nbytes(b);
    cm_probe_item *item = cm_calloc(PROBED_CHUNKS, sizeof *item, err);
    if (item == NULL)
        return CM_ENOMEM;
    int rc = ask_in_turn(b, item, choose(b, item), fits ? MORE * nthreads : 0, r, err);
    free(item);
    return rc;
}

int cm_bench_probe(cm_bench *b, cm_error *err)
{
    cm_readbench_rates *r = &b->session->rates;
    cm_error ignored = {0};
    const struct cm_readbench_hook *hook = b->options->hook;
    const uint64_t planned = planned_nbytes(b);
    const uint64_t room = planned < MEMORY_NBYTES ? planned : MEMORY_NBYTES;
    int rc = CM_OK;
    if (cm_monitor_canceled(b->monitor) || (hook != NULL && hook->no_probe))
        return CM_OK;
    if (room >= LEAST_MEMORY)
        rc = cm_probe_memory(room, MEMORY_SECONDS, &r->memory, err);
    /* Batches reported unreadable chunks already; here they only leave the rate unknown. */
    if (rc == CM_OK && b->load.setting.engine == CM_LOAD_NATIVE && !b->load.setting.emulated &&
        probe_storage(b, r, &ignored) != CM_OK)
        r->storage = r->storage_more = 0;
    return rc;
}
