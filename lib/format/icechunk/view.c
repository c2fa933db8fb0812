#include "format/icechunk/view.h"

#include <stdlib.h>
#include <string.h>

#include "format/icechunk/key.h"

/* ---- parts ---- */

static int by_from(const void *a, const void *b)
{
    const uint32_t x = ((const cm_ice_part *)a)->from, y = ((const cm_ice_part *)b)->from;
    return x < y ? -1 : x > y;
}

static int take_parts(cm_ice_seen *node, const cm_fb_value *list, cm_error *err)
{
    uint32_t reach = 0;
    if ((node->part = cm_calloc(list->n + 1, sizeof(node->part[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < list->n; i++) {
        const cm_fb_value *v = list->item[i]->value;
        const cm_fb_value *box = &v[CM_ICE_MANIFEST_REF_EXTENTS];
        if (box->n != node->rank)
            return cm_fail(err, CM_EFORMAT,
                           "the snapshot is damaged (array %s has %u dimensions, and a manifest of "
                           "it %zu)",
                           node->path, node->rank, box->n);
        node->part[i] = (cm_ice_part){.id = v[CM_ICE_MANIFEST_REF_ID].bytes,
                                      .box = box->bytes,
                                      .from = node->rank > 0 ? cm_load_le32(box->bytes) : 0};
    }
    node->nparts = list->n;
    qsort(node->part, node->nparts, sizeof(node->part[0]), by_from);
    for (size_t i = 0; i < node->nparts; i++) {
        const uint32_t to = node->rank > 0 ? cm_load_le32(node->part[i].box + 4) : 1;
        node->part[i].reach = reach = to > reach ? to : reach;
    }
    return CM_OK;
}

bool cm_ice_part_has(const cm_ice_part *part, const uint32_t *index, unsigned rank)
{
    for (unsigned j = 0; j < rank; j++)
        if (index[j] < cm_load_le32(part->box + 8 * (size_t)j) ||
            index[j] >= cm_load_le32(part->box + 8 * (size_t)j + 4))
            return false;
    return true;
}

/* How many parts begin, in the first dimension, at AT or before. */
static size_t count_begun(const cm_ice_seen *node, uint32_t at)
{
    size_t lo = 0, hi = node->nparts;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (node->part[mid].from <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const cm_ice_part *cm_ice_seen_part(const cm_ice_seen *node, const uint32_t *index, size_t *next)
{
    const uint32_t at = node->rank > 0 ? index[0] : 0;
    size_t i = *next < SIZE_MAX ? *next : count_begun(node, at);
    while (i-- > 0 && node->part[i].reach > at)
        if (cm_ice_part_has(&node->part[i], index, node->rank)) {
            *next = i;
            return &node->part[i];
        }
    return NULL;
}

/* ---- nodes ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const cm_ice_seen *)a)->path, ((const cm_ice_seen *)b)->path);
}

static int take_array(cm_ice_seen *node, const cm_fb_value *array, cm_error *err)
{
    const cm_fb_value *shape = &array[CM_ICE_ARRAY_SHAPE];
    const size_t rank = shape->there ? shape->n : array[CM_ICE_ARRAY_SHAPE_1].n;
    if (rank > CM_MAX_RANK)
        return cm_fail(err, CM_EUNSUPPORTED, "array %s: has %zu dimensions", node->path, rank);
    node->is_array = true;
    node->rank = (unsigned)rank;
    return take_parts(node, &array[CM_ICE_ARRAY_MANIFESTS], err);
}

static int take_node(cm_ice_seen *node, const cm_fb_table *t, cm_error *err)
{
    const cm_fb_value *path = &t->value[CM_ICE_NODE_PATH];
    const char *text = path->bytes;
    if (path->n == 0 || text[0] != '/' || memchr(text, '\0', path->n) != NULL)
        return cm_fail(err, CM_EFORMAT, "the snapshot is damaged (a node's path)");
    if ((node->path = cm_asprintf(err, "%.*s", (int)path->n - 1, text + 1)) == NULL)
        return CM_ENOMEM;
    if (node->path[0] != '\0' && cm_key_check(node->path, err) != CM_OK)
        return CM_EFORMAT;
    node->id = t->value[CM_ICE_NODE_NODE_ID].bytes;
    node->document = &t->value[CM_ICE_NODE_DOCUMENT];
    return cm_fb_u64(t, CM_ICE_NODE_TYPE) == CM_ICE_IS_ARRAY
               ? take_array(node, t->value[CM_ICE_NODE_DATA].item[0]->value, err)
               : CM_OK;
}

static int take_nodes(cm_ice_view *v, const cm_fb_value *nodes, cm_error *err)
{
    int rc = CM_OK;
    if ((v->node = cm_calloc(nodes->n + 1, sizeof(v->node[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < nodes->n; i++)
        rc = take_node(&v->node[v->nnodes++], nodes->item[i], err);
    if (rc != CM_OK)
        return rc;
    qsort(v->node, v->nnodes, sizeof(v->node[0]), by_path);
    for (size_t i = 1; i < v->nnodes; i++)
        if (by_path(&v->node[i - 1], &v->node[i]) == 0)
            return cm_fail(err, CM_EFORMAT, "the snapshot is damaged (%s is there twice)",
                           v->node[i].path);
    return CM_OK;
}

/* Sizes of manifests are in a list of structs in version 1, of tables in version 2. */
static void count_refs(cm_ice_view *v, const cm_fb_table *root)
{
    const cm_fb_value *now = &root->value[CM_ICE_SNAPSHOT_MANIFESTS];
    const cm_fb_value *old = &root->value[CM_ICE_SNAPSHOT_MANIFESTS_1];
    const uint8_t *bytes = old->bytes;
    v->nmanifests = now->n + old->n;
    for (size_t i = 0; i < now->n; i++)
        v->nrefs += cm_fb_u64(now->item[i], CM_ICE_FILE_NREFS);
    for (size_t i = 0; i < old->n; i++)
        v->nrefs += cm_load_le32(bytes + CM_ICE_FILE_1_NBYTES * i + CM_ICE_FILE_1_NREFS);
}

int cm_ice_view_read(cm_store *root, const uint8_t id[CM_ICE_ID], cm_ice_view *out, cm_error *err)
{
    char key[CM_ICE_KEY_SIZE];
    *out = (cm_ice_view){0};
    memcpy(out->id, id, CM_ICE_ID);
    cm_ice_key("snapshots", id, key);
    int rc = cm_ice_file_view(root, key, CM_ICE_SNAPSHOT_FILE, &cm_ice_snapshot, &out->file, err);
    if (rc != CM_OK)
        return rc;
    count_refs(out, out->file.tree.root);
    return take_nodes(out, &out->file.tree.root->value[CM_ICE_SNAPSHOT_NODES], err);
}

void cm_ice_view_release(cm_ice_view *v)
{
    for (size_t i = 0; i < v->nnodes; i++) {
        free(v->node[i].path);
        free(v->node[i].part);
    }
    free(v->node);
    cm_ice_read_release(&v->file);
}

const cm_ice_seen *cm_ice_view_find(const cm_ice_view *v, const char *path, size_t nbytes)
{
    for (size_t lo = 0, hi = v->nnodes; lo < hi;) {
        const size_t mid = lo + (hi - lo) / 2;
        const int order = cm_key_order(v->node[mid].path, path, nbytes);
        if (order == 0)
            return &v->node[mid];
        *(order < 0 ? &lo : &hi) = order < 0 ? mid + 1 : mid;
    }
    return NULL;
}
