#include "convert/sink/icechunk/refer_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/layout/refer.h"

/* ---- boxes ---- */

static uint64_t number_of(const cm_refer_places *p, const uint64_t *coord)
{
    uint64_t number = 0;
    for (unsigned j = 0; j < p->v->view.rank; j++)
        number = number * p->shape[j] + coord[j];
    return number;
}

static void set_box(const cm_refer_places *p, const cm_refer_part *part, cm_refer_box *out)
{
    const uint64_t *chunk = p->v->layout.chunk;
    uint64_t last[CM_MAX_RANK];
    out->part = part;
    for (unsigned j = 0; j < p->v->view.rank; j++) {
        out->first[j] = part->origin[j] / chunk[j];
        out->count[j] = cm_div_ceil(part->count[j], chunk[j]);
        last[j] = out->first[j] + out->count[j] - 1;
    }
    out->low = number_of(p, out->first);
    out->high = number_of(p, last);
}

static bool is_empty(const cm_job_var *v, const cm_refer_part *part)
{
    bool empty = part->located->form->kind == CM_LOCATED_UNWRITTEN;
    for (unsigned j = 0; j < v->view.rank; j++)
        empty |= part->count[j] == 0;
    return empty;
}

static int by_low(const void *a, const void *b)
{
    const cm_refer_box *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

int cm_refer_places_create(const cm_job_var *v, const cm_refer_urls *urls, cm_refer_places *out,
                           cm_error *err)
{
    const cm_refer *r = v->layout.refer;
    uint64_t reach = 0;
    *out = (cm_refer_places){.v = v, .urls = urls};
    if ((out->box = cm_calloc(r->nparts + 1, sizeof(out->box[0]), err)) == NULL)
        return CM_ENOMEM;
    for (unsigned j = 0; j < v->view.rank; j++)
        out->shape[j] = cm_div_ceil(v->view.shape[j], v->layout.chunk[j]);
    for (size_t i = 0; i < r->nparts; i++)
        if (!is_empty(v, &r->part[i]))
            set_box(out, &r->part[i], &out->box[out->nboxes++]);
    qsort(out->box, out->nboxes, sizeof(out->box[0]), by_low);
    for (size_t i = 0; i < out->nboxes; i++)
        out->box[i].reach = reach = out->box[i].high > reach ? out->box[i].high : reach;
    return CM_OK;
}

void cm_refer_places_release(cm_refer_places *p)
{
    free(p->box);
    *p = (cm_refer_places){0};
}

/* ---- one box ---- */

/*
 * COORD becomes that of the first chunk in B whose number is not below that of COORD; false: there
 * is none.
 */
static bool enter(const cm_refer_box *b, unsigned rank, uint64_t *coord)
{
    for (unsigned j = 0; j < rank; j++) {
        const uint64_t end = b->first[j] + b->count[j];
        if (coord[j] >= b->first[j] && coord[j] < end)
            continue;
        unsigned from = j;
        if (coord[j] >= end) { /* one more in a dimension before */
            while (from > 0 && ++coord[from - 1] == b->first[from - 1] + b->count[from - 1])
                from--;
            if (from == 0)
                return false;
        }
        for (unsigned k = from; k < rank; k++)
            coord[k] = b->first[k];
        return true;
    }
    return true;
}

/* The next chunk of B; false: there is none. */
static bool advance(const cm_refer_box *b, unsigned rank, uint64_t *coord)
{
    for (unsigned j = rank; j-- > 0;) {
        if (++coord[j] < b->first[j] + b->count[j])
            return true;
        coord[j] = b->first[j];
    }
    return false;
}

/* The number of chunk COORD in the grid of the part's file. */
static uint64_t number_in_file(const cm_refer_places *p, const cm_refer_box *b,
                               const uint64_t *coord)
{
    const uint64_t *chunk = p->v->layout.chunk;
    uint64_t number = 0;
    for (unsigned j = 0; j < p->v->view.rank; j++)
        number = number * cm_div_ceil(b->part->length[j], chunk[j]) + b->part->first[j] / chunk[j] +
                 coord[j] - b->first[j];
    return number;
}

static void set_chunk(const cm_refer_places *p, const cm_refer_box *b, const uint64_t *coord,
                      uint64_t in_file, uint32_t location, cm_ice_place *out)
{
    const cm_located *l = b->part->located;
    *out = (cm_ice_place){.where = CM_ICE_OUTSIDE, .location = location};
    if (l->form->kind == CM_LOCATED_CHUNKS) {
        out->offset = l->place[in_file].address;
        out->nbytes = l->place[in_file].nbytes;
        if (out->nbytes == 0)
            out->where = CM_ICE_NOWHERE;
        return;
    }
    out->nbytes = p->v->view.type.nbytes;
    for (unsigned j = 0; j < p->v->view.rank; j++)
        out->nbytes *= p->v->layout.chunk[j];
    out->offset = l->begin;
    if (p->v->view.rank > 0)
        out->offset +=
            (b->part->first[0] + (coord[0] - b->first[0]) * p->v->layout.chunk[0]) * l->row_stride;
}

/* The chunks of B among the N from number FIRST on. */
static void fill_box(const cm_refer_places *p, const cm_refer_box *b, uint64_t first, size_t n,
                     uint32_t location, cm_ice_place *out)
{
    const unsigned rank = p->v->view.rank, last = rank > 0 ? rank - 1 : 0;
    uint64_t coord[CM_MAX_RANK], at = first, number = 0, in_file = 0;
    for (unsigned j = rank; j-- > 0;) {
        coord[j] = at % p->shape[j];
        at /= p->shape[j];
    }
    bool more = enter(b, rank, coord), fresh = true;
    while (more) {
        /* Along the last dimension both numbers go up by one. */
        number = fresh ? number_of(p, coord) : number + 1;
        in_file = fresh ? number_in_file(p, b, coord) : in_file + 1;
        if (number >= first + n)
            return;
        set_chunk(p, b, coord, in_file, location, &out[number - first]);
        const uint64_t was = rank > 0 ? coord[last] : 0;
        more = advance(b, rank, coord);
        fresh = rank == 0 || coord[last] != was + 1;
    }
}

/* ---- as places ---- */

/* The first box that may reach number FIRST. */
static size_t first_box(const cm_refer_places *p, uint64_t first)
{
    size_t low = 0, high = p->nboxes;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (p->box[middle].reach < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The places of chunks that lie in no box. */
static void set_rest(const cm_refer_places *p, uint64_t first, size_t n, cm_ice_place *out)
{
    uint64_t behind = 1; /* chunks with one index of AXIS that lie in a row */
    for (unsigned j = p->axis + 1; j < p->v->view.rank; j++)
        behind *= p->shape[j];
    for (size_t i = 0; i < n;) {
        const uint64_t row = p->nkept > 0 ? (first + i) / behind : 0;
        const size_t end = p->nkept > 0 && (row + 1) * behind - first < n
                               ? (size_t)((row + 1) * behind - first)
                               : n;
        const bool kept = p->nkept > 0 && row % p->shape[p->axis] < p->nkept;
        for (; i < end; i++)
            out[i].where = kept ? CM_ICE_KEPT : CM_ICE_NOWHERE;
    }
}

static int find(void *context, uint64_t first, size_t n, cm_ice_place *out, cm_error *err)
{
    const cm_refer_places *p = context;
    int rc = CM_OK;
    set_rest(p, first, n, out);
    for (size_t i = first_box(p, first); rc == CM_OK && i < p->nboxes && p->box[i].low < first + n;
         i++) {
        uint32_t location = 0;
        if (p->box[i].high < first)
            continue;
        rc = cm_refer_urls_find(p->urls, p->box[i].part->path, &location, err);
        if (rc == CM_OK)
            fill_box(p, &p->box[i], first, n, location, out);
    }
    return rc;
}

static int locate(void *context, uint32_t number, cm_ice_location *out, cm_error *err)
{
    const cm_refer_places *p = context;
    (void)err;
    *out = (cm_ice_location){.url = p->urls->item[number].url,
                             .modified_s = p->urls->item[number].modified_s};
    return CM_OK;
}

void cm_refer_places_get(cm_refer_places *p, cm_ice_places *out)
{
    *out = (cm_ice_places){.rank = p->v->view.rank, .find = find, .locate = locate, .context = p};
    memcpy(out->shape, p->shape, sizeof(p->shape));
}
