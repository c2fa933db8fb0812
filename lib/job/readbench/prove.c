/*
 * Where the device decodes: each chunk that samples of any epoch will meet is decoded
 * here once before the first one, by all CPUs.  That proves it (exec/load/proof.h), and
 * tells how fast this machine decodes these very chunks.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/number.h"
#include "exec/watch/monitor.h"
#include "job/readbench/readbench.h"

enum {
    MOST_CHUNKS = 1 << 29, /* of one array: a bit for each is kept meanwhile */
    MOST_RANK = CM_PARCEL_DIMS
};

static bool is_canceled(void *context)
{
    return cm_monitor_canceled(((const cm_bench *)context)->monitor);
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

static void mark_rank(const cm_bench *b, const cm_bench_rank *r, uint64_t epoch, uint64_t **bits)
{
    const cm_bench_space *s = &b->shared.space;
    for (uint64_t k = 0; k < r->share.per_rank; k++) {
        cm_box sample, box;
        cm_sample_at(&s->space, epoch, cm_epoch_share_sample(&r->share, k), &sample);
        for (size_t p = 0; p < s->nparts; p++) {
            const cm_array *a = b->shared.data.array[s->part[p].array];
            cm_sample_part_box(&s->part[p], &sample, &box);
            mark(&a->grid, &box, bits[s->part[p].array]);
        }
    }
}

static int check_part(const cm_bench *b, size_t p, cm_error *err)
{
    const cm_array *a = b->shared.data.array[b->shared.space.part[p].array];
    int rc = cm_proof_check(a, err);
    if (rc == CM_OK && a->rank > MOST_RANK)
        rc = cm_fail(err, CM_EUNSUPPORTED, "array %s: it has more than %d dimensions",
                     cm_bench_array_name(a), MOST_RANK);
    if (rc == CM_OK && a->grid.nchunks > MOST_CHUNKS)
        rc = cm_fail(err, CM_EUNSUPPORTED, "array %s: it has more than %d chunks",
                     cm_bench_array_name(a), MOST_CHUNKS);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s: not to be decoded on a device", b->shared.data.path);
    return rc;
}

static int mark_all(const cm_bench *b, uint64_t **bits, cm_error *err)
{
    const cm_bench_space *s = &b->shared.space;
    for (size_t p = 0; p < s->nparts; p++) {
        const unsigned i = s->part[p].array;
        int rc = check_part(b, p, err);
        if (rc != CM_OK)
            return rc;
        if (bits[i] == NULL &&
            (bits[i] = cm_calloc(b->shared.data.array[i]->grid.nchunks / 64 + 1, 8, err)) == NULL)
            return CM_ENOMEM;
    }
    for (unsigned r = 0; r < b->setting.ranks; r++)
        for (uint64_t e = 0; e < b->options->epochs; e++)
            mark_rank(b, &b->rank[r], e, bits);
    return CM_OK;
}

/* ---- the proof ----------------------------------------------------------------------------- */

static int tell(cm_bench *b, cm_error *err)
{
    const cm_proof *p = b->proof;
    cm_readbench_decode *out = &b->session->device.decode;
    out->used = true;
    out->proven = p->nwhole;
    out->proven_nbytes = (double)p->decoded_nbytes;
    out->cpus = p->nthreads;
    if (p->decode_ns > 0)
        out->host = (double)p->decoded_nbytes / ((double)p->decode_ns / 1e9) * p->nthreads;
    if (b->options->cold)
        return CM_OK; /* what was read for it is evicted again */
    return cm_bench_note(b, err,
                         "%" PRIu64 " chunks were read and decoded here once before the first "
                         "epoch: the page cache is as that left it",
                         p->nwhole);
}

int cm_bench_prove(cm_bench *b, cm_error *err)
{
    const cm_bench_data *d = &b->shared.data;
    if (!b->setting.device_decode)
        return CM_OK;
    const unsigned cpus = cm_cpu_count();
    const unsigned most = b->options->nthreads;
    uint64_t **bits = cm_calloc(d->narrays + 1, sizeof *bits, err);
    if (bits == NULL)
        return CM_ENOMEM;
    int rc = mark_all(b, bits, err);
    const cm_proof_options options = {.store = d->path,
                                      .array = d->array,
                                      .narrays = d->narrays,
                                      .wanted = (const uint64_t *const *)bits,
                                      .nthreads = most != 0 && most < cpus ? most : cpus,
                                      .canceled = is_canceled,
                                      .context = b};
    if (rc == CM_OK)
        rc = cm_proof_make(&options, &b->proof, err);
    for (size_t i = 0; i < d->narrays; i++)
        free(bits[i]);
    free(bits);
    return rc == CM_OK ? tell(b, err) : rc;
}

uint64_t cm_bench_proof_nbytes(const cm_bench *b)
{
    uint64_t n = 0;
    for (size_t i = 0; b->proof != NULL && i < b->proof->narrays; i++)
        n += b->proof->array[i].nchunks * sizeof(cm_proof_chunk);
    return n;
}

int cm_bench_pack_bounds(cm_bench *b, cm_error *err)
{
    const cm_bench_space *s = &b->shared.space;
    const cm_load_arrays in = {.array = b->shared.data.array,
                               .narrays = b->shared.data.narrays,
                               .space = &s->space,
                               .part = s->part,
                               .part_nbytes = s->part_nbytes,
                               .nparts = s->nparts};
    if (!b->setting.device_decode)
        return CM_OK;
    return cm_pack_find_bounds(&in, b->proof, b->batch, &b->bounds, err);
}

/* ---- whether it pays ----------------------------------------------------------------------- */

void cm_bench_decode_summarise(cm_bench *b)
{
    cm_readbench_decode *d = &b->session->device.decode;
    const double chunks = (double)b->session->counts.decoded_nbytes;
    double copying = 0, decoding = 0, copied = 0, batches = 0;
    for (unsigned i = 0; i < b->setting.ranks; i++) {
        const cm_stage_report *t = &b->rank[i].timed;
        copying += (double)t->copy_ns / 1e9;
        decoding += (double)t->decode_ns / 1e9;
        copied += (double)t->nbytes;
        batches += (double)t->batch_nbytes;
    }
    const double both = b->options->no_overlap || copying + decoding == 0 ? copying + decoding
                        : copying > decoding                              ? copying
                                                                          : decoding;
    d->device = decoding > 0 ? chunks / decoding : 0;
    d->path = both > 0 ? chunks / both : 0;
    d->travelled = batches > 0 ? copied / batches : 0;
    d->cpus_alike = d->host > 0 ? d->path / (d->host / d->cpus) : 0;
}
