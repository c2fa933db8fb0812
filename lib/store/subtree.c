#include "store/subtree.h"

#include <stdlib.h>

#include "store/impl.h"

typedef struct subtree {
    cm_store base;
    cm_store_ops ops; /* those below, and the network of the store */
    cm_store *whole;
    char *prefix;
} subtree;

static subtree *of(const cm_store *store)
{
    return (subtree *)(uintptr_t)store;
}

static char *key_of(const subtree *s, const char *key, cm_error *err)
{
    return cm_asprintf(err, "%s%s%s", s->prefix, *key != '\0' ? "/" : "", key);
}

static int subtree_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err)
{
    char *whole = key_of(of(store), key, err);
    int rc = whole == NULL ? CM_ENOMEM : cm_store_stat(of(store)->whole, whole, out, err);
    free(whole);
    return rc;
}

static int subtree_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                        cm_error *err)
{
    char *whole = key_of(of(store), prefix, err);
    int rc =
        whole == NULL ? CM_ENOMEM : cm_store_list(of(store)->whole, whole, visit, context, err);
    free(whole);
    return rc;
}

/* An object of the whole store. */
typedef struct part {
    cm_object_reader base;
    cm_object_reader *object;
} part;

static void subtree_close(cm_object_reader *reader)
{
    part *p = (part *)reader;
    cm_object_close(p->object);
    free(p->base.key);
    free(p);
}

static int subtree_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    part *p = cm_calloc(1, sizeof(*p), err);
    char *whole = p != NULL ? key_of(of(store), key, err) : NULL;
    if (p == NULL)
        return CM_ENOMEM;
    p->base.store = store;
    p->base.key = cm_strdup(key, err);
    int rc = whole == NULL || p->base.key == NULL
                 ? CM_ENOMEM
                 : cm_object_open(of(store)->whole, whole, &p->object, err);
    free(whole);
    if (rc != CM_OK) {
        subtree_close(&p->base);
        return rc;
    }
    p->base.nbytes = cm_object_nbytes(p->object);
    *out = &p->base;
    return CM_OK;
}

static int subtree_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                        cm_error *err)
{
    return cm_object_read(((part *)reader)->object, offset, dst, nbytes, err);
}

/* The reads with the whole store's keys and readers; results go back. */
static int subtree_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                             cm_error *err)
{
    cm_store_read *whole = cm_calloc(n, sizeof(*whole), err);
    char **key = cm_calloc(n, sizeof(*key), err);
    uint64_t nrequests = 0;
    int rc = whole == NULL || key == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        whole[i] = read[i];
        if (read[i].reader != NULL)
            whole[i].reader = ((part *)read[i].reader)->object;
        else if ((whole[i].key = key[i] = key_of(of(store), read[i].key, err)) == NULL)
            rc = CM_ENOMEM;
    }
    if (rc == CM_OK)
        rc = cm_store_read_more(of(store)->whole, whole, n, buf, &nrequests, err);
    for (size_t i = 0; i < n && whole != NULL && key != NULL; i++) {
        read[i].absent = whole[i].absent;
        read[i].at = whole[i].at;
        read[i].got_nbytes = whole[i].got_nbytes;
        read[i].nrequests = whole[i].nrequests;
        free(key[i]);
    }
    free(whole);
    free(key);
    return rc;
}

static void subtree_free(cm_store *store)
{
    subtree *s = of(store);
    cm_store_free(s->whole);
    free(s->prefix);
    free(s->base.name);
    free(s);
}

static const cm_store_ops subtree_ops = {.read_only = "a part of it is only read from",
                                         .free = subtree_free,
                                         .stat = subtree_stat,
                                         .list = subtree_list,
                                         .open = subtree_open,
                                         .read = subtree_read,
                                         .close = subtree_close,
                                         .read_many = subtree_read_many};

int cm_store_subtree(cm_store *store, const char *prefix, cm_store **out, cm_error *err)
{
    subtree *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL) {
        cm_store_free(store);
        return CM_ENOMEM;
    }
    s->ops = subtree_ops;
    s->ops.remote = store->ops->remote;
    s->ops.request_nbytes = store->ops->request_nbytes;
    s->base.ops = &s->ops;
    s->whole = store;
    s->base.index_nbytes = store->index_nbytes;
    s->base.name = cm_asprintf(err, "%s::%s", cm_store_name(store), prefix);
    s->prefix = cm_strdup(prefix, err);
    if (s->base.name == NULL || s->prefix == NULL) {
        subtree_free(&s->base);
        return CM_ENOMEM;
    }
    *out = &s->base;
    return CM_OK;
}
