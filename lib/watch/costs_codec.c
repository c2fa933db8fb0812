/* Measures the decoding of chunks that do not exist: the array's own elements, encoded anew. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "model/copy.h"
#include "plan/autochunk.h"
#include "plan/meetings.h"
#include "plan/samples.h"
#include "watch/costs.h"

enum {
    SMALL_NBYTES = 16 << 10, /* the two sizes of chunk */
    LARGE_NBYTES = 1 << 20,
    LEAST_LARGE = 64 << 10, /* where requests are limited */
    PLACES = 4,             /* in the array, of large chunks, */
    LEAST_PASSES = 3,
    PIECES = 6, /* and of small ones in each */
    PASSES = 60 /* of decoding them all; the fastest counts, for it was disturbed least */
};
#define PASSES_SECONDS 0.05
#define MOST_SECONDS   0.4 /* of reading elements; the first place is read in any case */
#define MOST_CHUNK     (UINT64_C(512) << 20) /* a larger source chunk takes too long to decode */

typedef struct coded { /* chunks of one shape */
    cm_chain *chain;
    uint64_t shape[CM_MAX_RANK];
    size_t decoded_nbytes; /* of one */
    cm_buf bytes;          /* of all, one behind the other */
    size_t length[PLACES * PIECES];
    size_t n;
    double seconds; /* CPU time of decoding all of them once */
} coded;

static int prepare(coded *c, const cm_array *a, const cm_codec_spec *spec, size_t n,
                   uint64_t nbytes, const uint64_t *within, cm_error *err)
{
    int rc = cm_autochunk(a->rank, within, a->dtype.nbytes, nbytes, NULL, NULL, c->shape, err);
    if (rc == CM_OK)
        rc = cm_chain_create(spec, n, &a->dtype, a->rank, c->shape, &c->chain, err);
    if (rc == CM_OK)
        rc = cm_chain_can_encode(c->chain, err);
    if (rc == CM_OK)
        c->decoded_nbytes = cm_chain_decoded_nbytes(c->chain);
    return rc;
}

static int add(coded *c, cm_codec_ctx *ctx, const void *elements, cm_error *err)
{
    const size_t at = c->bytes.nbytes;
    size_t nbytes = 0;
    int rc = cm_buf_resize(&c->bytes, at + cm_chain_encoded_bound(c->chain), err);
    if (rc == CM_OK)
        rc = cm_chain_encode(c->chain, ctx, elements, c->bytes.data + at, &nbytes, err);
    if (rc != CM_OK)
        return rc;
    c->bytes.nbytes = at + nbytes;
    c->length[c->n++] = nbytes;
    return CM_OK;
}

/* Small chunks of the large one at FROM. */
static int add_pieces(coded *small, const coded *large, unsigned rank, size_t itemsize,
                      cm_codec_ctx *ctx, const uint8_t *from, uint8_t *piece, cm_error *err)
{
    int64_t src[CM_MAX_RANK], dst[CM_MAX_RANK];
    uint64_t count[CM_MAX_RANK], all = 1;
    int rc = CM_OK;
    cm_strides_c(rank, large->shape, itemsize, src);
    cm_strides_c(rank, small->shape, itemsize, dst);
    for (unsigned j = 0; j < rank; j++)
        all *= count[j] = large->shape[j] / small->shape[j];
    for (uint64_t i = 0; i < PIECES && i < all && rc == CM_OK; i++) {
        uint64_t number = all <= PIECES ? i : i * (all - 1) / (PIECES - 1);
        int64_t at = 0;
        for (unsigned j = rank; j-- > 0; number /= count[j])
            at += (int64_t)(number % count[j] * small->shape[j]) * src[j];
        cm_copy_nd(rank, small->shape, itemsize, piece, dst, from + at, src);
        rc = add(small, ctx, piece, err);
    }
    return rc;
}

static int time_decoding(coded *c, cm_codec_ctx *ctx, uint8_t *to, cm_error *err)
{
    const uint64_t began = cm_thread_cpu_ns();
    int rc = CM_OK;
    for (int pass = 0; pass < PASSES && rc == CM_OK; pass++) {
        if (pass >= LEAST_PASSES && (double)(cm_thread_cpu_ns() - began) * 1e-9 > PASSES_SECONDS)
            break;
        size_t at = 0;
        const uint64_t start = cm_thread_cpu_ns();
        for (size_t i = 0; i < c->n && rc == CM_OK; at += c->length[i++])
            rc = cm_chain_decode(c->chain, ctx, c->bytes.data + at, c->length[i], 0, to, err);
        const double took = (double)(cm_thread_cpu_ns() - start) * 1e-9;
        c->seconds = pass == 0 || took < c->seconds ? took : c->seconds;
    }
    return rc;
}

/* A line through the two sizes, for N things that take TOTAL with each. */
static void fit(const coded *small, double of_small, const coded *large, double of_large,
                double *each, double *byte)
{
    const double n1 = (double)small->n, n2 = (double)large->n;
    const double b1 = (double)small->decoded_nbytes, b2 = (double)large->decoded_nbytes;
    const double t1 = of_small / n1, t2 = of_large / n2;
    *byte = b2 > b1 ? (t2 - t1) / (b2 - b1) : t2 / b2;
    *byte = *byte > 0.1 * t2 / b2 ? *byte : 0.1 * t2 / b2;
    *each = t1 - *byte * b1 > 0 ? t1 - *byte * b1 : 0;
}

typedef struct work {
    coded small, large;
    cm_codec_ctx *ctx;
    uint8_t *elements, *piece;
} work;

/* Chunks of both sizes, of elements from all over the array. */
static int encode(work *w, cm_array *a, uint64_t places, cm_error *err)
{
    const uint64_t start = cm_now_ns();
    int rc = CM_OK;
    for (uint64_t i = 0; i < places && rc == CM_OK; i++) {
        cm_box box = {.rank = a->rank};
        if (i > 0 && (double)(cm_now_ns() - start) * 1e-9 > MOST_SECONDS)
            break;
        for (unsigned j = 0; j < a->rank; j++) {
            box.shape[j] = w->large.shape[j];
            box.start[j] = (a->shape[j] - box.shape[j]) * i / (PLACES - 1);
        }
        rc = cm_array_read(a, w->ctx, &box, w->elements, err);
        if (rc == CM_OK)
            rc = add(&w->large, w->ctx, w->elements, err);
        if (rc == CM_OK)
            rc = add_pieces(&w->small, &w->large, a->rank, a->dtype.nbytes, w->ctx, w->elements,
                            w->piece, err);
    }
    return rc;
}

static void sum_up(const work *w, cm_codec_costs *out)
{
    fit(&w->small, w->small.seconds, &w->large, w->large.seconds, &out->chunk, &out->byte);
    fit(&w->small, (double)w->small.bytes.nbytes, &w->large, (double)w->large.bytes.nbytes,
        &out->stored, &out->stored_byte);
    out->nchunks = w->small.n + w->large.n;
}

/*
 * Memory needed at once: a source chunk, stored and decoded, and the chunks made of its elements.
 */
static uint64_t count_needs(const work *w, const cm_array *a)
{
    uint64_t source = a->box_nbytes;
    if (a->chunked) {
        const uint64_t decoded = cm_array_decoded_nbytes(a);
        const uint64_t stored = a->max_stored_nbytes > 0 ? a->max_stored_nbytes : decoded;
        source = cm_add_sat(cm_add_sat(decoded, stored), cm_array_decode_memory(a));
    }
    uint64_t made = cm_add_sat(w->large.decoded_nbytes, w->small.decoded_nbytes);
    made = cm_add_sat(made, cm_chain_encode_memory(w->large.chain));
    made = cm_add_sat(made, cm_chain_decode_memory(w->large.chain));
    /* Buffers that grow are there twice while they move. */
    made = cm_add_sat(made, 2 * cm_mul_sat(PLACES, cm_chain_encoded_bound(w->large.chain)));
    made =
        cm_add_sat(made, 2 * cm_mul_sat(PLACES * PIECES, cm_chain_encoded_bound(w->small.chain)));
    return cm_add_sat(source, made);
}

/* Of A's chunks that a box of SHAPE at its beginning meets. */
static uint64_t count_requests(const cm_array *a, const uint64_t *shape)
{
    uint64_t n = 1;
    for (unsigned j = 0; a->chunked && j < a->rank; j++)
        n = cm_mul_sat(n, cm_div_ceil(shape[j], a->grid.chunk[j]));
    return n;
}

/* Both sizes; false: no large one is made of so few requests. */
static int prepare_both(work *w, const cm_array *a, const cm_codec_spec *spec, size_t n,
                        uint64_t requests, bool *fits, cm_error *err)
{
    int rc = CM_OK;
    *fits = false;
    for (uint64_t large = LARGE_NBYTES; large >= LEAST_LARGE && !*fits && rc == CM_OK; large /= 4) {
        cm_chain_free(w->large.chain);
        w->large.chain = NULL;
        rc = prepare(&w->large, a, spec, n, large, a->shape, err);
        *fits = rc == CM_OK && (requests == 0 || count_requests(a, w->large.shape) <= requests);
    }
    return rc == CM_OK && *fits ? prepare(&w->small, a, spec, n, SMALL_NBYTES, w->large.shape, err)
                                : rc;
}

static int measure(work *w, cm_array *a, uint64_t places, cm_error *err)
{
    w->elements = cm_calloc(w->large.decoded_nbytes, 1, err);
    w->piece = cm_calloc(w->small.decoded_nbytes, 1, err);
    int rc = w->elements != NULL && w->piece != NULL ? encode(w, a, places, err) : CM_ENOMEM;
    if (rc == CM_OK)
        rc = time_decoding(&w->small, w->ctx, w->elements, err);
    return rc == CM_OK ? time_decoding(&w->large, w->ctx, w->elements, err) : rc;
}

static void release(work *w)
{
    cm_chain_free(w->small.chain);
    cm_chain_free(w->large.chain);
    cm_buf_release(&w->small.bytes);
    cm_buf_release(&w->large.bytes);
    cm_codec_ctx_free(w->ctx);
    free(w->elements);
    free(w->piece);
}

/* ---- chunks of one shape ------------------------------------------------------------------- */

enum {
    SHAPE_NBYTES = 8 << 20, /* decoded, of all chunks together, but for the least number of them */
    SHAPE_CHUNKS = 4
};

/* Chunk number I of COUNT, anywhere in A but at its edges. */
static void place_chunk(const cm_array *a, const uint64_t *shape, uint64_t i, cm_box *box)
{
    box->rank = a->rank;
    for (unsigned j = a->rank; j-- > 0;) {
        const uint64_t whole = a->shape[j] / shape[j] > 0 ? a->shape[j] / shape[j] : 1;
        const uint64_t at = cm_permute(whole, j + 1, i % whole);
        box->shape[j] = shape[j];
        box->start[j] = at * shape[j];
    }
}

static int encode_shape(work *w, cm_array *a, uint64_t n, cm_error *err)
{
    const uint64_t start = cm_now_ns();
    int rc = CM_OK;
    for (uint64_t i = 0; i < n && rc == CM_OK; i++) {
        cm_box box;
        if (i > 0 && (double)(cm_now_ns() - start) * 1e-9 > MOST_SECONDS)
            break;
        place_chunk(a, w->large.shape, i, &box);
        rc = cm_array_read(a, w->ctx, &box, w->elements, err);
        if (rc == CM_OK)
            rc = add(&w->large, w->ctx, w->elements, err);
    }
    return rc;
}

/* A chunk longer than the array is one of its length, whose rest is fill. */
static bool fits_array(const cm_array *a, const uint64_t *shape, uint64_t *out)
{
    uint64_t nelem = a->dtype.nbytes;
    for (unsigned j = 0; j < a->rank; j++) {
        out[j] = shape[j] < a->shape[j] ? shape[j] : a->shape[j];
        if (out[j] == 0 || !cm_mul_u64(nelem, out[j], &nelem))
            return false;
    }
    return nelem <= MOST_CHUNK && nelem > 0 &&
           (!a->chunked || a->grid.chunk_nelem <= MOST_CHUNK / a->dtype.nbytes);
}

int cm_cost_probe_shape(cm_array *a, const cm_codec_spec *spec, size_t nspec, const uint64_t *shape,
                        uint64_t nbytes, cm_shape_costs *out, cm_error *err)
{
    work w = {.ctx = NULL};
    *out = (cm_shape_costs){.seconds = 0};
    if (!fits_array(a, shape, w.large.shape))
        return CM_OK;
    int rc = (w.ctx = cm_codec_ctx_create(err)) != NULL ? CM_OK : CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_chain_create(spec, nspec, &a->dtype, a->rank, w.large.shape, &w.large.chain, err);
    if (rc == CM_OK)
        rc = cm_chain_can_encode(w.large.chain, err);
    if (rc != CM_OK) {
        release(&w);
        return rc;
    }
    w.large.decoded_nbytes = cm_chain_decoded_nbytes(w.large.chain);
    uint64_t n = SHAPE_NBYTES / w.large.decoded_nbytes;
    n = n < SHAPE_CHUNKS ? SHAPE_CHUNKS : n > PLACES * PIECES ? PLACES * PIECES : n;
    const uint64_t each = cm_chain_encoded_bound(w.large.chain);
    const uint64_t needs =
        cm_add_sat(cm_add_sat(w.large.decoded_nbytes, cm_mul_sat(2 * n, each)),
                   cm_add_sat(cm_chain_encode_memory(w.large.chain), cm_array_decoded_nbytes(a)));
    if (nbytes == 0 || needs <= nbytes) {
        w.elements = cm_calloc(w.large.decoded_nbytes, 1, err);
        rc = w.elements != NULL ? encode_shape(&w, a, n, err) : CM_ENOMEM;
        if (rc == CM_OK)
            rc = time_decoding(&w.large, w.ctx, w.elements, err);
        if (rc == CM_OK && w.large.n > 0)
            *out = (cm_shape_costs){.seconds = w.large.seconds / (double)w.large.n,
                                    .stored = (double)w.large.bytes.nbytes / (double)w.large.n,
                                    .nchunks = w.large.n};
    }
    release(&w);
    return rc;
}

int cm_cost_probe_codec(cm_array *a, const cm_codec_spec *spec, size_t nspec,
                        const cm_cost_limits *limits, cm_codec_costs *out, cm_error *err)
{
    work w = {.ctx = NULL};
    uint64_t nelem;
    bool fits = false;
    *out = (cm_codec_costs){0};
    if (!cm_product_u64(a->rank, a->shape, &nelem) || nelem == 0 || a->dtype.nbytes == 0 ||
        (a->chunked && a->grid.chunk_nelem > MOST_CHUNK / a->dtype.nbytes))
        return CM_OK;
    int rc = (w.ctx = cm_codec_ctx_create(err)) != NULL ? CM_OK : CM_ENOMEM;
    if (rc == CM_OK)
        rc = prepare_both(&w, a, spec, nspec, limits->requests, &fits, err);
    if (rc == CM_OK && fits) {
        out->needs = count_needs(&w, a);
        if (limits->nbytes == 0 || out->needs <= limits->nbytes) {
            rc = measure(&w, a, limits->requests == 0 ? PLACES : 1, err);
            if (rc == CM_OK)
                sum_up(&w, out);
        }
    }
    release(&w);
    return rc;
}
