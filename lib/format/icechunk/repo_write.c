#include "format/icechunk/repo_write.h"

#include <stdlib.h>
#include <string.h>

#include "format/icechunk/flex_write.h"
#include "format/icechunk/snapshot_write.h"

enum {
    MOST_UPDATES = 1000 /* that one file lists; icechunk's default */
};

/* ---- looking ---- */

static bool is_named(const cm_fb_table *ref, const char *name)
{
    const cm_fb_value *v = &ref->value[CM_ICE_REF_NAME];
    return v->n == strlen(name) && memcmp(v->bytes, name, v->n) == 0;
}

const uint8_t *cm_ice_repo_snapshot(const cm_fb_table *repo, uint64_t index)
{
    const cm_fb_value *list = &repo->value[CM_ICE_REPO_SNAPSHOTS];
    return index < list->n ? list->item[index]->value[CM_ICE_INFO_ID].bytes : NULL;
}

cm_fb_table *cm_ice_repo_ref(const cm_fb_value *refs, const char *name)
{
    for (size_t i = 0; i < refs->n; i++)
        if (is_named(refs->item[i], name))
            return refs->item[i];
    return NULL;
}

const uint8_t *cm_ice_repo_tip(const cm_fb_table *repo, const char *branch)
{
    const cm_fb_table *ref = cm_ice_repo_ref(&repo->value[CM_ICE_REPO_BRANCHES], branch);
    return ref == NULL ? NULL : cm_ice_repo_snapshot(repo, cm_fb_u64(ref, CM_ICE_REF_SNAPSHOT));
}

bool cm_ice_repo_has(const cm_fb_table *repo, const uint8_t id[CM_ICE_ID])
{
    const cm_fb_value *list = &repo->value[CM_ICE_REPO_SNAPSHOTS];
    for (size_t i = 0; i < list->n; i++)
        if (memcmp(cm_ice_repo_snapshot(repo, i), id, CM_ICE_ID) == 0)
            return true;
    return false;
}

uint64_t cm_ice_repo_updated(const cm_fb_table *repo)
{
    const cm_fb_value *list = &repo->value[CM_ICE_REPO_UPDATES];
    return list->n > 0 ? cm_fb_u64(list->item[0], CM_ICE_UPDATE_TIME) : 0;
}

int cm_ice_repo_check(const cm_fb_table *repo, cm_error *err)
{
    const cm_fb_table *status = repo->value[CM_ICE_REPO_STATUS].item[0];
    const uint64_t version = cm_fb_u64(repo, CM_ICE_REPO_VERSION);
    if (version != CM_ICE_VERSION)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "the repository is of version %llu of Icechunk's format, and only version "
                       "%d can be written",
                       (unsigned long long)version, CM_ICE_VERSION);
    if (cm_fb_u64(status, CM_ICE_STATUS_AVAILABILITY) == 0)
        return CM_OK;
    const cm_fb_value *why = &status->value[CM_ICE_STATUS_REASON];
    return cm_fail(err, CM_EINVAL, "the repository is not open for writing%s%.*s",
                   why->there ? ": " : "", why->there ? (int)why->n : 0,
                   why->there ? (const char *)why->bytes : "");
}

/* ---- lists ---- */

/* The list in SLOT of T with FRESH inserted at position AT. */
static int insert(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, size_t at, cm_fb_table *fresh,
                  cm_error *err)
{
    cm_fb_value *v = &t->value[slot];
    cm_fb_table **list = cm_fb_alloc(tree, (v->n + 1) * sizeof(list[0]), err);
    if (list == NULL)
        return CM_ENOMEM;
    if (v->n > 0) {
        memcpy(list, v->item, at * sizeof(list[0]));
        memcpy(list + at + 1, v->item + at, (v->n - at) * sizeof(list[0]));
    }
    list[at] = fresh;
    *v = (cm_fb_value){.there = true, .item = list, .n = v->n + 1};
    return CM_OK;
}

/* Indices of snapshots from AT on are one higher. */
static int shift(cm_fb_tree *tree, const cm_fb_value *list, unsigned slot, size_t at, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < list->n; i++) {
        const uint64_t was = cm_fb_u64(list->item[i], slot);
        if (was >= at && was != UINT32_MAX) /* -1: no parent */
            rc = cm_fb_set_u64(tree, list->item[i], slot, was + 1, err);
    }
    return rc;
}

/* ---- snapshots ---- */

static size_t position(const cm_fb_table *repo, const uint8_t *id)
{
    const cm_fb_value *list = &repo->value[CM_ICE_REPO_SNAPSHOTS];
    size_t at = 0;
    while (at < list->n && memcmp(cm_ice_repo_snapshot(repo, at), id, CM_ICE_ID) < 0)
        at++;
    return at;
}

static int describe(cm_fb_tree *tree, const uint8_t *id, uint64_t parent, const char *message,
                    const cm_json *metadata, uint64_t now_us, cm_fb_table **out, cm_error *err)
{
    cm_fb_table *t = *out = cm_fb_table_new(tree, &cm_ice_info, err);
    if (t == NULL)
        return CM_ENOMEM;
    int rc = cm_fb_set(tree, t, CM_ICE_INFO_ID, id, 1, err);
    if (rc == CM_OK)
        rc = cm_fb_set_u64(tree, t, CM_ICE_INFO_PARENT, parent, err);
    if (rc == CM_OK)
        rc = cm_fb_set_u64(tree, t, CM_ICE_INFO_FLUSHED, now_us, err);
    if (rc == CM_OK)
        rc = cm_fb_set_text(tree, t, CM_ICE_INFO_MESSAGE, message, err);
    return rc == CM_OK ? cm_ice_set_metadata(tree, t, CM_ICE_INFO_METADATA, metadata, err) : rc;
}

/* Adds the snapshot of TIP; *AT is its index. */
static int add_snapshot(cm_fb_tree *tree, const cm_ice_tip *tip, size_t *at, cm_error *err)
{
    cm_fb_table *repo = tree->root, *info;
    *at = position(repo, tip->id);
    int rc = shift(tree, &repo->value[CM_ICE_REPO_SNAPSHOTS], CM_ICE_INFO_PARENT, *at, err);
    if (rc == CM_OK)
        rc = shift(tree, &repo->value[CM_ICE_REPO_BRANCHES], CM_ICE_REF_SNAPSHOT, *at, err);
    if (rc == CM_OK)
        rc = shift(tree, &repo->value[CM_ICE_REPO_TAGS], CM_ICE_REF_SNAPSHOT, *at, err);
    if (rc != CM_OK)
        return rc;
    size_t parent = position(repo, tip->parent);
    parent += parent >= *at;
    rc = describe(tree, tip->id, parent, tip->message, tip->metadata, tip->now_us, &info, err);
    return rc == CM_OK ? insert(tree, repo, CM_ICE_REPO_SNAPSHOTS, *at, info, err) : rc;
}

/* ---- branches ---- */

static int add_branch(cm_fb_tree *tree, const char *name, uint64_t snapshot, cm_error *err)
{
    const cm_fb_value *list = &tree->root->value[CM_ICE_REPO_BRANCHES];
    cm_fb_table *ref = cm_fb_table_new(tree, &cm_ice_ref, err);
    const size_t n = strlen(name);
    size_t at = 0;
    for (; at < list->n; at++) {
        const cm_fb_value *v = &list->item[at]->value[CM_ICE_REF_NAME];
        const int order = memcmp(v->bytes, name, v->n < n ? v->n : n);
        if (order > 0 || (order == 0 && v->n > n))
            break;
    }
    int rc = ref == NULL ? CM_ENOMEM : cm_fb_set_text(tree, ref, CM_ICE_REF_NAME, name, err);
    if (rc == CM_OK)
        rc = cm_fb_set_u64(tree, ref, CM_ICE_REF_SNAPSHOT, snapshot, err);
    return rc == CM_OK ? insert(tree, tree->root, CM_ICE_REPO_BRANCHES, at, ref, err) : rc;
}

/* ---- updates ---- */

static int add_update(cm_fb_tree *tree, unsigned type, cm_fb_table *data, uint64_t now_us,
                      cm_error *err)
{
    cm_fb_table *t = cm_fb_table_new(tree, &cm_ice_update, err);
    int rc = t == NULL ? CM_ENOMEM : cm_fb_set_u64(tree, t, CM_ICE_UPDATE_TYPE, type, err);
    if (rc == CM_OK)
        rc = cm_fb_set_tables(tree, t, CM_ICE_UPDATE_DATA, &data, 1, err);
    if (rc == CM_OK)
        rc = cm_fb_set_u64(tree, t, CM_ICE_UPDATE_TIME, now_us, err);
    return rc == CM_OK ? insert(tree, tree->root, CM_ICE_REPO_UPDATES, 0, t, err) : rc;
}

static int add_branch_update(cm_fb_tree *tree, const cm_ice_tip *tip, cm_error *err)
{
    cm_fb_table *data = cm_fb_table_new(tree, &cm_ice_branch_update, err);
    int rc = data == NULL ? CM_ENOMEM : cm_fb_set_text(tree, data, 0, tip->branch, err);
    return rc == CM_OK ? add_update(tree, CM_ICE_UPDATE_BRANCH_CREATED, data, tip->now_us - 1, err)
                       : rc;
}

static int add_commit_update(cm_fb_tree *tree, const cm_ice_tip *tip, cm_error *err)
{
    cm_fb_table *data = cm_fb_table_new(tree, &cm_ice_commit_update, err);
    int rc = data == NULL ? CM_ENOMEM
                          : cm_fb_set_text(tree, data, CM_ICE_COMMIT_BRANCH, tip->branch, err);
    if (rc == CM_OK)
        rc = cm_fb_set(tree, data, CM_ICE_COMMIT_SNAPSHOT, tip->id, 1, err);
    return rc == CM_OK ? add_update(tree, CM_ICE_UPDATE_COMMIT, data, tip->now_us, err) : rc;
}

/*
 * A long list ends at an update whose state before has a copy: what follows is in that file, which
 * the next state points to.
 */
static void trim_updates(cm_fb_table *repo)
{
    cm_fb_value *list = &repo->value[CM_ICE_REPO_UPDATES];
    for (size_t i = MOST_UPDATES; i < list->n; i++) {
        const cm_fb_value *backup = &list->item[i]->value[CM_ICE_UPDATE_BACKUP];
        if (!backup->there)
            continue;
        repo->value[CM_ICE_REPO_BEFORE] = *backup;
        list->n = i;
    }
}

/* ---- the whole ---- */

int cm_ice_repo_commit(cm_fb_tree *tree, const cm_ice_tip *tip, cm_error *err)
{
    cm_fb_table *repo = tree->root;
    cm_fb_value *updates = &repo->value[CM_ICE_REPO_UPDATES];
    size_t at = 0;
    int rc = CM_OK;
    if (tip->backup != NULL && updates->n > 0)
        rc = cm_fb_set_text(tree, updates->item[0], CM_ICE_UPDATE_BACKUP, tip->backup, err);
    if (rc == CM_OK)
        rc = add_snapshot(tree, tip, &at, err);
    if (rc != CM_OK)
        return rc;
    cm_fb_table *branch = cm_ice_repo_ref(&repo->value[CM_ICE_REPO_BRANCHES], tip->branch);
    if (branch != NULL) {
        rc = cm_fb_set_u64(tree, branch, CM_ICE_REF_SNAPSHOT, at, err);
    } else {
        rc = add_branch(tree, tip->branch, at, err);
        if (rc == CM_OK)
            rc = add_branch_update(tree, tip, err);
    }
    if (rc == CM_OK)
        rc = add_commit_update(tree, tip, err);
    trim_updates(repo);
    return rc;
}

static int set_config(cm_fb_tree *tree, const cm_json *config, cm_error *err)
{
    cm_buf bytes = {0};
    if (config == NULL)
        return CM_OK;
    int rc = cm_flex_write(config, &bytes, err);
    if (rc == CM_OK)
        rc = cm_fb_set(tree, tree->root, CM_ICE_REPO_CONFIG, bytes.data, bytes.nbytes, err);
    cm_buf_release(&bytes);
    return rc;
}

static int set_status(cm_fb_tree *tree, uint64_t now_us, cm_error *err)
{
    cm_fb_table *status = cm_fb_table_new(tree, &cm_ice_status, err);
    int rc = status == NULL ? CM_ENOMEM
                            : cm_fb_set_u64(tree, status, CM_ICE_STATUS_AVAILABILITY, 0, err);
    if (rc == CM_OK)
        rc = cm_fb_set_u64(tree, status, CM_ICE_STATUS_SET_AT, now_us, err);
    return rc == CM_OK ? cm_fb_set_tables(tree, tree->root, CM_ICE_REPO_STATUS, &status, 1, err)
                       : rc;
}

/* The initial snapshot and its branch. */
static int set_first(cm_fb_tree *tree, uint64_t now_us, cm_error *err)
{
    cm_json *metadata = NULL;
    cm_fb_table *info, *data;
    int rc = cm_ice_initial_metadata(&metadata, err);
    if (rc == CM_OK)
        rc = describe(tree, cm_ice_initial_id, UINT32_MAX, CM_ICE_INITIAL_MESSAGE, metadata, now_us,
                      &info, err);
    cm_json_free(metadata);
    if (rc == CM_OK)
        rc = cm_fb_set_tables(tree, tree->root, CM_ICE_REPO_SNAPSHOTS, &info, 1, err);
    if (rc == CM_OK)
        rc = add_branch(tree, "main", 0, err);
    if (rc == CM_OK && (data = cm_fb_table_new(tree, &cm_ice_empty_update, err)) == NULL)
        rc = CM_ENOMEM;
    return rc == CM_OK ? add_update(tree, CM_ICE_UPDATE_INITIALIZED, data, now_us, err) : rc;
}

int cm_ice_repo_initial(cm_fb_tree *tree, const cm_json *config, uint64_t now_us, cm_error *err)
{
    *tree = (cm_fb_tree){0};
    tree->root = cm_fb_table_new(tree, &cm_ice_repo, err);
    if (tree->root == NULL)
        return CM_ENOMEM;
    int rc = cm_fb_set_u64(tree, tree->root, CM_ICE_REPO_VERSION, CM_ICE_VERSION, err);
    if (rc == CM_OK)
        rc = cm_fb_set_tables(tree, tree->root, CM_ICE_REPO_TAGS, NULL, 0, err);
    if (rc == CM_OK)
        rc = cm_fb_set_tables(tree, tree->root, CM_ICE_REPO_DELETED_TAGS, NULL, 0, err);
    if (rc == CM_OK)
        rc = cm_fb_set_tables(tree, tree->root, CM_ICE_REPO_METADATA, NULL, 0, err);
    if (rc == CM_OK)
        rc = set_status(tree, now_us, err);
    if (rc == CM_OK)
        rc = set_first(tree, now_us, err);
    return rc == CM_OK ? set_config(tree, config, err) : rc;
}
