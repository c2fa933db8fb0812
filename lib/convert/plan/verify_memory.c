#include "convert/plan/verify_memory.h"

#include "base/budget.h"
#include "digest/pairs.h"

enum {
    MIN_SHARE = 1 << 20 /* of one thread's boxes */
};

static double itemsize_of(const cm_job_var *v)
{
    return v->view.as_strings ? CM_STRING_ESTIMATE : v->source->dtype.nbytes;
}

/* Bytes that a thread holds while it reads from the store, whatever the box. */
static double reader_nbytes(const cm_job_var *v, const cm_chain *chain, uint64_t chunk_nelem)
{
    if (chain == NULL || v->view.as_strings)
        return (double)chunk_nelem * itemsize_of(v);
    double stored = (double)cm_chain_encoded_bound(chain);
    if (cm_chain_is_raw(chain))
        return stored;
    return stored + (double)cm_chain_decoded_nbytes(chain) + (double)cm_chain_decode_memory(chain);
}

/* Bytes that libnetcdf holds, in one thread at a time: a chunk, stored and decoded. */
static double library_nbytes(const cm_job_var *v)
{
    double nbytes = 2 * itemsize_of(v);
    for (unsigned j = 0; j < v->source->rank; j++)
        nbytes *= v->source->has_source_chunks ? (double)v->source->source_chunk[j] : 1;
    return nbytes;
}

void cm_verify_memory_add(cm_verify_memory *m, const cm_job_var *v, const cm_chain *chain,
                          uint64_t chunk_nelem)
{
    double reader = reader_nbytes(v, chain, chunk_nelem), library = library_nbytes(v);
    m->reader = reader > m->reader ? reader : m->reader;
    m->library = library > m->library ? library : m->library;
}

static double least_share(const cm_verify_memory *m)
{
    return m->reader / 16 > MIN_SHARE ? m->reader / 16 : MIN_SHARE;
}

static double thread_nbytes(const cm_verify_memory *m)
{
    return m->reader + CM_BUDGET_PER_THREAD;
}

double cm_verify_memory_least(const cm_verify_memory *m, unsigned n)
{
    return (double)m->held + m->library + n * (thread_nbytes(m) + least_share(m));
}

unsigned cm_verify_memory_threads(const cm_verify_memory *m, uint64_t limit, unsigned most,
                                  double *share)
{
    unsigned n = most;
    while (n > 0 && cm_verify_memory_least(m, n) > (double)limit)
        n--;
    if (n > 0)
        *share = ((double)limit - (double)m->held - m->library) / n - thread_nbytes(m);
    return n;
}

/* ---- before the run ---- */

bool cm_job_compares_digests(const cm_job *job)
{
    bool all =
        job->source->kind == CM_DATASET_ZARR && job->terms.against == NULL && !job->terms.in_part;
    for (size_t i = 0; all && i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        all = v->stored.as_objects ||
              (v->source->words != NULL && v->view.whole && !v->view.converts && !v->view.join);
    }
    return all;
}

static size_t least_for_digests(const cm_job *job)
{
    size_t most = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (v->move.writer == NULL || v->view.as_strings)
            continue;
        size_t before = cm_pairs_digest_nbytes(v->source->array->chain);
        size_t after = cm_pairs_digest_nbytes(cm_zarr_writer_chain(v->move.writer));
        most = before > most ? before : most;
        most = after > most ? after : most;
    }
    return most + CM_BUDGET_PER_THREAD;
}

size_t cm_job_least_to_verify(const cm_job *job)
{
    const cm_transform_options *o = job->options;
    cm_verify_memory memory = {0};
    if (o->verify == CM_VERIFY_NONE || job->terms.against != NULL)
        return 0;
    if (cm_job_compares_digests(job))
        return o->verify == CM_VERIFY_FULL ? least_for_digests(job) : 0;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_zarr_writer *w = job->var[i].move.writer;
        if (w != NULL)
            cm_verify_memory_add(&memory, &job->var[i], cm_zarr_writer_chain(w),
                                 cm_zarr_writer_grid(w)->chunk_nelem);
    }
    return (size_t)cm_verify_memory_least(&memory, 1);
}
