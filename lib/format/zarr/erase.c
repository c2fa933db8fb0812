/*
 * Removing a Zarr store, and only that.
 *
 * The folders are walked, not consolidated metadata, which may be out of date.
 * The root stops listing its nodes first and goes last: an erasure that is
 * interrupted leaves no store that opens as if it were whole, and can be taken
 * up again.
 */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"
#include "format/zarr/writer.h"

enum {
    MAX_DEPTH = 128
};

static const char *const METADATA[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static char *join(const char *path, const char *name, cm_error *err)
{
    return cm_asprintf(err, "%s%s%s", path, path[0] ? "/" : "", name);
}

/* ---- what a folder is ---- */

typedef enum folder_kind {
    FOLDER_FOREIGN,
    FOLDER_GROUP,
    FOLDER_ARRAY,
    FOLDER_UNCLEAR /* has metadata that cannot be read: they go, what else is there stays */
} folder_kind;

/* Reads PATH/NAME into META, where it is there. */
static int read_meta(cm_store *store, const char *path, const char *name, int format,
                     cm_zarr_meta *meta, folder_kind *kind, cm_error *err)
{
    char *key = join(path, name, err);
    if (!key)
        return CM_ENOMEM;
    cm_buf buf = {0};
    cm_json *j = NULL;
    int rc = cm_store_get(store, key, CM_ZARR_MAX_META_NBYTES, &buf, err);
    free(key);
    if (rc == CM_ENOTFOUND)
        return CM_OK;
    if (rc == CM_OK) {
        *kind = FOLDER_UNCLEAR;
        rc = cm_json_parse(buf.data, buf.nbytes, &j, NULL);
        if (rc == CM_OK)
            rc = format == 3 ? cm_zarr_meta_from_v3(j, meta, NULL)
                             : cm_zarr_meta_from_v2(j, NULL, meta, NULL);
        if (rc == CM_OK || rc == CM_EUNSUPPORTED)
            *kind = meta->is_group ? FOLDER_GROUP : FOLDER_ARRAY;
        rc = CM_OK;
    }
    cm_json_free(j);
    cm_buf_release(&buf);
    return rc;
}

static int read_folder(cm_store *store, const char *path, cm_zarr_meta *meta, folder_kind *kind,
                       cm_error *err)
{
    static const struct {
        const char *name;
        int format;
    } sign[] = {{"zarr.json", 3}, {".zarray", 2}, {".zgroup", 2}};
    *kind = FOLDER_FOREIGN;
    memset(meta, 0, sizeof *meta);
    int rc = CM_OK;
    for (size_t i = 0; i < COUNT(sign) && rc == CM_OK && *kind == FOLDER_FOREIGN; i++)
        rc = read_meta(store, path, sign[i].name, sign[i].format, meta, kind, err);
    return rc;
}

static int remove_metadata(cm_store *store, const char *path, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < COUNT(METADATA) && rc == CM_OK; i++) {
        char *key = join(path, METADATA[i], err);
        rc = key ? cm_store_delete(store, key, err) : CM_ENOMEM;
        free(key);
    }
    return rc;
}

/* ---- chunks ---- */

typedef struct chunk_walk {
    cm_store *store;
    const cm_zarr_meta *meta;
    const char *path;
    unsigned level; /* names below the array's folder */
} chunk_walk;

/* Whether P begins with a number as chunk keys have it; *end is behind it. */
static bool skip_number(const char *p, const char **end)
{
    size_t n = strspn(p, "0123456789");
    *end = p + n;
    return n > 0 && n <= 20 && (n == 1 || p[0] != '0');
}

/* Whether TEXT is COUNT numbers with '.' between. */
static bool is_dotted(const char *text, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (i > 0 && *text++ != '.')
            return false;
        if (!skip_number(text, &text))
            return false;
    }
    return *text == '\0';
}

/* Whether NAME may be at LEVEL of a chunk key of META, and whether the key goes on below it. */
static bool fits_key(const cm_zarr_meta *meta, unsigned level, const char *name, bool *goes_on)
{
    bool is_default = meta->zarr_format == 3 && !meta->key_v2;
    unsigned rank = meta->rank;
    *goes_on = false;
    if (meta->separator == '.') {
        if (level > 0)
            return false;
        if (!is_default)
            return rank == 0 ? strcmp(name, "0") == 0 : is_dotted(name, rank);
        if (rank == 0)
            return strcmp(name, "c") == 0;
        return strncmp(name, "c.", 2) == 0 && is_dotted(name + 2, rank);
    }
    unsigned nlevels = rank + is_default;
    if (nlevels == 0)
        return level == 0 && strcmp(name, "0") == 0;
    *goes_on = level + 1 < nlevels;
    if (is_default && level == 0)
        return strcmp(name, "c") == 0;
    return is_dotted(name, 1);
}

static int visit_chunk(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const chunk_walk *w = context;
    bool goes_on, is_link = false;
    if (!fits_key(w->meta, w->level, name, &goes_on) || goes_on != is_prefix)
        return CM_OK;
    char *key = join(w->path, name, err);
    if (!key)
        return CM_ENOMEM;
    int rc = is_prefix ? cm_store_is_link(w->store, key, &is_link, err) : CM_OK;
    if (rc == CM_OK && !is_prefix) {
        rc = cm_store_delete(w->store, key, err);
    } else if (rc == CM_OK && !is_link) {
        chunk_walk below = {w->store, w->meta, key, w->level + 1};
        rc = cm_store_list(w->store, key, visit_chunk, &below, err);
    }
    free(key);
    return rc;
}

int cm_zarr_erase_chunks(cm_store *store, const char *path, const cm_zarr_meta *meta, cm_error *err)
{
    chunk_walk chunks = {store, meta, path, 0};
    int rc = cm_store_list(store, path, visit_chunk, &chunks, err);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

/* ---- nodes ---- */

typedef struct node_walk {
    cm_store *store;
    const char *path;
    unsigned depth;
} node_walk;

static int erase_node(cm_store *store, const char *path, unsigned depth, cm_error *err);

static int visit_child(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const node_walk *w = context;
    if (!is_prefix)
        return CM_OK;
    char *path = join(w->path, name, err);
    if (!path)
        return CM_ENOMEM;
    bool is_link;
    int rc = cm_store_is_link(w->store, path, &is_link, err);
    if (rc == CM_OK && !is_link)
        rc = erase_node(w->store, path, w->depth + 1, err);
    free(path);
    return rc;
}

/* Removes the node at PATH, and what is below a group; a folder without metadata is left alone. */
static int erase_node(cm_store *store, const char *path, unsigned depth, cm_error *err)
{
    cm_zarr_meta meta;
    folder_kind kind;
    if (depth > MAX_DEPTH)
        return cm_fail(err, CM_EFORMAT, "%s: groups are nested deeper than %d", path, MAX_DEPTH);
    int rc = read_folder(store, path, &meta, &kind, err);
    if (rc == CM_OK && kind == FOLDER_GROUP) {
        node_walk below = {store, path, depth};
        rc = cm_store_list(store, path, visit_child, &below, err);
    }
    if (rc == CM_OK && kind != FOLDER_FOREIGN)
        rc = remove_metadata(store, path, err);
    if (rc == CM_OK && kind == FOLDER_ARRAY)
        rc = cm_zarr_erase_chunks(store, path, &meta, err);
    cm_zarr_meta_release(&meta);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

/* Makes the root a group that lists nothing, before anything that it lists goes. */
static int hide_nodes(cm_store *store, cm_error *err)
{
    static const char group[] = "{\"zarr_format\": 3, \"node_type\": \"group\"}";
    static const char zgroup[] = "{\"zarr_format\": 2}";
    cm_zarr_meta meta;
    folder_kind kind;
    int rc = read_folder(store, "", &meta, &kind, err);
    if (rc == CM_OK && kind == FOLDER_FOREIGN) {
        if (cm_store_size(store, ".zmetadata", NULL, NULL) != CM_OK)
            rc = cm_fail(err, CM_EFORMAT, "no Zarr store: nothing was removed");
        else
            rc = cm_store_put(store, ".zgroup", zgroup, sizeof zgroup - 1, err);
    }
    if (rc == CM_OK && kind == FOLDER_GROUP && meta.zarr_format == 3)
        rc = cm_store_put(store, "zarr.json", group, sizeof group - 1, err);
    cm_zarr_meta_release(&meta);
    return rc ? rc : cm_store_delete(store, ".zmetadata", err);
}

/* ---- what is left ---- */

typedef struct count_walk {
    cm_store *store;
    const char *path;
    uint64_t *n;
} count_walk;

static int visit_left(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const count_walk *w = context;
    char *path = join(w->path, name, err);
    if (!path)
        return CM_ENOMEM;
    bool is_link = false;
    int rc = is_prefix ? cm_store_is_link(w->store, path, &is_link, err) : CM_OK;
    if (rc == CM_OK && is_prefix && !is_link) {
        count_walk below = {w->store, path, w->n};
        rc = cm_store_list(w->store, path, visit_left, &below, err);
    } else if (rc == CM_OK) {
        ++*w->n;
    }
    free(path);
    return rc;
}

int cm_zarr_erase(cm_store *store, uint64_t *foreign, cm_error *err)
{
    *foreign = 0;
    int rc = hide_nodes(store, err);
    if (rc == CM_OK)
        rc = erase_node(store, "", 0, err);
    if (rc == CM_OK)
        rc = cm_store_prune(store, "", err);
    count_walk left = {store, "", foreign};
    return rc ? rc : cm_store_list(store, "", visit_left, &left, err);
}
