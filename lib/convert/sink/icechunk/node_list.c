#include "convert/sink/icechunk/node_list.h"

#include <stdlib.h>
#include <string.h>

#include "format/icechunk/key.h"
#include "format/icechunk/snapshot_write.h"
#include "format/zarr/meta.h"

#define GROUP "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}"

/* Takes PATH and DOCUMENT, also when it fails. */
static int add(cm_node_list *list, char *path, char *document, size_t nbytes, cm_error *err)
{
    struct cm_node_text *text =
        cm_make_room(list->text, list->ntexts, &list->text_capacity, sizeof(list->text[0]), 16);
    if (text != NULL)
        list->text = text;
    cm_ice_new_node *node =
        cm_make_room(list->node, list->n, &list->capacity, sizeof(list->node[0]), 16);
    if (node != NULL)
        list->node = node;
    if (text == NULL || node == NULL || path == NULL || document == NULL) {
        free(path);
        free(document);
        return cm_fail(err, CM_ENOMEM, "no memory for nodes");
    }
    list->text[list->ntexts++] = (struct cm_node_text){path, document};
    node = &list->node[list->n++];
    *node = (cm_ice_new_node){.path = path, .document = document, .nbytes = nbytes};
    int rc = cm_ice_node_parse(node, err);
    return rc == CM_OK ? cm_ice_id_random(node->id, sizeof(node->id), err) : rc;
}

typedef struct walk {
    cm_node_list *list;
    cm_store *documents;
    const char *above;
    const char *prefix; /* of keys */
} walk;

static int add_document(const walk *w, cm_error *err)
{
    cm_buf text = {0};
    char *key = cm_asprintf(err, "%s%szarr.json", w->prefix, *w->prefix != '\0' ? "/" : "");
    int rc = key == NULL ? CM_ENOMEM
                         : cm_store_get(w->documents, key, CM_ZARR_MAX_META_NBYTES, &text, err);
    free(key);
    if (rc == CM_OK) {
        char *path = cm_asprintf(err, "/%s%s%s", w->above,
                                 *w->above != '\0' && *w->prefix != '\0' ? "/" : "", w->prefix);
        char *document = cm_asprintf(err, "%.*s", (int)text.nbytes, (const char *)text.data);
        rc = add(w->list, path, document, document != NULL ? strlen(document) : 0, err);
    }
    cm_buf_release(&text);
    return rc;
}

static int visit(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const walk *w = context;
    if (!is_prefix)
        return strcmp(name, "zarr.json") == 0 ? add_document(w, err) : CM_OK;
    char *prefix = cm_asprintf(err, "%s%s%s", w->prefix, *w->prefix != '\0' ? "/" : "", name);
    if (prefix == NULL)
        return CM_ENOMEM;
    walk deeper = *w;
    deeper.prefix = prefix;
    int rc = cm_store_list(w->documents, prefix, visit, &deeper, err);
    free(prefix);
    return rc;
}

/* The groups above ABOVE, the root first. */
static int add_above(cm_node_list *list, const char *above, cm_error *err)
{
    int rc = CM_OK;
    for (size_t n = 0; rc == CM_OK && above[n] != '\0';) {
        char *path = cm_asprintf(err, "/%.*s", (int)n, above);
        char *document = cm_strdup(GROUP, err);
        rc = add(list, path, document, strlen(GROUP), err);
        if (rc == CM_OK)
            list->node[list->n - 1].implied = true;
        n += n > 0;
        n += strcspn(above + n, "/");
        if (above[n] == '\0')
            break;
    }
    return rc;
}

int cm_node_list_make(cm_node_list *list, cm_store *documents, const char *above, cm_error *err)
{
    walk root = {list, documents, above, ""};
    *list = (cm_node_list){0};
    int rc = add_above(list, above, err);
    if (rc == CM_OK)
        rc = cm_store_list(documents, "", visit, &root, err);
    if (rc == CM_OK && list->n > 0)
        qsort(list->node, list->n, sizeof(list->node[0]), cm_ice_node_compare);
    return rc;
}

void cm_node_list_keep_changes(cm_node_list *list, const cm_fb_table *snapshot)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        cm_ice_new_node *node = &list->node[i];
        const cm_fb_table *was = cm_ice_snapshot_find(snapshot, node->path);
        const cm_fb_value *text = was != NULL ? &was->value[CM_ICE_NODE_DOCUMENT] : NULL;
        const bool same = text != NULL && text->n == node->nbytes &&
                          memcmp(text->bytes, node->document, node->nbytes) == 0;
        if ((same || (was != NULL && node->implied)) && !node->updates) {
            cm_ice_node_release(node);
            continue;
        }
        node->updates = was != NULL;
        if (was != NULL)
            memcpy(node->id, was->value[CM_ICE_NODE_NODE_ID].bytes, CM_ICE_NODE_ID);
        list->node[kept++] = *node;
    }
    list->n = kept;
}

cm_ice_new_node *cm_node_list_find(const cm_node_list *list, const char *above, const char *name)
{
    char *path =
        cm_asprintf(NULL, "/%s%s%s", above, *above != '\0' && *name != '\0' ? "/" : "", name);
    const cm_ice_new_node key = {.path = path};
    cm_ice_new_node *found =
        path == NULL || list->n == 0
            ? NULL
            : bsearch(&key, list->node, list->n, sizeof(key), cm_ice_node_compare);
    free(path);
    return found;
}

void cm_node_list_release(cm_node_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        cm_ice_node_release(&list->node[i]);
    for (size_t i = 0; i < list->ntexts; i++) {
        free(list->text[i].path);
        free(list->text[i].document);
    }
    free(list->node);
    free(list->text);
    *list = (cm_node_list){0};
}
