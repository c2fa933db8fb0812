/*
 * Removes objects of a bucket by a judge's verdicts.  Folders are only names: the level below the
 * prefix is listed, an entered folder is listed whole, and objects are deleted many at once.  An
 * unfinished upload counts as a temporary file beside its object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/net/s3_known.h"
#include "store/net/s3_upload.h"

enum {
    TOGETHER = 64
};

typedef struct sweep {
    cm_remote *store;
    const char *prefix; /* key of the folder */
    cm_store_judge *judge;
    void *context;
    cm_buf doomed;      /* keys to delete, each followed by NUL */
    const char *folder; /* being entered, relative to the prefix */
    char kept[1200];    /* the last folder that is kept, relative to the prefix */
    char seen[1200];    /* the last folder that was entered */
} sweep;

/* ---- judging ---- */

static bool lies_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Whether all folders above BELOW are entered; names are sorted, so each is judged once. */
static bool is_entered(sweep *w, const char *below)
{
    if (lies_in(below, w->kept))
        return false;
    for (const char *slash = strchr(below, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        char folder[1200];
        size_t n = (size_t)(slash - below);
        if (n >= sizeof(folder))
            return false;
        memcpy(folder, below, n);
        folder[n] = '\0';
        if (strcmp(folder, w->seen) == 0 || lies_in(w->seen, folder))
            continue;
        bool kept = w->judge(w->context, folder, CM_ENTRY_FOLDER) == CM_KEEP;
        memcpy(kept ? w->kept : w->seen, folder, n + 1);
        if (kept)
            return false;
    }
    return true;
}

static int doom(sweep *w, const char *below, cm_error *err)
{
    int rc =
        cm_buf_printf(&w->doomed, err, "%s%s%s", w->prefix, *w->prefix != '\0' ? "/" : "", below);
    return rc == CM_OK ? cm_buf_append(&w->doomed, "", 1, err) : rc;
}

static int judge_below(void *context, const char *rest, const cm_object_stat *stat, cm_error *err)
{
    sweep *w = context;
    char below[1200];
    (void)stat;
    int n = snprintf(below, sizeof(below), "%s/%s", w->folder, rest);
    if (n < 0 || (size_t)n >= sizeof(below) || !is_entered(w, below))
        return CM_OK;
    bool goes = w->judge(w->context, below, CM_ENTRY_FILE) == CM_REMOVE;
    return goes ? doom(w, below, err) : CM_OK;
}

static int collect(void *context, const char *name, bool is_prefix, cm_error *err)
{
    return cm_name_list_add(context, name, strlen(name), is_prefix, err);
}

static int judge_name(void *context, const char *name, bool is_prefix, cm_error *err)
{
    sweep *w = context;
    cm_verdict verdict = w->judge(w->context, name, is_prefix ? CM_ENTRY_FOLDER : CM_ENTRY_FILE);
    if (!is_prefix)
        return verdict == CM_REMOVE ? doom(w, name, err) : CM_OK;
    if (verdict == CM_KEEP || strlen(name) >= sizeof(w->seen))
        return CM_OK;
    char *folder = cm_asprintf(err, "%s%s%s", w->prefix, *w->prefix != '\0' ? "/" : "", name);
    if (folder == NULL)
        return CM_ENOMEM;
    w->folder = name;
    w->kept[0] = '\0';
    snprintf(w->seen, sizeof(w->seen), "%s", name);
    int rc = cm_s3_list_below(&w->store->base, folder, judge_below, w, err);
    free(folder);
    return rc;
}

/* ---- removing ---- */

static int remove_doomed(sweep *w, cm_error *err)
{
    const char *end = (const char *)w->doomed.data + w->doomed.nbytes;
    const char *key = (const char *)w->doomed.data;
    int rc = CM_OK;
    while (rc == CM_OK && key < end) {
        cm_remote_batch b;
        rc = cm_remote_batch_init(&b, w->store, TOGETHER, err);
        for (; rc == CM_OK && b.n < TOGETHER && key < end; key += strlen(key) + 1)
            rc = cm_remote_batch_add(&b, key, &(cm_http){.method = CM_HTTP_DELETE}, err);
        if (rc == CM_OK)
            rc = cm_remote_batch_run(&b, err);
        for (size_t i = 0; rc == CM_OK && w->store->known != NULL && i < b.n; i++)
            cm_s3_known_remove(w->store->known, b.request[i].shown);
        cm_remote_batch_release(&b);
    }
    return rc;
}

/* ---- uploads ---- */

static int abort_upload(void *context, const char *key, const char *id, cm_error *err)
{
    sweep *w = context;
    char beside[1300];
    const char *below = key + strlen(w->prefix);
    below += *below == '/';
    const char *slash = strrchr(below, '/');
    snprintf(beside, sizeof(beside), "%.*s.chunkmill-upload.tmp",
             slash != NULL ? (int)(slash + 1 - below) : 0, below);
    if (cm_key_check(below, NULL) != CM_OK || !is_entered(w, below) ||
        w->judge(w->context, beside, CM_ENTRY_TEMPORARY) != CM_REMOVE)
        return CM_OK;
    return cm_s3_upload_abort_listed(w->store, key, id, err);
}

static int abort_uploads(sweep *w, cm_error *err)
{
    w->kept[0] = w->seen[0] = '\0';
    return cm_s3_list_uploads(&w->store->base, w->prefix, abort_upload, w, err);
}

int cm_s3_sweep(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                cm_error *err)
{
    sweep w = {.store = cm_remote_of(store), .prefix = prefix, .judge = judge, .context = context};
    cm_name_list names = {0}; /* directly below the prefix */
    int rc = cm_s3_list(store, prefix, collect, &names, err);
    rc = cm_name_list_finish(&names, "", rc == CM_ENOTFOUND ? CM_OK : rc, judge_name, &w, err);
    if (rc == CM_OK)
        rc = remove_doomed(&w, err);
    if (rc == CM_OK)
        rc = abort_uploads(&w, err);
    cm_buf_release(&w.doomed);
    return rc;
}
