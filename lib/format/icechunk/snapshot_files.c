/* The manifests that a snapshot lists: those of its parent that are still used, and new ones. */
#include <stdlib.h>
#include <string.h>

#include "format/icechunk/snapshot_impl.h"

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, CM_ICE_ID);
}

/* The ids of all manifests that nodes refer to, sorted; to be freed. */
static int list_used(const cm_fb_table *snapshot, uint8_t **out, size_t *n, cm_error *err)
{
    const cm_fb_value *nodes = &snapshot->value[CM_ICE_SNAPSHOT_NODES];
    size_t most = 0;
    *n = 0;
    for (size_t i = 0; i < nodes->n; i++)
        if (cm_ice_node_is_array(nodes->item[i]))
            most +=
                nodes->item[i]->value[CM_ICE_NODE_DATA].item[0]->value[CM_ICE_ARRAY_MANIFESTS].n;
    if ((*out = cm_calloc(most + 1, CM_ICE_ID, err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < nodes->n; i++) {
        if (!cm_ice_node_is_array(nodes->item[i]))
            continue;
        const cm_fb_table *data = nodes->item[i]->value[CM_ICE_NODE_DATA].item[0];
        const cm_fb_value *refs = &data->value[CM_ICE_ARRAY_MANIFESTS];
        for (size_t k = 0; k < refs->n; k++)
            memcpy(*out + CM_ICE_ID * (*n)++, refs->item[k]->value[CM_ICE_MANIFEST_REF_ID].bytes,
                   CM_ICE_ID);
    }
    qsort(*out, *n, CM_ICE_ID, by_id);
    return CM_OK;
}

static int by_file_id(const void *a, const void *b)
{
    return memcmp((*(cm_fb_table *const *)a)->value[CM_ICE_FILE_ID].bytes,
                  (*(cm_fb_table *const *)b)->value[CM_ICE_FILE_ID].bytes, CM_ICE_ID);
}

static int describe_file(cm_fb_tree *tree, const cm_ice_manifest *m, cm_fb_table **out,
                         cm_error *err)
{
    if ((*out = cm_fb_table_new(tree, &cm_ice_file_info, err)) == NULL)
        return CM_ENOMEM;
    int rc = cm_fb_set(tree, *out, CM_ICE_FILE_ID, m->id, 1, err);
    if (rc == CM_OK)
        rc = cm_fb_set_u64(tree, *out, CM_ICE_FILE_NBYTES, m->nbytes, err);
    return rc == CM_OK ? cm_fb_set_u64(tree, *out, CM_ICE_FILE_NREFS, m->nrefs, err) : rc;
}

int cm_ice_snapshot_list_manifests(cm_fb_tree *tree, const cm_ice_change *change, cm_error *err)
{
    const cm_fb_value *old = &tree->root->value[CM_ICE_SNAPSHOT_MANIFESTS];
    uint8_t *used = NULL;
    size_t nused, n = 0, most = old->n;
    for (size_t i = 0; i < change->n; i++)
        most += change->node[i].is_array ? change->node[i].manifests->n : 0;
    cm_fb_table **file = cm_calloc(most + 1, sizeof(file[0]), err);
    int rc = file == NULL ? CM_ENOMEM : list_used(tree->root, &used, &nused, err);
    for (size_t i = 0; rc == CM_OK && i < old->n; i++) {
        const cm_fb_value *id = &old->item[i]->value[CM_ICE_FILE_ID];
        if (id->there && bsearch(id->bytes, used, nused, CM_ICE_ID, by_id) != NULL)
            file[n++] = old->item[i];
    }
    for (size_t i = 0; rc == CM_OK && i < change->n; i++)
        for (size_t k = 0;
             change->node[i].is_array && rc == CM_OK && k < change->node[i].manifests->n; k++)
            if (!change->node[i].manifests->item[k].listed)
                rc = describe_file(tree, &change->node[i].manifests->item[k], &file[n++], err);
    if (rc == CM_OK) {
        qsort(file, n, sizeof(file[0]), by_file_id);
        rc = cm_fb_set_tables(tree, tree->root, CM_ICE_SNAPSHOT_MANIFESTS, file, n, err);
    }
    free(used);
    free(file);
    return rc;
}
