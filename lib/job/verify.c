/*
 * Verification that is not circular: the file is read through libnetcdf, never
 * through this project's decoders, and compared with what a reader of the store
 * gets, bit for bit.
 *
 * A sample compares a few boxes of every variable, each of them where one source
 * chunk and one output chunk meet, so that it costs a few milliseconds; full
 * compares boxes that are closed under both kinds of chunks where the memory
 * allows, so that neither is decoded more often than need be.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/threads.h"
#include "format/zarr/open.h"
#include "job/job.h"
#include "model/copy.h"

enum {
    SAMPLE_BOXES = 3,
    SMALL_ARRAY = 1 << 20, /* compared whole, also by a sample */
    MAX_DIFFERENCES = 10,  /* told of one variable */
    INDEX_CACHE = 4 << 20
};

/* One variable, cut into boxes. */
typedef struct subject {
    cm_job_var *var;
    cm_array *array; /* of the store */
    cm_grid boxes;
    uint64_t nboxes; /* to be compared: all, or a sample */
    uint64_t first;  /* number of its first task */
    unsigned told;
} subject;

typedef struct verification {
    cm_job *job;
    subject *subject;
    size_t nsubjects;
    uint64_t ntasks;
    _Atomic uint64_t next;
    _Atomic uint64_t nverified;
    pthread_mutex_t lock; /* guards the report and the error */
    cm_error error;
} verification;

/* One thread's buffers. */
typedef struct bench {
    cm_codec_ctx *ctx;
    cm_buf dense, want, got;
    cm_strings want_text, got_text;
} bench;

static int fail(verification *ver, const cm_error *err)
{
    pthread_mutex_lock(&ver->lock);
    if (ver->error.status == CM_OK)
        ver->error = *err;
    pthread_mutex_unlock(&ver->lock);
    return err->status;
}

static size_t itemsize_of(const subject *s)
{
    return s->var->as_strings ? 1 : s->var->source->array.dtype.nbytes;
}

/* Box shape for a full comparison: the larger of both chunks, halved from the front until it fits SHARE. */
static void full_boxes(const subject *s, size_t share, uint64_t *shape)
{
    const cm_job_var *v = s->var;
    uint64_t nbytes = itemsize_of(s);
    for (unsigned j = 0; j < v->rank; j++) {
        uint64_t target = v->chunk[j], source = v->source->source_chunk[j] / v->step[j];
        shape[j] = v->source->has_source_chunks && source > target ? source : target;
        shape[j] = shape[j] > v->shape[j] ? v->shape[j] : shape[j];
        shape[j] = shape[j] == 0 ? 1 : shape[j];
        if (!cm_mul_u64(nbytes, shape[j], &nbytes))
            nbytes = UINT64_MAX;
    }
    for (unsigned j = 0; j < v->rank; j++)
        while (nbytes > share && shape[j] > 1) {
            nbytes -= nbytes / shape[j] * (shape[j] / 2);
            shape[j] -= shape[j] / 2;
        }
}

/* Where one source chunk and one output chunk meet. */
static void sample_boxes(const subject *s, uint64_t *shape)
{
    const cm_job_var *v = s->var;
    for (unsigned j = 0; j < v->rank; j++) {
        uint64_t source = v->source->source_chunk[j] / v->step[j];
        shape[j] = v->chunk[j];
        if (v->source->has_source_chunks && source < shape[j])
            shape[j] = source == 0 ? 1 : source;
        if (shape[j] > v->shape[j])
            shape[j] = v->shape[j] == 0 ? 1 : v->shape[j];
    }
}

static int subject_init(verification *ver, subject *s, const cm_zarr_tree *tree, cm_error *err)
{
    const cm_zarr_node *node = cm_zarr_find(tree, s->var->name);
    uint64_t shape[CM_MAX_RANK], nbytes = itemsize_of(s);
    if (node == NULL)
        return cm_fail(err, CM_EFORMAT, "the store has no array %s", s->var->name);
    int rc = cm_zarr_array_open(tree, node, INDEX_CACHE, &s->array, err);
    if (rc != CM_OK)
        return rc;
    for (unsigned j = 0; j < s->var->rank; j++)
        if (!cm_mul_u64(nbytes, s->var->shape[j], &nbytes))
            nbytes = UINT64_MAX;
    bool sample = ver->job->options->verify == CM_VERIFY_SAMPLE && nbytes > SMALL_ARRAY;
    if (sample)
        sample_boxes(s, shape);
    else
        full_boxes(s, ver->job->memory_limit / (6 * (size_t)ver->job->nthreads), shape);
    rc = cm_grid_init(&s->boxes, s->var->rank, s->var->shape, shape, err);
    if (rc != CM_OK)
        return rc;
    s->nboxes = s->boxes.nchunks;
    if (sample && s->nboxes > SAMPLE_BOXES)
        s->nboxes = SAMPLE_BOXES;
    s->first = ver->ntasks;
    ver->ntasks += s->nboxes;
    return CM_OK;
}

/* The I-th box of a sample: the first, the last, and others in between, the same every time. */
static uint64_t box_number(const subject *s, uint64_t i)
{
    if (s->nboxes == s->boxes.nchunks)
        return i;
    if (i == 0)
        return 0;
    if (i == 1)
        return s->boxes.nchunks - 1;
    return (uint64_t)((unsigned __int128)s->boxes.nchunks * (i * UINT64_C(0x9e3779b97f4a7c15)) >>
                      64);
}

/* The file's elements of BOX in the target's type. */
static int read_source(verification *ver, const subject *s, const cm_box *box, bench *b,
                       cm_error *err)
{
    cm_job_var *v = s->var;
    size_t itemsize = v->source->array.dtype.nbytes;
    uint64_t nelem = cm_box_nelem(box), bad;
    cm_box dense = {.rank = v->rank};
    int64_t from[CM_MAX_RANK], to[CM_MAX_RANK];
    for (unsigned j = 0; j < v->rank; j++) {
        dense.start[j] = v->start[j] + box->start[j] * v->step[j];
        dense.shape[j] = (box->shape[j] - 1) * v->step[j] + 1;
    }
    int rc = cm_buf_resize(&b->dense, cm_box_nelem(&dense) * itemsize, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&b->want,
                           nelem * (itemsize > v->type.nbytes ? itemsize : v->type.nbytes), err);
    if (rc == CM_OK)
        rc = cm_nc_read_library(ver->job->file, v->source, &dense, b->dense.data, err);
    if (rc != CM_OK)
        return rc;
    cm_strides_c(v->rank, dense.shape, itemsize, from);
    cm_strides_c(v->rank, box->shape, itemsize, to);
    for (unsigned j = 0; j < v->rank; j++)
        from[j] *= (int64_t)v->step[j];
    cm_copy_nd(v->rank, box->shape, itemsize, b->want.data, to, b->dense.data, from);
    if (!v->converts)
        return CM_OK;
    /* In place where the types are of one size; otherwise by way of the first buffer. */
    rc = cm_buf_resize(&b->dense, nelem * v->type.nbytes, err);
    if (rc == CM_OK)
        rc = cm_conversion_run(&v->conversion, b->dense.data, b->want.data, nelem, &bad, err);
    if (rc == CM_OK)
        memcpy(b->want.data, b->dense.data, nelem * v->type.nbytes);
    return rc;
}

static void element_text(const cm_dtype *type, const uint8_t *element, char *buf, size_t size)
{
    if (cm_dtype_is_number(type)) {
        snprintf(buf, size, "%.17g", cm_element_to_double(type, element));
        return;
    }
    size_t used = 0;
    for (uint32_t i = 0; i < type->nbytes && used + 3 < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%02x", element[i]);
}

/* Says where WANT and GOT first differ, and how often. */
static void tell(verification *ver, subject *s, const cm_box *box, uint64_t first, uint64_t count,
                 const char *want, const char *got)
{
    uint64_t at[CM_MAX_RANK], rest = first;
    char text[CM_MAX_RANK * 21];
    for (unsigned j = box->rank; j-- > 0;) {
        at[j] = box->start[j] + rest % box->shape[j];
        rest /= box->shape[j];
    }
    pthread_mutex_lock(&ver->lock);
    if (s->told++ < MAX_DIFFERENCES)
        cm_job_differ(ver->job, NULL, "%s: element %s: %s became %s, %llu differ nearby",
                      s->var->name, cm_coord_text(box->rank, at, text, sizeof(text)), want, got,
                      (unsigned long long)count);
    pthread_mutex_unlock(&ver->lock);
}

static int compare_numbers(verification *ver, subject *s, const cm_box *box, bench *b,
                           cm_error *err)
{
    const cm_dtype *type = &s->var->type;
    uint64_t nelem = cm_box_nelem(box), count = 0, first = 0;
    int rc = read_source(ver, s, box, b, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&b->got, nelem * type->nbytes, err);
    if (rc == CM_OK)
        rc = cm_array_read(s->array, b->ctx, box, b->got.data, err);
    if (rc != CM_OK || memcmp(b->want.data, b->got.data, nelem * type->nbytes) == 0)
        return rc;
    for (uint64_t i = nelem; i-- > 0;) {
        if (memcmp(b->want.data + i * type->nbytes, b->got.data + i * type->nbytes, type->nbytes)) {
            count++;
            first = i;
        }
    }
    char want[64], got[64];
    element_text(type, b->want.data + first * type->nbytes, want, sizeof(want));
    element_text(type, b->got.data + first * type->nbytes, got, sizeof(got));
    tell(ver, s, box, first, count, want, got);
    return CM_OK;
}

static int compare_strings(verification *ver, subject *s, const cm_box *box, bench *b,
                           cm_error *err)
{
    int rc = cm_job_read_strings(ver->job, s->var, box, true, &b->want_text, err);
    if (rc == CM_OK)
        rc = cm_array_read_strings(s->array, box, &b->got_text, err);
    for (uint64_t i = 0; rc == CM_OK && i < cm_box_nelem(box); i++) {
        size_t nwant, ngot;
        const char *want = cm_strings_get(&b->want_text, i, &nwant);
        const char *got = cm_strings_get(&b->got_text, i, &ngot);
        if (nwant == ngot && (nwant == 0 || memcmp(want, got, nwant) == 0))
            continue;
        char shown_want[64], shown_got[64];
        snprintf(shown_want, sizeof(shown_want), "\"%.*s\"", (int)(nwant > 40 ? 40 : nwant), want);
        snprintf(shown_got, sizeof(shown_got), "\"%.*s\"", (int)(ngot > 40 ? 40 : ngot), got);
        tell(ver, s, box, i, 1, shown_want, shown_got);
        break;
    }
    return rc;
}

static int run_task(verification *ver, uint64_t task, bench *b, cm_error *err)
{
    size_t i = 0;
    while (i + 1 < ver->nsubjects && ver->subject[i + 1].first <= task)
        i++;
    subject *s = &ver->subject[i];
    uint64_t coord[CM_MAX_RANK];
    cm_box box;
    cm_grid_coord(&s->boxes, box_number(s, task - s->first), coord);
    cm_grid_box(&s->boxes, coord, &box);
    cm_monitor_at(ver->job->options->monitor, s->var->name, task - s->first, "comparing");
    int rc = s->var->as_strings ? compare_strings(ver, s, &box, b, err)
                                : compare_numbers(ver, s, &box, b, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "verifying %s", s->var->name);
    atomic_fetch_add(&ver->nverified, cm_box_nelem(&box));
    cm_monitor_add(ver->job->options->monitor, cm_box_nelem(&box) * itemsize_of(s));
    return rc;
}

static void worker_main(void *context, unsigned index)
{
    verification *ver = context;
    bench b = {0};
    cm_error err = {0};
    (void)index;
    int rc = (b.ctx = cm_codec_ctx_create(&err)) == NULL ? CM_ENOMEM : CM_OK;
    while (rc == CM_OK) {
        uint64_t task = atomic_fetch_add(&ver->next, 1);
        if (task >= ver->ntasks)
            break;
        if (cm_monitor_canceled(ver->job->options->monitor))
            rc = cm_fail(&err, CM_ECANCELED, "stopped by request");
        else
            rc = run_task(ver, task, &b, &err);
    }
    if (rc != CM_OK) {
        fail(ver, &err);
        atomic_store(&ver->next, ver->ntasks);
    }
    cm_codec_ctx_free(b.ctx);
    cm_buf_release(&b.dense);
    cm_buf_release(&b.want);
    cm_buf_release(&b.got);
    cm_strings_release(&b.want_text);
    cm_strings_release(&b.got_text);
}

static uint64_t work_nbytes(const verification *ver)
{
    uint64_t total = 0;
    for (size_t i = 0; i < ver->nsubjects; i++) {
        const subject *s = &ver->subject[i];
        uint64_t nbytes = itemsize_of(s);
        for (unsigned j = 0; j < s->var->rank; j++)
            nbytes *= s->nboxes == s->boxes.nchunks ? s->var->shape[j] : s->boxes.chunk[j];
        total += s->nboxes == s->boxes.nchunks ? nbytes : nbytes * s->nboxes;
    }
    return total;
}

int cm_job_verify(cm_job *job, cm_store *store, cm_error *err)
{
    verification ver = {.job = job};
    cm_zarr_tree tree = {0};
    pthread_mutex_init(&ver.lock, NULL);
    int rc = cm_zarr_open(store, &tree, err);
    if (rc == CM_OK &&
        (ver.subject = cm_calloc(job->nvars > 0 ? job->nvars : 1, sizeof(subject), err)) == NULL)
        rc = CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        ver.subject[ver.nsubjects++].var = &job->var[i];
        rc = subject_init(&ver, &ver.subject[i], &tree, err);
    }
    if (rc == CM_OK && ver.ntasks > 0) {
        cm_monitor_phase(job->options->monitor, CM_PHASE_VERIFYING, work_nbytes(&ver));
        cm_threads_run(job->nthreads, worker_main, &ver);
        rc = ver.error.status;
        if (rc != CM_OK && err != NULL)
            *err = ver.error;
    }
    job->report->nverified = ver.nverified;
    for (size_t i = 0; i < ver.nsubjects; i++)
        cm_array_free(ver.subject[i].array);
    free(ver.subject);
    cm_zarr_tree_release(&tree);
    pthread_mutex_destroy(&ver.lock);
    if (rc == CM_OK && job->report->ndifferences > 0)
        rc = cm_fail(err, CM_EDIFFER, "the store differs from the file: %s",
                     job->report->difference[0]);
    return rc;
}
