/* Chunks that suit these samples best: bytes decoded and cost, beside the present ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/readbench.h"
#include "chunkcalc/suit.h"
#include "watch/monitor.h"

#define FASTEST 1e15 /* bytes a second: an imitated storage without a limit */

/* An imitated storage has the costs that are imitated. */
static void imitate(const cm_delay_model *delay, cm_suit_costs *costs)
{
    costs->cost.latency = costs->cost.range = delay->latency;
    costs->cost.bandwidth = fmin(delay->bandwidth, FASTEST);
    costs->cost.concurrency = 1;
}

static int measure(const cm_bench *b, cm_suit_run *run, size_t array, cm_suit_costs *out,
                   cm_error *err)
{
    const cm_load_data *d = &b->load.shared.data;
    const cm_load_setting *t = &b->load.setting;
    const struct cm_readbench_hook *hook = b->options->hook;
    const cm_variable *v = d->variable[array];
    const bool measures =
        v->codecs != NULL && !cm_monitor_canceled(b->monitor) && (hook == NULL || !hook->no_probe);
    const bool far = d->slow != NULL && cm_store_is_remote(d->slow);
    const cm_suit_source source = {.array = v->array,
                                   .path = t->emulated ? NULL : d->path,
                                   .codecs = v->codecs,
                                   .ncodecs = v->ncodecs,
                                   .cold = b->options->cold,
                                   .store = d->slow,
                                   .objects = v};
    int rc = cm_suit_measure(run, measures ? &source : NULL, far ? "s3" : "local", out, err);
    if (t->emulated)
        imitate(&t->delay, out);
    return rc;
}

/* Seconds of a read that meets CHUNKS and decodes NBYTES, of objects or of parts of open ones. */
static double seconds_of(const cm_cost_model *m, bool in_objects, double chunks, double nbytes)
{
    const cm_cost_work w = {.objects = in_objects ? chunks : 0,
                            .ranges = in_objects ? 0 : chunks,
                            .chunks = chunks,
                            .decoded = nbytes};
    return cm_cost_work_seconds(m, &w);
}

/* PART as it is stored, and as the best chunks would have it, added to the means. */
static int compare_part(cm_bench *b, const cm_sample_part *p, const cm_suit_costs *costs,
                        cm_readbench_part *told, cm_error *err)
{
    const cm_variable *v = b->load.shared.data.variable[p->array];
    const cm_array *a = v->array;
    cm_readbench_predicted *out = &b->session->predicted;
    cm_read read = {.weight = 1};
    cm_optimise_spec spec = {.rank = p->rank,
                             .itemsize = a->dtype.nbytes,
                             .read = &read,
                             .nreads = 1,
                             .cost = costs->cost,
                             .most_objects = CM_MANY_OBJECTS};
    cm_optimum best;
    for (unsigned d = 0; d < p->rank; d++) {
        spec.shape[d] = p->shape[d];
        read.sample[d] = cm_bench_sample_along(b, p, d);
    }
    int rc = cm_suit_optimise(&spec, cm_suit_measured(costs), a->grid.chunk, &best, err);
    if (rc == CM_OK) {
        const cm_read_cost now = cm_optimise_read_cost(&spec, 0, a->grid.chunk);
        const bool in_objects = v->words != NULL && !v->is_sharded;
        const double seconds = seconds_of(&costs->cost, in_objects, now.requests, now.bytes);
        /* The present chunks may be better than the best of the search. */
        const bool better = best.best.seconds < seconds;
        out->read_seconds += seconds;
        out->best_read_seconds += better ? best.best.seconds : seconds;
        out->best_decoded_nbytes +=
            better && best.best.bytes < now.bytes ? best.best.bytes : now.bytes;
        memcpy(told->best_chunk, better ? best.best.chunk : a->grid.chunk,
               p->rank * sizeof told->best_chunk[0]);
    }
    cm_optimum_release(&best);
    return rc;
}

static int compare_parts(cm_bench *b, cm_suit_run *run, cm_error *err)
{
    const cm_load_space *s = &b->load.shared.space;
    int rc = CM_OK;
    for (size_t p = 0; p < s->nparts && rc == CM_OK; p++) {
        cm_suit_costs costs;
        rc = measure(b, run, s->part[p].array, &costs, err);
        if (rc == CM_OK)
            rc = compare_part(b, &s->part[p], &costs, &b->session->part[p], err);
        if (rc == CM_OK && b->session->predicted.costs == NULL) {
            b->session->predicted.costs =
                b->load.setting.emulated
                    ? cm_asprintf(err, "storage as it is imitated; %s", costs.text)
                    : cm_strdup(costs.text, err);
            rc = b->session->predicted.costs != NULL ? CM_OK : CM_ENOMEM;
        }
    }
    return rc;
}

int cm_bench_best_chunks(cm_bench *b, cm_error *err)
{
    cm_readbench_predicted *out = &b->session->predicted;
    cm_suit_run run;
    cm_error why = {0};
    if (!out->known)
        return CM_OK;
    cm_suit_run_init(&run, cm_load_room(&b->load));
    int rc = compare_parts(b, &run, &why);
    cm_suit_run_release(&run);
    if (rc == CM_ENOMEM)
        return cm_fail(err, rc, "%s", why.text);
    if (rc != CM_OK) /* without it the report says less */
        out->best_decoded_nbytes = out->read_seconds = out->best_read_seconds = 0;
    return CM_OK;
}
