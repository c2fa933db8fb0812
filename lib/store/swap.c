#include "store/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/glibc.h"
#include "store/dir.h"

static bool is_equal(const cm_buf *a, cm_content b)
{
    return a->nbytes == b.nbytes && (b.nbytes == 0 || memcmp(a->data, b.data, b.nbytes) == 0);
}

static int changed(const char *key, cm_error *err)
{
    return cm_fail(err, CM_EEXIST, "%s: was changed by another writer", key);
}

/* Reads KEY and holds it against OLD; one byte more than that is read at most. */
static int compare(cm_store *store, const char *key, cm_content old, bool *same, cm_error *err)
{
    cm_buf now = {0};
    uint64_t nbytes;
    *same = false;
    int rc = cm_store_size(store, key, &nbytes, err);
    if (rc == CM_OK && nbytes == old.nbytes) {
        rc = cm_store_get(store, key, nbytes, &now, err);
        *same = rc == CM_OK && is_equal(&now, old);
    }
    cm_buf_release(&now);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

/* ---- in a bucket ---- */

static int swap_object(cm_store *store, const char *key, cm_content old, cm_content fresh,
                       cm_error *err)
{
    cm_object_tag tag;
    cm_buf now = {0};
    if (old.data == NULL)
        return cm_store_put_if(store, key, fresh.data, fresh.nbytes, NULL, err);
    int rc = cm_store_get_tagged(store, key, (uint64_t)old.nbytes + (1 << 20), &now, &tag, err);
    if (rc == CM_OK && !is_equal(&now, old))
        rc = changed(key, err);
    if (rc == CM_OK)
        rc = cm_store_put_if(store, key, fresh.data, fresh.nbytes, &tag, err);
    cm_buf_release(&now);
    return rc;
}

/* ---- in a folder ---- */

static int take_free_name(int root, const char *path, const char *key, cm_error *err)
{
    /* link() knows no overwriting, and every file system has it that lacks RENAME_NOREPLACE. */
    if (renameat2(root, path, root, key, RENAME_NOREPLACE) == 0)
        return CM_OK;
    if ((errno == EINVAL || errno == ENOSYS) && linkat(root, path, root, key, 0) == 0)
        return CM_OK;
    return errno == EEXIST ? changed(key, err) : cm_fail_errno(err, errno, "%s", key);
}

/* After an exchange: PATH holds what was there. */
static int check_exchanged(cm_store *store, int root, const char *path, const char *key,
                           cm_content old, cm_error *err)
{
    bool same;
    int rc = compare(store, path, old, &same, err);
    if (rc != CM_OK || same)
        return rc;
    if (renameat2(root, path, root, key, RENAME_EXCHANGE) != 0)
        return cm_fail_errno(err, errno, "%s", key);
    return changed(key, err);
}

static int exchange(cm_store *store, int root, const char *path, const char *key, cm_content old,
                    cm_error *err)
{
    bool same;
    int rc = compare(store, key, old, &same, err);
    if (rc != CM_OK)
        return rc;
    if (!same)
        return changed(key, err);
    if (renameat2(root, path, root, key, RENAME_EXCHANGE) == 0)
        return check_exchanged(store, root, path, key, old, err);
    if ((errno == EINVAL || errno == ENOSYS) && renameat(root, path, root, key) == 0)
        return CM_OK;
    return errno == ENOENT ? changed(key, err) : cm_fail_errno(err, errno, "%s", key);
}

static int swap_file(cm_store *store, const char *key, cm_content old, cm_content fresh,
                     cm_error *err)
{
    cm_dir_store *dir = (cm_dir_store *)store;
    char path[80];
    snprintf(path, sizeof(path), ".chunkmill-%ld-%llu.tmp", (long)getpid(),
             (unsigned long long)atomic_fetch_add(&dir->temporary, 1));
    int rc = cm_store_put(store, path, fresh.data, fresh.nbytes, err);
    if (rc != CM_OK)
        return rc;
    rc = old.data == NULL ? take_free_name(dir->root, path, key, err)
                          : exchange(store, dir->root, path, key, old, err);
    (void)unlinkat(dir->root, path, 0);
    return rc;
}

int cm_store_swap(cm_store *store, const char *key, cm_content old, cm_content fresh, cm_error *err)
{
    int rc = cm_key_check(key, err);
    if (rc != CM_OK)
        return rc;
    if (cm_store_is_remote(store))
        return swap_object(store, key, old, fresh, err);
    if (!cm_store_is_dir(store))
        return cm_fail(err, CM_EUNSUPPORTED, "%s: objects cannot be exchanged", store->name);
    return swap_file(store, key, old, fresh, err);
}
