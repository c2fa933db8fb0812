#include "convert/sink/icechunk/writing.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "convert/passport/job_passport.h"
#include "convert/sink/store/store.h"
#include "convert/statistics/statistics.h"
#include "format/icechunk/session.h"
#include "format/multi/multi.h"
#include "watch/monitor.h"

#define OBJECT_NBYTES (UINT64_C(16) << 20)

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

/* ---- statistics, in a group of the same commit ---- */

static int add_counted(void *context, const char *path, unsigned rank, cm_error *err)
{
    cm_ice_writing *w = context;
    const uint64_t one = 1;
    size_t index;
    char *below = cm_asprintf(err, CM_REPOSITORY_STATISTICS "/%s", path);
    int rc =
        below == NULL ? CM_ENOMEM : cm_ice_session_add(w->session, below, rank, &one, &index, err);
    free(below);
    w->narrays += rc == CM_OK;
    return rc;
}

typedef struct copying {
    cm_store *from, *to;
    const char *prefix;
} copying;

static int copy_object(const copying *c, const char *key, cm_error *err)
{
    cm_buf data = {0};
    char *to = cm_asprintf(err, CM_REPOSITORY_STATISTICS "/%s", key);
    int rc =
        to == NULL ? CM_ENOMEM : cm_store_get(c->from, key, CM_ZARR_MAX_META_NBYTES, &data, err);
    if (rc == CM_OK)
        rc = cm_store_put(c->to, to, data.data, data.nbytes, err);
    cm_buf_release(&data);
    free(to);
    return rc;
}

static int copy_all(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const copying *c = context;
    char *key = cm_asprintf(err, "%s%s%s", c->prefix, *c->prefix != '\0' ? "/" : "", name);
    copying below = {c->from, c->to, key};
    int rc = key == NULL  ? CM_ENOMEM
             : !is_prefix ? copy_object(c, key, err)
                          : cm_store_list(c->from, key, copy_all, &below, err);
    free(key);
    return rc;
}

static int write_statistics(cm_ice_writing *w, cm_sink *s, cm_job *job, cm_error *err)
{
    copying c = {.to = w->session, .prefix = ""};
    const char *node = s->into.node;
    char *place = cm_asprintf(err, "icechunk:%s::%s%s" CM_REPOSITORY_STATISTICS, w->repository.path,
                              node, *node != '\0' ? "/" : "");
    int rc = place == NULL ? CM_ENOMEM : cm_store_open_memory(&c.from, err);
    if (rc == CM_OK)
        rc = cm_statistics_write_into(job, c.from, w->repository.path, place, err);
    else
        free(place);
    if (rc == CM_OK)
        rc = cm_store_list(c.from, "", copy_all, &c, err);
    cm_store_free(c.from);
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

int cm_ice_writing_resume(cm_ice_writing *w, cm_job *job, cm_error *err)
{
    uint64_t nkept = 0, n = 0;
    int rc = cm_ice_session_check(w->session, is_canceled, job->options->monitor, &nkept, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = keep_chunks(&job->var[i], &n, err);
    return rc == CM_OK
               ? cm_job_note(job, err, "resumed: %llu %s done already", (unsigned long long)n,
                             cm_of_count(n, "chunk or shard was", "chunks and shards were"))
               : rc;
}

/* ---- beginning and committing ---- */

/* Nothing of the input lies where statistics go. */
static int check_names(const cm_job *job, cm_error *err)
{
    const size_t n = strlen(CM_REPOSITORY_STATISTICS);
    for (size_t i = 0; i < job->nvars; i++) {
        const char *name = job->var[i].name;
        if (strncmp(name, CM_REPOSITORY_STATISTICS, n) == 0 && (name[n] == '\0' || name[n] == '/'))
            return cm_fail(err, CM_EINVAL,
                           "%s %s: lies where `statistics` puts its own; leave it out with "
                           "`exclude`",
                           cm_job_noun(job), cm_job_name(&job->var[i]));
    }
    return CM_OK;
}

int cm_ice_writing_open(cm_ice_writing *w, cm_sink *s, cm_job *job, cm_error *err)
{
    const uint64_t most = s->options->object_nbytes;
    int rc = cm_ice_session_open(w->repository.root, &w->repository.journal.records,
                                 most > 0 ? most : OBJECT_NBYTES, &w->session, err);
    if (rc == CM_OK)
        rc = add_arrays(job, w->session, err);
    w->narrays = job->nvars;
    if (rc == CM_OK && s->options->statistics)
        rc = cm_statistics_visit(job, add_counted, w, err);
    s->store = w->session;
    return rc;
}

int cm_ice_writing_check(cm_job *job, cm_error *err)
{
    int rc = set_keys(job, err);
    return rc == CM_OK && job->options->statistics ? check_names(job, err) : rc;
}

int cm_ice_writing_begin(cm_ice_writing *w, cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    int rc = cm_ice_writing_check(job, err);
    if (rc == CM_OK)
        rc = cm_repository_begin(&w->repository, s, job, &w->done, err);
    if (rc != CM_OK)
        return rc;
    *moves = !w->done;
    job->report->finished = w->done;
    if (w->done)
        return CM_OK;
    rc = cm_ice_writing_open(w, s, job, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, w->session, err);
    return rc == CM_OK && s->out.resumes ? cm_ice_writing_resume(w, job, err) : rc;
}

/* Everything, before the commit: what differs from its source is not committed. */
static int verify_all(cm_ice_writing *w, cm_job *job, cm_error *err)
{
    const uint64_t start = cm_now_ns();
    int rc = cm_job_verify(job, w->session, err);
    job->report->verify_seconds = (double)(cm_now_ns() - start) * 1e-9;
    w->verified = rc == CM_OK;
    if (rc == CM_EDIFFER)
        cm_error_suffix(err, "; nothing was committed");
    return rc;
}

/* PLACES are those of the variables that were not written. */
int cm_ice_writing_publish(cm_ice_writing *w, cm_sink *s, cm_job *job, const cm_ice_places *places,
                           cm_error *err)
{
    cm_repository_array *array = cm_calloc(w->narrays + 1, sizeof(array[0]), err);
    if (array == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < w->narrays; i++) {
        array[i].name = cm_ice_session_path(w->session, i);
        if (i < job->nvars && places != NULL && places[i].find != NULL)
            array[i].places = places[i];
        else
            cm_ice_session_places(w->session, i, &array[i].places);
    }
    int rc = cm_repository_commit(&w->repository, s, job, w->session, array, w->narrays, err);
    free(array);
    return rc;
}

int cm_ice_writing_complete(cm_ice_writing *w, cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = s->options->statistics ? write_statistics(w, s, job, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_ice_session_finish(w->session, err);
    return rc == CM_OK ? cm_job_write_metadata(job, w->session, err) : rc;
}

int cm_ice_writing_commit(cm_ice_writing *w, cm_sink *s, cm_job *job, const cm_ice_places *places,
                          cm_error *err)
{
    if (w->done) {
        job->report->written = true;
        return CM_OK;
    }
    int rc = cm_ice_writing_complete(w, s, job, err);
    if (rc != CM_OK)
        return rc;
    cm_job_sum_written(job);
    job->report->nobjects = cm_ice_session_nfiles(w->session);
    rc = cm_job_report(job, true, err);
    if (rc == CM_OK && job->options->verify == CM_VERIFY_FULL)
        rc = verify_all(w, job, err);
    if (rc == CM_OK)
        rc = cm_ice_writing_publish(w, s, job, places, err);
    if (rc == CM_OK && job->options->report != NULL)
        rc = cm_job_passport_finish(job, err);
    if (rc == CM_OK)
        rc = cm_job_warn_of_data(job, err);
    return rc;
}

/* Work that can be gone on with stays: the same command finds it. */
void cm_ice_writing_withdraw(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    cm_ice_writing *w = s->own;
    const bool of_one = job->source != NULL && cm_multi_spec_of(job->source) != NULL &&
                        (rc == CM_EFORMAT || rc == CM_EIO || rc == CM_ENOTFOUND);
    if (w == NULL)
        return;
    cm_job_release_writers(job);
    /* Its temporary objects lie in folders that are to be removed. */
    cm_store_free(w->session);
    w->session = NULL;
    cm_repository_withdraw(&w->repository, job, rc == CM_ECANCELED || rc == CM_ENOSPC || of_one,
                           err);
}

void cm_ice_writing_release(cm_ice_writing *w)
{
    cm_store_free(w->session);
    w->session = NULL;
    cm_repository_release(&w->repository);
}
