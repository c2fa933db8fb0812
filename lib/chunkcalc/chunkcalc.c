#include "chunkcalc/chunkcalc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/number.h"
#include "base/sentences.h"

void cm_chunkcalc_options_init(cm_chunkcalc_options *o)
{
    memset(o, 0, sizeof(*o));
    o->align = "random";
    o->latency = o->bandwidth = o->decode = o->concurrency = o->ratio = -1;
}

/* ---- the cost model ------------------------------------------------------------------------ */

static bool override(double *value, double given, const char *name, char *list, size_t size)
{
    if (given < 0)
        return false;
    *value = given;
    size_t n = strlen(list);
    snprintf(list + n, size - n, "%s%s", n > 0 ? ", " : "", name);
    return true;
}

static int set_cost(cm_calc *c, cm_error *err)
{
    const cm_chunkcalc_options *o = c->options;
    const char *storage = c->storage;
    cm_chunkcalc_report *r = c->report;
    cm_cost_model *m = &c->spec.cost;
    char given[128] = "";

    if (c->costs.cost.concurrency == 0) { /* there is no store, or nothing in it to measure */
        int rc = cm_suit_measure(&c->run, NULL, storage, &c->costs, err);
        if (rc != CM_OK)
            return rc;
    }
    *m = c->costs.cost;
    if (override(&m->latency, o->latency, "latency", given, sizeof(given)))
        m->range = m->latency;
    override(&m->bandwidth, o->bandwidth, "bandwidth", given, sizeof(given));
    if (override(&m->decode, o->decode, "decode rate", given, sizeof(given)))
        m->chunk = 0;
    override(&m->concurrency, o->concurrency, "concurrency", given, sizeof(given));
    override(&m->ratio, o->ratio, "ratio", given, sizeof(given));
    m->reads = r->access.streams; /* of a log; else there is always more to ask for */
    int rc = cm_cost_model_check(m, err);
    if (rc != CM_OK)
        return rc;
    char measured[128] = "";
    if (!c->costs.decode && r->measured_chunks > 0)
        snprintf(measured, sizeof(measured),
                 "; bytes are divided by the ratio of %" PRIu64 " %s of the store",
                 r->measured_chunks, cm_of_count(r->measured_chunks, "chunk", "chunks"));
    r->storage = cm_strdup(storage, err);
    r->storage_source = cm_asprintf(err, "%s%s%s%s", c->costs.text, measured,
                                    given[0] != '\0' ? "; given instead: " : "", given);
    if (r->storage == NULL || r->storage_source == NULL)
        return CM_ENOMEM;
    r->measured = c->costs.storage;
    r->cold = c->costs.cold;
    r->cached = c->costs.storage && !c->costs.cold && !c->costs.remote && o->bandwidth < 0;
    r->latency = m->latency;
    r->range = m->range;
    r->chunk_seconds = m->chunk;
    r->bandwidth = m->bandwidth;
    r->decode = m->decode;
    r->concurrency = m->concurrency;
    /* Where costs are not measured, how the array compresses is known all the same. */
    r->ratio = o->ratio < 0 && !c->costs.decode && c->stored_ratio > 0 ? c->stored_ratio : m->ratio;
    return CM_OK;
}

/*
 * A bound that is not given makes room for the layouts listed, so that the
 * recommendation is never worse than they are.
 */
static void set_bounds(cm_calc *c)
{
    const cm_chunkcalc_options *o = c->options;
    const cm_chunkcalc_report *r = c->report;
    uint64_t low = CM_DEFAULT_MIN_NBYTES, high = CM_DEFAULT_MAX_NBYTES;

    for (size_t i = 0; i < r->nlayouts; i++) {
        low = r->layout[i].chunk_nbytes < low ? r->layout[i].chunk_nbytes : low;
        high = r->layout[i].chunk_nbytes > high ? r->layout[i].chunk_nbytes : high;
    }
    /* Requests of a read that overlap take no longer than one: by time alone objects of a few KiB
       are as good as any, but not for servers and their bills. */
    const bool overlap = c->spec.cost.reads > 0 && c->costs.remote;
    const uint64_t floor = cm_suit_least(cm_suit_measured(&c->costs) && !overlap);
    if (o->store != NULL && o->chunks.n == 0 && low < floor)
        low = floor;
    if (o->min_nbytes != 0)
        low = o->min_nbytes;
    if (o->max_nbytes != 0)
        high = o->max_nbytes;
    if (o->min_nbytes == 0 && low > high)
        low = high;
    if (o->max_nbytes == 0 && high < low)
        high = low;
    c->spec.min_nbytes = c->report->min_nbytes = low;
    c->spec.max_nbytes = c->report->max_nbytes = high;
}

/* ---- the calculation ----------------------------------------------------------------------- */

static int check_options(const cm_chunkcalc_options *o, cm_error *err)
{
    bool reads = o->sample != NULL || o->read.n > 0 || o->access != NULL;

    if (o->access != NULL && (o->sample != NULL || o->read.n > 0 || o->batch > 0))
        return cm_fail(err, CM_EINVAL,
                       "`access` says what is read: `sample`, `read` and `batch` cannot");
    if (o->access != NULL && o->align != NULL && strcmp(o->align, "random") != 0)
        return cm_fail(err, CM_EINVAL, "`access` says where reads start: `align` cannot");
    if (o->access != NULL && o->store == NULL)
        return cm_fail(err, CM_EINVAL, "`access` %s needs the store that it is a log of",
                       o->access);
    if (o->against.n > 0 && o->access == NULL)
        return cm_fail(err, CM_EINVAL, "`against` needs `access`: reads whose rate is predicted");
    if (!reads && o->store == NULL)
        return cm_fail(err, CM_EINVAL, "name a read (`sample` SHAPE), or a store to describe");
    if (o->audit && o->store == NULL)
        return cm_fail(err, CM_EINVAL, "`audit` needs a store");
    if (!reads && (o->recommend || o->chunks.n > 0 || o->batch > 0))
        return cm_fail(err, CM_EINVAL, "name a read: `sample` SHAPE or `read` SHAPE");
    if (o->max_nbytes != 0 && o->min_nbytes > o->max_nbytes)
        return cm_fail(err, CM_EINVAL, "`min_nbytes` exceeds `max_nbytes`");
    if (o->step_time > 0 && o->batch == 0)
        return cm_fail(err, CM_EINVAL, "`step_time` needs `batch`: how many samples a step takes");
    if (o->variable != NULL && o->store == NULL)
        return cm_fail(err, CM_EINVAL, "`variable` %s needs a store", o->variable);
    return CM_OK;
}

static int calculate(cm_calc *c, cm_error *err)
{
    static const char *const OBJECTIVES[] = {"cost", "bytes", "requests", "regret"};
    const cm_chunkcalc_options *o = c->options;
    cm_chunkcalc_report *r = c->report;
    int rc = cm_calc_parse(c, err);

    if (rc == CM_OK)
        rc = c->access != NULL ? cm_calc_access_reads(c, err) : cm_calc_reads(c, err);
    if (rc == CM_OK)
        rc = set_cost(c, err);
    if (rc != CM_OK)
        return rc;
    c->spec.rank = r->rank;
    memcpy(c->spec.shape, r->shape, sizeof(c->spec.shape));
    c->spec.itemsize = r->itemsize;
    c->spec.align = c->align;
    c->spec.every = c->every;
    c->spec.read = c->reads;
    c->spec.nreads = r->nreads;
    c->spec.objective = (cm_objective)o->objective;
    /* As nc2zarr does it where nobody says otherwise. */
    c->spec.most_objects = o->shards == NULL ? CM_MANY_OBJECTS : strcmp(o->shards, "none") != 0;
    if (!r->bounded)
        c->spec.most_objects = 0;
    r->objective = OBJECTIVES[o->objective];
    r->batch = o->batch;
    r->step_time = o->step_time;
    set_bounds(c);
    rc = cm_calc_list(c, err);
    set_bounds(c);
    if (rc == CM_OK && (o->recommend || o->audit))
        rc = cm_calc_recommend(c, err);
    if (rc == CM_OK)
        rc = cm_calc_list_against(c, err);
    if (rc == CM_OK)
        rc = cm_calc_warn_layouts(c, err);
    if (rc == CM_OK && r->ratio != 1)
        rc =
            cm_calc_note(c, err, "bytes are stored bytes: decoded bytes divided by %.3g", r->ratio);
    return rc;
}

static void release_calc(cm_calc *c)
{
    cm_calc_shape_release(&c->sample);
    cm_calc_shape_release(&c->array);
    cm_calc_shape_release(&c->shards);
    for (size_t i = 0; i < c->nread; i++)
        cm_calc_shape_release(&c->read[i]);
    for (size_t i = 0; i < c->nchunks; i++)
        cm_calc_shape_release(&c->chunks[i]);
    for (size_t i = 0; i < c->nagainst; i++)
        cm_calc_shape_release(&c->against[i]);
    cm_calc_access_free(c->access);
    cm_zarr_meta_release(&c->present_words);
    cm_calc_close(c);
    cm_suit_run_release(&c->run);
    free(c->read);
    free(c->chunks);
    free(c->against);
    free(c);
}

int cm_chunkcalc(const cm_chunkcalc_options *options, cm_chunkcalc_report *report, cm_error *err)
{
    bool reads = options->sample != NULL || options->read.n > 0 || options->access != NULL;
    cm_chunkcalc_options mine = *options;
    cm_calc *c;

    memset(report, 0, sizeof(*report));
    report->recommended = report->present = SIZE_MAX;
    int rc = check_options(options, err);
    if (rc != CM_OK)
        return rc;
    c = cm_calloc(1, sizeof(*c), err);
    if (c == NULL)
        return CM_ENOMEM;
    if (mine.worker_memory == 0)
        mine.worker_memory = cm_memory_available() / cm_cpu_count();
    cm_suit_run_init(&c->run, options->worker_memory != 0 ? cm_calc_memory(&mine) : 0);
    c->options = &mine;
    c->report = report;
    c->storage = options->storage != NULL ? options->storage : "local";
    if (options->store != NULL)
        rc = cm_calc_open(c, reads, err);
    /* Layouts beside the present one are told with shards where it has some: both cost alike. */
    c->shards_given = options->shards != NULL;
    if (!c->shards_given && c->present_sharded && (mine.recommend || mine.audit))
        mine.shards = "auto";
    if (rc == CM_OK && reads)
        rc = calculate(c, err);
    release_calc(c);
    return rc;
}

/* ---- releasing ----------------------------------------------------------------------------- */

void cm_chunkcalc_report_release(cm_chunkcalc_report *r)
{
    if (r == NULL)
        return;
    for (unsigned j = 0; j < CM_MAX_RANK; j++)
        free(r->dim_name[j]);
    for (size_t i = 0; i < r->nlayouts; i++)
        free(r->layout[i].result);
    for (size_t i = 0; r->read != NULL && i < r->nreads; i++)
        free(r->read[i].text);
    for (size_t i = 0; i < r->narrays; i++) {
        free(r->array[i].name);
        free(r->array[i].type);
        free(r->array[i].codec);
        for (unsigned j = 0; j < CM_MAX_RANK; j++)
            free(r->array[i].dim_name[j]);
    }
    free(r->layout);
    free(r->read);
    free(r->array);
    cm_census_release(&r->census);
    free(r->front);
    free(r->path);
    free(r->variable);
    free(r->pattern);
    free(r->type);
    free(r->storage);
    free(r->storage_source);
    free(r->align);
    free(r->reason);
    free(r->chunks_option);
    free(r->shards_option);
    free(r->present_option);
    free(r->verdict);
    free(r->audit);
    free(r->compared);
    cm_sentences_free(r->warning, r->nwarnings);
    cm_sentences_free(r->note, r->nnotes);
    memset(r, 0, sizeof(*r));
}
