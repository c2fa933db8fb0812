/*
 * A target inside a store: "STORE::group/array" is that folder of the store.
 *
 * The folder is made like any other target.  What is special lies above it:
 * groups that are missing there, and consolidated metadata, which would hide
 * what is new and show what was taken away.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "convert/sink/store/into.h"
#include "format/zarr/writer.h"
#include "options/store_path.h"
#include "store/open.h"

/* ---- objects of metadata ---- */

/* NODE's object NAME; *out is NULL when it is not there. */
static int get_json(cm_store *store, const char *node, const char *name, cm_json **out,
                    cm_error *err)
{
    cm_buf text = {0};
    *out = NULL;
    char *key = cm_asprintf(err, "%s%s%s", node, *node != '\0' ? "/" : "", name);
    int rc = key == NULL ? CM_ENOMEM : cm_store_size(store, key, NULL, NULL);
    if (rc == CM_OK)
        rc = cm_store_get(store, key, CM_ZARR_MAX_META_NBYTES, &text, err);
    if (rc == CM_OK && (rc = cm_json_parse(text.data, text.nbytes, out, err)) != CM_OK)
        cm_error_prefix(err, "%s", key);
    cm_buf_release(&text);
    free(key);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

static int put_json(cm_store *store, const char *node, const char *name, const cm_json *j,
                    cm_error *err)
{
    cm_buf text = {0};
    char *key = cm_asprintf(err, "%s%s%s", node, *node != '\0' ? "/" : "", name);
    int rc = key == NULL ? CM_ENOMEM : cm_json_write(j, true, &text, err);
    if (rc == CM_OK)
        rc = cm_store_put(store, key, text.data, text.nbytes, err);
    cm_buf_release(&text);
    free(key);
    return rc;
}

/* 0: nothing is there; else the Zarr format of the group NODE. */
static int group_format(cm_store *store, const char *node, int *format, cm_error *err)
{
    cm_json *j;
    *format = 0;
    const char *shown = *node != '\0' ? node : "the root";
    int rc = get_json(store, node, "zarr.json", &j, err);
    if (rc == CM_OK && j != NULL) {
        const char *type = cm_json_text(cm_json_member(j, "node_type"), NULL);
        *format = 3;
        if (type == NULL || strcmp(type, "group") != 0)
            rc = cm_fail(err, CM_EINVAL, "%s is not a group", shown);
        cm_json_free(j);
        return rc;
    }
    if (rc == CM_OK)
        rc = get_json(store, node, ".zarray", &j, err);
    if (rc == CM_OK && j != NULL)
        rc = cm_fail(err, CM_EINVAL, "%s is not a group", shown);
    cm_json_free(j);
    if (rc == CM_OK)
        rc = get_json(store, node, ".zgroup", &j, err);
    if (rc == CM_OK && j != NULL)
        *format = 2;
    if (rc == CM_OK)
        cm_json_free(j);
    return rc;
}

/* ---- the nodes above ---- */

typedef int above_visit(cm_into *into, const char *above, cm_error *err);

/* The groups above the target, the deepest first, the root last. */
static int visit_above(cm_into *into, above_visit *visit, cm_error *err)
{
    char *above = cm_strdup(into->node, err);
    int rc = above == NULL ? CM_ENOMEM : CM_OK;
    while (rc == CM_OK && *above != '\0') {
        char *slash = strrchr(above, '/');
        *(slash != NULL ? slash : above) = '\0';
        rc = visit(into, above, err);
    }
    free(above);
    return rc;
}

static int check_above(cm_into *into, const char *above, cm_error *err)
{
    int format;
    int rc = group_format(into->store, above, &format, err);
    if (rc != CM_OK || format == 0)
        return rc;
    if (into->zarr_format != 0 && into->zarr_format != format)
        return cm_fail(err, CM_EINVAL, "mixes Zarr format 2 and 3");
    into->zarr_format = format;
    return CM_OK;
}

static int make_group(cm_into *into, const char *above, cm_error *err)
{
    int there;
    int rc = group_format(into->store, above, &there, err);
    if (rc != CM_OK || there != 0)
        return rc;
    cm_json *j = cm_json_object();
    rc = cm_json_set(j, "zarr_format", cm_json_i64(into->zarr_format), err);
    if (rc == CM_OK && into->zarr_format == 3)
        rc = cm_json_set(j, "node_type", cm_json_string("group"), err);
    if (rc == CM_OK && into->zarr_format == 3)
        rc = cm_json_set(j, "attributes", cm_json_object(), err);
    if (rc == CM_OK)
        rc = put_json(into->store, above, into->zarr_format == 3 ? "zarr.json" : ".zgroup", j, err);
    cm_json_free(j);
    return rc;
}

/* Others may be writing into the same groups: only what the killed process left there goes. */
static cm_verdict judge_left(void *context, const char *below, cm_entry_kind kind)
{
    const cm_into *into = context;
    char own[64];
    snprintf(own, sizeof(own), ".chunkmill-%" PRId64 "-", into->killed);
    bool left = kind == CM_ENTRY_TEMPORARY && strncmp(below, own, strlen(own)) == 0;
    return left ? CM_REMOVE : CM_KEEP;
}

static int sweep_left(cm_into *into, const char *above, cm_error *err)
{
    return into->killed == 0 ? CM_OK : cm_store_sweep(into->store, above, judge_left, into, err);
}

/* ---- consolidated metadata ---- */

/* The entries of FROM that are not REST or below it. */
static int entries_but(const cm_json *from, const char *rest, cm_json **out, cm_error *err)
{
    size_t n = strlen(rest);
    cm_json *kept = cm_json_object();
    int rc = kept == NULL ? cm_fail(err, CM_ENOMEM, "no memory for metadata") : CM_OK;
    cm_json_iter it = cm_json_begin(from);
    while (rc == CM_OK && cm_json_next(&it)) {
        if (strncmp(it.name, rest, n) == 0 && (it.name[n] == '\0' || it.name[n] == '/'))
            continue;
        rc = it.value == NULL ? cm_json_set_null(kept, it.name, err)
                              : cm_json_set(kept, it.name, cm_json_copy(it.value), err);
    }
    if (rc == CM_OK)
        *out = kept;
    else
        cm_json_free(kept);
    return rc;
}

static int compare_entries(const void *a, const void *b)
{
    return cm_zarr_compare_entries(((const cm_json_iter *)a)->name,
                                   ((const cm_json_iter *)b)->name);
}

/* *ENTRIES in the order that readers expect. */
static int sort_entries(cm_json **entries, cm_error *err)
{
    size_t n = 0, room = cm_json_length(*entries);
    cm_json_iter *list = cm_calloc(room + 1, sizeof *list, err);
    cm_json *sorted = cm_json_object();
    int rc =
        list != NULL && sorted != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory for metadata");
    for (cm_json_iter it = cm_json_begin(*entries); rc == CM_OK && cm_json_next(&it);)
        list[n++] = it;
    if (rc == CM_OK)
        qsort(list, n, sizeof *list, compare_entries);
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        rc = list[i].value == NULL
                 ? cm_json_set_null(sorted, list[i].name, err)
                 : cm_json_set(sorted, list[i].name, cm_json_copy(list[i].value), err);
    free(list);
    if (rc != CM_OK) {
        cm_json_free(sorted);
        return rc;
    }
    cm_json_free(*entries);
    *entries = sorted;
    return CM_OK;
}

static int set_inline(cm_json *group, cm_json *metadata, cm_error *err)
{
    return cm_json_set(group, "consolidated_metadata", cm_zarr_inline_metadata(metadata), err);
}

/* Adds what PATH's objects say, by the name that it has below a group whose path has SKIP bytes. */
static int add_entry(cm_into *into, const char *path, size_t skip, cm_json *entries, cm_error *err)
{
    static const char *const names[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs"};
    bool v3 = into->zarr_format == 3;
    int rc = CM_OK;
    for (size_t i = v3 ? 0 : 1; rc == CM_OK && i < (v3 ? 1 : 4); i++) {
        cm_json *j;
        if ((rc = get_json(into->store, path, names[i], &j, err)) != CM_OK || j == NULL)
            continue;
        const char *type = cm_json_text(cm_json_member(j, "node_type"), NULL);
        if (v3 && type != NULL && strcmp(type, "group") == 0)
            rc = set_inline(j, cm_json_object(), err);
        char *key =
            v3 ? cm_strdup(path + skip, err) : cm_asprintf(err, "%s/%s", path + skip, names[i]);
        if (rc == CM_OK && key != NULL)
            rc = cm_json_set(entries, key, j, err);
        else
            cm_json_free(j);
        rc = key == NULL ? CM_ENOMEM : rc;
        free(key);
    }
    return rc;
}

/* Adds the groups on the way from ABOVE to the target, and the target's nodes. */
static int add_entries(cm_into *into, const char *above, cm_json *entries, cm_error *err)
{
    size_t skip = strlen(above) + (*above != '\0');
    char *path = cm_strdup(into->node, err);
    int rc = path == NULL ? CM_ENOMEM : CM_OK;
    for (char *p = path == NULL ? NULL : path + skip; rc == CM_OK && (p = strchr(p, '/')); p++) {
        *p = '\0';
        rc = add_entry(into, path, skip, entries, err);
        *p = '/';
    }
    free(path);
    for (size_t i = 0; rc == CM_OK && i < into->tree.nnodes; i++) {
        const char *below = into->tree.node[i].path;
        path = cm_asprintf(err, "%s%s%s", into->node, *below != '\0' ? "/" : "", below);
        rc = path == NULL ? CM_ENOMEM : add_entry(into, path, skip, entries, err);
        free(path);
    }
    return rc;
}

/*
 * ABOVE's consolidated metadata, if it has any or is to have some, without the target's old
 * nodes and with its new ones.
 */
static int consolidate(cm_into *into, const char *above, cm_error *err)
{
    bool v3 = into->zarr_format == 3, wanted = into->consolidates && *above == '\0';
    size_t skip = strlen(above) + (*above != '\0');
    const char *name = v3 ? "zarr.json" : ".zmetadata";
    cm_json *doc, *entries = NULL;
    int rc = get_json(into->store, above, name, &doc, err);
    if (rc != CM_OK)
        return rc;
    const cm_json *old = v3 ? cm_json_member(doc, "consolidated_metadata") : doc;
    if (old == NULL && !wanted) {
        cm_json_free(doc);
        return CM_OK;
    }
    rc = entries_but(cm_json_member(old, "metadata"), into->node + skip, &entries, err);
    /* A root that is made for the target has an entry of its own in version 2. */
    if (rc == CM_OK && !v3 && old == NULL) {
        doc = cm_json_object();
        rc = cm_json_set(doc, "zarr_consolidated_format", cm_json_u64(1), err);
        cm_json *root = cm_json_object();
        if (rc == CM_OK)
            rc = cm_json_set(root, "zarr_format", cm_json_u64(2), err);
        if (rc == CM_OK)
            rc = cm_json_set(entries, ".zgroup", root, err);
    }
    if (rc == CM_OK)
        rc = add_entries(into, above, entries, err);
    if (rc == CM_OK)
        rc = sort_entries(&entries, err);
    if (rc == CM_OK) {
        rc = v3 ? set_inline(doc, entries, err) : cm_json_set(doc, "metadata", entries, err);
        entries = NULL;
    }
    if (rc == CM_OK)
        rc = put_json(into->store, above, name, doc, err);
    cm_json_free(entries);
    cm_json_free(doc);
    return rc;
}

/* ---- steps ---- */

static int check_names(const char *target, const char *node, cm_error *err)
{
    for (const char *p = node; *p != '\0';) {
        size_t length = strcspn(p, "/");
        char *name = cm_asprintf(err, "%.*s", (int)length, p);
        int rc = name == NULL ? CM_ENOMEM : cm_zarr_name_check(name, NULL, err);
        free(name);
        if (rc != CM_OK)
            return rc == CM_ENOMEM ? rc : cm_fail(err, CM_EINVAL, "%s: names no node", target);
        p += length + (p[length] == '/');
    }
    return CM_OK;
}

static int set_paths(const char *target, cm_into *into, cm_error *err)
{
    cm_store_path path;
    int rc = cm_store_path_split(target, &path, err);
    if (rc != CM_OK) {
        cm_store_path_release(&path);
        return rc;
    }
    into->root = path.path;
    into->node = path.node;
    into->folder =
        cm_asprintf(err, "%s%s%s", into->root, *into->node != '\0' ? "/" : "", into->node);
    return into->folder == NULL ? CM_ENOMEM : check_names(target, into->node, err);
}

/* The longest part of the folder that is there. */
static int find_length_there(cm_into *into, cm_error *err)
{
    struct stat st;
    char *path = cm_strdup(into->folder, err);
    bool there = false;
    int rc = path == NULL ? CM_ENOMEM : CM_OK;
    while (rc == CM_OK && *path != '\0') {
        rc = cm_path_stat(path, &st, &there, err);
        if (rc != CM_OK || there)
            break;
        char *slash = strrchr(path, '/');
        *(slash != NULL ? slash : path) = '\0';
    }
    into->nthere = rc == CM_OK ? strlen(path) : 0;
    free(path);
    return rc;
}

int cm_into_find(const char *target, cm_net *net, cm_into *into, cm_error *err)
{
    const cm_store_options options = {.output = true, .net = net};
    cm_place there;
    *into = (cm_into){0};
    int rc = set_paths(target, into, err);
    if (rc != CM_OK || *into->node == '\0')
        return rc;
    if (cm_store_url_is_remote(into->folder)) {
        rc = cm_store_probe(into->folder, &options, &there, err);
        into->nthere = rc == CM_OK && there != CM_PLACE_NOTHING ? strlen(into->folder) : 0;
    } else {
        rc = find_length_there(into, err);
    }
    if (rc != CM_OK)
        return rc;
    rc = cm_store_probe(into->root, &options, &there, err);
    if (rc != CM_OK || there == CM_PLACE_NOTHING)
        return rc;
    rc = cm_output_check_above(into->root, into->node, net, err);
    if (rc == CM_OK)
        rc = cm_store_open(into->root, &options, &into->store, err);
    if (rc != CM_OK)
        return rc;
    rc = visit_above(into, check_above, err);
    int root = 0;
    if (rc == CM_OK)
        rc = group_format(into->store, "", &root, err);
    /* Metadata come last: a store that was being made for this target has none yet. */
    bool begun = false;
    if (rc == CM_OK && root == 0)
        rc = cm_output_is_begun(into->root, into->node, net, &begun, err);
    if (rc == CM_OK && root == 0 && begun) {
        cm_store_free(into->store);
        into->store = NULL;
        return CM_OK;
    }
    if (rc == CM_OK && root == 0)
        rc = cm_fail(err, CM_EEXIST, "exists and is not a Zarr store");
    if (rc != CM_OK)
        cm_error_place(err, into->root);
    return rc;
}

int cm_into_begin(cm_into *into, int64_t killed, cm_error *err)
{
    bool replaces = into->store != NULL && strlen(into->folder) == into->nthere;
    into->killed = killed;
    int rc = into->store != NULL ? visit_above(into, sweep_left, err) : CM_OK;
    return rc == CM_OK && replaces ? visit_above(into, consolidate, err) : rc;
}

int cm_into_finish(cm_into *into, const cm_job *job, cm_store *target, cm_error *err)
{
    if (into->node == NULL || *into->node == '\0')
        return CM_OK;
    const cm_store_options options = {.output = true, .net = job->options->net};
    int rc = CM_OK;
    if (into->store == NULL) {
        into->consolidates = job->source->consolidated;
        rc = cm_store_open(into->root, &options, &into->store, err);
    }
    into->zarr_format = job->zarr_format;
    if (rc == CM_OK)
        rc = visit_above(into, sweep_left, err);
    if (rc == CM_OK)
        rc = visit_above(into, make_group, err);
    if (rc == CM_OK)
        rc = cm_zarr_open(target, &into->tree, err);
    if (rc == CM_OK)
        rc = visit_above(into, consolidate, err);
    if (rc == CM_OK && job->options->durable)
        rc = cm_store_sync(into->store, err);
    return rc;
}

void cm_into_discard(cm_into *into)
{
    if (into->folder == NULL || *into->node == '\0' || cm_store_url_is_remote(into->folder))
        return;
    for (char *slash; (slash = strrchr(into->folder, '/')) != NULL;) {
        *slash = '\0';
        if (strlen(into->folder) <= into->nthere || rmdir(into->folder) != 0)
            break;
    }
}

void cm_into_release(cm_into *into)
{
    cm_zarr_tree_release(&into->tree);
    cm_store_free(into->store);
    free(into->root);
    free(into->node);
    free(into->folder);
    *into = (cm_into){0};
}
