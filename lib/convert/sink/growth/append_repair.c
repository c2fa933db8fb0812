#include "convert/sink/growth/append_repair.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "format/zarr/erase.h"
#include "options/layout_option.h"

enum {
    MANY_CHUNKS = 64, /* of a coordinate: so many requests before a reader can begin */
    KEPT_S = 3600,    /* that chunks stay for who has read the old document */
    MAX_NOTE = 64 << 20,
    MAX_NUMBER = 1 << 20 /* of a chunk that a run which was killed can have written */
};

/* ---- the note ---- */

static cm_json *arrays_of(const cm_json *note)
{
    return (cm_json *)(uintptr_t)cm_json_member(note, "arrays");
}

static int read_note(const cm_beside *beside, cm_json **out, cm_error *err)
{
    cm_buf text = {0};
    *out = NULL;
    if (beside->in == NULL)
        return CM_OK;
    int rc = cm_store_get(beside->in, CM_REPAIR_NOTE, MAX_NOTE, &text, err);
    if (rc == CM_OK && (cm_json_parse(text.data, text.nbytes, out, NULL) != CM_OK ||
                        !cm_json_is(arrays_of(*out), CM_JSON_ARRAY)))
        rc = cm_fail(err, CM_EFORMAT,
                     "the file %s beside the store is damaged; remove it: nothing but chunks that "
                     "no document names is forgotten",
                     CM_REPAIR_NOTE);
    else if (rc != CM_OK && rc != CM_ENOTFOUND)
        cm_error_prefix(err, "the file %s beside the store", CM_REPAIR_NOTE);
    cm_buf_release(&text);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

int cm_repair_read_note(cm_append *a, cm_error *err)
{
    return read_note(&a->beside, &a->left, err);
}

static int put_note(const cm_append *a, const cm_json *note, cm_error *err)
{
    cm_buf text = {0};
    int rc = cm_json_write(note, true, &text, err);
    if (rc == CM_OK)
        rc = cm_store_put(a->beside.in, CM_REPAIR_NOTE, text.data, text.nbytes, err);
    cm_buf_release(&text);
    return rc;
}

static const char *path_of(const cm_json *entry)
{
    const char *path = cm_json_text(cm_json_member(entry, "path"), NULL);
    return path != NULL ? path : "";
}

static const cm_json *entry_of(const cm_json *note, const char *path)
{
    const cm_json *list = arrays_of(note);
    for (size_t i = 0; i < cm_json_length(list); i++)
        if (strcmp(path_of(cm_json_at(list, i)), path) == 0)
            return cm_json_at(list, i);
    return NULL;
}

static int add_entry(cm_json *list, const cm_append_state *s, const cm_growth *g, cm_error *err)
{
    const cm_variable *t = cm_dataset_find(s->target, g->path);
    if (t == NULL || t->words->raw == NULL)
        return cm_fail(err, CM_EINTERNAL, "%s: has no document", g->path);
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "path", cm_json_string(g->path), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "chunk", cm_json_u64(g->chunk), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "separator", cm_json_string_n(&g->separator, 1), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "was", cm_json_copy(t->words->raw), err);
    if (rc == CM_OK)
        return cm_json_append(list, j, err);
    cm_json_free(j);
    return rc;
}

static bool repairs(const cm_append_state *s, const char *path)
{
    for (size_t i = 0; i < s->ngrown; i++)
        if (s->grown[i].growth.chunk > 0 && strcmp(s->grown[i].growth.path, path) == 0)
            return true;
    return false;
}

int cm_repair_write_note(const cm_append_state *s, cm_error *err)
{
    cm_append *a = s->append;
    cm_json *note = cm_json_object(), *list = cm_json_array();
    const cm_json *old = arrays_of(a->left);
    bool any = false;
    int rc = note == NULL || list == NULL ? CM_ENOMEM : CM_OK;
    /* An entry of an array that is repaired now is of a run that was killed before. */
    for (size_t i = 0; rc == CM_OK && i < cm_json_length(old); i++)
        if (!repairs(s, path_of(cm_json_at(old, i))))
            rc = cm_json_append(list, cm_json_copy(cm_json_at(old, i)), err);
    for (size_t i = 0; rc == CM_OK && i < s->ngrown; i++)
        if (s->grown[i].growth.chunk > 0) {
            any = true;
            rc = add_entry(list, s, &s->grown[i].growth, err);
        }
    if (rc == CM_OK) {
        rc = cm_json_set(note, "arrays", list, err);
        list = NULL;
    }
    if (rc == CM_OK && any)
        rc = put_note(a, note, err);
    if (rc == CM_OK && any) {
        cm_json_free(a->left);
        a->left = note;
        note = NULL;
    }
    cm_json_free(list);
    cm_json_free(note);
    return rc;
}

/* ---- which, and how ---- */

static bool same_names(const cm_zarr_meta *a, const cm_zarr_meta *b)
{
    return a->separator == b->separator && a->key_v2 == b->key_v2;
}

void cm_repair_apply(const cm_growth *g, cm_zarr_meta *meta)
{
    if (g->chunk == 0)
        return;
    cm_zarr_meta_drop_cuts(meta);
    meta->chunk[0] = g->chunk;
    meta->separator = g->separator;
    meta->key_v2 = false;
}

/* Chunks that an earlier repair left have the names that another one would use. */
static bool is_left(const cm_append *a, const cm_variable *t)
{
    cm_zarr_meta was = {0};
    const cm_json *entry = entry_of(a->left, t->name);
    bool left = entry != NULL;
    /* An entry of a run that was killed before it changed the document is none. */
    if (left && cm_zarr_meta_from_v3(cm_json_member(entry, "was"), &was, NULL) == CM_OK)
        left = !same_names(&was, t->words);
    cm_zarr_meta_release(&was);
    return left;
}

int cm_repair_choose(cm_job *job, const cm_append_state *s, const cm_variable *t, cm_growth *g,
                     cm_error *err)
{
    uint64_t chunk = t->words->chunk[0], n = cm_div_ceil(g->length, chunk);
    n = g->in_place ? 0 : g->cuts != NULL ? g->cuts->n : n;
    uint64_t room = cm_layout_room(g->length, t->dtype.nbytes);
    /* Of a repository the values stand in a manifest, and one request has them all. */
    if (s->append->repository != NULL || !t->is_coordinate || n < 2 ||
        (chunk > 1 && n <= MANY_CHUNKS) || chunk >= room || cm_zarr_sharding(t->words) != NULL)
        return CM_OK;
    if (t->words->zarr_format == 3) {
        if (!is_left(s->append, t)) {
            g->chunk = room;
            g->separator = t->words->key_v2 || t->words->separator == '.' ? '/' : '.';
        }
        return CM_OK;
    }
    return cm_job_warn(job, err,
                       "variable %s: a reader fetches its %" PRIu64
                       " chunks first; an append cannot join chunks of Zarr format 2 while others "
                       "read them: rechunk `chunks` %s:%" PRIu64 " %s NEW.zarr makes a store that "
                       "has one",
                       t->name, n, t->name, room, s->append->root);
}

/* ---- what no document uses ---- */

/* The array as it was, and as it was to become. */
static int parse_entry(const cm_json *entry, cm_zarr_meta *was, cm_zarr_meta *now, cm_error *err)
{
    cm_growth g = {0};
    const char *separator = cm_json_text(cm_json_member(entry, "separator"), NULL);
    bool good = cm_json_get_u64(cm_json_member(entry, "chunk"), &g.chunk) && g.chunk > 0 &&
                g.chunk <= UINT64_MAX / MAX_NUMBER && separator != NULL &&
                (strcmp(separator, "/") == 0 || strcmp(separator, ".") == 0) &&
                *path_of(entry) != '\0';
    int rc = good ? cm_zarr_meta_from_v3(cm_json_member(entry, "was"), was, err) : CM_EFORMAT;
    if (rc == CM_OK)
        rc = cm_zarr_meta_copy(was, now, err);
    if (rc == CM_OK && (was->is_group || was->rank != 1))
        rc = CM_EFORMAT;
    if (rc == CM_EFORMAT)
        return cm_fail(err, rc, "the file %s beside the store is damaged", CM_REPAIR_NOTE);
    if (rc != CM_OK)
        return rc;
    g.separator = separator[0];
    cm_repair_apply(&g, now);
    now->shape[0] = g.chunk * MAX_NUMBER;
    return CM_OK;
}

/* The array as its document has it now; CM_ENOTFOUND: it is gone. */
static int read_array(cm_store *store, const char *path, cm_zarr_meta *out, cm_error *err)
{
    cm_buf text = {0};
    cm_json *j = NULL;
    char *key = cm_asprintf(err, "%s/zarr.json", path);
    int rc =
        key == NULL ? CM_ENOMEM : cm_store_get(store, key, CM_ZARR_MAX_META_NBYTES, &text, err);
    if (rc == CM_OK)
        rc = cm_json_parse(text.data, text.nbytes, &j, err);
    if (rc == CM_OK)
        rc = cm_zarr_meta_from_v3(j, out, err);
    cm_json_free(j);
    cm_buf_release(&text);
    free(key);
    return rc;
}

/* OLD: nobody reads the old document any more.  *STAYS: chunks of ENTRY are still there. */
static int remove_entry(const cm_append *a, const cm_json *entry, bool old, bool *stays,
                        cm_error *err)
{
    cm_zarr_meta was = {0}, new = {0}, is = {0};
    int rc = parse_entry(entry, &was, &new, err);
    if (rc == CM_OK)
        rc = read_array(a->store, path_of(entry), &is, err);
    *stays = rc != CM_OK && rc != CM_ENOTFOUND;
    if (rc == CM_OK && same_names(&is, &was)) {
        rc = cm_zarr_erase_chunks(a->store, path_of(entry), &new, err);
    } else if (rc == CM_OK) {
        *stays = !old;
        if (old)
            rc = cm_zarr_erase_chunks(a->store, path_of(entry), &was, err);
    }
    cm_zarr_meta_release(&was);
    cm_zarr_meta_release(&new);
    cm_zarr_meta_release(&is);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

int cm_repair_remove_left(const cm_append_state *s, cm_error *err)
{
    const cm_append *a = s->append;
    const cm_json *list = arrays_of(a->left);
    cm_json *note = cm_json_object(), *kept = cm_json_array();
    const size_t n = cm_json_length(list);
    const bool old = n > 0 && cm_beside_age(&a->beside, CM_REPAIR_NOTE) >= KEPT_S;
    bool renews = false;
    int rc = note == NULL || kept == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        const cm_json *entry = cm_json_at(list, i);
        /* However long the writing took, its hour begins now. */
        const bool own = repairs(s, path_of(entry));
        bool stays;
        rc = remove_entry(a, entry, old && !own, &stays, err);
        if (rc == CM_OK && stays)
            rc = cm_json_append(kept, cm_json_copy(entry), err);
        renews |= own;
    }
    const size_t nkept = cm_json_length(kept);
    if (rc == CM_OK) {
        rc = cm_json_set(note, "arrays", kept, err);
        kept = NULL;
    }
    if (rc == CM_OK && n > 0 && nkept == 0)
        rc = cm_store_delete(a->beside.in, CM_REPAIR_NOTE, err);
    else if (rc == CM_OK && (nkept < n || renews))
        rc = put_note(a, note, err);
    cm_json_free(kept);
    cm_json_free(note);
    return rc;
}

int cm_repair_remove_all(cm_store *store, const cm_beside *beside, cm_error *err)
{
    cm_json *note = NULL;
    int rc = read_note(beside, &note, err);
    const cm_json *list = arrays_of(note);
    for (size_t i = 0; rc == CM_OK && i < cm_json_length(list); i++) {
        const cm_json *entry = cm_json_at(list, i);
        cm_zarr_meta was = {0}, new = {0};
        rc = parse_entry(entry, &was, &new, err);
        if (rc == CM_OK)
            rc = cm_zarr_erase_chunks(store, path_of(entry), &was, err);
        if (rc == CM_OK)
            rc = cm_zarr_erase_chunks(store, path_of(entry), &new, err);
        cm_zarr_meta_release(&was);
        cm_zarr_meta_release(&new);
    }
    cm_json_free(note);
    return rc == CM_EFORMAT ? CM_OK : rc; /* a damaged note goes as well */
}
