/* Reading boxes of an array, however it stores them. */
#include "format/array.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "model/copy.h"

static int check_box(const cm_array *a, const cm_box *box, cm_error *err)
{
    bool inside = box->rank == a->rank;
    for (unsigned i = 0; inside && i < a->rank; i++)
        inside = box->start[i] <= a->shape[i] && box->shape[i] <= a->shape[i] - box->start[i];
    if (inside)
        return CM_OK;
    return cm_fail(err, CM_EINVAL, "array %s: a read reaches outside of it", a->name);
}

const char *cm_array_place(cm_array *a, uint64_t number)
{
    return a->ops->file_of != NULL ? a->ops->file_of(a, number) : a->place;
}

bool cm_array_is_cut(const cm_array *a)
{
    return cm_grid_is_cut(&a->grid);
}

void cm_array_chunk_place(cm_array *a, const uint64_t *coord, uint64_t *origin, uint64_t *shape)
{
    if (a->ops->place != NULL && cm_array_is_cut(a)) {
        a->ops->place(a, coord, origin, shape);
        return;
    }
    for (unsigned j = 0; j < a->rank; j++)
        origin[j] = cm_grid_first(&a->grid, j, coord[j]);
    cm_grid_chunk_shape(&a->grid, coord, shape);
}

size_t cm_array_decoded_nbytes(const cm_array *a)
{
    return cm_max_u64(cm_chain_decoded_nbytes(a->chain), a->max_decoded_nbytes);
}

size_t cm_array_decode_memory(const cm_array *a)
{
    return cm_max_u64(cm_chain_decode_memory(a->chain), a->max_decode_memory);
}

/* State kept between chunks of one read. */
typedef struct chunk_read {
    cm_array *array;
    cm_codec_ctx *ctx;
    const cm_box *box;
    uint8_t *dst;
    int64_t dst_stride[CM_MAX_RANK];
    int64_t chunk_stride[CM_MAX_RANK];
    cm_buf stored, decoded;
    const uint8_t *elements; /* of the chunk: decoded, or stored where that is the same */
} chunk_read;

static int decode(chunk_read *r, const uint64_t *coord, const cm_fetch *fetch, cm_error *err)
{
    cm_array *a = r->array;
    const cm_chain *chain = cm_array_chain(a, fetch->chain);
    size_t nbytes = cm_chain_decoded_nbytes(chain);
    r->elements = r->stored.data;
    if (cm_chain_is_raw(chain) && r->stored.nbytes == nbytes)
        return CM_OK;
    int rc = cm_buf_resize(&r->decoded, nbytes, err);
    r->elements = r->decoded.data;
    if (rc == CM_OK)
        rc = cm_chain_decode(chain, r->ctx, r->stored.data, r->stored.nbytes, fetch->skip,
                             r->decoded.data, err);
    if (rc != CM_OK) {
        const uint64_t number = cm_grid_number(&a->grid, coord);
        cm_grid_explain(&a->grid, number, "array", a->name, err);
        cm_error_place(err, cm_array_place(a, number));
    }
    return rc;
}

static int read_chunk(chunk_read *r, const uint64_t *coord, cm_error *err)
{
    cm_array *a = r->array;
    cm_box covered, part;
    uint64_t origin[CM_MAX_RANK], shape[CM_MAX_RANK];
    cm_grid_box(&a->grid, coord, &covered);
    if (!cm_box_intersect(&covered, r->box, &part))
        return CM_OK;
    size_t itemsize = a->dtype.nbytes;
    int64_t to = 0, from = 0;
    cm_array_chunk_place(a, coord, origin, shape);
    cm_strides_c(a->rank, shape, itemsize, r->chunk_stride);
    for (unsigned i = 0; i < a->rank; i++) {
        to += (int64_t)(part.start[i] - r->box->start[i]) * r->dst_stride[i];
        from += (int64_t)(part.start[i] - origin[i]) * r->chunk_stride[i];
    }
    cm_fetch fetch = {0};
    int rc = a->ops->fetch(a, cm_grid_number(&a->grid, coord), &r->stored, &fetch, err);
    if (rc != CM_OK)
        return rc;
    if (!fetch.present) {
        cm_fill_nd(a->rank, part.shape, itemsize, r->dst + to, r->dst_stride, a->fill);
        return CM_OK;
    }
    rc = decode(r, coord, &fetch, err);
    if (rc == CM_OK)
        cm_copy_nd(a->rank, part.shape, itemsize, r->dst + to, r->dst_stride, r->elements + from,
                   r->chunk_stride);
    return rc;
}

static int read_chunks(chunk_read *r, cm_error *err)
{
    cm_array *a = r->array;
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], coord[CM_MAX_RANK], left = 1;
    cm_grid_cover(&a->grid, r->box, first, count);
    for (unsigned i = 0; i < a->rank; i++) {
        coord[i] = first[i];
        left *= count[i];
    }
    for (; left > 0; left--) {
        int rc = read_chunk(r, coord, err);
        if (rc != CM_OK)
            return rc;
        for (unsigned i = a->rank; i-- > 0 && ++coord[i] == first[i] + count[i];)
            coord[i] = first[i];
    }
    return CM_OK;
}

int cm_array_read(cm_array *a, cm_codec_ctx *ctx, const cm_box *box, void *dst, cm_error *err)
{
    int rc = check_box(a, box, err);
    if (rc != CM_OK || cm_box_nelem(box) == 0)
        return rc;
    if (cm_dtype_is_vlen(&a->dtype))
        return cm_fail(err, CM_EINVAL, "array %s: its elements have no fixed size", a->name);
    if (!a->chunked)
        return a->ops->read_box(a, box, dst, err);
    chunk_read r = {.array = a, .ctx = ctx, .box = box, .dst = dst};
    if (ctx == NULL && (r.ctx = cm_codec_ctx_create(err)) == NULL)
        return CM_ENOMEM;
    cm_strides_c(a->rank, box->shape, a->dtype.nbytes, r.dst_stride);
    rc = read_chunks(&r, err);
    cm_buf_release(&r.stored);
    cm_buf_release(&r.decoded);
    if (ctx == NULL)
        cm_codec_ctx_free(r.ctx);
    return rc;
}

int cm_array_read_strings(cm_array *a, const cm_box *box, cm_strings *out, cm_error *err)
{
    int rc = check_box(a, box, err);
    if (rc != CM_OK)
        return rc;
    if (a->ops->read_strings == NULL || !cm_dtype_is_vlen(&a->dtype))
        return cm_fail(err, CM_EINVAL, "array %s: its elements have a fixed size", a->name);
    return a->ops->read_strings(a, box, out, err);
}

/* ---- several chunks, one after the other ---- */

static void release_scratch(void *state)
{
    cm_buf_release(state);
    free(state);
}

/* Fetches one stored chunk at a time; its place behind the others is known afterwards. */
static cm_buf *scratch_of(cm_fetch_many *many, cm_error *err)
{
    if (many->release_state == release_scratch)
        return many->state;
    cm_fetch_many_drop_state(many);
    many->state = cm_calloc(1, sizeof(cm_buf), err);
    many->release_state = many->state != NULL ? release_scratch : NULL;
    return many->state;
}

static int fetch_each(cm_array *a, cm_fetch_many *many, cm_error *err)
{
    cm_buf *scratch = scratch_of(many, err);
    int rc = scratch != NULL ? CM_OK : CM_ENOMEM;
    for (size_t i = 0; i < many->n && rc == CM_OK; i++) {
        cm_fetch_item *item = &many->item[i];
        cm_fetch one = {0};
        rc = a->ops->fetch(a, item->number, scratch, &one, err);
        many->io_ns += one.io_ns;
        many->nrequests += one.nrequests;
        many->nbytes += one.nbytes;
        item->present = one.present;
        item->skip = one.skip;
        item->chain = one.chain;
        item->nbytes = one.present ? scratch->nbytes : 0;
        if (rc == CM_OK && one.present)
            rc = cm_buf_append(&many->buf, scratch->data, scratch->nbytes, err);
    }
    if (rc != CM_OK)
        return rc;
    /* Set the pointers last: the buffer may move while it grows. */
    size_t at = 0;
    for (size_t i = 0; i < many->n; i++) {
        many->item[i].data = many->item[i].present ? many->buf.data + at : NULL;
        at += many->item[i].nbytes;
    }
    return CM_OK;
}

static void clear(cm_fetch_many *many)
{
    many->io_ns = many->nrequests = many->nbytes = 0;
    many->buf.nbytes = 0; /* so that growing copies nothing */
    for (size_t i = 0; i < many->n; i++)
        many->item[i].chain = NULL;
}

int cm_array_fetch_many(cm_array *a, cm_fetch_many *many, cm_error *err)
{
    clear(many);
    if (a->ops->fetch == NULL)
        return cm_fail(err, CM_EINVAL, "array %s: is not stored in chunks", a->name);
    if (a->ops->fetch_many != NULL)
        return a->ops->fetch_many(a, many, err);
    if (!many->count_only)
        return fetch_each(a, many, err);
    many->nrequests = many->n;
    return CM_OK;
}

bool cm_array_fetch_begin(cm_array *a, cm_fetch_many *many)
{
    if (a->ops->fetch_begin == NULL)
        return false;
    clear(many);
    return a->ops->fetch_begin(a, many);
}

void cm_array_fetch_unwant(cm_array *a, cm_fetch_many *many)
{
    a->ops->fetch_unwant(a, many);
}

int cm_array_fetch_end(cm_array *a, cm_fetch_many *many, cm_error *err)
{
    return a->ops->fetch_end(a, many, err);
}

void cm_fetch_many_drop_state(cm_fetch_many *many)
{
    if (many->release_state != NULL)
        many->release_state(many->state);
    many->state = NULL;
    many->release_state = NULL;
}

void cm_fetch_many_release(cm_fetch_many *many)
{
    if (many == NULL)
        return;
    cm_fetch_many_drop_state(many);
    cm_buf_release(&many->buf);
}

void cm_array_free(cm_array *a)
{
    if (a != NULL && a->ops->free != NULL)
        a->ops->free(a);
}
