#include "convert/sink/icechunk/unlike.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "format/icechunk/snapshot_impl.h"
#include "format/icechunk/snapshot_write.h"

/* The length of the path of the group in which PATH lies. */
static size_t group_nbytes(const char *path)
{
    return (size_t)(cm_path_last(path) - path);
}

/* Whether a dimension of B, named like one of A, has another length. */
static bool differ(const cm_ice_new_node *a, const cm_ice_new_node *b, unsigned *of_a,
                   unsigned *of_b)
{
    for (unsigned i = 0; i < a->rank; i++)
        for (unsigned j = 0; j < b->rank; j++) {
            if (a->dimension[i] == NULL || b->dimension[j] == NULL ||
                strcmp(a->dimension[i], b->dimension[j]) != 0 || a->length[i] == b->length[j])
                continue;
            *of_a = i;
            *of_b = j;
            return true;
        }
    return false;
}

static char *compare(const cm_ice_new_node *there, const cm_node_list *list, cm_error *err)
{
    const size_t n = group_nbytes(there->path);
    unsigned i, j;
    for (size_t k = 0; k < list->n; k++) {
        const cm_ice_new_node *fresh = &list->node[k];
        if (fresh->is_array && group_nbytes(fresh->path) == n &&
            memcmp(fresh->path, there->path, n) == 0 && differ(there, fresh, &i, &j))
            return cm_asprintf(err,
                               "%s: stays in the repository with %" PRIu64 " elements along %s, of "
                               "which %s has %" PRIu64 ": xarray opens no group that has both",
                               there->path, there->length[i], there->dimension[i], fresh->path,
                               fresh->length[j]);
    }
    return NULL;
}

int cm_unlike_find(const cm_fb_table *snapshot, const cm_node_list *list, char **tells,
                   cm_error *err)
{
    const cm_fb_value *nodes = &snapshot->value[CM_ICE_SNAPSHOT_NODES];
    int rc = CM_OK;
    *tells = NULL;
    for (size_t i = 0; rc == CM_OK && *tells == NULL && i < nodes->n; i++) {
        const cm_fb_table *node = nodes->item[i];
        const cm_fb_value *text = &node->value[CM_ICE_NODE_DOCUMENT];
        char *path = cm_asprintf(err, "%.*s", (int)node->value[CM_ICE_NODE_PATH].n,
                                 (const char *)node->value[CM_ICE_NODE_PATH].bytes);
        cm_ice_new_node there = {.path = path, .document = text->bytes, .nbytes = text->n};
        rc = path == NULL ? CM_ENOMEM : CM_OK;
        /* Another writer's document that is not understood has no say here. */
        if (rc == CM_OK && cm_ice_node_is_array(node) &&
            cm_node_list_find(list, path + 1, "") == NULL &&
            cm_ice_node_parse(&there, NULL) == CM_OK)
            *tells = compare(&there, list, err);
        cm_ice_node_release(&there);
        free(path);
    }
    return rc;
}
