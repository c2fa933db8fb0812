/* Chunks that are converted, or passed on, into a repository, and one commit of all of them. */
#include <stdlib.h>

#include "convert/sink/icechunk/writing.h"
#include "format/icechunk/read_store.h"
#include "store/subtree.h"

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    cm_ice_writing *w = s->own = cm_calloc(1, sizeof(*w), err);
    int rc = w == NULL ? CM_ENOMEM : cm_sink_describe(job, NULL, err);
    return rc == CM_OK ? cm_ice_writing_begin(w, s, job, moves, err) : rc;
}

static int commit(cm_sink *s, cm_job *job, cm_error *err)
{
    return cm_ice_writing_commit(s->own, s, job, NULL, err);
}

/* A certificate is of the snapshot, as any reader finds it. */
static int verify_snapshot(cm_sink *s, cm_job *job, cm_error *err)
{
    const cm_store_options options = {.net = job->options->net, .memory = job->options->memory};
    const char *node = s->into.node;
    cm_store *store = NULL, *below = NULL;
    char *url = cm_asprintf(err, "icechunk:%s@%s", s->out.path, job->report->snapshot);
    int rc = url == NULL ? CM_ENOMEM : cm_ice_store_open(url, &options, &store, err);
    if (rc == CM_OK && *node != '\0')
        rc = cm_store_subtree(store, node, &below, err);
    job->report->nverified = 0;
    if (rc == CM_OK)
        rc = cm_sink_verify(job, below != NULL ? below : store, url, err);
    cm_store_free(*node != '\0' ? below : store);
    free(url);
    return rc;
}

/* By the records of the run, which say where the files of the repository have each chunk. */
static int verify(cm_sink *s, cm_job *job, cm_error *err)
{
    cm_ice_writing *w = s->own;
    if (w->done)
        return CM_OK;
    if (job->options->certificate != NULL)
        return verify_snapshot(s, job, err);
    return w->verified ? CM_OK : cm_sink_verify(job, w->session, s->out.path, err);
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    cm_ice_writing *w = s->own;
    (void)job;
    (void)err;
    s->own = NULL;
    if (w != NULL)
        cm_ice_writing_release(w);
    free(w);
    return rc;
}

const cm_sink_ops cm_sink_icechunk = {.kind = CM_SINK_COMMITS,
                                      .terms.unconsolidated = true,
                                      .find = cm_repository_find,
                                      .layout = cm_job_layout,
                                      .begin = begin,
                                      .commit = commit,
                                      .withdraw = cm_ice_writing_withdraw,
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
