/*
 * Bounds of this machine, measured in the same run: memory copied by one thread,
 * and stored bytes of chunks that the samples met, read without decoding by as many
 * threads as the workers had.
 *
 * Storage is asked after the epochs, so that it is as warm as they left it; where
 * the run was cold it is made cold again first.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "bench/readbench.h"
#include "plan/meetings.h"
#include "watch/monitor.h"
#include "watch/probe.h"

enum {
    PROBED_CHUNKS = 4096
};
#define PROBE_SECONDS  0.5
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

uint64_t cm_bench_probing_nbytes(const cm_bench *b)
{
    const cm_load_space *s = &b->load.shared.space;
    uint64_t most = 0;
    for (size_t p = 0; p < s->nparts; p++) {
        const cm_array *a = b->load.shared.data.array[s->part[p].array];
        const uint64_t one =
            a->chunked ? cm_probe_fetch_nbytes(a) : cm_mul_sat(s->part_nelem[p], a->dtype.nbytes);
        most = one > most ? one : most;
    }
    return cm_add_sat(cm_mul_sat(most, probing_threads(b)), PROBED_CHUNKS * sizeof(cm_probe_item));
}

static int probe_storage(cm_bench *b, double *rate, cm_error *err)
{
    cm_probe_result result;
    const unsigned nthreads = probing_threads(b);
    if (cm_bench_probing_nbytes(b) > cm_load_room(&b->load))
        return cm_bench_note(b, err,
                             "the rate of storage without decoding was not measured: `memory` is "
                             "too small for %u threads to ask for many chunks at once",
                             nthreads);
    cm_probe_item *item = cm_calloc(PROBED_CHUNKS, sizeof *item, err);
    if (item == NULL)
        return CM_ENOMEM;
    int rc = b->options->cold ? cm_bench_evict(b, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_probe_storage(item, choose(b, item), nthreads, PROBE_SECONDS, &result, err);
    if (rc == CM_OK && result.seconds > 0)
        *rate = (double)result.nbytes / result.seconds;
    free(item);
    return rc;
}

/* Where the batches were: no more than was planned, so that a small run is not a large one. */
static uint64_t copied_nbytes(const cm_bench *b)
{
    const uint64_t here = cm_resident(NULL), planned = b->session->memory_planned;
    const uint64_t n = planned > here ? planned - here : 0;
    return n < MEMORY_NBYTES ? n : MEMORY_NBYTES;
}

int cm_bench_probe(cm_bench *b, cm_error *err)
{
    cm_readbench_rates *r = &b->session->rates;
    cm_error ignored = {0};
    const struct cm_readbench_hook *hook = b->options->hook;
    const uint64_t room = copied_nbytes(b);
    int rc = CM_OK;
    if (cm_monitor_canceled(b->monitor) || (hook != NULL && hook->no_probe))
        return CM_OK;
    if (room >= LEAST_MEMORY)
        rc = cm_probe_memory(room, MEMORY_SECONDS, &r->memory, err);
    /*
     * Chunks that cannot be read were reported by the batches that met them: then there is no
     * rate.
     */
    if (rc == CM_OK && b->load.setting.engine == CM_LOAD_NATIVE && !b->load.setting.emulated &&
        probe_storage(b, &r->storage, &ignored) != CM_OK)
        r->storage = 0;
    return rc;
}
