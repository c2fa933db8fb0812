/* Opens a hierarchy: from consolidated metadata, or folder by folder. */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/tree.h"

#include "base/json_size.h"

enum {
    MAX_DEPTH = 128,     /* of groups; anything deeper is a loop of links */
    MAX_NODES = 1 << 22, /* more are one, too */
    TREES = 3            /* a document's attributes are there as often, until they are written */
};

/* ---- nodes ---- */

static void node_release(cm_zarr_node *node)
{
    free(node->path);
    free(node->unsupported);
    cm_zarr_meta_release(&node->meta);
}

void cm_zarr_tree_release(cm_zarr_tree *tree)
{
    for (size_t i = 0; i < tree->nnodes; i++)
        node_release(&tree->node[i]);
    free(tree->node);
    free(tree->ignored);
    free(tree->foreign);
    memset(tree, 0, sizeof *tree);
}

int cm_zarr_tree_take(cm_zarr_tree *tree, cm_zarr_node *from, cm_error *err)
{
    size_t n = tree->nnodes;
    cm_zarr_node node = *from;
    memset(from, 0, sizeof *from);
    int rc = CM_OK;
    if (n == MAX_NODES)
        rc = cm_fail(err, CM_EFORMAT, "more than %d nodes, or links that form a loop", MAX_NODES);
    if (rc == CM_OK)
        rc = CM_GROW(tree->node, n, err);
    if (rc != CM_OK) {
        node_release(&node);
        return rc;
    }
    tree->node[tree->nnodes++] = node;
    return CM_OK;
}

/* Takes what META owns, also on failure. */
static int add_node(cm_zarr_tree *tree, const char *path, size_t path_nbytes, cm_zarr_meta *meta,
                    const char *unsupported, bool implied, cm_error *err)
{
    cm_zarr_node node = {.meta = *meta, .implied = implied};
    memset(meta, 0, sizeof *meta);
    int rc = CM_OK;
    if ((node.path = cm_asprintf(err, "%.*s", (int)path_nbytes, path)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK && unsupported != NULL &&
        (node.unsupported = cm_strdup(unsupported, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc != CM_OK) {
        node_release(&node);
        return rc;
    }
    return cm_zarr_tree_take(tree, &node, err);
}

/* Adds the node that J (and in v2 ATTRS) describes.  *is_group may be NULL. */
static int add_parsed(cm_zarr_tree *tree, const char *path, size_t path_nbytes, const cm_json *j,
                      const cm_json *attrs, bool *is_group, cm_error *err)
{
    cm_zarr_meta meta;
    cm_error why = {0};
    int rc = tree->zarr_format == 3 ? cm_zarr_meta_from_v3(j, &meta, &why)
                                    : cm_zarr_meta_from_v2(j, attrs, &meta, &why);
    if (rc != CM_OK && rc != CM_EUNSUPPORTED)
        return cm_fail(err, (cm_status)rc, "%s", why.text);
    if (is_group != NULL)
        *is_group = meta.is_group;
    return add_node(tree, path, path_nbytes, &meta, rc != CM_OK ? why.text : NULL, false, err);
}

/* Adds an implied group. */
static int add_group(cm_zarr_tree *tree, const char *path, size_t path_nbytes, cm_error *err)
{
    cm_zarr_meta meta = {
        .zarr_format = tree->zarr_format, .is_group = true, .attrs = cm_json_object()};
    if (meta.attrs == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    return add_node(tree, path, path_nbytes, &meta, NULL, true, err);
}

static int compare_nodes(const void *a, const void *b)
{
    const cm_zarr_node *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static void sort_nodes(cm_zarr_tree *tree)
{
    if (tree->nnodes)
        qsort(tree->node, tree->nnodes, sizeof *tree->node, compare_nodes);
}

static const cm_zarr_node *find(const cm_zarr_node *node, size_t n, const char *path)
{
    cm_zarr_node key = {.path = (char *)(uintptr_t)path};
    return n ? bsearch(&key, node, n, sizeof *node, compare_nodes) : NULL;
}

const cm_zarr_node *cm_zarr_find(const cm_zarr_tree *tree, const char *path)
{
    return find(tree->node, tree->nnodes, path);
}

/*
 * Adds the groups above every node, which consolidated metadata and folders may leave out.  In
 * sorted order the nodes below a group are adjacent, so each missing group is met once: at the
 * first node whose predecessor does not lie below it.
 */
int cm_zarr_tree_complete(cm_zarr_tree *tree, cm_error *err)
{
    sort_nodes(tree);
    size_t n = tree->nnodes;
    int rc = find(tree->node, n, "") != NULL ? CM_OK : add_group(tree, "", 0, err);
    const char *before = "";
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        const char *path = tree->node[i].path;
        unsigned depth = 0;
        for (const char *p = path; rc == CM_OK && (p = strchr(p, '/')) != NULL; p++) {
            size_t nbytes = (size_t)(p - path);
            if (++depth > MAX_DEPTH)
                return cm_fail(err, CM_EFORMAT, "groups are nested deeper than %d", MAX_DEPTH);
            if (strncmp(before, path, nbytes + 1) == 0)
                continue;
            char *parent = cm_asprintf(err, "%.*s", (int)nbytes, path);
            if (parent == NULL)
                return CM_ENOMEM;
            if (find(tree->node, n, parent) == NULL)
                rc = add_group(tree, parent, nbytes, err);
            free(parent);
        }
        before = path;
    }
    sort_nodes(tree);
    return rc;
}

/* ---- one object of metadata ---- */

/* The memory of a store whose documents may be as large as TEXT: twice what they may take. */
static uint64_t memory_for(const cm_buf *text)
{
    return 2 * (text->nbytes + TREES * cm_json_tree_nbytes(text->data, text->nbytes));
}

int cm_zarr_get_json(cm_store *store, const char *path, const char *name, cm_json **out,
                     cm_error *err)
{
    *out = NULL;
    char *key = cm_asprintf(err, "%s%s%s", path, path[0] ? "/" : "", name);
    if (key == NULL)
        return CM_ENOMEM;
    cm_buf buf = {0};
    const uint64_t memory = cm_store_document_memory(store);
    int rc = cm_store_get(store, key, CM_ZARR_MAX_META_NBYTES, &buf, err);
    if (rc == CM_OK) {
        const uint64_t left = memory > buf.nbytes ? memory - buf.nbytes : 0;
        rc = cm_json_parse_within(buf.data, buf.nbytes, left / TREES, out, err);
        if (rc == CM_EBUDGET)
            cm_error_suffix(err, " to at least %llu MiB",
                            (unsigned long long)(memory_for(&buf) >> 20) + 1);
        if (rc != CM_OK)
            cm_error_prefix(err, "%s", key);
    }
    cm_buf_release(&buf);
    free(key);
    return rc;
}

/* ---- folder by folder ---- */

typedef struct walk {
    cm_zarr_tree *tree;
    const char *path;
    unsigned depth;
    cm_zarr_broken *broken; /* NULL: an unreadable document ends the walk */
    void *context;
} walk;

static int walk_below(const walk *w, cm_error *err);

static int prefix_key(cm_error *err, int rc, const char *path, const char *name)
{
    if (rc != CM_OK)
        cm_error_prefix(err, "%s%s%s", path, path[0] ? "/" : "", name);
    return rc;
}

/* Reads the node at PATH.  CM_ENOTFOUND: no node. */
static int read_node(cm_zarr_tree *tree, const char *path, bool *is_group, cm_error *err)
{
    cm_json *j, *attrs = NULL;
    if (tree->zarr_format == 3) {
        int rc = cm_zarr_get_json(tree->store, path, "zarr.json", &j, err);
        if (rc != CM_OK)
            return rc;
        rc = prefix_key(err, add_parsed(tree, path, strlen(path), j, NULL, is_group, err), path,
                        "zarr.json");
        cm_json_free(j);
        return rc;
    }
    const char *name = ".zarray";
    int rc = cm_zarr_get_json(tree->store, path, name, &j, err);
    if (rc == CM_ENOTFOUND) {
        name = ".zgroup";
        rc = cm_zarr_get_json(tree->store, path, name, &j, err);
    }
    if (rc != CM_OK)
        return rc;
    rc = cm_zarr_get_json(tree->store, path, ".zattrs", &attrs, err);
    if (rc == CM_OK || rc == CM_ENOTFOUND)
        rc = prefix_key(err, add_parsed(tree, path, strlen(path), j, attrs, is_group, err), path,
                        name);
    cm_json_free(j);
    cm_json_free(attrs);
    return rc;
}

static bool is_metadata(const cm_zarr_tree *tree, const char *name)
{
    if (tree->zarr_format == 3)
        return strcmp(name, "zarr.json") == 0;
    return strcmp(name, ".zgroup") == 0 || strcmp(name, ".zattrs") == 0 ||
           strcmp(name, ".zmetadata") == 0 || strcmp(name, ".zarray") == 0;
}

/* Takes PATH. */
static int add_foreign(cm_zarr_tree *tree, char *path)
{
    if (tree->nforeign++ == 0)
        tree->foreign = path;
    else
        free(path);
    return CM_OK;
}

/* Reads the node at W's path, and those below it. */
static int walk_node(const walk *w, cm_error *err)
{
    bool is_group = false, is_link = false;
    int rc = read_node(w->tree, w->path, &is_group, err);
    /* A storage error says nothing about the document. */
    if (rc == CM_EFORMAT && w->broken != NULL)
        rc = w->broken(w->context, w->path, err != NULL ? err->text : "", &is_group, err);
    if (rc == CM_OK)
        return is_group ? walk_below(w, err) : CM_OK;
    if (rc != CM_ENOTFOUND || w->path[0] == '\0')
        return rc;
    /* A folder without metadata may be above nodes, but a link may lead back to a folder above. */
    rc = cm_store_is_link(w->tree->store, w->path, &is_link, err);
    if (rc == CM_OK && !is_link)
        return walk_below(w, err);
    char *path = rc == CM_OK ? cm_strdup(w->path, err) : NULL;
    return path != NULL ? add_foreign(w->tree, path) : rc == CM_OK ? CM_ENOMEM : rc;
}

static int visit_child(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const walk *w = context;
    if (!is_prefix && is_metadata(w->tree, name))
        return CM_OK;
    char *path = cm_asprintf(err, "%s%s%s", w->path, w->path[0] ? "/" : "", name);
    if (path == NULL)
        return CM_ENOMEM;
    if (!is_prefix)
        return add_foreign(w->tree, path);
    walk child = *w;
    child.path = path;
    child.depth++;
    int rc = walk_node(&child, err);
    free(path);
    return rc;
}

static int walk_below(const walk *w, cm_error *err)
{
    if (w->depth > MAX_DEPTH)
        return cm_fail(err, CM_EFORMAT, "%s: groups are nested deeper than %d", w->path, MAX_DEPTH);
    walk here = *w;
    return cm_store_list(w->tree->store, w->path, visit_child, &here, err);
}

int cm_zarr_tree_walk(cm_zarr_tree *tree, cm_zarr_broken *broken, void *context, cm_error *err)
{
    walk w = {.tree = tree, .path = "", .broken = broken, .context = context};
    int rc = walk_node(&w, err);
    if (rc == CM_ENOTFOUND && broken != NULL) /* consolidated metadata may describe the root */
        rc = walk_below(&w, err);
    return rc != CM_OK ? rc : cm_zarr_tree_complete(tree, err);
}

/* ---- consolidated ---- */

const cm_json *cm_zarr_consolidated_v3(const cm_json *root)
{
    const cm_json *c = cm_json_member(root, "consolidated_metadata");
    const char *kind = cm_json_text(cm_json_member(c, "kind"), NULL);
    const cm_json *nodes = cm_json_member(c, "metadata");
    return kind != NULL && strcmp(kind, "inline") == 0 && cm_json_length(nodes) ? nodes : NULL;
}

int cm_zarr_tree_load_v3(cm_zarr_tree *tree, const cm_json *root, const cm_json *nodes,
                         cm_error *err)
{
    int rc = add_parsed(tree, "", 0, root, NULL, NULL, err);
    for (cm_json_iter it = cm_json_begin(nodes); rc == CM_OK && cm_json_next(&it);) {
        rc = cm_key_check(it.name, err);
        if (rc == CM_OK)
            rc = add_parsed(tree, it.name, strlen(it.name), it.value, NULL, NULL, err);
    }
    return rc != CM_OK ? rc : cm_zarr_tree_complete(tree, err);
}

/* One object of a .zmetadata: "a/b/.zarray". */
typedef struct document {
    const char *key;
    size_t path_nbytes;
    const cm_json *j;
} document;

static int compare_documents(const void *a, const void *b)
{
    const document *x = a, *y = b;
    size_t n = x->path_nbytes < y->path_nbytes ? x->path_nbytes : y->path_nbytes;
    int order = memcmp(x->key, y->key, n);
    return order ? order : (x->path_nbytes > y->path_nbytes) - (x->path_nbytes < y->path_nbytes);
}

static bool same_path(const document *a, const document *b)
{
    return compare_documents(a, b) == 0;
}

static int read_documents(const cm_json *nodes, document *out, size_t *n, cm_error *err)
{
    *n = 0;
    for (cm_json_iter it = cm_json_begin(nodes); cm_json_next(&it);) {
        int rc = cm_key_check(it.name, err);
        if (rc != CM_OK)
            return rc;
        const char *slash = strrchr(it.name, '/');
        out[(*n)++] = (document){it.name, slash != NULL ? (size_t)(slash - it.name) : 0, it.value};
    }
    qsort(out, *n, sizeof *out, compare_documents);
    return CM_OK;
}

static int add_documents(cm_zarr_tree *tree, const document *first, size_t n, cm_error *err)
{
    const cm_json *zarray = NULL, *zgroup = NULL, *zattrs = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t skip = first[i].path_nbytes;
        const char *name = first[i].key + skip + (skip != 0);
        if (strcmp(name, ".zarray") == 0)
            zarray = first[i].j;
        else if (strcmp(name, ".zgroup") == 0)
            zgroup = first[i].j;
        else if (strcmp(name, ".zattrs") == 0)
            zattrs = first[i].j;
    }
    if (zarray == NULL && zgroup == NULL)
        return CM_OK;
    return add_parsed(tree, first->key, first->path_nbytes, zarray != NULL ? zarray : zgroup,
                      zattrs, NULL, err);
}

static int load_v2(cm_zarr_tree *tree, const cm_json *zmetadata, cm_error *err)
{
    uint64_t format = 0;
    const cm_json *nodes = cm_json_member(zmetadata, "metadata");
    if (!cm_json_get_u64(cm_json_member(zmetadata, "zarr_consolidated_format"), &format) ||
        format != 1 || cm_json_length(nodes) == 0)
        return cm_fail(err, CM_EFORMAT, ".zmetadata is not consolidated metadata");
    document *doc = cm_calloc(cm_json_length(nodes), sizeof *doc, err);
    if (doc == NULL)
        return CM_ENOMEM;
    size_t n;
    int rc = read_documents(nodes, doc, &n, err);
    for (size_t i = 0, end; i < n && rc == CM_OK; i = end) {
        for (end = i + 1; end < n && same_path(&doc[i], &doc[end]);)
            end++;
        rc = add_documents(tree, doc + i, end - i, err);
    }
    free(doc);
    return rc != CM_OK ? rc : cm_zarr_tree_complete(tree, err);
}

/* ---- opening ---- */

static void empty(cm_zarr_tree *tree, int zarr_format)
{
    cm_store *store = tree->store;
    cm_zarr_tree_release(tree);
    tree->store = store;
    tree->zarr_format = zarr_format;
}

/* Keeps TREE if reading consolidated metadata succeeded (RC); otherwise walks the folders. */
static int keep_or_walk(cm_zarr_tree *tree, int zarr_format, int rc, const cm_error *why,
                        cm_error *err)
{
    tree->consolidated = rc == CM_OK;
    if (rc == CM_OK)
        return CM_OK;
    if (rc == CM_ENOMEM)
        return cm_fail(err, CM_ENOMEM, "%s", why->text);
    empty(tree, zarr_format);
    if (rc != CM_ENOTFOUND && (tree->ignored = cm_strdup(why->text, err)) == NULL)
        return CM_ENOMEM;
    int walked = cm_zarr_tree_walk(tree, NULL, NULL, err);
    /* A web server cannot be listed: report why its consolidated metadata could not be used. */
    if (walked == CM_EUNSUPPORTED && tree->ignored != NULL)
        return cm_fail(err, (cm_status)rc, "%s", tree->ignored);
    return walked;
}

/* Frees ROOT, which would take as much again as the same document when the folders are walked. */
static int open_v3(cm_zarr_tree *tree, cm_json *root, cm_error *err)
{
    cm_error why = {0};
    empty(tree, 3);
    const cm_json *nodes = cm_zarr_consolidated_v3(root);
    int rc = nodes != NULL ? cm_zarr_tree_load_v3(tree, root, nodes, &why) : CM_ENOTFOUND;
    cm_json_free(root);
    return keep_or_walk(tree, 3, rc, &why, err);
}

/* CM_ENOTFOUND: not a v2 store. */
static int open_v2(cm_zarr_tree *tree, cm_error *err)
{
    cm_json *zmetadata = NULL;
    cm_error why = {0};
    empty(tree, 2);
    int rc = cm_zarr_get_json(tree->store, "", ".zmetadata", &zmetadata, &why);
    /* kerchunk's references: all chunks would be missing, and every element the fill value. */
    const bool parquet = rc == CM_OK && cm_json_has(zmetadata, "record_size");
    if (rc == CM_OK && !parquet)
        rc = load_v2(tree, zmetadata, &why);
    cm_json_free(zmetadata);
    if (parquet)
        return cm_fail(err, CM_EUNSUPPORTED,
                       ".zmetadata belongs to references in Parquet files, which are not read; "
                       "references in a JSON file are");
    return keep_or_walk(tree, 2, rc, &why, err);
}

/* A root without metadata: in draft v3 groups were mere folders. */
static int open_implied(cm_zarr_tree *tree, cm_error *err)
{
    for (int format = 3; format >= 2; format--) {
        empty(tree, format);
        walk w = {.tree = tree, .path = ""};
        int rc = walk_below(&w, err);
        if (rc != CM_OK)
            return rc;
        if (tree->nnodes)
            return cm_zarr_tree_complete(tree, err);
    }
    return cm_fail(err, CM_EFORMAT,
                   "no Zarr store: neither zarr.json, .zgroup, .zarray nor .zmetadata is there");
}

int cm_zarr_open(cm_store *store, cm_zarr_tree *out, cm_error *err)
{
    *out = (cm_zarr_tree){.store = store};
    cm_json *root;
    int rc = cm_zarr_get_json(store, "", "zarr.json", &root, err);
    if (rc == CM_OK) {
        rc = open_v3(out, root, err);
    } else if (rc == CM_ENOTFOUND) {
        rc = open_v2(out, err);
        if (rc == CM_ENOTFOUND)
            rc = open_implied(out, err);
    }
    if (rc != CM_OK)
        cm_zarr_tree_release(out);
    return rc;
}
