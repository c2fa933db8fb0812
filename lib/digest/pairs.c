#include "digest/pairs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "plan/meetings.h"

enum {
    SAMPLE_BOXES = 3,
    SMALL_ARRAY = 1 << 20, /* compared whole, also by a sample */
    STRING_ESTIMATE = 64
};

typedef struct work {
    cm_pair *pair;
    size_t n;
    size_t share; /* bytes of one box */
    size_t text;  /* of the text of one box */
    cm_monitor *monitor;
    uint64_t ntasks;
    _Atomic uint64_t next;
    pthread_mutex_t lock; /* guards the pairs' results and the error */
    cm_error error;
} work;

/* One thread's buffers. */
typedef struct bench {
    cm_codec_ctx *ctx;
    cm_buf want, got;
    cm_strings want_text, got_text;
} bench;

static bool is_vlen(const cm_pair *p)
{
    return cm_dtype_is_vlen(&p->want->dtype);
}

static size_t itemsize_of(const cm_pair *p)
{
    return is_vlen(p) ? STRING_ESTIMATE : p->want->dtype.nbytes;
}

/* ---- boxes ---- */

static uint64_t clip(uint64_t length, uint64_t whole)
{
    length = length > whole ? whole : length;
    return length == 0 ? 1 : length;
}

/*
 * The larger of both chunks, so that neither is decoded more often than need be,
 * halved until it fits; whole chunks of the one, since each is decoded whole.
 */
static void full_boxes(const cm_pair *p, size_t share, uint64_t *shape)
{
    uint64_t nbytes = itemsize_of(p);
    for (unsigned j = 0; j < p->want->rank; j++) {
        uint64_t want = p->want->grid.chunk[j], got = p->got != NULL ? p->got->grid.chunk[j] : 0;
        shape[j] = clip(want > got ? want : got, p->want->shape[j]);
        if (!cm_mul_u64(nbytes, shape[j], &nbytes))
            nbytes = UINT64_MAX;
    }
    for (unsigned j = 0; j < p->want->rank && !(p->got == NULL && p->want->chunked); j++)
        while (nbytes > share && shape[j] > 1) {
            nbytes -= nbytes / shape[j] * (shape[j] / 2);
            shape[j] -= shape[j] / 2;
        }
}

static void sample_boxes(const cm_pair *p, size_t share, uint64_t *shape)
{
    full_boxes(p, share, shape);
    for (unsigned j = 0; j < p->want->rank; j++) {
        uint64_t want = p->want->grid.chunk[j], got = p->got->grid.chunk[j];
        uint64_t both = clip(want < got ? want : got, p->want->shape[j]);
        shape[j] = both < shape[j] ? both : shape[j];
    }
}

/* Chunks that differ in length are decoded one by one where they are alone. */
static bool has_cut_boxes(const cm_pair *p)
{
    return p->got == NULL && p->want->chunked && cm_array_is_cut(p->want);
}

static int cut(work *w, cm_pair *p, cm_error *err)
{
    uint64_t shape[CM_MAX_RANK], nbytes = itemsize_of(p);
    for (unsigned j = 0; j < p->want->rank; j++)
        if (!cm_mul_u64(nbytes, p->want->shape[j], &nbytes))
            nbytes = UINT64_MAX;
    p->sample = p->sample && p->got != NULL && nbytes > SMALL_ARRAY;
    if (p->sample)
        sample_boxes(p, w->share, shape);
    else
        full_boxes(p, w->share, shape);
    int rc = has_cut_boxes(p) ? cm_grid_init_cut(&p->boxes, p->want->rank, p->want->shape, shape,
                                                 p->want->grid.cuts, err)
                              : cm_grid_init(&p->boxes, p->want->rank, p->want->shape, shape, err);
    p->nboxes = p->boxes.nchunks;
    if (p->sample && p->nboxes > SAMPLE_BOXES)
        p->nboxes = SAMPLE_BOXES;
    p->first = w->ntasks;
    w->ntasks += p->nboxes;
    return rc;
}

/* The I-th box of a sample: the first, the last, and others in between, the same every time. */
static uint64_t box_number(const cm_pair *p, uint64_t i)
{
    if (p->nboxes == p->boxes.nchunks || i == 0)
        return i;
    if (i == 1)
        return p->boxes.nchunks - 1;
    return (uint64_t)((unsigned __int128)p->boxes.nchunks * (i * UINT64_C(0x9e3779b97f4a7c15)) >>
                      64);
}

/* ---- one box ---- */

static uint64_t linear_index(const cm_pair *p, const cm_box *box, uint64_t i)
{
    uint64_t index = 0, stride = 1;
    for (unsigned j = box->rank; j-- > 0;) {
        index += (box->start[j] + i % box->shape[j]) * stride;
        i /= box->shape[j];
        stride *= p->want->shape[j];
    }
    return index;
}

static void element_text(const cm_dtype *type, const uint8_t *element, char *buf, size_t size)
{
    size_t used = 0;
    for (uint32_t i = type->nbytes; i-- > 0 && used + 3 < size;)
        used += (size_t)snprintf(buf + used, size - used, "%02x", element[i]);
}

typedef struct finding {
    uint64_t ndiffer, first; /* elements of the box; index of the first */
    char want[64], got[64];
    cm_digest digest;
} finding;

static int compare_numbers(const cm_pair *p, const cm_box *box, bench *b, finding *f, cm_error *err)
{
    size_t itemsize = p->want->dtype.nbytes;
    uint64_t nelem = cm_box_nelem(box);
    int rc = cm_buf_resize(&b->want, nelem * itemsize, err);
    if (rc == CM_OK)
        rc = cm_array_read(p->want, b->ctx, box, b->want.data, err);
    if (rc == CM_OK && p->got == NULL)
        cm_digest_box(&f->digest, p->want->shape, box, b->want.data, itemsize);
    if (rc == CM_OK && p->got == NULL && p->see != NULL)
        p->see(p->see_context, box, b->want.data);
    if (rc != CM_OK || p->got == NULL)
        return rc;
    rc = cm_buf_resize(&b->got, nelem * itemsize, err);
    if (rc == CM_OK)
        rc = cm_array_read(p->got, b->ctx, box, b->got.data, err);
    if (rc != CM_OK || memcmp(b->want.data, b->got.data, nelem * itemsize) == 0)
        return rc;
    for (uint64_t i = nelem; i-- > 0;)
        if (memcmp(b->want.data + i * itemsize, b->got.data + i * itemsize, itemsize) != 0) {
            f->ndiffer++;
            f->first = i;
        }
    element_text(&p->want->dtype, b->want.data + f->first * itemsize, f->want, sizeof(f->want));
    element_text(&p->want->dtype, b->got.data + f->first * itemsize, f->got, sizeof(f->got));
    return CM_OK;
}

static int compare_strings(const cm_pair *p, const cm_box *box, bench *b, finding *f, cm_error *err)
{
    int rc = cm_array_read_strings(p->want, box, &b->want_text, err);
    if (rc == CM_OK && p->got != NULL)
        rc = cm_array_read_strings(p->got, box, &b->got_text, err);
    for (uint64_t i = 0; rc == CM_OK && i < cm_box_nelem(box); i++) {
        size_t nwant, ngot;
        const char *want = cm_strings_get(&b->want_text, i, &nwant);
        if (p->got == NULL) {
            cm_digest_element(&f->digest, linear_index(p, box, i), want, nwant);
            continue;
        }
        const char *got = cm_strings_get(&b->got_text, i, &ngot);
        if ((nwant == ngot && (nwant == 0 || memcmp(want, got, nwant) == 0)) || f->ndiffer++ > 0)
            continue;
        f->first = i;
        snprintf(f->want, sizeof(f->want), "\"%.*s\"", (int)(nwant > 40 ? 40 : nwant), want);
        snprintf(f->got, sizeof(f->got), "\"%.*s\"", (int)(ngot > 40 ? 40 : ngot), got);
    }
    return rc;
}

/* A difference for which there is no memory is an error: without it the pair would pass. */
static int tell(cm_pair *p, const cm_box *box, const finding *f, cm_error *err)
{
    uint64_t at[CM_MAX_RANK], rest = f->first;
    char text[CM_MAX_RANK * 21];
    for (unsigned j = box->rank; j-- > 0;) {
        at[j] = box->start[j] + rest % box->shape[j];
        rest /= box->shape[j];
    }
    if (p->ndifferences >= CM_PAIR_DIFFERENCES)
        return CM_OK;
    char *sentence =
        cm_asprintf(err, "element %s: %s became %s; %llu of %llu around it differ",
                    cm_coord_text(box->rank, at, text, sizeof(text)), f->want, f->got,
                    (unsigned long long)f->ndiffer, (unsigned long long)cm_box_nelem(box));
    if (sentence == NULL)
        return CM_ENOMEM;
    p->difference[p->ndifferences++] = sentence;
    return CM_OK;
}

static int run_task(work *w, uint64_t task, bench *b, cm_error *err)
{
    size_t i = 0;
    while (i + 1 < w->n && w->pair[i + 1].first <= task)
        i++;
    cm_pair *p = &w->pair[i];
    uint64_t coord[CM_MAX_RANK];
    finding f = {0};
    cm_box box;
    cm_grid_coord(&p->boxes, box_number(p, task - p->first), coord);
    cm_grid_box(&p->boxes, coord, &box);
    cm_monitor_at(w->monitor, p->want->name, task - p->first, "comparing");
    int rc =
        is_vlen(p) ? compare_strings(p, &box, b, &f, err) : compare_numbers(p, &box, b, &f, err);
    if (rc != CM_OK)
        return rc;
    pthread_mutex_lock(&w->lock);
    cm_digest_add(&p->digest, &f.digest);
    p->nverified += cm_box_nelem(&box);
    if (f.ndiffer > 0)
        rc = tell(p, &box, &f, err);
    pthread_mutex_unlock(&w->lock);
    cm_monitor_add(w->monitor, cm_box_nelem(&box) * itemsize_of(p));
    return rc;
}

static void worker_main(void *context, unsigned index)
{
    work *w = context;
    bench b = {0};
    cm_error err = {0};
    (void)index;
    cm_strings_init(&b.want_text, w->text);
    cm_strings_init(&b.got_text, w->text);
    int rc = (b.ctx = cm_codec_ctx_create(&err)) == NULL ? CM_ENOMEM : CM_OK;
    while (rc == CM_OK) {
        uint64_t task = atomic_fetch_add(&w->next, 1);
        if (task >= w->ntasks)
            break;
        if (cm_monitor_canceled(w->monitor))
            rc = cm_fail(&err, CM_ECANCELED, "stopped by request");
        else
            rc = run_task(w, task, &b, &err);
    }
    if (rc != CM_OK) {
        pthread_mutex_lock(&w->lock);
        if (w->error.status == CM_OK)
            w->error = err;
        pthread_mutex_unlock(&w->lock);
        atomic_store(&w->next, w->ntasks);
    }
    cm_codec_ctx_free(b.ctx);
    cm_buf_release(&b.want);
    cm_buf_release(&b.got);
    cm_strings_release(&b.want_text);
    cm_strings_release(&b.got_text);
}

/* ---- all ---- */

size_t cm_pairs_digest_nbytes(const cm_chain *chain)
{
    return 2 * cm_chain_decoded_nbytes(chain) + cm_chain_decode_memory(chain) +
           cm_chain_encoded_bound(chain);
}

uint64_t cm_pairs_digest_least(const cm_array *a)
{
    if (!a->chunked || cm_dtype_is_vlen(&a->dtype))
        return 0;
    const uint64_t resident = cm_resident(NULL);
    return cm_add_sat(resident > 0 ? resident : cm_peak_rss(), cm_pairs_digest_nbytes(a->chain));
}

/* A worker decodes a chunk of either side for each box: what that takes beside the boxes. */
static size_t decoding_nbytes(const cm_pair *pair, size_t n)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++) {
        const cm_array *side[2] = {pair[i].want, pair[i].got};
        size_t sum = 0;
        for (int k = 0; k < 2; k++)
            if (side[k] != NULL && side[k]->chunked && !is_vlen(&pair[i])) {
                size_t one = cm_chain_decoded_nbytes(side[k]->chain) +
                             cm_chain_decode_memory(side[k]->chain) + side[k]->max_stored_nbytes;
                sum = one > sum ? one : sum;
            }
        most = sum > most ? sum : most;
    }
    return most;
}

/*
 * Of the memory for EACH thread, what the text of a box may take.  Without a second
 * side a box is a chunk, which is there stored, unpacked and as strings; with one,
 * boxes that share the memory are known to hold less text than this.
 */
static int limit_text(work *w, uint64_t each, cm_error *err)
{
    uint64_t places = 0;
    w->text = 4 * w->share;
    for (size_t i = 0; i < w->n; i++) {
        const cm_pair *p = &w->pair[i];
        if (is_vlen(p) && p->got == NULL && p->boxes.chunk_nelem > places)
            places = p->boxes.chunk_nelem;
    }
    if (places == 0)
        return CM_OK;
    if (!cm_mul_u64(places, sizeof(cm_string_ref) + sizeof(uint32_t), &places) || places >= each)
        return cm_fail(err, CM_EBUDGET, "a chunk of text needs more memory than there is");
    w->text = (size_t)((each - places) / 3);
    w->text += w->text == 0;
    return CM_OK;
}

static uint64_t total_nbytes(const work *w)
{
    uint64_t total = 0;
    for (size_t i = 0; i < w->n; i++) {
        const cm_pair *p = &w->pair[i];
        uint64_t nelem = p->nboxes == p->boxes.nchunks ? 1 : p->nboxes * p->boxes.chunk_nelem;
        for (unsigned j = 0; p->nboxes == p->boxes.nchunks && j < p->boxes.rank; j++)
            nelem *= p->boxes.shape[j];
        total += nelem * itemsize_of(p);
    }
    return total;
}

int cm_pairs_run(cm_pair *pair, size_t n, unsigned nthreads, uint64_t nbytes, cm_monitor *monitor,
                 cm_error *err)
{
    work w = {.pair = pair, .n = n, .monitor = monitor};
    size_t decoding = decoding_nbytes(pair, n);
    int rc = CM_OK;
    while (nthreads > 1 && nbytes / nthreads < 2 * decoding)
        nthreads /= 2;
    uint64_t each = nbytes / nthreads;
    w.share = (size_t)(each > decoding ? (each - decoding) / 3 : each / 8);
    pthread_mutex_init(&w.lock, NULL);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        rc = cut(&w, &pair[i], err);
    if (rc == CM_OK)
        rc = limit_text(&w, each, err);
    if (rc == CM_OK && w.ntasks > 0) {
        cm_monitor_phase(monitor, CM_PHASE_VERIFYING, total_nbytes(&w));
        cm_threads_run(nthreads, worker_main, &w);
        rc = w.error.status;
        if (rc != CM_OK && err != NULL)
            *err = w.error;
    }
    pthread_mutex_destroy(&w.lock);
    return rc;
}

void cm_pair_release(cm_pair *pair)
{
    for (unsigned i = 0; i < pair->ndifferences; i++)
        free(pair->difference[i]);
    pair->ndifferences = 0;
}
