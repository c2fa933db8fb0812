#include "convert/sink/growth/append_rows.h"

#include "base/number.h"

void cm_rows_release(cm_rows *rows)
{
    cm_cuts_release(&rows->cuts);
    *rows = (cm_rows){0};
}

/* ---- making ---- */

int cm_rows_add(cm_rows *rows, uint64_t length, uint64_t count, cm_error *err)
{
    int rc = cm_cuts_add(&rows->cuts, length, count, err);
    rows->n = rows->cuts.n;
    return rc;
}

/* Chunks of the store, the last one whole: a document may list more, of which there are none. */
static int list_old(const cm_zarr_meta *meta, unsigned axis, uint64_t was, cm_rows *out,
                    cm_error *err)
{
    const cm_cuts *cuts = meta->cuts[axis];
    int rc = CM_OK;
    if (was == 0)
        return CM_OK;
    if (cuts == NULL)
        return cm_rows_add(out, meta->chunk[axis], cm_div_ceil(was, meta->chunk[axis]), err);
    for (size_t i = 0; rc == CM_OK && i < cuts->nruns; i++) {
        const cm_cut_run *r = &cuts->run[i];
        const uint64_t behind = i + 1 < cuts->nruns ? cuts->run[i + 1].number : cuts->n;
        rc = cm_rows_add(out, r->length, behind - r->number, err);
    }
    return rc;
}

int cm_rows_begin(const cm_variable *t, unsigned axis, uint64_t was, uint64_t length, cm_rows *out,
                  cm_error *err)
{
    int rc = CM_OK;
    *out = (cm_rows){.chunk = t->words->chunk[axis], .listed = cm_zarr_meta_lists(t->words, axis)};
    if (out->listed)
        rc = list_old(t->words, axis, was, out, err);
    else
        out->n = cm_div_ceil(length, out->chunk);
    out->nbefore = out->listed ? out->n : cm_div_ceil(was, out->chunk);
    return rc;
}

int cm_rows_extend(cm_rows *rows, uint64_t end, const uint64_t *border, size_t n, cm_error *err)
{
    const uint64_t longest = rows->chunk;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i <= n; i++) {
        const uint64_t at = rows->cuts.end, stop = i < n && border[i] < end ? border[i] : end;
        if (stop <= at)
            continue;
        /* The longest month may come after the others. */
        const uint64_t most = stop - at > 2 * longest ? longest : stop - at;
        const uint64_t whole = (stop - at) / most, rest = (stop - at) % most;
        rc = cm_rows_add(rows, most, whole, err);
        if (rc == CM_OK && rest > 0)
            rc = cm_rows_add(rows, rest, 1, err);
    }
    return rc;
}

/* ---- asking ---- */

uint64_t cm_rows_find(const cm_rows *rows, uint64_t element)
{
    return rows->listed ? cm_cuts_find(&rows->cuts, element) : element / rows->chunk;
}

uint64_t cm_rows_first(const cm_rows *rows, uint64_t k)
{
    if (!rows->listed)
        return k * rows->chunk;
    return k < rows->n ? cm_cuts_first(&rows->cuts, k) : rows->cuts.end;
}

uint64_t cm_rows_length(const cm_rows *rows, uint64_t k)
{
    return rows->listed ? cm_cuts_length(&rows->cuts, k) : rows->chunk;
}

uint64_t cm_rows_alike(const cm_rows *rows, uint64_t k, uint64_t end)
{
    const uint64_t length = rows->listed ? cm_rows_length(rows, k) : 0;
    if (!rows->listed)
        return end;
    while (k < end && cm_rows_length(rows, k) == length)
        k++;
    return k;
}
