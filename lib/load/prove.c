/*
 * Where the device decodes: each chunk that samples of any epoch will meet is decoded
 * here once, which proves it (load/batches/proof.h).  For a measurement that is before the first
 * epoch, by all CPUs, and tells how fast this machine decodes these very chunks; for a training,
 * which has no last epoch, when the chunk is first met.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/number.h"
#include "load/run.h"
#include "watch/monitor.h"

enum {
    MOST_CHUNKS = 1 << 29, /* of one array: a bit for each is kept meanwhile */
    MOST_RANK = CM_PARCEL_DIMS,
    MOST_NBYTES = 256 /* of an element */
};

static bool is_canceled(void *context)
{
    return cm_monitor_canceled(((const cm_load_run *)context)->monitor);
}

/* ---- which chunks -------------------------------------------------------------------------- */

static void mark(const cm_grid *grid, const cm_box *box, uint64_t *bits)
{
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], coord[CM_MAX_RANK], left = 1;
    if (cm_box_nelem(box) == 0)
        return;
    cm_grid_cover(grid, box, first, count);
    for (unsigned j = 0; j < grid->rank; j++) {
        coord[j] = first[j];
        left *= count[j];
    }
    for (; left > 0; left--) {
        const uint64_t n = cm_grid_number(grid, coord);
        bits[n / 64] |= UINT64_C(1) << n % 64;
        for (unsigned j = grid->rank; j-- > 0 && ++coord[j] == first[j] + count[j];)
            coord[j] = first[j];
    }
}

static void mark_rank(const cm_load_run *l, const cm_load_rank *r, uint64_t epoch, uint64_t **bits)
{
    const cm_load_space *s = &l->shared.space;
    for (uint64_t k = 0; k < r->share.per_rank; k++) {
        cm_box sample, box;
        cm_sample_at(&s->space, epoch, cm_epoch_share_sample(&r->share, k), &sample);
        for (size_t p = 0; p < s->nparts; p++) {
            const cm_array *a = l->shared.data.array[s->part[p].array];
            cm_sample_part_box(&s->part[p], &sample, &box);
            mark(&a->grid, &box, bits[s->part[p].array]);
        }
    }
}

static int check_part(const cm_load_run *l, size_t p, cm_error *err)
{
    const cm_array *a = l->shared.data.array[l->shared.space.part[p].array];
    int rc = cm_proof_check(a, err);
    const bool swaps = rc == CM_OK && cm_chain_split_swap(a->chain) > 1;
    const int most = MOST_RANK - swaps; /* the bytes of an element are one more */
    if (rc == CM_OK && a->rank > (unsigned)most)
        rc = cm_fail(err, CM_EUNSUPPORTED, "array %s: it has more than %d dimensions%s",
                     cm_load_array_name(a), most, swaps ? " of big-endian elements" : "");
    if (rc == CM_OK && a->dtype.nbytes > MOST_NBYTES)
        rc = cm_fail(err, CM_EUNSUPPORTED, "array %s: its elements have more than %d bytes",
                     cm_load_array_name(a), MOST_NBYTES);
    if (rc == CM_OK && a->grid.nchunks > MOST_CHUNKS)
        rc = cm_fail(err, CM_EUNSUPPORTED, "array %s: it has more than %d chunks",
                     cm_load_array_name(a), MOST_CHUNKS);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s: not to be decoded on a device", l->shared.data.path);
    return rc;
}

static int mark_all(const cm_load_run *l, uint64_t **bits, cm_error *err)
{
    const cm_load_space *s = &l->shared.space;
    for (size_t p = 0; p < s->nparts; p++) {
        const unsigned i = s->part[p].array;
        int rc = check_part(l, p, err);
        if (rc != CM_OK)
            return rc;
        if (bits[i] == NULL &&
            (bits[i] = cm_calloc(l->shared.data.array[i]->grid.nchunks / 64 + 1, 8, err)) == NULL)
            return CM_ENOMEM;
    }
    for (unsigned r = 0; r < l->setting.ranks; r++)
        for (uint64_t e = 0; e < l->options->epochs; e++)
            mark_rank(l, &l->rank[r], e, bits);
    return CM_OK;
}

/* ---- the proof ----------------------------------------------------------------------------- */

int cm_load_prove(cm_load_run *l, cm_error *err)
{
    const cm_load_data *d = &l->shared.data;
    if (!l->setting.device_decode)
        return CM_OK;
    const unsigned cpus = cm_cpu_count();
    const unsigned most = l->options->nthreads;
    uint64_t **bits = cm_calloc(d->narrays + 1, sizeof *bits, err);
    if (bits == NULL)
        return CM_ENOMEM;
    int rc = mark_all(l, bits, err);
    const cm_proof_options options = {.store = d->path,
                                      .array = d->array,
                                      .narrays = d->narrays,
                                      .wanted = (const uint64_t *const *)bits,
                                      .nthreads = most != 0 && most < cpus ? most : cpus,
                                      .canceled = is_canceled,
                                      .context = l};
    if (rc == CM_OK)
        rc = cm_proof_make(&options, &l->proof, err);
    for (size_t i = 0; i < d->narrays; i++)
        free(bits[i]);
    free(bits);
    return rc;
}

int cm_load_prove_as_met(cm_load_run *l, cm_error *err)
{
    const cm_load_data *d = &l->shared.data;
    cm_array *array[CM_LOAD_MAX_PARTS] = {NULL};
    if (!l->setting.device_decode)
        return CM_OK;
    for (size_t p = 0; p < l->shared.space.nparts; p++) {
        const unsigned i = l->shared.space.part[p].array;
        int rc = check_part(l, p, err);
        if (rc != CM_OK)
            return rc;
        array[i] = d->array[i];
    }
    return cm_proof_begin(array, d->narrays, &l->proof, err);
}

uint64_t cm_load_proof_nbytes(const cm_load_run *l)
{
    uint64_t n = 0;
    for (size_t i = 0; l->proof != NULL && i < l->proof->narrays; i++) {
        const uint64_t nchunks = l->proof->array[i].nchunks;
        n += l->proof->as_met ? cm_proof_nbytes(nchunks) : nchunks * sizeof(cm_proof_chunk);
    }
    return n;
}
