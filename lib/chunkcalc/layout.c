/* One layout after the other: what reads meet, what the array takes, what to be warned of. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "chunkcalc/chunkcalc.h"
#include "plan/autochunk.h"

#define MANY_SMALL  1000000
#define SMALL_CHUNK (UINT64_C(1) << 20)
/* ext4 without large_dir holds about that many names a folder before its index is full. */
#define FOLDER_LIMIT (UINT64_C(1) << 21)
/* Blosc 1, README_CHUNK_FORMAT: sizes are signed 32-bit numbers, 16 bytes are the header's. */
#define BLOSC_LIMIT (UINT64_C(0x7fffffff) - 16)

static bool is_present(const cm_chunkcalc_layout *l)
{
    return strcmp(l->rule, "present") == 0;
}

static void axes_of(const cm_calc *c, size_t read, const cm_chunkcalc_layout *l,
                    cm_touch_axis *axis)
{
    const cm_chunkcalc_read *r = &c->report->read[read];
    cm_grid chunks, objects;
    const bool cut = cm_calc_cut_grids(c, l, &chunks, &objects);

    for (unsigned j = 0; j < c->report->rank; j++)
        axis[j] = (cm_touch_axis){.length = c->report->shape[j],
                                  .sample = r->sample[j],
                                  .step = r->step[j],
                                  .chunk = l->chunk[j],
                                  .shard = l->sharded ? l->shard[j] : 0,
                                  .align = c->align,
                                  .every = c->every,
                                  .cuts = cut ? chunks.cuts[j] : NULL,
                                  .shard_cuts = cut && l->sharded ? objects.cuts[j] : NULL};
}

/* Exact where the ratio is 1. */
static uint64_t divide(uint64_t nbytes, double ratio)
{
    return ratio == 1 ? nbytes : (uint64_t)fmin(ceil((double)nbytes / ratio), 0x1p63);
}

static cm_chunkcalc_stat stat_of(const cm_touch_stat *s, double ratio)
{
    return (cm_chunkcalc_stat){divide(s->min, ratio), divide(s->max, ratio), divide(s->p50, ratio),
                               divide(s->p95, ratio), s->mean / ratio};
}

/* WEIGHT of the time that WORK takes goes to the layout's. */
static double add_seconds(const cm_cost_model *m, const cm_cost_work *work, double weight,
                          cm_chunkcalc_layout *l)
{
    const double seconds = cm_cost_work_seconds(m, work);

    l->seconds += weight * seconds;
    l->waiting += weight * cm_cost_work_waiting(m, work);
    l->moving += weight * cm_cost_work_moving(m, work);
    return seconds;
}

/*
 * So many chunks will lie in shards, which the optimiser counts on; only a store that is there
 * stays as it is.  A file is compared as the store that it becomes with these chunks.
 */
static bool in_shards(const cm_calc *c, const cm_chunkcalc_layout *l)
{
    return (!is_present(l) || c->report->is_netcdf) &&
           cm_optimise_shards(&c->spec, (double)l->chunk_nbytes);
}

/*
 * The model with decoding and bytes measured on chunks of this very shape: a byte takes 1.5 times
 * as long in maps as in cubes of the same data.
 */
static cm_cost_model model_for(const cm_calc *c, const cm_chunkcalc_layout *l)
{
    cm_cost_model m = c->spec.cost;
    const cm_shape_costs *s = &c->shape_costs;
    if (s->nchunks == 0 || s->seconds <= 0 || s->stored <= 0)
        return m;
    m.chunk = 0;
    m.decode = (double)l->chunk_nbytes / s->seconds;
    m.ratio = (double)l->chunk_nbytes / s->stored;
    return m;
}

static int fill_result(cm_calc *c, size_t read, double weight, cm_chunkcalc_layout *l,
                       cm_error *err)
{
    cm_touch_axis axis[CM_MAX_RANK];
    cm_touch_stats stats;
    cm_chunkcalc_result *result = &l->result[read];
    double ratio = c->report->ratio;

    axes_of(c, read, l, axis);
    int rc = c->access != NULL
                 ? cm_calc_access_touch(c, read, l, &stats, err)
                 : cm_touch_read(c->report->rank, axis, c->report->itemsize, &stats, err);
    if (rc != CM_OK)
        return rc;
    result->chunks = stat_of(&stats.chunks, 1);
    result->bytes = stat_of(&stats.bytes, ratio);
    result->requests = stat_of(&stats.requests, 1);
    result->decoded_nbytes = stats.bytes.mean;
    result->amplification = stats.bytes.mean / c->report->read[read].nbytes;
    cm_cost_work work = {
        .objects = stats.chunks.mean, .chunks = stats.chunks.mean, .decoded = stats.bytes.mean};
    if (l->sharded) {
        work.objects = stats.shards.mean;
        work.ranges = stats.runs;
    } else if (in_shards(c, l)) {
        work.objects = 0;
        work.ranges = stats.chunks.mean;
    }
    const cm_cost_model model = model_for(c, l);
    result->seconds = add_seconds(&model, &work, weight, l);
    return CM_OK;
}

/* Each sample has chunks of its own, as far as there are so many; a shard's index is asked once. */
static void bound_batch(cm_chunkcalc_layout *l, double batch)
{
    const cm_chunkcalc_result *r = &l->result[0];
    const double chunks = l->has_footprint ? (double)l->nchunks : INFINITY;
    const double most = chunks + (l->sharded && l->has_footprint ? (double)l->nobjects : 0);
    l->batch_chunks = fmin(r->chunks.mean * batch, chunks);
    l->batch_requests = fmin(r->requests.mean * batch, most);
}

static int fill_batch(cm_calc *c, cm_chunkcalc_layout *l, cm_error *err)
{
    cm_touch_axis axis[CM_MAX_RANK];
    unsigned rank = c->report->rank;
    uint64_t batch = c->options->batch;
    double nshards = 0;
    bool cut = false;
    int rc;

    axes_of(c, 0, l, axis);
    for (unsigned j = 0; j < rank; j++) {
        cut |= axis[j].shard_cuts != NULL;
        axis[j].shard = 0;
        axis[j].shard_cuts = NULL;
    }
    rc = cut ? CM_EUNSUPPORTED : cm_touch_batch(rank, axis, batch, &l->batch_chunks, err);
    if (rc == CM_OK && l->sharded) {
        for (unsigned j = 0; j < rank; j++) {
            axis[j].chunk = l->shard[j];
            if (c->align == CM_ALIGN_CHUNK) {
                axis[j].align = CM_ALIGN_EVERY;
                axis[j].every = l->chunk[j];
            }
        }
        rc = cm_touch_batch(rank, axis, batch, &nshards, err);
    }
    if (rc == CM_EUNSUPPORTED) {
        bound_batch(l, (double)batch);
        return CM_OK;
    }
    l->batch_exact = true;
    l->batch_requests = l->batch_chunks + nshards;
    return rc;
}

/* Where lengths differ, chunks that reads meet are larger than most; all together are the array. */
static void fill_batch_nbytes(const cm_calc *c, cm_chunkcalc_layout *l)
{
    const cm_chunkcalc_result *r = &l->result[0];
    double whole = (double)c->report->itemsize;
    l->batch_nbytes = l->batch_chunks * (double)l->chunk_nbytes;
    if (!is_present(l) || !cm_zarr_meta_is_cut(&c->present_words))
        return;
    for (unsigned j = 0; j < c->report->rank; j++)
        whole *= (double)c->report->shape[j];
    l->batch_nbytes = fmin(l->batch_chunks * r->decoded_nbytes / r->chunks.mean,
                           whole + (double)l->padding_nbytes);
}

static int fill_footprint(cm_calc *c, cm_chunkcalc_layout *l, cm_error *err)
{
    cm_footprint f;
    cm_grid chunks, objects;
    int rc = cm_calc_cut_grids(c, l, &chunks, &objects)
                 ? cm_footprint_of_grid(&chunks, &objects, c->report->itemsize, c->report->ratio,
                                        &f, err)
                 : cm_footprint_count(c->report->rank, c->report->shape, l->chunk,
                                      l->sharded ? l->shard : NULL, c->report->itemsize,
                                      c->report->ratio, &f, err);
    if (rc != CM_OK)
        return rc;
    l->has_footprint = true;
    l->nchunks = f.nchunks;
    l->nobjects = is_present(l) && c->report->is_netcdf ? 1 : f.nobjects;
    l->padding_nbytes = f.padding_nbytes;
    l->index_nbytes = f.index_nbytes;
    l->stored_nbytes = f.stored_nbytes;
    return CM_OK;
}

void cm_calc_set_pays(const cm_chunkcalc_report *r, cm_chunkcalc_layout *l)
{
    for (size_t k = 0; k < r->nreads; k++) {
        if (r->read[k].own_seconds > 0)
            l->result[k].pays = l->result[k].seconds / r->read[k].own_seconds;
        l->regret = fmax(l->regret, l->result[k].pays);
    }
}

static int fill(cm_calc *c, cm_chunkcalc_layout *l, cm_error *err)
{
    const cm_chunkcalc_report *r = c->report;
    cm_choice choice;
    int rc = cm_optimise_evaluate(&c->spec, NULL, l->chunk, &choice, err);
    double total = 0;

    if (rc != CM_OK)
        return rc;
    l->chunk_nbytes = choice.chunk_nbytes;
    l->result = cm_calloc(r->nreads, sizeof(*l->result), err);
    if (l->result == NULL)
        return CM_ENOMEM;
    rc = cm_calc_shape_costs(c, l->chunk, &c->shape_costs, err);
    if (rc != CM_OK)
        return rc;
    for (size_t i = 0; i < r->nreads; i++)
        total += r->read[i].weight;
    for (size_t i = 0; i < r->nreads; i++) {
        double weight = r->read[i].weight / total;
        rc = fill_result(c, i, weight, l, err);
        if (rc != CM_OK)
            return rc;
        l->bytes += weight * l->result[i].bytes.mean;
        l->requests += weight * l->result[i].requests.mean;
    }
    cm_calc_set_pays(r, l);
    if (r->access.reads > 0 && l->seconds > 0)
        l->rate = r->access.streams / l->seconds;
    if (r->bounded)
        rc = fill_footprint(c, l, err);
    if (rc == CM_OK && c->options->batch > 0) {
        rc = fill_batch(c, l, err);
        fill_batch_nbytes(c, l);
    }
    return rc;
}

int cm_calc_add_layout(cm_calc *c, const char *rule, const uint64_t *chunk, const uint64_t *shard,
                       size_t *index, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    unsigned rank = r->rank;

    if (CM_GROW(r->layout, r->nlayouts, err) != CM_OK)
        return CM_ENOMEM;
    cm_chunkcalc_layout *l = &r->layout[r->nlayouts];
    memset(l, 0, sizeof(*l));
    r->nlayouts++; /* from here on it is released with the report */
    l->rule = rule;
    memcpy(l->chunk, chunk, rank * sizeof(*chunk));
    if (shard != NULL) {
        l->sharded = rank > 0;
        memcpy(l->shard, shard, rank * sizeof(*shard));
    }
    if (index != NULL)
        *index = r->nlayouts - 1;
    int rc = fill(c, l, err);
    if (rc != CM_OK) {
        char *text = cm_calc_shape_text(c, chunk, NULL);
        cm_error_prefix(err, "chunks %s", text != NULL ? text : "?");
        free(text);
    }
    return rc;
}

int cm_calc_shards_for(const cm_calc *c, const uint64_t *chunk, const uint64_t *typed,
                       uint64_t *shard, bool *sharded, cm_error *err)
{
    const char *text = c->options->shards;
    const cm_chunkcalc_report *r = c->report;
    uint64_t fixed[CM_MAX_RANK] = {0};

    *sharded = text != NULL && strcmp(text, "none") != 0;
    if (!*sharded)
        return CM_OK;
    if (c->shards.text != NULL) {
        int rc = cm_calc_shape_apply(c, "`shards`", &c->shards, fixed, NULL, err);
        if (rc != CM_OK)
            return rc;
        for (unsigned j = 0; j < r->rank; j++)
            if (typed == NULL || typed[j] == 0)
                fixed[j] = cm_div_ceil(fixed[j], chunk[j]) * chunk[j];
    }
    if (!r->bounded) {
        for (unsigned j = 0; j < r->rank; j++)
            if (fixed[j] == 0)
                return cm_fail(err, CM_EINVAL,
                               "`shards` %s: shards of an endless array need every length, or "
                               "`shape`",
                               text);
        memcpy(shard, fixed, r->rank * sizeof(*shard));
        return CM_OK;
    }
    int rc = cm_autoshard(r->rank, r->shape, (uint32_t)r->itemsize, chunk, CM_CALC_SHARD_TARGET,
                          fixed, shard, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "`shards` %s", text);
    return rc;
}

static int list_one(cm_calc *c, const char *rule, const uint64_t *chunk, const uint64_t *typed,
                    cm_error *err)
{
    uint64_t shard[CM_MAX_RANK];
    bool sharded;
    int rc = cm_calc_shards_for(c, chunk, typed, shard, &sharded, err);

    return rc != CM_OK ? rc : cm_calc_add_layout(c, rule, chunk, sharded ? shard : NULL, NULL, err);
}

/* A candidate as typed; lengths that it does not name are chosen, given those that it does. */
static int list_given(cm_calc *c, const char *rule, const char *option, const cm_calc_shape *shape,
                      cm_error *err)
{
    uint64_t chunk[CM_MAX_RANK], typed[CM_MAX_RANK] = {0};
    bool complete = true;
    int rc = cm_calc_shape_apply(c, option, shape, typed, NULL, err);

    for (unsigned j = 0; rc == CM_OK && j < c->report->rank; j++)
        complete = complete && typed[j] != 0;
    memcpy(chunk, typed, sizeof(chunk));
    if (rc == CM_OK && !complete) {
        cm_optimise_spec spec = c->spec;
        cm_optimum optimum;
        memcpy(spec.fixed, typed, sizeof(typed));
        rc = cm_optimise(&spec, &optimum, err);
        memcpy(chunk, optimum.best.chunk, sizeof(chunk));
        cm_optimum_release(&optimum);
        if (rc != CM_OK)
            cm_error_prefix(err, "%s %s", option, shape->text);
    }
    if (rc != CM_OK)
        return rc;
    return list_one(c, rule, chunk, typed, err);
}

static bool listed_already(const cm_calc *c, const uint64_t *chunk)
{
    for (size_t i = 0; i < c->report->nlayouts; i++)
        if (memcmp(c->report->layout[i].chunk, chunk, c->report->rank * sizeof(*chunk)) == 0)
            return true;
    return false;
}

static int list_default(cm_calc *c, cm_error *err)
{
    const cm_chunkcalc_report *r = c->report;
    uint64_t chunk[CM_MAX_RANK] = {0};
    bool listed;
    int rc = CM_OK;

    for (unsigned i = 0; rc == CM_OK && cm_suit_candidate(r->rank, r->shape, r->itemsize,
                                                          r->read[0].sample, i, chunk, &listed);
         i++)
        if (listed && !listed_already(c, chunk))
            rc = list_one(c, "listed", chunk, NULL, err);
    return rc;
}

int cm_calc_list(cm_calc *c, cm_error *err)
{
    int rc = CM_OK;

    if (c->nchunks == 0)
        return list_default(c, err);
    for (size_t i = 0; i < c->nchunks && rc == CM_OK; i++)
        rc = list_given(c, "listed", "`chunks`", &c->chunks[i], err);
    return rc;
}

int cm_calc_list_against(cm_calc *c, cm_error *err)
{
    int rc = CM_OK;

    for (size_t i = 0; i < c->nagainst && rc == CM_OK; i++)
        rc = list_given(c, "against", "`against`", &c->against[i], err);
    return rc;
}

static bool many_small(const cm_calc *c, const cm_chunkcalc_layout *l)
{
    const cm_chunkcalc_report *r = c->report;
    bool kept = r->sharded_objects > 0 && l == &r->layout[r->recommended];

    return l->has_footprint && l->nobjects >= MANY_SMALL && l->chunk_nbytes < SMALL_CHUNK && !kept;
}

/* One sentence for all layouts that would fill a disk with small files. */
static int warn_small(cm_calc *c, cm_error *err)
{
    const cm_chunkcalc_report *r = c->report;
    const cm_chunkcalc_layout *worst = NULL;
    size_t n = 0;

    for (size_t i = 0; i < r->nlayouts; i++)
        if (many_small(c, &r->layout[i])) {
            n++;
            if (worst == NULL || r->layout[i].nobjects > worst->nobjects)
                worst = &r->layout[i];
        }
    if (n == 0)
        return CM_OK;
    char *text = cm_calc_shape_text(c, worst->chunk, err);
    if (text == NULL)
        return CM_ENOMEM;
    int rc = cm_calc_warn(c, err,
                          "%zu of the layouts %s a million or more objects with chunks under 1 "
                          "MiB (%s makes %" PRIu64
                          "): larger chunks or shards are easier on every file system",
                          n, cm_of_count(n, "makes", "make"), text, worst->nobjects);
    free(text);
    return rc;
}

static int warn_layout(cm_calc *c, const cm_chunkcalc_layout *l, const char *text, cm_error *err)
{
    const cm_chunkcalc_report *r = c->report;
    uint64_t memory = c->options->worker_memory;
    char size[32], limit[32];
    int rc = CM_OK;

    if (r->bounded && r->rank > 0 && (!is_present(l) || c->present_apart)) {
        unsigned j = r->rank - 1; /* the folder c/0/1 holds the chunks along the last dimension */
        uint64_t names = cm_div_ceil(r->shape[j], l->sharded ? l->shard[j] : l->chunk[j]);
        if (names > FOLDER_LIMIT)
            rc = cm_calc_warn(c, err,
                              "chunks %s: %" PRIu64 " files in one folder, more than 2^21, which "
                              "some file systems cannot hold",
                              text, names);
    }
    if (rc == CM_OK && l->chunk_nbytes > BLOSC_LIMIT)
        rc = cm_calc_warn(c, err, "chunks %s: blosc cannot compress %s, more than 2 GiB", text,
                          cm_format_size(l->chunk_nbytes, size, sizeof(size)));
    if (rc == CM_OK && memory != 0 && l->chunk_nbytes > memory)
        rc = cm_calc_warn(c, err, "chunks %s: one chunk of %s exceeds the %s that a worker has",
                          text, cm_format_size(l->chunk_nbytes, size, sizeof(size)),
                          cm_format_size(memory, limit, sizeof(limit)));
    return rc;
}

int cm_calc_warn_layouts(cm_calc *c, cm_error *err)
{
    int rc = warn_small(c, err);

    for (size_t i = 0; i < c->report->nlayouts && rc == CM_OK; i++) {
        const cm_chunkcalc_layout *l = &c->report->layout[i];
        char *text = cm_calc_shape_text(c, l->chunk, err);
        rc = text == NULL ? CM_ENOMEM : warn_layout(c, l, text, err);
        free(text);
    }
    return rc;
}
