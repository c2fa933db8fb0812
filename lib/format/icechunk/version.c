/*
 * Branches and tags: in version 2 of the format all are in the file "repo", in version 1 each is an
 * object "refs/branch.NAME/ref.json" or "refs/tag.NAME/ref.json".
 */
#include "format/icechunk/version.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "format/icechunk/file_read.h"
#include "format/icechunk/key.h"
#include "format/icechunk/repo_write.h"
#include "store/open.h"

enum {
    MOST_REF = 4096 /* bytes of a ref.json, which has 35 */
};

typedef struct wanted {
    bool is_tag;
    const char *name;
} wanted;

/* THERE lists those that there are. */
static int not_there(const wanted *w, const cm_buf *there, cm_error *err)
{
    return cm_fail(err, CM_ENOTFOUND, "has no %s %s; there are: %.*s", w->is_tag ? "tag" : "branch",
                   w->name, there->nbytes > 0 ? (int)there->nbytes : 4,
                   there->nbytes > 0 ? (const char *)there->data : "none");
}

static int add_name(cm_buf *there, const char *name, size_t nbytes, cm_error *err)
{
    return cm_buf_printf(there, err, "%s%.*s", there->nbytes > 0 ? ", " : "", (int)nbytes, name);
}

/* ---- version 2 ---- */

/* The snapshot whose id has these LETTERS; NULL: none. */
static const uint8_t *snapshot_named(const cm_fb_table *repo, const char *letters)
{
    uint8_t id[CM_ICE_ID];
    const uint8_t *have;
    for (uint64_t i = 0;
         cm_ice_id_parse(letters, id) && (have = cm_ice_repo_snapshot(repo, i)) != NULL; i++)
        if (memcmp(have, id, CM_ICE_ID) == 0)
            return have;
    return NULL;
}

static int choose(const cm_fb_table *repo, const wanted *w, uint8_t id[CM_ICE_ID], cm_error *err)
{
    const cm_fb_value *refs = &repo->value[w->is_tag ? CM_ICE_REPO_TAGS : CM_ICE_REPO_BRANCHES];
    const cm_fb_table *tip = cm_ice_repo_ref(refs, w->name);
    const uint8_t *found = NULL;
    if (tip != NULL)
        found = cm_ice_repo_snapshot(repo, cm_fb_u64(tip, CM_ICE_REF_SNAPSHOT));
    else if (!w->is_tag)
        found = snapshot_named(repo, w->name);
    if (found != NULL) {
        memcpy(id, found, CM_ICE_ID);
        return CM_OK;
    }
    if (tip != NULL)
        return cm_fail(err, CM_EFORMAT, "repo: is damaged (%s names no snapshot)", w->name);
    cm_buf there = {0};
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < refs->n; i++)
        rc = add_name(&there, refs->item[i]->value[CM_ICE_REF_NAME].bytes,
                      refs->item[i]->value[CM_ICE_REF_NAME].n, err);
    if (rc == CM_OK)
        rc = not_there(w, &there, err);
    cm_buf_release(&there);
    return rc;
}

/* ---- version 1 ---- */

typedef struct names {
    const char *kind;
    cm_buf text;
} names;

static int see_ref(void *context, const char *name, bool is_prefix, cm_error *err)
{
    names *n = context;
    const size_t skip = strlen(n->kind);
    return is_prefix && strncmp(name, n->kind, skip) == 0
               ? add_name(&n->text, name + skip, strlen(name + skip), err)
               : CM_OK;
}

static int list_refs(cm_store *root, const wanted *w, cm_error *err)
{
    names n = {.kind = w->is_tag ? "tag." : "branch."};
    int rc = cm_store_list(root, "refs", see_ref, &n, err);
    if (rc == CM_OK)
        rc = not_there(w, &n.text, err);
    else if (rc == CM_EUNSUPPORTED) /* a web server */
        rc = cm_fail(err, CM_ENOTFOUND, "has no %s %s", w->is_tag ? "tag" : "branch", w->name);
    cm_buf_release(&n.text);
    return rc;
}

static int read_ref(cm_store *root, const char *key, uint8_t id[CM_ICE_ID], cm_error *err)
{
    cm_buf text = {0};
    cm_json *doc = NULL;
    int rc = cm_store_get(root, key, MOST_REF, &text, err);
    if (rc == CM_OK && (rc = cm_json_parse(text.data, text.nbytes, &doc, err)) != CM_OK)
        cm_error_prefix(err, "%s", key);
    const char *letters = cm_json_text(cm_json_member(doc, "snapshot"), NULL);
    if (rc == CM_OK && (letters == NULL || !cm_ice_id_parse(letters, id)))
        rc = cm_fail(err, CM_EFORMAT, "%s: names no snapshot", key);
    cm_json_free(doc);
    cm_buf_release(&text);
    return rc;
}

static char *key_of(const wanted *w, const char *suffix, cm_error *err)
{
    return cm_asprintf(err, "refs/%s.%s/ref.json%s", w->is_tag ? "tag" : "branch", w->name, suffix);
}

/* A tag that was deleted keeps its object, beside one that says so. */
static int check_deleted(cm_store *root, const wanted *w, cm_error *err)
{
    char *key = w->is_tag ? key_of(w, ".deleted", err) : NULL;
    if (key == NULL)
        return w->is_tag ? CM_ENOMEM : CM_OK;
    int rc = cm_store_size(root, key, NULL, err);
    free(key);
    return rc == CM_OK          ? cm_fail(err, CM_ENOTFOUND, "tag %s was deleted", w->name)
           : rc == CM_ENOTFOUND ? CM_OK
                                : rc;
}

static bool has_snapshot(cm_store *root, const wanted *w, uint8_t id[CM_ICE_ID])
{
    char key[CM_ICE_KEY_SIZE];
    if (w->is_tag || !cm_ice_id_parse(w->name, id))
        return false;
    cm_ice_key("snapshots", id, key);
    return cm_store_size(root, key, NULL, NULL) == CM_OK;
}

static int find_ref(cm_store *root, const wanted *w, uint8_t id[CM_ICE_ID], cm_error *err)
{
    int rc = check_deleted(root, w, err);
    char *key = rc == CM_OK ? key_of(w, "", err) : NULL;
    if (key == NULL)
        return rc != CM_OK ? rc : CM_ENOMEM;
    rc = read_ref(root, key, id, err);
    free(key);
    if (rc != CM_ENOTFOUND || has_snapshot(root, w, id))
        return rc != CM_ENOTFOUND ? rc : CM_OK;
    rc = list_refs(root, w, err);
    return rc != CM_ENOTFOUND || cm_store_size(root, CM_ICECHUNK_MAIN, NULL, NULL) == CM_OK
               ? rc
               : cm_fail(err, CM_ENOTFOUND,
                         "is not an Icechunk repository: it has neither \"repo\" nor "
                         "\"" CM_ICECHUNK_MAIN "\"");
}

/* ---- both ---- */

int cm_ice_version_find(cm_store *root, const char *version, uint8_t id[CM_ICE_ID], cm_error *err)
{
    const bool is_tag = strncmp(version, "tag:", 4) == 0;
    const wanted w = {is_tag, version + (is_tag ? 4 : 0)};
    cm_ice_read repo;
    int rc = cm_ice_file_view(root, "repo", CM_ICE_REPO_FILE, &cm_ice_repo, &repo, err);
    if (rc == CM_ENOTFOUND)
        return find_ref(root, &w, id, err);
    if (rc != CM_OK)
        return rc;
    rc = choose(repo.tree.root, &w, id, err);
    cm_ice_read_release(&repo);
    return rc;
}
