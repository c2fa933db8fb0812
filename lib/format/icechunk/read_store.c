#include "format/icechunk/read_store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "format/icechunk/file_read.h"
#include "format/icechunk/key.h"
#include "format/icechunk/repo_write.h"
#include "model/box.h"
#include "store/impl.h"

typedef struct ref {
    uint64_t offset, nbytes;
    uint8_t id[CM_ICE_ID];
    enum {
        IN_FILE,
        INLINE,
        OUTSIDE
    } where;
    size_t coords; /* where its indices lie in the node's */
} ref;

typedef struct node {
    char *path; /* "" for the root */
    const cm_fb_table *table;
    unsigned rank;
    bool loaded;
    ref *ref;
    size_t n, capacity;
    cm_buf coords, small;
} node;

typedef struct ice_store {
    cm_store base;
    cm_store_ops ops;
    cm_store *root;
    cm_ice_read snapshot;
    node *node;
    size_t nnodes;
    pthread_mutex_t lock; /* of what manifests say */
} ice_store;

static ice_store *of(const cm_store *store)
{
    return (ice_store *)(uintptr_t)store;
}

/* ---- manifests ---- */

static int add_ref(node *d, const cm_fb_table *t, const char *key, cm_error *err)
{
    const cm_fb_value *v = t->value;
    ref r = {.offset = cm_fb_u64(t, CM_ICE_CHUNK_OFFSET),
             .nbytes = cm_fb_u64(t, CM_ICE_CHUNK_LENGTH)};
    if (v[CM_ICE_CHUNK_INDEX].n != d->rank)
        return cm_fail(err, CM_EFORMAT, "%s: a chunk of %s has %zu indices, and not %u", key,
                       d->path, v[CM_ICE_CHUNK_INDEX].n, d->rank);
    r.coords = d->coords.nbytes;
    int rc = cm_buf_append(&d->coords, v[CM_ICE_CHUNK_INDEX].bytes, 4 * (size_t)d->rank, err);
    r.where = v[CM_ICE_CHUNK_INLINE].there ? INLINE : v[CM_ICE_CHUNK_ID].there ? IN_FILE : OUTSIDE;
    if (r.where == INLINE) {
        r.offset = d->small.nbytes;
        r.nbytes = v[CM_ICE_CHUNK_INLINE].n;
        if (rc == CM_OK)
            rc = cm_buf_append(&d->small, v[CM_ICE_CHUNK_INLINE].bytes, v[CM_ICE_CHUNK_INLINE].n,
                               err);
    } else if (r.where == IN_FILE) {
        memcpy(r.id, v[CM_ICE_CHUNK_ID].bytes, CM_ICE_ID);
    }
    if (r.offset + r.nbytes < r.offset)
        return cm_fail(err, CM_EFORMAT, "%s: a chunk of %s ends behind every file", key, d->path);
    ref *room = cm_make_room(d->ref, d->n, &d->capacity, sizeof(*room), 16);
    if (room == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for chunks of %s", d->path);
    d->ref = room;
    d->ref[d->n++] = r;
    return rc;
}

static int load_manifest(ice_store *s, node *d, const uint8_t *id, cm_error *err)
{
    char key[CM_ICE_KEY_SIZE];
    cm_ice_read m;
    cm_ice_key("manifests", id, key);
    int rc = cm_ice_file_read(s->root, key, CM_ICE_MANIFEST_FILE, &cm_ice_manifest_file, &m, err);
    if (rc == CM_ENOTFOUND)
        return cm_fail(err, CM_EFORMAT, "%s: is missing, and the snapshot needs it", key);
    if (rc != CM_OK)
        return rc;
    const cm_fb_value *arrays = &m.tree.root->value[CM_ICE_MANIFEST_ARRAYS];
    for (size_t i = 0; rc == CM_OK && i < arrays->n; i++) {
        const cm_fb_table *a = arrays->item[i];
        if (memcmp(a->value[CM_ICE_REFS_NODE].bytes, d->table->value[CM_ICE_NODE_NODE_ID].bytes,
                   CM_ICE_NODE_ID) != 0)
            continue;
        for (size_t k = 0; rc == CM_OK && k < a->value[CM_ICE_REFS_LIST].n; k++)
            rc = add_ref(d, a->value[CM_ICE_REFS_LIST].item[k], key, err);
    }
    cm_ice_read_release(&m);
    return rc;
}

static int compare_index(const node *d, const ref *r, const uint32_t *index)
{
    for (unsigned j = 0; j < d->rank; j++) {
        uint32_t have = cm_load_le32(d->coords.data + r->coords + 4 * (size_t)j);
        if (have != index[j])
            return have < index[j] ? -1 : 1;
    }
    return 0;
}

static int by_index(const void *a, const void *b, void *context)
{
    const node *d = context;
    const ref *second = b;
    uint32_t index[CM_MAX_RANK];
    for (unsigned j = 0; j < d->rank; j++)
        index[j] = cm_load_le32(d->coords.data + second->coords + 4 * (size_t)j);
    return compare_index(d, a, index);
}

static int load(ice_store *s, node *d, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&s->lock);
    if (!d->loaded && cm_fb_u64(d->table, CM_ICE_NODE_TYPE) == CM_ICE_IS_ARRAY) {
        const cm_fb_table *array = d->table->value[CM_ICE_NODE_DATA].item[0];
        const cm_fb_value *list = &array->value[CM_ICE_ARRAY_MANIFESTS];
        d->n = d->coords.nbytes = d->small.nbytes = 0;
        for (size_t i = 0; rc == CM_OK && i < list->n; i++)
            rc = load_manifest(s, d, list->item[i]->value[CM_ICE_MANIFEST_REF_ID].bytes, err);
        if (rc == CM_OK && d->n > 1)
            qsort_r(d->ref, d->n, sizeof(d->ref[0]), by_index, d);
    }
    d->loaded = d->loaded || rc == CM_OK;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* ---- keys ---- */

static node *find_node(const ice_store *s, const char *path, size_t nbytes)
{
    for (size_t lo = 0, hi = s->nnodes; lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        int c = cm_key_order(s->node[mid].path, path, nbytes);
        if (c == 0)
            return &s->node[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static bool parse_index(const node *d, const char *text, uint32_t *index)
{
    for (unsigned j = 0; j < d->rank; j++) {
        uint64_t at = 0;
        if (*text != '/' || text[1] < '0' || text[1] > '9' ||
            (text[1] == '0' && text[2] >= '0' && text[2] <= '9'))
            return false;
        for (text++; *text >= '0' && *text <= '9'; text++)
            if ((at = 10 * at + (uint64_t)(*text - '0')) > UINT32_MAX)
                return false;
        index[j] = (uint32_t)at;
    }
    return *text == '\0';
}

static const ref *find_ref(const node *d, const uint32_t *index)
{
    for (size_t lo = 0, hi = d->n; lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare_index(d, &d->ref[mid], index);
        if (c == 0)
            return &d->ref[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* *REF NULL: the document of *NODE. */
static int find(ice_store *s, const char *key, node **out, const ref **r, cm_error *err)
{
    const char *last = strrchr(key, '/');
    const size_t folder = last != NULL ? (size_t)(last - key) : 0;
    *r = NULL;
    if (strcmp(last != NULL ? last + 1 : key, "zarr.json") == 0 &&
        (*out = find_node(s, key, folder)) != NULL)
        return CM_OK;
    for (const char *c = key; (c = strchr(c, 'c')) != NULL; c++) {
        uint32_t index[CM_MAX_RANK];
        if ((c > key && c[-1] != '/') || (c[1] != '/' && c[1] != '\0'))
            continue;
        node *d = find_node(s, key, c > key ? (size_t)(c - key) - 1 : 0);
        if (d == NULL || cm_fb_u64(d->table, CM_ICE_NODE_TYPE) != CM_ICE_IS_ARRAY ||
            !parse_index(d, c + 1, index))
            continue;
        int rc = load(s, d, err);
        if (rc != CM_OK)
            return rc;
        *out = d;
        if ((*r = find_ref(d, index)) != NULL)
            return CM_OK;
    }
    return cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
}

static int stat_key(cm_store *store, const char *key, cm_object_stat *out, cm_error *err)
{
    node *d;
    const ref *r;
    int rc = find(of(store), key, &d, &r, err);
    if (rc == CM_OK)
        out->nbytes = r != NULL ? r->nbytes : d->table->value[CM_ICE_NODE_DOCUMENT].n;
    return rc;
}

static int list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err)
{
    ice_store *s = of(store);
    const size_t n = strlen(prefix), skip = n + (n > 0);
    cm_name_list names = {0};
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->nnodes; i++) {
        node *d = &s->node[i];
        const size_t own = strlen(d->path);
        const bool below = n == 0 || (strncmp(d->path, prefix, n) == 0 &&
                                      (d->path[n] == '/' || d->path[n] == '\0'));
        const bool above = own == 0 || (strncmp(prefix, d->path, own) == 0 &&
                                        (prefix[own] == '/' || prefix[own] == '\0'));
        if (below && own > n)
            rc = cm_name_list_add(&names, d->path + skip, strcspn(d->path + skip, "/"), true, err);
        else if (own == n && below)
            rc = cm_name_list_add(&names, "zarr.json", 9, false, err);
        if (rc != CM_OK || !above || cm_fb_u64(d->table, CM_ICE_NODE_TYPE) != CM_ICE_IS_ARRAY)
            continue;
        rc = load(s, d, err);
        for (size_t k = 0; rc == CM_OK && k < d->n; k++) {
            char key[16 + 12 * CM_MAX_RANK] = "c";
            const char *rest = prefix + own + (own > 0 && own < n);
            size_t len = 1, more = strlen(rest);
            for (unsigned j = 0; j < d->rank; j++)
                len += (size_t)snprintf(
                    key + len, sizeof(key) - len, "/%" PRIu32,
                    cm_load_le32(d->coords.data + d->ref[k].coords + 4 * (size_t)j));
            if (more == 0 || (strncmp(key, rest, more) == 0 && key[more] == '/'))
                rc = cm_name_list_add_path(&names, key + more + (more > 0), err);
        }
    }
    return cm_name_list_finish(&names, prefix, rc, visit, context, err);
}

/* ---- bytes ---- */

typedef struct reader {
    cm_object_reader base;
    const uint8_t *data; /* NULL: in FILE */
    uint64_t offset;
    cm_object_reader *file;
} reader;

static void reader_close(cm_object_reader *base)
{
    reader *r = (reader *)base;
    cm_object_close(r->file);
    free(base->key);
    free(r);
}

static int open_chunk(ice_store *s, const node *d, const ref *r, reader *out, cm_error *err)
{
    char name[CM_ICE_KEY_SIZE];
    out->base.nbytes = r->nbytes;
    if (r->where == INLINE) {
        out->data = d->small.data + r->offset;
        return CM_OK;
    }
    if (r->where == OUTSIDE)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: lies in a file outside the repository (a virtual chunk), and those are "
                       "not read",
                       out->base.key);
    out->offset = r->offset;
    cm_ice_key("chunks", r->id, name);
    int rc = cm_object_open(s->root, name, &out->file, err);
    if (rc == CM_ENOTFOUND)
        return cm_fail(err, CM_EFORMAT, "%s: its file %s is missing", out->base.key, name);
    if (rc != CM_OK)
        return rc;
    if (r->offset + r->nbytes > cm_object_nbytes(out->file))
        return cm_fail(err, CM_EFORMAT, "%s: ends behind the end of its file %s", out->base.key,
                       name);
    return CM_OK;
}

static int reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    node *d;
    const ref *found;
    int rc = find(of(store), key, &d, &found, err);
    reader *r = rc == CM_OK ? cm_calloc(1, sizeof(*r), err) : NULL;
    if (r == NULL)
        return rc != CM_OK ? rc : CM_ENOMEM;
    r->base.store = store;
    r->base.key = cm_strdup(key, err);
    if (r->base.key == NULL) {
        rc = CM_ENOMEM;
    } else if (found != NULL) {
        rc = open_chunk(of(store), d, found, r, err);
    } else {
        r->data = d->table->value[CM_ICE_NODE_DOCUMENT].bytes;
        r->base.nbytes = d->table->value[CM_ICE_NODE_DOCUMENT].n;
    }
    if (rc != CM_OK) {
        reader_close(&r->base);
        return rc;
    }
    *out = &r->base;
    return CM_OK;
}

static int reader_read(cm_object_reader *base, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err)
{
    reader *r = (reader *)base;
    if (r->data == NULL)
        return cm_object_read(r->file, r->offset + offset, dst, nbytes, err);
    memcpy(dst, r->data + offset, nbytes); /* the range was checked against nbytes */
    return CM_OK;
}

static void free_store(cm_store *store)
{
    ice_store *s = of(store);
    for (size_t i = 0; i < s->nnodes; i++) {
        free(s->node[i].path);
        free(s->node[i].ref);
        cm_buf_release(&s->node[i].coords);
        cm_buf_release(&s->node[i].small);
    }
    free(s->node);
    cm_ice_read_release(&s->snapshot);
    cm_store_free(s->root);
    pthread_mutex_destroy(&s->lock);
    free(s->base.name);
    free(s);
}

/* ---- which snapshot ---- */

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

static int find_snapshot(ice_store *s, const char *version, char key[CM_ICE_KEY_SIZE],
                         cm_error *err)
{
    uint8_t id[CM_ICE_ID];
    cm_ice_read repo;
    int rc = cm_ice_file_read(s->root, "repo", CM_ICE_REPO_FILE, &cm_ice_repo, &repo, err);
    if (rc == CM_ENOTFOUND)
        return cm_fail(err, CM_ENOTFOUND,
                       "has no file \"repo\": no Icechunk repository of version 2");
    if (rc != CM_OK)
        return rc;
    rc = choose(repo.tree.root, version, id, err);
    if (rc == CM_OK)
        cm_ice_key("snapshots", id, key);
    cm_ice_read_release(&repo);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const node *)a)->path, ((const node *)b)->path);
}

static int take_node(node *d, const cm_fb_table *t, cm_error *err)
{
    const cm_fb_value *path = &t->value[CM_ICE_NODE_PATH];
    const char *text = path->bytes;
    d->table = t;
    if (path->n == 0 || text[0] != '/' || memchr(text, '\0', path->n) != NULL)
        return cm_fail(err, CM_EFORMAT, "the snapshot is damaged (a node's path)");
    if ((d->path = cm_asprintf(err, "%.*s", (int)path->n - 1, text + 1)) == NULL)
        return CM_ENOMEM;
    if (d->path[0] != '\0' && cm_key_check(d->path, err) != CM_OK)
        return CM_EFORMAT;
    if (cm_fb_u64(t, CM_ICE_NODE_TYPE) != CM_ICE_IS_ARRAY)
        return CM_OK;
    const cm_fb_value *shape = t->value[CM_ICE_NODE_DATA].item[0]->value;
    d->rank = (unsigned)(shape[CM_ICE_ARRAY_SHAPE].there ? shape[CM_ICE_ARRAY_SHAPE].n
                                                         : shape[CM_ICE_ARRAY_SHAPE_1].n);
    return d->rank <= CM_MAX_RANK
               ? CM_OK
               : cm_fail(err, CM_EUNSUPPORTED, "array %s: has %u dimensions", d->path, d->rank);
}

static int open_snapshot(ice_store *s, const char *version, cm_error *err)
{
    char key[CM_ICE_KEY_SIZE];
    int rc = find_snapshot(s, version, key, err);
    if (rc == CM_OK)
        rc = cm_ice_file_read(s->root, key, CM_ICE_SNAPSHOT_FILE, &cm_ice_snapshot, &s->snapshot,
                              err);
    if (rc != CM_OK)
        return rc;
    const cm_fb_value *nodes = &s->snapshot.tree.root->value[CM_ICE_SNAPSHOT_NODES];
    if ((s->node = cm_calloc(nodes->n + 1, sizeof(s->node[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < nodes->n; i++)
        rc = take_node(&s->node[s->nnodes++], nodes->item[i], err);
    if (rc == CM_OK)
        qsort(s->node, s->nnodes, sizeof(s->node[0]), by_path);
    return rc;
}

static const cm_store_ops ice_ops = {.read_only = "a snapshot is only read from",
                                     .free = free_store,
                                     .stat = stat_key,
                                     .list = list,
                                     .open = reader_open,
                                     .read = reader_read,
                                     .close = reader_close};

static int open_repository(const char *url, char *root, const char *version,
                           const cm_store_options *options, cm_store **out, cm_error *err)
{
    ice_store *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    pthread_mutex_init(&s->lock, NULL);
    s->ops = ice_ops;
    s->base.ops = &s->ops;
    s->base.name = cm_strdup(url, err);
    int rc = s->base.name == NULL ? CM_ENOMEM : cm_store_open(root, options, &s->root, err);
    if (rc == CM_OK) {
        s->ops.remote = s->root->ops->remote;
        s->ops.request_nbytes = s->root->ops->request_nbytes;
        cm_store_set_memory(&s->base, options != NULL ? options->memory : 0);
        if ((rc = open_snapshot(s, version, err)) != CM_OK)
            cm_error_place(err, root);
    }
    if (rc != CM_OK) {
        free_store(&s->base);
        return rc;
    }
    *out = &s->base;
    return CM_OK;
}

/* True when the folder at PATH, not behind a network, is a repository of version 2. */
static bool is_repository(const char *path)
{
    char magic[CM_ICE_MAGIC_NBYTES];
    size_t got = 0;
    char *name = cm_store_url_is_remote(path) ? NULL : cm_asprintf(NULL, "%s/repo", path);
    const bool is = name != NULL && cm_file_head(name, magic, sizeof(magic), &got) &&
                    got == sizeof(magic) && memcmp(magic, CM_ICE_MAGIC, sizeof(magic)) == 0;
    free(name);
    return is;
}

int cm_ice_store_open(const char *url, const cm_store_options *options, cm_store **out,
                      cm_error *err)
{
    const char *named = cm_icechunk_path(url), *path = named != NULL ? named : url;
    *out = NULL;
    if (named == NULL && !is_repository(path))
        return cm_store_open(url, options, out, err);
    const char *at = named != NULL ? strrchr(path, '@') : NULL;
    const size_t n = at != NULL ? (size_t)(at - path) : strlen(path);
    char *root = cm_asprintf(err, "%.*s", (int)n, path);
    int rc = root == NULL
                 ? CM_ENOMEM
                 : open_repository(url, root, at != NULL ? at + 1 : "main", options, out, err);
    free(root);
    return rc;
}
