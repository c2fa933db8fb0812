#include "convert/sink/icechunk/repository.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <chunkmill/version.h>

#include "base/utf8.h"
#include "convert/sink/icechunk/node_list.h"
#include "convert/sink/icechunk/stale.h"
#include "format/icechunk/key.h"
#include "format/icechunk/session.h"

/* Whoever took the lock meanwhile may have removed files of this run. */
static int note_snapshot(void *context, const uint8_t id[CM_ICE_ID], bool published, cm_error *err)
{
    cm_repository *r = context;
    const bool initial = memcmp(id, cm_ice_initial_id, CM_ICE_ID) == 0;
    const char kind = published ? CM_RUN_PUBLISHED : initial ? CM_RUN_INITIAL : 's';
    /* CM_EEXIST would mean that another commit was faster. */
    if (published && cm_lock_check(r->lock, r->beside, err) != CM_OK)
        return CM_EIO;
    int rc = published && r->publishing != NULL ? r->publishing(r->context, id, err) : CM_OK;
    return rc == CM_OK ? cm_ice_records_name(&r->journal.records, kind, id, err) : rc;
}

enum {
    MOST_DIGESTS = 100 /* arrays: every reader of the repository reads all commits' metadata */
};

/* Digests of the arrays, as `rechunk --digest` prints them, where they are known. */
static int set_digests(const cm_transform_report *r, cm_json *metadata, cm_error *err)
{
    cm_json *digests = cm_json_object();
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < r->nvariables && r->nvariables <= MOST_DIGESTS; i++)
        if (r->variable[i].digest != NULL)
            rc = cm_json_set(digests, r->variable[i].name, cm_json_string(r->variable[i].digest),
                             err);
    if (rc == CM_OK && cm_json_length(digests) > 0)
        return cm_json_set(metadata, "digests", digests, err);
    cm_json_free(digests);
    return rc;
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

/* Of a snapshot that grows: arrays that change are those that are there. */
static void keep_changes(const cm_repository *r, const cm_sink *s, cm_node_list *list,
                         const cm_repository_array *array, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cm_ice_new_node *node = cm_node_list_find(list, s->into.node, array[i].name);
        if (node != NULL)
            node->updates = array[i].was != NULL;
    }
    cm_node_list_keep_changes(list, r->base->snapshot.tree.root);
}

static int by_node(const void *a, const void *b)
{
    return memcmp(((const cm_ice_manifest_job *)a)->node, ((const cm_ice_manifest_job *)b)->node,
                  CM_ICE_NODE_ID);
}

static int write_manifests(cm_repository *r, const cm_sink *s, cm_job *job,
                           const cm_node_list *list, const cm_repository_array *array, size_t n,
                           cm_ice_manifests *made, cm_error *err)
{
    cm_ice_manifest_job *work = cm_calloc(n + 1, sizeof(work[0]), err);
    int rc = work == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        cm_ice_new_node *node = cm_node_list_find(list, s->into.node, array[i].name);
        if (node == NULL || !node->is_array) {
            rc = cm_fail(err, CM_EINTERNAL, "%s: has no document", array[i].name);
            break;
        }
        node->manifests = &made[i];
        work[i] =
            (cm_ice_manifest_job){.places = &array[i].places, .was = array[i].was, .out = &made[i]};
        memcpy(work[i].node, node->id, CM_ICE_NODE_ID);
    }
    if (rc == CM_OK) {
        qsort(work, n, sizeof(work[0]), by_node);
        rc = cm_ice_manifests_write(r->root, &r->journal.records, work, n, err);
    }
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        job->report->nreferences += made[i].noutside;
        job->report->ninline += made[i].nrefs - made[i].noutside;
        for (size_t k = 0; k < made[i].n; k++)
            job->report->nobjects += !made[i].item[k].listed;
    }
    free(work);
    return rc;
}

int cm_repository_tell(const cm_repository *r, cm_job *job, cm_error *err)
{
    char letters[CM_ICE_ID_TEXT + 1];
    cm_ice_id_letters(r->committed, letters);
    job->report->snapshot = cm_strdup(letters, err);
    return job->report->snapshot == NULL ? CM_ENOMEM : CM_OK;
}

static int commit(cm_repository *r, cm_sink *s, cm_job *job, const cm_node_list *list,
                  const cm_stale *stale, cm_error *err)
{
    const cm_transform_options *o = s->options;
    cm_json *metadata = NULL;
    /* Whoever finishes speaks for all parts. */
    const char *said = r->in_parts && o->part.command != NULL ? o->part.command : o->command;
    char *command = cm_utf8_strdup(said != NULL ? said : "", err);
    int rc =
        command == NULL ? CM_ENOMEM : make_metadata(said != NULL ? command : NULL, &metadata, err);
    cm_ice_commit c = {.root = r->root,
                       .branch = r->branch,
                       .base = r->base,
                       .change = {.message = o->message != NULL ? o->message
                                             : said != NULL     ? command
                                                                : "written by chunkmill",
                                  .metadata = metadata,
                                  .node = list->node,
                                  .n = list->n,
                                  .replaces = o->overwrite,
                                  .drops = stale->path,
                                  .ndrops = stale->n,
                                  .relied = r->relied,
                                  .nrelied = r->nrelied,
                                  .grows = r->grown},
                       .config = r->config,
                       .durable = o->durable,
                       .before = note_snapshot,
                       .context = r};
    if (rc == CM_OK && !r->grows && !r->in_parts)
        rc = set_digests(job->report, metadata, err);
    if (rc == CM_OK)
        rc = cm_lock_check(r->lock, r->beside, err);
    if (rc == CM_OK) {
        rc = cm_ice_commit_run(&c, r->committed, err);
        r->refused = rc == CM_EEXIST;
        memcpy(r->tried, c.tried, CM_ICE_ID);
    }
    job->report->written = rc == CM_OK;
    if (rc == CM_OK)
        rc = cm_repository_tell(r, job, err);
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
static int tidy(cm_repository *r, cm_store *session, const cm_ice_manifests *made, size_t narrays,
                cm_error *err)
{
    uint8_t *chunk = NULL, *manifest = NULL;
    size_t nchunks = 0, n = 0, most = 0, nsnapshots;
    (void)cm_run_journal_snapshots(&r->journal, &nsnapshots, never, NULL);
    if (nsnapshots != 1)
        return CM_OK;
    for (size_t i = 0; i < narrays; i++)
        most += made[i].n;
    int rc = cm_ice_session_files(session, &chunk, &nchunks, err);
    if (rc == CM_OK && (manifest = cm_calloc(most + 1, CM_ICE_ID, err)) == NULL)
        rc = CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < narrays; i++)
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
static int finish(cm_repository *r, cm_job *job, cm_store *session, const cm_ice_manifests *made,
                  size_t n, cm_error *err)
{
    cm_error why = {0};
    job->report->written = true;
    int rc = r->resumes ? tidy(r, session, made, n, &why) : CM_OK;
    if (!r->in_parts)
        cm_repository_close(r);
    return rc == CM_OK
               ? CM_OK
               : cm_job_warn(job, err, "%s: files of an earlier try stay: %s", r->path, why.text);
}

int cm_repository_commit(cm_repository *r, cm_sink *s, cm_job *job, cm_store *session,
                         const cm_repository_array *array, size_t n, cm_error *err)
{
    cm_node_list list = {0};
    cm_stale stale = {0};
    cm_ice_manifests *made = cm_calloc(n + 1, sizeof(made[0]), err);
    int rc = made == NULL
                 ? CM_ENOMEM
                 : cm_node_list_make(&list, cm_ice_session_documents(session), s->into.node, err);
    if (rc == CM_OK && r->grows)
        keep_changes(r, s, &list, array, n);
    if (rc == CM_OK)
        rc = write_manifests(r, s, job, &list, array, n, made, err);
    if (rc == CM_OK)
        rc = cm_stale_find(&stale, r, s, array, n, err);
    if (rc == CM_OK)
        rc = commit(r, s, job, &list, &stale, err);
    cm_stale_release(&stale);
    if (rc != CM_OK)
        cm_error_place(err, r->path);
    else
        rc = finish(r, job, session, made, n, err);
    for (size_t i = 0; made != NULL && i < n; i++)
        cm_ice_manifests_release(&made[i]);
    free(made);
    cm_node_list_release(&list);
    return rc;
}

void cm_repository_close(cm_repository *r)
{
    cm_run_journal_remove(&r->journal);
    r->begun = false;
}

/* ---- after a failure ---- */

/* Folders that are empty now, where they are ours. */
static void remove_folders(const cm_repository *r)
{
    if (!r->made || cm_store_is_remote(r->root))
        return;
    for (size_t i = 0; i < CM_REPOSITORY_NFOLDERS; i++) {
        char *path = cm_asprintf(NULL, "%s/%s", r->path, cm_repository_folders[i]);
        if (path != NULL)
            rmdir(path);
        free(path);
    }
    rmdir(r->path);
}

void cm_repository_withdraw(cm_repository *r, cm_job *job, bool goes_on, cm_error *err)
{
    size_t nsnapshots = 0;
    if (!r->begun || job->report->written)
        return;
    (void)cm_run_journal_snapshots(&r->journal, &nsnapshots, never, NULL);
    job->report->resumable = goes_on || r->resumes || (nsnapshots > 0 && !r->refused);
    if (job->report->resumable || cm_lock_check(r->lock, r->beside, NULL) == CM_EEXIST)
        return;
    if (cm_run_journal_erase(&r->journal, r->root, NULL) != CM_OK) {
        job->report->resumable = true;
        cm_error_suffix(err, "; not all that was written could be removed: the same command "
                             "finishes it");
        return;
    }
    cm_run_journal_remove(&r->journal);
    remove_folders(r);
}

void cm_repository_release(cm_repository *r)
{
    cm_run_journal_close(&r->journal);
    cm_ice_base_release(&r->own);
    cm_json_free(r->config);
}
