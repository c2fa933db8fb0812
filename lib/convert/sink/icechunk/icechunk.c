/* Chunks that are converted, or passed on, into a repository, and one commit of all of them. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/sink/icechunk/repository.h"
#include "convert/sink/store/store.h"
#include "format/icechunk/session.h"
#include "format/multi/multi.h"
#include "watch/monitor.h"

#define OBJECT_NBYTES (UINT64_C(16) << 20)

typedef struct making {
    cm_repository repository;
    cm_store *session;
    bool done; /* an earlier run has committed */
} making;

/* ---- arrays ---- */

/* Icechunk names chunks by their indices, whatever a document says of keys. */
static int set_keys(cm_job *job, cm_error *err)
{
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        if (v->stored.as_objects)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "%s %s: can only be carried over as it is, and not into a repository "
                           "(%s); leave it out with `exclude`",
                           cm_job_noun(job), cm_job_name(v), v->source->unsupported);
        v->doc.meta.separator = '/';
        v->doc.meta.key_v2 = false;
    }
    return CM_OK;
}

static int add_arrays(cm_job *job, cm_store *session, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        const cm_zarr_meta *m = &job->var[i].doc.meta;
        uint64_t shape[CM_MAX_RANK];
        size_t index;
        for (unsigned j = 0; j < m->rank; j++)
            shape[j] = cm_div_ceil(m->shape[j], m->chunk[j]);
        rc = cm_ice_session_add(session, job->var[i].name, m->rank, shape, &index, err);
    }
    return rc;
}

/* ---- going on ---- */

static bool is_canceled(void *monitor)
{
    return cm_monitor_canceled(monitor);
}

/* Of a chunk that is kept, nobody sees the elements again. */
static int keep_chunks(cm_job_var *v, uint64_t *n, cm_error *err)
{
    cm_zarr_writer *w = v->move.writer;
    uint64_t first, end;
    int rc = CM_OK;
    if (w == NULL || v->move.absent)
        return CM_OK;
    cm_zarr_writer_range(w, &first, &end);
    for (uint64_t i = first; rc == CM_OK && i < end; i++) {
        bool kept;
        rc = cm_zarr_writer_keep(w, i, &kept, err);
        *n += kept;
    }
    return rc;
}

static int resume(making *m, cm_job *job, cm_error *err)
{
    uint64_t nkept = 0, n = 0;
    int rc = cm_ice_session_check(m->session, is_canceled, job->options->monitor, &nkept, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = keep_chunks(&job->var[i], &n, err);
    return rc == CM_OK
               ? cm_job_note(job, err, "resumed: %llu %s done already", (unsigned long long)n,
                             cm_of_count(n, "chunk or shard was", "chunks and shards were"))
               : rc;
}

/* ---- the sink ---- */

static int open_session(making *m, cm_sink *s, cm_job *job, cm_error *err)
{
    const uint64_t most = s->options->object_nbytes;
    int rc = cm_ice_session_open(m->repository.root, &m->repository.journal.records,
                                 most > 0 ? most : OBJECT_NBYTES, &m->session, err);
    if (rc == CM_OK)
        rc = add_arrays(job, m->session, err);
    s->store = m->session;
    return rc;
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    making *m = NULL;
    int rc = cm_sink_describe(job, NULL, err);
    if (rc == CM_OK)
        rc = set_keys(job, err);
    if (rc == CM_OK && (m = s->own = cm_calloc(1, sizeof(*m), err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_repository_begin(&m->repository, s, job, &m->done, err);
    if (rc != CM_OK)
        return rc;
    *moves = !m->done;
    job->report->finished = m->done;
    if (m->done)
        return CM_OK;
    rc = open_session(m, s, job, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, m->session, err);
    return rc == CM_OK && s->out.resumes ? resume(m, job, err) : rc;
}

static int commit(cm_sink *s, cm_job *job, cm_error *err)
{
    making *m = s->own;
    cm_ice_places *places = NULL;
    if (m->done) {
        job->report->written = true;
        return CM_OK;
    }
    int rc = cm_ice_session_finish(m->session, err);
    if (rc == CM_OK)
        rc = cm_job_write_metadata(job, m->session, err);
    if (rc == CM_OK && (places = cm_calloc(job->nvars + 1, sizeof(places[0]), err)) == NULL)
        rc = CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        cm_ice_session_places(m->session, i, &places[i]);
    if (rc == CM_OK)
        cm_job_sum_written(job);
    job->report->nobjects = cm_ice_session_nfiles(m->session);
    if (rc == CM_OK)
        rc = cm_repository_commit(&m->repository, s, job, cm_ice_session_documents(m->session),
                                  places, err);
    free(places);
    return rc == CM_OK ? cm_job_report(job, true, err) : rc;
}

/* Work that can be gone on with stays: the same command finds it. */
static void withdraw(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    making *m = s->own;
    const bool of_one = job->source != NULL && cm_multi_spec_of(job->source) != NULL &&
                        (rc == CM_EFORMAT || rc == CM_EIO || rc == CM_ENOTFOUND);
    if (m == NULL)
        return;
    cm_job_release_writers(job);
    cm_repository_withdraw(&m->repository, s, job, rc == CM_ECANCELED || rc == CM_ENOSPC || of_one,
                           err);
}

/* By the records of the run, which say where the files of the repository have each chunk. */
static int verify(cm_sink *s, cm_job *job, cm_error *err)
{
    making *m = s->own;
    return m->done ? CM_OK : cm_sink_verify(job, m->session, s->out.path, err);
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    making *m = s->own;
    (void)job;
    (void)err;
    s->own = NULL;
    if (m == NULL)
        return rc;
    cm_store_free(m->session);
    cm_repository_release(&m->repository);
    free(m);
    return rc;
}

const cm_sink_ops cm_sink_icechunk = {.kind = CM_SINK_COMMITS,
                                      .terms.unconsolidated = true,
                                      .find = cm_repository_find,
                                      .layout = cm_job_layout,
                                      .begin = begin,
                                      .commit = commit,
                                      .withdraw = withdraw,
                                      .verify = verify,
                                      .leave = leave,
                                      .give_back = cm_sink_end_output};

static int foresee(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    return cm_sink_nothing.begin(s, job, moves, err);
}

const cm_sink_ops cm_sink_icechunk_foreseen = {.kind = CM_SINK_COMMITS,
                                               .terms = {.foreseen = true, .unconsolidated = true},
                                               .find = cm_repository_find,
                                               .layout = cm_job_layout,
                                               .begin = foresee};
