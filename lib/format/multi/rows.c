#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "format/multi/internal.h"

/* ---- rows ---- */

static int by_origin(const void *a, const void *b)
{
    uint64_t x = ((const cm_multi_row *)a)->origin, y = ((const cm_multi_row *)b)->origin;
    return (x > y) - (x < y);
}

/* Sorted, with what is between them as holes; false in *IS_GRID where they overlap. */
static int close_holes(cm_multi_axis *axis, const cm_multi_row *row, uint64_t n, uint64_t shape,
                       cm_paged *paged, bool *is_grid, cm_error *err)
{
    uint64_t at = 0, count = n;
    for (uint64_t i = 0; i < n; at = row[i].origin + row[i].count, i++)
        count += row[i].origin > at;
    cm_multi_row *with = cm_paged_calloc(paged, count + (at < shape), sizeof(with[0]), err);
    if (with == NULL)
        return CM_ENOMEM;
    at = count = 0;
    for (uint64_t i = 0; i < n; i++) {
        const cm_multi_row *r = &row[i];
        if (r->origin < at) {
            *is_grid = false;
            break;
        }
        if (r->origin > at)
            with[count++] = (cm_multi_row){.origin = at, .count = r->origin - at, .hole = true};
        with[count++] = *r;
        at = r->origin + r->count;
    }
    if (at < shape && *is_grid)
        with[count++] = (cm_multi_row){.origin = at, .count = shape - at, .hole = true};
    axis->row = with;
    axis->nrows = count;
    return CM_OK;
}

static bool same_row(const cm_multi_row *a, const cm_multi_row *b)
{
    return a->origin == b->origin && a->first == b->first && a->count == b->count &&
           a->length == b->length;
}

static int make_axis(cm_multi_array *a, unsigned i, bool *is_grid, cm_error *err)
{
    const cm_multi_var *v = a->var;
    uint64_t n = 0;
    cm_multi_row *row = cm_calloc(v->nparts + 1, sizeof(row[0]), err);
    if (row == NULL)
        return CM_ENOMEM;
    for (size_t p = 0; p < v->nparts; p++) {
        const cm_multi_part *part = &v->part[p];
        row[p] = (cm_multi_row){.origin = part->origin[i],
                                .first = part->first[i],
                                .count = part->count[i],
                                .length = part->length[i]};
    }
    if (v->nparts > 0)
        qsort(row, v->nparts, sizeof(row[0]), by_origin);
    for (size_t p = 0; p < v->nparts; p++) {
        if (n > 0 && row[n - 1].origin == row[p].origin)
            *is_grid = *is_grid && same_row(&row[n - 1], &row[p]);
        else
            row[n++] = row[p];
    }
    int rc = close_holes(&a->axis[i], row, n, v->shape[v->axis[i]], a->owner->paged, is_grid, err);
    free(row);
    return rc;
}

static uint64_t find_row(const cm_multi_axis *axis, uint64_t origin)
{
    uint64_t lo = 0, hi = axis->nrows;
    while (hi - lo > 1) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (axis->row[middle].origin <= origin)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

static int place_parts(cm_multi_array *a, cm_error *err)
{
    const cm_multi_var *v = a->var;
    size_t across = v->naxes > 1 ? (size_t)a->axis[1].nrows : 1, n;
    if (!cm_mul_size(v->naxes > 0 ? (size_t)a->axis[0].nrows : 1, across, &n))
        n = SIZE_MAX;
    if ((a->part_at = cm_paged_calloc(a->owner->paged, n, sizeof(a->part_at[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t p = 0; p < v->nparts; p++) {
        size_t at = 0;
        for (unsigned i = 0; i < v->naxes; i++)
            at = at * across + (size_t)find_row(&a->axis[i], v->part[p].origin[i]);
        if (a->part_at[at] != 0)
            return cm_fail(err, CM_EINVAL, "variable %s: two parts of it lie at one place",
                           v->name);
        a->part_at[at] = (uint32_t)p + 1;
    }
    return CM_OK;
}

int cm_multi_rows_make(cm_multi_array *a, bool *is_grid, cm_error *err)
{
    const cm_multi_var *v = a->var;
    int rc = CM_OK;
    *is_grid = true;
    for (unsigned i = 0; rc == CM_OK && i < v->naxes; i++)
        rc = make_axis(a, i, is_grid, err);
    return rc == CM_OK && *is_grid ? place_parts(a, err) : rc;
}

void cm_multi_rows_release(cm_multi_axis *axis)
{
    cm_cuts_release(&axis->cuts);
    *axis = (cm_multi_axis){0};
}

/* ---- pieces ---- */

/* Where piece K of the row ends, in its files. */
static uint64_t end_of(const cm_multi_row *r, uint64_t k)
{
    uint64_t end = (r->first / r->chunk + k + 1) * r->chunk, last = r->first + r->count;
    return end < last ? end : last;
}

static bool is_regular(const cm_multi_axis *axis)
{
    uint64_t chunk = axis->row[0].chunk;
    for (uint64_t i = 0; i < axis->nrows; i++) {
        const cm_multi_row *r = &axis->row[i];
        if (r->chunk != chunk || r->origin % chunk != 0 || r->first % chunk != 0 ||
            (i + 1 < axis->nrows && r->count % chunk != 0))
            return false;
    }
    return true;
}

int cm_multi_rows_cut(cm_multi_axis *axis, cm_error *err)
{
    axis->npieces = 0;
    for (uint64_t i = 0; i < axis->nrows; i++) {
        cm_multi_row *r = &axis->row[i];
        r->piece = axis->npieces;
        axis->npieces += cm_div_ceil(r->first + r->count, r->chunk) - r->first / r->chunk;
    }
    if (axis->nrows == 0 || is_regular(axis))
        return CM_OK;
    int rc = cm_cuts_init(&axis->cuts, axis->npieces, err);
    if (rc != CM_OK)
        return rc;
    for (uint64_t i = 0, k = 0; i < axis->nrows; i++) {
        const cm_multi_row *r = &axis->row[i];
        uint64_t next = i + 1 < axis->nrows ? r[1].piece : axis->npieces;
        for (uint64_t at = r->first, local = 0; k < next; k++, local++) {
            uint64_t end = end_of(r, local);
            axis->cuts.first[k] = r->origin + (at - r->first);
            if (end - at > axis->cuts.longest)
                axis->cuts.longest = end - at;
            at = end;
        }
        axis->cuts.first[k] = r->origin + r->count;
    }
    return CM_OK;
}

const cm_multi_row *cm_multi_row_of_piece(const cm_multi_axis *axis, uint64_t k)
{
    uint64_t lo = 0, hi = axis->nrows;
    while (hi - lo > 1) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (axis->row[middle].piece <= k)
            lo = middle;
        else
            hi = middle;
    }
    return &axis->row[lo];
}
