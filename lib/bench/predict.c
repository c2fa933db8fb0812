/* Chunks that samples meet: chunkcalc's arithmetic over all offsets, and the very ones drawn. */
#include <string.h>

#include "base/number.h"
#include "bench/readbench.h"
#include "plan/touch.h"

/* Above this many the exact count of what was drawn would itself take noticeable time. */
#define COUNTED_SAMPLES UINT64_C(4000000)

bool cm_bench_is_uniform(const cm_bench *b)
{
    const cm_sample_space *s = &b->load.shared.space.space;
    const cm_order o = s->order;
    return s->reach == 0 && (o == CM_ORDER_RANDOM || o == CM_ORDER_MAP || o == CM_ORDER_SERIES);
}

uint64_t cm_bench_sample_along(const cm_bench *b, const cm_sample_part *p, unsigned d)
{
    return p->axis[d] >= 0 ? b->load.shared.space.space.sample[p->axis[d]] : p->shape[d];
}

/* Adds the means for one read of PART. */
static int add_means(const cm_bench *b, const cm_sample_part *p, cm_readbench_predicted *out,
                     cm_error *err)
{
    const cm_variable *v = b->load.shared.data.variable[p->array];
    const cm_array *a = v->array;
    cm_touch_axis axis[CM_MAX_RANK];
    cm_touch_stats stats;
    for (unsigned d = 0; d < p->rank; d++)
        axis[d] = (cm_touch_axis){.length = p->shape[d],
                                  .sample = cm_bench_sample_along(b, p, d),
                                  .step = 1,
                                  .chunk = a->grid.chunk[d],
                                  .cuts = a->grid.cuts[d],
                                  .shard = v->is_sharded ? v->source_shard[d] : 0,
                                  .shard_cuts = v->is_sharded ? v->words->cuts[d] : NULL,
                                  .align = CM_ALIGN_RANDOM};
    int rc = cm_touch_read(p->rank, axis, a->dtype.nbytes, &stats, err);
    if (rc != CM_OK)
        return rc;
    out->chunks += stats.chunks.mean;
    out->decoded_nbytes += stats.bytes.mean;
    out->requests += stats.runs; /* an index is read once, and kept */
    return CM_OK;
}

/* Chunks that the box of PART meets, and the elements that they have together. */
static uint64_t met(const cm_bench *b, const cm_sample_part *p, const cm_box *sample,
                    uint64_t *nelem)
{
    const cm_grid *grid = &b->load.shared.data.array[p->array]->grid;
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], n = 1;
    cm_box box;
    cm_sample_part_box(p, sample, &box);
    cm_grid_cover(grid, &box, first, count);
    for (unsigned d = 0; d < p->rank; d++)
        n *= count[d];
    *nelem = cm_grid_stored_nelem(grid, first, count);
    return n;
}

/* The fewest chunks that PART of SAMPLE could meet, if it lay well. */
static uint64_t fewest_of(const cm_bench *b, const cm_sample_part *p, const cm_box *sample)
{
    const cm_grid *grid = &b->load.shared.data.array[p->array]->grid;
    uint64_t n = 1;
    cm_box box;
    cm_sample_part_box(p, sample, &box);
    for (unsigned d = 0; d < p->rank; d++)
        n *= cm_div_ceil(box.shape[d], grid->chunk[d]);
    return n;
}

/* The same, a mean over samples, all of which have one shape where they are not listed. */
static double fewest(const cm_bench *b, const cm_sample_part *p)
{
    const cm_sample_space *s = &b->load.shared.space.space;
    const uint64_t n = s->order == CM_ORDER_LIST ? s->nlisted : 1;
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        cm_box sample = {.rank = s->rank};
        memcpy(sample.shape, s->sample, sizeof sample.shape);
        if (s->order == CM_ORDER_LIST)
            cm_sample_at(s, 0, i, &sample);
        sum += (double)fewest_of(b, p, &sample);
    }
    return sum / (double)n;
}

static void count_epoch(const cm_bench *b, const cm_bench_rank *rank, uint64_t epoch,
                        cm_readbench_predicted *out)
{
    const cm_load_space *s = &b->load.shared.space;
    for (uint64_t k = 0; k < rank->load->share.per_rank; k++) {
        cm_box sample;
        cm_sample_at(&s->space, epoch, cm_load_number(rank->load, epoch, k), &sample);
        for (size_t p = 0; p < s->nparts; p++) {
            const cm_array *a = b->load.shared.data.array[s->part[p].array];
            if (!a->chunked)
                continue;
            uint64_t nelem;
            out->planned_chunks += met(b, &s->part[p], &sample, &nelem);
            out->planned_decoded_nbytes += nelem * a->dtype.nbytes;
        }
    }
}

/* Whether the planned loader takes what was asked for. */
static bool could_be_planned(const cm_bench *b)
{
    const cm_load_setting *s = &b->load.setting;
    return cm_bench_is_uniform(b) && b->load.shared.space.space.order == CM_ORDER_RANDOM &&
           s->engine == CM_LOAD_NATIVE && !s->planned && !b->options->unordered &&
           b->options->worker_threads <= 1;
}

static int foresee_planned(cm_bench *b, cm_error *err)
{
    double decodes = 0;
    int rc = could_be_planned(b) ? cm_load_planned_decodes(&b->load, &decodes, err) : CM_OK;
    b->session->predicted.planned_per_sample = rc == CM_OK ? decodes : 0;
    return rc == CM_EUNSUPPORTED ? CM_OK : rc;
}

int cm_bench_predict(cm_bench *b, cm_error *err)
{
    const cm_load_space *s = &b->load.shared.space;
    cm_readbench_predicted *out = &b->session->predicted;
    uint64_t total = 0;
    int rc = CM_OK;
    memset(out, 0, sizeof *out);
    out->known = cm_bench_is_uniform(b);
    for (size_t p = 0; p < s->nparts; p++) {
        const cm_array *a = b->load.shared.data.array[s->part[p].array];
        out->known = out->known && a->chunked;
        if (a->chunked)
            out->fewest_chunks += fewest(b, &s->part[p]);
    }
    for (size_t p = 0; p < s->nparts && rc == CM_OK && out->known; p++)
        rc = add_means(b, &s->part[p], out, err);
    if (rc ==
        CM_EUNSUPPORTED) { /* too many distinct values to count: only what was drawn is known */
        out->known = false;
        rc = CM_OK;
    }
    if (rc == CM_OK)
        rc = foresee_planned(b, err);
    for (unsigned r = 0; r < b->load.setting.ranks; r++)
        total += b->rank[r].load->share.per_rank * b->options->epochs;
    if (rc != CM_OK || total > COUNTED_SAMPLES)
        return rc;
    for (unsigned r = 0; r < b->load.setting.ranks; r++)
        for (uint64_t e = 0; e < b->options->epochs; e++)
            count_epoch(b, &b->rank[r], e, out);
    return CM_OK;
}
