/*
 * A joined variable whose stored chunks are passed through: maps a chunk number to file and
 * address.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "format/merge.h"
#include "format/multi/internal.h"

/* The chunk of a file behind one chunk of the joined array. */
typedef struct spot {
    size_t part;     /* SIZE_MAX: a hole */
    uint64_t number; /* in the file's own grid */
} spot;

static const cm_multi_row *row_along(const cm_multi_array *a, unsigned i, const uint64_t *coord)
{
    return cm_multi_row_of_piece(a, i, coord[a->var->axis[i]]);
}

/* Piece K of the row, as a chunk index in the row's files. */
static uint64_t chunk_in_file(const cm_multi_row *r, uint64_t k)
{
    return r->first / r->chunk + (k - r->piece);
}

static spot find(const cm_multi_array *a, const uint64_t *coord)
{
    const cm_multi_var *v = a->var;
    uint64_t count[CM_MAX_RANK], at[CM_MAX_RANK];
    size_t place = 0;
    memcpy(count, a->base.grid.count, sizeof(count));
    memcpy(at, coord, v->rank * sizeof(at[0]));
    for (unsigned i = 0; i < v->naxes; i++) {
        unsigned j = v->axis[i];
        const cm_multi_row *r = row_along(a, i, coord);
        place = place * (i > 0 ? (size_t)a->axis[i].nrows : 1) + (size_t)(r - a->axis[i].row);
        if (r->hole)
            return (spot){.part = SIZE_MAX};
        count[j] = cm_div_ceil(r->length, r->chunk);
        at[j] = chunk_in_file(r, coord[j]);
    }
    spot s = {.part = cm_multi_part_at_rows(a, place) - 1};
    for (unsigned j = 0; j < v->rank; j++)
        s.number = s.number * count[j] + at[j];
    return s;
}

static spot find_number(const cm_multi_array *a, uint64_t number)
{
    uint64_t coord[CM_MAX_RANK];
    cm_grid_coord(&a->base.grid, number, coord);
    return find(a, coord);
}

/* NULL: not stored. */
static const cm_chunk_place *place_of(const cm_multi_array *a, const spot *s)
{
    if (s->part == SIZE_MAX)
        return NULL;
    const cm_located *l = cm_multi_located(a, s->part);
    if (l->place == NULL || s->number >= l->nplaces)
        return NULL;
    const cm_chunk_place *place = &l->place[s->number];
    cm_paged_touch(a->owner->paged, place, sizeof(*place));
    return place->nbytes > 0 ? place : NULL;
}

/* NULL: the array's own. */
static const cm_chain *chain_of(const cm_multi_array *a, size_t part)
{
    const cm_chain *chain = cm_multi_form_of(a, part)->chain;
    return chain == a->base.chain ? NULL : chain;
}

static int fetch(cm_array *array, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    cm_multi_array *a = cm_multi_array_of(array);
    spot s = find_number(a, number);
    *out = (cm_fetch){0};
    if (place_of(a, &s) == NULL)
        return CM_OK;
    int rc = cm_multi_fetch(a, cm_multi_part_of(a, s.part), cm_multi_located(a, s.part), s.number,
                            buf, out, err);
    out->chain = chain_of(a, s.part);
    return rc;
}

static bool is_absent(cm_array *array, uint64_t number)
{
    cm_multi_array *a = cm_multi_array_of(array);
    spot s = find_number(a, number);
    return place_of(a, &s) == NULL;
}

static const char *file_of(cm_array *array, uint64_t number)
{
    cm_multi_array *a = cm_multi_array_of(array);
    spot s = find_number(a, number);
    return s.part == SIZE_MAX
               ? NULL
               : cm_multi_file_at(a->owner->spec, cm_multi_part_of(a, s.part)->file)->path;
}

static void place(cm_array *array, const uint64_t *coord, uint64_t *origin, uint64_t *shape)
{
    cm_multi_array *a = cm_multi_array_of(array);
    for (unsigned j = 0; j < array->rank; j++) {
        origin[j] = coord[j] * array->grid.chunk[j];
        shape[j] = array->grid.chunk[j];
    }
    for (unsigned i = 0; i < a->var->naxes; i++) {
        unsigned j = a->var->axis[i];
        const cm_multi_row *r = row_along(a, i, coord);
        if (array->grid.cuts[j] == NULL)
            continue;
        origin[j] = r->origin + chunk_in_file(r, coord[j]) * r->chunk - r->first;
        shape[j] = r->chunk;
    }
}

/* ---- several at once ---- */

/* Finds the places of the items, sorted by file and offset; `local` is the part. */
static size_t find_pieces(const cm_multi_array *a, cm_fetch_many *many, cm_piece *piece)
{
    size_t n = 0;
    for (size_t i = 0; i < many->n; i++) {
        cm_fetch_item *item = &many->item[i];
        *item = (cm_fetch_item){.number = item->number};
        spot s = find_number(a, item->number);
        const cm_chunk_place *at = place_of(a, &s);
        if (at == NULL)
            continue;
        item->skip = at->mask;
        item->chain = chain_of(a, s.part);
        piece[n++] = (cm_piece){.object = cm_multi_part_of(a, s.part)->file,
                                .offset = at->address,
                                .nbytes = at->nbytes,
                                .item = i,
                                .local = s.part};
    }
    cm_pieces_sort(piece, n);
    return n;
}

/* Assigns each piece its place in the buffer, after checking that it lies inside its file. */
static int place_pieces(const cm_multi_array *a, cm_fetch_many *many, cm_piece *piece, size_t n,
                        cm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const cm_multi_file *f = cm_multi_file_at(a->owner->spec, piece[i].object);
        if (piece[i].offset > f->nbytes || piece[i].nbytes > f->nbytes - piece[i].offset)
            return cm_fail(err, CM_EFORMAT, "the address of a chunk is past the end of the file");
    }
    return cm_buf_resize(&many->buf, cm_pieces_place(piece, n), err);
}

static int read_files(const cm_multi_array *a, cm_fetch_many *many, cm_piece *piece, size_t n,
                      cm_error *err)
{
    int rc = place_pieces(a, many, piece, n, err);
    for (size_t i = 0, count; i < n && rc == CM_OK; i += count) {
        uint32_t file = (uint32_t)piece[i].object;
        cm_source source;
        for (count = 1; i + count < n && piece[i + count].object == piece[i].object;)
            count++;
        rc = cm_multi_files_take(a->owner->files, file, &source, err);
        if (rc != CM_OK)
            break;
        rc = cm_source_read_pieces(&source, many, piece + i, count, err);
        cm_multi_files_give(a->owner->files, file);
    }
    return rc;
}

static int fetch_many(cm_array *array, cm_fetch_many *many, cm_error *err)
{
    cm_multi_array *a = cm_multi_array_of(array);
    cm_piece *piece = cm_pieces_room(many, err);
    if (piece == NULL)
        return CM_ENOMEM;
    uint64_t start = cm_now_ns();
    size_t n = find_pieces(a, many, piece);
    if (many->count_only) {
        cm_pieces_count(piece, n, many);
        return CM_OK;
    }
    int rc = read_files(a, many, piece, n, err);
    many->io_ns = cm_now_ns() - start;
    if (rc != CM_OK)
        return cm_fetch_blame(array, many, rc, err);
    cm_pieces_point(piece, n, many);
    return CM_OK;
}

void cm_multi_use_chunks(cm_multi_array *a)
{
    static const cm_array_ops ops = {.fetch = fetch,
                                     .fetch_many = fetch_many,
                                     .is_absent = is_absent,
                                     .read_box = cm_multi_array_read,
                                     .place = place,
                                     .file_of = file_of};
    a->base.ops = &ops;
    a->base.chunked = true;
}
