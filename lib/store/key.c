/* Keys: checking them, and sorted lists of the names in them. */
#include <stdlib.h>
#include <string.h>

#include "store/impl.h"

enum {
    /* Leaves room for a temporary name in a path of PATH_MAX (4096) bytes. */
    MAX_KEY_NBYTES = 3900
};

int cm_key_order(const char *key, const char *text, size_t nbytes)
{
    const int order = strncmp(key, text, nbytes);
    return order == 0 && key[nbytes] != '\0' ? 1 : order;
}

int cm_key_check(const char *key, cm_error *err)
{
    if (key[0] == '\0')
        return cm_fail(err, CM_EFORMAT, "a key is empty");
    size_t length = strnlen(key, MAX_KEY_NBYTES + 1);
    if (length > MAX_KEY_NBYTES)
        return cm_fail(err, CM_EFORMAT, "a key is longer than %d bytes: %.60s...", MAX_KEY_NBYTES,
                       key);
    if (key[0] == '/')
        return cm_fail(err, CM_EFORMAT, "key '%s' begins with '/'", key);
    for (const char *name = key;;) {
        size_t nbytes = strcspn(name, "/");
        if (nbytes == 0)
            return cm_fail(err, CM_EFORMAT, "key '%s' has an empty name", key);
        if (name[0] == '.' && (nbytes == 1 || (nbytes == 2 && name[1] == '.')))
            return cm_fail(err, CM_EFORMAT, "key '%s' has the name '%.*s'", key, (int)nbytes, name);
        if (name[nbytes] == '\0')
            return CM_OK;
        name += nbytes + 1;
    }
}

size_t cm_key_hash(const char *key, size_t nbuckets)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; *key; key++)
        h = (h ^ (uint8_t)*key) * 1099511628211u;
    return (size_t)(h % nbuckets);
}

int cm_object_too_long(const char *key, uint64_t nbytes, uint64_t max_nbytes, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: has %llu bytes, more than the %llu that it may have", key,
                   (unsigned long long)nbytes, (unsigned long long)max_nbytes);
}

size_t cm_key_folder(const char *key)
{
    const char *slash = strrchr(key, '/');
    return slash != NULL ? (size_t)(slash - key) : 0;
}

int cm_name_list_add(cm_name_list *list, const char *name, size_t nbytes, bool is_prefix,
                     cm_error *err)
{
    struct cm_name_item *grown =
        cm_make_room(list->item, list->n, &list->capacity, sizeof *grown, 64);
    if (grown == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for a list of %zu names", list->n + 1);
    list->item = grown;
    struct cm_name_item item = {list->text.nbytes, is_prefix};
    int rc = cm_buf_append(&list->text, name, nbytes, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&list->text, "", 1, err);
    if (rc == CM_OK)
        list->item[list->n++] = item;
    return rc;
}

int cm_name_list_add_path(cm_name_list *list, const char *path, cm_error *err)
{
    size_t nbytes = strcspn(path, "/");
    bool is_prefix = path[nbytes] == '/';
    const struct cm_name_item *last = list->n > 0 ? &list->item[list->n - 1] : NULL;
    const char *name = last != NULL ? (const char *)list->text.data + last->offset : "";
    if (is_prefix && last != NULL && last->is_prefix && strncmp(name, path, nbytes) == 0 &&
        name[nbytes] == '\0')
        return CM_OK;
    return cm_name_list_add(list, path, nbytes, is_prefix, err);
}

static int compare_items(const void *a, const void *b, void *text)
{
    const struct cm_name_item *x = a, *y = b;
    int order = strcmp((const char *)text + x->offset, (const char *)text + y->offset);
    return order ? order : (int)y->is_prefix - (int)x->is_prefix;
}

static int visit_names(cm_name_list *list, cm_store_visit *visit, void *context, cm_error *err)
{
    if (list->n == 0)
        return CM_OK;
    const char *text = (const char *)list->text.data;
    qsort_r(list->item, list->n, sizeof *list->item, compare_items, list->text.data);
    const char *last = NULL;
    for (size_t i = 0; i < list->n; i++) {
        const char *name = text + list->item[i].offset;
        if (last != NULL && strcmp(last, name) == 0)
            continue;
        last = name;
        int rc = visit(context, name, list->item[i].is_prefix, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

int cm_name_list_finish(cm_name_list *list, const char *prefix, int rc, cm_store_visit *visit,
                        void *context, cm_error *err)
{
    if (rc == CM_OK && list->n == 0 && *prefix != '\0')
        rc = cm_fail(err, CM_ENOTFOUND, "%s: no such folder", prefix);
    if (rc == CM_OK)
        rc = visit_names(list, visit, context, err);
    free(list->item);
    cm_buf_release(&list->text);
    return rc;
}
