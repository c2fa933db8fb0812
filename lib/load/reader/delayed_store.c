#include "load/reader/delayed_store.h"

#include <stdlib.h>

#include "base/clock.h"
#include "store/impl.h"

typedef struct delayed {
    cm_store base; /* first */
    cm_store *inner;
    cm_delay *delay;
} delayed;

typedef struct delayed_reader {
    cm_object_reader base; /* first */
    cm_object_reader *inner;
} delayed_reader;

static cm_store *inner_of(cm_store *store)
{
    return ((delayed *)store)->inner;
}

static void wait_since(cm_store *store, uint64_t start_ns, uint64_t nbytes)
{
    cm_delay_wait(((delayed *)store)->delay, 1, nbytes, cm_now_ns() - start_ns);
}

/* ---- what is slow ---- */

static int get(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf, cm_error *err)
{
    uint64_t start = cm_now_ns();
    int rc = cm_store_get(inner_of(store), key, max_nbytes, buf, err);
    wait_since(store, start, rc == CM_OK ? buf->nbytes : 0);
    return rc;
}

static int reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    delayed_reader *r = cm_calloc(1, sizeof(*r), err);
    if (r == NULL)
        return CM_ENOMEM;
    r->base.store = store;
    r->base.key = cm_strdup(key, err);
    int rc = r->base.key != NULL ? cm_object_open(inner_of(store), key, &r->inner, err) : CM_ENOMEM;
    if (rc != CM_OK) {
        free(r->base.key);
        free(r);
        return rc;
    }
    r->base.nbytes = cm_object_nbytes(r->inner);
    *out = &r->base;
    return CM_OK;
}

static int reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err)
{
    uint64_t start = cm_now_ns();
    int rc = cm_object_read(((delayed_reader *)reader)->inner, offset, dst, nbytes, err);
    wait_since(reader->store, start, nbytes);
    return rc;
}

/* ---- what passes through ---- */

static void reader_close(cm_object_reader *reader)
{
    cm_object_close(((delayed_reader *)reader)->inner);
    free(reader->key);
    free(reader);
}

static int size(cm_store *store, const char *key, uint64_t *nbytes, cm_error *err)
{
    return cm_store_size(inner_of(store), key, nbytes, err);
}

static int identity(cm_store *store, const char *key, cm_identity *out, cm_error *err)
{
    return cm_store_identity(inner_of(store), key, out, err);
}

static int list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err)
{
    return cm_store_list(inner_of(store), prefix, visit, context, err);
}

static int is_link(cm_store *store, const char *key, bool *out, cm_error *err)
{
    return cm_store_is_link(inner_of(store), key, out, err);
}

static void free_store(cm_store *store)
{
    free(store->name);
    free(store);
}

static const cm_store_ops ops = {
    .read_only = "an imitated storage is only read from",
    .free = free_store,
    .get = get,
    .size = size,
    .identity = identity,
    .list = list,
    .is_link = is_link,
    .reader_open = reader_open,
    .reader_read = reader_read,
    .reader_close = reader_close,
};

int cm_store_open_delayed(cm_store *store, cm_delay *delay, cm_store **out, cm_error *err)
{
    delayed *d = cm_calloc(1, sizeof(*d), err);
    if (d == NULL)
        return CM_ENOMEM;
    d->base.ops = &ops;
    d->inner = store;
    d->delay = delay;
    if ((d->base.name = cm_strdup(cm_store_name(store), err)) == NULL) {
        free(d);
        return CM_ENOMEM;
    }
    *out = &d->base;
    return CM_OK;
}
