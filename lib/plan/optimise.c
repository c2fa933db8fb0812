#include "plan/optimise.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/optimise_impl.h"

static cm_touch_axis axis_of(const cm_optimise_spec *spec, size_t read, unsigned j, uint64_t chunk)
{
    const cm_read *r = &spec->read[read];

    return (cm_touch_axis){.length = spec->shape[j],
                           .sample = r->sample[j],
                           .step = r->step[j] == 0 ? 1 : r->step[j],
                           .chunk = chunk,
                           .align = spec->align,
                           .every = spec->every};
}

/* Chunks of CHUNK that READ meets along dimension J, a mean. */
static double mean_along(const cm_optimise_spec *spec, size_t read, unsigned j, uint64_t chunk)
{
    const cm_read *r = &spec->read[read];
    if (r->nplaces[j] > 0)
        return cm_touch_places_mean(r->place[j], r->nplaces[j], chunk);
    cm_touch_axis axis = axis_of(spec, read, j, chunk);
    return cm_touch_mean(&axis);
}

bool cm_optimise_shards(const cm_optimise_spec *spec, double nbytes)
{
    double all = (double)spec->itemsize;

    for (unsigned j = 0; j < spec->rank; j++)
        all *= (double)spec->shape[j];
    return spec->most_objects > 0 && all > nbytes * (double)spec->most_objects;
}

/* A read of N chunks of NBYTES, SHARDED or not. */
static double read_seconds(const cm_optimise_spec *spec, bool sharded, double nbytes, double n)
{
    const cm_cost_work work = {
        .objects = sharded ? 0 : n, .ranges = sharded ? n : 0, .chunks = n, .decoded = n * nbytes};
    return cm_cost_work_seconds(&spec->cost, &work);
}

double cm_search_mean(const cm_search *s, size_t read, unsigned index, uint64_t length)
{
    return mean_along(s->spec, read, index, length);
}

bool cm_score_less(const cm_score *a, const cm_score *b)
{
    /* Values that differ by rounding only are equal, so that the result does not depend on it. */
    double slack = 1e-12 * fabs(b->value);

    if (a->value < b->value - slack)
        return true;
    if (a->value > b->value + slack)
        return false;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->requests < b->requests;
}

cm_score cm_search_score(const cm_search *s, cm_goal goal, double nbytes, const double *q)
{
    const bool sharded = cm_optimise_shards(s->spec, nbytes);
    double seconds = 0, mean = 0, regret = 0;

    if (goal.read >= 0)
        return (cm_score){read_seconds(s->spec, sharded, nbytes, q[goal.read]),
                          q[goal.read] * nbytes, q[goal.read]};
    for (size_t r = 0; r < s->spec->nreads; r++) {
        const double one = read_seconds(s->spec, sharded, nbytes, q[r]);
        seconds += s->weight[r] * one;
        mean += s->weight[r] * q[r];
        if (goal.objective == CM_OBJECTIVE_REGRET && s->own != NULL)
            regret = fmax(regret, one / s->own[r]);
    }
    cm_score score = {seconds, mean * nbytes, mean};
    if (goal.objective == CM_OBJECTIVE_BYTES)
        score.value = score.bytes;
    else if (goal.objective == CM_OBJECTIVE_REQUESTS)
        score.value = score.requests;
    else if (goal.objective == CM_OBJECTIVE_REGRET && s->own != NULL)
        score.value = regret;
    return score;
}

double cm_choice_value(const cm_choice *c, cm_objective objective)
{
    switch (objective) {
    case CM_OBJECTIVE_BYTES:
        return c->bytes;
    case CM_OBJECTIVE_REQUESTS:
        return c->requests;
    case CM_OBJECTIVE_REGRET:
        return c->regret;
    case CM_OBJECTIVE_COST:
        break;
    }
    return c->seconds;
}

cm_read_cost cm_optimise_read_cost(const cm_optimise_spec *spec, size_t read, const uint64_t *chunk)
{
    cm_read_cost cost = {.requests = 1};
    double nbytes = (double)spec->itemsize;

    for (unsigned j = 0; j < spec->rank; j++) {
        cost.requests *= mean_along(spec, read, j, chunk[j]);
        nbytes *= (double)chunk[j];
    }
    cost.bytes = cost.requests * nbytes;
    cost.seconds = read_seconds(spec, cm_optimise_shards(spec, nbytes), nbytes, cost.requests);
    return cost;
}

static int check_spec(const cm_optimise_spec *spec, cm_error *err)
{
    if (spec->rank > CM_MAX_RANK)
        return cm_fail(err, CM_EINVAL, "%u dimensions are too many (the limit is %d)", spec->rank,
                       CM_MAX_RANK);
    if (spec->nreads == 0 || spec->nreads > CM_MAX_READS)
        return cm_fail(err, CM_EINVAL, "%zu ways of reading: give 1 to %d", spec->nreads,
                       CM_MAX_READS);
    if (spec->itemsize == 0)
        return cm_fail(err, CM_EINVAL, "an element must have at least one byte");
    if (spec->min_nbytes > spec->max_nbytes)
        return cm_fail(err, CM_EINVAL,
                       "the least size of a chunk, %" PRIu64
                       " bytes, exceeds the largest, %" PRIu64,
                       spec->min_nbytes, spec->max_nbytes);
    for (size_t r = 0; r < spec->nreads; r++) {
        if (!isfinite(spec->read[r].weight) || spec->read[r].weight <= 0)
            return cm_fail(err, CM_EINVAL, "read %zu: the weight must be more than 0", r + 1);
        for (unsigned j = 0; j < spec->rank; j++) {
            cm_touch_axis axis = axis_of(spec, r, j, 1);
            cm_touch_count count;
            int rc = cm_touch_count_axis(&axis, &count, err);
            if (rc != CM_OK) {
                cm_error_prefix(err, "read %zu, dimension %u", r + 1, j);
                return rc;
            }
        }
    }
    return cm_cost_model_check(&spec->cost, err);
}

int cm_optimise_evaluate(const cm_optimise_spec *spec, const double *own_seconds,
                         const uint64_t *chunk, cm_choice *out, cm_error *err)
{
    double total = 0;
    uint64_t nbytes = spec->itemsize;
    int rc = check_spec(spec, err);

    if (rc != CM_OK)
        return rc;
    *out = (cm_choice){.chunk_nbytes = 0};
    for (unsigned j = 0; j < spec->rank; j++) {
        if (chunk[j] == 0 || chunk[j] > UINT64_C(1) << 62 || !cm_mul_u64(nbytes, chunk[j], &nbytes))
            return cm_fail(err, CM_EINVAL, "a chunk of length 0 or of more than 2^64 bytes");
        out->chunk[j] = chunk[j];
    }
    out->chunk_nbytes = nbytes;
    for (size_t r = 0; r < spec->nreads; r++)
        total += spec->read[r].weight;
    for (size_t r = 0; r < spec->nreads; r++) {
        cm_read_cost cost = cm_optimise_read_cost(spec, r, chunk);
        double weight = spec->read[r].weight / total;
        out->seconds += weight * cost.seconds;
        out->bytes += weight * cost.bytes;
        out->requests += weight * cost.requests;
        if (own_seconds != NULL)
            out->regret = fmax(out->regret, cost.seconds / own_seconds[r]);
    }
    return CM_OK;
}

/* ---- setting up ------------------------------------------------------------------------------ */

static int set_bounds(cm_search *s, cm_error *err)
{
    const cm_optimise_spec *spec = s->spec;
    cm_u128 whole = s->unit;

    s->min_nbytes = spec->min_nbytes == 0 ? 1 : spec->min_nbytes;
    s->max_nbytes = spec->max_nbytes;
    if (s->unit > s->max_nbytes)
        return cm_fail(err, CM_EINVAL,
                       "no chunk has at most %" PRIu64 " bytes: one element, with the lengths that "
                       "are given, has more",
                       s->max_nbytes);
    for (unsigned j = 0; j < s->nfree; j++) {
        cm_free_dim *d = &s->free[j];
        uint64_t n = spec->shape[d->index];
        uint64_t cap = (uint64_t)(s->max_nbytes / s->unit);
        cap = cap < UINT64_C(1) << 62 ? cap : UINT64_C(1) << 62;
        d->most = n != 0 && n < cap ? n : cap;
        if (n == 0)
            whole = s->min_nbytes;
        else if (whole < s->min_nbytes)
            whole *= n;
    }
    /* An array smaller than the least chunk is one chunk. */
    if (whole < s->min_nbytes)
        s->min_nbytes = (uint64_t)whole;
    return CM_OK;
}

static int set_up(cm_search *s, const cm_optimise_spec *spec, cm_error *err)
{
    double total = 0;
    int rc = check_spec(spec, err);

    if (rc != CM_OK)
        return rc;
    *s = (cm_search){.spec = spec, .unit = spec->itemsize};
    for (size_t r = 0; r < spec->nreads; r++)
        total += spec->read[r].weight;
    for (size_t r = 0; r < spec->nreads; r++) {
        s->weight[r] = spec->read[r].weight / total;
        s->unit_mean[r] = 1;
    }
    for (unsigned j = 0; j < spec->rank; j++) {
        s->chunk[j] = spec->fixed[j] != 0 ? spec->fixed[j] : 1;
        if (spec->fixed[j] == 0 && spec->shape[j] != 1) {
            s->free[s->nfree++].index = j;
            continue;
        }
        if (s->chunk[j] > UINT64_C(1) << 62 || s->unit * s->chunk[j] > UINT64_MAX)
            return cm_fail(err, CM_EINVAL, "a chunk of the given lengths exceeds 2^64 bytes");
        s->unit *= s->chunk[j];
        for (size_t r = 0; r < spec->nreads; r++)
            s->unit_mean[r] *= cm_search_mean(s, r, j, s->chunk[j]);
    }
    rc = set_bounds(s, err);
    return rc != CM_OK ? rc : cm_search_list(s, err);
}

static void tear_down(cm_search *s)
{
    for (unsigned j = 0; j < s->nfree; j++) {
        free(s->free[j].length);
        free(s->free[j].mean);
    }
    free(s->front);
}

/* True when CHUNK keeps the bounds and the fixed lengths. */
static bool allowed(const cm_search *s, const uint64_t *chunk)
{
    const cm_optimise_spec *spec = s->spec;
    cm_u128 nbytes = spec->itemsize;

    for (unsigned j = 0; j < spec->rank; j++) {
        uint64_t most = spec->shape[j] != 0 ? spec->shape[j] : s->max_nbytes;
        if (chunk[j] == 0 || (spec->fixed[j] != 0 && chunk[j] != spec->fixed[j]) ||
            (spec->fixed[j] == 0 && chunk[j] > most))
            return false;
        nbytes *= chunk[j];
        if (nbytes > s->max_nbytes)
            return false;
    }
    return nbytes >= s->min_nbytes;
}

/* ---- the search ---------------------------------------------------------------------------- */

/* Refines a copy of START, which must be within the bounds, and keeps it when it beats BEST. */
static void refine_from(cm_search *s, cm_goal goal, const uint64_t *start, cm_found *best)
{
    cm_found f = {.valid = true};

    memcpy(f.chunk, start, sizeof f.chunk);
    cm_search_refine(s, goal, &f);
    if (!best->valid || cm_score_less(&f.score, &best->score))
        *best = f;
}

/* Every start that there is: the best combination, which is in BEST, a grown shape, the extras. */
static void refine_all(cm_search *s, cm_goal goal, cm_found *best)
{
    cm_found grown = {.valid = false};

    if (best->valid)
        refine_from(s, goal, best->chunk, best);
    cm_search_grow(s, goal, &grown);
    if (grown.valid)
        refine_from(s, goal, grown.chunk, best);
    for (size_t i = 0; i < s->spec->nextra; i++) {
        uint64_t start[CM_MAX_RANK] = {0};
        memcpy(start, s->spec->extra[i], s->spec->rank * sizeof *start);
        if (allowed(s, start))
            refine_from(s, goal, start, best);
    }
}

static int search(cm_search *s, cm_found *found_own, cm_optimum *out, cm_found *best, cm_error *err)
{
    const cm_optimise_spec *spec = s->spec;
    cm_goal goal = {spec->objective, -1};
    int rc;

    s->found_own = found_own;
    rc = cm_search_all(s, goal, true, best, err);
    s->found_own = NULL;
    if (rc != CM_OK)
        return rc;
    for (size_t r = 0; r < spec->nreads; r++) {
        cm_goal own = {CM_OBJECTIVE_COST, (int)r};
        refine_all(s, own, &found_own[r]);
        if (!found_own[r].valid)
            return cm_fail(err, CM_EINVAL,
                           "no chunk of these dimensions has between %" PRIu64 " and %" PRIu64
                           " bytes",
                           s->min_nbytes, s->max_nbytes);
        out->own_seconds[r] = found_own[r].score.value;
        memcpy(out->own_chunk[r], found_own[r].chunk, sizeof out->own_chunk[r]);
    }
    s->own = out->own_seconds;
    if (spec->objective == CM_OBJECTIVE_REGRET) {
        rc = cm_search_all(s, goal, false, best, err);
        if (rc != CM_OK)
            return rc;
    }
    refine_all(s, goal, best);
    for (size_t r = 0; r < spec->nreads; r++)
        refine_from(s, goal, out->own_chunk[r], best);
    return CM_OK;
}

/*
 * Appends C, which has at least as many bytes as the last choice, unless that
 * dominates it; what C dominates goes.  Differences by rounding do not count, and
 * the best choice, which KEEP names, stays when it ties.
 */
static void append_front(cm_optimum *o, const cm_choice *c, bool keep)
{
    const double less = 1 - 1e-12;

    if (o->nfront > 0) {
        const cm_choice *last = &o->front[o->nfront - 1];
        bool same_bytes = last->bytes >= c->bytes * less;
        bool same_requests = fabs(last->requests - c->requests) <= last->requests * 1e-12;
        if (same_bytes && (c->requests < last->requests * less || (same_requests && keep)))
            o->nfront--;
        else if (c->requests >= last->requests * less)
            return;
    }
    o->front[o->nfront++] = *c;
}

/* The points of the front with the best among them, as choices. */
static int give_front(const cm_search *s, cm_optimum *out, cm_error *err)
{
    bool placed = false;

    out->front = cm_calloc(s->nfront + 1, sizeof *out->front, err);
    if (out->front == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < s->nfront; i++) {
        uint64_t chunk[CM_MAX_RANK];
        cm_choice c;
        cm_search_decode(s, s->front[i].number, chunk);
        int rc = cm_optimise_evaluate(s->spec, out->own_seconds, chunk, &c, err);
        if (rc != CM_OK)
            return rc;
        if (!placed && c.bytes > out->best.bytes) {
            placed = true;
            append_front(out, &out->best, true);
        }
        append_front(out, &c, false);
    }
    if (!placed)
        append_front(out, &out->best, true);
    return CM_OK;
}

int cm_optimise(const cm_optimise_spec *spec, cm_optimum *out, cm_error *err)
{
    cm_search *s = cm_calloc(1, sizeof *s, err);
    cm_found *own = NULL, best = {.valid = false};
    int rc = CM_ENOMEM;

    memset(out, 0, sizeof *out);
    if (s == NULL)
        return rc;
    rc = set_up(s, spec, err);
    if (rc != CM_OK)
        goto out;
    own = cm_calloc(spec->nreads, sizeof *own, err);
    if (own == NULL) {
        rc = CM_ENOMEM;
        goto out;
    }
    rc = search(s, own, out, &best, err);
    if (rc == CM_OK)
        rc = cm_optimise_evaluate(spec, out->own_seconds, best.chunk, &out->best, err);
    if (rc == CM_OK)
        rc = give_front(s, out, err);
    out->nevaluated = s->nevaluated;
out:
    tear_down(s);
    free(own);
    free(s);
    return rc;
}

void cm_optimum_release(cm_optimum *optimum)
{
    if (optimum == NULL)
        return;
    free(optimum->front);
    optimum->front = NULL;
    optimum->nfront = 0;
}
