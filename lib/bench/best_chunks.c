/*
 * Chunks that suit these samples best, compared with the present ones in bytes decoded and seconds
 * of a read; and the same with a codec that takes less time.
 *
 * Costs are measured several times and their medians count, so that a store has one best; the
 * spread of the rounds is reported.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "bench/readbench.h"
#include "bench/rules.h"
#include "chunkcalc/recommend.h"
#include "options/codec_option.h"
#include "watch/monitor.h"

#define FASTEST 1e15 /* bytes a second: an imitated storage without a limit */

enum {
    ROUNDS = 3
};

typedef struct round_costs { /* of one array with one codec */
    cm_suit_costs round[ROUNDS];
    cm_suit_costs middle;
} round_costs;

typedef struct codecs { /* of the chunks that are read, or would be */
    const cm_codec_spec *spec;
    size_t n;
    cm_codec_spec *own; /* to be freed; or NULL */
} codecs;

/* ---- costs --------------------------------------------------------------------------------- */

/* An emulated storage has the costs that it emulates. */
static void imitate(const cm_delay_model *delay, cm_suit_costs *costs)
{
    costs->cost.latency = costs->cost.range = delay->latency;
    costs->cost.bandwidth = fmin(delay->bandwidth, FASTEST);
    costs->cost.concurrency = 1;
}

static int measure(const cm_bench *b, size_t array, const codecs *c, cm_suit_costs *out,
                   cm_error *err)
{
    const cm_load_data *d = &b->load.shared.data;
    const cm_load_setting *t = &b->load.setting;
    const struct cm_readbench_hook *hook = b->options->hook;
    const cm_variable *v = d->variable[array];
    const bool measures =
        c->spec != NULL && !cm_monitor_canceled(b->monitor) && (hook == NULL || !hook->no_probe);
    const bool far = d->slow != NULL && cm_store_is_remote(d->slow);
    const cm_suit_source source = {.array = v->array,
                                   .path = t->emulated ? NULL : d->path,
                                   .codecs = c->spec,
                                   .ncodecs = c->n,
                                   .cold = b->options->cold,
                                   .any_size = true,
                                   .store = d->slow,
                                   .objects = v};
    cm_suit_run run; /* of its own: it keeps what it measured */
    cm_suit_run_init(&run, cm_load_room(&b->load));
    int rc = cm_suit_measure(&run, measures ? &source : NULL, far ? "s3" : "local", out, err);
    cm_suit_run_release(&run);
    if (t->emulated)
        imitate(&t->delay, out);
    return rc;
}

static double middle_of(const round_costs *r, size_t offset)
{
    double v[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        memcpy(&v[i], (const char *)&r->round[i].cost + offset, sizeof v[i]);
    cm_sort_doubles(v, ROUNDS);
    return v[ROUNDS / 2];
}

/* Measures a store behind a network once: requests are slow, and may cost money. */
static int measure_rounds(const cm_bench *b, size_t array, const codecs *c, round_costs *out,
                          cm_error *err)
{
    const cm_store *slow = b->load.shared.data.slow;
    const bool once = slow != NULL && cm_store_is_remote(slow);
    int rc = CM_OK;
    for (int i = 0; i < ROUNDS && rc == CM_OK; i++) {
        if (i == 0 || !once)
            rc = measure(b, array, c, &out->round[i], err);
        else
            out->round[i] = out->round[0];
    }
    out->middle = out->round[0];
    cm_cost_model *m = &out->middle.cost;
    m->latency = middle_of(out, offsetof(cm_cost_model, latency));
    m->range = middle_of(out, offsetof(cm_cost_model, range));
    m->chunk = middle_of(out, offsetof(cm_cost_model, chunk));
    m->bandwidth = middle_of(out, offsetof(cm_cost_model, bandwidth));
    m->decode = middle_of(out, offsetof(cm_cost_model, decode));
    m->ratio = middle_of(out, offsetof(cm_cost_model, ratio));
    return rc;
}

/* ---- codecs -------------------------------------------------------------------------------- */

static int codecs_of(const cm_codec_choice *choice, const cm_dtype *type, codecs *out,
                     cm_error *err)
{
    int rc = cm_codec_choice_specs(choice, type, &out->own, &out->n, err);
    out->spec = out->own;
    return rc;
}

/* The codecs of V's chunks after rechunking: their own, or nc2zarr's choice. */
static int codecs_kept(const cm_bench *b, const cm_variable *v, codecs *out, cm_error *err)
{
    const cm_codec_choice choice = cm_codec_choice_default(&v->array->dtype);
    *out = (codecs){.spec = v->codecs, .n = v->ncodecs};
    return b->load.shared.data.is_nc ? codecs_of(&choice, &v->array->dtype, out, err) : CM_OK;
}

static int codecs_light(const cm_variable *v, codecs *out, cm_error *err)
{
    cm_codec_choice choice;
    *out = (codecs){.spec = NULL};
    int rc = cm_codec_choice_parse(CM_READBENCH_LIGHT_CODEC, &choice, err);
    return rc == CM_OK ? codecs_of(&choice, &v->array->dtype, out, err) : rc;
}

/* ---- a read -------------------------------------------------------------------------------- */

typedef struct layout {
    const uint64_t *chunk;
    const cm_grid *grid; /* the array's, where it has these chunks; else NULL */
    bool sharded;
    const uint64_t *shard; /* NULL: one shard has all chunks */
    bool in_objects;       /* else in parts of an open one */
    double together;       /* requests of a chunk, as they were counted; 0: not known */
} layout;

/* The read of a sample of P from L: its requests as the reader merges them. */
static int work_of(const cm_bench *b, const cm_sample_part *p, const layout *l, cm_cost_work *out,
                   cm_error *err)
{
    const cm_array *a = b->load.shared.data.array[p->array];
    cm_touch_axis axis[CM_MAX_RANK];
    cm_touch_stats stats;
    for (unsigned d = 0; d < p->rank; d++) {
        const uint64_t chunk = l->chunk[d];
        const uint64_t all = cm_div_ceil(p->shape[d], chunk) * chunk;
        axis[d] = (cm_touch_axis){.length = p->shape[d],
                                  .sample = cm_bench_sample_along(b, p, d),
                                  .step = 1,
                                  .chunk = chunk,
                                  .shard = !l->sharded        ? 0
                                           : l->shard != NULL ? l->shard[d]
                                                              : all,
                                  .cuts = l->grid != NULL ? l->grid->cuts[d] : NULL,
                                  .align = CM_ALIGN_RANDOM};
    }
    int rc = cm_touch_read(p->rank, axis, a->dtype.nbytes, &stats, err);
    *out = (cm_cost_work){.chunks = stats.chunks.mean, .decoded = stats.bytes.mean};
    if (l->in_objects && !l->sharded)
        out->objects = stats.chunks.mean;
    else
        out->ranges = l->together > 0 ? stats.chunks.mean * l->together : stats.runs;
    return rc;
}

typedef struct choice {
    uint64_t chunk[CM_MAX_RANK];
    bool sharded;
    cm_cost_work work;
} choice;

/* The chunks of P that cost least; PRESENT may be NULL. */
static int choose(const cm_bench *b, const cm_sample_part *p, const cm_suit_costs *costs,
                  const uint64_t *present, choice *out, cm_error *err)
{
    const cm_array *a = b->load.shared.data.array[p->array];
    const cm_dataset *ds = b->load.shared.data.ds;
    cm_read read = {.weight = 1};
    cm_optimise_spec spec = {.rank = p->rank,
                             .itemsize = a->dtype.nbytes,
                             .read = &read,
                             .nreads = 1,
                             .cost = costs->cost,
                             .most_objects = ds->zarr_format == 2 ? 0 : CM_MANY_OBJECTS};
    cm_optimum best;
    for (unsigned d = 0; d < p->rank; d++) {
        spec.shape[d] = p->shape[d];
        read.sample[d] = cm_bench_sample_along(b, p, d);
    }
    int rc = cm_suit_optimise(&spec, cm_suit_measured(costs), present, &best, err);
    if (rc == CM_OK) {
        memcpy(out->chunk, best.best.chunk, p->rank * sizeof *out->chunk);
        out->sharded = cm_optimise_shards(&spec, (double)best.best.chunk_nbytes);
        const layout l = {.chunk = out->chunk, .sharded = out->sharded, .in_objects = true};
        rc = work_of(b, p, &l, &out->work, err);
    }
    cm_optimum_release(&best);
    return rc;
}

/* ---- a part -------------------------------------------------------------------------------- */

typedef struct sums { /* of all parts: seconds of a sample, in each round of costs */
    double now[ROUNDS], best[ROUNDS];
} sums;

static void add_rounds(sums *s, const round_costs *now, const cm_cost_work *present,
                       const round_costs *then, const cm_cost_work *best)
{
    for (int i = 0; i < ROUNDS; i++) {
        s->now[i] += cm_cost_work_seconds(&now->round[i].cost, present);
        s->best[i] += cm_cost_work_seconds(&then->round[i].cost, best);
    }
}

/* PART as it is stored, and with the best chunks that keep the codec. */
static int compare_part(cm_bench *b, const cm_sample_part *p, const round_costs *now,
                        const round_costs *then, cm_readbench_part *told, sums *s, cm_error *err)
{
    const cm_variable *v = b->load.shared.data.variable[p->array];
    const cm_array *a = v->array;
    cm_readbench_predicted *out = &b->session->predicted;
    const layout stored = {.chunk = a->grid.chunk,
                           .grid = &a->grid,
                           .sharded = v->is_sharded,
                           .shard = v->source_shard,
                           .in_objects = v->words != NULL,
                           .together = out->chunks > 0 ? out->requests / out->chunks : 0};
    cm_cost_work present = {0};
    choice best;
    int rc = choose(b, p, &then->middle, a->chunked ? a->grid.chunk : NULL, &best, err);
    if (rc == CM_OK && a->chunked)
        rc = work_of(b, p, &stored, &present, err);
    if (rc != CM_OK)
        return rc;
    const double seconds = cm_cost_work_seconds(&then->middle.cost, &best.work);
    const double before = a->chunked ? cm_cost_work_seconds(&now->middle.cost, &present) : 0;
    /* The present chunks may be better than the best of the search. */
    const bool better = !a->chunked || seconds < before;
    out->read_seconds += before;
    out->best_read_seconds += better ? seconds : before;
    out->best_decoded_nbytes += better && (!a->chunked || best.work.decoded < present.decoded)
                                    ? best.work.decoded
                                    : present.decoded;
    memcpy(told->best_chunk, better ? best.chunk : a->grid.chunk,
           p->rank * sizeof told->best_chunk[0]);
    told->best_in_shards = better ? best.sharded : v->is_sharded;
    add_rounds(s, now, &present, better ? then : now, better ? &best.work : &present);
    return CM_OK;
}

/* PART with the best chunks that have the light codec. */
static int lighten_part(cm_bench *b, const cm_sample_part *p, cm_readbench_part *told,
                        cm_error *err)
{
    const cm_array *a = b->load.shared.data.array[p->array];
    codecs light;
    round_costs costs;
    choice best;
    int rc = codecs_light(b->load.shared.data.variable[p->array], &light, err);
    if (rc == CM_OK)
        rc = measure_rounds(b, p->array, &light, &costs, err);
    if (rc == CM_OK && costs.middle.decode)
        rc = choose(b, p, &costs.middle, a->chunked ? a->grid.chunk : NULL, &best, err);
    if (rc == CM_OK && costs.middle.decode) {
        b->session->predicted.light_read_seconds +=
            cm_cost_work_seconds(&costs.middle.cost, &best.work);
        memcpy(told->light_chunk, best.chunk, p->rank * sizeof told->light_chunk[0]);
        told->light_in_shards = best.sharded;
    }
    cm_codec_specs_free(light.own, light.n);
    return rc;
}

/* Whether no codec takes less time than that of V's chunks. */
static bool is_light(const cm_variable *v)
{
    for (size_t i = 0; i < v->ncodecs; i++) {
        const cm_codec_spec *c = &v->codecs[i];
        const bool fast = c->id == CM_CODEC_BLOSC && strncmp(c->blosc.cname, "lz4", 3) == 0;
        if (c->id != CM_CODEC_BYTES && c->id != CM_CODEC_SHARDING && !fast)
            return false;
        if (c->id == CM_CODEC_SHARDING)
            return c->shard->ncodecs <= 1;
    }
    return true;
}

/* ---- all parts ----------------------------------------------------------------------------- */

static int tell_costs(cm_bench *b, const cm_suit_costs *costs, cm_error *err)
{
    char **to = &b->session->predicted.costs;
    if (*to != NULL)
        return CM_OK;
    *to = b->load.setting.emulated ? cm_asprintf(err, "storage as it is imitated; %s", costs->text)
                                   : cm_strdup(costs->text, err);
    return *to != NULL ? CM_OK : CM_ENOMEM;
}

static int compare_parts(cm_bench *b, sums *s, cm_error *err)
{
    const cm_load_space *space = &b->load.shared.space;
    int rc = CM_OK;
    for (size_t i = 0; i < space->nparts && rc == CM_OK; i++) {
        const cm_sample_part *p = &space->part[i];
        const cm_variable *v = b->load.shared.data.variable[p->array];
        const codecs present = {.spec = v->codecs, .n = v->ncodecs};
        codecs kept = {.spec = NULL};
        round_costs now = {0}, then;
        rc = codecs_kept(b, v, &kept, err);
        if (rc == CM_OK && v->array->chunked)
            rc = measure_rounds(b, p->array, &present, &now, err);
        if (rc == CM_OK && v->array->chunked && kept.own == NULL)
            then = now;
        else if (rc == CM_OK)
            rc = measure_rounds(b, p->array, &kept, &then, err);
        if (rc == CM_OK)
            rc = compare_part(b, p, &now, &then, &b->session->part[i], s, err);
        if (rc == CM_OK)
            rc = tell_costs(b, v->array->chunked ? &now.middle : &then.middle, err);
        cm_codec_specs_free(kept.own, kept.n);
    }
    return rc;
}

/* The ratio of present time to that with the best chunks, for each round of costs. */
static void tell_spread(cm_readbench_predicted *out, const sums *s)
{
    for (int i = 0; i < ROUNDS; i++) {
        const double times = s->best[i] > 0 ? s->now[i] / s->best[i] : 0;
        out->least_times = i == 0 || times < out->least_times ? times : out->least_times;
        out->most_times = times > out->most_times ? times : out->most_times;
    }
}

/* Only where steps wait, every part has a lighter codec, and its cost was measured. */
static int lighten(cm_bench *b, cm_error *err)
{
    const cm_load_space *space = &b->load.shared.space;
    cm_readbench_session *s = b->session;
    int rc = CM_OK;
    if (s->wait_share <= CM_RULE_KEEPS_UP)
        return CM_OK;
    for (size_t i = 0; i < space->nparts; i++)
        if (is_light(b->load.shared.data.variable[space->part[i].array]))
            return CM_OK;
    for (size_t i = 0; i < space->nparts && rc == CM_OK; i++) {
        rc = lighten_part(b, &space->part[i], &s->part[i], err);
        if (rc == CM_OK && s->part[i].light_chunk[0] == 0) {
            s->predicted.light_read_seconds = 0;
            break;
        }
    }
    return rc;
}

int cm_bench_best_chunks(cm_bench *b, cm_error *err)
{
    cm_readbench_predicted *out = &b->session->predicted;
    cm_error why = {0};
    sums s = {.now = {0}};
    if (!cm_bench_is_uniform(b))
        return CM_OK;
    int rc = compare_parts(b, &s, &why);
    if (rc == CM_OK)
        rc = lighten(b, &why);
    if (rc == CM_ENOMEM)
        return cm_fail(err, rc, "%s", why.text);
    if (rc != CM_OK) /* without it the report says less */
        out->best_decoded_nbytes = out->read_seconds = out->best_read_seconds =
            out->light_read_seconds = 0;
    else if (out->known)
        tell_spread(out, &s);
    else /* an array without chunks has no costs of its own */
        out->read_seconds = 0;
    return CM_OK;
}
