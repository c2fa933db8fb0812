#include "job/transform/plan_send.h"

#include "base/cpu.h"

enum {
    REMOTE_THREADS = 16, /* at least, behind a network */
    SENDING_THREADS = 4, /* where the store sends what they write, while they go on */
    LONG_SHARD =
        64 << 20,        /* decoded bytes; shorter ones are one request, for which a thread waits */
    AHEAD_PIECES = 8,    /* under way; of 16 MiB about what fills 10 Gb/s at 0.1 s each */
    RESERVED_PIECES = 4, /* of them, in the plan */
    SHARE = 4            /* of the memory, for those */
};

/* ---- threads ---- */

/* Behind a network a thread waits most of its time: more of them ask for more at once. */
unsigned cm_job_threads(const cm_job *job)
{
    unsigned n = cm_cpu_count();
    if (job->options->nthreads > 0)
        return job->options->nthreads;
    return job->options->net != NULL && n < REMOTE_THREADS ? REMOTE_THREADS : n;
}

static bool is_sharded(const cm_job_var *v)
{
    return v->writer != NULL && cm_zarr_writer_target(v->writer)->shard_nbytes > 0;
}

/* Nearly all bytes go into long shards, from what is here. */
static bool sends_long(const cm_job *job, const cm_store *store)
{
    double all = 0, in_long = 0;
    cm_store *from = cm_dataset_store(job->source);
    if (cm_store_piece_nbytes(store) == 0 || (from != NULL && cm_store_is_remote(from)))
        return false;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (v->writer == NULL || v->as_strings)
            continue;
        const cm_target *t = cm_zarr_writer_target(v->writer);
        double nbytes = v->type.nbytes;
        for (unsigned j = 0; j < v->rank; j++)
            nbytes *= (double)v->shape[j];
        all += nbytes;
        if (is_sharded(v) && (double)t->outer.chunk_nelem * v->type.nbytes >= LONG_SHARD)
            in_long += nbytes;
    }
    return in_long > 0.9 * all;
}

unsigned cm_send_threads(const cm_job *job, const cm_store *store)
{
    unsigned n = cm_job_threads(job), cpus = cm_cpu_count();
    if (job->options->nthreads > 0 || !sends_long(job, store))
        return n;
    return cpus > SENDING_THREADS ? cpus : SENDING_THREADS;
}

/* ---- memory ---- */

static bool sends_pieces(const cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (job->var[i].as_objects || is_sharded(&job->var[i]))
            return true;
    return false;
}

bool cm_send_try(cm_job *job, cm_store *store, unsigned i)
{
    job->sending = (cm_store_sending){i, SIZE_MAX, SIZE_MAX};
    cm_store_send(store, &job->sending);
    for (size_t k = 0; k < job->nvars; k++)
        if (job->var[k].writer != NULL)
            cm_zarr_writer_measure(job->var[k].writer);
    job->piece_nbytes = sends_pieces(job) ? cm_store_piece_nbytes(store) : 0;
    job->last_pieces = job->piece_nbytes == 0 || i + 1 == CM_STORE_PIECES;
    job->sending.ahead_nbytes = 0;
    if (job->piece_nbytes == 0)
        return true;
    uint64_t free = job->memory_limit > job->held ? job->memory_limit - job->held : 0;
    uint64_t n = free / SHARE / job->piece_nbytes;
    if (n < 2 && !job->last_pieces)
        return false;
    n = n < 1 ? 1 : n > RESERVED_PIECES ? RESERVED_PIECES : n;
    job->sending.ahead_nbytes = (size_t)n * job->piece_nbytes;
    job->held += job->sending.ahead_nbytes;
    return true;
}

size_t cm_send_ahead(const cm_job *job)
{
    return AHEAD_PIECES * job->piece_nbytes - job->sending.ahead_nbytes;
}

void cm_send_limit(cm_job *job, cm_store *store)
{
    size_t shards = job->sent_nbytes;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (!v->as_strings || v->writer == NULL)
            continue;
        const cm_target *t = cm_zarr_writer_target(v->writer); /* strings.c counts one */
        shards = t->sent_nbytes > shards ? t->sent_nbytes : shards;
    }
    job->sending.ahead_nbytes += job->ahead_nbytes;
    job->sending.most_nbytes = shards + job->sending.ahead_nbytes;
    cm_store_send(store, &job->sending);
}
