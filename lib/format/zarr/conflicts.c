/*
 * Compares consolidated metadata with the documents of the nodes.  Both are parsed first and
 * compared by meaning: writers differ in wording (defaults left out, an empty list for null).
 */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/tree.h"

void cm_zarr_conflicts_release(cm_zarr_conflicts *conflicts)
{
    for (size_t i = 0; i < conflicts->n; i++) {
        free(conflicts->item[i].path);
        free(conflicts->item[i].group);
        free(conflicts->item[i].what);
    }
    free(conflicts->item);
    *conflicts = (cm_zarr_conflicts){0};
}

static int add(cm_zarr_conflicts *c, cm_zarr_conflict_kind kind, const char *group,
               const char *path, const char *what, cm_error *err)
{
    if (CM_GROW(c->item, c->n, err) != CM_OK)
        return CM_ENOMEM;
    cm_zarr_conflict *item = &c->item[c->n++];
    *item = (cm_zarr_conflict){.kind = kind};
    item->path = cm_strdup(path, err);
    item->group = item->path != NULL ? cm_strdup(group, err) : NULL;
    item->what = item->group != NULL && what != NULL ? cm_strdup(what, err) : NULL;
    return item->path != NULL && item->group != NULL && (item->what != NULL || what == NULL)
               ? CM_OK
               : CM_ENOMEM;
}

/* ---- two documents of one node ---- */

/* The meaning of META as one object. */
static int describe(const cm_zarr_meta *meta, bool verbatim, cm_json **out, cm_error *err)
{
    cm_json *attrs = NULL;
    int rc = CM_OK;
    if (verbatim) {
        *out = cm_json_copy(meta->raw);
        attrs = cm_json_copy(meta->attrs);
    } else if (meta->zarr_format == 3) {
        return cm_zarr_meta_to_v3(meta, out, err);
    } else {
        rc = cm_zarr_meta_to_v2(meta, out, &attrs, err);
        attrs = attrs != NULL ? attrs : rc != CM_OK ? NULL : cm_json_object();
    }
    if (rc == CM_OK)
        rc = cm_json_set(*out, "attributes", attrs, err);
    if (rc != CM_OK) {
        cm_json_free(*out);
        *out = NULL;
    }
    return rc;
}

/* null, [] and {} mean the same as a missing member. */
static bool says_nothing(const cm_json *j)
{
    return cm_json_is(j, CM_JSON_NULL) ||
           ((cm_json_is(j, CM_JSON_ARRAY) || cm_json_is(j, CM_JSON_OBJECT)) &&
            cm_json_length(j) == 0);
}

static int list_member(cm_buf *list, const char *name, const cm_json *a, const cm_json *b,
                       cm_error *err)
{
    if (cm_json_equal(a, b) || (says_nothing(a) && says_nothing(b)))
        return CM_OK;
    return cm_buf_printf(list, err, "%s%s", list->nbytes ? ", " : "", name);
}

/* Lists the members in which A and B differ. */
static int list_members(const cm_json *a, const cm_json *b, cm_buf *list, cm_error *err)
{
    int rc = CM_OK;
    for (cm_json_iter it = cm_json_begin(a); rc == CM_OK && cm_json_next(&it);)
        rc = list_member(list, it.name, it.value, cm_json_member(b, it.name), err);
    for (cm_json_iter it = cm_json_begin(b); rc == CM_OK && cm_json_next(&it);)
        if (!cm_json_has(a, it.name))
            rc = list_member(list, it.name, NULL, it.value, err);
    return rc == CM_OK ? cm_buf_append(list, "", 1, err) : rc;
}

static bool same_order(const cm_json *a, const cm_json *b)
{
    cm_json_iter x = cm_json_begin(a), y = cm_json_begin(b);
    while (cm_json_next(&x))
        if (!cm_json_next(&y) || strcmp(x.name, y.name) != 0)
            return false;
    return !cm_json_next(&y);
}

static int compare(const char *group, const cm_zarr_node *listed, const cm_zarr_node *own,
                   cm_zarr_conflicts *c, cm_error *err)
{
    const cm_zarr_meta *x = &listed->meta, *y = &own->meta;
    cm_json *a = NULL, *b = NULL;
    cm_buf list = {0};
    bool verbatim = x->verbatim || y->verbatim || x->raw == NULL || y->raw == NULL;
    if (x->is_group != y->is_group)
        return add(c, CM_ZARR_DIFFERENT, group, own->path, "node_type", err);
    int rc = describe(x, verbatim && x->raw != NULL && y->raw != NULL, &a, err);
    if (rc != CM_OK)
        return rc;
    rc = describe(y, verbatim && x->raw != NULL && y->raw != NULL, &b, err);
    if (rc == CM_OK)
        rc = list_members(a, b, &list, err);
    if (rc == CM_OK && list.nbytes > 1)
        rc = add(c, CM_ZARR_DIFFERENT, group, own->path, (char *)list.data, err);
    else if (rc == CM_OK && !same_order(x->attrs, y->attrs))
        rc = add(c, CM_ZARR_REORDERED, group, own->path, NULL, err);
    cm_buf_release(&list);
    cm_json_free(a);
    cm_json_free(b);
    return rc;
}

/* ---- whole hierarchies ---- */

typedef struct comparison {
    cm_zarr_tree *listed; /* from consolidated metadata */
    cm_zarr_tree own;     /* from the folders */
    cm_zarr_conflicts *out;
} comparison;

static int broken(void *context, const char *path, const char *why, bool *is_group, cm_error *err)
{
    comparison *c = context;
    const cm_zarr_node *listed = cm_zarr_find(c->listed, path);
    *is_group = listed != NULL && listed->meta.is_group;
    return add(c->out, CM_ZARR_BROKEN, "", path, why, err);
}

static bool is_broken(const cm_zarr_conflicts *c, const char *path)
{
    bool found = false;
    for (size_t i = 0; i < c->n && !found; i++)
        found = c->item[i].kind == CM_ZARR_BROKEN && strcmp(c->item[i].path, path) == 0;
    return found;
}

/* PATH relative to GROUP, as in GROUP's consolidated metadata; NULL: it is not below GROUP. */
static const char *below(const char *path, const char *group)
{
    size_t n = strlen(group);
    if (n == 0)
        return path;
    return strncmp(path, group, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/*
 * Finds nodes of OWN below GROUP that its consolidated metadata LISTED lack or describe
 * differently.
 */
static int compare_own(const char *group, const cm_zarr_tree *listed, const cm_zarr_tree *own,
                       cm_zarr_conflicts *out, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < own->nnodes; i++) {
        const cm_zarr_node *node = &own->node[i];
        const char *path = below(node->path, group);
        if (path == NULL || node->implied)
            continue;
        const cm_zarr_node *other = cm_zarr_find(listed, path);
        if (other != NULL && !other->implied)
            rc = compare(group, other, node, out, err);
        else
            rc = add(out, CM_ZARR_UNLISTED, group, node->path, NULL, err);
    }
    return rc;
}

static int compare_listed(const char *group, const cm_zarr_tree *listed, const cm_zarr_tree *own,
                          cm_zarr_conflicts *out, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < listed->nnodes; i++) {
        const cm_zarr_node *node = &listed->node[i];
        char *path =
            cm_asprintf(err, "%s%s%s", group, *group && *node->path ? "/" : "", node->path);
        const cm_zarr_node *other = path != NULL ? cm_zarr_find(own, path) : NULL;
        if (path == NULL)
            rc = CM_ENOMEM;
        else if (!node->implied && (other == NULL || other->implied) && !is_broken(out, path))
            rc = add(out, CM_ZARR_LOST, group, path, NULL, err);
        free(path);
    }
    return rc;
}

/* Compares the consolidated metadata that the group at PATH, below the root, has itself (v3). */
static int compare_nested(cm_store *store, const char *path, const cm_zarr_tree *own,
                          cm_zarr_conflicts *out, cm_error *err)
{
    cm_zarr_tree listed = {.store = store, .zarr_format = 3};
    cm_error why = {0};
    cm_json *root;
    int rc = cm_zarr_get_json(store, path, "zarr.json", &root, err);
    if (rc != CM_OK)
        return rc;
    const cm_json *nodes = cm_zarr_consolidated_v3(root);
    rc = nodes != NULL ? cm_zarr_tree_load_v3(&listed, root, nodes, &why) : CM_OK;
    if (rc != CM_OK && rc != CM_ENOMEM) {
        rc = add(out, CM_ZARR_IGNORED, path, path, why.text, err);
    } else if (rc != CM_OK) {
        cm_fail(err, CM_ENOMEM, "%s", why.text);
    } else if (nodes != NULL) {
        rc = compare_own(path, &listed, own, out, err);
        if (rc == CM_OK)
            rc = compare_listed(path, &listed, own, out, err);
    }
    cm_json_free(root);
    cm_zarr_tree_release(&listed);
    return rc;
}

static int compare_all_nested(const cm_zarr_tree *own, cm_zarr_conflicts *out, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && own->zarr_format == 3 && i < own->nnodes; i++) {
        const cm_zarr_node *node = &own->node[i];
        if (node->meta.is_group && !node->implied && node->path[0])
            rc = compare_nested(own->store, node->path, own, out, err);
    }
    return rc;
}

/* Moves nodes that consolidated metadata do not list to the tree made from them. */
static int adopt(comparison *c, cm_error *err)
{
    size_t n = c->listed->nnodes; /* the sorted nodes, which are searched */
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < c->own.nnodes; i++) {
        cm_zarr_node *node = &c->own.node[i];
        cm_zarr_tree sorted = {.node = c->listed->node, .nnodes = n};
        const cm_zarr_node *listed = cm_zarr_find(&sorted, node->path);
        if (node->implied || (listed != NULL && !listed->implied))
            continue;
        if (listed == NULL) {
            rc = cm_zarr_tree_take(c->listed, node, err);
            continue;
        }
        cm_zarr_node *to = &c->listed->node[listed - c->listed->node], was = *to;
        *to = *node;
        *node = was;
    }
    return rc != CM_OK ? rc : cm_zarr_tree_complete(c->listed, err);
}

static int compare_trees(cm_zarr_tree *tree, cm_zarr_conflicts *out, cm_error *err)
{
    comparison c = {.listed = tree, .out = out};
    c.own = (cm_zarr_tree){.store = tree->store, .zarr_format = tree->zarr_format};
    int rc = cm_zarr_tree_walk(&c.own, broken, &c, err);
    if (rc == CM_OK)
        rc = compare_own("", tree, &c.own, out, err);
    if (rc == CM_OK)
        rc = compare_listed("", tree, &c.own, out, err);
    if (rc == CM_OK)
        rc = compare_all_nested(&c.own, out, err);
    if (rc == CM_OK)
        rc = adopt(&c, err);
    tree->nforeign = c.own.nforeign;
    tree->foreign = c.own.foreign;
    c.own.foreign = NULL;
    cm_zarr_tree_release(&c.own);
    return rc;
}

int cm_zarr_open_whole(cm_store *store, cm_zarr_tree *out, cm_zarr_conflicts *conflicts,
                       cm_error *err)
{
    *conflicts = (cm_zarr_conflicts){0};
    int rc = cm_zarr_open(store, out, err);
    if (rc != CM_OK)
        return rc;
    /* Walking a bucket takes a request for each node, and a web server cannot be walked. */
    if (cm_store_is_remote(store) && out->consolidated)
        return CM_OK;
    if (out->consolidated)
        rc = compare_trees(out, conflicts, err);
    else
        rc = compare_all_nested(out, conflicts, err);
    if (rc == CM_OK && out->ignored != NULL)
        rc = add(conflicts, CM_ZARR_IGNORED, "", "", out->ignored, err);
    if (rc != CM_OK) {
        cm_zarr_tree_release(out);
        cm_zarr_conflicts_release(conflicts);
    }
    return rc;
}
