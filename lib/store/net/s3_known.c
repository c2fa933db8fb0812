#include "store/net/s3_known.h"

#include <stdlib.h>
#include <string.h>

struct cm_s3_known {
    cm_buf text; /* keys, each with its NUL */
    size_t *at;  /* of each key in TEXT, sorted; deleted keys stay in the order */
    bool *gone;  /* deleted, by the same index */
    size_t n;
    cm_buf uploads; /* key and id in turn, each followed by NUL */
};

static const char *key_of(const cm_s3_known *k, size_t i)
{
    return (const char *)k->text.data + k->at[i];
}

static int append(cm_s3_known *k, const char *key, cm_error *err)
{
    const size_t at = k->text.nbytes;
    int rc = CM_GROW(k->at, k->n, err);
    if (rc == CM_OK)
        rc = CM_GROW(k->gone, k->n, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&k->text, key, strlen(key) + 1, err);
    if (rc != CM_OK)
        return rc;
    k->at[k->n] = at;
    k->gone[k->n++] = false;
    return CM_OK;
}

/* Index of the first key that is not before KEY. */
static size_t find(const cm_s3_known *k, const char *key)
{
    size_t lo = 0, hi = k->n;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (strcmp(key_of(k, middle), key) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

cm_s3_known *cm_s3_known_create(cm_error *err)
{
    return cm_calloc(1, sizeof(cm_s3_known), err);
}

void cm_s3_known_free(cm_s3_known *k)
{
    if (k == NULL)
        return;
    cm_buf_release(&k->text);
    cm_buf_release(&k->uploads);
    free(k->at);
    free(k->gone);
    free(k);
}

/* ---- one key ---- */

bool cm_s3_known_lacks(const cm_s3_known *k, const char *key)
{
    if (k == NULL)
        return false;
    size_t i = find(k, key);
    return i == k->n || k->gone[i] || strcmp(key_of(k, i), key) != 0;
}

int cm_s3_known_add(cm_s3_known *k, const char *key, cm_error *err)
{
    size_t i = k->n > 0 && strcmp(key_of(k, k->n - 1), key) < 0 ? k->n : find(k, key);
    if (i < k->n && strcmp(key_of(k, i), key) == 0) {
        k->gone[i] = false;
        return CM_OK;
    }
    int rc = append(k, key, err);
    if (rc != CM_OK)
        return rc;
    size_t at = k->at[k->n - 1];
    memmove(&k->at[i + 1], &k->at[i], (k->n - 1 - i) * sizeof(k->at[0]));
    memmove(&k->gone[i + 1], &k->gone[i], (k->n - 1 - i) * sizeof(k->gone[0]));
    k->at[i] = at;
    k->gone[i] = false;
    return CM_OK;
}

int cm_s3_known_add_upload(cm_s3_known *k, const char *key, const char *id, cm_error *err)
{
    int rc = cm_buf_append(&k->uploads, key, strlen(key) + 1, err);
    return rc == CM_OK ? cm_buf_append(&k->uploads, id, strlen(id) + 1, err) : rc;
}

void cm_s3_known_remove(cm_s3_known *k, const char *key)
{
    size_t i = find(k, key);
    if (i < k->n && strcmp(key_of(k, i), key) == 0)
        k->gone[i] = true;
}

/* ---- listing ---- */

/* PREFIX with its '/', or "". */
static char *folder_of(const char *prefix, cm_error *err)
{
    return cm_asprintf(err, "%s%s", prefix, *prefix != '\0' ? "/" : "");
}

int cm_s3_known_list(const cm_s3_known *k, const char *prefix, cm_store_visit *visit, void *context,
                     cm_error *err)
{
    cm_name_list names = {0};
    char *folder = folder_of(prefix, err);
    if (folder == NULL)
        return CM_ENOMEM;
    size_t n = strlen(folder);
    int rc = CM_OK;
    for (size_t i = find(k, folder); rc == CM_OK && i < k->n; i++) {
        if (strncmp(key_of(k, i), folder, n) != 0)
            break;
        if (!k->gone[i])
            rc = cm_name_list_add_path(&names, key_of(k, i) + n, err);
    }
    free(folder);
    return cm_name_list_finish(&names, prefix, rc, visit, context, err);
}

int cm_s3_known_below(const cm_s3_known *k, const char *prefix, cm_store_visit_object *visit,
                      void *context, cm_error *err)
{
    const cm_object_stat stat = {0};
    char *folder = folder_of(prefix, err);
    if (folder == NULL)
        return CM_ENOMEM;
    size_t n = strlen(folder);
    int rc = CM_OK;
    for (size_t i = find(k, folder); rc == CM_OK && i < k->n; i++) {
        if (strncmp(key_of(k, i), folder, n) != 0)
            break;
        if (!k->gone[i])
            rc = visit(context, key_of(k, i) + n, &stat, err);
    }
    free(folder);
    return rc;
}

int cm_s3_known_uploads(const cm_s3_known *k, const char *prefix, cm_s3_visit_upload *visit,
                        void *context, cm_error *err)
{
    const char *at = (const char *)k->uploads.data, *end = at + k->uploads.nbytes;
    char *folder = folder_of(prefix, err);
    int rc = folder == NULL ? CM_ENOMEM : CM_OK;
    while (rc == CM_OK && at < end) {
        const char *key = at, *id = key + strlen(key) + 1;
        at = id + strlen(id) + 1;
        if (strncmp(key, folder, strlen(folder)) == 0)
            rc = visit(context, key, id, err);
    }
    free(folder);
    return rc;
}
