#include "job/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fileurl.h"
#include "format/zarr/writer.h"
#include "job/journal.h"

static bool is_zarr(cm_store *store)
{
    static const char *const marks[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata"};
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (cm_store_size(store, marks[i], NULL, NULL) == CM_OK)
            return true;
    return false;
}

static int is_there(void *context, const char *name, bool is_prefix, cm_error *err)
{
    (void)name;
    (void)is_prefix;
    (void)err;
    *(bool *)context = true;
    return CM_ECANCELED;
}

static bool is_empty(cm_store *store)
{
    bool any = false;
    cm_store_list(store, "", is_there, &any, NULL);
    return !any;
}

int cm_output_check(const char *path, bool overwrite, bool resume, cm_output *out, cm_error *err)
{
    struct stat st;
    *out = (cm_output){0};
    int rc = cm_fileurl_path(path, &out->path, err);
    if (rc != CM_OK)
        return rc;
    path = out->path;
    if (stat(path, &st) != 0)
        return errno == ENOENT ? CM_OK : cm_fail_errno(err, errno, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return cm_fail(err, CM_EEXIST, "%s: is a file, and files are never overwritten", path);
    bool begun = cm_journal_exists(path);
    if (resume && !begun)
        return cm_fail(err, CM_EEXIST, "%s: exists, and is nothing that --resume could finish",
                       path);
    if (!overwrite && !resume)
        return cm_fail(err, CM_EEXIST, "%s: exists; %s", path,
                       begun ? "--resume finishes it, --overwrite begins again"
                             : "--overwrite replaces it");
    rc = cm_store_open_dir(path, false, &out->store, err);
    out->resumes = resume;
    if (rc == CM_OK && !begun && !is_zarr(out->store) && !is_empty(out->store))
        rc =
            cm_fail(err, CM_EEXIST, "%s: is no Zarr store, so --overwrite does not touch it", path);
    return rc;
}

int cm_output_begin(cm_output *out, uint64_t *foreign, cm_error *err)
{
    *foreign = 0;
    if (out->resumes)
        return cm_store_prune(out->store, "", err);
    if (out->store != NULL && cm_journal_exists(out->path)) {
        int rc = cm_journal_give_up(out->path, out->store, err);
        if (rc != CM_OK || !is_zarr(out->store))
            return rc;
    }
    if (out->store != NULL)
        return is_empty(out->store) ? CM_OK : cm_zarr_erase(out->store, foreign, err);
    int rc = cm_store_open_dir(out->path, true, &out->store, err);
    out->made = rc == CM_OK;
    return rc;
}

typedef struct removal {
    cm_store *store;
    const char *prefix;
} removal;

static int remove_entry(void *context, const char *name, bool is_prefix, cm_error *err);

void cm_output_remove_below(cm_store *store, const char *prefix)
{
    removal r = {store, prefix};
    cm_store_list(store, prefix, remove_entry, &r, NULL);
}

static int remove_entry(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const removal *r = context;
    char *key = cm_asprintf(err, "%s%s%s", r->prefix, *r->prefix != '\0' ? "/" : "", name);
    if (key == NULL)
        return CM_ENOMEM;
    if (is_prefix)
        cm_output_remove_below(r->store, key);
    else
        cm_store_delete(r->store, key, NULL);
    free(key);
    return CM_OK;
}

void cm_output_discard(cm_output *out, const char *const *prefix, size_t n)
{
    if (out->store == NULL)
        return;
    if (out->made)
        cm_output_remove_below(out->store, "");
    for (size_t i = 0; i < n && !out->made; i++)
        cm_output_remove_below(out->store, prefix[i]);
    cm_store_prune(out->store, "", NULL);
    /* What is gone cannot be resumed. */
    cm_journal_remove(out->path);
    if (out->made)
        rmdir(out->path);
}

void cm_output_release(cm_output *out)
{
    cm_store_free(out->store);
    free(out->path);
    *out = (cm_output){0};
}
