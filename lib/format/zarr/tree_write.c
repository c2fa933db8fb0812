/*
 * Writes the metadata of a whole hierarchy once all data are written: arrays, then groups from the
 * deepest up, the root last.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "format/zarr/internal.h"
#include "format/zarr/writer.h"

typedef struct node {
    char *path;
    bool is_group;
    cm_json *doc;   /* zarr.json, .zarray or .zgroup */
    cm_json *attrs; /* .zattrs; NULL: none */
} node;

typedef struct hierarchy {
    cm_store *store;
    int format;
    node *node; /* sorted by path */
    size_t n, capacity;
} hierarchy;

static void release(hierarchy *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->node[i].path);
        cm_json_free(h->node[i].doc);
        cm_json_free(h->node[i].attrs);
    }
    free(h->node);
}

/* ---- gathering ---- */

static int add_node(hierarchy *h, const char *path, size_t path_nbytes, const cm_zarr_meta *meta,
                    cm_error *err)
{
    node *grown = cm_make_room(h->node, h->n, &h->capacity, sizeof *grown, 16);
    if (grown == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu nodes", h->n + 1);
    h->node = grown;
    node *added = &h->node[h->n];
    *added = (node){.is_group = meta->is_group};
    added->path = cm_asprintf(err, "%.*s", (int)path_nbytes, path);
    if (added->path == NULL)
        return CM_ENOMEM;
    h->n++;
    int rc = h->format == 3 ? cm_zarr_meta_to_v3(meta, &added->doc, err)
                            : cm_zarr_meta_to_v2(meta, &added->doc, &added->attrs, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s %s", meta->is_group ? "group" : "array",
                        added->path[0] ? added->path : "/");
    return rc;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const node *)a)->path, ((const node *)b)->path);
}

static void sort(hierarchy *h)
{
    if (h->n)
        qsort(h->node, h->n, sizeof *h->node, compare_paths);
}

static const node *find(const node *list, size_t n, const char *path)
{
    node key = {.path = (char *)(uintptr_t)path};
    return n ? bsearch(&key, list, n, sizeof *list, compare_paths) : NULL;
}

static int check_path(const char *path, cm_error *err)
{
    for (const char *p = path; *p;) {
        size_t nbytes = strcspn(p, "/");
        char *name = cm_asprintf(err, "%.*s", (int)nbytes, p);
        int rc = name != NULL ? cm_zarr_name_check(name, NULL, err) : CM_ENOMEM;
        free(name);
        if (rc != CM_OK)
            return rc;
        if (p[nbytes] == '/' && p[nbytes + 1] == '\0')
            return cm_fail(err, CM_EINVAL, "path '%s' ends with '/'", path);
        p += nbytes + (p[nbytes] == '/');
    }
    return CM_OK;
}

/* Adds PARENT if it is missing; fails if it is an array. */
static int require_group(hierarchy *h, size_t nsorted, const char *parent, const char *child,
                         const cm_zarr_meta *group, cm_error *err)
{
    const node *found = find(h->node, nsorted, parent);
    if (found == NULL)
        return add_node(h, parent, strlen(parent), group, err);
    if (found->is_group)
        return CM_OK;
    return cm_fail(err, CM_EINVAL, "%s lies below %s, which is an array", child,
                   parent[0] ? parent : "the root");
}

/*
 * Adds groups above every node; in sorted order a group's nodes are adjacent, so each is met once.
 */
static int add_missing_groups(hierarchy *h, cm_error *err)
{
    cm_zarr_meta group = {.zarr_format = h->format, .is_group = true, .attrs = cm_json_object()};
    if (group.attrs == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    size_t n = h->n;
    int rc = CM_OK;
    if (n == 0 || h->node[n - 1].path[0])
        rc = require_group(h, n, "", n ? h->node[n - 1].path : "", &group, err);
    const char *before = "";
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        const char *path = h->node[i].path;
        if (i > 0 && strcmp(before, path) == 0)
            rc = cm_fail(err, CM_EINVAL, "there are two nodes %s", path[0] ? path : "/");
        for (const char *p = path; rc == CM_OK && (p = strchr(p, '/')) != NULL; p++) {
            size_t nbytes = (size_t)(p - path);
            if (strncmp(before, path, nbytes + 1) == 0)
                continue;
            char *parent = cm_asprintf(err, "%.*s", (int)nbytes, path);
            rc = parent != NULL ? require_group(h, n, parent, path, &group, err) : CM_ENOMEM;
            free(parent);
        }
        before = path;
    }
    cm_json_free(group.attrs);
    sort(h);
    return rc;
}

/* ---- consolidating ---- */

static size_t depth_of(const char *path)
{
    size_t depth = path[0] != '\0';
    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

static int compare_text(const char *a, size_t na, const char *b, size_t nb)
{
    const size_t least = na < nb ? na : nb;
    int order = strncasecmp(a, b, least);
    if (order == 0)
        order = (na > nb) - (na < nb);
    return order ? order : strncmp(a, b, least);
}

int cm_zarr_compare_entries(const char *a, const char *b)
{
    const size_t da = depth_of(a), db = depth_of(b);
    const char *end_a = strrchr(a, '/'), *end_b = strrchr(b, '/');
    if (da != db)
        return da < db ? -1 : 1;
    if (end_a != NULL && end_b != NULL) {
        int order = compare_text(a, (size_t)(end_a - a), b, (size_t)(end_b - b));
        if (order)
            return order;
    }
    return compare_text(a, strlen(a), b, strlen(b));
}

static int compare_depths(const void *a, const void *b)
{
    const node *x = *(const node *const *)a, *y = *(const node *const *)b;
    return cm_zarr_compare_entries(x->path, y->path);
}

cm_json *cm_zarr_inline_metadata(cm_json *nodes)
{
    int rc = CM_OK;
    cm_json *j = cm_json_object();
    cm_zarr_set(&rc, j, "kind", cm_json_string("inline"), NULL);
    cm_zarr_set(&rc, j, "must_understand", cm_json_bool(false), NULL);
    cm_zarr_set(&rc, j, "metadata", nodes, NULL);
    if (rc != CM_OK) {
        cm_json_free(j);
        return NULL;
    }
    return j;
}

/* The nodes below GROUP, as in its consolidated metadata. */
static int nodes_below(const hierarchy *h, const node *group, cm_json **out, cm_error *err)
{
    size_t skip = strlen(group->path) + (group->path[0] != '\0');
    const node **below = cm_calloc(h->n, sizeof *below, err);
    if (below == NULL)
        return CM_ENOMEM;
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        const char *path = h->node[i].path;
        bool is_below = skip == 0
                            ? path[0] != '\0'
                            : strncmp(path, group->path, skip - 1) == 0 && path[skip - 1] == '/';
        if (is_below)
            below[n++] = &h->node[i];
    }
    qsort(below, n, sizeof *below, compare_depths);
    cm_json *nodes = cm_json_object();
    int rc = CM_OK;
    for (size_t i = 0; i < n; i++) {
        cm_json *doc = cm_json_copy(below[i]->doc);
        if (below[i]->is_group)
            cm_zarr_set(&rc, doc, "consolidated_metadata",
                        cm_zarr_inline_metadata(cm_json_object()), err);
        cm_zarr_set(&rc, nodes, below[i]->path + skip, doc, err);
    }
    free(below);
    if (rc != CM_OK) {
        cm_json_free(nodes);
        return rc;
    }
    *out = nodes;
    return CM_OK;
}

/* A group without nodes below has nothing to consolidate; the root always has the member. */
static int consolidate_v3(hierarchy *h, cm_error *err)
{
    cm_json **all = cm_calloc(h->n, sizeof *all, err);
    if (all == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    /*
     * Collected before any is set, so that a nested group's own metadata are not copied into
     * others.
     */
    for (size_t i = 0; i < h->n && rc == CM_OK; i++)
        if (h->node[i].is_group)
            rc = nodes_below(h, &h->node[i], &all[i], err);
    for (size_t i = 0; i < h->n; i++) {
        bool wanted = all[i] != NULL && (cm_json_length(all[i]) > 0 || h->node[i].path[0] == '\0');
        if (wanted)
            cm_zarr_set(&rc, h->node[i].doc, "consolidated_metadata",
                        cm_zarr_inline_metadata(all[i]), err);
        else
            cm_json_free(all[i]);
    }
    free(all);
    return rc;
}

static int consolidate_v2(const hierarchy *h, cm_json **out, cm_error *err)
{
    int rc = CM_OK;
    cm_json *nodes = cm_json_object();
    for (size_t i = 0; i < h->n && rc == CM_OK; i++) {
        const node *x = &h->node[i];
        const char *slash = x->path[0] ? "/" : "";
        char *doc = cm_asprintf(err, "%s%s%s", x->path, slash, x->is_group ? ".zgroup" : ".zarray");
        char *attrs = cm_asprintf(err, "%s%s.zattrs", x->path, slash);
        rc = doc != NULL && attrs != NULL ? CM_OK : CM_ENOMEM;
        if (rc == CM_OK && x->attrs != NULL)
            rc = cm_json_set(nodes, attrs, cm_json_copy(x->attrs), err);
        if (rc == CM_OK)
            rc = cm_json_set(nodes, doc, cm_json_copy(x->doc), err);
        free(doc);
        free(attrs);
    }
    cm_json *j = cm_json_object();
    cm_zarr_set(&rc, j, "metadata", nodes, err);
    cm_zarr_set(&rc, j, "zarr_consolidated_format", cm_json_u64(1), err);
    if (rc != CM_OK) {
        cm_json_free(j);
        return rc;
    }
    *out = j;
    return CM_OK;
}

/* ---- writing ---- */

static int put_json(cm_store *store, const char *path, const char *name, const cm_json *j,
                    cm_error *err)
{
    cm_buf text = {0};
    char *key = cm_asprintf(err, "%s%s%s", path, path[0] ? "/" : "", name);
    int rc = key != NULL ? cm_json_write(j, true, &text, err) : CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_store_put(store, key, text.data, text.nbytes, err);
    cm_buf_release(&text);
    free(key);
    return rc;
}

static int write_node(const hierarchy *h, const node *x, const cm_json *zmetadata, cm_error *err)
{
    if (h->format == 3)
        return put_json(h->store, x->path, "zarr.json", x->doc, err);
    /* The document that makes it a node comes last. */
    int rc = x->attrs != NULL ? put_json(h->store, x->path, ".zattrs", x->attrs, err) : CM_OK;
    if (rc == CM_OK && x->path[0] == '\0' && zmetadata != NULL)
        rc = put_json(h->store, x->path, ".zmetadata", zmetadata, err);
    return rc != CM_OK
               ? rc
               : put_json(h->store, x->path, x->is_group ? ".zgroup" : ".zarray", x->doc, err);
}

static int compare_writing(const void *a, const void *b)
{
    const node *x = *(const node *const *)a, *y = *(const node *const *)b;
    if (x->is_group != y->is_group)
        return x->is_group ? 1 : -1;
    return compare_depths(b, a); /* the deepest first */
}

static int write_all(const hierarchy *h, const cm_json *zmetadata, cm_error *err)
{
    const node **order = cm_calloc(h->n, sizeof *order, err);
    if (order == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < h->n; i++)
        order[i] = &h->node[i];
    qsort(order, h->n, sizeof *order, compare_writing);
    int rc = CM_OK;
    for (size_t i = 0; i < h->n && rc == CM_OK; i++)
        rc = write_node(h, order[i], zmetadata, err);
    free(order);
    return rc;
}

int cm_zarr_hierarchy_write(cm_store *store, int zarr_format, const cm_zarr_entry *entry, size_t n,
                            bool consolidated, cm_error *err)
{
    if (zarr_format != 2 && zarr_format != 3)
        return cm_fail(err, CM_EINVAL, "Zarr format %d does not exist; it must be 2 or 3",
                       zarr_format);
    hierarchy h = {.store = store, .format = zarr_format};
    cm_json *zmetadata = NULL;
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        rc = check_path(entry[i].path, err);
        if (rc == CM_OK)
            rc = add_node(&h, entry[i].path, strlen(entry[i].path), entry[i].meta, err);
    }
    sort(&h);
    if (rc == CM_OK)
        rc = add_missing_groups(&h, err);
    if (rc == CM_OK && consolidated && h.node[0].is_group)
        rc = zarr_format == 3 ? consolidate_v3(&h, err) : consolidate_v2(&h, &zmetadata, err);
    if (rc == CM_OK)
        rc = write_all(&h, zmetadata, err);
    cm_json_free(zmetadata);
    release(&h);
    return rc;
}
