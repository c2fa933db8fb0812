#include "format/icechunk/snapshot_impl.h"

#include <stdlib.h>
#include <string.h>

#include "format/icechunk/file_write.h"
#include "format/icechunk/flex_write.h"
#include "format/icechunk/key.h"
#include "format/icechunk/log_write.h"

const uint8_t cm_ice_initial_id[CM_ICE_ID] = {0x0b, 0x1c, 0xc8, 0xd6, 0x78, 0x75,
                                              0x80, 0xf0, 0xe3, 0x3a, 0x65, 0x34};

/* ---- metadata ---- */

static int by_name(const void *a, const void *b)
{
    const cm_fb_value *x = &(*(cm_fb_table *const *)a)->value[CM_ICE_ITEM_NAME];
    const cm_fb_value *y = &(*(cm_fb_table *const *)b)->value[CM_ICE_ITEM_NAME];
    const int order = memcmp(x->bytes, y->bytes, x->n < y->n ? x->n : y->n);
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

int cm_ice_set_metadata(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, const cm_json *metadata,
                        cm_error *err)
{
    const size_t n = cm_json_length(metadata);
    cm_fb_table **item = cm_calloc(n + 1, sizeof(item[0]), err);
    cm_buf value = {0};
    size_t i = 0;
    int rc = item == NULL ? CM_ENOMEM : CM_OK;
    for (cm_json_iter it = cm_json_begin(metadata); rc == CM_OK && i < n && cm_json_next(&it);
         i++) {
        rc = cm_flex_write(it.value, &value, err);
        if (rc == CM_OK && (item[i] = cm_fb_table_new(tree, &cm_ice_item, err)) == NULL)
            rc = CM_ENOMEM;
        if (rc == CM_OK)
            rc = cm_fb_set_text(tree, item[i], CM_ICE_ITEM_NAME, it.name, err);
        if (rc == CM_OK)
            rc = cm_fb_set(tree, item[i], CM_ICE_ITEM_VALUE, value.data, value.nbytes, err);
    }
    if (rc == CM_OK) {
        qsort(item, n, sizeof(item[0]), by_name);
        rc = cm_fb_set_tables(tree, t, slot, item, n, err);
    }
    cm_buf_release(&value);
    free(item);
    return rc;
}

/* ---- what is there ---- */

static int compare_path(const cm_fb_table *node, const char *path, size_t nbytes)
{
    const cm_fb_value *v = &node->value[CM_ICE_NODE_PATH];
    const int order = memcmp(v->bytes, path, v->n < nbytes ? v->n : nbytes);
    return order != 0 ? order : (v->n > nbytes) - (v->n < nbytes);
}

static size_t position(const cm_fb_value *nodes, const char *path, size_t nbytes)
{
    size_t low = 0, high = nodes->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_path(nodes->item[middle], path, nbytes) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static cm_fb_table *find_node(const cm_fb_table *snapshot, const char *path, size_t nbytes)
{
    const cm_fb_value *nodes = &snapshot->value[CM_ICE_SNAPSHOT_NODES];
    const size_t at = position(nodes, path, nbytes);
    return at < nodes->n && compare_path(nodes->item[at], path, nbytes) == 0 ? nodes->item[at]
                                                                             : NULL;
}

const cm_fb_table *cm_ice_snapshot_find(const cm_fb_table *snapshot, const char *path)
{
    return find_node(snapshot, path, strlen(path));
}

static bool has_below(const cm_fb_table *snapshot, const char *path)
{
    const cm_fb_value *nodes = &snapshot->value[CM_ICE_SNAPSHOT_NODES];
    const size_t n = strlen(path);
    for (size_t i = 0; i < nodes->n; i++) {
        const cm_fb_value *v = &nodes->item[i]->value[CM_ICE_NODE_PATH];
        const char *there = v->bytes;
        if (v->n > n && memcmp(there, path, n) == 0 && there[n] == '/')
            return true;
    }
    return false;
}

static bool same_document(const cm_fb_table *node, const cm_ice_new_node *fresh)
{
    const cm_fb_value *v = &node->value[CM_ICE_NODE_DOCUMENT];
    return v->n == fresh->nbytes && memcmp(v->bytes, fresh->document, v->n) == 0;
}

/* A group without attributes. */
static bool is_plain(const cm_fb_table *node)
{
    const cm_fb_value *v = &node->value[CM_ICE_NODE_DOCUMENT];
    cm_ice_new_node was = {.path = "", .document = v->bytes, .nbytes = v->n};
    const bool plain = cm_ice_node_parse(&was, NULL) == CM_OK && was.plain;
    cm_ice_node_release(&was);
    return plain;
}

/*
 * A group that is there already has nothing to lose by FRESH, or nothing to win; REPLACES: FRESH
 * takes away the attributes that it does not have.
 */
static bool may_share(const cm_fb_table *node, const cm_ice_new_node *fresh, bool replaces)
{
    return !cm_ice_node_is_array(node) && !fresh->is_array &&
           (same_document(node, fresh) || fresh->implied || (fresh->plain && !replaces) ||
            is_plain(node));
}

static int check_above(const cm_fb_table *snapshot, const cm_ice_new_node *fresh, cm_error *err)
{
    for (size_t n = strlen(fresh->path); n-- > 1;) {
        const cm_fb_table *above =
            fresh->path[n] == '/' ? find_node(snapshot, fresh->path, n) : NULL;
        if (above != NULL && cm_ice_node_is_array(above))
            return cm_fail(err, CM_EEXIST, "%s: lies below %.*s, which is an array", fresh->path,
                           (int)n, fresh->path);
    }
    return CM_OK;
}

static bool same_id(const cm_fb_table *a, const cm_fb_table *b)
{
    return memcmp(a->value[CM_ICE_NODE_NODE_ID].bytes, b->value[CM_ICE_NODE_NODE_ID].bytes,
                  CM_ICE_NODE_ID) == 0;
}

/* The same node, with the same document and the same chunks. */
static bool same_node(const cm_fb_table *a, const cm_fb_table *b)
{
    const cm_fb_value *x = &a->value[CM_ICE_NODE_DOCUMENT], *y = &b->value[CM_ICE_NODE_DOCUMENT];
    if (!same_id(a, b) || cm_ice_node_is_array(a) != cm_ice_node_is_array(b) || x->n != y->n ||
        memcmp(x->bytes, y->bytes, x->n) != 0)
        return false;
    if (!cm_ice_node_is_array(a))
        return true;
    x = &a->value[CM_ICE_NODE_DATA].item[0]->value[CM_ICE_ARRAY_MANIFESTS];
    y = &b->value[CM_ICE_NODE_DATA].item[0]->value[CM_ICE_ARRAY_MANIFESTS];
    bool same = x->n == y->n;
    for (size_t i = 0; same && i < x->n; i++)
        same = memcmp(x->item[i]->value[CM_ICE_MANIFEST_REF_ID].bytes,
                      y->item[i]->value[CM_ICE_MANIFEST_REF_ID].bytes, CM_ICE_ID) == 0;
    return same;
}

/* Whether the node of PATH, N bytes, goes. */
static bool goes(const cm_ice_change *change, const char *path, size_t n)
{
    for (size_t i = 0; i < change->ndrops; i++) {
        const size_t most = strlen(change->drops[i]);
        if (n >= most && memcmp(path, change->drops[i], most) == 0 &&
            (n == most || path[most] == '/'))
            return true;
    }
    return false;
}

static int check_node(const cm_fb_table *snapshot, const cm_fb_table *base,
                      const cm_ice_change *change, const cm_ice_new_node *fresh, cm_error *err)
{
    const size_t n = strlen(fresh->path);
    const cm_fb_table *there = find_node(snapshot, fresh->path, n);
    if (!fresh->updates && (there == NULL || may_share(there, fresh, change->replaces) ||
                            goes(change, fresh->path, n)))
        return check_above(snapshot, fresh, err);
    if (fresh->updates && there == NULL)
        return cm_fail(err, CM_EEXIST, "%s: another commit has removed it meanwhile", fresh->path);
    if (!fresh->updates && !change->replaces)
        return cm_fail(err, CM_EEXIST,
                       cm_ice_node_is_array(there)
                           ? "%s: is in the repository already; `overwrite` replaces it"
                           : "%s: is a group of the repository already, with other "
                             "attributes; `overwrite` replaces them",
                       fresh->path);
    if (cm_ice_node_is_array(there) != fresh->is_array && has_below(snapshot, fresh->path))
        return cm_fail(err, CM_EEXIST, "%s: is a group with nodes in it, and is not replaced",
                       fresh->path);
    const cm_fb_table *was = base != NULL ? find_node(base, fresh->path, n) : there;
    if (was == NULL || !same_node(was, there))
        return cm_fail(err, CM_EEXIST, "%s: another commit has changed it meanwhile", fresh->path);
    return CM_OK;
}

static int check_relied(const cm_fb_table *snapshot, const cm_fb_table *base, const char *path,
                        cm_error *err)
{
    const cm_fb_table *was = find_node(base, path, strlen(path));
    const cm_fb_table *there = find_node(snapshot, path, strlen(path));
    if (was != NULL && (there == NULL || !same_node(was, there)))
        return cm_fail(err, CM_EEXIST, "%s: another commit has %s it meanwhile", path,
                       there == NULL ? "removed" : "changed");
    return CM_OK;
}

static bool has_dimension(const cm_fb_table *node, const char *name)
{
    const cm_fb_value *v = &node->value[CM_ICE_NODE_DOCUMENT];
    cm_json *document = NULL;
    bool has = false;
    if (cm_json_parse(v->bytes, v->n, &document, NULL) == CM_OK) {
        const cm_json *names = cm_json_member(document, "dimension_names");
        for (size_t i = 0; !has && i < cm_json_length(names); i++) {
            const char *one = cm_json_text(cm_json_at(names, i), NULL);
            has = one != NULL && strcmp(one, name) == 0;
        }
    }
    cm_json_free(document);
    return has;
}

/* Whether an array that is updated lies in the group of the node PATH, N bytes. */
static bool is_beside_updated(const cm_ice_change *change, const char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '/')
        n--;
    for (size_t i = 0; i < change->n; i++) {
        const cm_ice_new_node *node = &change->node[i];
        if (node->updates && node->is_array && strncmp(node->path, path, n) == 0 &&
            strchr(node->path + n, '/') == NULL)
            return true;
    }
    return false;
}

/* An array that was added since BASE would keep the old length of the dimension that grows. */
static int check_added(const cm_fb_table *snapshot, const cm_fb_table *base,
                       const cm_ice_change *change, cm_error *err)
{
    const cm_fb_value *nodes = &snapshot->value[CM_ICE_SNAPSHOT_NODES];
    for (size_t i = 0; i < nodes->n; i++) {
        const cm_fb_table *node = nodes->item[i];
        const char *path = (const char *)node->value[CM_ICE_NODE_PATH].bytes;
        const size_t n = node->value[CM_ICE_NODE_PATH].n;
        if (cm_ice_node_is_array(node) && is_beside_updated(change, path, n) &&
            find_node(base, path, n) == NULL && has_dimension(node, change->grows))
            return cm_fail(err, CM_EEXIST,
                           "%.*s: another commit has added it meanwhile, along %s, which grows",
                           (int)n, path, change->grows);
    }
    return CM_OK;
}

int cm_ice_snapshot_check(const cm_fb_table *snapshot, const cm_fb_table *base,
                          const cm_ice_change *change, cm_error *err)
{
    int rc = CM_OK;
    if (snapshot->value[CM_ICE_SNAPSHOT_MANIFESTS_1].n > 0)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "the snapshot is of version 1 of Icechunk's format; migrate the repository");
    for (size_t i = 0; rc == CM_OK && i < change->n; i++)
        rc = check_node(snapshot, base, change, &change->node[i], err);
    for (size_t i = 0; rc == CM_OK && base != NULL && i < change->nrelied; i++)
        rc = check_relied(snapshot, base, change->relied[i], err);
    if (rc == CM_OK && base != NULL && change->grows != NULL)
        rc = check_added(snapshot, base, change, err);
    return rc;
}

/* ---- new nodes ---- */

static int describe_manifests(cm_fb_tree *tree, cm_fb_table *array, const cm_ice_new_node *node,
                              cm_error *err)
{
    const cm_ice_manifests *m = node->manifests;
    cm_fb_table **ref = cm_calloc(m->n + 1, sizeof(ref[0]), err);
    int rc = ref == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < m->n; i++) {
        uint8_t range[8 * CM_MAX_RANK];
        for (unsigned j = 0; j < node->rank; j++) {
            cm_store_le32(range + 8 * j, m->item[i].extent.first[j]);
            cm_store_le32(range + 8 * j + 4, m->item[i].extent.end[j]);
        }
        if ((ref[i] = cm_fb_table_new(tree, &cm_ice_manifest_ref, err)) == NULL)
            rc = CM_ENOMEM;
        if (rc == CM_OK)
            rc = cm_fb_set(tree, ref[i], CM_ICE_MANIFEST_REF_ID, m->item[i].id, 1, err);
        if (rc == CM_OK)
            rc = cm_fb_set(tree, ref[i], CM_ICE_MANIFEST_REF_EXTENTS, range, node->rank, err);
    }
    if (rc == CM_OK)
        rc = cm_fb_set_tables(tree, array, CM_ICE_ARRAY_MANIFESTS, ref, m->n, err);
    free(ref);
    return rc;
}

static int describe_shape(cm_fb_tree *tree, cm_fb_table *array, const cm_ice_new_node *node,
                          cm_error *err)
{
    cm_fb_table *shape[CM_MAX_RANK], *name[CM_MAX_RANK];
    int rc = CM_OK;
    for (unsigned j = 0; rc == CM_OK && j < node->rank; j++) {
        shape[j] = cm_fb_table_new(tree, &cm_ice_shape, err);
        name[j] = cm_fb_table_new(tree, &cm_ice_dimension, err);
        if (shape[j] == NULL || name[j] == NULL)
            return CM_ENOMEM;
        rc = cm_fb_set_u64(tree, shape[j], CM_ICE_SHAPE_LENGTH, node->length[j], err);
        if (rc == CM_OK)
            rc = cm_fb_set_u64(tree, shape[j], CM_ICE_SHAPE_CHUNKS, node->nchunks[j], err);
        if (rc == CM_OK && node->dimension[j] != NULL)
            rc = cm_fb_set_text(tree, name[j], 0, node->dimension[j], err);
    }
    if (rc == CM_OK)
        rc = cm_fb_set(tree, array, CM_ICE_ARRAY_SHAPE_1, "", 0, err);
    if (rc == CM_OK)
        rc = cm_fb_set_tables(tree, array, CM_ICE_ARRAY_SHAPE, shape, node->rank, err);
    return rc == CM_OK && node->named
               ? cm_fb_set_tables(tree, array, CM_ICE_ARRAY_DIMENSIONS, name, node->rank, err)
               : rc;
}

static int describe_node(cm_fb_tree *tree, const cm_ice_new_node *node, cm_fb_table **out,
                         cm_error *err)
{
    cm_fb_table *t = *out = cm_fb_table_new(tree, &cm_ice_node, err);
    cm_fb_table *data = cm_fb_table_new(tree, node->is_array ? &cm_ice_array : &cm_ice_group, err);
    if (t == NULL || data == NULL)
        return CM_ENOMEM;
    int rc = cm_fb_set(tree, t, CM_ICE_NODE_NODE_ID, node->id, 1, err);
    if (rc == CM_OK)
        rc = cm_fb_set_text(tree, t, CM_ICE_NODE_PATH, node->path, err);
    if (rc == CM_OK)
        rc = cm_fb_set(tree, t, CM_ICE_NODE_DOCUMENT, node->document, node->nbytes, err);
    if (rc == CM_OK)
        rc = cm_fb_set_u64(tree, t, CM_ICE_NODE_TYPE,
                           node->is_array ? CM_ICE_IS_ARRAY : CM_ICE_IS_GROUP, err);
    if (rc == CM_OK)
        rc = cm_fb_set_tables(tree, t, CM_ICE_NODE_DATA, &data, 1, err);
    if (rc == CM_OK && node->is_array)
        rc = describe_shape(tree, data, node, err);
    return rc == CM_OK && node->is_array ? describe_manifests(tree, data, node, err) : rc;
}

/* ---- applying ---- */

enum {
    NLISTS = 6
};

/* Ids for the transaction log. */
typedef struct applied {
    uint8_t *new_groups, *new_arrays, *deleted_groups, *deleted_arrays, *updated_groups,
        *updated_arrays;
    size_t nnew_groups, nnew_arrays, ndeleted_groups, ndeleted_arrays, nupdated_groups,
        nupdated_arrays;
    cm_ice_log_array *array;
    size_t narrays;
} applied;

static void note(uint8_t *list, size_t *n, const void *id)
{
    memcpy(list + CM_ICE_NODE_ID * (*n)++, id, CM_ICE_NODE_ID);
}

static void note_chunks(applied *a, const cm_ice_new_node *node)
{
    if (node->manifests->nrefs == 0)
        return;
    cm_ice_log_array *array = &a->array[a->narrays++];
    *array = (cm_ice_log_array){.rank = node->rank,
                                .shape = node->nchunks,
                                .present = node->manifests->present,
                                .nrefs = node->manifests->nrefs};
    memcpy(array->node, node->id, CM_ICE_NODE_ID);
}

static void note_new(applied *a, const cm_ice_new_node *node)
{
    if (!node->is_array) {
        note(a->new_groups, &a->nnew_groups, node->id);
        return;
    }
    note(a->new_arrays, &a->nnew_arrays, node->id);
    note_chunks(a, node);
}

static void note_deleted(applied *a, const cm_fb_table *node)
{
    const void *id = node->value[CM_ICE_NODE_NODE_ID].bytes;
    if (cm_ice_node_is_array(node))
        note(a->deleted_arrays, &a->ndeleted_arrays, id);
    else
        note(a->deleted_groups, &a->ndeleted_groups, id);
}

/* The group THERE stays, with the document of FRESH where that says more, or is to replace it. */
static int update_group(cm_fb_tree *tree, cm_fb_table *there, const cm_ice_new_node *fresh,
                        bool replaces, applied *a, cm_error *err)
{
    if (same_document(there, fresh) || fresh->implied || (fresh->plain && !replaces))
        return CM_OK;
    note(a->updated_groups, &a->nupdated_groups, there->value[CM_ICE_NODE_NODE_ID].bytes);
    return cm_fb_set(tree, there, CM_ICE_NODE_DOCUMENT, fresh->document, fresh->nbytes, err);
}

/* The array THERE stays, with another length or other chunks. */
static int update_array(cm_fb_tree *tree, cm_fb_table *there, const cm_ice_new_node *fresh,
                        applied *a, cm_error *err)
{
    cm_fb_table *data = cm_fb_table_new(tree, &cm_ice_array, err);
    int rc = data == NULL ? CM_ENOMEM : describe_shape(tree, data, fresh, err);
    if (rc == CM_OK)
        rc = describe_manifests(tree, data, fresh, err);
    if (rc == CM_OK && !same_document(there, fresh))
        note(a->updated_arrays, &a->nupdated_arrays, fresh->id);
    note_chunks(a, fresh);
    if (rc == CM_OK)
        rc = cm_fb_set(tree, there, CM_ICE_NODE_DOCUMENT, fresh->document, fresh->nbytes, err);
    return rc == CM_OK ? cm_fb_set_tables(tree, there, CM_ICE_NODE_DATA, &data, 1, err) : rc;
}

static int add_node(cm_fb_tree *tree, const cm_ice_new_node *fresh, bool replaces, applied *a,
                    cm_error *err)
{
    cm_fb_value *nodes = &tree->root->value[CM_ICE_SNAPSHOT_NODES];
    cm_fb_table *made;
    const size_t at = position(nodes, fresh->path, strlen(fresh->path));
    cm_fb_table *there = find_node(tree->root, fresh->path, strlen(fresh->path));
    if (there != NULL && !cm_ice_node_is_array(there) && !fresh->is_array)
        return update_group(tree, there, fresh, replaces || fresh->updates, a, err);
    if (fresh->updates)
        return update_array(tree, there, fresh, a, err);
    int rc = describe_node(tree, fresh, &made, err);
    if (rc != CM_OK)
        return rc;
    note_new(a, fresh);
    if (there != NULL) {
        note_deleted(a, there);
    } else { /* the list has room */
        memmove(nodes->item + at + 1, nodes->item + at, (nodes->n - at) * sizeof(nodes->item[0]));
        nodes->n++;
    }
    nodes->item[at] = made;
    return CM_OK;
}

static void drop_nodes(cm_fb_tree *tree, const cm_ice_change *change, applied *a)
{
    cm_fb_value *nodes = &tree->root->value[CM_ICE_SNAPSHOT_NODES];
    size_t kept = 0;
    for (size_t i = 0; i < nodes->n; i++) {
        const cm_fb_value *path = &nodes->item[i]->value[CM_ICE_NODE_PATH];
        if (goes(change, path->bytes, path->n))
            note_deleted(a, nodes->item[i]);
        else
            nodes->item[kept++] = nodes->item[i];
    }
    nodes->n = kept;
}

/* ---- the whole ---- */

static int set_head(cm_fb_tree *tree, const uint8_t *id, const char *message,
                    const cm_json *metadata, uint64_t now_us, cm_error *err)
{
    cm_fb_table *t = tree->root;
    t->value[CM_ICE_SNAPSHOT_PARENT].there = false;
    int rc = cm_fb_set(tree, t, CM_ICE_SNAPSHOT_ID, id, 1, err);
    if (rc == CM_OK)
        rc = cm_fb_set_u64(tree, t, CM_ICE_SNAPSHOT_FLUSHED, now_us, err);
    if (rc == CM_OK)
        rc = cm_fb_set_text(tree, t, CM_ICE_SNAPSHOT_MESSAGE, message, err);
    return rc == CM_OK ? cm_ice_set_metadata(tree, t, CM_ICE_SNAPSHOT_METADATA, metadata, err) : rc;
}

int cm_ice_initial_metadata(cm_json **out, cm_error *err)
{
    cm_json *mark = cm_json_object();
    *out = cm_json_object();
    int rc = cm_json_set(mark, "is_root", cm_json_bool(true), err);
    if (rc == CM_OK)
        return cm_json_set(*out, "__icechunk", mark, err);
    cm_json_free(mark);
    return rc;
}

int cm_ice_snapshot_initial(cm_fb_tree *tree, uint64_t now_us, cm_error *err)
{
    cm_json *metadata = NULL;
    *tree = (cm_fb_tree){0};
    int rc = cm_ice_initial_metadata(&metadata, err);
    if (rc == CM_OK && (tree->root = cm_fb_table_new(tree, &cm_ice_snapshot, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK)
        rc = set_head(tree, cm_ice_initial_id, CM_ICE_INITIAL_MESSAGE, metadata, now_us, err);
    if (rc == CM_OK)
        rc = cm_fb_set_tables(tree, tree->root, CM_ICE_SNAPSHOT_NODES, NULL, 0, err);
    if (rc == CM_OK)
        rc = cm_fb_set(tree, tree->root, CM_ICE_SNAPSHOT_MANIFESTS_1, "", 0, err);
    if (rc == CM_OK)
        rc = cm_fb_set_tables(tree, tree->root, CM_ICE_SNAPSHOT_MANIFESTS, NULL, 0, err);
    cm_json_free(metadata);
    return rc;
}

int cm_ice_node_compare(const void *a, const void *b)
{
    return strcmp(((const cm_ice_new_node *)a)->path, ((const cm_ice_new_node *)b)->path);
}

static int by_node_id(const void *a, const void *b)
{
    return memcmp(a, b, CM_ICE_NODE_ID);
}

static int by_array_id(const void *a, const void *b)
{
    return memcmp(((const cm_ice_log_array *)a)->node, ((const cm_ice_log_array *)b)->node,
                  CM_ICE_NODE_ID);
}

static cm_ice_ids sorted(uint8_t *id, size_t n)
{
    qsort(id, n, CM_ICE_NODE_ID, by_node_id);
    return (cm_ice_ids){id, n};
}

static int write_log(cm_store *root, applied *a, const uint8_t *id, cm_error *err)
{
    cm_ice_log_content log = {.new_groups = sorted(a->new_groups, a->nnew_groups),
                              .new_arrays = sorted(a->new_arrays, a->nnew_arrays),
                              .deleted_groups = sorted(a->deleted_groups, a->ndeleted_groups),
                              .deleted_arrays = sorted(a->deleted_arrays, a->ndeleted_arrays),
                              .updated_groups = sorted(a->updated_groups, a->nupdated_groups),
                              .updated_arrays = sorted(a->updated_arrays, a->nupdated_arrays),
                              .array = a->array,
                              .narrays = a->narrays};
    memcpy(log.id, id, CM_ICE_ID);
    qsort(a->array, a->narrays, sizeof(a->array[0]), by_array_id);
    return cm_ice_log_write(root, &log, err);
}

static int write_snapshot(cm_store *root, const cm_fb_tree *tree, const uint8_t *id, cm_error *err)
{
    cm_flat_writer w = {0};
    char key[CM_ICE_KEY_SIZE];
    cm_ice_key("snapshots", id, key);
    int rc = cm_fb_write(tree->root, CM_ICE_IDENTIFIER, &w, err);
    if (rc == CM_OK)
        rc = cm_ice_file_write(root, key, CM_ICE_SNAPSHOT_FILE, &w.buf, NULL, err);
    cm_flat_release(&w);
    return rc;
}

static int prepare(cm_fb_tree *tree, const cm_ice_change *change, applied *a, cm_error *err)
{
    cm_fb_value *nodes = &tree->root->value[CM_ICE_SNAPSHOT_NODES];
    const size_t most = change->n + nodes->n + 1;
    uint8_t *id = cm_fb_alloc(tree, NLISTS * most * CM_ICE_NODE_ID, err);
    a->array = cm_fb_alloc(tree, change->n * sizeof(a->array[0]), err);
    cm_fb_table **list = cm_fb_alloc(tree, (nodes->n + change->n) * sizeof(list[0]), err);
    if (id == NULL || a->array == NULL || list == NULL)
        return CM_ENOMEM;
    uint8_t **all[NLISTS] = {&a->new_groups,     &a->new_arrays,     &a->deleted_groups,
                             &a->deleted_arrays, &a->updated_groups, &a->updated_arrays};
    for (size_t i = 0; i < NLISTS; i++)
        *all[i] = id + i * most * CM_ICE_NODE_ID;
    if (nodes->n > 0)
        memcpy(list, nodes->item, nodes->n * sizeof(list[0]));
    nodes->item = list;
    return CM_OK;
}

int cm_ice_snapshot_write(cm_store *root, cm_fb_tree *tree, const cm_fb_table *base,
                          const cm_ice_change *change, const uint8_t id[CM_ICE_ID], cm_error *err)
{
    applied a = {0};
    int rc = cm_ice_snapshot_check(tree->root, base, change, err);
    if (rc == CM_OK)
        rc = prepare(tree, change, &a, err);
    if (rc == CM_OK)
        drop_nodes(tree, change, &a);
    for (size_t i = 0; rc == CM_OK && i < change->n; i++)
        rc = add_node(tree, &change->node[i], change->replaces, &a, err);
    if (rc == CM_OK)
        rc = cm_ice_snapshot_list_manifests(tree, change, err);
    if (rc == CM_OK)
        rc = set_head(tree, id, change->message, change->metadata, change->now_us, err);
    if (rc == CM_OK)
        rc = write_log(root, &a, id, err);
    return rc == CM_OK ? write_snapshot(root, tree, id, err) : rc;
}
