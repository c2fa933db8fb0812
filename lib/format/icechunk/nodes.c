#include "format/icechunk/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static int not_described(const cm_ice_new_node *node, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: its zarr.json is not one that Icechunk can hold",
                   node->path);
}

/* The regular grid of chunks, or of shards. */
static int parse_grid(cm_ice_new_node *node, const cm_json *doc, cm_error *err)
{
    const cm_json *shape = cm_json_member(doc, "shape");
    const cm_json *grid = cm_json_member(doc, "chunk_grid");
    const cm_json *chunk = cm_json_member(cm_json_member(grid, "configuration"), "chunk_shape");
    const size_t rank = cm_json_length(shape);
    if (rank > CM_MAX_RANK || cm_json_length(chunk) != rank)
        return not_described(node, err);
    node->rank = (unsigned)rank;
    for (unsigned j = 0; j < rank; j++) {
        uint64_t length, one;
        if (!cm_json_get_u64(cm_json_at(shape, j), &length) ||
            !cm_json_get_u64(cm_json_at(chunk, j), &one) || one == 0)
            return not_described(node, err);
        node->length[j] = length;
        node->nchunks[j] = length / one + (length % one != 0);
        if (node->nchunks[j] > UINT32_MAX)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "%s: %llu chunks along a dimension are more than Icechunk can count",
                           node->path, (unsigned long long)node->nchunks[j]);
    }
    return CM_OK;
}

static int parse_names(cm_ice_new_node *node, const cm_json *names, cm_error *err)
{
    node->named = cm_json_length(names) == node->rank && node->rank > 0;
    for (unsigned j = 0; node->named && j < node->rank; j++) {
        const char *text = cm_json_text(cm_json_at(names, j), NULL);
        if (text != NULL && (node->dimension[j] = cm_strdup(text, err)) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

int cm_ice_node_parse(cm_ice_new_node *node, cm_error *err)
{
    cm_json *doc = NULL;
    int rc = cm_json_parse(node->document, node->nbytes, &doc, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s", node->path);
        return rc;
    }
    const char *type = cm_json_text(cm_json_member(doc, "node_type"), NULL);
    node->is_array = type != NULL && strcmp(type, "array") == 0;
    if (type == NULL || (!node->is_array && strcmp(type, "group") != 0))
        rc = not_described(node, err);
    else if (node->is_array)
        rc = parse_grid(node, doc, err);
    if (rc == CM_OK && node->is_array)
        rc = parse_names(node, cm_json_member(doc, "dimension_names"), err);
    node->plain = !node->is_array && cm_json_length(cm_json_member(doc, "attributes")) == 0;
    cm_json_free(doc);
    return rc;
}

void cm_ice_node_release(cm_ice_new_node *node)
{
    for (unsigned j = 0; j < CM_MAX_RANK; j++) {
        free(node->dimension[j]);
        node->dimension[j] = NULL;
    }
}
