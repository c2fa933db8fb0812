/* The nodes of a commit, from the documents of a store in memory. */
#ifndef CM_CONVERT_SINK_ICECHUNK_NODE_LIST_H
#define CM_CONVERT_SINK_ICECHUNK_NODE_LIST_H

#include "format/icechunk/nodes.h"

typedef struct cm_node_list {
    cm_ice_new_node *node; /* sorted by path */
    struct cm_node_text {
        char *path, *document;
    } * text; /* what nodes borrow, in another order */
    size_t n, capacity, ntexts, text_capacity;
} cm_node_list;

/* The nodes of DOCUMENTS, below the group ABOVE ("": the root), whose groups are among them. */
int cm_node_list_make(cm_node_list *list, cm_store *documents, const char *above, cm_error *err);
/*
 * Of all documents of SNAPSHOT, some of which are changed: those that are, or belong to arrays that
 * are updated, stay in the list as updates.
 */
void cm_node_list_keep_changes(cm_node_list *list, const cm_fb_table *snapshot);
/* The node "/ABOVE/NAME"; NULL: there is none. */
cm_ice_new_node *cm_node_list_find(const cm_node_list *list, const char *above, const char *name);
void cm_node_list_release(cm_node_list *list); /* zeroed memory accepted */

#endif
