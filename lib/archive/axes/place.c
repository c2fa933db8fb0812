#include "archive/axes/place.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"

#define NOBODY UINT32_MAX
/* A GiB of owners: enough for any real dimension. */
#define MAX_CELLS (UINT64_C(1) << 28)
/* The owner of a place and the counts of coverage.c, and as much again for all else. */
#define CELL_NBYTES 12
#define LEAST_CELLS (UINT64_C(1) << 20)
/* In the paged memory each takes 140 bytes for each variable. */
#define MOST_PARTS (UINT64_C(1) << 22)

typedef struct grid {
    const cm_join_input *in;
    const cm_join_tables *tables;
    const cm_join_axes *axes;
    const cm_join_var *v;
    cm_placement *p;
    uint64_t rows, cols; /* the last axis makes the columns; without another there is one row */
    uint32_t *owner;
    size_t part_capacity;
    cm_error *err;
} grid;

static const cm_join_vec *vec_of(const cm_join_input *in, const cm_join_tables *tables,
                                 const cm_join_axes *axes, unsigned axis, uint32_t file)
{
    return cm_axis_vec(in, &tables->dim[axes->axis[axis]], file);
}

static uint64_t length_of(const cm_join_tables *tables, const cm_join_axes *axes, unsigned axis,
                          uint32_t file)
{
    const cm_join_dim *d = &tables->dim[axes->axis[axis]];
    return cm_file_has(d->length[file]) ? cm_file_count(d->length[file]) : 1;
}

/* Where element AT of the joined dimension lies in the file of VEC, which has it. */
static uint64_t position(const cm_join_vec *vec, uint64_t at)
{
    const cm_join_run *r = &vec->run[cm_axis_runs_before(vec, at + 1) - 1];
    return r->first + (at - r->origin);
}

static cm_multi_part part_at(const grid *g, uint32_t file, uint64_t row, uint64_t col,
                             uint64_t count)
{
    const cm_placement *p = g->p;
    unsigned last = p->naxes - 1;
    cm_multi_part part = {.file = file};
    const uint64_t at[2] = {p->naxes == 1 ? col : row, col};
    for (unsigned i = 0; i < p->naxes; i++) {
        part.origin[i] = at[i];
        part.first[i] = position(vec_of(g->in, g->tables, g->axes, p->axis[i], file), at[i]);
        part.count[i] = i == last ? count : 1;
        part.length[i] = length_of(g->tables, g->axes, p->axis[i], file);
    }
    return part;
}

/* ---- who has what ---- */

/* Steps of files lie between those of others: each run of them is a part of its own. */
static int check_runs(const grid *g)
{
    const uint64_t n = g->p->nparts + g->p->ntwice;
    if (n < MOST_PARTS || n < g->v->nfiles)
        return CM_OK;
    return cm_fail(g->err, CM_EUNSUPPORTED,
                   "%s: steps of files lie between those of others, in more than %" PRIu64
                   " places; `store_per` makes a store of each",
                   g->v->name, MOST_PARTS);
}

static int add_twice(grid *g, uint32_t has, uint32_t too, uint64_t row, uint64_t col,
                     uint64_t count)
{
    cm_placement *p = g->p;
    int rc = check_runs(g);
    if (rc == CM_OK)
        rc = CM_GROW(p->twice, p->ntwice, g->err);
    if (rc != CM_OK)
        return rc;
    p->twice[p->ntwice++] =
        (cm_placed_twice){{part_at(g, has, row, col, count), part_at(g, too, row, col, count)}};
    p->nrepeated += count;
    return CM_OK;
}

/* The store gives the elements that no file gives; the rest are the files'. */
static bool yields(const cm_join_input *in, uint32_t file)
{
    return in->has_base && in->options->base_yields && file == 0;
}

/* FILE takes COUNT elements of ROW from COL on, but for those that another file has. */
static int claim(grid *g, uint32_t file, uint64_t row, uint64_t col, uint64_t count)
{
    uint32_t *owner = g->owner + row * g->cols;
    int rc = CM_OK;
    for (uint64_t i = col; rc == CM_OK && i < col + count;) {
        uint64_t begin = i;
        uint32_t has = owner[i];
        while (i < col + count && owner[i] == has) {
            if (has == NOBODY)
                owner[i] = file;
            i++;
        }
        if (has != NOBODY && !g->p->given && !yields(g->in, file))
            rc = add_twice(g, has, file, row, begin, i - begin);
    }
    return rc;
}

static int claim_file(grid *g, uint32_t file)
{
    const cm_placement *p = g->p;
    const cm_join_vec *cols = vec_of(g->in, g->tables, g->axes, p->axis[p->naxes - 1], file);
    const cm_join_vec *rows =
        p->naxes == 2 ? vec_of(g->in, g->tables, g->axes, p->axis[0], file) : NULL;
    static const cm_join_run ONE_ROW = {0, 0, 1};
    int rc = CM_OK;
    if (cols == NULL || (p->naxes == 2 && rows == NULL))
        return CM_OK;
    size_t nruns = rows != NULL ? rows->nruns : 1;
    for (size_t i = 0; i < nruns; i++) {
        const cm_join_run *r = rows != NULL ? &rows->run[i] : &ONE_ROW;
        for (uint64_t row = r->origin; row < r->origin + r->count; row++)
            for (size_t k = 0; rc == CM_OK && k < cols->nruns; k++)
                rc = claim(g, file, row, cols->run[k].origin, cols->run[k].count);
    }
    return rc;
}

/* Where several files have a step, the first of them in this order gives it. */
static int claim_all(grid *g)
{
    const cm_join_var *v = g->v;
    bool last = g->in->options->overlap == CM_OVERLAP_LAST;
    uint32_t *order = cm_calloc(v->nfiles + 1, sizeof(*order), g->err);
    int rc = order == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK) {
        memcpy(order, v->file, v->nfiles * sizeof(*order));
        qsort_r(order, v->nfiles, sizeof(*order), cm_join_by_rank, g->in->rank);
    }
    bool store = false;
    for (size_t i = 0; rc == CM_OK && i < v->nfiles; i++) {
        uint32_t file = order[last ? v->nfiles - 1 - i : i];
        store |= yields(g->in, file);
        rc = yields(g->in, file) ? CM_OK : claim_file(g, file);
    }
    if (rc == CM_OK && store)
        rc = claim_file(g, 0);
    free(order);
    return rc;
}

/* ---- parts ---- */

static int add_part(grid *g, cm_multi_part part)
{
    cm_placement *p = g->p;
    int rc = check_runs(g);
    if (rc != CM_OK)
        return rc;
    if (p->nparts == g->part_capacity) {
        size_t capacity = g->part_capacity > 0 ? g->part_capacity * 2 : 16;
        cm_multi_part *more = cm_join_alloc(g->in, capacity, sizeof(*more), g->err);
        if (more == NULL)
            return CM_ENOMEM;
        cm_paged_copy(g->in->survey->paged, more, p->part, p->nparts * sizeof(*more));
        p->part = more;
        g->part_capacity = capacity;
    }
    cm_paged_touch(g->in->survey->paged, &p->part[p->nparts], sizeof(part));
    p->part[p->nparts++] = part;
    return CM_OK;
}

/* A part of the row before goes on in this one. */
static bool goes_on(const cm_multi_part *above, const cm_multi_part *part)
{
    return above->file == part->file && above->origin[1] == part->origin[1] &&
           above->count[1] == part->count[1] && above->first[1] == part->first[1] &&
           above->origin[0] + above->count[0] == part->origin[0] &&
           above->first[0] + above->count[0] == part->first[0];
}

/* The elements of FILE from COL on that follow each other in it too. */
static uint64_t same_owner(const grid *g, uint64_t row, uint64_t col)
{
    const uint32_t *owner = g->owner + row * g->cols;
    uint64_t n = 1;
    if (owner[col] == NOBODY) {
        while (col + n < g->cols && owner[col + n] == NOBODY)
            n++;
        return n;
    }
    const cm_join_vec *vec =
        vec_of(g->in, g->tables, g->axes, g->p->axis[g->p->naxes - 1], owner[col]);
    uint64_t first = position(vec, col);
    while (col + n < g->cols && owner[col + n] == owner[col] &&
           (vec->nruns == 1 || position(vec, col + n) == first + n))
        n++;
    return n;
}

static int collect_row(grid *g, uint64_t row, size_t *above, size_t *begun)
{
    cm_placement *p = g->p;
    size_t open = *above, end = *begun;
    int rc = CM_OK;
    for (uint64_t col = 0; rc == CM_OK && col < g->cols;) {
        uint64_t n = same_owner(g, row, col);
        uint32_t file = g->owner[row * g->cols + col];
        if (file == NOBODY) {
            if (p->nholes == 0) {
                p->hole[0] = p->naxes == 1 ? col : row;
                p->hole[1] = col;
            }
            p->nholes += n;
        } else {
            cm_multi_part part = part_at(g, file, row, col, n);
            while (p->naxes == 2 && open < end && p->part[open].origin[1] < col)
                open++;
            if (p->naxes == 2 && open < end && goes_on(&p->part[open], &part))
                p->part[open].count[0]++;
            else
                rc = add_part(g, part);
        }
        col += n;
    }
    return rc;
}

static int by_origin(const void *a, const void *b)
{
    const cm_multi_part *x = a, *y = b;
    for (unsigned i = 0; i < CM_MULTI_MAX_AXES; i++)
        if (x->origin[i] != y->origin[i])
            return x->origin[i] < y->origin[i] ? -1 : 1;
    return 0;
}

/* Mostly sorted already, where sorting would read all of them repeatedly. */
static bool is_sorted(const grid *g)
{
    const cm_placement *p = g->p;
    for (size_t i = 1; i < p->nparts; i++) {
        cm_paged_touch(g->in->survey->paged, &p->part[i], sizeof(p->part[i]));
        if (by_origin(&p->part[i - 1], &p->part[i]) > 0)
            return false;
    }
    return true;
}

/*
 * Compares each row with the last row in which each column's parts began.  A row with new parts
 * begins a new set, so the compared parts stay sorted by column.
 */
static int collect(grid *g)
{
    size_t above = 0, end = 0;
    int rc = CM_OK;
    for (uint64_t row = 0; rc == CM_OK && row < g->rows; row++) {
        size_t before = g->p->nparts;
        rc = collect_row(g, row, &above, &end);
        if (g->p->nparts != before) {
            above = before;
            end = g->p->nparts;
        }
    }
    if (rc == CM_OK && !is_sorted(g))
        qsort(g->p->part, g->p->nparts, sizeof(g->p->part[0]), by_origin);
    return rc;
}

uint64_t cm_place_limit(const cm_join_input *in)
{
    const uint64_t memory = in == NULL ? 0 : in->options->memory, fit = memory / CELL_NBYTES;
    if (memory == 0 || fit > MAX_CELLS)
        return MAX_CELLS;
    return fit > LEAST_CELLS ? fit : LEAST_CELLS;
}

/* More than memory allows, or than any memory would. */
static int too_many(const cm_join_input *in, cm_error *err)
{
    const uint64_t limit = cm_place_limit(in);
    return cm_fail(err, limit < MAX_CELLS ? CM_EBUDGET : CM_EUNSUPPORTED,
                   "the joined dimensions have more than %" PRIu64 " places together%s", limit,
                   limit < MAX_CELLS ? ", which is all that fits the memory; raise `memory`" : "");
}

int cm_place(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
             const cm_join_var *v, cm_placement *out, cm_error *err)
{
    grid g = {.in = in, .tables = tables, .axes = axes, .v = v, .p = out, .rows = 1, .err = err};
    if (out->naxes == 2)
        g.rows = tables->dim[axes->axis[out->axis[0]]].n;
    g.cols = tables->dim[axes->axis[out->axis[out->naxes - 1]]].n;
    uint64_t cells;
    if (!cm_mul_u64(g.rows, g.cols, &cells) || cells > cm_place_limit(in))
        return too_many(in, err);
    g.owner = malloc((size_t)(cells + 1) * sizeof(*g.owner));
    if (g.owner == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for %llu places of files",
                       (unsigned long long)cells);
    memset(g.owner, 0xff, (size_t)(cells + 1) * sizeof(*g.owner));
    int rc = claim_all(&g);
    if (rc == CM_OK)
        rc = collect(&g);
    free(g.owner);
    return rc;
}

/* How many elements of VEC lie before AT of the axis. */
static uint64_t count_before(const cm_join_vec *vec, uint64_t at)
{
    const size_t n = cm_axis_runs_before(vec, at);
    if (n == 0)
        return 0;
    const cm_join_run *r = &vec->run[n - 1];
    return r->first + (at - r->origin < r->count ? at - r->origin : r->count);
}

bool cm_place_is_open(const cm_join_input *in, const cm_join_tables *tables,
                      const cm_join_axes *axes, const cm_placement *p, uint32_t file)
{
    const cm_join_vec *vec[CM_MULTI_MAX_AXES] = {NULL};
    uint64_t left = 1;
    for (unsigned i = 0; i < p->naxes; i++) {
        vec[i] = cm_axis_vec(in, &tables->dim[axes->axis[p->axis[i]]], file);
        if (vec[i] == NULL || vec[i]->nruns == 0)
            return false;
        left *= vec[i]->n;
    }
    for (size_t i = 0; left > 0 && i < p->nparts; i++) {
        uint64_t taken = 1;
        for (unsigned k = 0; taken > 0 && k < p->naxes; k++)
            taken *= count_before(vec[k], p->part[i].origin[k] + p->part[i].count[k]) -
                     count_before(vec[k], p->part[i].origin[k]);
        left -= taken;
    }
    return left > 0;
}

void cm_placement_release(cm_placement *p)
{
    free(p->twice);
    *p = (cm_placement){0};
}

int cm_place_propose_apart(const cm_field_sources *f, cm_finding *found, cm_error *err)
{
    if (f->apart == NULL)
        return CM_OK;
    found->by = f->apart_by;
    return (found->value = cm_strdup(f->apart, err)) == NULL ? CM_ENOMEM : CM_OK;
}
