/* The sensible lengths of every dimension, and all their combinations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "plan/optimise_impl.h"

enum {
    MAX_COMBINATIONS = 1 << 17, /* about 5 ms with five reads */
    MAX_SENSIBLE = 4096,
    MAX_PIECES = 16
};

typedef struct lengths {
    uint64_t most;
    uint64_t list[MAX_SENSIBLE];
    size_t n;
} lengths;

static void add(lengths *l, uint64_t c)
{
    if (c >= 1 && c <= l->most && l->n < MAX_SENSIBLE)
        l->list[l->n++] = c;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort_unique(lengths *l)
{
    size_t n = 0;

    qsort(l->list, l->n, sizeof *l->list, compare_u64);
    for (size_t i = 0; i < l->n; i++)
        if (n == 0 || l->list[n - 1] != l->list[i])
            l->list[n++] = l->list[i];
    l->n = n;
}

static void add_sample(lengths *l, uint64_t s)
{
    static const unsigned ratio[][2] = {{1, 8}, {1, 6}, {1, 4}, {1, 3}, {1, 2}, {2, 3}, {3, 4},
                                        {1, 1}, {4, 3}, {3, 2}, {2, 1}, {3, 1}, {4, 1}, {8, 1}};

    for (size_t i = 0; i < sizeof ratio / sizeof *ratio; i++) {
        cm_u128 c = (cm_u128)s * ratio[i][0] / ratio[i][1];
        if (c < l->most) {
            add(l, (uint64_t)c);
            add(l, (uint64_t)c + 1);
        }
    }
    add(l, l->most);
}

static void collect(const cm_optimise_spec *spec, unsigned index, lengths *l)
{
    uint64_t n = spec->shape[index];

    for (unsigned shift = 0; shift < 62; shift++) {
        add(l, UINT64_C(1) << shift);
        add(l, UINT64_C(3) << shift >> 1);
        if (spec->align == CM_ALIGN_EVERY && spec->every <= l->most >> shift)
            add(l, spec->every << shift);
    }
    for (uint64_t p = 1; n != 0 && p <= MAX_PIECES; p++)
        add(l, cm_div_ceil(n, p));
    for (size_t r = 0; r < spec->nreads; r++) {
        add_sample(l, spec->read[r].sample[index]);
        if (spec->read[r].step[index] > 1)
            add_sample(l, (spec->read[r].sample[index] - 1) * spec->read[r].step[index] + 1);
    }
    add(l, l->most);
    sort_unique(l);
}

/*
 * At most LIMIT lengths: all integers if they are so few, else the sensible ones, thinned
 * evenly.
 */
static int list_dim(cm_search *s, cm_free_dim *d, size_t limit, cm_error *err)
{
    size_t nreads = s->spec->nreads;
    lengths *l = NULL;

    d->n = d->most <= limit ? (size_t)d->most : limit;
    d->length = cm_calloc(d->n, sizeof *d->length, err);
    d->mean = cm_calloc(d->n * nreads, sizeof *d->mean, err);
    if (d->length == NULL || d->mean == NULL)
        return CM_ENOMEM;
    if (d->most <= limit) {
        for (size_t k = 0; k < d->n; k++)
            d->length[k] = k + 1;
    } else {
        l = cm_calloc(1, sizeof *l, err);
        if (l == NULL)
            return CM_ENOMEM;
        l->most = d->most;
        collect(s->spec, d->index, l);
        d->n = l->n < limit ? l->n : limit;
        for (size_t k = 0; k < d->n; k++)
            d->length[k] = l->list[d->n == 1 ? 0 : k * (l->n - 1) / (d->n - 1)];
        free(l);
    }
    for (size_t k = 0; k < d->n; k++)
        for (size_t r = 0; r < nreads; r++)
            d->mean[k * nreads + r] = cm_search_mean(s, r, d->index, d->length[k]);
    return CM_OK;
}

int cm_search_list(cm_search *s, cm_error *err)
{
    double budget = MAX_COMBINATIONS;
    bool done[CM_MAX_RANK] = {false};
    int rc = CM_OK;

    if (s->spec->nreads > 8)
        budget = budget * 8 / (double)s->spec->nreads;
    /* The shortest dimensions first: what they do not use is left to the others. */
    for (unsigned i = 0; i < s->nfree && rc == CM_OK; i++) {
        unsigned next = s->nfree;
        for (unsigned j = 0; j < s->nfree; j++)
            if (!done[j] && (next == s->nfree || s->free[j].most < s->free[next].most))
                next = j;
        double limit = floor(pow(budget, 1.0 / (s->nfree - i)) + 1e-9);
        rc = list_dim(s, &s->free[next], limit < 1 ? 1 : (size_t)limit, err);
        budget /= (double)s->free[next].n;
        done[next] = true;
    }
    return rc;
}

/* ---- all combinations ---------------------------------------------------------------------- */

typedef struct walk {
    cm_search *s;
    cm_goal goal;
    bool want_front;
    cm_found *best;
    size_t pick[CM_MAX_RANK];
    double q[CM_MAX_RANK + 1][CM_MAX_READS];
    cm_u128
        reach[CM_MAX_RANK + 1]; /* bytes that the dimensions from here on can still multiply by */
    int rc;
    cm_error *err;
} walk;

static void take(const walk *w, cm_found *found, const cm_score *score)
{
    const cm_search *s = w->s;

    found->valid = true;
    found->score = *score;
    memcpy(found->chunk, s->chunk, sizeof found->chunk);
    for (unsigned j = 0; j < s->nfree; j++)
        found->chunk[s->free[j].index] = s->free[j].length[w->pick[j]];
}

void cm_search_decode(const cm_search *s, uint64_t number, uint64_t *chunk)
{
    memcpy(chunk, s->chunk, sizeof s->chunk);
    for (unsigned j = s->nfree; j-- > 0;) {
        chunk[s->free[j].index] = s->free[j].length[number % s->free[j].n];
        number /= s->free[j].n;
    }
}

/* Keeps the front sorted by bytes, with requests falling. */
static int add_to_front(cm_search *s, const cm_front_point *p, cm_error *err)
{
    size_t low = 0, high = s->nfront, drop;

    while (low < high) { /* the first point with more bytes */
        size_t middle = (low + high) / 2;
        if (s->front[middle].bytes <= p->bytes)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0 && s->front[low - 1].requests <= p->requests)
        return CM_OK;
    if (low > 0 && s->front[low - 1].bytes == p->bytes)
        low--;
    for (drop = low; drop < s->nfront && s->front[drop].requests >= p->requests; drop++)
        continue;
    if (drop == low && s->nfront == s->front_capacity) {
        cm_front_point *grown =
            cm_make_room(s->front, s->nfront, &s->front_capacity, sizeof *grown, 256);
        if (grown == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for %zu shapes", s->nfront + 1);
        s->front = grown;
    }
    memmove(&s->front[low + 1], &s->front[drop], (s->nfront - drop) * sizeof *s->front);
    s->front[low] = *p;
    s->nfront = s->nfront + 1 - (drop - low);
    return CM_OK;
}

static void judge(walk *w, cm_u128 nbytes, const double *q)
{
    cm_search *s = w->s;
    cm_score score = cm_search_score(s, w->goal, (double)nbytes, q);

    s->nevaluated++;
    if (!w->best->valid || cm_score_less(&score, &w->best->score))
        take(w, w->best, &score);
    for (size_t r = 0; s->found_own != NULL && r < s->spec->nreads; r++) {
        cm_score own = cm_search_score(s, (cm_goal){CM_OBJECTIVE_COST, (int)r}, (double)nbytes, q);
        if (!s->found_own[r].valid || cm_score_less(&own, &s->found_own[r].score))
            take(w, &s->found_own[r], &own);
    }
    if (w->want_front && w->rc == CM_OK) {
        cm_front_point p = {score.bytes, score.requests, 0};
        for (unsigned j = 0; j < s->nfree; j++)
            p.number = p.number * s->free[j].n + w->pick[j];
        w->rc = add_to_front(s, &p, w->err);
    }
}

static void descend(walk *w, unsigned level, cm_u128 nbytes)
{
    cm_search *s = w->s;
    size_t nreads = s->spec->nreads;

    if (nbytes * w->reach[level] < s->min_nbytes)
        return;
    if (level == s->nfree) {
        judge(w, nbytes, w->q[level]);
        return;
    }
    const cm_free_dim *d = &s->free[level];
    for (size_t k = 0; k < d->n; k++) {
        cm_u128 more = nbytes * d->length[k];
        if (more > s->max_nbytes)
            break; /* lengths rise */
        for (size_t r = 0; r < nreads; r++)
            w->q[level + 1][r] = w->q[level][r] * d->mean[k * nreads + r];
        w->pick[level] = k;
        descend(w, level + 1, more);
    }
}

int cm_search_all(cm_search *s, cm_goal goal, bool want_front, cm_found *best, cm_error *err)
{
    walk *w = cm_calloc(1, sizeof *w, err);
    int rc;

    if (w == NULL)
        return CM_ENOMEM;
    w->s = s;
    w->goal = goal;
    w->want_front = want_front;
    w->best = best;
    w->err = err;
    best->valid = false;
    memcpy(w->q[0], s->unit_mean, sizeof w->q[0]);
    w->reach[s->nfree] = 1;
    for (unsigned j = s->nfree; j-- > 0;) {
        /* Beyond max_nbytes nothing is looked at, so the product may stop there. */
        cm_u128 most = s->free[j].length[s->free[j].n - 1];
        w->reach[j] = w->reach[j + 1] > s->max_nbytes ? w->reach[j + 1] : w->reach[j + 1] * most;
    }
    descend(w, 0, s->unit);
    rc = w->rc;
    free(w);
    return rc;
}
