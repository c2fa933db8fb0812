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

static bool same_row(const cm_multi_row *a, const cm_multi_row *b)
{
    return a->origin == b->origin && a->first == b->first && a->count == b->count &&
           a->length == b->length;
}

static cm_multi_row row_of(const cm_multi_array *a, unsigned i, size_t p)
{
    const cm_multi_part *part = cm_multi_part_of(a, p);
    return (cm_multi_row){.origin = part->origin[i],
                          .first = part->first[i],
                          .count = part->count[i],
                          .length = part->length[i]};
}

/*
 * The last row that begins at or before ORIGIN, or the first row.  It is sought from NEAR on, in
 * growing steps: of a long list few pages are in memory.
 */
static uint64_t find_row(const cm_multi_array *a, const cm_multi_axis *axis, uint64_t near,
                         uint64_t origin)
{
    uint64_t lo = near < axis->nrows && cm_multi_row_at(a, axis, near)->origin <= origin ? near : 0;
    uint64_t step = 1, hi = axis->nrows;
    while (step < hi - lo && cm_multi_row_at(a, axis, lo + step)->origin <= origin) {
        lo += step;
        step *= 2;
    }
    hi = step < hi - lo ? lo + step : hi;
    while (hi - lo > 1) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (cm_multi_row_at(a, axis, middle)->origin <= origin)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

/*
 * Builds the rows if parts come in the order of the axis, once or repeatedly; else returns false.
 * Needs no lists besides the result.
 */
static bool take_in_order(cm_multi_array *a, unsigned i, bool *is_grid)
{
    cm_multi_axis *axis = &a->axis[i];
    uint64_t last = 0, at = 0; /* where the last row begins; the row of the part before */
    axis->nrows = 0;
    for (size_t p = 0; p < a->var->nparts; p++) {
        const cm_multi_row row = row_of(a, i, p);
        if (axis->nrows == 0 || row.origin > last) {
            at = axis->nrows++;
            *cm_multi_row_at(a, axis, at) = row;
            last = row.origin;
            continue;
        }
        at = find_row(a, axis, at, row.origin);
        const cm_multi_row *has = cm_multi_row_at(a, axis, at);
        if (has->origin != row.origin)
            return false;
        *is_grid = *is_grid && same_row(has, &row);
    }
    return true;
}

static int take_sorted(cm_multi_array *a, unsigned i, bool *is_grid, cm_error *err)
{
    const size_t nparts = a->var->nparts;
    cm_multi_axis *axis = &a->axis[i];
    cm_multi_row *row = cm_calloc(nparts + 1, sizeof(row[0]), err);
    if (row == NULL)
        return CM_ENOMEM;
    for (size_t p = 0; p < nparts; p++)
        row[p] = row_of(a, i, p);
    qsort(row, nparts, sizeof(row[0]), by_origin);
    axis->nrows = 0;
    *is_grid = true;
    for (size_t p = 0; p < nparts; p++) {
        if (p > 0 && row[p - 1].origin == row[p].origin)
            *is_grid = *is_grid && same_row(&row[p - 1], &row[p]);
        else
            *cm_multi_row_at(a, axis, axis->nrows++) = row[p];
    }
    free(row);
    return CM_OK;
}

/* Fills gaps between rows with holes; *IS_GRID is false if rows overlap. */
static int close_holes(cm_multi_array *a, unsigned i, bool *is_grid, cm_error *err)
{
    cm_multi_axis *axis = &a->axis[i];
    const uint64_t n = axis->nrows, shape = a->var->shape[a->var->axis[i]];
    uint64_t at = 0, count = n;
    for (uint64_t k = 0; k < n; k++) {
        const cm_multi_row *r = cm_multi_row_at(a, axis, k);
        *is_grid = *is_grid && r->origin >= at;
        count += r->origin > at;
        at = r->origin + r->count;
    }
    count += at < shape;
    if (!*is_grid || count == n)
        return CM_OK;
    cm_multi_axis with = {.row = cm_paged_calloc(a->owner->paged, count, sizeof(*with.row), err)};
    if (with.row == NULL)
        return CM_ENOMEM;
    at = 0;
    for (uint64_t k = 0; k < n; k++) {
        const cm_multi_row r = *cm_multi_row_at(a, axis, k);
        if (r.origin > at)
            *cm_multi_row_at(a, &with, with.nrows++) =
                (cm_multi_row){.origin = at, .count = r.origin - at, .hole = true};
        *cm_multi_row_at(a, &with, with.nrows++) = r;
        at = r.origin + r.count;
    }
    if (at < shape)
        *cm_multi_row_at(a, &with, with.nrows++) =
            (cm_multi_row){.origin = at, .count = shape - at, .hole = true};
    axis->row = with.row;
    axis->nrows = with.nrows;
    return CM_OK;
}

static int make_axis(cm_multi_array *a, unsigned i, bool *is_grid, cm_error *err)
{
    cm_multi_axis *axis = &a->axis[i];
    bool alike = true;
    axis->row = cm_paged_calloc(a->owner->paged, a->var->nparts, sizeof(axis->row[0]), err);
    if (axis->row == NULL)
        return CM_ENOMEM;
    const bool whole = take_in_order(a, i, &alike);
    *is_grid = *is_grid && alike;
    if (!*is_grid && a->var->naxes > 1)
        return CM_OK; /* the rows are not needed */
    int rc = whole ? CM_OK : take_sorted(a, i, &alike, err);
    *is_grid = *is_grid && alike;
    return rc == CM_OK ? close_holes(a, i, is_grid, err) : rc;
}

/* True when each part is one row, in order, without holes. */
static bool is_one_by_one(const cm_multi_array *a)
{
    const cm_multi_axis *axis = &a->axis[0];
    if (a->var->naxes != 1 || axis->nrows != a->var->nparts)
        return false;
    for (uint64_t k = 0; k < axis->nrows; k++)
        if (cm_multi_row_at(a, axis, k)->origin != cm_multi_part_of(a, k)->origin[0])
            return false;
    return true;
}

static int place_parts(cm_multi_array *a, cm_error *err)
{
    const cm_multi_var *v = a->var;
    size_t across = v->naxes > 1 ? (size_t)a->axis[1].nrows : 1, n;
    if (is_one_by_one(a))
        return CM_OK;
    if (!cm_mul_size(v->naxes > 0 ? (size_t)a->axis[0].nrows : 1, across, &n))
        n = SIZE_MAX;
    if ((a->part_at = cm_paged_calloc(a->owner->paged, n, sizeof(a->part_at[0]), err)) == NULL)
        return CM_ENOMEM;
    uint64_t row[CM_MULTI_MAX_AXES] = {0}; /* of the part before */
    for (size_t p = 0; p < v->nparts; p++) {
        size_t at = 0;
        for (unsigned i = 0; i < v->naxes; i++) {
            row[i] = find_row(a, &a->axis[i], row[i], cm_multi_part_of(a, p)->origin[i]);
            at = at * across + (size_t)row[i];
        }
        cm_paged_touch(a->owner->paged, &a->part_at[at], sizeof(a->part_at[at]));
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

/* Where piece K of the row ends, in file coordinates. */
static uint64_t end_of(const cm_multi_row *r, uint64_t k)
{
    uint64_t end = (r->first / r->chunk + k + 1) * r->chunk, last = r->first + r->count;
    return end < last ? end : last;
}

static bool is_regular(const cm_multi_array *a, const cm_multi_axis *axis)
{
    uint64_t chunk = axis->row[0].chunk;
    for (uint64_t i = 0; i < axis->nrows; i++) {
        const cm_multi_row *r = cm_multi_row_at(a, axis, i);
        if (r->chunk != chunk || r->origin % chunk != 0 || r->first % chunk != 0 ||
            (i + 1 < axis->nrows && r->count % chunk != 0))
            return false;
    }
    return true;
}

static int cut_row(const cm_multi_row *r, uint64_t k, uint64_t next, cm_cuts *cuts, cm_error *err)
{
    int rc = CM_OK;
    for (uint64_t at = r->first, local = 0; rc == CM_OK && k < next; k++, local++) {
        uint64_t end = end_of(r, local);
        rc = cm_cuts_add(cuts, end - at, 1, err);
        at = end;
    }
    return rc;
}

int cm_multi_rows_cut(cm_multi_array *a, unsigned i, cm_error *err)
{
    cm_multi_axis *axis = &a->axis[i];
    axis->npieces = axis->each = 0;
    for (uint64_t k = 0; k < axis->nrows; k++) {
        cm_multi_row *r = cm_multi_row_at(a, axis, k);
        r->piece = axis->npieces;
        if (k == 1)
            axis->each = axis->npieces;
        else if (k > 1 && axis->npieces != k * axis->each)
            axis->each = 0;
        axis->npieces += cm_div_ceil(r->first + r->count, r->chunk) - r->first / r->chunk;
    }
    if (axis->nrows == 0 || is_regular(a, axis))
        return CM_OK;
    int rc = CM_OK;
    for (uint64_t k = 0; rc == CM_OK && k < axis->nrows; k++) {
        const cm_multi_row *r = cm_multi_row_at(a, axis, k);
        rc = cut_row(r, r->piece, k + 1 < axis->nrows ? r[1].piece : axis->npieces, &axis->cuts,
                     err);
    }
    return rc;
}

const cm_multi_row *cm_multi_row_of_piece(const cm_multi_array *a, unsigned i, uint64_t k)
{
    const cm_multi_axis *axis = &a->axis[i];
    uint64_t lo = 0, hi = axis->nrows;
    if (axis->each > 0) {
        lo = k / axis->each;
        hi = 0;
        lo = lo < axis->nrows ? lo : axis->nrows - 1;
    }
    while (hi > lo + 1) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (cm_multi_row_at(a, axis, middle)->piece <= k)
            lo = middle;
        else
            hi = middle;
    }
    return cm_multi_row_at(a, axis, lo);
}
