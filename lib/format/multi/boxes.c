/* Reads any box of a joined variable, part after part. */
#include <string.h>

#include "format/multi/internal.h"
#include "model/copy.h"

/* Place of PART in BOX, in C order of BOX, and whether its elements are contiguous. */
static size_t place_in(const cm_box *box, const cm_box *part, size_t itemsize, int64_t *stride,
                       bool *together)
{
    size_t at = 0;
    bool outer = true;
    *together = true;
    cm_strides_c(box->rank, box->shape, itemsize, stride);
    for (unsigned j = 0; j < box->rank; j++) {
        at += (size_t)(part->start[j] - box->start[j]) * (size_t)stride[j];
        /* Once a dimension is longer than 1, all dimensions after it must be whole. */
        if (!outer && part->shape[j] != box->shape[j])
            *together = false;
        if (part->shape[j] > 1)
            outer = false;
    }
    return at;
}

static int read_part(const cm_multi_piece *p, cm_multi_scratch *scratch, const cm_box *box,
                     const cm_box *part, uint8_t *dst, cm_error *err)
{
    size_t itemsize = p->array->var->dtype.nbytes;
    int64_t to[CM_MAX_RANK], from[CM_MAX_RANK];
    bool together;
    dst += place_in(box, part, itemsize, to, &together);
    if (together)
        return cm_multi_piece_read(p, scratch, part, dst, err);
    int rc = cm_buf_resize(&scratch->box, (size_t)cm_box_nelem(part) * itemsize, err);
    if (rc == CM_OK)
        rc = cm_multi_piece_read(p, scratch, part, scratch->box.data, err);
    if (rc != CM_OK)
        return rc;
    cm_strides_c(part->rank, part->shape, itemsize, from);
    cm_copy_nd(part->rank, part->shape, itemsize, dst, to, scratch->box.data, from);
    return CM_OK;
}

/* True when neither P nor a part before it meets BOX: they are sorted by their first element. */
static bool is_before(const cm_multi_array *a, const cm_multi_part *p, const cm_box *box)
{
    const cm_multi_var *v = a->var;
    const uint64_t start = box->start[v->axis[0]];
    if (v->naxes == 1)
        return p->origin[0] + p->count[0] <= start;
    const uint64_t end = p->origin[0] + a->longest;
    return end <= start ||
           (end == start + 1 && p->origin[1] + p->count[1] <= box->start[v->axis[1]]);
}

/* The first part that may meet BOX. */
static size_t first_part(const cm_multi_array *a, const cm_box *box)
{
    const cm_multi_var *v = a->var;
    size_t lo = 0, hi = v->naxes == 0 ? 0 : v->nparts;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (is_before(a, cm_multi_part_of(a, middle), box))
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* True when no later part meets BOX. */
static bool is_past(const cm_multi_var *v, const cm_multi_part *p, const cm_box *box)
{
    const uint64_t end = v->naxes == 0 ? 0 : box->start[v->axis[0]] + box->shape[v->axis[0]];
    if (v->naxes == 0 || p->origin[0] >= end)
        return v->naxes > 0;
    return v->naxes == 2 && p->origin[0] + 1 == end &&
           p->origin[1] >= box->start[v->axis[1]] + box->shape[v->axis[1]];
}

static void read_values(const cm_multi_array *a, const cm_box *box, void *dst)
{
    const cm_multi_var *v = a->var;
    int64_t from[CM_MAX_RANK], to[CM_MAX_RANK];
    const uint8_t *src = v->values;
    size_t span = v->dtype.nbytes;
    cm_strides_c(v->rank, v->shape, v->dtype.nbytes, from);
    cm_strides_c(v->rank, box->shape, v->dtype.nbytes, to);
    for (unsigned j = 0; j < v->rank; j++) {
        src += (int64_t)box->start[j] * from[j];
        span += (size_t)(box->shape[j] - 1) * (size_t)from[j];
    }
    cm_paged_touch(a->owner->paged, src, span);
    cm_copy_nd(v->rank, box->shape, v->dtype.nbytes, dst, to, src, from);
}

/* Finds the next part from *P on that meets BOX, and their intersection; false: there is none. */
static bool next_part(const cm_multi_array *a, const cm_box *box, size_t *p, cm_box *part)
{
    const cm_multi_var *v = a->var;
    for (; *p < v->nparts && !is_past(v, cm_multi_part_of(a, *p), box); ++*p) {
        cm_box whole;
        cm_multi_part_box(a, &v->part[*p], &whole);
        if (cm_box_intersect(&whole, box, part))
            return true;
    }
    return false;
}

static bool has_holes(const cm_multi_array *a, const cm_box *box)
{
    uint64_t left = cm_box_nelem(box);
    cm_box part;
    for (size_t p = first_part(a, box); next_part(a, box, &p, &part); p++)
        left -= cm_box_nelem(&part);
    return left > 0;
}

/* Whether part P + 1 lies behind part P in its file, too, and beside it along other axes. */
static bool follows(const cm_multi_array *a, size_t p)
{
    const unsigned last = a->var->naxes - 1;
    if (a->var->naxes == 0 || p + 1 >= a->var->nparts)
        return false;
    const cm_multi_part *x = cm_multi_part_of(a, p), *y = cm_multi_part_of(a, p + 1);
    return x->file == y->file && x->first[last] + x->count[last] == y->first[last] &&
           (last == 0 || (x->origin[0] == y->origin[0] && x->count[0] == y->count[0] &&
                          x->first[0] == y->first[0]));
}

/* How many elements of the parts from *P on, which becomes the last of them, are one row of BOX. */
static uint64_t row_length(const cm_multi_array *a, const cm_box *box, unsigned along, size_t *p)
{
    cm_box part;
    uint64_t n = 0;
    for (size_t next = *p, at = next; next_part(a, box, &at, &part) && at == next; at = ++next) {
        n += part.shape[along];
        *p = next;
        if (!follows(a, next))
            break;
    }
    return n;
}

/*
 * The parts from *P on, of which PART is the first, that follow each other in one file: steps
 * between which other files have more.  They are read at once; *P becomes the last of them.
 */
static int read_row(cm_multi_array *a, cm_multi_scratch *scratch, const cm_box *box,
                    bool by_library, size_t *p, cm_box part, uint8_t *dst, cm_error *err)
{
    const unsigned along = a->var->naxes == 0 ? 0 : a->var->axis[a->var->naxes - 1];
    const size_t begin = *p, itemsize = a->var->dtype.nbytes;
    cm_multi_piece piece = cm_multi_piece_of(a, begin, by_library);
    cm_box row = part;
    int64_t to[CM_MAX_RANK], from[CM_MAX_RANK];
    bool together;
    if (!follows(a, begin))
        return read_part(&piece, scratch, box, &part, dst, err);
    row.shape[along] = row_length(a, box, along, p);
    int rc = cm_buf_resize(&scratch->box, (size_t)cm_box_nelem(&row) * itemsize, err);
    if (rc == CM_OK && cm_multi_piece_read(&piece, scratch, &row, scratch->box.data, NULL) != CM_OK)
        *p = begin; /* one by one: a message names the element by its place */
    if (rc != CM_OK || *p == begin)
        return rc != CM_OK ? rc : read_part(&piece, scratch, box, &part, dst, err);
    cm_strides_c(row.rank, row.shape, itemsize, from);
    const uint8_t *src = scratch->box.data;
    for (size_t k = begin; k <= *p && next_part(a, box, &k, &part); k++) {
        const size_t at = place_in(box, &part, itemsize, to, &together);
        cm_copy_nd(part.rank, part.shape, itemsize, dst + at, to, src, from);
        src += (int64_t)part.shape[along] * from[along];
    }
    return CM_OK;
}

static int read_parts(cm_multi_array *a, cm_multi_scratch *scratch, const cm_box *box,
                      bool by_library, uint8_t *dst, cm_error *err)
{
    const cm_multi_var *v = a->var;
    cm_box part;
    int rc = CM_OK;
    if (has_holes(a, box))
        cm_fill(dst, cm_box_nelem(box), v->dtype.nbytes, v->has_fill ? v->fill : NULL);
    for (size_t p = first_part(a, box); rc == CM_OK && next_part(a, box, &p, &part); p++)
        rc = read_row(a, scratch, box, by_library, &p, part, dst, err);
    return rc;
}

int cm_multi_read_box(cm_multi_array *a, const cm_box *box, bool by_library, void *dst,
                      cm_error *err)
{
    if (cm_box_nelem(box) == 0)
        return CM_OK;
    if (a->var->values != NULL) {
        read_values(a, box, dst);
        return CM_OK;
    }
    cm_multi_scratch *scratch = cm_multi_scratch_take(a->owner, err);
    if (scratch == NULL)
        return CM_ENOMEM;
    int rc = read_parts(a, scratch, box, by_library, dst, err);
    cm_multi_scratch_give(a->owner, scratch);
    return rc;
}

/* ---- strings ---- */

/* Index in BOX of element I of PART, in C order. */
static uint64_t index_in(const cm_box *box, const cm_box *part, uint64_t i)
{
    uint64_t index = 0, stride = 1;
    for (unsigned j = box->rank; j-- > 0;) {
        index += (part->start[j] - box->start[j] + i % part->shape[j]) * stride;
        i /= part->shape[j];
        stride *= box->shape[j];
    }
    return index;
}

static int put_strings(const cm_box *box, const cm_box *part, const cm_box *of,
                       const cm_strings *from, cm_strings *out, cm_error *err)
{
    int rc = CM_OK;
    for (uint64_t i = 0, n = cm_box_nelem(part); rc == CM_OK && i < n; i++) {
        size_t nbytes;
        const char *text = cm_strings_get(from, (size_t)index_in(of, part, i), &nbytes);
        rc = cm_strings_set(out, (size_t)index_in(box, part, i), text, nbytes, err);
    }
    return rc;
}

static int fill_strings(const cm_multi_var *v, uint64_t n, cm_strings *out, cm_error *err)
{
    int rc = CM_OK;
    const char *fill = v->fill_text;
    for (uint64_t i = 0; fill != NULL && *fill != '\0' && rc == CM_OK && i < n; i++)
        rc = cm_strings_set(out, (size_t)i, fill, strlen(fill), err);
    return rc;
}

int cm_multi_read_strings(cm_multi_array *a, const cm_box *box, bool by_library, cm_strings *out,
                          cm_error *err)
{
    const cm_multi_var *v = a->var;
    uint64_t n = cm_box_nelem(box);
    int rc = cm_strings_reset(out, (size_t)n, err);
    if (rc != CM_OK || n == 0)
        return rc;
    if (v->texts != NULL) {
        cm_box whole = {.rank = v->rank};
        memcpy(whole.shape, v->shape, v->rank * sizeof(v->shape[0]));
        return put_strings(box, box, &whole, v->texts, out, err);
    }
    if (has_holes(a, box))
        rc = fill_strings(v, n, out, err);
    cm_multi_scratch *scratch = cm_multi_scratch_take(a->owner, err);
    if (scratch == NULL)
        return CM_ENOMEM;
    cm_box part;
    cm_strings_init(&scratch->text, out->arena.max_nbytes);
    for (size_t p = first_part(a, box); rc == CM_OK && next_part(a, box, &p, &part); p++) {
        cm_multi_piece piece = cm_multi_piece_of(a, p, by_library);
        rc = cm_multi_piece_read_strings(&piece, &part, &scratch->text, err);
        if (rc == CM_OK)
            rc = put_strings(box, &part, &part, &scratch->text, out, err);
    }
    cm_strings_release(&scratch->text);
    cm_multi_scratch_give(a->owner, scratch);
    return rc;
}

/* ---- the array ---- */

int cm_multi_array_read(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    return cm_multi_read_box(cm_multi_array_of(a), box, false, dst, err);
}

static int read_strings(cm_array *a, const cm_box *box, cm_strings *out, cm_error *err)
{
    return cm_multi_read_strings(cm_multi_array_of(a), box, false, out, err);
}

const cm_multi_var *cm_multi_var_of(const cm_variable *var)
{
    const cm_array *a = var->array;
    bool joined = a != NULL && a->ops != NULL &&
                  (a->ops->read_box == cm_multi_array_read || a->ops->read_strings == read_strings);
    return joined ? cm_multi_array_of((cm_array *)(uintptr_t)a)->var : NULL;
}

void cm_multi_use_boxes(cm_multi_array *a)
{
    static const cm_array_ops boxes = {.read_box = cm_multi_array_read};
    static const cm_array_ops strings = {.read_strings = read_strings};
    a->base.ops = cm_dtype_is_vlen(&a->base.dtype) ? &strings : &boxes;
    a->base.chunked = false;
}
