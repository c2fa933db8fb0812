/*
 * Probes this machine with the array's own chunks: the time to read, decode, encode and write a
 * decoded byte, and to use scratch.
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
    WORTH_NBYTES = 64 << 20    /* a smaller array is done before a plan could pay */
};

typedef struct probe {
    cm_job_var *v;
    cm_codec_ctx *ctx;
    cm_buf stored, decoded, target, encoded;
    uint64_t read_ns, decode_ns, nread; /* decoded bytes */
    uint64_t encode_ns, write_ns, nwritten;
    uint64_t scratch_ns, nscratch;
} probe;

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
    uint64_t fetched = cm_now_ns();
    if (rc != CM_OK || !fetch.present)
        return rc;
    const cm_chain *chain = cm_array_chain(s, fetch.chain);
    rc = cm_chain_decode(chain, p->ctx, p->stored.data, p->stored.nbytes, fetch.skip,
                         p->decoded.data, err);
    p->read_ns += fetched - start;
    p->decode_ns += cm_now_ns() - fetched;
    p->nread += cm_chain_decoded_nbytes(chain);
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
    uint64_t start = cm_now_ns();
    int own = -1, rc = CM_OK;
    if (!cm_chain_is_raw(chain)) {
        rc = cm_chain_encode(chain, p->ctx, p->target.data, p->encoded.data, &nbytes, err);
        from = &p->encoded;
    }
    uint64_t encoded = cm_now_ns();
    if (rc == CM_OK && fd < 0)
        rc = cm_scratch_open(folder, &own, err);
    if (rc != CM_OK)
        return rc;
    int errnum = cm_fd_write_at(fd < 0 ? own : fd, from->data, nbytes, fd < 0 ? 0 : *at);
    if (own >= 0)
        close(own);
    p->encode_ns += encoded - start;
    p->write_ns += cm_now_ns() - encoded;
    p->nwritten += p->target.nbytes;
    *at += nbytes;
    return errnum == 0 ? CM_OK : cm_fail_errno(err, errnum, "cannot write to the scratch file");
}

/* As many target chunks as give a rate, and as many bytes of scratch behind them. */
static int write_chunks(probe *p, const char *folder, int fd, cm_error *err)
{
    const bool shards = cm_transfer_has_shards(&p->v->move.transfer);
    uint64_t at = 0;
    int rc = CM_OK;
    fill_target(p);
    do
        rc = write_chunk(p, folder, shards ? fd : -1, &at, err);
    while (rc == CM_OK && p->nwritten < WRITE_NBYTES && p->encode_ns + p->write_ns < MAX_NS);
    uint64_t start = cm_now_ns();
    for (; rc == CM_OK && p->nscratch < p->nwritten;
         p->nscratch += p->target.nbytes, at += p->target.nbytes) {
        int errnum = cm_fd_write_at(fd, p->target.data, p->target.nbytes, at);
        if (errnum != 0)
            rc = cm_fail_errno(err, errnum, "cannot write to the scratch file");
    }
    p->scratch_ns = cm_now_ns() - start;
    return rc;
}

static double rate(uint64_t nbytes, uint64_t ns)
{
    return (double)nbytes / ((double)(ns > 0 ? ns : 1) * 1e-9);
}

static void keep(cm_job *job, const probe *p)
{
    job->speed.read = rate(p->nread, p->read_ns);
    job->speed.decode = rate(p->nread, p->decode_ns);
    job->speed.encode = rate(p->nwritten, p->encode_ns);
    job->speed.write = rate(p->nwritten, p->write_ns);
    job->speed.scratch = rate(p->nscratch, p->scratch_ns);
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
        if (p->read_ns + p->decode_ns > MAX_NS)
            break;
        if (pick(p->v, i, &number))
            rc = read_chunk(p, number, NULL);
    }
    if (rc == CM_OK && p->nread > 0)
        rc = write_chunks(p, folder, fd, NULL);
    if (fd >= 0)
        close(fd);
    return rc == CM_OK && p->nread > 0;
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
