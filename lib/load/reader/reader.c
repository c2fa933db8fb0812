/* Readers, and the calls on them. */
#include "load/reader/reader_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

int cm_reader_create(const cm_reader_options *options, cm_reader **out, cm_error *err)
{
    cm_reader *r = cm_calloc(1, sizeof(*r), err);
    if (r == NULL)
        return CM_ENOMEM;
    r->options = *options;
    if ((r->ctx = cm_codec_ctx_create(err)) == NULL) {
        free(r);
        return CM_ENOMEM;
    }
    *out = r;
    return CM_OK;
}

void cm_reader_free(cm_reader *reader)
{
    if (reader == NULL)
        return;
    cm_codec_ctx_free(reader->ctx);
    cm_fetch_many_release(&reader->many);
    cm_buf_release(&reader->decoded);
    cm_feed_scratch_release(&reader->scratch);
    free(reader);
}

void cm_reader_lookahead(cm_reader *reader, cm_lookahead_list *list, uint64_t box)
{
    reader->ahead = list;
    reader->box = box;
}

void cm_reader_far(cm_reader *reader, bool far)
{
    reader->far = far;
}

/* ---- calls ---- */

static int check(const cm_reader *r, const cm_array *a, const cm_box *box, cm_error *err)
{
    bool inside = box->rank == a->rank;
    for (unsigned j = 0; inside && j < a->rank; j++)
        inside = box->start[j] <= a->shape[j] && box->shape[j] <= a->shape[j] - box->start[j];
    if (!inside)
        return cm_fail(err, CM_EINVAL, "array %s: a read reaches outside of it", cm_array_label(a));
    if (cm_dtype_is_vlen(&a->dtype))
        return cm_fail(err, CM_EUNSUPPORTED, "array %s: its elements have no fixed size",
                       cm_array_label(a));
    if ((r->options.library || !a->chunked) && a->ops->read_box == NULL)
        return cm_fail(err, CM_EUNSUPPORTED, "array %s: no library reads boxes of it",
                       cm_array_label(a));
    return CM_OK;
}

static int begin(cm_read_call *c, cm_reader *r, cm_array *a, const cm_feed *feed, const cm_box *box,
                 void *dst, cm_load_counts *counts, cm_error *err)
{
    *c = (cm_read_call){.reader = r, .array = a, .box = *box, .dst = dst, .counts = counts};
    c->err = err;
    c->cache = r->options.cache;
    c->feed = feed != NULL && !cm_feed_is_identity(feed) ? feed : NULL;
    c->itemsize = a->dtype.nbytes;
    c->out_itemsize = c->feed != NULL ? cm_feed_nbytes(feed) : c->itemsize;
    r->last_ns = cm_now_ns();
    int rc = check(r, a, box, err);
    if (rc != CM_OK || !a->chunked || r->options.library)
        return rc;
    c->in_place = c->feed == NULL && cm_grid_chunks_are_runs(&a->grid, box->shape);
    rc = cm_buf_reserve(&r->decoded, cm_array_decoded_nbytes(a), err);
    if (rc == CM_OK && c->feed != NULL)
        rc = cm_feed_scratch_reserve(&r->scratch, feed, a->grid.chunk_nelem, err);
    return rc;
}

/* The box of the call, which is not empty. */
static int read_box(cm_read_call *c)
{
    cm_reader *r = c->reader;
    cm_chunk_walk walk;
    size_t n;
    c->counts->logical_nbytes += cm_box_nelem(&c->box) * c->itemsize;
    if (!c->array->chunked || r->options.library)
        return cm_read_through_library(c);
    cm_chunk_walk_begin(&walk, c->array, &c->box,
                        cm_reader_group(c->array, r->options.group_nbytes));
    while ((n = cm_chunk_walk_next(&walk, r->number)) > 0)
        cm_read_group(c, n);
    return c->status;
}

int cm_reader_box(cm_reader *reader, cm_array *a, const cm_box *box, const cm_feed *feed, void *dst,
                  cm_load_counts *counts, cm_error *err)
{
    cm_read_call c;
    int rc = begin(&c, reader, a, feed, box, dst, counts, err);
    if (rc == CM_OK && cm_box_nelem(box) > 0)
        rc = read_box(&c);
    cm_read_keep_error(&c, rc);
    return rc;
}

int cm_reader_count(cm_reader *reader, cm_array *a, const cm_box *box, cm_load_counts *counts,
                    cm_error *err)
{
    cm_delay *delay = reader->options.delay;
    cm_read_call c;
    int rc = begin(&c, reader, a, NULL, box, NULL, counts, err);
    reader->options.delay = NULL;
    c.count_only = true;
    if (rc == CM_OK && cm_box_nelem(box) > 0)
        rc = read_box(&c);
    reader->options.delay = delay;
    return rc;
}

int cm_reader_chunk(cm_reader *reader, cm_array *a, uint64_t number, const cm_feed *feed, void *dst,
                    cm_load_counts *counts, cm_error *err)
{
    cm_box box;
    cm_read_call c;
    if (number >= a->grid.nchunks)
        return cm_fail(err, CM_EINVAL, "array %s: has no chunk %llu", cm_array_label(a),
                       (unsigned long long)number);
    cm_grid_chunk_box(&a->grid, number, &box);
    int rc = begin(&c, reader, a, feed, &box, dst, counts, err);
    c.cache = NULL;
    if (rc == CM_OK)
        rc = read_box(&c);
    cm_read_keep_error(&c, rc);
    return rc;
}
