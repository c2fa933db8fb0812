/* Asynchronous puts and deletes, for kinds of stores that support them. */
#include "store/impl.h"

bool cm_store_writes_async(const cm_store *store)
{
    return store->ops->changes != NULL;
}

static int begin_change(cm_store *store, const char *key, const void *data, size_t nbytes,
                        cm_store_change **out, cm_error *err)
{
    int rc = cm_key_check(key, err);
    if (rc == CM_OK && store->ops->changes == NULL)
        rc = cm_fail(err, CM_EUNSUPPORTED, "%s: has no asynchronous puts", store->name);
    if (rc == CM_OK)
        rc = store->ops->changes->begin(store, key, data, nbytes, out, err);
    if (rc == CM_OK) {
        (*out)->store = store;
        (*out)->puts = data != NULL;
        (*out)->nbytes = nbytes;
    }
    return rc;
}

int cm_store_put_begin(cm_store *store, const char *key, const void *data, size_t nbytes,
                       cm_store_change **out, cm_error *err)
{
    return begin_change(store, key, data != NULL ? data : "", nbytes, out, err);
}

int cm_store_delete_begin(cm_store *store, const char *key, cm_store_change **out, cm_error *err)
{
    return begin_change(store, key, NULL, 0, out, err);
}

bool cm_store_change_done(const cm_store_change *change)
{
    return change->store->ops->changes->done(change);
}

int cm_store_change_end(cm_store_change *change, cm_error *err)
{
    cm_store *store = change->store;
    const bool puts = change->puts;
    const size_t nbytes = change->nbytes;
    int rc = store->ops->changes->end(change, err);
    if (rc == CM_OK && puts)
        cm_store_count_put(store, nbytes);
    return rc;
}
