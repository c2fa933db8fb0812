/* Walks folders, not consolidated metadata, which may be out of date. */
#include "format/zarr/erase.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/zarr/chunk_name.h"

enum {
    MAX_DEPTH = 128
};

static const char *const METADATA[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"};

/* Names of a node's own document. */
static const struct {
    const char *name;
    int format;
} SIGN[] = {{"zarr.json", 3}, {".zarray", 2}, {".zgroup", 2}};

/*
 * Replaces zarr_format in a node that is being removed: every reader refuses it, while the rest of
 * the document still shows an interrupted erasure which files belong to the node.
 */
#define REMOVED "none: this is being removed"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static char *join(const char *path, const char *name, cm_error *err)
{
    return cm_asprintf(err, "%s%s%s", path, path[0] ? "/" : "", name);
}

/* ---- recognising a folder ---- */

typedef enum folder_kind {
    FOLDER_FOREIGN,
    FOLDER_GROUP,
    FOLDER_ARRAY,
    FOLDER_UNCLEAR /* metadata that cannot be read: they are removed, other files stay */
} folder_kind;

/* Reads the document PATH/NAME; *OUT stays NULL if there is none, or not a regular file. */
static int read_document(cm_store *store, const char *key, bool *there, cm_json **out,
                         cm_error *err)
{
    cm_buf buf = {0};
    int rc = cm_store_get(store, key, CM_ZARR_MAX_META_NBYTES, &buf, err);
    *out = NULL;
    *there = rc == CM_OK;
    if (rc == CM_ENOTFOUND || rc == CM_EFORMAT)
        rc = CM_OK;
    else if (rc == CM_OK && cm_json_parse(buf.data, buf.nbytes, out, NULL) != CM_OK)
        *out = NULL;
    cm_buf_release(&buf);
    return rc;
}

static bool is_marked(const cm_json *document)
{
    const char *format = cm_json_text(cm_json_member(document, "zarr_format"), NULL);
    return format != NULL && strcmp(format, REMOVED) == 0;
}

/* Reads PATH/NAME into META if it is a regular file; anything else is not metadata. */
static int read_meta(cm_store *store, const char *path, const char *name, int format,
                     cm_zarr_meta *meta, folder_kind *kind, cm_error *err)
{
    cm_json *j = NULL;
    bool there;
    char *key = join(path, name, err);
    int rc = key != NULL ? read_document(store, key, &there, &j, err) : CM_ENOMEM;
    free(key);
    if (rc != CM_OK || !there)
        return rc;
    *kind = FOLDER_UNCLEAR;
    if (is_marked(j))
        rc = cm_json_set(j, "zarr_format", cm_json_u64((uint64_t)format), err);
    if (rc == CM_OK && j != NULL) {
        int understood = format == 3 ? cm_zarr_meta_from_v3(j, meta, NULL)
                                     : cm_zarr_meta_from_v2(j, NULL, meta, NULL);
        if (understood == CM_OK || understood == CM_EUNSUPPORTED)
            *kind = meta->is_group ? FOLDER_GROUP : FOLDER_ARRAY;
    }
    cm_json_free(j);
    return rc;
}

static int read_folder(cm_store *store, const char *path, cm_zarr_meta *meta, folder_kind *kind,
                       cm_error *err)
{
    *kind = FOLDER_FOREIGN;
    memset(meta, 0, sizeof *meta);
    int rc = CM_OK;
    for (size_t i = 0; i < COUNT(SIGN) && rc == CM_OK && *kind == FOLDER_FOREIGN; i++)
        rc = read_meta(store, path, SIGN[i].name, SIGN[i].format, meta, kind, err);
    return rc;
}

static int mark_document(cm_store *store, const char *key, cm_error *err)
{
    cm_json *j = NULL;
    cm_buf text = {0};
    bool there;
    int rc = read_document(store, key, &there, &j, err);
    /* Readers refuse a document that is not an object anyway. */
    bool marks = rc == CM_OK && cm_json_is(j, CM_JSON_OBJECT) && !is_marked(j);
    if (marks)
        rc = cm_json_set(j, "zarr_format", cm_json_string(REMOVED), err);
    if (marks && rc == CM_OK)
        rc = cm_json_write(j, false, &text, err);
    if (marks && rc == CM_OK)
        rc = cm_store_put(store, key, text.data, text.nbytes, err);
    cm_buf_release(&text);
    cm_json_free(j);
    return rc;
}

/* Marks the node at PATH: no reader opens it any more, and a resumed erasure finds it. */
static int mark_node(cm_store *store, const char *path, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < COUNT(SIGN); i++) {
        char *key = join(path, SIGN[i].name, err);
        rc = key != NULL ? mark_document(store, key, err) : CM_ENOMEM;
        free(key);
    }
    return rc;
}

static bool is_sign(const char *name)
{
    for (size_t i = 0; i < COUNT(SIGN); i++)
        if (strcmp(name, SIGN[i].name) == 0)
            return true;
    return false;
}

static cm_verdict judge_metadata(void *context, const char *below, cm_entry_kind kind)
{
    (void)context;
    if (kind == CM_ENTRY_TEMPORARY || below[0] == '\0')
        return CM_REMOVE;
    return kind == CM_ENTRY_FILE && cm_zarr_is_document(below) ? CM_REMOVE : CM_KEEP;
}

/* Keeps the node's own documents, by which it is found. */
static cm_verdict judge_beside_sign(void *context, const char *below, cm_entry_kind kind)
{
    if (below[0] == '\0' || (kind == CM_ENTRY_FILE && is_sign(below)))
        return CM_KEEP;
    return judge_metadata(context, below, kind);
}

int cm_zarr_erase_metadata(cm_store *store, const char *path, cm_error *err)
{
    return cm_store_sweep(store, path, judge_metadata, NULL, err);
}

/* ---- chunks ---- */

/* Names of an array's chunks, judged. */
typedef struct key_space {
    bool is_group; /* there are no chunks */
    cm_chunk_names names;
    const cm_store *store; /* for recognising its temporaries, if only those are removed */
} key_space;

/*
 * Whether BELOW, a path relative to the array, is the key of a chunk; *above: or a folder on the
 * way to one.
 */
static bool is_chunk_key(const key_space *keys, const char *below, bool *above)
{
    cm_chunk_name name = cm_chunk_name_parse(&keys->names, below, NULL);
    *above = name == CM_CHUNK_NAME_ABOVE;
    return name == CM_CHUNK_NAME_CHUNK;
}

static cm_verdict judge_chunk(void *context, const char *below, cm_entry_kind kind)
{
    bool above;
    /*
     * For temporaries, only folders on the way to chunks are entered.  "": the array's own folder.
     */
    if (kind == CM_ENTRY_TEMPORARY || below[0] == '\0')
        return CM_REMOVE;
    bool is_key = is_chunk_key(context, below, &above);
    if (kind == CM_ENTRY_FOLDER)
        return above ? CM_REMOVE : CM_KEEP;
    return is_key && kind == CM_ENTRY_FILE ? CM_REMOVE : CM_KEEP;
}

int cm_zarr_erase_chunks(cm_store *store, const char *path, const cm_zarr_meta *meta, cm_error *err)
{
    key_space keys = {0};
    cm_chunk_names_init(meta, &keys.names);
    return cm_store_sweep(store, path, judge_chunk, &keys, err);
}

/* Keeps folders, even empty ones: another part may just have made them. */
static cm_verdict judge_temporary(void *context, const char *below, cm_entry_kind kind)
{
    const key_space *keys = context;
    bool above = false;
    if (kind == CM_ENTRY_TEMPORARY)
        return cm_store_is_own_temporary(keys->store, below) ? CM_REMOVE : CM_KEEP;
    if (kind == CM_ENTRY_FOLDER && !keys->is_group)
        (void)is_chunk_key(keys, below, &above);
    return above ? CM_ENTER : CM_KEEP;
}

int cm_zarr_erase_temporaries(cm_store *store, const char *path, const cm_zarr_meta *meta,
                              cm_error *err)
{
    key_space keys = {.is_group = meta == NULL, .store = store};
    if (meta != NULL)
        cm_chunk_names_init(meta, &keys.names);
    return cm_store_sweep(store, path, judge_temporary, &keys, err);
}

/* ---- nodes ---- */

typedef struct children {
    cm_buf names; /* each followed by NUL */
    int status;
} children;

static cm_verdict judge_child(void *context, const char *below, cm_entry_kind kind)
{
    children *c = context;
    if (kind == CM_ENTRY_FOLDER && c->status == CM_OK)
        c->status = cm_buf_append(&c->names, below, strlen(below) + 1, NULL);
    return CM_KEEP;
}

typedef int node_visit(void *context, cm_store *store, const char *path, folder_kind kind,
                       const cm_zarr_meta *meta, cm_error *err);

typedef struct node_walk {
    cm_store *store;
    bool marks; /* mark groups before visiting the nodes below */
    node_visit *visit;
    void *context;
} node_walk;

static int walk_node(const node_walk *w, const char *path, unsigned depth, cm_error *err);

static int walk_children(const node_walk *w, const char *path, unsigned depth, cm_error *err)
{
    children c = {.status = CM_OK};
    int rc = cm_store_sweep(w->store, path, judge_child, &c, err);
    if (rc == CM_OK && c.status != CM_OK)
        rc = cm_fail(err, c.status, "no memory for the names in %s", path);
    for (size_t at = 0; rc == CM_OK && at < c.names.nbytes;) {
        const char *name = (const char *)c.names.data + at;
        char *below = join(path, name, err);
        rc = below != NULL ? walk_node(w, below, depth + 1, err) : CM_ENOMEM;
        free(below);
        at += strlen(name) + 1;
    }
    cm_buf_release(&c.names);
    return rc;
}

/* Walks the nodes below a group, then the node at PATH; a folder without metadata is not a node. */
static int walk_node(const node_walk *w, const char *path, unsigned depth, cm_error *err)
{
    cm_zarr_meta meta;
    folder_kind kind;
    if (depth > MAX_DEPTH)
        return cm_fail(err, CM_EFORMAT, "%s: groups are nested deeper than %d", path, MAX_DEPTH);
    int rc = read_folder(w->store, path, &meta, &kind, err);
    if (rc == CM_OK && kind == FOLDER_GROUP && w->marks)
        rc = mark_node(w->store, path, err);
    if (rc == CM_OK && kind == FOLDER_GROUP)
        rc = walk_children(w, path, depth, err);
    if (rc == CM_OK && kind != FOLDER_FOREIGN)
        rc = w->visit(w->context, w->store, path, kind, &meta, err);
    cm_zarr_meta_release(&meta);
    return rc;
}

/* Removes the node's documents last, so that an interrupted erasure can be resumed. */
static int erase_node(void *context, cm_store *store, const char *path, folder_kind kind,
                      const cm_zarr_meta *meta, cm_error *err)
{
    (void)context;
    int rc = mark_node(store, path, err);
    if (rc == CM_OK && kind == FOLDER_ARRAY)
        rc = cm_zarr_erase_chunks(store, path, meta, err);
    if (rc == CM_OK)
        rc = cm_store_sweep(store, path, judge_beside_sign, NULL, err);
    return rc != CM_OK ? rc : cm_zarr_erase_metadata(store, path, err);
}

typedef struct array_walk {
    cm_zarr_array_visit *visit;
    void *context;
} array_walk;

static int visit_array(void *context, cm_store *store, const char *path, folder_kind kind,
                       const cm_zarr_meta *meta, cm_error *err)
{
    const array_walk *w = context;
    (void)store;
    return kind == FOLDER_ARRAY ? w->visit(w->context, path, meta, err) : CM_OK;
}

int cm_zarr_each_array(cm_store *store, cm_zarr_array_visit *visit, void *context, cm_error *err)
{
    array_walk arrays = {visit, context};
    node_walk w = {store, false, visit_array, &arrays};
    return walk_node(&w, "", 0, err);
}

static cm_verdict judge_consolidated(void *context, const char *below, cm_entry_kind kind)
{
    (void)context;
    return kind == CM_ENTRY_FILE && strcmp(below, ".zmetadata") == 0 ? CM_REMOVE : CM_KEEP;
}

/*
 * Before anything is removed, makes the root unreadable: its own document first, so that at no time
 * a store can be opened that has lost its consolidated metadata.
 */
static int hide_nodes(cm_store *store, cm_error *err)
{
    static const char group[] = "{\"zarr_format\": \"" REMOVED "\"}";
    cm_zarr_meta meta;
    folder_kind kind;
    int rc = read_folder(store, "", &meta, &kind, err);
    cm_zarr_meta_release(&meta);
    if (rc == CM_OK && kind == FOLDER_FOREIGN) {
        if (cm_store_size(store, ".zmetadata", NULL, NULL) != CM_OK)
            return cm_fail(err, CM_EFORMAT, "no Zarr store: nothing was removed");
        rc = cm_store_put(store, ".zgroup", group, sizeof group - 1, err);
    }
    if (rc == CM_OK)
        rc = mark_node(store, "", err);
    /* Some readers read nothing else. */
    return rc != CM_OK ? rc : cm_store_sweep(store, "", judge_consolidated, NULL, err);
}

int cm_zarr_erase(cm_store *store, cm_error *err)
{
    node_walk w = {store, true, erase_node, NULL};
    int rc = hide_nodes(store, err);
    return rc != CM_OK ? rc : walk_node(&w, "", 0, err);
}

/* ---- counting the rest ---- */

static cm_verdict count_entry(void *context, const char *below, cm_entry_kind kind)
{
    cm_zarr_left *left = context;
    if (kind == CM_ENTRY_FOLDER)
        return CM_ENTER;
    left->n++;
    size_t at = strlen(left->names), n = strlen(below), comma = at > 0 ? 2 : 0;
    if (left->nnamed + 1 == left->n && left->nnamed < 5 && at + comma + n < sizeof left->names) {
        memcpy(left->names + at, ", ", comma);
        memcpy(left->names + at + comma, below, n + 1);
        left->nnamed++;
    }
    return CM_KEEP;
}

int cm_zarr_count_left(cm_store *store, cm_zarr_left *left, cm_error *err)
{
    *left = (cm_zarr_left){0};
    return cm_store_sweep(store, "", count_entry, left, err);
}

/* ---- finding obstacles ---- */

typedef struct obstacle {
    key_space keys;
    char name[CM_CHUNK_KEY_SIZE];
    bool found;
} obstacle;

static cm_verdict find_obstacle(void *context, const char *below, cm_entry_kind kind)
{
    obstacle *o = context;
    bool above = false, is_key = is_chunk_key(&o->keys, below, &above);
    if (kind == CM_ENTRY_FOLDER && above)
        return CM_ENTER;
    if (kind == CM_ENTRY_OTHER && (is_key || above) && !o->found) {
        snprintf(o->name, sizeof o->name, "%s", below);
        o->found = true;
    }
    return CM_KEEP;
}

static int in_the_way(cm_error *err, const char *key)
{
    return cm_fail(err, CM_EEXIST,
                   "%s: is a symbolic link or another special file, and is not replaced", key);
}

/* Checks that every folder of PATH, the last included, is one that can be erased. */
static int check_folders(cm_store *store, const char *path, cm_error *err)
{
    char *above = cm_strdup(path, err);
    int rc = above != NULL ? CM_OK : CM_ENOMEM;
    bool there = true;
    for (char *p = above; rc == CM_OK && there && *p;) {
        cm_entry_kind kind;
        char *end = p + strcspn(p, "/"), saved = *end;
        *end = '\0';
        rc = cm_store_kind(store, above, &kind, err);
        there = kind != CM_ENTRY_NONE;
        if (rc == CM_OK && kind == CM_ENTRY_OTHER)
            rc = in_the_way(err, above);
        *end = saved;
        p = end + (saved != '\0');
    }
    free(above);
    return rc;
}

/* Checks that its metadata documents can be erased. */
static int check_documents(cm_store *store, const char *path, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < COUNT(METADATA); i++) {
        cm_entry_kind kind;
        char *key = join(path, METADATA[i], err);
        rc = key != NULL ? cm_store_kind(store, key, &kind, err) : CM_ENOMEM;
        if (rc == CM_OK && kind == CM_ENTRY_OTHER)
            rc = in_the_way(err, key);
        else if (rc == CM_OK && kind == CM_ENTRY_FOLDER)
            rc = cm_fail(err, CM_EEXIST, "%s: is a folder, and is not replaced", key);
        free(key);
    }
    return rc;
}

int cm_zarr_check_free(cm_store *store, const char *path, const cm_zarr_meta *meta, cm_error *err)
{
    int rc = check_folders(store, path, err);
    if (rc == CM_OK)
        rc = check_documents(store, path, err);
    if (rc != CM_OK || meta == NULL)
        return rc;
    obstacle o = {.found = false};
    cm_chunk_names_init(meta, &o.keys.names);
    rc = cm_store_sweep(store, path, find_obstacle, &o, err);
    if (rc == CM_OK && o.found) {
        char *key = join(path, o.name, err);
        rc = key != NULL ? in_the_way(err, key) : CM_ENOMEM;
        free(key);
    }
    return rc;
}
