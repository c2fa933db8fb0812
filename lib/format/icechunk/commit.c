#include "format/icechunk/commit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "format/icechunk/key.h"
#include "format/icechunk/log_write.h"
#include "format/icechunk/repo_write.h"
#include "store/swap.h"

enum {
    MAX_TRIES = 200, /* others commit meanwhile */
    CM_ICE_BACKUP_KEY = CM_ICE_BACKUP_SIZE + 16
};

#define YEAR_3000_MS INT64_C(32503680000000)

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- what is there ---- */

static int refuse_version_1(cm_store *root, cm_error *err)
{
    cm_entry_kind kind = CM_ENTRY_NONE;
    int rc = cm_store_is_remote(root) ? cm_store_size(root, "refs/branch.main/ref.json", NULL, err)
                                      : cm_store_kind(root, "refs", &kind, err);
    if (rc != CM_OK && rc != CM_ENOTFOUND)
        return rc;
    const bool there = cm_store_is_remote(root) ? rc == CM_OK : kind != CM_ENTRY_NONE;
    return !there ? CM_OK
                  : cm_fail(err, CM_EUNSUPPORTED,
                            "the repository is of version 1 of Icechunk's format, and only version "
                            "%d can be written; icechunk.upgrade_icechunk_repository migrates it",
                            CM_ICE_VERSION);
}

static int read_tip(cm_store *root, const char *branch, cm_ice_base *b, cm_error *err)
{
    char key[CM_ICE_KEY_SIZE];
    const uint8_t *tip = cm_ice_repo_tip(b->repo.tree.root, branch);
    if (tip == NULL)
        tip = cm_ice_repo_tip(b->repo.tree.root, "main");
    if (tip == NULL)
        return cm_fail(err, CM_EFORMAT, "the repository has no branch main");
    memcpy(b->tip, tip, CM_ICE_ID);
    cm_ice_key("snapshots", tip, key);
    int rc = cm_ice_file_read(root, key, CM_ICE_SNAPSHOT_FILE, &cm_ice_snapshot, &b->snapshot, err);
    if (rc == CM_OK && b->snapshot.version != CM_ICE_VERSION)
        rc = cm_fail(err, CM_EUNSUPPORTED,
                     "the snapshot at the tip of %s is of version %u of Icechunk's format; a "
                     "commit by icechunk itself makes one of version %d",
                     branch, b->snapshot.version, CM_ICE_VERSION);
    return rc;
}

int cm_ice_base_open(cm_store *root, const char *branch, cm_ice_base *out, cm_error *err)
{
    *out = (cm_ice_base){0};
    int rc = cm_ice_file_read(root, "repo", CM_ICE_REPO_FILE, &cm_ice_repo, &out->repo, err);
    if (rc == CM_ENOTFOUND) {
        memcpy(out->tip, cm_ice_initial_id, CM_ICE_ID);
        rc = refuse_version_1(root, err);
        return rc == CM_OK ? cm_ice_snapshot_initial(&out->snapshot.tree, now_us(), err) : rc;
    }
    out->there = rc == CM_OK;
    if (rc == CM_OK)
        rc = cm_ice_repo_check(out->repo.tree.root, err);
    if (rc == CM_OK)
        rc = read_tip(root, branch, out, err);
    if (rc != CM_OK)
        cm_ice_base_release(out);
    return rc;
}

int cm_ice_base_open_at(cm_store *root, const char *branch, const uint8_t id[CM_ICE_ID],
                        cm_ice_base *out, cm_error *err)
{
    char key[CM_ICE_KEY_SIZE];
    int rc = cm_ice_base_open(root, branch, out, err);
    if (rc != CM_OK || memcmp(out->tip, id, CM_ICE_ID) == 0)
        return rc;
    cm_ice_key("snapshots", id, key);
    cm_ice_read_release(&out->snapshot);
    memcpy(out->tip, id, CM_ICE_ID);
    rc = cm_ice_file_read(root, key, CM_ICE_SNAPSHOT_FILE, &cm_ice_snapshot, &out->snapshot, err);
    if (rc == CM_ENOTFOUND)
        rc = cm_fail(err, CM_EEXIST, "the snapshot that was at the tip of %s is not there any more",
                     branch);
    if (rc != CM_OK)
        cm_ice_base_release(out);
    return rc;
}

void cm_ice_base_release(cm_ice_base *base)
{
    cm_ice_read_release(&base->repo);
    cm_ice_read_release(&base->snapshot);
    base->there = false;
}

/* ---- files ---- */

/* The snapshot that every repository begins with, unless it is there. */
static int write_initial(const cm_ice_commit *c, uint64_t when, cm_error *err)
{
    cm_store *root = c->root;
    cm_ice_log_content log = {0};
    cm_fb_tree tree;
    cm_flat_writer w = {0};
    char key[CM_ICE_KEY_SIZE];
    cm_ice_key("snapshots", cm_ice_initial_id, key);
    if (cm_store_size(root, key, NULL, NULL) == CM_OK)
        return CM_OK;
    memcpy(log.id, cm_ice_initial_id, CM_ICE_ID);
    int rc = c->before != NULL ? c->before(c->context, cm_ice_initial_id, false, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_ice_log_write(root, &log, err);
    if (rc == CM_OK)
        rc = cm_ice_snapshot_initial(&tree, when, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_fb_write(tree.root, CM_ICE_IDENTIFIER, &w, err);
    if (rc == CM_OK)
        rc = cm_ice_file_write(root, key, CM_ICE_SNAPSHOT_FILE, &w.buf, NULL, err);
    cm_flat_release(&w);
    cm_fb_release(&tree);
    return rc;
}

/* A snapshot of ours that nothing refers to. */
static void remove_snapshot(cm_store *root, const uint8_t *id)
{
    char key[CM_ICE_KEY_SIZE];
    cm_ice_key("snapshots", id, key);
    (void)cm_store_delete(root, key, NULL);
    cm_ice_key("transactions", id, key);
    (void)cm_store_delete(root, key, NULL);
}

/* ---- one try ---- */

typedef struct attempt {
    cm_ice_commit *c;
    cm_ice_base now;
    bool written; /* the snapshot ID, on top of PARENT */
    uint8_t id[CM_ICE_ID], parent[CM_ICE_ID];
    char backup[CM_ICE_BACKUP_KEY]; /* of the `repo` that was to be replaced; "": none */
} attempt;

static int write_snapshot(attempt *a, cm_error *err)
{
    cm_ice_commit *c = a->c;
    const bool moved = memcmp(a->now.tip, c->base->tip, CM_ICE_ID) != 0;
    if (a->written)
        remove_snapshot(c->root, a->id);
    a->written = false;
    memcpy(a->parent, a->now.tip, CM_ICE_ID);
    memcpy(c->tried, a->now.tip, CM_ICE_ID);
    int rc = cm_ice_id_random(a->id, CM_ICE_ID, err);
    if (rc == CM_OK && c->before != NULL)
        rc = c->before(c->context, a->id, false, err);
    if (rc == CM_OK && !a->now.there)
        rc = write_initial(c, c->change.now_us, err);
    if (rc == CM_OK)
        rc = cm_ice_snapshot_write(c->root, &a->now.snapshot.tree,
                                   moved ? c->base->snapshot.tree.root : NULL, &c->change, a->id,
                                   err);
    a->written = rc == CM_OK;
    return rc;
}

/* "repo.MILLISECONDS.ID": names of later copies sort first. */
static int name_backup(char name[CM_ICE_BACKUP_SIZE], uint64_t when, cm_error *err)
{
    uint8_t id[CM_ICE_ID];
    char letters[CM_ICE_ID_TEXT + 1];
    int rc = cm_ice_id_random(id, sizeof(id), err);
    cm_ice_id_letters(id, letters);
    snprintf(name, CM_ICE_BACKUP_SIZE, "repo.%lld.%s",
             (long long)(YEAR_3000_MS - (int64_t)(when / 1000)), letters);
    return rc;
}

static int make_repo(attempt *a, uint64_t when, const char *backup, cm_buf *out, cm_error *err)
{
    const cm_ice_change *change = &a->c->change;
    cm_fb_tree fresh = {0}, *repo = &a->now.repo.tree;
    cm_flat_writer w = {0};
    cm_ice_tip tip = {.branch = a->c->branch,
                      .message = change->message,
                      .metadata = change->metadata,
                      .now_us = when,
                      .backup = backup};
    memcpy(tip.id, a->id, CM_ICE_ID);
    memcpy(tip.parent, a->parent, CM_ICE_ID);
    int rc = CM_OK;
    if (!a->now.there) {
        repo = &fresh;
        rc = cm_ice_repo_initial(repo, a->c->config, when - 2, err);
    }
    if (rc == CM_OK)
        rc = cm_ice_repo_commit(repo, &tip, err);
    if (rc == CM_OK)
        rc = cm_fb_write(repo->root, CM_ICE_IDENTIFIER, &w, err);
    if (rc == CM_OK)
        rc = cm_ice_file_seal(CM_ICE_REPO_FILE, &w.buf, out, err);
    cm_flat_release(&w);
    cm_fb_release(&fresh);
    return rc;
}

/* The old state gets a copy, and the new one takes its place. */
static int publish(attempt *a, cm_error *err)
{
    cm_store *root = a->c->root;
    const cm_buf *was = &a->now.repo.stored;
    char backup[CM_ICE_BACKUP_SIZE];
    cm_buf repo = {0};
    uint64_t when = now_us();
    if (a->now.there && when < cm_ice_repo_updated(a->now.repo.tree.root) + 2)
        when = cm_ice_repo_updated(a->now.repo.tree.root) + 2;
    int rc = name_backup(backup, when, err);
    if (rc == CM_OK)
        rc = make_repo(a, when, a->now.there ? backup : NULL, &repo, err);
    if (rc == CM_OK && a->now.there) {
        snprintf(a->backup, sizeof(a->backup), "overwritten/%s", backup);
        rc = cm_store_put(root, a->backup, was->data, was->nbytes, err);
    }
    if (rc == CM_OK && a->c->durable)
        rc = cm_store_sync(root, err);
    if (rc == CM_OK && a->c->before != NULL)
        rc = a->c->before(a->c->context, a->id, true, err);
    if (rc == CM_OK)
        rc = cm_store_swap(root, "repo", (cm_content){a->now.there ? was->data : NULL, was->nbytes},
                           (cm_content){repo.data, repo.nbytes}, err);
    if (rc == CM_OK && a->c->durable)
        rc = cm_store_sync(root, err);
    cm_buf_release(&repo);
    return rc;
}

/* After a look that did not find the commit: only that would name the copy. */
static void remove_backup(attempt *a)
{
    if (a->backup[0] != '\0')
        (void)cm_store_delete(a->c->root, a->backup, NULL);
    a->backup[0] = '\0';
}

/* *DONE: the commit is there.  CM_OK without it: another writer was faster. */
static int try(attempt *a, bool *done, cm_error *err)
{
    cm_error faster = {0};
    int rc = cm_ice_base_open(a->c->root, a->c->branch, &a->now, err);
    /* The answer to a request that succeeded may have been lost. */
    *done =
        rc == CM_OK && a->written && a->now.there && cm_ice_repo_has(a->now.repo.tree.root, a->id);
    if (rc != CM_OK || *done)
        return rc;
    remove_backup(a);
    if (!a->written || memcmp(a->now.tip, a->parent, CM_ICE_ID) != 0)
        rc = write_snapshot(a, err);
    if (rc != CM_OK)
        return rc;
    rc = publish(a, &faster);
    *done = rc == CM_OK;
    if (rc == CM_OK || rc == CM_EEXIST)
        return CM_OK;
    if (err != NULL)
        *err = faster;
    return rc;
}

int cm_ice_commit_run(cm_ice_commit *c, uint8_t id[CM_ICE_ID], cm_error *err)
{
    attempt a = {.c = c};
    bool done = false;
    int rc = CM_OK;
    c->change.now_us = now_us();
    if (c->durable)
        rc = cm_store_sync(c->root, err);
    for (int i = 0; rc == CM_OK && !done && i < MAX_TRIES; i++) {
        rc = try(&a, &done, err);
        cm_ice_base_release(&a.now);
    }
    if (rc == CM_OK && !done)
        rc = cm_fail(err, CM_EIO, "other writers change the repository without a pause");
    if (rc == CM_EEXIST && a.written)
        remove_snapshot(c->root, a.id);
    memcpy(id, a.id, CM_ICE_ID);
    return rc;
}
