#include "convert/sink/icechunk/repository.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "convert/sink/icechunk/node_list.h"
#include "convert/sink/icechunk/unlike.h"
#include "convert/sink/store/fingerprint.h"
#include "format/counted.h"
#include "format/icechunk/key.h"
#include "format/icechunk/repo_write.h"
#include "options/store_path.h"
#include "store/open.h"

/* ---- what stands there ---- */

const char *const cm_repository_folders[CM_REPOSITORY_NFOLDERS] = {
    "chunks", "manifests", "snapshots", "transactions", "overwritten"};

typedef struct seen {
    bool remote;
    bool any; /* names that no run leaves: behind a network it has no journal to tell of them */
} seen;

static int is_there(void *context, const char *name, bool is_prefix, cm_error *err)
{
    seen *s = context;
    bool left = false;
    (void)err;
    for (size_t i = 0; s->remote && is_prefix && i < CM_REPOSITORY_NFOLDERS; i++)
        left |= strcmp(name, cm_repository_folders[i]) == 0;
    s->any |= !left;
    return s->any ? CM_ECANCELED : CM_OK;
}

static bool has_plan(const cm_beside *b)
{
    cm_parts_plan plan;
    const bool there = cm_parts_plan_read(b, &plan, NULL) == CM_OK && plan.json != NULL;
    cm_parts_plan_release(&plan);
    return there;
}

/* Allows a repository, the leftovers of a run of ours, and nothing. */
static int check_folder(const cm_output *out, cm_store *root, cm_error *err)
{
    seen s = {.remote = cm_store_is_remote(root)};
    int rc = cm_store_size(root, "repo", NULL, err);
    if (rc != CM_ENOTFOUND)
        return rc;
    rc = cm_store_list(root, "", is_there, &s, err);
    if (rc != CM_OK && !s.any)
        return rc;
    if (!s.any || cm_run_journal_is_there(&out->beside) || has_plan(&out->beside))
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

int cm_repository_check_place(cm_output *out, cm_error *err)
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
    if (rc == CM_OK)
        rc = cm_icechunk_check_branch(at.path, err);
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

static int check_texts(const cm_sink *s, cm_error *err)
{
    const cm_transform_options *o = s->options;
    int rc = cm_ice_branch_check(o->branch, err);
    if (rc == CM_OK)
        rc = cm_ice_text_check("`message`", o->message, err);
    return rc == CM_OK && *s->into.node != '\0' ? cm_ice_text_check(o->target, s->into.node, err)
                                                : rc;
}

static int find_target(cm_sink *s, cm_job *job, cm_error *err)
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
                                       .net = o->net,
                                       .monitor = o->part.on ? o->monitor : NULL};
    return cm_output_find(&request, &s->out, err);
}

static int place_error(const cm_sink *s, int rc, cm_error *err)
{
    if (rc != CM_OK)
        cm_error_place(err, s->out.path != NULL ? s->out.path : s->into.root);
    return rc;
}

int cm_repository_find(cm_sink *s, cm_job *job, cm_error *err)
{
    const cm_transform_options *o = s->options;
    int rc = find_target(s, job, err);
    if (rc == CM_OK && !o->dry_run)
        rc = cm_lock_peek(&s->out.beside, o->break_lock, err);
    if (rc == CM_OK)
        rc = cm_repository_check_place(&s->out, err);
    return place_error(s, rc, err);
}

int cm_repository_find_part(cm_sink *s, cm_job *job, cm_error *err)
{
    return place_error(s, find_target(s, job, err), err);
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

typedef struct asking {
    const cm_ice_base *base;
    uint8_t *id; /* that is there */
} asking;

static bool is_in_repo(void *context, const uint8_t *id)
{
    const asking *a = context;
    const bool there = a->base->there && cm_ice_repo_has(a->base->repo.tree.root, id);
    if (there)
        memcpy(a->id, id, CM_ICE_ID);
    return there;
}

/* Whether a snapshot that J names was published. */
static bool is_published(const cm_repository *r, const cm_run_journal *j, size_t *nsnapshots,
                         uint8_t id[CM_ICE_ID])
{
    asking a = {r->base, id};
    return cm_run_journal_snapshots(j, nsnapshots, is_in_repo, &a);
}

/* Removes the files of an earlier run, unless a snapshot was about to refer to them. */
static int erase_left(cm_repository *r, cm_job *job, size_t nsnapshots, cm_error *err)
{
    int rc = nsnapshots == 0
                 ? cm_run_journal_erase(&r->journal, r->root, err)
                 : cm_job_note(job, err,
                               "%s: files of a run that was stopped at its very end stay; "
                               "Icechunk's own garbage collection removes them",
                               r->path);
    if (rc == CM_OK)
        cm_run_journal_remove(&r->journal);
    cm_run_journal_close(&r->journal);
    r->journal.there = false;
    return rc;
}

int cm_repository_settle(cm_repository *r, cm_job *job, const cm_json *head, bool drops,
                         cm_settled *out, cm_error *err)
{
    size_t nsnapshots = 0;
    uint8_t id[CM_ICE_ID];
    *out = CM_SETTLED_NOTHING;
    if (!r->journal.there) { /* files without a head: of a run that ended */
        cm_run_journal_remove(&r->journal);
        return CM_OK;
    }
    /* A run that adds to arrays begins again; of a commit of parts the chunks are elsewhere. */
    const bool grows = cm_json_has(r->journal.head, CM_REPOSITORY_GROWS) ||
                       cm_json_has(r->journal.head, CM_REPOSITORY_PARTS);
    const bool same = cm_json_equal(r->journal.head, head);
    const bool again = grows || (same && r->counts);
    int rc = cm_run_journal_continue(&r->journal, err);
    if (rc != CM_OK)
        return rc;
    if (is_published(r, &r->journal, &nsnapshots, id)) {
        cm_run_journal_remove(&r->journal);
        cm_run_journal_close(&r->journal);
        *out = same ? CM_SETTLED_DONE : CM_SETTLED_NOTHING;
        r->journal.there = false;
        return CM_OK;
    }
    if (same && !drops && !again) {
        *out = CM_SETTLED_GOES_ON;
        return CM_OK;
    }
    if (!drops && !again)
        return cm_fail(err, CM_EEXIST,
                       "%s: holds chunks of a run with other options or inputs, which was stopped; "
                       "the same command goes on with them, `overwrite` removes them",
                       r->path);
    return erase_left(r, job, nsnapshots, err);
}

/* Removes the chunks of part NUMBER, which nothing refers to. */
static int erase_part(const cm_repository *r, uint64_t number, cm_error *err)
{
    cm_run_journal j;
    int rc = cm_run_journal_look_part(&j, r->beside, number, err);
    if (rc == CM_OK && j.there && j.named)
        rc = cm_run_journal_continue(&j, err);
    if (rc == CM_OK && j.there && j.named)
        rc = cm_run_journal_erase(&j, r->root, err);
    cm_run_journal_close(&j);
    return rc;
}

int cm_repository_give_up(cm_repository *r, const cm_parts_plan *plan, cm_error *err)
{
    cm_run_journal j = {.beside = NULL};
    size_t nsnapshots = 0;
    uint8_t id[CM_ICE_ID];
    if (plan->json == NULL || plan->complete)
        return CM_OK;
    int rc = cm_run_journal_look_commit(&j, r->beside, err);
    if (rc == CM_OK && j.there && j.named) {
        rc = cm_run_journal_continue(&j, err);
        if (rc == CM_OK)
            (void)is_published(r, &j, &nsnapshots, id);
    }
    cm_run_journal_close(&j);
    for (uint64_t k = 0; rc == CM_OK && nsnapshots == 0 && k < plan->nparts; k++)
        rc = erase_part(r, k, err);
    return rc;
}

int cm_repository_settle_parts(cm_repository *r, cm_error *err)
{
    cm_parts_plan plan = {0};
    int rc = cm_parts_plan_read(r->beside, &plan, err);
    if (rc == CM_OK && plan.json != NULL && !plan.complete) {
        rc = cm_repository_give_up(r, &plan, err);
        if (rc == CM_OK)
            rc = cm_parts_forget(r->beside, err);
    }
    cm_parts_plan_release(&plan);
    return rc;
}

/* ---- beginning ---- */

/* Temporaries of killed runs; the lock is held. */
int cm_repository_sweep(cm_store *root, cm_error *err)
{
    int rc = cm_store_is_remote(root) ? CM_OK : cm_store_sweep_temporaries(root, "", false, err);
    for (size_t i = 0; rc == CM_OK && !cm_store_is_remote(root) && i < CM_REPOSITORY_NFOLDERS; i++)
        rc = cm_store_sweep_temporaries(root, cm_repository_folders[i], false, err);
    return rc;
}

static int open_root(cm_repository *r, cm_sink *s, cm_job *job, cm_error *err)
{
    cm_output *out = &s->out;
    const cm_store_options options = {.output = true, .create = true, .net = out->net};
    int rc = cm_lock_take(&out->beside, out->break_lock, &out->lock, &out->note, err);
    if (rc == CM_OK && out->note != NULL)
        rc = cm_job_warn(job, err, "%s", out->note);
    /* A part that began meanwhile looks at this lock after it took its own. */
    if (rc == CM_OK)
        rc = cm_parts_check_none(&out->beside, out->overwrite, err);
    /* Another run may have made something there before the lock was taken. */
    if (rc == CM_OK)
        rc = cm_repository_check_place(out, err);
    r->made = out->state == CM_OUTPUT_ABSENT;
    r->path = out->path;
    r->beside = &out->beside;
    r->lock = out->lock;
    if (rc == CM_OK)
        rc = cm_store_open(out->root, &options, &out->store, err);
    r->root = out->store;
    if (rc == CM_OK)
        rc = cm_repository_sweep(r->root, err);
    r->base = &r->own;
    return rc == CM_OK ? cm_ice_base_open(r->root, r->branch, &r->own, err) : rc;
}

/* Where statistics of NODE go. */
static char *statistics_path(const char *node, cm_error *err)
{
    return cm_asprintf(err, "/%s%s" CM_REPOSITORY_STATISTICS, node, *node != '\0' ? "/" : "");
}

char *cm_repository_statistics(const cm_repository *r, const char *node)
{
    cm_json *document = NULL;
    char *path = statistics_path(node, NULL);
    const cm_fb_table *there =
        path != NULL ? cm_ice_snapshot_find(r->base->snapshot.tree.root, path) : NULL;
    const cm_fb_value *v = there != NULL ? &there->value[CM_ICE_NODE_DOCUMENT] : NULL;
    bool ours = v != NULL && cm_json_parse(v->bytes, v->n, &document, NULL) == CM_OK;
    ours = ours && cm_group_is_counted(cm_json_member(document, "attributes"));
    cm_json_free(document);
    if (ours)
        return path;
    free(path);
    return NULL;
}

/* One that is there is replaced if that was asked for; one that is somebody's own never. */
static int check_statistics(const cm_repository *r, const cm_sink *s, cm_error *err)
{
    const char *node = s->into.node;
    if (!s->options->statistics)
        return CM_OK;
    char *ours = cm_repository_statistics(r, node);
    char *path = statistics_path(node, err);
    int rc = path == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && ours != NULL && !s->options->overwrite)
        rc = cm_fail(err, CM_EEXIST, "%s: is in the repository already; `overwrite` replaces it",
                     path);
    if (rc == CM_OK && ours == NULL &&
        cm_ice_snapshot_find(r->base->snapshot.tree.root, path) != NULL)
        rc = cm_fail(err, CM_EEXIST,
                     "%s: is in the repository and was not made by `statistics`, which would mix "
                     "its own with it",
                     path);
    free(path);
    free(ours);
    return rc;
}

/* Before any chunk is written: the commit would be refused for a node that is there. */
static int check_nodes(cm_repository *r, const cm_sink *s, cm_job *job, cm_error *err)
{
    cm_store *documents = NULL;
    cm_node_list list = {0};
    char *unlike = NULL;
    int rc = cm_job_describe_in_memory(job, &documents, err);
    if (rc == CM_OK)
        rc = cm_node_list_make(&list, documents, s->into.node, err);
    const cm_ice_change change = {
        .node = list.node, .n = list.n, .replaces = s->options->overwrite};
    if (rc == CM_OK)
        rc = cm_ice_snapshot_check(r->base->snapshot.tree.root, NULL, &change, err);
    if (rc == CM_OK)
        rc = cm_unlike_find(r->base->snapshot.tree.root, &list, &unlike, err);
    if (rc == CM_OK && unlike != NULL)
        rc = cm_job_warn(job, err, "%s", unlike);
    free(unlike);
    cm_node_list_release(&list);
    cm_store_free(documents);
    return rc;
}

int cm_repository_check(cm_repository *r, const cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = check_nodes(r, s, job, err);
    return rc == CM_OK ? check_statistics(r, s, err) : rc;
}

static int begin(cm_repository *r, cm_sink *s, cm_job *job, bool *done, cm_error *err)
{
    cm_json *head = NULL;
    cm_settled left = CM_SETTLED_NOTHING;
    r->counts = s->options->statistics || s->options->report != NULL;
    r->branch = s->options->branch != NULL ? s->options->branch : "main";
    int rc = open_root(r, s, job, err);
    if (rc == CM_OK)
        rc = cm_repository_settle_parts(r, err);
    if (rc == CM_OK)
        rc = cm_run_journal_look(&r->journal, &s->out.beside, err);
    if (rc == CM_OK)
        rc = make_head(r, s, job, &head, err);
    if (rc == CM_OK)
        rc = cm_repository_settle(r, job, head, s->options->overwrite, &left, err);
    *done = left == CM_SETTLED_DONE;
    s->out.resumes = r->resumes = left == CM_SETTLED_GOES_ON;
    if (rc == CM_OK && !*done)
        rc = cm_repository_check(r, s, job, err);
    if (rc == CM_OK && !*done && !r->resumes)
        rc = cm_run_journal_begin(&r->journal, head, job->scratch.folder, err);
    s->out.begun = r->begun = rc == CM_OK;
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
