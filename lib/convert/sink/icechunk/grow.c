/*
 * A commit that adds to the arrays of a repository, or writes steps of them anew.  All chunks of
 * the snapshot that is at the tip keep their places but those that are written; the documents are
 * changed as those of a store that grows (growth/append_commit.h).  Until the commit nothing refers
 * to what is written, and a run that was killed is begun again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/sink/growth/append_repository.h"
#include "convert/sink/icechunk/grow_refer.h"
#include "convert/sink/icechunk/repository.h"
#include "convert/sink/store/store.h"
#include "format/icechunk/key.h"
#include "format/icechunk/read_store.h"
#include "format/icechunk/session.h"
#include "format/zarr/meta.h"
#include "watch/monitor.h"

#define OBJECT_NBYTES (UINT64_C(16) << 20)

typedef struct growing {
    cm_append_state append; /* first: steps of growth/append.h take it */
    cm_repository repository;
    cm_store *before; /* the snapshot as a store */
    cm_store *session;
    size_t narrays;      /* that change; session arrays are in the order of append.grown */
    cm_grow_refer refer; /* with the option of that name; else zeroed */
} growing;

static bool changes(const cm_grown *g)
{
    return g->nwindows > 0 || !g->growth.in_place;
}

static const cm_fb_table *node_of(const growing *g, const char *name)
{
    const char *node = g->append.append->repository->node;
    char *path = cm_asprintf(NULL, "/%s%s%s", node, *node != '\0' ? "/" : "", name);
    const cm_fb_table *found =
        path != NULL ? cm_ice_snapshot_find(g->repository.base->snapshot.tree.root, path) : NULL;
    free(path);
    return found;
}

/* ---- the session ---- */

static int add_array(growing *g, const cm_grown *grown, cm_error *err)
{
    const cm_variable *t = cm_dataset_find(g->append.target, grown->growth.path);
    uint64_t shape[CM_MAX_RANK];
    size_t index;
    for (unsigned j = 0; j < t->rank; j++) {
        const uint64_t n = j == grown->growth.axis ? grown->growth.length : t->shape[j];
        shape[j] = cm_div_ceil(n, t->words->chunk[j]);
    }
    int rc = cm_ice_session_add(g->session, t->name, t->rank, shape, &index, err);
    if (rc == CM_OK)
        cm_ice_session_keep(g->session, index, g->before);
    g->narrays += rc == CM_OK;
    return rc;
}

/* Whether PATH, N bytes, is that of the group that grows, or of a node in it. */
static bool is_below(const char *path, size_t n, const char *group)
{
    const size_t most = strlen(group);
    return n >= most && memcmp(path, group, most) == 0 &&
           (most == 0 || n == most || path[most] == '/');
}

/* Documents of the snapshot, a few of which will be changed. */
static int take_documents(growing *g, cm_error *err)
{
    const char *group = g->append.append->repository->node;
    const size_t skip = strlen(group);
    const cm_fb_value *nodes =
        &g->repository.base->snapshot.tree.root->value[CM_ICE_SNAPSHOT_NODES];
    cm_store *documents = cm_ice_session_documents(g->session);
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < nodes->n; i++) {
        const cm_fb_value *v = nodes->item[i]->value;
        const char *path = (const char *)v[CM_ICE_NODE_PATH].bytes + 1;
        size_t n = v[CM_ICE_NODE_PATH].n - 1;
        if (!is_below(path, n, group))
            continue;
        path += skip + (n > skip && skip > 0);
        n -= skip + (n > skip && skip > 0);
        char *key = cm_asprintf(err, "%.*s%szarr.json", (int)n, path, n > 0 ? "/" : "");
        rc = key == NULL ? CM_ENOMEM
                         : cm_store_put(documents, key, v[CM_ICE_NODE_DOCUMENT].bytes,
                                        v[CM_ICE_NODE_DOCUMENT].n, err);
        free(key);
    }
    return rc;
}

static int open_session(growing *g, cm_sink *s, cm_error *err)
{
    cm_append *a = g->append.append;
    const cm_store_options options = {.net = a->beside.net, .memory = s->options->memory};
    const uint64_t most = s->options->object_nbytes;
    int rc = cm_ice_store_open(a->opens, &options, &g->before, err);
    if (rc == CM_OK)
        rc = cm_ice_session_open(a->store, &g->repository.journal.records,
                                 most > 0 ? most : OBJECT_NBYTES, &g->session, err);
    s->store = g->session;
    if (rc == CM_OK)
        rc = take_documents(g, err);
    for (size_t i = 0; rc == CM_OK && i < g->append.ngrown; i++)
        if (changes(&g->append.grown[i]))
            rc = add_array(g, &g->append.grown[i], err);
    return rc;
}

/* ---- documents ---- */

static int make_commit(const growing *g, cm_commit *out, cm_error *err)
{
    const cm_append_state *a = &g->append;
    cm_growth *growth = cm_calloc(a->ngrown + 1, sizeof(*growth), err);
    if (growth == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < a->ngrown; i++)
        growth[i] = a->grown[i].growth;
    int rc = cm_commit_make(g->session, 3, growth, a->ngrown, NULL, out, err);
    free(growth);
    return rc;
}

static int put_documents(const growing *g, const cm_commit *c, cm_error *err)
{
    const cm_json *objects = cm_json_member(c->record, "objects");
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < cm_json_length(objects); i++) {
        const cm_json *one = cm_json_at(objects, i);
        size_t n;
        const char *key = cm_json_text(cm_json_member(one, "key"), NULL);
        const char *text = cm_json_text(cm_json_member(one, "text"), &n);
        rc = cm_store_put(g->session, key, text, n, err);
    }
    return rc;
}

/* ---- beginning ---- */

static int begin_journal(growing *g, cm_job *job, cm_error *err)
{
    cm_repository *r = &g->repository;
    cm_json *head = cm_json_object();
    cm_settled left;
    int rc = cm_json_set(head, CM_REPOSITORY_GROWS, cm_json_string(r->branch), err);
    if (rc == CM_OK)
        rc = cm_repository_sweep(r->root, err);
    if (rc == CM_OK)
        rc = cm_run_journal_look(&r->journal, r->beside, err);
    if (rc == CM_OK)
        rc = cm_repository_settle(r, job, head, false, &left, err);
    if (rc == CM_OK)
        rc = cm_run_journal_begin(&r->journal, head, job->scratch, err);
    r->begun = rc == CM_OK;
    cm_json_free(head);
    return rc;
}

/* Icechunk names chunks by their indices, whatever a document says of keys. */
static void set_keys(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        job->var[i].doc.meta.separator = '/';
        job->var[i].doc.meta.key_v2 = false;
    }
}

/* Where chunks are to be referred to; nothing where none are. */
static int begin_references(growing *g, cm_job *job, cm_error *err)
{
    if (job->options->refer == NULL)
        return CM_OK;
    g->append.fills = cm_grow_refer_fills;
    return cm_grow_refer_begin(&g->refer, job, err);
}

/* The windows of arrays, and those whose chunks are referred to. */
static int make_windows(growing *g, cm_job *job, cm_error *err)
{
    const bool refers = job->options->refer != NULL;
    int rc = begin_references(g, job, err);
    if (rc == CM_OK && refers)
        rc = cm_grow_refer_agree(&g->refer, job, err);
    if (rc == CM_OK)
        rc = cm_append_prepare_into(&g->append, job, err);
    if (rc == CM_OK && refers)
        rc = cm_grow_refer_choose(&g->refer, job, &g->append, err);
    return rc;
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    growing *g = s->own = cm_calloc(1, sizeof(*g), err);
    cm_append *a = job->options->append;
    cm_commit trial = {0};
    if (g == NULL)
        return CM_ENOMEM;
    int rc = make_windows(g, job, err);
    if (rc != CM_OK)
        return rc;
    *moves = job->nvars > 0;
    g->repository = (cm_repository){.branch = a->repository->branch,
                                    .path = a->root,
                                    .beside = &a->beside,
                                    .lock = a->lock,
                                    .root = a->store,
                                    .grows = true,
                                    .base = &a->repository->base};
    set_keys(job);
    rc = begin_journal(g, job, err);
    if (rc == CM_OK)
        rc = open_session(g, s, err);
    /* Documents that cannot be changed are found before anything is written. */
    if (rc == CM_OK)
        rc = make_commit(g, &trial, err);
    cm_commit_release(&trial);
    if (rc == CM_OK)
        rc = cm_job_plan(job, g->session, err);
    if (rc != CM_OK)
        cm_error_place(err, a->root);
    return rc;
}

/* ---- the commit ---- */

static int list_arrays(growing *g, cm_repository_array *array, cm_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < g->append.ngrown; i++) {
        const cm_grown *one = &g->append.grown[i];
        if (!changes(one))
            continue;
        array[n].name = one->growth.path;
        array[n].was = node_of(g, one->growth.path);
        if (array[n].was == NULL)
            return cm_fail(err, CM_EINTERNAL, "%s: is not in the snapshot", one->growth.path);
        if (!cm_grow_refer_places(&g->refer, i, &array[n].places))
            cm_ice_session_places(g->session, n, &array[n].places);
        n++;
    }
    return CM_OK;
}

static int commit_arrays(growing *g, cm_sink *s, cm_job *job, cm_error *err)
{
    cm_repository_array *array = cm_calloc(g->narrays + 1, sizeof(array[0]), err);
    int rc = array == NULL ? CM_ENOMEM : list_arrays(g, array, err);
    job->report->nobjects = cm_ice_session_nfiles(g->session);
    if (rc == CM_OK)
        rc = cm_repository_commit(&g->repository, s, job, g->session, array, g->narrays, err);
    free(array);
    return rc;
}

/* Nothing is new: no commit is made. */
static int leave_it(growing *g, cm_job *job)
{
    cm_run_journal_remove(&g->repository.journal);
    g->repository.begun = false;
    job->report->written = true;
    return CM_OK;
}

static int commit(cm_sink *s, cm_job *job, cm_error *err)
{
    growing *g = s->own;
    cm_commit c = {0};
    int rc = cm_ice_session_finish(g->session, err);
    cm_monitor_phase(job->options->monitor, CM_PHASE_FINISHING, 0);
    if (rc == CM_OK)
        rc = make_commit(g, &c, err);
    if (rc == CM_OK)
        rc = put_documents(g, &c, err);
    cm_commit_release(&c);
    cm_job_sum_written(job);
    if (rc == CM_OK)
        rc = g->narrays > 0 ? commit_arrays(g, s, job, err) : leave_it(g, job);
    return rc == CM_OK ? cm_append_tell_all(job, &g->append, true, err) : rc;
}

static void withdraw(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    growing *g = s->own;
    (void)rc;
    if (g == NULL)
        return;
    cm_job_release_writers(job);
    cm_repository_withdraw(&g->repository, job, false, err);
}

/* Opens the snapshot that was committed, as any reader finds it. */
static int open_committed(const growing *g, cm_sink *s, cm_store **out, cm_error *err)
{
    const char *node = g->append.append->repository->node;
    const cm_store_options options = {.net = s->options->net, .memory = s->options->memory};
    char id[CM_ICE_ID_TEXT + 1];
    cm_ice_id_letters(g->repository.committed, id);
    char *place = cm_asprintf(err, "icechunk:%s@%s%s%s", g->append.append->root, id,
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
    int rc = g->narrays > 0 ? open_committed(g, s, &made, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_sink_verify(job, made != NULL ? made : g->before, g->repository.path, err);
    cm_store_free(made);
    return rc;
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    growing *g = s->own;
    if (g != NULL) {
        cm_store_free(g->session);
        cm_store_free(g->before);
        cm_grow_refer_release(&g->refer);
        cm_repository_release(&g->repository);
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
    int rc = begin_references(g, job, err);
    if (rc == CM_OK)
        rc = cm_append_foresee_windows(job, &g->append, err);
    if (rc == CM_OK && job->options->refer != NULL)
        rc = cm_grow_refer_choose(&g->refer, job, &g->append, err);
    return rc == CM_OK ? cm_append_foresee(job, &g->append, err) : rc;
}

const cm_sink_ops cm_sink_icechunk_growth_foreseen = {
    .kind = CM_SINK_GROWS,
    .terms = {.grows = true, .foreseen = true, .unconsolidated = true},
    .find = find,
    .join = cm_append_join,
    .begin = foresee,
    .leave = leave,
    .give_back = cm_append_end_output};
