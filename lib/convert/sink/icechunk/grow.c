/*
 * A commit that adds to the arrays of a repository, or writes steps of them anew.  All chunks of
 * the snapshot that is at the tip keep their places but those that are written; the documents are
 * changed as those of a store that grows (growth/append_commit.h).  Until the commit nothing refers
 * to what is written, and a run that was killed is begun again.
 */
#include "convert/sink/icechunk/grow.h"

#include <stdlib.h>

#include "convert/sink/growth/append_repository.h"
#include "convert/sink/store/store.h"
#include "format/icechunk/key.h"
#include "format/icechunk/read_store.h"
#include "format/icechunk/session.h"
#include "watch/monitor.h"

/* Of one process. */
typedef struct growing {
    cm_ice_growing all; /* first, as its own first member is */
    cm_ice_writing w;
} growing;

/* ---- beginning ---- */

static int begin_journal(growing *g, cm_job *job, cm_error *err)
{
    cm_repository *r = &g->w.repository;
    cm_json *head = cm_json_object();
    cm_settled left;
    int rc = cm_json_set(head, CM_REPOSITORY_GROWS, cm_json_string(r->branch), err);
    if (rc == CM_OK)
        rc = cm_repository_sweep(r->root, err);
    if (rc == CM_OK)
        rc = cm_repository_settle_parts(r, err);
    if (rc == CM_OK)
        rc = cm_run_journal_look(&r->journal, r->beside, err);
    if (rc == CM_OK)
        rc = cm_repository_settle(r, job, head, false, &left, err);
    if (rc == CM_OK)
        rc = cm_run_journal_begin(&r->journal, head, job->scratch.folder, err);
    r->begun = rc == CM_OK;
    cm_json_free(head);
    return rc;
}

/* Where chunks are to be referred to; nothing where none are. */
static int begin_references(cm_ice_growing *g, cm_job *job, cm_error *err)
{
    if (job->options->refer == NULL)
        return CM_OK;
    g->append.fills = cm_grow_refer_fills;
    return cm_grow_refer_begin(&g->refer, job, err);
}

/* Where the files have what is there already, nothing is replaced. */
static void drop_equal(cm_append_state *a, cm_job *job)
{
    bool equal = a->compared;
    for (size_t i = 0; i < a->ngrown; i++)
        equal = equal && a->grown[i].nchanged == 0 && !a->grown[i].unread;
    if (!equal)
        return;
    cm_append_drop_vars(job);
    for (size_t i = 0; i < a->ngrown; i++)
        a->grown[i].nwindows = 0;
}

/* The windows of arrays, and those whose chunks are referred to. */
static int make_windows(cm_ice_growing *g, cm_job *job, cm_error *err)
{
    const bool refers = job->options->refer != NULL;
    int rc = begin_references(g, job, err);
    if (rc == CM_OK && refers)
        rc = cm_grow_refer_agree(&g->refer, job, err);
    if (rc == CM_OK)
        rc = cm_append_prepare_into(&g->append, job, err);
    if (rc == CM_OK)
        drop_equal(&g->append, job);
    if (rc == CM_OK && refers)
        rc = cm_grow_refer_choose(&g->refer, job, &g->append, err);
    return rc;
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    growing *g = s->own = cm_calloc(1, sizeof(*g), err);
    cm_append *a = job->options->append;
    if (g == NULL)
        return CM_ENOMEM;
    int rc = make_windows(&g->all, job, err);
    if (rc != CM_OK)
        return rc;
    *moves = job->nvars > 0;
    g->w.repository = (cm_repository){.branch = a->repository->branch,
                                      .path = a->root,
                                      .beside = &a->beside,
                                      .lock = a->lock,
                                      .root = a->store,
                                      .grows = true,
                                      .base = &a->repository->base};
    cm_ice_grow_set_keys(job);
    rc = begin_journal(g, job, err);
    if (rc == CM_OK)
        rc = cm_ice_grow_open(&g->all, &g->w, s, err);
    if (rc == CM_OK)
        cm_ice_grow_keep(&g->all, &g->w);
    if (rc == CM_OK)
        rc = cm_ice_grow_try(&g->all, &g->w, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, g->w.session, err);
    if (rc != CM_OK)
        cm_error_place(err, a->root);
    return rc;
}

/* ---- the end ---- */

/* Nothing is new: no commit is made. */
static int leave_it(growing *g, cm_job *job)
{
    cm_run_journal_remove(&g->w.repository.journal);
    g->w.repository.begun = false;
    job->report->written = true;
    return CM_OK;
}

static int commit(cm_sink *s, cm_job *job, cm_error *err)
{
    growing *g = s->own;
    int rc = cm_ice_grow_complete(&g->all, &g->w, err);
    cm_monitor_phase(job->options->monitor, CM_PHASE_FINISHING, 0);
    cm_job_sum_written(job);
    job->report->nobjects = cm_ice_session_nfiles(g->w.session);
    if (rc == CM_OK)
        rc = g->w.narrays > 0 ? cm_ice_grow_publish(&g->all, &g->w, s, job, err) : leave_it(g, job);
    return rc == CM_OK ? cm_append_tell_all(job, &g->all.append, true, err) : rc;
}

static void withdraw(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    growing *g = s->own;
    (void)rc;
    if (g == NULL)
        return;
    cm_job_release_writers(job);
    cm_repository_withdraw(&g->w.repository, job, false, err);
}

/* Opens the snapshot that was committed, as any reader finds it. */
static int open_committed(const growing *g, cm_sink *s, cm_store **out, cm_error *err)
{
    const char *node = g->all.append.append->repository->node;
    const cm_store_options options = {.net = s->options->net, .memory = s->options->memory};
    char id[CM_ICE_ID_TEXT + 1];
    cm_ice_id_letters(g->w.repository.committed, id);
    char *place = cm_asprintf(err, "icechunk:%s@%s%s%s", g->all.append.append->root, id,
                              *node != '\0' ? "::" : "", node);
    int rc = place == NULL ? CM_ENOMEM : cm_ice_store_open(place, &options, out, err);
    free(place);
    return rc;
}

static int verify(cm_sink *s, cm_job *job, cm_error *err)
{
    growing *g = s->own;
    cm_store *made = NULL;
    if (job->nvars == 0)
        return CM_OK;
    int rc = g->w.narrays > 0 ? open_committed(g, s, &made, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_sink_verify(job, made != NULL ? made : g->all.before, g->w.repository.path, err);
    cm_store_free(made);
    return rc;
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    growing *g = s->own;
    if (g != NULL) {
        cm_ice_writing_release(&g->w);
        cm_ice_grow_release(&g->all);
    }
    return cm_append_leave(s, job, rc, err);
}

static int find(cm_sink *s, cm_job *job, cm_error *err)
{
    const cm_transform_options *o = s->options;
    if (o->refer != NULL && o->append->replace != NULL)
        return cm_fail(err, CM_EINVAL,
                       "`refer`: steps that are replaced are converted, beside references");
    int rc = o->refer != NULL ? cm_refer_urls_check(o, err) : CM_OK;
    return rc == CM_OK ? cm_append_find(s, job, err) : rc;
}

const cm_sink_ops cm_sink_icechunk_growth = {.kind = CM_SINK_GROWS,
                                             .terms = {.grows = true, .unconsolidated = true},
                                             .find = find,
                                             .join = cm_append_join,
                                             .begin = begin,
                                             .commit = commit,
                                             .withdraw = withdraw,
                                             .verify = verify,
                                             .leave = leave,
                                             .give_back = cm_append_end_output};

/* ---- a dry run of it ---- */

static int foresee(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    growing *g = s->own = cm_calloc(1, sizeof(*g), err);
    *moves = false;
    if (g == NULL)
        return CM_ENOMEM;
    int rc = begin_references(&g->all, job, err);
    if (rc == CM_OK)
        rc = cm_append_foresee_windows(job, &g->all.append, err);
    if (rc == CM_OK && job->options->refer != NULL)
        rc = cm_grow_refer_choose(&g->all.refer, job, &g->all.append, err);
    return rc == CM_OK ? cm_append_foresee(job, &g->all.append, err) : rc;
}

const cm_sink_ops cm_sink_icechunk_growth_foreseen = {
    .kind = CM_SINK_GROWS,
    .terms = {.grows = true, .foreseen = true, .unconsolidated = true},
    .find = find,
    .join = cm_append_join,
    .begin = foresee,
    .leave = leave,
    .give_back = cm_append_end_output};
