/*
 * Tallies of one variable that several processes counted, merged to the bits that one would have.
 *
 * The tallies of a level's chunks stand in a tree that is fixed by their number: cut at the
 * largest power of two, again and again.  A process that counted some of the chunks tells the
 * largest subtrees of which it has every leaf, *nodes*; those of all processes together are the
 * whole tree, whatever was cut where.
 *
 * As text a node is ten words of sixteen hexadecimal digits: level, first leaf, number of leaves,
 * and the tally, its numbers as their bits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/statistics/statistics_impl.h"

enum {
    NWORDS = 10,
    DIGITS = 16
};

struct cm_statistics_node {
    uint64_t level, first, n;
    cm_tally tally;
};

/* ---- telling ---- */

/* Leaves, or blocks of UNIT leaves, from leaf BASE on: T[i], where THERE[i]. */
typedef struct row {
    const cm_statistics *s;
    uint64_t level, base, unit;
    const cm_tally *t;
    const bool *there;
    cm_buf *out;
} row;

static uint64_t bits_of(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

static int tell_node(const row *r, uint64_t first, uint64_t n, const cm_tally *t, cm_error *err)
{
    const uint64_t word[NWORDS] = {r->level,
                                   first,
                                   n,
                                   t->count,
                                   t->missing,
                                   bits_of(t->min),
                                   bits_of(t->max),
                                   bits_of(t->mean),
                                   bits_of(t->rest),
                                   bits_of(t->m2)};
    int rc = CM_OK;
    for (unsigned i = 0; rc == CM_OK && i < NWORDS; i++)
        rc = cm_buf_printf(r->out, err, "%016" PRIx64, word[i]);
    return rc;
}

static uint64_t half_of(uint64_t n)
{
    uint64_t half = 1;
    while (half * 2 < n)
        half *= 2;
    return half;
}

static int tell_block(const row *blocks, uint64_t number, cm_error *err);

static int tell(const row *r, uint64_t lo, uint64_t n, cm_error *err)
{
    uint64_t have = 0;
    while (have < n && r->there[lo + have])
        have++;
    if (have == n) {
        const cm_tally t = cm_tally_tree(r->t + lo, n);
        const uint64_t first = r->base + lo * r->unit, end = r->base + (lo + n) * r->unit;
        return tell_node(r, first, (end < r->s->nplaces ? end : r->s->nplaces) - first, &t, err);
    }
    if (n == 1)
        return r->unit > 1 ? tell_block(r, lo, err) : CM_OK;
    const uint64_t half = half_of(n);
    int rc = tell(r, lo, half, err);
    return rc == CM_OK ? tell(r, lo + half, n - half, err) : rc;
}

/* A block of which some leaves are missing. */
static int tell_block(const row *blocks, uint64_t number, cm_error *err)
{
    const cm_statistics *s = blocks->s;
    const cm_statistics_block *b = &s->block[blocks->level * s->nblocks + number];
    row leaves = *blocks;
    if (b->leaf == NULL)
        return CM_OK;
    leaves.base = number * CM_STATISTICS_BLOCK;
    leaves.unit = 1;
    leaves.t = b->leaf;
    leaves.there = b->there;
    return tell(&leaves, 0, cm_statistics_block_length(s, number), err);
}

int cm_statistics_tell(const cm_job_var *v, cm_buf *out, cm_error *err)
{
    const cm_statistics *s = v->statistics;
    cm_tally *sum = cm_calloc(s->nblocks + 1, sizeof(*sum), err);
    bool *there = cm_calloc(s->nblocks + 1, sizeof(*there), err);
    int rc = sum == NULL || there == NULL ? CM_ENOMEM : CM_OK;
    for (uint64_t level = 0; rc == CM_OK && s->block != NULL && level < s->nlevels; level++) {
        const cm_statistics_block *b = &s->block[level * s->nblocks];
        const row blocks = {s, level, 0, CM_STATISTICS_BLOCK, sum, there, out};
        for (uint64_t i = 0; i < s->nblocks; i++) {
            there[i] = b[i].left == 0;
            sum[i] = b[i].sum;
        }
        if (s->nblocks > 0)
            rc = tell(&blocks, 0, s->nblocks, err);
    }
    if (rc == CM_OK)
        rc = cm_buf_append(out, "", 1, err);
    free(sum);
    free(there);
    return rc;
}

/* ---- hearing ---- */

static bool read_word(const char *text, uint64_t *out)
{
    *out = 0;
    for (unsigned i = 0; i < DIGITS; i++) {
        const char c = text[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        *out = *out << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

static double double_of(uint64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

static bool read_node(const cm_statistics *s, const char *text, cm_statistics_node *out)
{
    uint64_t word[NWORDS];
    for (unsigned i = 0; i < NWORDS; i++)
        if (!read_word(text + (size_t)i * DIGITS, &word[i]))
            return false;
    *out = (cm_statistics_node){.level = word[0],
                                .first = word[1],
                                .n = word[2],
                                .tally = {.count = word[3],
                                          .missing = word[4],
                                          .min = double_of(word[5]),
                                          .max = double_of(word[6]),
                                          .mean = double_of(word[7]),
                                          .rest = double_of(word[8]),
                                          .m2 = double_of(word[9])}};
    return out->level < s->nlevels && out->n > 0 && out->first < s->nplaces &&
           out->n <= s->nplaces - out->first;
}

int cm_statistics_hear(cm_job_var *v, const char *text, size_t nbytes, cm_error *err)
{
    cm_statistics *s = v->statistics;
    const size_t each = (size_t)NWORDS * DIGITS, n = nbytes / each;
    if (!s->heard) {
        s->heard = true;
        int rc = cm_statistics_measure(v, err);
        if (rc != CM_OK)
            return rc;
    }
    if (n == 0 && nbytes == 0)
        return CM_OK;
    cm_statistics_node *more = realloc(s->node, (s->nnodes + n + 1) * sizeof(*more));
    if (more == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the statistics of parts");
    s->node = more;
    for (size_t i = 0; i < n; i++)
        if (nbytes % each != 0 || !read_node(s, text + i * each, &s->node[s->nnodes++]))
            return cm_fail(err, CM_EFORMAT, "variable %s: what a part counted is damaged", v->name);
    s->sorted = false;
    return CM_OK;
}

static int by_place(const void *a, const void *b)
{
    const cm_statistics_node *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* The subtree of N leaves from FIRST on; false: some chunk of it was not counted. */
static bool build(const cm_statistics *s, uint64_t level, uint64_t first, uint64_t n, cm_tally *out)
{
    const cm_statistics_node key = {.level = level, .first = first};
    const cm_statistics_node *found =
        s->nnodes > 0 ? bsearch(&key, s->node, s->nnodes, sizeof(key), by_place) : NULL;
    if (found != NULL && found->n == n) {
        *out = found->tally;
        return true;
    }
    if (n <= 1)
        return false;
    cm_tally two[2];
    const uint64_t half = half_of(n);
    if (!build(s, level, first, half, &two[0]) || !build(s, level, first + half, n - half, &two[1]))
        return false;
    *out = cm_tally_tree(two, 2);
    return true;
}

int cm_statistics_join(const cm_job_var *v, uint64_t level, cm_tally *out, cm_error *err)
{
    cm_statistics *s = v->statistics;
    *out = cm_tally_empty();
    if (!s->sorted && s->nnodes > 0)
        qsort(s->node, s->nnodes, sizeof(s->node[0]), by_place);
    s->sorted = true;
    if (s->nplaces == 0 || build(s, level, 0, s->nplaces, out))
        return CM_OK;
    return cm_fail(err, CM_EINTERNAL, "variable %s: no part counted some chunk", v->name);
}
