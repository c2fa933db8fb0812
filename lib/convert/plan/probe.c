/*
 * Probes this machine with the array's own chunks: the time to read, decode, encode and write a
 * decoded byte, and to use scratch.
 *
 * Each rate is the median of several, and codecs are timed by their CPU time: another process, or a
 * cold file, that holds one of them up does not lead to another plan.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/scratch.h"
#include "convert/job.h"

enum {
    MAX_CHUNKS = 8,
    MAX_NS = 25 * 1000 * 1000, /* of reading, and of writing */
    WRITE_NBYTES = 4 << 20,    /* one small write tells of a cold file, and of no rate */
    STEP_NBYTES = WRITE_NBYTES / MAX_CHUNKS,
    WORTH_NBYTES = 64 << 20 /* a smaller array is done before a plan could pay */
};

/* Rates of one kind, in bytes a second; of the one that is being measured, its bytes and time. */
typedef struct series {
    double rate[MAX_CHUNKS];
    unsigned n;
    uint64_t nbytes, ns;
} series;

typedef struct probe {
    cm_job_var *v;
    cm_codec_ctx *ctx;
    cm_buf stored, decoded, target, encoded;
    series read, decode, encode, write, scratch; /* of decoded bytes */
    uint64_t read_ns, write_ns;                  /* with decoding, with encoding */
} probe;

/* NBYTES took NS; a rate is that of STEP bytes or more. */
static void note(series *s, uint64_t nbytes, uint64_t ns, uint64_t step)
{
    s->nbytes += nbytes;
    s->ns += ns;
    if (s->nbytes < step || s->n == MAX_CHUNKS)
        return;
    s->rate[s->n++] = (double)s->nbytes / ((double)(s->ns > 0 ? s->ns : 1) * 1e-9);
    s->nbytes = s->ns = 0;
}

static int compare_rates(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

static double median(series *s)
{
    if (s->n == 0) /* less than a step took all the time there was */
        note(s, 0, 0, 0);
    qsort(s->rate, s->n, sizeof(s->rate[0]), compare_rates);
    return s->rate[s->n / 2];
}

/* The I-th chunk to probe: present ones, spread over the array. */
static bool pick(const cm_job_var *v, uint64_t i, uint64_t *number)
{
    uint64_t n = v->stored.presence.nchunks;
    uint64_t from = (uint64_t)((unsigned __int128)n * i / MAX_CHUNKS);
    uint64_t to = (uint64_t)((unsigned __int128)n * (i + 1) / MAX_CHUNKS);
    for (*number = from; *number < to; ++*number)
        if (v->stored.presence.bit[*number / 64] >> *number % 64 & 1)
            return true;
    return false;
}

static int read_chunk(probe *p, uint64_t number, cm_error *err)
{
    cm_array *s = p->v->source->array;
    cm_fetch fetch = {0};
    uint64_t start = cm_now_ns();
    int rc = s->ops->fetch(s, number, &p->stored, &fetch, err);
    uint64_t fetched = cm_now_ns(), busy = cm_thread_cpu_ns();
    if (rc != CM_OK || !fetch.present)
        return rc;
    const cm_chain *chain = cm_array_chain(s, fetch.chain);
    rc = cm_chain_decode(chain, p->ctx, p->stored.data, p->stored.nbytes, fetch.skip,
                         p->decoded.data, err);
    uint64_t end = cm_now_ns(), nbytes = cm_chain_decoded_nbytes(chain);
    note(&p->read, nbytes, fetched - start, nbytes);
    note(&p->decode, nbytes, cm_thread_cpu_ns() - busy, nbytes);
    p->read_ns += end - start;
    return rc;
}

/* Fills a target chunk with the array's own values. */
static void fill_target(probe *p)
{
    for (size_t at = 0; at < p->target.nbytes; at += p->decoded.nbytes) {
        size_t rest = p->target.nbytes - at;
        memcpy(p->target.data + at, p->decoded.data,
               rest < p->decoded.nbytes ? rest : p->decoded.nbytes);
    }
}

/*
 * A target chunk, encoded and written where scratch goes: to AT of FD, as into a shard, or, FD
 * being -1, into a file of its own.  *AT is increased by what was written.
 */
static int write_chunk(probe *p, const char *folder, int fd, uint64_t *at, cm_error *err)
{
    const cm_chain *chain = cm_zarr_writer_chain(p->v->move.writer);
    size_t nbytes = p->target.nbytes;
    const cm_buf *from = &p->target;
    uint64_t start = cm_now_ns(), busy = cm_thread_cpu_ns();
    int own = -1, rc = CM_OK;
    if (!cm_chain_is_raw(chain)) {
        rc = cm_chain_encode(chain, p->ctx, p->target.data, p->encoded.data, &nbytes, err);
        from = &p->encoded;
    }
    uint64_t encoded = cm_now_ns();
    busy = cm_thread_cpu_ns() - busy;
    if (rc == CM_OK && fd < 0)
        rc = cm_scratch_open(folder, &own, err);
    if (rc != CM_OK)
        return rc;
    int errnum = cm_fd_write_at(fd < 0 ? own : fd, from->data, nbytes, fd < 0 ? 0 : *at);
    if (own >= 0)
        close(own);
    uint64_t end = cm_now_ns();
    note(&p->encode, p->target.nbytes, busy, STEP_NBYTES);
    note(&p->write, p->target.nbytes, end - encoded, STEP_NBYTES);
    p->write_ns += end - start;
    *at += nbytes;
    return errnum == 0 ? CM_OK : cm_fail_errno(err, errnum, "cannot write to the scratch file");
}

/* As many target chunks as give a rate, and as many bytes of scratch behind them. */
static int write_chunks(probe *p, const char *folder, int fd, cm_error *err)
{
    const bool shards = cm_transfer_has_shards(&p->v->move.transfer);
    uint64_t at = 0, nwritten = 0, nscratch = 0;
    int rc = CM_OK;
    fill_target(p);
    for (; rc == CM_OK && nwritten < WRITE_NBYTES && p->write_ns < MAX_NS;
         nwritten += p->target.nbytes)
        rc = write_chunk(p, folder, shards ? fd : -1, &at, err);
    for (; rc == CM_OK && nscratch < nwritten;
         nscratch += p->target.nbytes, at += p->target.nbytes) {
        uint64_t start = cm_now_ns();
        int errnum = cm_fd_write_at(fd, p->target.data, p->target.nbytes, at);
        note(&p->scratch, p->target.nbytes, cm_now_ns() - start, STEP_NBYTES);
        if (errnum != 0)
            rc = cm_fail_errno(err, errnum, "cannot write to the scratch file");
    }
    return rc;
}

static void keep(cm_job *job, probe *p)
{
    job->speed.read = median(&p->read);
    job->speed.decode = median(&p->decode);
    job->speed.encode = median(&p->encode);
    job->speed.write = median(&p->write);
    job->speed.scratch = median(&p->scratch);
}

static int prepare(probe *p, cm_error *err)
{
    const cm_grid *grid = cm_zarr_writer_grid(p->v->move.writer);
    int rc = (p->ctx = cm_codec_ctx_create(err)) == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = cm_buf_resize(&p->decoded, cm_array_decoded_nbytes(p->v->source->array), err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&p->target, grid->chunk_nelem * p->v->view.type.nbytes, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&p->encoded,
                           cm_chain_encoded_bound(cm_zarr_writer_chain(p->v->move.writer)), err);
    return rc;
}

/*
 * Ignores errors, such as a broken chunk or a full disk: the step that meets them again reports
 * them.
 */
static bool measure(probe *p, const char *folder)
{
    uint64_t number;
    int fd = -1;
    int rc = cm_scratch_open(folder, &fd, NULL);
    for (uint64_t i = 0; rc == CM_OK && i < MAX_CHUNKS; i++) {
        if (p->read_ns > MAX_NS)
            break;
        if (pick(p->v, i, &number))
            rc = read_chunk(p, number, NULL);
    }
    if (rc == CM_OK && p->read.n > 0)
        rc = write_chunks(p, folder, fd, NULL);
    if (fd >= 0)
        close(fd);
    return rc == CM_OK && p->read.n > 0;
}

int cm_job_probe(cm_job *job, cm_job_var *v, const char *folder, cm_error *err)
{
    probe p = {.v = v};
    uint64_t nbytes = v->source->array->grid.chunk_nelem * v->view.type.nbytes;
    if (v->stored.presence.bit == NULL || v->stored.presence.npresent * nbytes < WORTH_NBYTES)
        return CM_OK;
    int rc = prepare(&p, err);
    if (rc == CM_OK && measure(&p, folder))
        keep(job, &p);
    cm_codec_ctx_free(p.ctx);
    cm_buf_release(&p.stored);
    cm_buf_release(&p.decoded);
    cm_buf_release(&p.target);
    cm_buf_release(&p.encoded);
    return rc;
}
