/*
 * Objects in memory: a hash table of immutable, reference-counted blobs.
 *
 * A put copies its bytes before it takes the lock, and a get after it has taken a reference, so
 * that the lock is never held while data move.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "store/impl.h"

typedef struct blob {
    atomic_size_t references;
    size_t nbytes;
    uint8_t *data;
} blob;

typedef struct entry {
    struct entry *next;
    blob *blob;
    char key[];
} entry;

typedef struct memory_store {
    cm_store base;
    pthread_rwlock_t lock; /* guards the table, not the blobs */
    entry **bucket;
    size_t nbuckets, nentries;
} memory_store;

typedef struct memory_reader {
    cm_object_reader base;
    blob *blob;
} memory_reader;

typedef struct memory_writer {
    cm_object_writer base;
    pthread_mutex_t lock;
    cm_buf data;
} memory_writer;

enum {
    FIRST_BUCKETS = 256
};

static void blob_release(blob *b)
{
    if (b != NULL && atomic_fetch_sub(&b->references, 1) == 1) {
        free(b->data);
        free(b);
    }
}

/* Takes DATA, which free() releases. */
static blob *blob_take(uint8_t *data, size_t nbytes, cm_error *err)
{
    blob *b = cm_calloc(1, sizeof *b, err);
    if (b == NULL) {
        free(data);
        return NULL;
    }
    atomic_init(&b->references, 1);
    b->nbytes = nbytes;
    b->data = data;
    return b;
}

/* The slot that points to KEY's entry, or the NULL slot for it. */
static entry **slot_of(memory_store *m, const char *key)
{
    entry **slot = &m->bucket[cm_key_hash(key, m->nbuckets)];
    while (*slot != NULL && strcmp((*slot)->key, key) != 0)
        slot = &(*slot)->next;
    return slot;
}

static blob *find_blob(cm_store *store, const char *key)
{
    memory_store *m = (memory_store *)store;
    pthread_rwlock_rdlock(&m->lock);
    entry *e = *slot_of(m, key);
    blob *b = e != NULL ? e->blob : NULL;
    if (b != NULL)
        atomic_fetch_add(&b->references, 1);
    pthread_rwlock_unlock(&m->lock);
    return b;
}

static void grow(memory_store *m)
{
    size_t nbuckets = 2 * m->nbuckets;
    entry **bucket = calloc(nbuckets, sizeof(entry *));
    if (bucket == NULL)
        return; /* slower, but correct */
    for (size_t i = 0; i < m->nbuckets; i++) {
        for (entry *e = m->bucket[i], *next; e != NULL; e = next) {
            next = e->next;
            entry **head = &bucket[cm_key_hash(e->key, nbuckets)];
            e->next = *head;
            *head = e;
        }
    }
    free(m->bucket);
    m->bucket = bucket;
    m->nbuckets = nbuckets;
}

/* Sets KEY to B; the table takes the reference. */
static int insert(cm_store *store, const char *key, blob *b, cm_error *err)
{
    memory_store *m = (memory_store *)store;
    size_t nbytes = strlen(key) + 1;
    entry *fresh = cm_calloc(1, sizeof *fresh + nbytes, err);
    if (fresh == NULL) {
        blob_release(b);
        return CM_ENOMEM;
    }
    memcpy(fresh->key, key, nbytes);
    fresh->blob = b;
    pthread_rwlock_wrlock(&m->lock);
    entry **slot = slot_of(m, key);
    if (*slot != NULL) {
        blob *old = (*slot)->blob;
        (*slot)->blob = b;
        fresh->blob = old; /* released below, outside the lock */
    } else {
        *slot = fresh;
        fresh = NULL;
        if (++m->nentries > m->nbuckets)
            grow(m);
    }
    pthread_rwlock_unlock(&m->lock);
    if (fresh != NULL)
        blob_release(fresh->blob);
    free(fresh);
    return CM_OK;
}

static int not_found(const char *key, cm_error *err)
{
    return cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
}

static int memory_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err)
{
    blob *b = find_blob(store, key);
    if (b == NULL)
        return not_found(key, err);
    out->nbytes = b->nbytes;
    blob_release(b);
    return CM_OK;
}

static int memory_put(cm_store *store, const char *key, const void *data, size_t nbytes,
                      cm_error *err)
{
    uint8_t *copy = cm_calloc(nbytes ? nbytes : 1, 1, err);
    if (copy == NULL)
        return CM_ENOMEM;
    if (nbytes)
        memcpy(copy, data, nbytes);
    blob *b = blob_take(copy, nbytes, err);
    return b != NULL ? insert(store, key, b, err) : CM_ENOMEM;
}

static int memory_delete(cm_store *store, const char *key, cm_error *err)
{
    (void)err;
    memory_store *m = (memory_store *)store;
    pthread_rwlock_wrlock(&m->lock);
    entry **slot = slot_of(m, key);
    entry *e = *slot;
    if (e != NULL) {
        *slot = e->next;
        m->nentries--;
    }
    pthread_rwlock_unlock(&m->lock);
    if (e != NULL)
        blob_release(e->blob);
    free(e);
    return CM_OK;
}

static int memory_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                       cm_error *err)
{
    memory_store *m = (memory_store *)store;
    size_t skip = strlen(prefix);
    cm_name_list names = {0};
    int rc = CM_OK;
    pthread_rwlock_rdlock(&m->lock);
    for (size_t i = 0; i < m->nbuckets && rc == CM_OK; i++) {
        for (const entry *e = m->bucket[i]; e != NULL && rc == CM_OK; e = e->next) {
            if (strncmp(e->key, prefix, skip) != 0 || (skip && e->key[skip] != '/'))
                continue;
            rc = cm_name_list_add_path(&names, e->key + skip + (skip != 0), err);
        }
    }
    pthread_rwlock_unlock(&m->lock);
    return cm_name_list_finish(&names, prefix, rc, visit, context, err);
}

static int memory_reader_open(cm_store *store, const char *key, cm_object_reader **out,
                              cm_error *err)
{
    blob *b = find_blob(store, key);
    if (b == NULL)
        return not_found(key, err);
    memory_reader *r = cm_calloc(1, sizeof *r, err);
    char *name = r != NULL ? cm_strdup(key, err) : NULL;
    if (name == NULL) {
        free(r);
        blob_release(b);
        return CM_ENOMEM;
    }
    r->base.store = store;
    r->base.key = name;
    r->base.nbytes = b->nbytes;
    r->blob = b;
    *out = &r->base;
    return CM_OK;
}

static int memory_reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                              cm_error *err)
{
    (void)err; /* the range was checked against nbytes */
    memcpy(dst, ((memory_reader *)reader)->blob->data + offset, nbytes);
    return CM_OK;
}

static void memory_reader_close(cm_object_reader *reader)
{
    blob_release(((memory_reader *)reader)->blob);
    free(reader->key);
    free(reader);
}

static int memory_writer_create(cm_store *store, const char *key, const cm_object_form *form,
                                cm_object_writer **out, cm_error *err)
{
    (void)form;
    memory_writer *w = cm_calloc(1, sizeof *w, err);
    char *name = w != NULL ? cm_strdup(key, err) : NULL;
    if (name == NULL) {
        free(w);
        return CM_ENOMEM;
    }
    w->base.store = store;
    w->base.key = name;
    pthread_mutex_init(&w->lock, NULL);
    *out = &w->base;
    return CM_OK;
}

static int memory_writer_write(cm_object_writer *writer, uint64_t offset, const void *src,
                               size_t nbytes, cm_error *err)
{
    memory_writer *w = (memory_writer *)writer;
    size_t end = (size_t)offset + nbytes;
    int rc = CM_OK;
    pthread_mutex_lock(&w->lock);
    size_t old = w->data.nbytes;
    if (end > w->data.capacity)
        rc = cm_buf_reserve(&w->data, end > 2 * w->data.capacity ? end : 2 * w->data.capacity, err);
    if (rc == CM_OK && end > old) {
        rc = cm_buf_resize(&w->data, end, err);
        if (rc == CM_OK)
            memset(w->data.data + old, 0, end - old);
    }
    if (rc == CM_OK)
        memcpy(w->data.data + offset, src, nbytes);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static void memory_writer_abort(cm_object_writer *writer)
{
    memory_writer *w = (memory_writer *)writer;
    pthread_mutex_destroy(&w->lock);
    cm_buf_release(&w->data);
    free(writer->key);
    free(w);
}

static int memory_writer_commit(cm_object_writer *writer, cm_error *err)
{
    memory_writer *w = (memory_writer *)writer;
    int rc = memory_put(writer->store, writer->key, w->data.data, w->data.nbytes, err);
    memory_writer_abort(writer);
    return rc;
}

static void memory_free(cm_store *store)
{
    memory_store *m = (memory_store *)store;
    for (size_t i = 0; i < m->nbuckets; i++) {
        for (entry *e = m->bucket[i], *next; e != NULL; e = next) {
            next = e->next;
            blob_release(e->blob);
            free(e);
        }
    }
    free(m->bucket);
    pthread_rwlock_destroy(&m->lock);
    free(store->name);
    free(m);
}

static const cm_store_write_ops write_ops = {
    .put = memory_put,
    .delete = memory_delete,
    .sweep = cm_store_sweep_listed,
    .create = memory_writer_create,
    .write = memory_writer_write,
    .commit = memory_writer_commit,
    .abort = memory_writer_abort,
};

static const cm_store_ops memory_ops = {
    .free = memory_free,
    .stat = memory_stat,
    .list = memory_list,
    .open = memory_reader_open,
    .read = memory_reader_read,
    .close = memory_reader_close,
    .write = &write_ops,
};

int cm_store_open_memory(cm_store **out, cm_error *err)
{
    *out = NULL;
    memory_store *m = cm_calloc(1, sizeof *m, err);
    if (m == NULL)
        return CM_ENOMEM;
    m->base.ops = &memory_ops;
    m->base.name = cm_strdup("memory", err);
    m->nbuckets = FIRST_BUCKETS;
    m->bucket = cm_calloc(m->nbuckets, sizeof(entry *), err);
    if (m->base.name == NULL || m->bucket == NULL) {
        free(m->base.name);
        free(m->bucket);
        free(m);
        return CM_ENOMEM;
    }
    pthread_rwlock_init(&m->lock, NULL);
    *out = &m->base;
    return CM_OK;
}
