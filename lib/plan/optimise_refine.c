/* Downhill from a shape: one and two lengths at a time, over nearby integers. */
#include <string.h>

#include "base/number.h"
#include "plan/optimise_impl.h"

enum {
    MAX_NEAR = 40,
    MAX_ROUNDS = 60
};

typedef struct near_list {
    uint64_t length[MAX_NEAR];
    double mean[MAX_NEAR][CM_MAX_READS];
    unsigned n;
} near_list;

static void add(const cm_search *s, const cm_free_dim *d, near_list *l, cm_u128 length)
{
    if (length < 1 || length > d->most || l->n == MAX_NEAR)
        return;
    for (unsigned i = 0; i < l->n; i++)
        if (l->length[i] == length)
            return;
    l->length[l->n] = (uint64_t)length;
    for (size_t r = 0; r < s->spec->nreads; r++)
        l->mean[l->n][r] = cm_search_mean(s, r, d->index, (uint64_t)length);
    l->n++;
}

static void list_near(const cm_search *s, const cm_free_dim *d, uint64_t c, near_list *l)
{
    static const unsigned ratio[][2] = {{1, 4}, {1, 3},   {1, 2},   {2, 3}, {3, 4},
                                        {7, 8}, {15, 16}, {17, 16}, {9, 8}, {5, 4},
                                        {4, 3}, {3, 2},   {2, 1},   {3, 1}, {4, 1}};
    uint64_t n = s->spec->shape[d->index];

    l->n = 0;
    add(s, d, l, c);
    for (uint64_t i = 1; i <= 3; i++) {
        add(s, d, l, (cm_u128)c + i);
        if (c > i)
            add(s, d, l, c - i);
    }
    for (size_t i = 0; i < sizeof ratio / sizeof *ratio; i++)
        add(s, d, l, (cm_u128)c * ratio[i][0] / ratio[i][1]);
    if (n != 0) {
        uint64_t pieces = cm_div_ceil(n, c);
        for (uint64_t p = pieces > 2 ? pieces - 2 : 1; p <= pieces + 2; p++)
            add(s, d, l, cm_div_ceil(n, p));
    }
    add(s, d, l, d->most);
}

typedef struct position {
    cm_search *s;
    cm_goal goal;
    uint64_t c[CM_MAX_RANK]; /* of the free dimensions */
    double mean[CM_MAX_RANK][CM_MAX_READS];
    cm_score score;
} position;

/* Bytes and chunks met of all but the free dimensions A and B. */
static cm_u128 without(const position *p, unsigned a, unsigned b, double *q)
{
    const cm_search *s = p->s;
    cm_u128 nbytes = s->unit;

    memcpy(q, s->unit_mean, s->spec->nreads * sizeof *q);
    for (unsigned j = 0; j < s->nfree; j++) {
        if (j == a || j == b)
            continue;
        nbytes *= p->c[j];
        for (size_t r = 0; r < s->spec->nreads; r++)
            q[r] *= p->mean[j][r];
    }
    return nbytes;
}

/* One shape: lengths CA and CB with their means, in place of A's and B's. */
static bool try_pair(position *p, unsigned a, unsigned b, cm_u128 rest, const double *q,
                     uint64_t ca, const double *ma, uint64_t cb, const double *mb)
{
    cm_search *s = p->s;
    size_t nreads = s->spec->nreads;
    double all[CM_MAX_READS];
    cm_u128 nbytes = rest * ca;

    if (nbytes > s->max_nbytes || nbytes * cb > s->max_nbytes || nbytes * cb < s->min_nbytes)
        return false;
    for (size_t r = 0; r < nreads; r++)
        all[r] = q[r] * ma[r] * (a == b ? 1 : mb[r]);
    cm_score score = cm_search_score(s, p->goal, (double)(nbytes * cb), all);
    s->nevaluated++;
    if (!cm_score_less(&score, &p->score))
        return false;
    p->score = score;
    p->c[a] = ca;
    memcpy(p->mean[a], ma, nreads * sizeof *ma);
    if (a != b) {
        p->c[b] = cb;
        memcpy(p->mean[b], mb, nreads * sizeof *mb);
    }
    return true;
}

/* The lengths of B that just keep the bounds when the others have REST bytes. */
static void add_bounds(const cm_search *s, const cm_free_dim *d, cm_u128 rest, near_list *l)
{
    l->n = 0;
    add(s, d, l, (cm_u128)s->max_nbytes / rest);
    add(s, d, l, ((cm_u128)s->min_nbytes + rest - 1) / rest);
}

static bool improve(position *p, unsigned a, unsigned b, const near_list *la, const near_list *lb)
{
    static const double one[CM_MAX_READS] = {0};
    const cm_search *s = p->s;
    double q[CM_MAX_READS];
    cm_u128 rest = without(p, a, b, q);
    near_list bounds;
    bool better = false;

    if (a == b) {
        add_bounds(s, &s->free[a], rest, &bounds);
        for (unsigned i = 0; i < la->n; i++)
            better |= try_pair(p, a, a, rest, q, la->length[i], la->mean[i], 1, one);
        for (unsigned i = 0; i < bounds.n; i++)
            better |= try_pair(p, a, a, rest, q, bounds.length[i], bounds.mean[i], 1, one);
        return better;
    }
    for (unsigned i = 0; i < la->n; i++) {
        cm_u128 nbytes = rest * la->length[i];
        if (nbytes > s->max_nbytes)
            continue;
        for (unsigned k = 0; k < lb->n; k++)
            better |=
                try_pair(p, a, b, rest, q, la->length[i], la->mean[i], lb->length[k], lb->mean[k]);
        add_bounds(s, &s->free[b], nbytes, &bounds);
        for (unsigned k = 0; k < bounds.n; k++)
            better |= try_pair(p, a, b, rest, q, la->length[i], la->mean[i], bounds.length[k],
                               bounds.mean[k]);
    }
    return better;
}

static void start(cm_search *s, cm_goal goal, const uint64_t *chunk, position *p)
{
    double q[CM_MAX_READS];

    p->s = s;
    p->goal = goal;
    for (unsigned j = 0; j < s->nfree; j++) {
        p->c[j] = chunk[s->free[j].index];
        for (size_t r = 0; r < s->spec->nreads; r++)
            p->mean[j][r] = cm_search_mean(s, r, s->free[j].index, p->c[j]);
    }
    cm_u128 nbytes = without(p, s->nfree, s->nfree, q);
    p->score = cm_search_score(s, goal, (double)nbytes, q);
}

void cm_search_refine(cm_search *s, cm_goal goal, cm_found *found)
{
    position p;
    near_list la, lb;
    bool better = true;

    start(s, goal, found->chunk, &p);
    for (int round = 0; better && round < MAX_ROUNDS; round++) {
        better = false;
        for (unsigned a = 0; a < s->nfree; a++) {
            list_near(s, &s->free[a], p.c[a], &la);
            better |= improve(&p, a, a, &la, &la);
            for (unsigned b = 0; b < s->nfree; b++) {
                if (b == a)
                    continue;
                list_near(s, &s->free[a], p.c[a], &la);
                list_near(s, &s->free[b], p.c[b], &lb);
                better |= improve(&p, a, b, &la, &lb);
            }
        }
    }
    found->valid = true;
    found->score = p.score;
    for (unsigned j = 0; j < s->nfree; j++)
        found->chunk[s->free[j].index] = p.c[j];
}

/*
 * Doubles the length whose doubling is best, as long as the chunk is too small or
 * gets better.  Where doubling would pass the upper bound, the length fills it.
 */
void cm_search_grow(cm_search *s, cm_goal goal, cm_found *found)
{
    position p;

    memcpy(found->chunk, s->chunk, sizeof found->chunk);
    start(s, goal, found->chunk, &p);
    for (;;) {
        double q[CM_MAX_READS], best_mean[CM_MAX_READS];
        cm_u128 nbytes = without(&p, s->nfree, s->nfree, q);
        bool must = nbytes < s->min_nbytes;
        cm_score best = p.score;
        unsigned which = s->nfree;
        uint64_t best_length = 0;
        for (unsigned j = 0; j < s->nfree; j++) {
            const cm_free_dim *d = &s->free[j];
            cm_u128 rest = without(&p, j, j, q), most = s->max_nbytes / rest;
            near_list one = {.n = 0};
            most = most < d->most ? most : d->most;
            add(s, d, &one, 2 * (cm_u128)p.c[j] < most ? 2 * (cm_u128)p.c[j] : most);
            if (one.n == 0 || one.length[0] <= p.c[j])
                continue;
            for (size_t r = 0; r < s->spec->nreads; r++)
                q[r] *= one.mean[0][r];
            cm_score score = cm_search_score(s, goal, (double)(rest * one.length[0]), q);
            if ((must && which == s->nfree) || cm_score_less(&score, &best)) {
                best = score;
                which = j;
                best_length = one.length[0];
                memcpy(best_mean, one.mean[0], sizeof best_mean);
            }
        }
        if (which == s->nfree) {
            found->valid = !must && nbytes <= s->max_nbytes;
            break;
        }
        p.c[which] = best_length;
        memcpy(p.mean[which], best_mean, sizeof best_mean);
        p.score = best;
    }
    found->score = p.score;
    for (unsigned j = 0; j < s->nfree; j++)
        found->chunk[s->free[j].index] = p.c[j];
}
