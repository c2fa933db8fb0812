#include "convert/sink/icechunk/repository.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <chunkmill/version.h>

#include "base/utf8.h"
#include "convert/sink/icechunk/node_list.h"
#include "convert/sink/store/fingerprint.h"
#include "format/icechunk/repo_write.h"
#include "format/icechunk/session.h"
#include "options/store_path.h"
#include "store/open.h"
#include "watch/monitor.h"

/* ---- what stands there ---- */

static int is_there(void *context, const char *name, bool is_prefix, cm_error *err)
{
    (void)name, (void)is_prefix, (void)err;
    *(bool *)context = true;
    return CM_ECANCELED;
}

/* Allows a repository, the leftovers of a run of ours, and nothing. */
static int check_folder(const cm_output *out, cm_store *root, cm_error *err)
{
    bool any = false;
    int rc = cm_store_size(root, "repo", NULL, err);
    if (rc != CM_ENOTFOUND)
        return rc;
    (void)cm_store_list(root, "", is_there, &any, NULL);
    if (!any || cm_run_journal_is_there(&out->beside))
        return CM_OK;
    cm_ice_base base;
    rc = cm_ice_base_open(root, "main", &base, err);
    if (rc != CM_OK)
        return rc;
    cm_ice_base_release(&base);
    return cm_fail(err, CM_EEXIST,
                   "%s: exists, and is not an Icechunk repository; nothing in it is touched",
                   out->path);
}

static int check_place(cm_output *out, cm_error *err)
{
    const cm_store_options options = {.output = true, .net = out->net};
    cm_store *root = NULL;
    cm_place there;
    int rc = cm_store_probe(out->root, &options, &there, err);
    if (rc != CM_OK || there == CM_PLACE_NOTHING)
        return rc;
    if (there != CM_PLACE_FOLDER)
        return cm_fail(err, CM_EEXIST, "%s: is a file, and files are never overwritten", out->root);
    rc = cm_store_open(out->root, &options, &root, err);
    if (rc == CM_OK)
        rc = check_folder(out, root, err);
    cm_store_free(root);
    out->state = CM_OUTPUT_STORE;
    return rc;
}

static int split_target(cm_sink *s, cm_error *err)
{
    cm_transform_options *o = s->options;
    cm_into *into = &s->into;
    cm_store_path at = {0};
    int rc = cm_store_path_split(cm_icechunk_path(o->target), &at, err);
    if (rc == CM_OK && *at.path == '\0')
        rc = cm_fail(err, CM_EINVAL, "%s: the path of the repository is empty", o->target);
    if (rc == CM_OK && cm_store_url_is_remote(at.path) && strncasecmp(at.path, "s3:", 3) != 0)
        rc = cm_fail(err, CM_EINVAL,
                     "%s: nothing can be written over HTTP; a bucket is s3://BUCKET/PREFIX",
                     o->target);
    if (rc == CM_OK && *at.node != '\0')
        rc = cm_key_check(at.node, err);
    if (rc == CM_OK) {
        into->root = cm_strdup(at.path, err);
        into->node = cm_strdup(at.node, err);
        into->folder = cm_strdup(at.path, err);
        if (into->root == NULL || into->node == NULL || into->folder == NULL)
            rc = CM_ENOMEM;
    }
    cm_store_path_release(&at);
    if (rc == CM_OK)
        o->target = s->target = into->folder;
    return rc;
}

/* Readers refuse a whole file for a text that is not UTF-8. */
static int check_text(const char *what, const char *text, cm_error *err)
{
    if (text == NULL || (*text != '\0' && cm_utf8_is_valid(text, strlen(text))))
        return CM_OK;
    return cm_fail(err, CM_EINVAL, *text == '\0' ? "%s: is empty" : "%s: is not UTF-8", what);
}

static int check_texts(const cm_sink *s, cm_error *err)
{
    const cm_transform_options *o = s->options;
    int rc = check_text("`branch`", o->branch, err);
    if (rc == CM_OK)
        rc = check_text("`message`", o->message, err);
    return rc == CM_OK && *s->into.node != '\0' ? check_text(o->target, s->into.node, err) : rc;
}

int cm_repository_find(cm_sink *s, cm_job *job, cm_error *err)
{
    cm_transform_options *o = s->options;
    (void)job;
    int rc = split_target(s, err);
    if (rc == CM_OK)
        rc = check_texts(s, err);
    if (rc == CM_OK && o->zarr_format == 2)
        rc = cm_fail(err, CM_EINVAL, "`zarr_format` 2: a repository is of Zarr format 3");
    if (rc != CM_OK)
        return rc;
    o->zarr_format = 3;
    const cm_output_request request = {.root = s->into.root,
                                       .node = "",
                                       .overwrite = o->overwrite,
                                       .resume = o->resume,
                                       .break_lock = o->break_lock,
                                       .net = o->net};
    rc = cm_output_find(&request, &s->out, err);
    if (rc == CM_OK && !o->dry_run)
        rc = cm_lock_peek(&s->out.beside, o->break_lock, err);
    if (rc == CM_OK)
        rc = check_place(&s->out, err);
    if (rc != CM_OK)
        cm_error_place(err, s->out.path != NULL ? s->out.path : s->into.root);
    return rc;
}

/* ---- the journal ---- */

/* The run, and where it writes; an earlier run with the same goes on. */
static int make_head(const cm_repository *r, const cm_sink *s, cm_job *job, cm_json **out,
                     cm_error *err)
{
    cm_json *fingerprint = NULL, *head = *out = cm_json_object();
    int rc = cm_fingerprint(job, &fingerprint, err);
    if (rc == CM_OK)
        rc = cm_json_set(head, "fingerprint", fingerprint, err);
    if (rc == CM_OK)
        rc = cm_json_set(head, "branch", cm_json_string(r->branch), err);
    if (rc == CM_OK)
        rc = cm_json_set(head, "group", cm_json_string(s->into.node), err);
    const char *refer = s->options->refer;
    return rc == CM_OK && refer != NULL ? cm_json_set(head, "refer", cm_json_string(refer), err)
                                        : rc;
}

static bool is_in_repo(void *context, const uint8_t *id)
{
    const cm_ice_base *base = context;
    return base->there && cm_ice_repo_has(base->repo.tree.root, id);
}

/* Removes the files of an earlier run, unless a snapshot was about to refer to them. */
static int erase_left(cm_repository *r, const cm_sink *s, cm_job *job, size_t nsnapshots,
                      cm_error *err)
{
    if (nsnapshots == 0)
        return cm_run_journal_erase(&r->journal, r->root, err);
    return cm_job_note(job, err,
                       "%s: files of a run that was stopped at its very end stay; Icechunk's own "
                       "garbage collection removes them",
                       s->out.path);
}

/*
 * A journal that is there: its run has committed (*DONE), or is gone on with, or its files go.
 */
static int settle_journal(cm_repository *r, cm_sink *s, cm_job *job, const cm_json *head,
                          bool *done, cm_error *err)
{
    size_t nsnapshots = 0;
    *done = false;
    if (!r->journal.there) { /* files without a head: of a run that ended */
        cm_run_journal_remove(&r->journal);
        return CM_OK;
    }
    const bool same = cm_json_equal(r->journal.head, head);
    int rc = cm_run_journal_continue(&r->journal, err);
    if (rc != CM_OK)
        return rc;
    const bool committed = cm_run_journal_snapshots(&r->journal, &nsnapshots, is_in_repo, &r->base);
    if (committed) {
        cm_run_journal_remove(&r->journal);
        cm_run_journal_close(&r->journal);
        *done = same;
        r->journal.there = false;
        return CM_OK;
    }
    s->out.resumes = same && !s->options->overwrite;
    if (s->out.resumes)
        return CM_OK;
    if (!s->options->overwrite)
        return cm_fail(err, CM_EEXIST,
                       "%s: holds chunks of a run with other options or inputs, which was stopped; "
                       "the same command goes on with them, `overwrite` removes them",
                       s->out.path);
    rc = erase_left(r, s, job, nsnapshots, err);
    if (rc == CM_OK)
        cm_run_journal_remove(&r->journal);
    cm_run_journal_close(&r->journal);
    r->journal.there = false;
    return rc;
}

/* ---- beginning ---- */

/* Temporaries of killed runs; the lock is held. */
static int sweep(cm_store *root, cm_error *err)
{
    static const char *const folder[] = {"chunks", "manifests", "snapshots", "transactions",
                                         "overwritten"};
    int rc = cm_store_is_remote(root) ? CM_OK : cm_store_sweep_temporaries(root, "", false, err);
    for (size_t i = 0;
         rc == CM_OK && !cm_store_is_remote(root) && i < sizeof(folder) / sizeof(folder[0]); i++)
        rc = cm_store_sweep_temporaries(root, folder[i], false, err);
    return rc;
}

static int open_root(cm_repository *r, cm_sink *s, cm_job *job, cm_error *err)
{
    cm_output *out = &s->out;
    const cm_store_options options = {.output = true, .create = true, .net = out->net};
    int rc = cm_lock_take(&out->beside, out->break_lock, &out->lock, &out->note, err);
    if (rc == CM_OK && out->note != NULL)
        rc = cm_job_warn(job, err, "%s", out->note);
    /* Another run may have made something there before the lock was taken. */
    if (rc == CM_OK)
        rc = check_place(out, err);
    r->made = out->state == CM_OUTPUT_ABSENT;
    if (rc == CM_OK)
        rc = cm_store_open(out->root, &options, &out->store, err);
    r->root = out->store;
    if (rc == CM_OK)
        rc = sweep(r->root, err);
    return rc == CM_OK ? cm_ice_base_open(r->root, r->branch, &r->base, err) : rc;
}

/* Before any chunk is written: the commit would be refused for a node that is there. */
static int check_nodes(cm_repository *r, const cm_sink *s, cm_job *job, cm_error *err)
{
    cm_store *documents = NULL;
    cm_node_list list = {0};
    int rc = cm_job_describe_in_memory(job, &documents, err);
    if (rc == CM_OK)
        rc = cm_node_list_make(&list, documents, s->into.node, err);
    const cm_ice_change change = {
        .node = list.node, .n = list.n, .replaces = s->options->overwrite};
    if (rc == CM_OK)
        rc = cm_ice_snapshot_check(r->base.snapshot.tree.root, NULL, &change, err);
    cm_node_list_release(&list);
    cm_store_free(documents);
    return rc;
}

static int begin(cm_repository *r, cm_sink *s, cm_job *job, bool *done, cm_error *err)
{
    cm_json *head = NULL;
    r->branch = s->options->branch != NULL ? s->options->branch : "main";
    int rc = open_root(r, s, job, err);
    if (rc == CM_OK)
        rc = cm_run_journal_look(&r->journal, &s->out.beside, err);
    if (rc == CM_OK)
        rc = make_head(r, s, job, &head, err);
    if (rc == CM_OK)
        rc = settle_journal(r, s, job, head, done, err);
    if (rc == CM_OK && !*done)
        rc = check_nodes(r, s, job, err);
    if (rc == CM_OK && !*done && !s->out.resumes)
        rc = cm_run_journal_begin(&r->journal, head, job->scratch, err);
    s->out.begun = rc == CM_OK;
    cm_json_free(head);
    return rc;
}

int cm_repository_begin(cm_repository *r, cm_sink *s, cm_job *job, bool *done, cm_error *err)
{
    *done = false;
    int rc = begin(r, s, job, done, err);
    if (rc != CM_OK)
        cm_error_place(err, s->out.path);
    return rc;
}

/* ---- the commit ---- */

static int note_snapshot(void *context, const uint8_t id[CM_ICE_ID], bool published, cm_error *err)
{
    const bool initial = memcmp(id, cm_ice_initial_id, CM_ICE_ID) == 0;
    return cm_ice_records_name(context,
                               published ? CM_RUN_PUBLISHED
                               : initial ? CM_RUN_INITIAL
                                         : 's',
                               id, err);
}

/* The writer, and its command. */
static int make_metadata(const char *command, cm_json **out, cm_error *err)
{
    char *writer = cm_asprintf(err, "chunkmill %s", cm_version());
    *out = cm_json_object();
    int rc = writer == NULL ? CM_ENOMEM : cm_json_set(*out, "writer", cm_json_string(writer), err);
    if (rc == CM_OK && command != NULL)
        rc = cm_json_set(*out, "command", cm_json_string(command), err);
    free(writer);
    return rc;
}

static int by_node(const void *a, const void *b)
{
    return memcmp(((const cm_ice_manifest_job *)a)->node, ((const cm_ice_manifest_job *)b)->node,
                  CM_ICE_NODE_ID);
}

static int write_manifests(cm_repository *r, const cm_sink *s, cm_job *job,
                           const cm_node_list *list, const cm_ice_places *places,
                           cm_ice_manifests *made, cm_error *err)
{
    cm_ice_manifest_job *work = cm_calloc(job->nvars + 1, sizeof(work[0]), err);
    int rc = work == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        cm_ice_new_node *node = cm_node_list_find(list, s->into.node, job->var[i].name);
        if (node == NULL || !node->is_array) {
            rc = cm_fail(err, CM_EINTERNAL, "%s: has no document", cm_job_name(&job->var[i]));
            break;
        }
        node->manifests = &made[i];
        work[i] = (cm_ice_manifest_job){.places = &places[i], .out = &made[i]};
        memcpy(work[i].node, node->id, CM_ICE_NODE_ID);
    }
    if (rc == CM_OK) {
        qsort(work, job->nvars, sizeof(work[0]), by_node);
        rc = cm_ice_manifests_write(r->root, &r->journal.records, work, job->nvars, err);
    }
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        for (size_t k = 0; k < made[i].n; k++)
            job->report->nobjects += !made[i].item[k].listed;
    free(work);
    return rc;
}

static int commit(cm_repository *r, cm_sink *s, const cm_node_list *list, cm_error *err)
{
    const cm_transform_options *o = s->options;
    cm_json *metadata = NULL;
    char *command = cm_utf8_strdup(o->command != NULL ? o->command : "", err);
    int rc = command == NULL ? CM_ENOMEM
                             : make_metadata(o->command != NULL ? command : NULL, &metadata, err);
    cm_ice_commit c = {.root = r->root,
                       .branch = r->branch,
                       .base = &r->base,
                       .change = {.message = o->message != NULL   ? o->message
                                             : o->command != NULL ? command
                                                                  : "written by chunkmill",
                                  .metadata = metadata,
                                  .node = list->node,
                                  .n = list->n,
                                  .replaces = o->overwrite},
                       .config = r->config,
                       .durable = o->durable,
                       .before = note_snapshot,
                       .context = &r->journal.records};
    if (rc == CM_OK)
        rc = cm_lock_check(s->out.lock, &s->out.beside, err);
    if (rc == CM_OK) {
        rc = cm_ice_commit_run(&c, r->committed, err);
        r->refused = rc == CM_EEXIST;
    }
    cm_json_free(metadata);
    free(command);
    return rc;
}

static bool never(void *context, const uint8_t *id)
{
    (void)context, (void)id;
    return false;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, CM_ICE_ID);
}

/*
 * Files of an earlier try that the commit does not refer to; where that try came as far as a
 * snapshot, only Icechunk's own collection knows.
 */
static int tidy(cm_repository *r, cm_job *job, cm_store *session, const cm_ice_manifests *made,
                cm_error *err)
{
    uint8_t *chunk = NULL, *manifest = NULL;
    size_t nchunks = 0, n = 0, most = 0, nsnapshots;
    (void)cm_run_journal_snapshots(&r->journal, &nsnapshots, never, NULL);
    if (nsnapshots != 1)
        return CM_OK;
    for (size_t i = 0; i < job->nvars; i++)
        most += made[i].n;
    int rc = cm_ice_session_files(session, &chunk, &nchunks, err);
    if (rc == CM_OK && (manifest = cm_calloc(most + 1, CM_ICE_ID, err)) == NULL)
        rc = CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        for (size_t k = 0; k < made[i].n; k++)
            memcpy(manifest + CM_ICE_ID * n++, made[i].item[k].id, CM_ICE_ID);
    if (rc == CM_OK) {
        qsort(manifest, n, CM_ICE_ID, compare_ids);
        rc = cm_run_journal_tidy(&r->journal, r->root,
                                 &(cm_run_files){chunk, manifest, nchunks, n, r->committed}, err);
    }
    free(chunk);
    free(manifest);
    return rc;
}

/* The commit is made: nothing that fails from here on takes it back. */
static int finish(cm_repository *r, cm_sink *s, cm_job *job, cm_store *session,
                  const cm_ice_manifests *made, cm_error *err)
{
    cm_error why = {0};
    job->report->written = true;
    int rc = s->out.resumes ? tidy(r, job, session, made, &why) : CM_OK;
    cm_run_journal_remove(&r->journal);
    s->out.begun = false;
    return rc == CM_OK ? CM_OK
                       : cm_job_warn(job, err, "%s: files of an earlier try stay: %s", s->out.path,
                                     why.text);
}

int cm_repository_commit(cm_repository *r, cm_sink *s, cm_job *job, cm_store *session,
                         const cm_ice_places *places, cm_error *err)
{
    cm_node_list list = {0};
    cm_ice_manifests *made = cm_calloc(job->nvars + 1, sizeof(made[0]), err);
    int rc = made == NULL
                 ? CM_ENOMEM
                 : cm_node_list_make(&list, cm_ice_session_documents(session), s->into.node, err);
    if (rc == CM_OK)
        rc = write_manifests(r, s, job, &list, places, made, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        job->report->nreferences += made[i].nrefs - made[i].ninline;
        job->report->ninline += made[i].ninline;
    }
    if (rc == CM_OK)
        rc = commit(r, s, &list, err);
    if (rc != CM_OK)
        cm_error_place(err, s->out.path);
    else
        rc = finish(r, s, job, session, made, err);
    for (size_t i = 0; made != NULL && i < job->nvars; i++)
        cm_ice_manifests_release(&made[i]);
    free(made);
    cm_node_list_release(&list);
    return rc;
}

/* ---- after a failure ---- */

/* Folders that are empty now, where they are ours. */
static void remove_folders(const cm_repository *r, const cm_sink *s)
{
    static const char *const folder[] = {"chunks", "manifests", "snapshots", "transactions"};
    if (!r->made || cm_store_is_remote(r->root))
        return;
    for (size_t i = 0; i < sizeof(folder) / sizeof(folder[0]); i++) {
        char *path = cm_asprintf(NULL, "%s/%s", s->out.path, folder[i]);
        if (path != NULL)
            rmdir(path);
        free(path);
    }
    rmdir(s->out.path);
}

void cm_repository_withdraw(cm_repository *r, cm_sink *s, cm_job *job, bool goes_on, cm_error *err)
{
    size_t nsnapshots = 0;
    if (!s->out.begun || job->report->written)
        return;
    (void)cm_run_journal_snapshots(&r->journal, &nsnapshots, never, NULL);
    job->report->resumable = goes_on || s->out.resumes || (nsnapshots > 0 && !r->refused);
    if (job->report->resumable || cm_lock_check(s->out.lock, &s->out.beside, NULL) == CM_EEXIST)
        return;
    if (cm_run_journal_erase(&r->journal, r->root, NULL) != CM_OK) {
        job->report->resumable = true;
        cm_error_suffix(err, "; not all that was written could be removed: the same command "
                             "finishes it");
        return;
    }
    cm_run_journal_remove(&r->journal);
    remove_folders(r, s);
}

void cm_repository_release(cm_repository *r)
{
    cm_run_journal_close(&r->journal);
    cm_ice_base_release(&r->base);
    cm_json_free(r->config);
}
