#include "format/icechunk/version.h"

#include <string.h>

#include "format/icechunk/file_read.h"
#include "format/icechunk/key.h"
#include "format/icechunk/repo_write.h"

/* "main, dev": the names of REFS, or "none". */
static int list_names(const cm_fb_value *refs, cm_buf *out, cm_error *err)
{
    int rc = refs->n == 0 ? cm_buf_printf(out, err, "none") : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < refs->n; i++) {
        const cm_fb_value *text = &refs->item[i]->value[CM_ICE_REF_NAME];
        rc = cm_buf_printf(out, err, "%s%.*s", i > 0 ? ", " : "", (int)text->n,
                           (const char *)text->bytes);
    }
    return rc;
}

/* The snapshot whose id has these LETTERS; NULL: none. */
static const uint8_t *snapshot_named(const cm_fb_table *repo, const char *letters)
{
    char text[CM_ICE_ID_TEXT + 1];
    const uint8_t *id;
    for (uint64_t i = 0; (id = cm_ice_repo_snapshot(repo, i)) != NULL; i++) {
        cm_ice_id_letters(id, text);
        if (strcmp(text, letters) == 0)
            return id;
    }
    return NULL;
}

/* The id of the snapshot that VERSION means in REPO, into ID. */
static int choose(const cm_fb_table *repo, const char *version, uint8_t id[CM_ICE_ID],
                  cm_error *err)
{
    const bool tag = strncmp(version, "tag:", 4) == 0;
    const char *name = version + (tag ? 4 : 0);
    const cm_fb_value *refs = &repo->value[tag ? CM_ICE_REPO_TAGS : CM_ICE_REPO_BRANCHES];
    const cm_fb_table *tip = cm_ice_repo_ref(refs, name);
    const uint8_t *found = NULL;
    if (tip != NULL)
        found = cm_ice_repo_snapshot(repo, cm_fb_u64(tip, CM_ICE_REF_SNAPSHOT));
    else if (!tag)
        found = snapshot_named(repo, name);
    if (found != NULL) {
        memcpy(id, found, CM_ICE_ID);
        return CM_OK;
    }
    if (tip != NULL)
        return cm_fail(err, CM_EFORMAT, "repo: is damaged (%s names no snapshot)", name);
    cm_buf there = {0};
    int rc = list_names(refs, &there, err);
    if (rc == CM_OK)
        rc = cm_fail(err, CM_ENOTFOUND, "has no %s %s; there are: %.*s", tag ? "tag" : "branch",
                     name, (int)there.nbytes, (const char *)there.data);
    cm_buf_release(&there);
    return rc;
}

int cm_ice_version_find(cm_store *root, const char *version, uint8_t id[CM_ICE_ID], cm_error *err)
{
    cm_ice_read repo;
    int rc = cm_ice_file_read(root, "repo", CM_ICE_REPO_FILE, &cm_ice_repo, &repo, err);
    if (rc == CM_ENOTFOUND)
        return cm_fail(err, CM_ENOTFOUND,
                       "has no file \"repo\": no Icechunk repository of version 2");
    if (rc != CM_OK)
        return rc;
    rc = choose(repo.tree.root, version, id, err);
    cm_ice_read_release(&repo);
    return rc;
}
