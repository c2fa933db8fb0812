/*
 * Boxes of variable-length text from any source: strings, and characters joined
 * along their last dimension; with the gaps of a subset left out, and as UTF-8.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "convert/source/span.h"

/* Element I of OUT; ONE is kept between calls. */
static int set_latin1(cm_strings *out, uint64_t i, const uint8_t *text, size_t nbytes, cm_buf *one,
                      cm_error *err)
{
    one->nbytes = 0;
    int rc = cm_utf8_from_latin1(text, nbytes, one, err);
    return rc == CM_OK ? cm_strings_set(out, i, one->data, one->nbytes, err) : rc;
}

/*
 * The characters of BOX joined along the last dimension of the source; NULs at the end are
 * padding.
 */
static int read_joined(cm_job *job, cm_job_var *v, const cm_box *box, cm_strings *out,
                       cm_error *err)
{
    cm_box chars = *box;
    uint64_t width = v->source->shape[v->view.rank], n = cm_box_nelem(box);
    cm_buf text = {0}, one = {0};
    size_t nbytes;
    chars.rank = v->view.rank + 1;
    chars.start[v->view.rank] = 0;
    chars.shape[v->view.rank] = width;
    if (!cm_mul_size(n, width, &nbytes))
        return cm_fail(err, CM_EFORMAT, "too many characters");
    cm_buf_init(&text, out->arena.max_nbytes);
    int rc = cm_buf_resize(&text, nbytes > 0 ? nbytes : 1, err);
    if (rc == CM_OK && nbytes > 0)
        rc = cm_dataset_read(cm_job_dataset(job, v), v->source, &chars, text.data, err);
    if (rc == CM_OK)
        rc = cm_strings_reset(out, n, err);
    for (uint64_t i = 0; rc == CM_OK && i < n; i++) {
        const uint8_t *from = text.data + i * width;
        size_t length = width;
        while (length > 0 && from[length - 1] == '\0')
            length--;
        if (v->view.latin1)
            rc = set_latin1(out, i, from, length, &one, err);
        else
            rc = cm_strings_set(out, i, from, length, err);
    }
    cm_buf_release(&text);
    cm_buf_release(&one);
    return rc;
}

/* Zarr's strings are UTF-8: what is none becomes U+FFFD, and a warning says so. */
static int repair(cm_job_var *v, cm_strings *text, cm_error *err)
{
    cm_strings good;
    cm_buf one = {0};
    bool valid = true;
    for (uint64_t i = 0; i < text->nelem && valid; i++) {
        size_t nbytes;
        const char *p = cm_strings_get(text, i, &nbytes);
        valid = cm_utf8_is_valid(p, nbytes);
    }
    if (valid)
        return CM_OK;
    v->moved.repaired = true;
    cm_strings_init(&good, text->arena.max_nbytes);
    int rc = cm_strings_reset(&good, text->nelem, err);
    for (uint64_t i = 0; rc == CM_OK && i < text->nelem; i++) {
        size_t nbytes;
        const char *p = cm_strings_get(text, i, &nbytes);
        one.nbytes = 0;
        rc = cm_utf8_repair(p, nbytes, &one, err);
        if (rc == CM_OK)
            rc = cm_strings_set(&good, i, one.data, one.nbytes, err);
    }
    cm_buf_release(&one);
    if (rc == CM_OK) {
        cm_strings_release(text);
        *text = good;
    } else {
        cm_strings_release(&good);
    }
    return rc;
}

/* The strings of V's source from the first to the last of BOX, gaps of a subset included. */
static int read_dense(cm_job *job, cm_job_var *v, const cm_box *dense, bool checking,
                      cm_strings *out, cm_error *err)
{
    if (v->view.join)
        return read_joined(job, v, dense, out, err);
    if (checking)
        return cm_dataset_read_strings(cm_job_dataset(job, v), v->source, dense, out, err);
    return cm_array_read_strings(v->source->array, dense, out, err);
}

/*
 * Sets those strings of BOX in OUT that lie in PART (from BOX's origin); FROM holds PART with
 * its gaps.
 */
static int place(const cm_job_var *v, const cm_box *box, const cm_box *part, const cm_box *dense,
                 const cm_strings *from, cm_strings *out, cm_error *err)
{
    uint64_t n = cm_box_nelem(part);
    int rc = CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i < n; i++) {
        uint64_t rest = i, read = 0, read_stride = 1, index = 0, stride = 1;
        for (unsigned j = v->view.rank; j-- > 0;) {
            uint64_t at = rest % part->shape[j];
            rest /= part->shape[j];
            read += at * v->view.step[j] * read_stride;
            read_stride *= dense->shape[j];
            index += (part->start[j] + at) * stride;
            stride *= box->shape[j];
        }
        size_t nbytes;
        const char *text = cm_strings_get(from, read, &nbytes);
        rc = cm_strings_set(out, index, text, nbytes, err);
    }
    return rc;
}

/* The shape in which BOX is read: parts of bounded gaps and stored chunks. */
static void choose_parts(const cm_job_var *v, const cm_box *box, uint64_t *shape)
{
    enum {
        MAX_WITH_GAPS = 64 * 1024 /* elements */
    };
    bool more = true;
    memcpy(shape, box->shape, sizeof(box->shape));
    while (more) {
        cm_box part = {.rank = v->view.rank};
        memcpy(part.shape, shape, sizeof(part.shape));
        double span = cm_span_nelem(v, shape);
        bool gaps = span > MAX_WITH_GAPS && span >= 2 * (double)cm_box_nelem(&part);
        more = (gaps || cm_span_nchunks(v, shape) > CM_SPAN_MAX_CHUNKS) && cm_span_halve(v, shape);
    }
}

static void dense_box(const cm_job_var *v, const cm_box *box, const cm_box *part, cm_box *dense)
{
    dense->rank = v->view.rank;
    for (unsigned j = 0; j < v->view.rank; j++) {
        dense->start[j] = v->view.start[j] + (box->start[j] + part->start[j]) * v->view.step[j];
        dense->shape[j] = (part->shape[j] - 1) * v->view.step[j] + 1;
    }
}

int cm_job_read_strings(cm_job *job, cm_job_var *v, const cm_box *box, bool checking,
                        cm_strings *out, cm_error *err)
{
    uint64_t shape[CM_MAX_RANK], coord[CM_MAX_RANK];
    cm_grid parts;
    cm_box part, dense;
    cm_strings read;
    choose_parts(v, box, shape);
    int rc = cm_grid_init(&parts, v->view.rank, box->shape, shape, err);
    if (rc != CM_OK)
        return rc;
    cm_grid_coord(&parts, 0, coord);
    cm_grid_box(&parts, coord, &part);
    dense_box(v, box, &part, &dense);
    if (cm_box_nelem(&dense) == cm_box_nelem(box)) {
        rc = read_dense(job, v, &dense, checking, out, err);
        return rc == CM_OK ? repair(v, out, err) : rc;
    }
    cm_strings_init(&read, out->arena.max_nbytes);
    rc = cm_strings_reset(out, cm_box_nelem(box), err);
    for (uint64_t i = 0; rc == CM_OK && i < parts.nchunks; i++) {
        cm_grid_coord(&parts, i, coord);
        cm_grid_box(&parts, coord, &part);
        dense_box(v, box, &part, &dense);
        rc = read_dense(job, v, &dense, checking, &read, err);
        if (rc == CM_OK)
            rc = place(v, box, &part, &dense, &read, out, err);
    }
    cm_strings_release(&read);
    return rc == CM_OK ? repair(v, out, err) : rc;
}
