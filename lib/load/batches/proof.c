#include "load/batches/proof.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "codec/checksum.h"

enum {
    AT_ONCE = 16,
    GROUP_NBYTES = 8 << 20
};

typedef struct job {
    const cm_proof_options *options;
    cm_proof *proof;
    _Atomic size_t next; /* chunk, counted over all arrays */
    _Atomic bool stop;
    size_t nchunks;
    pthread_mutex_t lock; /* guards the rest, and what the proof says of all chunks */
    int status;
    cm_error err;
} job;

/* One thread. */
typedef struct prover {
    job *j;
    cm_codec_ctx *ctx;
    cm_fetch_many many;
    cm_chunk_streams split;
    cm_buf decoded;
    cm_proof sum;        /* counts of its own, */
    cm_split_most *most; /* and the most of each array */
} prover;

int cm_proof_check(const cm_array *a, cm_error *err)
{
    int rc = CM_OK;
    if (!a->chunked)
        rc = cm_fail(err, CM_EUNSUPPORTED, "it has no chunks");
    else if (cm_array_is_cut(a) || a->max_decoded_nbytes != 0)
        rc = cm_fail(err, CM_EUNSUPPORTED, "its chunks are not all stored in one way");
    else
        rc = cm_chain_can_split(a->chain, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "array %s", cm_array_label(a));
    return rc;
}

/* ---- one chunk ---- */

static void keep_most(cm_split_most *to, const cm_split_most *from)
{
#define KEEP(member) to->member = from->member > to->member ? from->member : to->member
    KEEP(stored_nbytes);
    KEEP(all_streams);
    KEEP(nblocks);
    for (int k = 0; k < CM_SPLIT_NKINDS; k++) {
        KEEP(nstreams[k]);
        KEEP(stream_nbytes[k]);
    }
#undef KEEP
}

static void describe(const cm_chunk_streams *s, size_t stored_nbytes, cm_split_most *out)
{
    *out = (cm_split_most){
        .stored_nbytes = stored_nbytes,
        .all_streams = s->nstreams,
        .nblocks = s->typesize > 1 ? (s->nbytes + s->block_nbytes - 1) / s->block_nbytes : 0};
    for (size_t i = 0; i < s->nstreams; i++) {
        const cm_split_stream *t = &s->stream[i];
        out->nstreams[t->kind]++;
        if (t->dst_nbytes > out->stream_nbytes[t->kind])
            out->stream_nbytes[t->kind] = t->dst_nbytes;
    }
}

static int refuse(const prover *p, const cm_array *a, uint64_t number, cm_error *err)
{
    cm_grid_explain(&a->grid, number, "array", a->name, err);
    cm_error_place(err, a->place);
    cm_error_place(err, p->j->options->store);
    if (err->status == CM_EFORMAT) /* the host decodes it */
        err->status = CM_EUNSUPPORTED;
    return err->status;
}

/* What was fetched: decoded, and what is to be known of it kept in CHUNK. */
static int prove(prover *p, size_t array, cm_array *a, const cm_fetch_item *item,
                 cm_proof_chunk *chunk, cm_error *err)
{
    cm_split_most one;
    cm_error ignored;
    if (!item->present) {
        chunk->state = CM_PROOF_MISSING;
        p->sum.nmissing++;
        return CM_OK;
    }
    const uint64_t start = cm_now_ns();
    int rc = cm_chain_decode(a->chain, p->ctx, item->data, item->nbytes, item->skip,
                             p->decoded.data, &ignored);
    const uint64_t end = cm_now_ns();
    if (rc == CM_ENOMEM) {
        *err = ignored;
        return rc;
    }
    if (rc != CM_OK) {
        chunk->state = CM_PROOF_DAMAGED;
        p->sum.ndamaged++;
        return CM_OK;
    }
    rc = cm_chain_split(a->chain, item->data, item->nbytes, item->skip, &p->split, err);
    if (rc != CM_OK)
        return rc == CM_ENOMEM ? rc : refuse(p, a, chunk->number, err);
    chunk->crc32c = cm_crc32c(cm_cpu_simd(), item->data, item->nbytes);
    chunk->state = CM_PROOF_WHOLE;
    describe(&p->split, item->nbytes, &one);
    keep_most(&p->most[array], &one);
    p->sum.nwhole++;
    p->sum.stored_nbytes += item->nbytes;
    p->sum.decoded_nbytes += cm_chain_decoded_nbytes(a->chain);
    p->sum.decode_ns += end - start;
    return CM_OK;
}

/* Chunks [0, N) of array number ARRAY; those that cannot be read together are read one by one. */
static int prove_some(prover *p, size_t array, cm_proof_chunk *chunk, size_t n, cm_error *err)
{
    cm_array *a = p->j->options->array[array];
    cm_fetch_item item[AT_ONCE] = {0};
    cm_error ignored;
    for (size_t i = 0; i < n; i++)
        item[i].number = chunk[i].number;
    p->many.item = item;
    p->many.n = n;
    int rc = cm_array_fetch_many(a, &p->many, &ignored);
    if (rc != CM_OK && n > 1) {
        for (size_t i = 0; i < n; i++)
            if ((rc = prove_some(p, array, &chunk[i], 1, err)) != CM_OK)
                return rc;
        return CM_OK;
    }
    if (rc != CM_OK) { /* its batch will say why */
        chunk->state = CM_PROOF_DAMAGED;
        p->sum.ndamaged++;
        return CM_OK;
    }
    rc = cm_buf_reserve(&p->decoded, cm_chain_decoded_nbytes(a->chain), err);
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        rc = prove(p, array, a, &item[i], &chunk[i], err);
    return rc;
}

/* ---- all of them ---- */

/* Chunks that are fetched at once. */
static size_t group_of(const cm_array *a)
{
    const size_t each = a->max_stored_nbytes ? a->max_stored_nbytes : GROUP_NBYTES;
    const size_t n = GROUP_NBYTES / each;
    return n < 1 ? 1 : n > AT_ONCE ? AT_ONCE : n;
}

/* Of the chunks from AT on, those of one array. */
static int prove_from(prover *p, size_t at, size_t *n, cm_error *err)
{
    cm_proof *proof = p->j->proof;
    size_t i = 0;
    while (at >= proof->array[i].nchunks)
        at -= proof->array[i++].nchunks;
    const size_t left = proof->array[i].nchunks - at;
    const size_t group = group_of(p->j->options->array[i]);
    *n = *n < left ? *n : left;
    for (size_t done = 0; done < *n; done += group) {
        const size_t now = *n - done < group ? *n - done : group;
        int rc = prove_some(p, i, &proof->array[i].chunk[at + done], now, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

static void add_up(prover *p, int rc, const cm_error *err)
{
    job *j = p->j;
    cm_proof *all = j->proof;
    pthread_mutex_lock(&j->lock);
    all->nwhole += p->sum.nwhole;
    all->nmissing += p->sum.nmissing;
    all->ndamaged += p->sum.ndamaged;
    all->stored_nbytes += p->sum.stored_nbytes;
    all->decoded_nbytes += p->sum.decoded_nbytes;
    all->decode_ns += p->sum.decode_ns;
    for (size_t i = 0; i < all->narrays && p->most != NULL; i++)
        keep_most(&all->array[i].most, &p->most[i]);
    if (rc != CM_OK && j->status == CM_OK) {
        j->status = rc;
        j->err = *err;
    }
    pthread_mutex_unlock(&j->lock);
}

static void run(void *context, unsigned worker)
{
    (void)worker;
    job *j = context;
    const cm_proof_options *o = j->options;
    prover p = {.j = j};
    cm_error err = {0};
    p.ctx = cm_codec_ctx_create(&err);
    p.most = cm_calloc(o->narrays + 1, sizeof *p.most, &err);
    int rc = p.ctx != NULL && p.most != NULL ? CM_OK : CM_ENOMEM;
    for (size_t at; rc == CM_OK && (at = atomic_fetch_add(&j->next, AT_ONCE)) < j->nchunks;) {
        const size_t end = at + AT_ONCE < j->nchunks ? at + AT_ONCE : j->nchunks;
        for (size_t n; at < end && rc == CM_OK; at += n) {
            n = end - at;
            rc = prove_from(&p, at, &n, &err);
        }
        if (rc == CM_OK && o->canceled != NULL && o->canceled(o->context))
            rc = cm_fail(&err, CM_ECANCELED, "stopped while chunks were decoded for their proof");
        if (atomic_load(&j->stop))
            break;
    }
    if (rc != CM_OK)
        atomic_store(&j->stop, true);
    add_up(&p, rc, &err);
    cm_codec_ctx_free(p.ctx);
    cm_fetch_many_release(&p.many);
    cm_chunk_streams_release(&p.split);
    cm_buf_release(&p.decoded);
    free(p.most);
}

static int list_chunks(const cm_proof_options *o, cm_proof *proof, size_t *n, cm_error *err)
{
    proof->array = cm_calloc(o->narrays + 1, sizeof *proof->array, err);
    if (proof->array == NULL)
        return CM_ENOMEM;
    proof->narrays = o->narrays;
    for (size_t i = 0; i < o->narrays; i++) {
        const uint64_t *bits = o->wanted[i];
        const uint64_t nwords = bits != NULL ? (o->array[i]->grid.nchunks + 63) / 64 : 0;
        cm_proof_array *a = &proof->array[i];
        size_t count = 0;
        for (uint64_t w = 0; w < nwords; w++)
            count += (size_t)__builtin_popcountll(bits[w]);
        if ((a->chunk = cm_calloc(count + 1, sizeof *a->chunk, err)) == NULL)
            return CM_ENOMEM;
        for (uint64_t w = 0; w < nwords; w++)
            for (uint64_t left = bits[w]; left != 0; left &= left - 1)
                a->chunk[a->nchunks++].number = 64 * w + (unsigned)__builtin_ctzll(left);
        *n += a->nchunks;
    }
    return CM_OK;
}

int cm_proof_make(const cm_proof_options *o, cm_proof **out, cm_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < o->narrays; i++) {
        int rc = o->wanted[i] != NULL ? cm_proof_check(o->array[i], err) : CM_OK;
        if (rc != CM_OK)
            return rc;
    }
    cm_proof *proof = cm_calloc(1, sizeof *proof, err);
    if (proof == NULL)
        return CM_ENOMEM;
    job j = {.options = o, .proof = proof};
    int rc = list_chunks(o, proof, &j.nchunks, err);
    if (rc == CM_OK) {
        proof->nthreads = o->nthreads < 1 ? 1 : o->nthreads;
        pthread_mutex_init(&j.lock, NULL);
        cm_threads_run(proof->nthreads, run, &j);
        pthread_mutex_destroy(&j.lock);
        rc = j.status;
        if (rc != CM_OK && err != NULL)
            *err = j.err;
    }
    if (rc != CM_OK) {
        cm_proof_free(proof);
        return rc;
    }
    *out = proof;
    return CM_OK;
}

void cm_proof_free(cm_proof *proof)
{
    if (proof == NULL)
        return;
    for (size_t i = 0; i < proof->narrays; i++) {
        free(proof->array[i].chunk);
        free(proof->array[i].met);
    }
    free(proof->array);
    free(proof);
}

/* ---- as they are met ---- */

#define IS_KNOWN (UINT64_C(1) << 32) /* above the checksum */

uint64_t cm_proof_nbytes(uint64_t nchunks)
{
    return nchunks * sizeof(uint64_t);
}

int cm_proof_begin(cm_array *const *array, size_t narrays, cm_proof **out, cm_error *err)
{
    cm_proof *proof = cm_calloc(1, sizeof *proof, err);
    *out = NULL;
    if (proof == NULL)
        return CM_ENOMEM;
    proof->as_met = true;
    proof->array = cm_calloc(narrays + 1, sizeof *proof->array, err);
    int rc = proof->array != NULL ? CM_OK : CM_ENOMEM;
    for (; rc == CM_OK && proof->narrays < narrays; proof->narrays++) {
        const cm_array *a = array[proof->narrays];
        cm_proof_array *p = &proof->array[proof->narrays];
        if (a == NULL)
            continue;
        if ((rc = cm_proof_check(a, err)) != CM_OK)
            break;
        cm_chain_split_most(a->chain, &p->most);
        if (a->max_stored_nbytes != 0 && a->max_stored_nbytes < p->most.stored_nbytes)
            p->most.stored_nbytes = a->max_stored_nbytes;
        p->nchunks = a->grid.nchunks;
        p->met = cm_calloc(p->nchunks + 1, sizeof *p->met, err);
        rc = p->met != NULL ? CM_OK : CM_ENOMEM;
    }
    if (rc != CM_OK) {
        cm_proof_free(proof);
        return rc;
    }
    *out = proof;
    return CM_OK;
}

void cm_proof_keep(cm_proof_array *array, uint64_t number, uint32_t crc32c)
{
    atomic_store_explicit(&array->met[number], IS_KNOWN | crc32c, memory_order_relaxed);
}

static const cm_proof_chunk *search(const cm_proof_array *array, uint64_t number)
{
    size_t from = 0, to = array->nchunks;
    while (from < to) {
        const size_t at = from + (to - from) / 2;
        if (array->chunk[at].number == number)
            return &array->chunk[at];
        if (array->chunk[at].number < number)
            from = at + 1;
        else
            to = at;
    }
    return NULL;
}

bool cm_proof_find(const cm_proof_array *array, uint64_t number, cm_proof_chunk *out)
{
    if (array->met != NULL) {
        const uint64_t met = atomic_load_explicit(&array->met[number], memory_order_relaxed);
        *out = (cm_proof_chunk){number, (uint32_t)met, CM_PROOF_WHOLE};
        return met != 0;
    }
    const cm_proof_chunk *found = search(array, number);
    if (found != NULL)
        *out = *found;
    return found != NULL;
}
