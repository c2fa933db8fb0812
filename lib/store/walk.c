/* Walks by the kind's own listing, or folder by folder. */
#include "store/walk.h"

#include <stdlib.h>
#include <string.h>

#include "store/impl.h"

enum {
    MAX_DEPTH = 128
};

typedef struct walk {
    cm_store *store;
    const char *folder; /* key */
    size_t skip;        /* of a key, up to what stands below the prefix */
    unsigned depth;
    cm_store_visit_key *visit;
    void *context;
} walk;

static int visit_stat(void *context, const char *below, const cm_object_stat *stat, cm_error *err)
{
    const walk *w = context;
    return w->visit(w->context, below, stat->nbytes, err);
}

static int visit_name(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const walk *w = context;
    char *key = cm_asprintf(err, "%s%s%s", w->folder, w->folder[0] ? "/" : "", name);
    int rc = CM_OK;
    if (key == NULL)
        return CM_ENOMEM;
    walk below = *w;
    below.folder = key;
    below.depth++;
    if (!is_prefix)
        rc = w->visit(w->context, key + w->skip, CM_WALK_NO_SIZE, err);
    else if (below.depth < MAX_DEPTH)
        rc = cm_store_list(w->store, key, visit_name, &below, err);
    free(key);
    return rc;
}

int cm_store_walk(cm_store *store, const char *prefix, cm_store_visit_key *visit, void *context,
                  cm_error *err)
{
    cm_error why = {0};
    walk w = {.store = store,
              .folder = prefix,
              .skip = strlen(prefix) + (prefix[0] != '\0'),
              .visit = visit,
              .context = context};
    int rc = prefix[0] ? cm_key_check(prefix, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    while (store->inner != NULL) /* the innermost has the names */
        store = store->inner;
    w.store = store;
    if (store->ops->walk != NULL) {
        rc = store->ops->walk(store, prefix, visit, context, &why);
    } else {
        rc = cm_store_list_below(store, prefix, visit_stat, &w, &why);
        if (rc == CM_EUNSUPPORTED) /* and nothing was visited */
            rc = cm_store_list(store, prefix, visit_name, &w, &why);
    }
    if (rc == CM_ENOTFOUND)
        return CM_OK;
    if (rc != CM_OK && err != NULL)
        *err = why;
    return rc;
}
