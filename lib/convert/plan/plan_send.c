#include "convert/plan/plan_send.h"

#include "base/budget.h"
#include "base/cpu.h"

enum {
    REMOTE_THREADS = 16, /* at least, behind a network */
    SENDING_THREADS = 4, /* where the store sends what they write, while they go on */
    LONG_SHARD =
        64 << 20,        /* decoded bytes; shorter ones are one request, for which a thread waits */
    AHEAD_PIECES = 8,    /* under way; of 16 MiB about what fills 10 Gb/s at 0.1 s each */
    RESERVED_PIECES = 4, /* of them, in the plan */
    SHARE = 4,           /* of the memory, for those, or for chunks */
    CHUNKS = 16,         /* under way or in line */
    LEAST_CHUNKS = 2,    /* of each worker */
    CHUNKS_NBYTES = 128 << 20
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
    return v->move.writer != NULL && cm_zarr_writer_target(v->move.writer)->shard_nbytes > 0;
}

/*
 * Whether threads are for computing alone: nearly all bytes come from local storage, and are sent
 * while the threads that made them go on.  *long_ones: some go into long shards.
 */
static bool sends_most(const cm_job *job, const cm_store *store, bool *long_ones)
{
    double all = 0, sent = 0;
    cm_store *from = cm_dataset_store(job->source);
    *long_ones = false;
    if (cm_store_piece_nbytes(store) == 0 || (from != NULL && cm_store_is_remote(from)))
        return false;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (v->move.writer == NULL || v->view.as_strings)
            continue;
        const cm_target *t = cm_zarr_writer_target(v->move.writer);
        double nbytes = v->view.type.nbytes;
        for (unsigned j = 0; j < v->view.rank; j++)
            nbytes *= (double)v->view.shape[j];
        bool is_long =
            is_sharded(v) && (double)t->outer.chunk_nelem * v->view.type.nbytes >= LONG_SHARD;
        all += nbytes;
        sent += is_long || t->sends ? nbytes : 0;
        *long_ones = *long_ones || is_long;
    }
    return sent > 0.9 * all;
}

unsigned cm_send_threads(const cm_job *job, const cm_store *store)
{
    unsigned n = cm_job_threads(job), cpus = cm_cpu_count();
    bool long_ones;
    if (job->options->nthreads > 0 || !sends_most(job, store, &long_ones))
        return n;
    return cpus > SENDING_THREADS || !long_ones ? cpus : SENDING_THREADS;
}

/* ---- memory ---- */

static bool sends_pieces(const cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (job->var[i].stored.as_objects || is_sharded(&job->var[i]))
            return true;
    return false;
}

bool cm_send_try(cm_job *job, cm_store *store, unsigned i)
{
    cm_budget *b = &job->budget;
    b->sending = (cm_store_limits){i, SIZE_MAX, SIZE_MAX};
    cm_store_limit(store, &b->sending);
    for (size_t k = 0; k < job->nvars; k++)
        if (job->var[k].move.writer != NULL)
            cm_zarr_writer_measure(job->var[k].move.writer);
    b->put_nbytes = cm_store_put_nbytes(store);
    b->piece_nbytes = b->put_nbytes > 0 || sends_pieces(job) ? cm_store_piece_nbytes(store) : 0;
    b->last_pieces = b->piece_nbytes == 0 || i + 1 == CM_STORE_PIECES;
    b->sending.ahead_nbytes = 0;
    if (b->piece_nbytes == 0)
        return true;
    uint64_t free = cm_budget_free(b);
    uint64_t n = free / SHARE / b->piece_nbytes;
    if (n < 2 && !b->last_pieces)
        return false;
    n = n < 1 ? 1 : n > RESERVED_PIECES ? RESERVED_PIECES : n;
    b->sending.ahead_nbytes = (size_t)n * b->piece_nbytes;
    b->held_nbytes += b->sending.ahead_nbytes;
    return true;
}

unsigned cm_send_chunks(const cm_job *job, unsigned nthreads, const cm_worker_need *need,
                        size_t free)
{
    size_t one = cm_worker_sent_nbytes(need);
    one = one > need->sent_slot ? one : need->sent_slot;
    if (one == 0)
        return 0;
    one += job->budget.request_nbytes;
    size_t n = CHUNKS_NBYTES / one;
    n = (n < CHUNKS ? n : CHUNKS) / nthreads;
    n = n < LEAST_CHUNKS ? LEAST_CHUNKS : n;
    size_t room = free / SHARE / nthreads / one;
    return (unsigned)(n < room ? n : room);
}

size_t cm_send_worker_nbytes(const cm_job *job, const cm_worker_need *need, unsigned ahead)
{
    return cm_worker_need_nbytes(need) + CM_BUDGET_PER_THREAD + job->budget.request_nbytes +
           job->budget.put_nbytes +
           ahead * (cm_worker_sent_nbytes(need) + job->budget.request_nbytes);
}

size_t cm_send_slots_nbytes(const cm_job_var *v, unsigned ahead)
{
    cm_worker_need need = {0};
    cm_transfer_worker_need(&v->move.transfer, 0, &need);
    return cm_transfer_slot_nbytes(&v->move.transfer) + ahead * need.sent_slot;
}

size_t cm_send_ahead(const cm_job *job)
{
    return AHEAD_PIECES * job->budget.piece_nbytes - job->budget.sending.ahead_nbytes;
}

void cm_send_limit(cm_job *job, cm_store *store)
{
    size_t shards = job->budget.sent_nbytes + job->budget.nthreads * job->budget.put_nbytes;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (!v->view.as_strings || v->move.writer == NULL)
            continue;
        const cm_target *t = cm_zarr_writer_target(v->move.writer); /* strings.c counts one */
        shards = t->sent_nbytes > shards ? t->sent_nbytes : shards;
    }
    job->budget.sending.ahead_nbytes += job->budget.ahead_nbytes;
    job->budget.sending.most_nbytes = shards + job->budget.sending.ahead_nbytes;
    cm_store_limit(store, &job->budget.sending);
}
