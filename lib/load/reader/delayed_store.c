#include "load/reader/delayed_store.h"

#include <stdlib.h>

#include "base/clock.h"
#include "store/impl.h"

typedef struct delayed {
    cm_store base; /* first */
    cm_delay *delay;
} delayed;

typedef struct delayed_reader {
    cm_object_reader base; /* first */
    cm_object_reader *inner;
} delayed_reader;

static void wait_since(cm_store *store, uint64_t start_ns, uint64_t nrequests, uint64_t nbytes)
{
    cm_delay_wait(((delayed *)store)->delay, nrequests, nbytes, cm_now_ns() - start_ns);
}

static int reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    delayed_reader *r = cm_calloc(1, sizeof(*r), err);
    if (r == NULL)
        return CM_ENOMEM;
    r->base.store = store;
    r->base.key = cm_strdup(key, err);
    int rc = r->base.key != NULL ? cm_object_open(store->inner, key, &r->inner, err) : CM_ENOMEM;
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
    wait_since(reader->store, start, 1, nbytes);
    return rc;
}

static void reader_close(cm_object_reader *reader)
{
    cm_object_close(((delayed_reader *)reader)->inner);
    free(reader->key);
    free(reader);
}

static int read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        uint64_t start = cm_now_ns(), nrequests = 0;
        cm_object_reader *reader = read[i].reader;
        if (reader != NULL)
            read[i].reader = ((delayed_reader *)reader)->inner;
        rc = cm_store_read_more(store->inner, &read[i], 1, buf, &nrequests, err);
        read[i].reader = reader;
        wait_since(store, start, nrequests, read[i].got_nbytes);
    }
    return rc;
}

static void free_store(cm_store *store)
{
    free(store->name);
    free(store);
}

static const cm_store_ops ops = {
    .read_only = "an imitated storage is only read from",
    .free = free_store,
    .open = reader_open,
    .read = reader_read,
    .close = reader_close,
    .read_many = read_many,
};

int cm_store_open_delayed(cm_store *store, cm_delay *delay, cm_store **out, cm_error *err)
{
    delayed *d = cm_calloc(1, sizeof(*d), err);
    if (d == NULL)
        return CM_ENOMEM;
    d->base.ops = &ops;
    d->base.inner = store;
    d->delay = delay;
    if ((d->base.name = cm_strdup(cm_store_name(store), err)) == NULL) {
        free(d);
        return CM_ENOMEM;
    }
    *out = &d->base;
    return CM_OK;
}
