#include "plan/autochunk.h"

#include <inttypes.h>
#include <math.h>

#include "base/number.h"

typedef unsigned __int128 u128;

enum {
    MAX_CANDIDATES = 32,
    MAX_EVEN = 14, /* lengths that cut the dimension into equal pieces */
    MAX_SCAN = 512 /* how many numbers are tried when looking for divisors */
};

/*
 * Penalties for departures from the ideal, in squared octaves.  Nesting with the source is worth
 * three quarters of an octave in one dimension, and so is not storing a fifth more than the array.
 * On 10,000 random arrays these weights waste 1.8 % on average.
 */
static const double WASTE_WEIGHT = 2;
static const double SLIVER_WEIGHT = 0.15;
static const double SMALL_WEIGHT = 0.3;
static const double NEST_PENALTY = 0.6;

typedef struct dim {
    uint64_t n;      /* length, at least 1 */
    uint64_t source; /* source chunk length, 0: none */
    double ideal;    /* chunk length that balances, a real number */
    uint64_t length[MAX_CANDIDATES];
    double cost[MAX_CANDIDATES];
    unsigned ncandidates;
    unsigned choice;
} dim;

typedef struct problem {
    unsigned ndims; /* the free dimensions longer than 1 */
    dim dims[CM_MAX_RANK];
    u128 unit;       /* bytes of the chunk when every dimension in dims[] has length 1 */
    uint64_t target; /* bytes */
} problem;

/* True when A * B is at most LIMIT; *out is then the product. */
static bool mul_upto(u128 a, uint64_t b, uint64_t limit, u128 *out)
{
    if (b != 0 && a > (u128)limit / b)
        return false;
    *out = a * b;
    return true;
}

static double cost_of_length(const dim *d, uint64_t c)
{
    uint64_t pieces = cm_div_ceil(d->n, c);
    double octaves = log2((double)c / d->ideal);
    double cost = octaves * octaves;
    double edge = (double)(d->n - (pieces - 1) * c) / (double)c; /* in (0, 1] */

    cost += WASTE_WEIGHT * log2((double)pieces * (double)c / (double)d->n);
    if (edge < 0.5)
        cost += SLIVER_WEIGHT * (1 - 2 * edge);
    /* A source that is not cut along this dimension has no boundary to straddle. */
    bool cut = d->source != 0 && d->source < d->n;
    if (cut && c < d->n && c % d->source != 0 && d->source % c != 0)
        cost += NEST_PENALTY;
    return cost;
}

static void add_candidate(dim *d, uint64_t c)
{
    if (c < 1 || c > d->n || d->ncandidates == MAX_CANDIDATES)
        return;
    for (unsigned i = 0; i < d->ncandidates; i++)
        if (d->length[i] == c)
            return;
    d->length[d->ncandidates] = c;
    d->cost[d->ncandidates++] = cost_of_length(d, c);
}

/* Lengths that cut N into p equal pieces, p from a third to three times the ideal. */
static void add_even(dim *d)
{
    double pieces = (double)d->n / d->ideal;
    double low = fmax(1, floor(pieces / 3)), high = fmin((double)d->n, ceil(pieces * 3));
    unsigned steps = high - low < MAX_EVEN ? (unsigned)(high - low) : MAX_EVEN - 1;

    for (unsigned i = 0; i <= steps; i++) {
        double p = steps < MAX_EVEN - 1 ? low + i : low * pow(high / low, (double)i / steps);
        uint64_t whole = p < 0x1p63 ? (uint64_t)(p + 0.5) : d->n;
        add_candidate(d, cm_div_ceil(d->n, whole));
    }
}

/* Up to four divisors of WHOLE on each side of the ideal, the nearest first. */
static void add_divisors(dim *d, uint64_t whole)
{
    uint64_t middle = d->ideal < 1 ? 1 : (uint64_t)d->ideal;
    unsigned below = 0, above = 0;

    for (uint64_t i = 0; i < MAX_SCAN && below < 4 && i < middle; i++)
        if (whole % (middle - i) == 0) {
            add_candidate(d, middle - i);
            below++;
        }
    for (uint64_t i = 1; i < MAX_SCAN && above < 4 && middle <= d->n && i <= d->n - middle; i++)
        if (whole % (middle + i) == 0) {
            add_candidate(d, middle + i);
            above++;
        }
}

static void add_multiples(dim *d, uint64_t unit)
{
    uint64_t times = (uint64_t)(d->ideal / (double)unit);

    for (uint64_t m = times > 2 ? times - 2 : 1; m <= times + 3; m++)
        if (m <= d->n / unit)
            add_candidate(d, m * unit);
}

static void list_candidates(dim *d, uint64_t start)
{
    add_candidate(d, start); /* keeps a solution within the bounds reachable */
    add_candidate(d, (uint64_t)d->ideal);
    add_candidate(d, (uint64_t)d->ideal + 1);
    add_even(d);
    add_candidate(d, d->n);
    if (d->source != 0 && d->source < d->n) {
        add_multiples(d, d->source);
        add_divisors(d, d->source);
    }
    add_divisors(d, d->n);
}

/*
 * The ideal lengths: log2(pieces) of dimension j is weight_j * level, at most
 * log2(n_j), where the level is such that all together are log2(K).
 */
static void find_ideal(problem *p, const double *weight)
{
    bool full[CM_MAX_RANK] = {false};
    double left = log2((double)p->unit) - log2((double)p->target);
    double level = 0;

    for (unsigned j = 0; j < p->ndims; j++)
        left += log2((double)p->dims[j].n);
    for (bool again = true; again;) {
        double sum = 0;
        again = false;
        for (unsigned j = 0; j < p->ndims; j++)
            sum += full[j] ? 0 : weight[j];
        level = sum > 0 ? left / sum : 0;
        for (unsigned j = 0; j < p->ndims; j++) {
            double octaves = log2((double)p->dims[j].n);
            if (!full[j] && weight[j] * level > octaves) {
                full[j] = again = true;
                left -= octaves;
            }
        }
    }
    for (unsigned j = 0; j < p->ndims; j++)
        p->dims[j].ideal =
            full[j] ? 1 : fmax(1, (double)p->dims[j].n / exp2(fmax(0, weight[j] * level)));
}

/*
 * Lengths whose chunk has between half of the target and the target: from all
 * ones, the length furthest below its ideal is doubled until half is reached.
 * Doubling what is below half cannot pass the target.
 */
static void find_start(const problem *p, uint64_t *start)
{
    u128 nbytes = p->unit;

    for (unsigned j = 0; j < p->ndims; j++)
        start[j] = 1;
    while (2 * nbytes < p->target) {
        unsigned best = p->ndims;
        double most = -1;
        for (unsigned j = 0; j < p->ndims; j++) {
            double below = p->dims[j].ideal / (double)start[j];
            if (start[j] < p->dims[j].n && below > most) {
                most = below;
                best = j;
            }
        }
        if (best == p->ndims)
            return;
        uint64_t n = p->dims[best].n, now = start[best];
        start[best] = now > n / 2 ? n : 2 * now;
        nbytes = nbytes / now * start[best];
    }
}

/* The cost of all dimensions but A and B, and the bytes of a chunk that has length 1 there. */
static void measure_rest(const problem *p, unsigned a, unsigned b, u128 *nbytes, double *cost)
{
    *nbytes = p->unit;
    *cost = 0;
    for (unsigned j = 0; j < p->ndims; j++) {
        if (j == a || j == b)
            continue;
        const dim *d = &p->dims[j];
        *nbytes *= d->length[d->choice];
        *cost += d->cost[d->choice];
    }
}

/*
 * The best choices for dimensions A and B (A may be B) while the others stay.  True when it
 * got better.
 */
static bool improve(problem *p, unsigned a, unsigned b, double *best)
{
    dim *da = &p->dims[a], *db = &p->dims[b];
    unsigned nb = a == b ? 1 : db->ncandidates;
    bool better = false;
    u128 rest, with_a, nbytes;
    double rest_cost;

    measure_rest(p, a, b, &rest, &rest_cost);
    unsigned best_a = da->choice, best_b = db->choice;
    for (unsigned i = 0; i < da->ncandidates; i++) {
        if (!mul_upto(rest, da->length[i], p->target, &with_a))
            continue;
        for (unsigned k = 0; k < nb; k++) {
            if (!mul_upto(with_a, a == b ? 1 : db->length[k], p->target, &nbytes))
                continue;
            if (2 * nbytes < p->target)
                continue;
            double cost = rest_cost + da->cost[i] + (a == b ? 0 : db->cost[k]) +
                          SMALL_WEIGHT * (log2((double)p->target) - log2((double)nbytes));
            if (cost < *best - 1e-9) {
                *best = cost;
                best_a = i;
                best_b = k;
                better = true;
            }
        }
    }
    if (better) {
        da->choice = best_a;
        if (a != b)
            db->choice = best_b;
    }
    return better;
}

/* Exchanges lengths of one and of two dimensions at a time until nothing gets better. */
static void descend(problem *p)
{
    double best = INFINITY;
    bool better = true;

    /* Each round lowers the cost, so it ends; the bound is for time only. */
    for (int round = 0; better && round < 32; round++) {
        better = false;
        for (unsigned a = 0; a < p->ndims; a++)
            for (unsigned b = p->ndims == 1 ? a : a + 1; b < p->ndims; b++)
                better |= improve(p, a, b, &best);
    }
}

/* Cuts the dimensions of P, whose product with the unit exceeds the target. */
static void cut(problem *p, const double *weight)
{
    uint64_t start[CM_MAX_RANK];

    find_ideal(p, weight);
    find_start(p, start);
    for (unsigned j = 0; j < p->ndims; j++) {
        p->dims[j].ncandidates = p->dims[j].choice = 0;
        list_candidates(&p->dims[j], start[j]);
    }
    descend(p);
}

/* cm_autochunk for an element of UNIT bytes, all arguments checked. */
static void choose(unsigned rank, const uint64_t *shape, u128 unit, uint64_t target,
                   const uint64_t *fixed, const uint64_t *source, uint64_t *chunk)
{
    problem p = {.unit = unit, .target = target};
    double weight[CM_MAX_RANK];
    unsigned map[CM_MAX_RANK];
    unsigned first = rank; /* the dimension along which a series runs */
    u128 whole;
    bool fits = true;

    for (unsigned j = 0; j < rank; j++) {
        if (first == rank && shape[j] > 1)
            first = j;
        chunk[j] = fixed != NULL && fixed[j] != 0 ? fixed[j] : 1;
        if ((fixed != NULL && fixed[j] != 0) || shape[j] <= 1)
            continue;
        map[p.ndims] = j;
        p.dims[p.ndims].n = shape[j];
        p.dims[p.ndims++].source = source != NULL ? source[j] : 0;
    }
    whole = p.unit;
    for (unsigned i = 0; i < p.ndims; i++)
        fits = fits && mul_upto(whole, p.dims[i].n, target, &whole);
    if (!(fits && whole <= target)) {
        for (unsigned i = 0; i < p.ndims; i++)
            weight[i] = map[i] == first && p.ndims > 1 ? p.ndims - 1 : 1;
        if (unit <= target)
            cut(&p, weight);
    }
    for (unsigned i = 0; i < p.ndims; i++) {
        const dim *d = &p.dims[i];
        if (fits && whole <= target)
            chunk[map[i]] = d->n;
        else if (unit <= target)
            chunk[map[i]] = d->length[d->choice];
    }
}

static int check(unsigned rank, uint32_t itemsize, uint64_t target_nbytes, cm_error *err)
{
    if (rank > CM_MAX_RANK)
        return cm_fail(err, CM_EINVAL, "%u dimensions are too many (the limit is %d)", rank,
                       CM_MAX_RANK);
    if (itemsize == 0)
        return cm_fail(err, CM_EINVAL, "an element must have at least one byte");
    if (target_nbytes == 0)
        return cm_fail(err, CM_EINVAL, "the target must have at least one byte");
    return CM_OK;
}

/* *out = SEED times the fixed lengths (each divided by BY's, when given). */
static bool times_fixed(unsigned rank, const uint64_t *fixed, const uint64_t *by, uint64_t seed,
                        uint64_t *out)
{
    for (unsigned j = 0; fixed != NULL && j < rank; j++)
        if (fixed[j] != 0 && !cm_mul_u64(seed, fixed[j] / (by != NULL ? by[j] : 1), &seed))
            return false;
    *out = seed;
    return true;
}

int cm_autochunk(unsigned rank, const uint64_t *shape, uint32_t itemsize, uint64_t target_nbytes,
                 const uint64_t *fixed, const uint64_t *source_chunk, uint64_t *chunk,
                 cm_error *err)
{
    uint64_t unit;
    int rc = check(rank, itemsize, target_nbytes, err);

    if (rc != CM_OK)
        return rc;
    if (!times_fixed(rank, fixed, NULL, itemsize, &unit))
        return cm_fail(err, CM_EINVAL, "a chunk of the given lengths exceeds 2^64 bytes");
    choose(rank, shape, unit, target_nbytes, fixed, source_chunk, chunk);
    return CM_OK;
}

int cm_autoshard(unsigned rank, const uint64_t *shape, uint32_t itemsize, const uint64_t *chunk,
                 uint64_t target_nbytes, const uint64_t *fixed, uint64_t *shard, cm_error *err)
{
    uint64_t grid[CM_MAX_RANK] = {0}, fixed_grid[CM_MAX_RANK] = {0}, unit;
    int rc = check(rank, itemsize, target_nbytes, err);

    if (rc != CM_OK)
        return rc;
    unit = itemsize;
    for (unsigned j = 0; j < rank; j++) {
        if (chunk[j] == 0)
            return cm_fail(err, CM_EINVAL, "the chunk's length in dimension %u is 0", j);
        if (!cm_mul_u64(unit, chunk[j], &unit))
            return cm_fail(err, CM_EINVAL, "a chunk of the given lengths exceeds 2^64 bytes");
        grid[j] = cm_div_ceil(shape[j], chunk[j]);
        fixed_grid[j] = fixed != NULL ? fixed[j] / chunk[j] : 0;
        if (fixed != NULL && fixed[j] % chunk[j] != 0)
            return cm_fail(err, CM_EINVAL,
                           "the shard's length %" PRIu64
                           " in dimension %u is not a multiple of the "
                           "chunk's %" PRIu64,
                           fixed[j], j, chunk[j]);
    }
    if (!times_fixed(rank, fixed, chunk, unit, &unit))
        return cm_fail(err, CM_EINVAL, "a shard of the given lengths exceeds 2^64 bytes");
    choose(rank, grid, unit, target_nbytes, fixed_grid, NULL, shard);
    for (unsigned j = 0; j < rank; j++)
        if (!cm_mul_u64(shard[j], chunk[j], &shard[j]))
            return cm_fail(err, CM_EINVAL, "the shard's length in dimension %u exceeds 2^64", j);
    return CM_OK;
}

int cm_autoshard_count(unsigned rank, const uint64_t *shape, uint32_t itemsize,
                       const uint64_t *chunk, uint64_t target_nbytes, uint64_t *nshards,
                       cm_error *err)
{
    uint64_t shard[CM_MAX_RANK];
    int rc = cm_autoshard(rank, shape, itemsize, chunk, target_nbytes, NULL, shard, err);
    *nshards = 1;
    for (unsigned j = 0; j < rank && rc == CM_OK; j++)
        if (!cm_mul_u64(*nshards, cm_div_ceil(shape[j], shard[j]), nshards))
            rc = cm_fail(err, CM_EINVAL, "there are more than 2^64 shards");
    return rc;
}
