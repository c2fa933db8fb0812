/* The names of a snapshot's objects: "PATH/zarr.json", and "PATH/c/0/1" of the chunks of arrays. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/icechunk/read_impl.h"
#include "format/icechunk/read_store.h"

enum {
    NAME_SIZE = 4 + 11 * CM_MAX_RANK /* "c/0/1" */
};

/* ---- one object ---- */

/*
 * The numbers in TEXT, each behind a '/'; *N is their count, up to RANK.  False: it is something
 * else.
 */
static bool parse_index(const char *text, unsigned rank, uint32_t *index, unsigned *n)
{
    for (*n = 0; *text == '/' && *n < rank; ++*n) {
        uint64_t at = 0;
        if (text[1] < '0' || text[1] > '9' || (text[1] == '0' && text[2] >= '0' && text[2] <= '9'))
            return false;
        for (text++; *text >= '0' && *text <= '9'; text++)
            if ((at = 10 * at + (uint64_t)(*text - '0')) > UINT32_MAX)
                return false;
        index[*n] = (uint32_t)at;
    }
    return *text == '\0';
}

/* With AT_HAND, CM_ECANCELED where a manifest would have to be read. */
static int take_manifest(cm_ice_store *s, const uint8_t *id, bool at_hand,
                         const cm_ice_manifest_view **out, cm_error *err)
{
    if (!at_hand)
        return cm_ice_shelf_take(s->shelf, id, out, err);
    *out = cm_ice_shelf_peek(s->shelf, id);
    return *out != NULL ? CM_OK : cm_fail(err, CM_ECANCELED, "a manifest is not at hand");
}

/* OUT->manifest stays NULL: the array has no such chunk. */
static int find_chunk(cm_ice_store *s, const cm_ice_seen *node, const uint32_t *index, bool at_hand,
                      cm_ice_found *out, cm_error *err)
{
    const cm_ice_part *part;
    for (size_t next = SIZE_MAX; (part = cm_ice_seen_part(node, index, &next)) != NULL;) {
        const cm_ice_manifest_view *m;
        int rc = take_manifest(s, part->id, at_hand, &m, err);
        if (rc != CM_OK)
            return rc;
        const cm_ice_refs refs = cm_ice_manifest_refs(m, node->id);
        if (refs.rank == node->rank && cm_ice_refs_find(&refs, index, &out->chunk)) {
            out->manifest = m;
            return CM_OK;
        }
        cm_ice_shelf_give(s->shelf, m);
    }
    return CM_OK;
}

int cm_ice_find(cm_ice_store *s, const char *key, bool at_hand, cm_ice_found *out, cm_error *err)
{
    const char *last = strrchr(key, '/');
    const cm_ice_seen *node;
    *out = (cm_ice_found){0};
    if (strcmp(last != NULL ? last + 1 : key, "zarr.json") == 0 &&
        (node = cm_ice_view_find(&s->view, key, last != NULL ? (size_t)(last - key) : 0)) != NULL) {
        out->chunk = (cm_ice_chunk){
            .where = CM_ICE_INLINE, .bytes = node->document->bytes, .nbytes = node->document->n};
        return CM_OK;
    }
    for (const char *c = key; (c = strchr(c, 'c')) != NULL; c++) {
        uint32_t index[CM_MAX_RANK];
        unsigned n;
        if ((c > key && c[-1] != '/') || (c[1] != '/' && c[1] != '\0'))
            continue;
        node = cm_ice_view_find(&s->view, key, c > key ? (size_t)(c - key) - 1 : 0);
        if (node == NULL || !node->is_array || !parse_index(c + 1, node->rank, index, &n) ||
            n != node->rank)
            continue;
        int rc = find_chunk(s, node, index, at_hand, out, err);
        if (rc != CM_OK || out->manifest != NULL)
            return rc;
    }
    return cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
}

void cm_ice_found_release(cm_ice_store *s, cm_ice_found *found)
{
    cm_ice_shelf_give(s->shelf, found->manifest);
    found->manifest = NULL;
}

int cm_ice_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err)
{
    cm_ice_found found;
    int rc = cm_ice_find(cm_ice_store_of(store), key, false, &found, err);
    out->nbytes = rc == CM_OK ? found.chunk.nbytes : 0;
    cm_ice_found_release(cm_ice_store_of(store), &found);
    return rc;
}

/* ---- the chunks of one array ---- */

typedef int visit_refs(void *context, const cm_ice_refs *refs, const cm_ice_part *part,
                       cm_error *err);

/* The references of NODE, manifest after manifest; one outside the box of its part is not found. */
static int each_part(cm_ice_store *s, const cm_ice_seen *node, visit_refs *visit, void *context,
                     cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < node->nparts; i++) {
        const cm_ice_manifest_view *m;
        rc = cm_ice_shelf_take(s->shelf, node->part[i].id, &m, err);
        if (rc != CM_OK)
            return rc;
        const cm_ice_refs refs = cm_ice_manifest_refs(m, node->id);
        if (refs.list.n > 0 && refs.rank == node->rank)
            rc = visit(context, &refs, &node->part[i], err);
        cm_ice_shelf_give(s->shelf, m);
    }
    return rc;
}

/* Names below a folder of an array: the next number of all indices that begin alike. */
typedef struct next_names {
    cm_name_list *names;
    uint32_t index[CM_MAX_RANK];
    unsigned n; /* numbers given */
} next_names;

static int add_next(void *context, const cm_ice_refs *refs, const cm_ice_part *part, cm_error *err)
{
    const next_names *next = context;
    uint32_t have[CM_MAX_RANK];
    int rc = CM_OK;
    for (size_t k = cm_ice_refs_bound(refs, next->index, next->n, false);
         rc == CM_OK && k < refs->list.n; k = cm_ice_refs_bound(refs, have, next->n + 1, true)) {
        char name[12];
        cm_ice_refs_index(refs, k, have);
        if (memcmp(have, next->index, next->n * sizeof(have[0])) != 0)
            break;
        if (!cm_ice_part_has(part, have, refs->rank))
            continue;
        const int nbytes = snprintf(name, sizeof(name), "%" PRIu32, have[next->n]);
        rc = cm_name_list_add(next->names, name, (size_t)nbytes, next->n + 1 < refs->rank, err);
    }
    return rc;
}

/* Names in the folder BELOW of the array NODE. */
static int list_chunks(cm_ice_store *s, const cm_ice_seen *node, const char *below,
                       cm_name_list *names, cm_error *err)
{
    next_names next = {.names = names};
    if (*below == '\0')
        return node->nparts > 0 ? cm_name_list_add(names, "c", 1, node->rank > 0, err) : CM_OK;
    if (*below != 'c' || !parse_index(below + 1, node->rank, next.index, &next.n) ||
        next.n >= node->rank)
        return CM_OK;
    return each_part(s, node, add_next, &next, err);
}

/* ---- folders ---- */

/* Where TEXT goes on below the folder PREFIX of N bytes; NULL: it does not lie there. */
static const char *behind(const char *text, const char *prefix, size_t n)
{
    if (n == 0)
        return text;
    return strncmp(text, prefix, n) == 0 && (text[n] == '/' || text[n] == '\0')
               ? text + n + (text[n] == '/')
               : NULL;
}

int cm_ice_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err)
{
    cm_ice_store *s = cm_ice_store_of(store);
    cm_name_list names = {0};
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->view.nnodes; i++) {
        const cm_ice_seen *node = &s->view.node[i];
        const char *name = behind(node->path, prefix, strlen(prefix));
        const char *below = behind(prefix, node->path, strlen(node->path));
        if (name != NULL && *name != '\0')
            rc = cm_name_list_add(&names, name, strcspn(name, "/"), true, err);
        else if (name != NULL)
            rc = cm_name_list_add(&names, "zarr.json", 9, false, err);
        if (rc == CM_OK && below != NULL && node->is_array)
            rc = list_chunks(s, node, below, &names, err);
    }
    return cm_name_list_finish(&names, prefix, rc, visit, context, err);
}

/* ---- all of it ---- */

typedef struct walking {
    const char *prefix;
    const cm_ice_seen *node;
    cm_store_visit_key *visit;
    void *context;
    bool any;
    cm_buf key;
} walking;

/* Visits NAME of the node, if it lies below the prefix. */
static int walk_name(walking *w, const char *name, uint64_t nbytes, cm_error *err)
{
    const char *path = w->node->path;
    w->key.nbytes = 0;
    int rc = cm_buf_printf(&w->key, err, "%s%s%s%c", path, *path != '\0' ? "/" : "", name, '\0');
    const char *below =
        rc == CM_OK ? behind((const char *)w->key.data, w->prefix, strlen(w->prefix)) : NULL;
    if (below == NULL || *below == '\0')
        return rc;
    w->any = true;
    return w->visit(w->context, below, nbytes, err);
}

static int walk_chunks(void *context, const cm_ice_refs *refs, const cm_ice_part *part,
                       cm_error *err)
{
    int rc = CM_OK;
    for (size_t k = 0; rc == CM_OK && k < refs->list.n; k++) {
        uint32_t index[CM_MAX_RANK];
        char name[NAME_SIZE] = "c";
        size_t len = 1;
        cm_ice_refs_index(refs, k, index);
        if (!cm_ice_part_has(part, index, refs->rank))
            continue;
        for (unsigned j = 0; j < refs->rank; j++)
            len += (size_t)snprintf(name + len, sizeof(name) - len, "/%" PRIu32, index[j]);
        rc = walk_name(context, name, cm_ice_refs_at(refs, k).nbytes, err);
    }
    return rc;
}

int cm_ice_walk(cm_store *store, const char *prefix, cm_store_visit_key *visit, void *context,
                cm_error *err)
{
    cm_ice_store *s = cm_ice_store_of(store);
    walking w = {.prefix = prefix, .visit = visit, .context = context};
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->view.nnodes; i++) {
        w.node = &s->view.node[i];
        if (behind(w.node->path, prefix, strlen(prefix)) == NULL &&
            behind(prefix, w.node->path, strlen(w.node->path)) == NULL)
            continue;
        rc = walk_name(&w, "zarr.json", w.node->document->n, err);
        if (rc == CM_OK && w.node->is_array)
            rc = each_part(s, w.node, walk_chunks, &w, err);
    }
    cm_buf_release(&w.key);
    if (rc == CM_OK && !w.any && *prefix != '\0')
        rc = cm_fail(err, CM_ENOTFOUND, "%s: no such folder", prefix);
    return rc;
}

/* ---- counting ---- */

static int count_chunks(void *context, const cm_ice_refs *refs, const cm_ice_part *part,
                        cm_error *err)
{
    cm_ice_counts *counts = context;
    (void)err;
    for (size_t k = 0; k < refs->list.n; k++) {
        uint32_t index[CM_MAX_RANK];
        cm_ice_refs_index(refs, k, index);
        if (!cm_ice_part_has(part, index, refs->rank))
            continue;
        const cm_ice_where where = cm_ice_refs_at(refs, k).where;
        counts->nchunks++;
        counts->ninline += where == CM_ICE_INLINE;
        counts->noutside += where == CM_ICE_OUTSIDE;
    }
    return CM_OK;
}

bool cm_ice_store_is(const cm_store *store)
{
    return store->ops->walk == cm_ice_walk;
}

int cm_ice_store_count(cm_store *store, const char *node, cm_ice_counts *out, cm_error *err)
{
    cm_ice_store *s = cm_ice_store_of(store);
    int rc = CM_OK;
    *out = (cm_ice_counts){0};
    for (size_t i = 0; rc == CM_OK && i < s->view.nnodes; i++)
        if (s->view.node[i].is_array && behind(s->view.node[i].path, node, strlen(node)) != NULL)
            rc = each_part(s, &s->view.node[i], count_chunks, out, err);
    return rc;
}

/* ---- all of it, sorted ---- */

typedef struct listed {
    size_t at; /* of its name */
    uint64_t nbytes;
} listed;

typedef struct listing {
    cm_buf names;
    listed *item;
    size_t n, capacity;
} listing;

static int collect(void *context, const char *below, uint64_t nbytes, cm_error *err)
{
    listing *l = context;
    listed *item = cm_make_room(l->item, l->n, &l->capacity, sizeof(*item), 256);
    if (item == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for a listing");
    l->item = item;
    l->item[l->n++] = (listed){l->names.nbytes, nbytes};
    const size_t n = strlen(below) + 1, at = l->names.nbytes;
    int rc = cm_buf_extend(&l->names, n, err);
    if (rc == CM_OK)
        memcpy(l->names.data + at, below, n);
    return rc;
}

static int by_name(const void *a, const void *b, void *names)
{
    const char *text = (const char *)((const cm_buf *)names)->data;
    return strcmp(text + ((const listed *)a)->at, text + ((const listed *)b)->at);
}

int cm_ice_list_below(cm_store *store, const char *prefix, cm_store_visit_object *visit,
                      void *context, cm_error *err)
{
    listing l = {0};
    int rc = cm_ice_walk(store, prefix, collect, &l, err);
    if (rc == CM_OK && l.n > 1)
        qsort_r(l.item, l.n, sizeof(l.item[0]), by_name, &l.names);
    for (size_t i = 0; rc == CM_OK && i < l.n; i++) {
        const cm_object_stat stat = {.nbytes = l.item[i].nbytes};
        rc = visit(context, (const char *)l.names.data + l.item[i].at, &stat, err);
    }
    free(l.item);
    cm_buf_release(&l.names);
    return rc;
}
