/* Sweeping a store without folders: by its listings, object by object. */
#include <stdlib.h>
#include <string.h>

#include "store/impl.h"

typedef struct list_sweep {
    cm_store *store;
    const char *folder; /* key */
    size_t skip;        /* of a key, up to the name below the prefix */
    cm_store_judge *judge;
    void *context;
} list_sweep;

static int sweep_listed(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const list_sweep *w = context;
    char *key = cm_asprintf(err, "%s%s%s", w->folder, w->folder[0] ? "/" : "", name);
    if (key == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    cm_verdict verdict =
        w->judge(w->context, key + w->skip, is_prefix ? CM_ENTRY_FOLDER : CM_ENTRY_FILE);
    if (is_prefix && verdict != CM_KEEP) {
        list_sweep below = *w;
        below.folder = key;
        rc = cm_store_list(w->store, key, sweep_listed, &below, err);
    } else if (!is_prefix && verdict == CM_REMOVE) {
        rc = cm_store_delete(w->store, key, err);
    }
    free(key);
    return rc;
}

int cm_store_sweep_listed(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                          cm_error *err)
{
    list_sweep w = {store, prefix, strlen(prefix) + (prefix[0] != '\0'), judge, context};
    int rc = cm_store_list(store, prefix, sweep_listed, &w, err);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}
