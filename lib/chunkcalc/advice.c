/* Which chunks to take, why, and how others and the present ones compare. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "chunkcalc/chunkcalc.h"
#include "plan/autochunk.h"
#include "plan/meetings.h"
#include "plan/rules.h"

enum {
    FRONT_POINTS = 12
};

/* Up to here the present chunks are as good as any: models are not better than that. */
#define GOOD 1.25
#define FAIR 2.0
/* Of a file; more than CM_MANY_OBJECTS smaller ones than these are fair at best, or poor. */
#define SMALL_FILE 65536
#define TINY_FILE  4096 /* a block of most file systems: half of the disk's space is waste */

/*
 * Shards for CHUNK: as --shards says, or, where it says nothing, those that keep a
 * store of many chunks manageable.
 */
static int suggest_shards(const cm_calc *c, const uint64_t *chunk, uint64_t *shard, bool *sharded,
                          cm_error *err)
{
    const cm_chunkcalc_report *r = c->report;
    cm_footprint f;
    int rc;

    if (c->options->shards != NULL || !r->bounded)
        return cm_calc_shards_for(c, chunk, NULL, shard, sharded, err);
    *sharded = false;
    rc = cm_footprint_count(r->rank, r->shape, chunk, NULL, r->itemsize, 1, &f, err);
    if (rc != CM_OK || f.nobjects <= CM_MANY_OBJECTS)
        return rc;
    *sharded = true;
    return cm_autoshard(r->rank, r->shape, (uint32_t)r->itemsize, chunk, CM_CALC_SHARD_TARGET, NULL,
                        shard, err);
}

/* One more layout, sharded as --shards says. */
static int add(cm_calc *c, const char *rule, const uint64_t *chunk, size_t *index, cm_error *err)
{
    uint64_t shard[CM_MAX_RANK];
    bool sharded;
    int rc = cm_calc_shards_for(c, chunk, NULL, shard, &sharded, err);

    return rc != CM_OK ? rc
                       : cm_calc_add_layout(c, rule, chunk, sharded ? shard : NULL, index, err);
}

static int fill_front(cm_chunkcalc_report *r, const cm_optimum *o, cm_error *err)
{
    size_t n = o->nfront < FRONT_POINTS ? o->nfront : FRONT_POINTS;

    r->front = cm_calloc(n + 1, sizeof(*r->front), err);
    if (r->front == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const cm_choice *from = &o->front[n == 1 ? 0 : i * (o->nfront - 1) / (n - 1)];
        memcpy(r->front[i].chunk, from->chunk, sizeof(from->chunk));
        r->front[i].bytes = from->bytes / r->ratio;
        r->front[i].requests = from->requests;
        r->front[i].seconds = from->seconds;
    }
    r->nfront = n;
    return CM_OK;
}

/* The sentence that says why L is recommended, with the numbers of its row. */
static char *reason_of(const cm_calc *c, const cm_chunkcalc_layout *l, cm_error *err)
{
    char low[32], high[32], time[32], size[32];

    cm_format_size(c->report->min_nbytes, low, sizeof(low));
    cm_format_size(c->report->max_nbytes, high, sizeof(high));
    cm_format_time(l->seconds, time, sizeof(time));
    cm_format_mean_size(l->bytes, size, sizeof(size));
    switch (c->spec.objective) {
    case CM_OBJECTIVE_BYTES:
        return cm_asprintf(err,
                           "of the shapes between %s and %s this one reads the fewest bytes, %s a "
                           "read on average",
                           low, high, size);
    case CM_OBJECTIVE_REQUESTS:
        return cm_asprintf(err,
                           "of the shapes between %s and %s this one needs the fewest requests, "
                           "%.3g a read on average",
                           low, high, l->requests);
    case CM_OBJECTIVE_REGRET:
        return cm_asprintf(err,
                           "with chunks between %s and %s no read takes more than %.3g times the "
                           "time of its own best chunks, and no shape does better",
                           low, high, l->regret);
    case CM_OBJECTIVE_COST:
        break;
    }
    const double waiting = l->waiting / l->seconds, moving = l->moving / l->seconds;
    return cm_asprintf(
        err,
        "of the shapes between %s and %s this one costs least: %s a read on average, "
        "%.0f %% of it waiting for requests, %.0f %% moving bytes and %.0f %% decoding",
        low, high, time, 100 * waiting, 100 * moving, 100 * (1 - waiting - moving));
}

static double value_of(const cm_chunkcalc_layout *l, cm_objective objective)
{
    cm_choice choice = {
        .seconds = l->seconds, .bytes = l->bytes, .requests = l->requests, .regret = l->regret};
    return cm_choice_value(&choice, objective);
}

/*
 * The optimum leaves the requests for shard indices out, and knows one decode rate for all shapes.
 * Where shards were asked for, or shapes were measured one by one, a listed shape that is better
 * takes its place.
 */
static const uint64_t *better_listed(const cm_calc *c, const uint64_t *chunk)
{
    const cm_chunkcalc_report *r = c->report;
    const cm_chunkcalc_layout *best = &r->layout[r->recommended];
    const uint64_t *found = chunk;

    const bool compare = c->options->shards != NULL || c->access != NULL;
    for (size_t i = 0; compare && i < r->recommended; i++) {
        const cm_chunkcalc_layout *l = &r->layout[i];
        if (l->chunk_nbytes < r->min_nbytes || l->chunk_nbytes > r->max_nbytes ||
            value_of(l, c->spec.objective) >= value_of(best, c->spec.objective))
            continue;
        best = l;
        found = l->chunk;
    }
    return found;
}

static int add_recommended(cm_calc *c, const cm_optimum *o, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    uint64_t shard[CM_MAX_RANK], chunk[CM_MAX_RANK];
    cm_footprint f;
    bool sharded;
    int rc = add(c, "recommended", o->best.chunk, &r->recommended, err);

    if (rc != CM_OK)
        return rc;
    memcpy(chunk, better_listed(c, o->best.chunk), sizeof(chunk));
    if (memcmp(chunk, o->best.chunk, r->rank * sizeof(*chunk)) != 0) {
        free(r->layout[--r->nlayouts].result);
        rc = add(c, "recommended", chunk, &r->recommended, err);
    }
    if (rc == CM_OK)
        rc = suggest_shards(c, chunk, shard, &sharded, err);
    if (rc != CM_OK)
        return rc;
    if (sharded && r->bounded) {
        rc = cm_footprint_count(r->rank, r->shape, chunk, shard, r->itemsize, 1, &f, err);
        if (rc != CM_OK)
            return rc;
        r->sharded_objects = f.nobjects;
    }
    r->chunks_option = cm_calc_shape_text(c, chunk, err);
    r->shards_option = sharded ? cm_calc_shape_text(c, shard, err) : cm_strdup("none", err);
    r->reason = reason_of(c, &r->layout[r->recommended], err);
    if (r->chunks_option == NULL || r->shards_option == NULL || r->reason == NULL)
        return CM_ENOMEM;
    return CM_OK;
}

static int add_others(cm_calc *c, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    uint64_t chunk[CM_MAX_RANK];
    int rc = CM_OK;

    if (r->bounded && r->rank > 0) {
        rc = cm_rule_rew(r->rank, r->shape, r->itemsize, c->spec.max_nbytes, chunk, err);
        if (rc == CM_OK)
            rc = add(c, "rew", chunk, NULL, err);
        else if (rc == CM_EUNSUPPORTED)
            rc = CM_OK; /* more dimensions than the rule is for */
        if (rc == CM_OK)
            rc = cm_rule_zarr_python(r->rank, r->shape, r->itemsize, chunk, err);
        if (rc == CM_OK)
            rc = add(c, "zarr-python", chunk, NULL, err);
    }
    if (rc == CM_OK && c->has_present)
        rc = cm_calc_add_layout(c, "present", c->present_chunk,
                                c->present_sharded ? c->present_shard : NULL, &r->present, err);
    return rc;
}

/* Stored bytes of a file of the present layout, where the files are too many; 0: they are not. */
static double crowded(const cm_calc *c, const cm_chunkcalc_layout *present)
{
    if (!c->present_apart || !present->has_footprint || present->nobjects <= CM_MANY_OBJECTS)
        return 0;
    const double each = present->stored_nbytes / (double)present->nobjects;
    return each < SMALL_FILE ? each : 0;
}

/* Warns of the costs of so many files besides reads: copying, listing and removing them. */
static int say_crowded(cm_calc *c, const cm_chunkcalc_layout *present, double each, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    char size[32];
    char *more = cm_asprintf(
        err,
        "%s; but %" PRIu64 " files of %s each take longer to copy, list and remove than to "
        "read, and more room on the disk: shards put many chunks in a file",
        r->audit, present->nobjects, cm_format_mean_size(each, size, sizeof(size)));
    if (more == NULL)
        return CM_ENOMEM;
    free(r->audit);
    r->audit = more;
    return CM_OK;
}

static int judge(cm_calc *c, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    const cm_chunkcalc_layout *best = &r->layout[r->recommended];
    const char *name = cm_calc_label(r->variable);
    char now[32], then[32];

    if (!c->has_present) {
        r->verdict = cm_strdup("contiguous", err);
        r->audit = cm_asprintf(err,
                               "%s is stored in one piece, without chunks: any box is read by "
                               "arithmetic, and only a compressed copy needs chunks, such as %s",
                               name, r->chunks_option);
        return r->verdict == NULL || r->audit == NULL ? CM_ENOMEM : CM_OK;
    }
    const cm_chunkcalc_layout *present = &r->layout[r->present];
    const char *verdict = r->gain <= GOOD ? "good" : r->gain <= FAIR ? "fair" : "poor";
    const double each = crowded(c, present);
    if (each > 0 && (each < TINY_FILE || r->gain > FAIR))
        verdict = "poor";
    else if (each > 0)
        verdict = "fair";
    r->verdict = cm_strdup(verdict, err);
    r->audit = cm_asprintf(
        err,
        "the chunks %s of %s are %s for these reads: a read takes %s and %.3g %s on average, "
        "with %s%s it would take %s and %.3g %s (%s)",
        r->present_option, name, verdict, cm_format_time(present->seconds, now, sizeof(now)),
        present->requests, cm_of_mean(present->requests, "request", "requests"), r->chunks_option,
        !c->present_sharded && strcmp(r->shards_option, "none") != 0 ? " in shards" : "",
        cm_format_time(best->seconds, then, sizeof(then)), best->requests,
        cm_of_mean(best->requests, "request", "requests"), r->compared);
    if (r->verdict == NULL || r->audit == NULL)
        return CM_ENOMEM;
    return each > 0 ? say_crowded(c, present, each, err) : CM_OK;
}

/*
 * Whether rewriting gains anything.  Shards and bounds that were asked for must hold of the
 * present layout, and files that are too many are a reason to rewrite.
 */
static bool present_suffices(const cm_calc *c)
{
    const cm_chunkcalc_options *o = c->options;
    const cm_chunkcalc_report *r = c->report;
    const cm_chunkcalc_layout *best = &r->layout[r->recommended], *now = &r->layout[r->present];
    const size_t nbytes = r->rank * sizeof(*now->chunk);

    if ((o->min_nbytes != 0 && now->chunk_nbytes < r->min_nbytes) ||
        (o->max_nbytes != 0 && now->chunk_nbytes > o->max_nbytes))
        return false;
    const bool same = memcmp(now->chunk, best->chunk, nbytes) == 0;
    if (c->shards_given)
        return same && now->sharded == best->sharded &&
               (!now->sharded || memcmp(now->shard, best->shard, nbytes) == 0);
    return (same || r->gain <= GOOD) && crowded(c, now) == 0;
}

static int compare_with_present(cm_calc *c, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    const cm_chunkcalc_layout *best = &r->layout[r->recommended];

    if (!c->has_present)
        return CM_OK;
    const cm_chunkcalc_layout *present = &r->layout[r->present];
    r->gain = value_of(present, c->spec.objective) / value_of(best, c->spec.objective);
    r->keep = present_suffices(c);
    r->present_option = cm_calc_shape_text(c, present->chunk, err);
    r->compared = r->gain > 1 ? cm_asprintf(err, "%s %.3g times as high", r->objective, r->gain)
                              : cm_asprintf(err, "%s no higher", r->objective);
    return r->present_option != NULL && r->compared != NULL ? CM_OK : CM_ENOMEM;
}

/* Bytes of the smallest chunk that was looked at: a smaller array is its own bound. */
static uint64_t least_of(const cm_calc *c)
{
    const cm_chunkcalc_report *r = c->report;
    uint64_t nbytes = r->itemsize;
    for (unsigned j = 0; r->bounded && j < r->rank; j++)
        nbytes = cm_mul_sat(nbytes, r->shape[j]);
    return r->bounded && nbytes < c->spec.min_nbytes ? nbytes : c->spec.min_nbytes;
}

int cm_calc_recommend(cm_calc *c, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    uint64_t(*extra)[CM_MAX_RANK] = cm_calloc(r->nlayouts + 1, sizeof(*extra), err);
    cm_optimum optimum = {.nfront = 0};
    int rc;

    if (extra == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < r->nlayouts; i++)
        memcpy(extra[c->spec.nextra++], r->layout[i].chunk, sizeof(*extra));
    c->spec.extra = (const uint64_t(*)[CM_MAX_RANK])extra;
    rc = cm_suit_optimise(&c->spec, cm_suit_measured(&c->costs),
                          c->has_present ? c->present_chunk : NULL, &optimum, err);
    r->min_nbytes = least_of(c);
    r->max_nbytes = c->spec.max_nbytes;
    for (size_t i = 0; i < r->nreads && rc == CM_OK; i++) {
        r->read[i].own_seconds = optimum.own_seconds[i];
        memcpy(r->read[i].own_chunk, optimum.own_chunk[i], sizeof(r->read[i].own_chunk));
    }
    r->nevaluated = optimum.nevaluated;
    for (size_t i = 0; i < r->nlayouts && rc == CM_OK; i++)
        cm_calc_set_pays(r, &r->layout[i]);
    if (rc == CM_OK)
        rc = add_recommended(c, &optimum, err);
    if (rc == CM_OK)
        rc = add_others(c, err);
    if (rc == CM_OK)
        rc = fill_front(r, &optimum, err);
    if (rc == CM_OK)
        rc = compare_with_present(c, err);
    if (rc == CM_OK && c->options->audit)
        rc = judge(c, err);
    c->spec.extra = NULL;
    c->spec.nextra = 0;
    cm_optimum_release(&optimum);
    free(extra);
    return rc;
}
