#include "convert/sink/growth/append_lengths.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/layout/rectilinear.h"
#include "convert/sink/growth/append_files.h"
#include "convert/sink/growth/append_source.h"

/* ---- elements at which chunks of what is added end ---- */

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Chunks of one array that has the store's elements, too. */
static int borders_of_array(const cm_array *a, unsigned axis, uint64_t first, uint64_t **border,
                            size_t *n, cm_error *err)
{
    if (a == NULL || !a->chunked || first >= a->shape[axis])
        return CM_OK;
    const cm_grid *grid = &a->grid;
    uint64_t k = cm_grid_find(grid, axis, first) + 1;
    *border = cm_calloc(grid->count[axis] - k + 1, sizeof(**border), err);
    if (*border == NULL)
        return CM_ENOMEM;
    for (; k < grid->count[axis]; k++)
        (*border)[(*n)++] = cm_grid_first(grid, axis, k);
    return CM_OK;
}

static int borders_of_files(const cm_append_state *s, const cm_multi_spec *spec,
                            const cm_multi_var *v, uint64_t first, uint64_t **border, size_t *n,
                            cm_error *err)
{
    const unsigned k = cm_append_joined_axis(s, v);
    if (k == v->naxes)
        return CM_OK;
    uint64_t *list = *border = cm_calloc(2 * v->nparts + 1, sizeof(*list), err);
    if (list == NULL)
        return CM_ENOMEM;
    size_t many = 0;
    for (size_t p = 0; p < v->nparts; p++) {
        const cm_multi_part *part = cm_multi_part_at(spec, v, p);
        const uint64_t ends[] = {part->origin[k], part->origin[k] + part->count[k]};
        for (unsigned i = 0; i < 2; i++)
            if (ends[i] > first)
                list[many++] = ends[i];
    }
    qsort(list, many, sizeof(*list), by_number);
    for (size_t i = 0; i < many; i++)
        if (*n == 0 || list[*n - 1] != list[i])
            list[(*n)++] = list[i];
    return CM_OK;
}

/* The elements behind the rows that there are at which what is added to V may be cut, in order. */
static int find_borders(const cm_job *job, const cm_append_state *s, const cm_job_var *v,
                        const cm_grown *g, uint64_t **border, size_t *n, cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    const cm_multi_var *of = cm_append_joined_var(job, v->source);
    const uint64_t first = g->rows.cuts.end;
    cm_job_var own = *v;
    cm_append_source_of(job, &own);
    return of != NULL ? borders_of_files(s, spec, of, first, border, n, err)
                      : borders_of_array(own.source->array, g->growth.axis, first, border, n, err);
}

/* ---- chunks that stay ---- */

/* Chunks of FILES, all that is added, can be those behind the end of T. */
static bool stay(const cm_append_state *s, const cm_grown *g, const cm_variable *t,
                 const cm_variable *files)
{
    cm_array *a = files->array;
    const unsigned axis = g->growth.axis;
    if (g->rows.cuts.end != s->was || !a->chunked || a->chain == NULL ||
        a->shape[axis] != s->length - s->was)
        return false;
    for (unsigned j = 0; j < a->rank; j++)
        if (j != axis && (a->grid.cuts[j] != NULL || a->grid.chunk[j] != t->words->chunk[j]))
            return false;
    return a->grid.cuts[axis] != NULL ? cm_job_chunks_are_whole(a, axis)
                                      : a->shape[axis] % a->grid.chunk[axis] == 0;
}

static int add_chunks(cm_rows *rows, const cm_grid *grid, unsigned axis, cm_error *err)
{
    const cm_cuts *cuts = grid->cuts[axis];
    int rc = CM_OK;
    if (cuts == NULL)
        return cm_rows_add(rows, grid->chunk[axis], grid->count[axis], err);
    for (uint64_t k = 0; rc == CM_OK && k < cuts->n; k++)
        rc = cm_rows_add(rows, cm_cuts_length(cuts, k), 1, err);
    return rc;
}

int cm_append_choose_rows(cm_job *job, cm_append_state *s, const cm_job_var *v,
                          const cm_variable *t, cm_grown *g, cm_error *err)
{
    cm_variable *files = NULL;
    uint64_t *border = NULL;
    size_t n = 0;
    int rc = cm_rows_begin(t, g->growth.axis, s->was, s->length, &g->rows, err);
    if (rc != CM_OK || !g->rows.listed || g->growth.in_place)
        return rc;
    g->growth.cuts = &g->rows.cuts;
    if (!v->view.as_strings)
        rc = cm_append_files_find(job, s, v->source, &files, err);
    if (rc == CM_OK && files != NULL && stay(s, g, t, files)) {
        g->files = files;
        return add_chunks(&g->rows, &files->array->grid, g->growth.axis, err);
    }
    if (rc == CM_OK)
        rc = find_borders(job, s, v, g, &border, &n, err);
    if (rc == CM_OK)
        rc = cm_rows_extend(&g->rows, s->length, border, n, err);
    free(border);
    return rc;
}

/* ---- the grid of a window ---- */

int cm_append_set_lengths(const cm_grown *g, uint64_t row, cm_job_var *w, cm_error *err)
{
    const unsigned axis = g->growth.axis;
    cm_zarr_meta *m = &w->doc.meta;
    cm_zarr_meta_drop_cuts(m);
    m->chunk[axis] = cm_rows_length(&g->rows, row);
    if (g->files == NULL || w->source != g->files)
        return CM_OK;
    if (cm_codecs_decode_alike(w->source->codecs, w->source->ncodecs, m->codecs, m->ncodecs))
        w->doc.pass = CM_PASS_BYTES;
    w->layout.rectilinear = cm_array_is_cut(w->source->array);
    return cm_job_set_cuts(w, m, err);
}
