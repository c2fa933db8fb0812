#include "convert/verify/compare.h"

#include <stdio.h>
#include <string.h>

#include "model/copy.h"

void cm_compare_buffers_release(cm_compare_buffers *b)
{
    cm_codec_ctx_free(b->ctx);
    cm_buf_release(&b->dense);
    cm_buf_release(&b->want);
    cm_buf_release(&b->got);
    cm_strings_release(&b->want_text);
    cm_strings_release(&b->got_text);
}

/* The file's elements of BOX, without the gaps of a subset, into b->want. */
static int read_source(cm_job *job, cm_job_var *v, const cm_box *box, cm_compare_buffers *b,
                       cm_error *err)
{
    size_t itemsize = v->source->dtype.nbytes;
    cm_box dense = {.rank = v->view.rank};
    int64_t from[CM_MAX_RANK], to[CM_MAX_RANK];
    for (unsigned j = 0; j < v->view.rank; j++) {
        dense.start[j] = v->view.start[j] + box->start[j] * v->view.step[j];
        dense.shape[j] = (box->shape[j] - 1) * v->view.step[j] + 1;
    }
    int rc = cm_buf_resize(&b->dense, cm_box_nelem(&dense) * itemsize, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&b->want, cm_box_nelem(box) * itemsize, err);
    if (rc == CM_OK)
        rc = cm_dataset_read(cm_job_dataset(job, v), v->source, &dense, b->dense.data, err);
    if (rc != CM_OK)
        return rc;
    cm_strides_c(v->view.rank, dense.shape, itemsize, from);
    cm_strides_c(v->view.rank, box->shape, itemsize, to);
    for (unsigned j = 0; j < v->view.rank; j++)
        from[j] = box->shape[j] > 1 ? from[j] * (int64_t)v->view.step[j] : 0;
    cm_copy_nd(v->view.rank, box->shape, itemsize, b->want.data, to, b->dense.data, from);
    return CM_OK;
}

static int convert_source(const cm_job_var *v, uint64_t nelem, cm_compare_buffers *b, cm_error *err)
{
    uint64_t bad;
    int rc = cm_buf_resize(&b->dense, nelem * v->view.type.nbytes, err);
    if (rc == CM_OK)
        rc = cm_conversion_run(&v->view.conversion, b->dense.data, b->want.data, nelem, &bad, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&b->want, nelem * v->view.type.nbytes, err);
    if (rc == CM_OK)
        memcpy(b->want.data, b->dense.data, nelem * v->view.type.nbytes);
    return rc;
}

/* BOX of V, which may be a part of the store's array. */
static cm_box box_in_store(const cm_job_var *v, const cm_box *box)
{
    cm_box there = *box;
    for (unsigned j = 0; j < v->view.rank; j++)
        there.start[j] += v->window.at[j];
    return there;
}

/*
 * Adds to ERR, which says that BOX of the source is damaged, the chunk of the store that cannot be
 * decoded either: libraries do not name it, and stored bytes may have been passed on.
 */
static void name_chunk(const cm_job_var *v, cm_array *array, const cm_box *box,
                       cm_compare_buffers *b, cm_error *err)
{
    const cm_box there = box_in_store(v, box);
    const cm_error source = err != NULL ? *err : (cm_error){0};
    cm_error store = {0};
    if (err != NULL &&
        cm_buf_resize(&b->got, cm_box_nelem(box) * v->view.type.nbytes, NULL) == CM_OK &&
        cm_array_read(array, b->ctx, &there, b->got.data, &store) == CM_EFORMAT)
        (void)cm_fail(err, CM_EFORMAT, "%s; nor can the store: %s", source.text, store.text);
}

static int compare_numbers(cm_job *job, cm_job_var *v, cm_array *array, const cm_box *box,
                           cm_compare_buffers *b, cm_digest *digest, cm_comparison *out,
                           cm_error *err)
{
    const cm_dtype *type = &v->view.type;
    uint64_t nelem = cm_box_nelem(box);
    int rc = read_source(job, v, box, b, err);
    if (rc == CM_EFORMAT)
        name_chunk(v, array, box, b, err);
    if (rc == CM_OK && v->view.converts)
        rc = convert_source(v, nelem, b, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&b->got, nelem * type->nbytes, err);
    if (rc != CM_OK)
        return rc;
    if (digest != NULL)
        cm_digest_box(digest, v->view.shape, box, b->want.data, type->nbytes);
    const cm_box there = box_in_store(v, box);
    rc = cm_array_read(array, b->ctx, &there, b->got.data, err);
    out->store_failed = rc != CM_OK;
    if (rc != CM_OK)
        return rc;
    if (memcmp(b->want.data, b->got.data, nelem * type->nbytes) == 0)
        return CM_OK;
    for (uint64_t i = nelem; i-- > 0;) {
        const uint8_t *want = b->want.data + i * type->nbytes,
                      *got = b->got.data + i * type->nbytes;
        if (memcmp(want, got, type->nbytes) != 0) {
            out->ndiffer++;
            out->first = i;
        }
    }
    cm_element_text(type, b->want.data + out->first * type->nbytes, out->want, sizeof(out->want));
    cm_element_text(type, b->got.data + out->first * type->nbytes, out->got, sizeof(out->got));
    return CM_OK;
}

/* The position of element I of BOX in the whole of V, in C order. */
static uint64_t linear_index(const cm_job_var *v, const cm_box *box, uint64_t i)
{
    uint64_t index = 0, stride = 1;
    for (unsigned j = v->view.rank; j-- > 0;) {
        index += (box->start[j] + i % box->shape[j]) * stride;
        i /= box->shape[j];
        stride *= v->view.shape[j];
    }
    return index;
}

void cm_compare_digest_texts(const cm_job_var *v, const cm_box *box, const cm_strings *texts,
                             cm_digest *digest)
{
    for (uint64_t i = 0; i < cm_box_nelem(box); i++) {
        size_t nbytes;
        const char *text = cm_strings_get(texts, i, &nbytes);
        cm_digest_element(digest, linear_index(v, box, i), text, nbytes);
    }
}

static int compare_strings(cm_job *job, cm_job_var *v, cm_array *array, const cm_box *box,
                           cm_compare_buffers *b, cm_digest *digest, cm_comparison *out,
                           cm_error *err)
{
    int rc = cm_job_read_strings(job, v, box, true, &b->want_text, err);
    if (rc != CM_OK)
        return rc;
    if (digest != NULL)
        cm_compare_digest_texts(v, box, &b->want_text, digest);
    const cm_box there = box_in_store(v, box);
    rc = cm_array_read_strings(array, &there, &b->got_text, err);
    out->store_failed = rc != CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i < cm_box_nelem(box); i++) {
        size_t nwant, ngot;
        const char *want = cm_strings_get(&b->want_text, i, &nwant);
        const char *got = cm_strings_get(&b->got_text, i, &ngot);
        if ((nwant == ngot && (nwant == 0 || memcmp(want, got, nwant) == 0)) || out->ndiffer++ > 0)
            continue;
        out->first = i;
        snprintf(out->want, sizeof(out->want), "\"%.*s\"", (int)(nwant > 40 ? 40 : nwant), want);
        snprintf(out->got, sizeof(out->got), "\"%.*s\"", (int)(ngot > 40 ? 40 : ngot), got);
    }
    return rc;
}

int cm_compare_skip_copied(cm_job *job, const cm_job_var *v, cm_error *err)
{
    job->report->not_compared = true;
    return cm_job_warn(job, err,
                       "array %s is not verified, only copied: its codecs or type are not known",
                       cm_job_name(v));
}

int cm_compare_box(cm_job *job, cm_job_var *v, cm_array *array, const cm_box *box,
                   cm_compare_buffers *b, cm_digest *digest, cm_comparison *out, cm_error *err)
{
    *out = (cm_comparison){0};
    return v->view.as_strings ? compare_strings(job, v, array, box, b, digest, out, err)
                              : compare_numbers(job, v, array, box, b, digest, out, err);
}
