/*
 * Decides how a joined variable is read: chunks passed through, slices of uncompressed files, or
 * boxes made of pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "format/multi/grow.h"
#include "format/multi/internal.h"

enum {
    PIECE_NBYTES = 1 << 20,        /* for variables that are not chunked */
    LEAST_GROWN_NBYTES = 8 << 20,  /* target size of a piece where files are chunked differently, */
    MOST_GROWN_NBYTES = 256 << 20, /* limited by the memory: */
    SHARE_OF_MEMORY = 8            /* of all threads */
};

/* ---- properties of the files ---- */

/* The chunk length of part P along dimension J of the variable; 0: there are no chunks. */
static uint64_t chunk_along(const cm_multi_array *a, size_t p, unsigned j)
{
    const cm_form *form = cm_multi_form_of(a, p)->form;
    unsigned dim, rank;
    const cm_multi_part *part = cm_multi_part_of(a, p);
    if (!cm_multi_dim_in(a, part, j, &dim, &rank))
        return 1;
    const uint64_t chunk =
        form->kind == CM_LOCATED_CHUNKS || form->kind == CM_LOCATED_NOT ? form->chunk[dim] : 0;
    /* A chunk of whole texts still holds whole texts when they are padded. */
    const bool pads = part->how != NULL && part->how->pads && j + 1 == a->var->rank;
    return pads && chunk >= part->how->width && chunk > 0 ? a->var->shape[j] : chunk;
}

static bool is_axis(const cm_multi_var *v, unsigned j)
{
    for (unsigned i = 0; i < v->naxes; i++)
        if (v->axis[i] == j)
            return true;
    return false;
}

/* True when the part's and the variable's unwritten elements have the same value. */
static bool same_fill(const cm_multi_array *a, const cm_form *form)
{
    const cm_multi_var *v = a->var;
    return form->has_fill == v->has_fill &&
           (!v->has_fill || memcmp(form->fill, v->fill, v->dtype.nbytes) == 0);
}

static bool has_absent(const cm_multi_array *a, const cm_located *l)
{
    cm_paged_touch(a->owner->paged, l->place, l->nplaces * sizeof(l->place[0]));
    if (l->form->kind == CM_LOCATED_UNWRITTEN)
        return true;
    for (uint64_t i = 0; i < l->nplaces; i++)
        if (l->place[i].nbytes == 0)
            return true;
    return false;
}

/* The first part with chunks that can be decoded here; nparts: none. */
static size_t first_chunked(const cm_multi_array *a)
{
    size_t p = 0;
    while (p < a->var->nparts && cm_multi_form_of(a, p)->chain == NULL)
        p++;
    return p;
}

/* True when chunks of all parts fit one grid, apart from cuts along the joined axes. */
static bool goes_by_chunks(const cm_multi_array *a)
{
    const cm_multi_var *v = a->var;
    size_t model = first_chunked(a);
    if (model == v->nparts)
        return false;
    for (size_t p = 0; p < v->nparts; p++) {
        const cm_multi_form *f = cm_multi_form_of(a, p);
        bool unwritten = f->form->kind == CM_LOCATED_UNWRITTEN;
        if (cm_multi_converts(a, cm_multi_part_of(a, p)) || (f->chain == NULL && !unwritten))
            return false;
        for (unsigned j = 0; !unwritten && j < v->rank; j++)
            if (!is_axis(v, j) && chunk_along(a, p, j) != chunk_along(a, model, j))
                return false;
        if (!same_fill(a, f->form) && has_absent(a, cm_multi_located(a, p)))
            return false;
    }
    return true;
}

static bool goes_by_slices(const cm_multi_array *a)
{
    for (size_t p = 0; p < a->var->nparts; p++) {
        cm_located_kind kind = cm_multi_form_of(a, p)->form->kind;
        if (kind != CM_LOCATED_SLAB && kind != CM_LOCATED_UNWRITTEN)
            return false;
    }
    return true;
}

/* ---- the grid ---- */

/* The chunk length that covers most of the axis: the store takes it where chunking is kept. */
static uint64_t usual_chunk(const cm_multi_array *a, const cm_multi_axis *axis)
{
    uint64_t most = 0, found = 0;
    for (uint64_t i = 0; i < axis->nrows; i++) {
        const cm_multi_row *r = cm_multi_row_at(a, axis, i);
        uint64_t chunk = r->chunk, n = 0;
        if (r->hole || chunk == found)
            continue;
        for (uint64_t k = 0; k < axis->nrows && k < 4096; k++) {
            const cm_multi_row *other = cm_multi_row_at(a, axis, k);
            n += !other->hole && other->chunk == chunk ? other->count : 0;
        }
        if (n > most) {
            most = n;
            found = chunk;
        }
        if (i >= 64)
            break;
    }
    return found > 0 ? found : 1;
}

/* Sets the chunk length of each row's files; false if the files of one row differ. */
static bool set_row_chunks(cm_multi_array *a, unsigned i, uint64_t otherwise)
{
    const cm_multi_var *v = a->var;
    cm_multi_axis *axis = &a->axis[i];
    size_t across = v->naxes > 1 ? (size_t)a->axis[1].nrows : 1;
    size_t n = (v->naxes > 0 ? (size_t)a->axis[0].nrows : 1) * across;
    bool alike = true;
    for (uint64_t k = 0; k < axis->nrows; k++)
        cm_multi_row_at(a, axis, k)->chunk = 0;
    for (size_t at = 0; at < n; at++) {
        cm_multi_row *r = cm_multi_row_at(a, axis, i == 0 ? at / across : at % across);
        size_t p = cm_multi_part_at_rows(a, at);
        if (p-- == 0)
            continue;
        if (cm_multi_form_of(a, p)->form->kind == CM_LOCATED_UNWRITTEN)
            continue;
        uint64_t chunk = chunk_along(a, p, v->axis[i]);
        chunk = chunk == 0 ? otherwise : chunk;
        alike = alike && (r->chunk == 0 || r->chunk == chunk);
        r->chunk = chunk;
    }
    uint64_t usual = usual_chunk(a, axis);
    for (uint64_t k = 0; k < axis->nrows; k++) {
        cm_multi_row *r = cm_multi_row_at(a, axis, k);
        r->chunk = r->chunk == 0 ? usual : r->chunk;
    }
    return alike;
}

/* Makes the array's grid from CHUNK and the cuts of its axes. */
static int make_grid(cm_multi_array *a, const uint64_t *chunk, cm_error *err)
{
    const cm_multi_var *v = a->var;
    cm_grid *grid = &a->base.grid;
    uint64_t length[CM_MAX_RANK];
    const cm_cuts *cuts[CM_MAX_RANK] = {NULL};
    memcpy(length, chunk, sizeof(length));
    for (unsigned i = 0; i < v->naxes; i++) {
        const cm_multi_axis *axis = &a->axis[i];
        if (axis->cuts.n > 0)
            cuts[v->axis[i]] = &axis->cuts;
        else if (axis->nrows > 0)
            length[v->axis[i]] = axis->row[0].chunk;
    }
    int rc = cm_grid_init_cut(grid, v->rank, v->shape, length, cuts, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "variable %s", v->name);
    return rc;
}

static int one_chunk(cm_multi_array *a, cm_error *err)
{
    const cm_multi_var *v = a->var;
    uint64_t chunk[CM_MAX_RANK];
    for (unsigned j = 0; j < v->rank; j++)
        chunk[j] = v->shape[j] > 0 ? v->shape[j] : 1;
    return cm_grid_init(&a->base.grid, v->rank, v->shape, chunk, err);
}

/* ---- chunks ---- */

/* Finds the maximum memory over all chunks. */
static void find_most(cm_multi_array *a)
{
    cm_array *base = &a->base;
    for (unsigned i = 0; i < a->nforms; i++) {
        const cm_chain *chain = a->form[i].chain;
        if (chain == NULL)
            continue;
        size_t decoded = cm_chain_decoded_nbytes(chain), memory = cm_chain_decode_memory(chain);
        if (decoded > base->max_decoded_nbytes)
            base->max_decoded_nbytes = decoded;
        if (memory > base->max_decode_memory)
            base->max_decode_memory = memory;
    }
}

static int use_chunks(cm_multi_array *a, cm_error *err)
{
    const cm_multi_var *v = a->var;
    size_t model = first_chunked(a);
    int rc = CM_OK;
    for (unsigned j = 0; j < v->rank; j++)
        a->source_chunk[j] = chunk_along(a, model, j);
    for (unsigned i = 0; rc == CM_OK && i < v->naxes; i++) {
        rc = cm_multi_rows_cut(a, i, err);
        a->source_chunk[v->axis[i]] = usual_chunk(a, &a->axis[i]);
    }
    if (rc == CM_OK)
        rc = make_grid(a, a->source_chunk, err);
    if (rc != CM_OK)
        return rc;
    a->has_source_chunks = true;
    a->base.chain = cm_multi_form_of(a, model)->chain;
    a->access = cm_array_is_cut(&a->base) ? "chunks of many files, of several lengths"
                                          : "chunks of many files, read at their addresses";
    find_most(a);
    cm_multi_use_chunks(a);
    return CM_OK;
}

/* ---- boxes ---- */

static uint64_t longest_along(const cm_multi_array *a, unsigned j)
{
    uint64_t most = 1;
    for (size_t p = 0; p < a->var->nparts; p++) {
        uint64_t chunk = chunk_along(a, p, j);
        most = chunk > most ? chunk : most;
    }
    return most < a->var->shape[j] ? most : a->var->shape[j];
}

/* Grows pieces within the memory. */
static void grow_pieces(const cm_multi_array *a, uint64_t *chunk)
{
    const cm_multi_var *v = a->var;
    uint64_t longest[CM_MAX_RANK];
    bool joined[CM_MAX_RANK];
    uint64_t most = cm_memory_available() / SHARE_OF_MEMORY / (cm_cpu_count() + 1);
    most = most < LEAST_GROWN_NBYTES  ? LEAST_GROWN_NBYTES
           : most > MOST_GROWN_NBYTES ? MOST_GROWN_NBYTES
                                      : most;
    for (unsigned j = 0; j < v->rank; j++) {
        joined[j] = is_axis(v, j);
        longest[j] = longest_along(a, j);
    }
    cm_multi_pieces_grow(v->rank, joined, longest, v->dtype.nbytes, most, chunk);
}

/* Chunks of the first chunked part, limited to a size that fits memory. */
static void choose_pieces(cm_multi_array *a, uint64_t *chunk)
{
    const cm_multi_var *v = a->var;
    uint64_t room = PIECE_NBYTES / (v->dtype.nbytes > 0 ? v->dtype.nbytes : 1);
    size_t model = 0;
    while (model < v->nparts && v->rank > 0 && chunk_along(a, model, 0) == 0)
        model++;
    a->has_source_chunks = v->rank > 0 && model < v->nparts;
    for (unsigned j = v->rank; j-- > 0;) {
        chunk[j] = a->has_source_chunks ? chunk_along(a, model, j) : 0;
        if (chunk[j] == 0)
            chunk[j] = v->shape[j] < room ? v->shape[j] : room;
        chunk[j] = chunk[j] == 0 ? 1 : chunk[j];
        room = room / chunk[j] > 0 ? room / chunk[j] : 1;
    }
    memcpy(a->source_chunk, chunk, v->rank * sizeof(chunk[0]));
    if (a->has_source_chunks)
        grow_pieces(a, chunk);
}

/*
 * Memory for reading one piece: the largest chunk of any file, and the piece as the file has it, in
 * the variable's order, before texts are padded, and in its box.
 */
static size_t piece_nbytes(const cm_multi_array *a)
{
    size_t most = 0, itemsize = a->var->dtype.nbytes;
    for (unsigned i = 0; i < a->nforms; i++) {
        const cm_chain *chain = a->form[i].chain;
        size_t n = chain == NULL ? 0
                                 : cm_chain_decoded_nbytes(chain) + cm_chain_decode_memory(chain) +
                                       cm_chain_encoded_bound(chain);
        most = n > most ? n : most;
        if (a->form[i].form->dtype.nbytes > itemsize)
            itemsize = a->form[i].form->dtype.nbytes;
    }
    return most + (a->var->is_char ? 4u : 3u) * (size_t)a->base.grid.chunk_nelem * itemsize;
}

static int use_boxes(cm_multi_array *a, bool is_grid, cm_error *err)
{
    const cm_multi_var *v = a->var;
    uint64_t chunk[CM_MAX_RANK];
    int rc = CM_OK;
    choose_pieces(a, chunk);
    for (unsigned i = 0; is_grid && rc == CM_OK && i < v->naxes; i++) {
        set_row_chunks(a, i, chunk[v->axis[i]]);
        rc = cm_multi_rows_cut(a, i, err);
        a->source_chunk[v->axis[i]] = usual_chunk(a, &a->axis[i]);
    }
    for (unsigned i = 0; !is_grid && i < v->naxes; i++)
        cm_multi_rows_release(&a->axis[i]);
    if (rc == CM_OK)
        rc = make_grid(a, chunk, err);
    a->access = a->all_located ? "pieces of many files, made alike" : "read through netCDF-C";
    a->base.serial = !a->all_located;
    a->base.box_nbytes = piece_nbytes(a);
    cm_multi_use_boxes(a);
    return rc;
}

static int use_slices(cm_multi_array *a, cm_error *err)
{
    a->access = "read at computed offsets of many files";
    cm_multi_use_boxes(a);
    /* For parts that leave gaps in the box, or are converted. */
    a->base.box_nbytes = (a->var->is_char ? 3u : 2u) * (size_t)PIECE_NBYTES;
    return one_chunk(a, err);
}

/* ---- all ---- */

static void sum_up(cm_multi_array *a)
{
    const cm_multi_var *v = a->var;
    a->all_located = true;
    for (size_t p = 0; p < v->nparts; p++) {
        const cm_located *l = cm_multi_located(a, p);
        const cm_multi_form *f = cm_multi_form_of(a, p);
        const cm_multi_part *part = cm_multi_part_of(a, p);
        const cm_multi_file *file = cm_multi_file_at(a->owner->spec, part->file);
        uint64_t file_nbytes = file->nbytes;
        cm_paged_touch(a->owner->paged, l->place, l->nplaces * sizeof(l->place[0]));
        a->all_located =
            a->all_located &&
            (file->open != NULL || (f->form->kind != CM_LOCATED_NOT &&
                                    (f->form->kind != CM_LOCATED_CHUNKS || f->chain != NULL)));
        for (uint64_t i = 0; i < l->nplaces; i++) {
            /* A longer chunk exceeds the file; fetching it will fail. */
            uint64_t n = l->place[i].nbytes < file_nbytes ? l->place[i].nbytes : file_nbytes;
            a->stored_nbytes += n;
            if (n > a->base.max_stored_nbytes)
                a->base.max_stored_nbytes = (size_t)n;
        }
        if (f->form->kind == CM_LOCATED_SLAB) {
            cm_box box;
            cm_multi_part_box(a, part, &box);
            if (v->rank > 0 && part->how != NULL && part->how->pads)
                box.shape[v->rank - 1] = part->how->width;
            a->stored_nbytes += cm_box_nelem(&box) * f->form->dtype.nbytes;
        }
    }
}

static int use_parts(cm_multi_array *a, cm_error *err)
{
    const cm_multi_var *v = a->var;
    bool is_grid, alike = true;
    int rc = cm_multi_locate(a, err);
    if (rc == CM_OK)
        rc = cm_multi_rows_make(a, &is_grid, err);
    if (rc != CM_OK)
        return rc;
    if (!is_grid && v->naxes < 2)
        return cm_fail(err, CM_EINVAL, "variable %s: its parts overlap", v->name);
    sum_up(a);
    for (unsigned i = 0; is_grid && i < v->naxes; i++)
        alike = set_row_chunks(a, i, 1) && alike;
    if (is_grid && alike && v->nparts > 0 && goes_by_chunks(a))
        return use_chunks(a, err);
    return goes_by_slices(a) ? use_slices(a, err) : use_boxes(a, is_grid, err);
}

static int use_memory(cm_multi_array *a, cm_error *err)
{
    a->access = "held in memory";
    a->all_located = true;
    a->stored_nbytes = a->var->dtype.nbytes; /* an estimate that is not 0: something is stored */
    for (unsigned j = 0; j < a->var->rank; j++)
        a->stored_nbytes *= a->var->shape[j];
    cm_multi_use_boxes(a);
    return one_chunk(a, err);
}

static uint64_t longest_part(const cm_multi_array *a)
{
    uint64_t longest = 0;
    for (size_t p = 0; a->var->naxes == 2 && p < a->var->nparts; p++) {
        const uint64_t count = cm_multi_part_of(a, p)->count[0];
        longest = count > longest ? count : longest;
    }
    return longest;
}

int cm_multi_array_prepare(cm_multi_array *a, cm_error *err)
{
    const cm_multi_var *v = a->var;
    int rc;
    if (a->prepared)
        return CM_OK;
    if (v->unsupported != NULL)
        return cm_fail(err, CM_EUNSUPPORTED, "variable %s: %s is not convertible", v->name,
                       v->unsupported);
    a->longest = longest_part(a);
    if (v->values != NULL || v->texts != NULL) {
        rc = use_memory(a, err);
    } else if (cm_dtype_is_vlen(&v->dtype)) {
        a->access = "read through netCDF-C";
        a->base.serial = true;
        cm_multi_use_boxes(a);
        rc = one_chunk(a, err);
    } else {
        rc = use_parts(a, err);
    }
    a->prepared = rc == CM_OK;
    return rc;
}

void cm_multi_array_release(cm_multi_array *a)
{
    for (unsigned i = 0; i < CM_MULTI_MAX_AXES; i++)
        cm_multi_rows_release(&a->axis[i]);
    cm_multi_locate_release(a);
    free(a->base.fill);
    free(a->base.fill_text);
}
