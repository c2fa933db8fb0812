#include "convert/sink/growth/append_commit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/beside/ledger.h"
#include "convert/sink/growth/append_document.h"
#include "convert/sink/growth/append_listed.h"
#include "format/zarr/meta.h"
#include "model/digest.h"

enum {
    MAX_RECORD = 1 << 30, /* documents as they were, and as they are to be */
    MAX_DEPTH = 64
};

/* ---- one document ---- */

/* "" and NAME, or "a" and NAME. */
static char *join(const char *above, const char *name, cm_error *err)
{
    return cm_asprintf(err, "%s%s%s", above, *above != '\0' ? "/" : "", name);
}

static bool is_above(const char *group, const char *path)
{
    size_t n = strlen(group);
    return strncmp(group, path, n) == 0 && (n == 0 || path[n] == '/');
}

static const cm_growth *find(const cm_growth *growth, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(growth[i].path, path) == 0)
            return &growth[i];
    return NULL;
}

static bool any_below(const cm_growth *growth, size_t n, const char *group)
{
    for (size_t i = 0; i < n; i++)
        if (is_above(group, growth[i].path))
            return true;
    return false;
}

/* The consolidated metadata in the document of GROUP, which stands at NODE. */
static int edit_consolidated(cm_store *store, cm_grown_document *d, cm_json_place node,
                             const char *group, const cm_growth *growth, size_t n, size_t *found,
                             unsigned depth, cm_error *err)
{
    cm_json_place list, name, value;
    size_t cursor = 0;
    int rc = CM_OK;
    if (depth == MAX_DEPTH || cm_grown_document_text(d)[node.begin] != '{' ||
        !cm_json_place_member(cm_grown_document_text(d), node, "consolidated_metadata", &list) ||
        !cm_json_place_member(cm_grown_document_text(d), list, "metadata", &list))
        return CM_OK;
    while (rc == CM_OK &&
           cm_json_place_next(cm_grown_document_text(d), list, &cursor, &name, &value)) {
        char *own = cm_json_place_text(cm_grown_document_text(d), name, err);
        char *path = own == NULL ? NULL : join(group, own, err);
        free(own);
        if (path == NULL)
            return CM_ENOMEM;
        const cm_growth *g = find(growth, n, path);
        if (g != NULL) {
            ++*found;
            rc = cm_grown_document_edit_array(d, value, g, err);
            if (rc == CM_OK)
                rc = cm_listed_check_v3(store, g, cm_grown_document_text(d), value, err);
        } else if (any_below(growth, n, path)) {
            rc = edit_consolidated(store, d, value, path, growth, n, found, depth + 1, err);
        }
        free(path);
    }
    return rc;
}

/* .zmetadata: "a/tas/.zarray" and all others in one list. */
static int edit_v2(cm_store *store, cm_grown_document *d, const cm_growth *growth, size_t n,
                   size_t *found, cm_error *err)
{
    cm_json_place root, list, value;
    int rc = CM_OK;
    if (!cm_json_place_root(cm_grown_document_text(d), d->text.nbytes, &root) ||
        !cm_json_place_member(cm_grown_document_text(d), root, "metadata", &list))
        return cm_fail(err, CM_EFORMAT, "%s: has no member metadata", d->key);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        char *name = join(growth[i].path, ".zarray", err);
        if (name == NULL)
            return CM_ENOMEM;
        if (cm_json_place_member(cm_grown_document_text(d), list, name, &value)) {
            ++*found;
            rc = cm_grown_document_edit_array(d, value, &growth[i], err);
            if (rc == CM_OK)
                rc = cm_listed_check_v2(store, &growth[i], cm_grown_document_text(d), list, err);
        }
        free(name);
    }
    return rc;
}

/* ---- the record ---- */

/* Sixteen bytes that tell one text from another. */
static char *digest_of(const void *text, size_t nbytes, char out[33])
{
    cm_digest d = {0};
    cm_digest_element(&d, 0, text, nbytes);
    return cm_digest_text(&d, out);
}

static int get(cm_store *store, cm_grown_document *d, cm_error *err)
{
    int rc = cm_store_get(store, d->key, CM_ZARR_MAX_META_NBYTES, &d->text, err);
    cm_json *j = NULL;
    /* The search in it presumes that it is well-formed. */
    if (rc == CM_OK && (rc = cm_json_parse(d->text.data, d->text.nbytes, &j, err)) != CM_OK)
        cm_error_prefix(err, "%s", d->key);
    cm_json_free(j);
    return rc;
}

static int add_object(cm_commit *c, cm_grown_document *d, cm_error *err)
{
    cm_buf text = {0};
    char was[33];
    cm_json *objects = (cm_json *)(uintptr_t)cm_json_member(c->record, "objects");
    cm_json *j = cm_json_object();
    if (d->nedits == 0) {
        cm_json_free(j);
        return CM_OK;
    }
    int rc = cm_json_edit_apply(cm_grown_document_text(d), d->text.nbytes, d->edit, d->nedits,
                                &text, err);
    digest_of(d->text.data, d->text.nbytes, was);
    if (rc == CM_OK)
        rc = cm_json_set(j, "key", cm_json_string(d->key), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "was", cm_json_string(was), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "text", cm_json_string_n((char *)text.data, text.nbytes), err);
    if (rc == CM_OK) {
        rc = cm_json_append(objects, j, err);
        j = NULL;
    }
    c->nobjects++;
    cm_json_free(j);
    cm_buf_release(&text);
    return rc;
}

static int own_document(cm_store *store, int format, const cm_growth *g, cm_commit *out,
                        cm_error *err)
{
    cm_json_place root;
    cm_grown_document d = {.key = join(g->path, format == 3 ? "zarr.json" : ".zarray", err)};
    int rc = d.key == NULL ? CM_ENOMEM : get(store, &d, err);
    if (rc == CM_OK && !cm_json_place_root(cm_grown_document_text(&d), d.text.nbytes, &root))
        rc = cm_grown_document_unexpected(&d, g, "document", err);
    if (rc == CM_OK)
        rc = cm_grown_document_edit_array(&d, root, g, err);
    if (rc == CM_OK)
        rc = add_object(out, &d, err);
    cm_grown_document_release(&d);
    return rc;
}

/* The document of GROUP, where it has consolidated metadata. */
static int group_document(cm_store *store, const char *group, const cm_growth *growth, size_t n,
                          size_t *found, cm_commit *out, cm_error *err)
{
    cm_json_place root;
    cm_grown_document d = {.key = join(group, "zarr.json", err)};
    int rc = d.key == NULL ? CM_ENOMEM : cm_store_size(store, d.key, NULL, err);
    if (rc == CM_ENOTFOUND) { /* a group that is only a folder */
        cm_grown_document_release(&d);
        return CM_OK;
    }
    if (rc == CM_OK)
        rc = get(store, &d, err);
    if (rc == CM_OK && cm_json_place_root(cm_grown_document_text(&d), d.text.nbytes, &root))
        rc = edit_consolidated(store, &d, root, group, growth, n, found, 0, err);
    if (rc == CM_OK)
        rc = add_object(out, &d, err);
    cm_grown_document_release(&d);
    return rc;
}

/* Groups above what grows, the deepest first, the root last. */
static int group_documents(cm_store *store, const cm_growth *growth, size_t n, cm_commit *out,
                           size_t *found, cm_error *err)
{
    int rc = CM_OK;
    for (unsigned depth = MAX_DEPTH; rc == CM_OK && depth > 0; depth--)
        for (size_t i = 0; rc == CM_OK && i < n; i++) {
            char *group = cm_strdup(growth[i].path, err);
            unsigned slashes = 0;
            size_t k = 0, any = 0;
            if (group == NULL)
                return CM_ENOMEM;
            while (group[k] != '\0' && (group[k] != '/' || ++slashes < depth))
                k++;
            bool there = group[k] == '/';
            group[k] = '\0';
            /* Of several arrays in one group the first is asked. */
            for (size_t before = 0; there && before < i; before++)
                there = !is_above(group, growth[before].path);
            if (there)
                rc = group_document(store, group, growth, n, &any, out, err);
            free(group);
        }
    return rc == CM_OK ? group_document(store, "", growth, n, found, out, err) : rc;
}

static int consolidated_v2(cm_store *store, const cm_growth *growth, size_t n, size_t *found,
                           cm_commit *out, cm_error *err)
{
    cm_grown_document d = {.key = cm_strdup(".zmetadata", err)};
    int rc = d.key == NULL ? CM_ENOMEM : cm_store_size(store, d.key, NULL, err);
    if (rc == CM_ENOTFOUND) {
        cm_grown_document_release(&d);
        return CM_OK;
    }
    if (rc == CM_OK)
        rc = get(store, &d, err);
    if (rc == CM_OK)
        rc = edit_v2(store, &d, growth, n, found, err);
    if (rc == CM_OK)
        rc = add_object(out, &d, err);
    cm_grown_document_release(&d);
    return rc;
}

int cm_commit_make(cm_store *store, int zarr_format, const cm_growth *growth, size_t n,
                   const cm_json *ledger, cm_commit *out, cm_error *err)
{
    size_t found = 0;
    *out = (cm_commit){.record = cm_json_object()};
    int rc = cm_json_set(out->record, "chunkmill", cm_json_string("append"), err);
    if (rc == CM_OK)
        rc = cm_json_set(out->record, "version", cm_json_u64(1), err);
    if (rc == CM_OK)
        rc = cm_json_set(out->record, "objects", cm_json_array(), err);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        rc = own_document(store, zarr_format, &growth[i], out, err);
    bool is_array = n == 1 && growth[0].path[0] == '\0'; /* the store is that array alone */
    if (rc == CM_OK && !is_array)
        rc = zarr_format == 3 ? group_documents(store, growth, n, out, &found, err)
                              : consolidated_v2(store, growth, n, &found, out, err);
    if (rc == CM_OK && found > 0 && found < n)
        rc = cm_fail(err, CM_EFORMAT,
                     "consolidated metadata list %zu of %zu arrays that grow; `consolidate` renews "
                     "them",
                     found, n);
    if (rc == CM_OK && ledger != NULL)
        rc = cm_json_set(out->record, "ledger", cm_json_copy(ledger), err);
    if (rc != CM_OK)
        cm_commit_release(out);
    return rc;
}

void cm_commit_release(cm_commit *c)
{
    cm_json_free(c->record);
    *c = (cm_commit){0};
}

/* ---- applying it ---- */

/* The tag stays empty where a store has none. */
static int get_now(cm_store *store, const char *key, cm_buf *text, cm_object_tag *tag,
                   cm_error *err)
{
    *tag = (cm_object_tag){.age_s = -1};
    return cm_store_is_remote(store)
               ? cm_store_get_tagged(store, key, CM_ZARR_MAX_META_NBYTES, text, tag, err)
               : cm_store_get(store, key, CM_ZARR_MAX_META_NBYTES, text, err);
}

/* *DONE: the document is already what it is to become.  Else it is what has TAG. */
static int check_document(cm_store *store, const cm_json *object, bool *done, cm_object_tag *tag,
                          cm_error *err)
{
    cm_buf text = {0};
    size_t nbytes;
    char now[33];
    const char *key = cm_json_text(cm_json_member(object, "key"), NULL);
    const char *was = cm_json_text(cm_json_member(object, "was"), NULL);
    const char *wanted = cm_json_text(cm_json_member(object, "text"), &nbytes);
    if (key == NULL || was == NULL || wanted == NULL)
        return cm_fail(err, CM_EFORMAT, "the note of an append that was stopped is damaged");
    int rc = get_now(store, key, &text, tag, err);
    *done = rc == CM_OK && text.nbytes == nbytes && memcmp(text.data, wanted, nbytes) == 0;
    if (rc == CM_OK && !*done && strcmp(digest_of(text.data, text.nbytes, now), was) != 0)
        rc = cm_fail(err, CM_EFORMAT,
                     "%s: was changed after an append was stopped here, so that append cannot be "
                     "finished; its note is the file %s beside the store",
                     key, CM_COMMIT_NAME);
    cm_buf_release(&text);
    return rc;
}

/*
 * In place of what was checked, and of nothing else, where a store can do that.  A document that
 * is another then may be ours: an answer was lost.
 */
static int put_document(cm_store *store, const cm_json *object, const cm_object_tag *tag,
                        cm_error *err)
{
    size_t nbytes;
    bool done;
    cm_object_tag now;
    const char *key = cm_json_text(cm_json_member(object, "key"), NULL);
    const char *text = cm_json_text(cm_json_member(object, "text"), &nbytes);
    int rc = tag->text[0] != '\0' ? cm_store_put_if(store, key, text, nbytes, tag, err)
                                  : CM_EUNSUPPORTED;
    if (rc == CM_EUNSUPPORTED)
        return cm_store_put(store, key, text, nbytes, err);
    if (rc != CM_EEXIST)
        return rc;
    rc = check_document(store, object, &done, &now, err);
    if (rc == CM_OK && !done)
        rc = cm_fail(err, CM_EEXIST, "%s: somebody else changes it in the same moment", key);
    return rc;
}

static int apply(const cm_json *record, cm_store *store, const cm_beside *beside, bool durable,
                 cm_error *err)
{
    const cm_json *objects = cm_json_member(record, "objects");
    const cm_json *ledger = cm_json_member(record, "ledger");
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < cm_json_length(objects); i++) {
        bool done;
        cm_object_tag tag;
        rc = check_document(store, cm_json_at(objects, i), &done, &tag, err);
    }
    for (size_t i = 0; rc == CM_OK && i < cm_json_length(objects); i++) {
        const cm_json *object = cm_json_at(objects, i);
        bool done;
        cm_object_tag tag;
        /* The last of them shows the new dataset: what it shows is on the disk before. */
        if (durable && i + 1 == cm_json_length(objects))
            rc = cm_store_sync(store, err);
        if (rc == CM_OK)
            rc = check_document(store, object, &done, &tag, err);
        if (rc == CM_OK && !done)
            rc = put_document(store, object, &tag, err);
    }
    if (rc == CM_OK && durable)
        rc = cm_store_sync(store, err);
    if (rc == CM_OK && cm_json_length(ledger) > 0)
        rc = cm_ledger_add(beside, ledger, err);
    /* Before the record: with the files in the ledger no command would complete what it notes. */
    if (rc == CM_OK && (rc = cm_store_delete(beside->in, CM_REWRITE_NOTE, err)) == CM_ENOTFOUND)
        rc = CM_OK;
    return rc == CM_OK ? cm_store_delete(beside->in, CM_COMMIT_NAME, err) : rc;
}

int cm_commit_run(const cm_commit *c, cm_store *store, const cm_beside *beside, bool durable,
                  cm_error *err)
{
    cm_buf text = {0};
    int rc = cm_json_write(c->record, true, &text, err);
    if (rc == CM_OK && durable)
        rc = cm_store_sync(store, err);
    if (rc == CM_OK)
        rc = cm_store_put(beside->in, CM_COMMIT_NAME, text.data, text.nbytes, err);
    if (rc == CM_OK && durable)
        rc = cm_store_sync(beside->in, err);
    cm_buf_release(&text);
    return rc == CM_OK ? apply(c->record, store, beside, durable, err) : rc;
}

int cm_commit_is_begun(const cm_beside *beside, bool *out, cm_error *err)
{
    *out = false;
    if (beside->in == NULL)
        return CM_OK;
    int rc = cm_store_size(beside->in, CM_COMMIT_NAME, NULL, err);
    *out = rc == CM_OK;
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

static bool is_record(const cm_json *j)
{
    uint64_t version;
    const char *what = cm_json_text(cm_json_member(j, "chunkmill"), NULL);
    return what != NULL && strcmp(what, "append") == 0 &&
           cm_json_get_u64(cm_json_member(j, "version"), &version) && version == 1 &&
           cm_json_is(cm_json_member(j, "objects"), CM_JSON_ARRAY);
}

int cm_commit_finish(cm_store *store, const cm_beside *beside, cm_error *err)
{
    cm_buf text = {0};
    cm_json *record = NULL;
    int rc = cm_store_get(beside->in, CM_COMMIT_NAME, MAX_RECORD, &text, err);
    if (rc == CM_OK &&
        (cm_json_parse(text.data, text.nbytes, &record, NULL) != CM_OK || !is_record(record)))
        rc = cm_fail(err, CM_EFORMAT,
                     "the file %s beside the store, the note of a run that was stopped, is "
                     "damaged or of another version; remove it, and do again what that run did",
                     CM_COMMIT_NAME);
    if (rc == CM_OK)
        rc = apply(record, store, beside, true, err);
    if (rc != CM_OK)
        cm_error_place(err, beside->shown);
    cm_json_free(record);
    cm_buf_release(&text);
    return rc;
}
