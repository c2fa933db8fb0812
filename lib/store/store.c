/* The calls of store.h: check keys, count, call the kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/path.h"
#include "store/impl.h"

/* For documents, whatever the limit: metadata of some thousand arrays. */
#define LEAST_DOCUMENT (UINT64_C(16) << 20)

void cm_store_free(cm_store *store)
{
    if (store != NULL)
        store->ops->free(store);
}

const char *cm_store_name(const cm_store *store)
{
    return store->name;
}

uint64_t cm_store_half_memory(uint64_t limit)
{
    const uint64_t half = (limit > 0 ? limit : cm_memory_available()) / 2;
    return half > LEAST_DOCUMENT ? half : LEAST_DOCUMENT;
}

void cm_store_set_part(cm_store *store, uint64_t part)
{
    snprintf(store->tag, sizeof store->tag, "p%llu-", (unsigned long long)part);
}

void cm_store_set_unread(cm_store *store, bool unread)
{
    store->unread = unread;
}

bool cm_store_is_own_temporary(const cm_store *store, const char *path)
{
    static const char prefix[] = ".chunkmill-";
    const char *name = cm_path_last(path);
    return strncmp(name, prefix, sizeof prefix - 1) == 0 &&
           strncmp(name + sizeof prefix - 1, store->tag, strlen(store->tag)) == 0;
}

bool cm_store_is_remote(const cm_store *store)
{
    return store->ops->remote;
}

/* The store that has the names: the innermost, for a wrapper. */
static cm_store *named(const cm_store *store)
{
    while (store->inner != NULL)
        store = store->inner;
    return (cm_store *)(uintptr_t)store;
}

void cm_store_set_memory(cm_store *store, uint64_t nbytes)
{
    named(store)->memory = nbytes;
}

uint64_t cm_store_document_memory(const cm_store *store)
{
    return cm_store_half_memory(named(store)->memory);
}

uint64_t cm_store_index_nbytes(const cm_store *store)
{
    return named(store)->index_nbytes;
}

static int fail_unsupported(const cm_store *store, const char *why, cm_error *err)
{
    return cm_fail(err, CM_EUNSUPPORTED, "%s: %s", store->name, why);
}

int cm_store_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err)
{
    *out = (cm_object_stat){0};
    int rc = cm_key_check(key, err);
    store = named(store);
    return rc != CM_OK ? rc : store->ops->stat(store, key, out, err);
}

int cm_store_size(cm_store *store, const char *key, uint64_t *nbytes, cm_error *err)
{
    cm_object_stat stat;
    int rc = cm_store_stat(store, key, &stat, err);
    if (rc == CM_OK && nbytes != NULL)
        *nbytes = stat.nbytes;
    return rc;
}

bool cm_store_has_identity(const cm_store *store)
{
    return named(store)->ops->identity != NULL;
}

int cm_store_identity(cm_store *store, const char *key, cm_identity *out, cm_error *err)
{
    store = named(store);
    *out = (cm_identity){0};
    return store->ops->identity(store, key, out, err);
}

static int check_writable(const cm_store *store, cm_error *err)
{
    const char *why = store->ops->read_only;
    return why == NULL ? CM_OK : cm_fail(err, CM_EINVAL, "%s: %s", store->name, why);
}

static int check_writing(const cm_store *store, const char *key, cm_error *err)
{
    int rc = cm_key_check(key, err);
    return rc == CM_OK ? check_writable(store, err) : rc;
}

int cm_store_put(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err)
{
    int rc = check_writing(store, key, err);
    if (rc == CM_OK)
        rc = store->ops->write->put(store, key, data, nbytes, err);
    if (rc == CM_OK)
        cm_store_count_put(store, nbytes);
    return rc;
}

int cm_store_put_if(cm_store *store, const char *key, const void *data, size_t nbytes,
                    const cm_object_tag *tag, cm_error *err)
{
    int rc = cm_key_check(key, err);
    if (rc == CM_OK && store->ops->tags == NULL)
        rc = fail_unsupported(store, "has no conditional puts", err);
    if (rc == CM_OK)
        rc = store->ops->tags->put(store, key, data, nbytes, tag, err);
    if (rc == CM_OK)
        cm_store_count_put(store, nbytes);
    return rc;
}

int cm_store_get_tagged(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf,
                        cm_object_tag *tag, cm_error *err)
{
    int rc = cm_key_check(key, err);
    if (rc == CM_OK && store->ops->tags == NULL)
        rc = fail_unsupported(store, "has no tags of objects", err);
    if (rc == CM_OK)
        rc = store->ops->tags->get(store, key, max_nbytes, buf, tag, err);
    if (rc == CM_OK)
        cm_store_count_get(store, buf->nbytes);
    return rc;
}

int cm_store_delete(cm_store *store, const char *key, cm_error *err)
{
    int rc = check_writing(store, key, err);
    return rc != CM_OK ? rc : store->ops->write->delete (store, key, err);
}

int cm_object_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    *out = NULL;
    int rc = cm_key_check(key, err);
    return rc != CM_OK ? rc : store->ops->open(store, key, out, err);
}

int cm_object_open_stat(cm_store *store, const char *key, const cm_object_stat *stat,
                        cm_object_reader **out, cm_error *err)
{
    if (store->ops->opening == NULL || stat->tag[0] == '\0')
        return cm_object_open(store, key, out, err);
    *out = NULL;
    int rc = cm_key_check(key, err);
    return rc != CM_OK ? rc : store->ops->opening->stat(store, key, stat, out, err);
}

int cm_object_open_part(cm_store *store, const char *key, bool at_end, size_t nbytes, cm_buf *buf,
                        cm_object_reader **out, cm_error *err)
{
    *out = NULL;
    int rc = cm_key_check(key, err);
    if (rc != CM_OK)
        return rc;
    if (store->ops->opening != NULL) {
        rc = store->ops->opening->part(store, key, at_end, nbytes, buf, out, err);
        if (rc == CM_OK)
            cm_store_count_get(store, buf->nbytes);
        return rc;
    }
    rc = store->ops->open(store, key, out, err);
    if (rc != CM_OK)
        return rc;
    uint64_t total = (*out)->nbytes;
    if (nbytes > total)
        nbytes = (size_t)total;
    buf->nbytes = 0;
    rc = cm_buf_resize(buf, nbytes, err);
    if (rc == CM_OK)
        rc = cm_object_read(*out, at_end ? total - nbytes : 0, buf->data, nbytes, err);
    if (rc != CM_OK) {
        cm_object_close(*out);
        *out = NULL;
    }
    return rc;
}

uint64_t cm_object_nbytes(const cm_object_reader *reader)
{
    return reader->nbytes;
}

bool cm_object_changed(const cm_object_reader *reader)
{
    return atomic_load(&((cm_object_reader *)(uintptr_t)reader)->changed);
}

bool cm_object_denied(const cm_object_reader *reader)
{
    return atomic_load(&reader->denied);
}

int cm_object_check_range(const cm_object_reader *reader, uint64_t offset, uint64_t nbytes,
                          cm_error *err)
{
    if (offset <= reader->nbytes && nbytes <= reader->nbytes - offset)
        return CM_OK;
    return cm_fail(err, CM_EFORMAT, "%s: %llu bytes wanted at %llu, but the object has %llu bytes",
                   reader->key, (unsigned long long)nbytes, (unsigned long long)offset,
                   (unsigned long long)reader->nbytes);
}

int cm_object_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                   cm_error *err)
{
    int rc = cm_object_check_range(reader, offset, nbytes, err);
    if (rc != CM_OK)
        return rc;
    if (nbytes)
        rc = reader->store->ops->read(reader, offset, dst, nbytes, err);
    if (rc == CM_OK)
        cm_store_count_get(reader->store, nbytes);
    return rc;
}

void cm_object_close(cm_object_reader *reader)
{
    if (reader != NULL)
        reader->store->ops->close(reader);
}

int cm_buf_extend(cm_buf *buf, uint64_t nbytes, cm_error *err)
{
    size_t total;
    if (nbytes > SIZE_MAX || !cm_add_size(buf->nbytes, (size_t)nbytes, &total))
        return cm_fail(err, CM_ENOMEM, "no memory for %llu bytes more", (unsigned long long)nbytes);
    size_t spare = total < SIZE_MAX / 2 ? total + total / 4 : total;
    /* Give a single object an exact buffer: buffers of chunks count against memory. */
    if (total > buf->capacity && buf->nbytes > 0 &&
        (!buf->max_nbytes || spare <= buf->max_nbytes)) {
        int rc = cm_buf_reserve(buf, spare, err);
        if (rc != CM_OK)
            return rc;
    }
    /* Empty objects get a place, too: callers point into the buffer. */
    int rc = cm_buf_reserve(buf, total > 0 ? total : 1, err);
    return rc != CM_OK ? rc : cm_buf_resize(buf, total, err);
}

int cm_object_create(cm_store *store, const char *key, const cm_object_form *form,
                     cm_object_writer **out, cm_error *err)
{
    static const cm_object_form unknown;
    *out = NULL;
    int rc = check_writing(store, key, err);
    if (rc != CM_OK)
        return rc;
    return store->ops->write->create(store, key, form != NULL ? form : &unknown, out, err);
}

int cm_object_write(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                    cm_error *err)
{
    if (nbytes == 0)
        return CM_OK;
    if (offset > INT64_MAX || nbytes > (uint64_t)INT64_MAX - offset)
        return cm_fail(err, CM_EINVAL, "%s: an object cannot reach %llu + %zu bytes", writer->key,
                       (unsigned long long)offset, nbytes);
    int rc = writer->store->ops->write->write(writer, offset, src, nbytes, err);
    if (rc == CM_OK)
        atomic_fetch_add_explicit(&writer->written, nbytes, memory_order_relaxed);
    return rc;
}

int cm_object_commit(cm_object_writer *writer, cm_error *err)
{
    cm_store *store = writer->store;
    uint64_t nbytes = atomic_load(&writer->written);
    int rc = store->ops->write->commit(writer, err);
    if (rc == CM_OK)
        cm_store_count_put(store, nbytes);
    return rc;
}

void cm_store_limit(cm_store *store, const cm_store_limits *limits)
{
    if (store->ops->memory != NULL)
        store->ops->memory->limit(store, limits);
}

size_t cm_store_writer_nbytes(const cm_store *store, const cm_object_form *form)
{
    return store->ops->memory != NULL ? store->ops->memory->writer_nbytes(store, form) : 0;
}

size_t cm_store_piece_nbytes(const cm_store *store)
{
    return store->ops->memory != NULL ? store->ops->memory->piece_nbytes(store) : 0;
}

size_t cm_store_put_nbytes(const cm_store *store)
{
    const cm_store_memory_ops *memory = store->ops->memory;
    return memory != NULL && memory->put_nbytes != NULL ? memory->put_nbytes(store) : 0;
}

size_t cm_store_request_nbytes(const cm_store *store)
{
    return store->ops->request_nbytes;
}

void cm_object_abort(cm_object_writer *writer)
{
    if (writer != NULL)
        writer->store->ops->write->abort(writer);
}

int cm_store_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                  cm_error *err)
{
    int rc = prefix[0] ? cm_key_check(prefix, err) : CM_OK;
    store = named(store);
    return rc != CM_OK ? rc : store->ops->list(store, prefix, visit, context, err);
}

static int see_first(void *any, const char *name, bool is_prefix, cm_error *err)
{
    (void)name, (void)is_prefix, (void)err;
    *(bool *)any = true;
    return CM_ECANCELED;
}

int cm_store_has_any(cm_store *store, const char *prefix, bool *out, cm_error *err)
{
    *out = false;
    int rc = cm_store_list(store, prefix, see_first, out, err);
    return *out ? CM_OK : rc;
}

int cm_store_list_below(cm_store *store, const char *prefix, cm_store_visit_object *visit,
                        void *context, cm_error *err)
{
    int rc = prefix[0] ? cm_key_check(prefix, err) : CM_OK;
    store = named(store);
    if (rc == CM_OK && store->ops->list_below == NULL)
        rc = fail_unsupported(store, "is not listed as a whole", err);
    return rc != CM_OK ? rc : store->ops->list_below(store, prefix, visit, context, err);
}

int cm_store_cache_listing(cm_store *store, cm_error *err)
{
    return store->ops->listing != NULL ? store->ops->listing->cache(store, err) : CM_OK;
}

void cm_store_drop_listing(cm_store *store)
{
    if (store != NULL && store->ops->listing != NULL)
        store->ops->listing->drop(store);
}

int cm_store_sync(cm_store *store, cm_error *err)
{
    int rc = check_writable(store, err);
    return rc != CM_OK || store->ops->sync == NULL ? rc : store->ops->sync(store, err);
}

int cm_store_complete(cm_store *store, cm_error *err)
{
    int rc = check_writable(store, err);
    return rc != CM_OK || store->ops->write->complete == NULL
               ? rc
               : store->ops->write->complete(store, err);
}

int cm_store_is_link(cm_store *store, const char *key, bool *out, cm_error *err)
{
    *out = false;
    int rc = cm_key_check(key, err);
    store = named(store);
    return rc != CM_OK || store->ops->links == NULL
               ? rc
               : store->ops->links->is_link(store, key, out, err);
}

int cm_store_kind(cm_store *store, const char *key, cm_entry_kind *out, cm_error *err)
{
    *out = CM_ENTRY_NONE;
    int rc = cm_key_check(key, err);
    if (rc != CM_OK)
        return rc;
    store = named(store);
    if (store->ops->links != NULL)
        return store->ops->links->kind(store, key, out, err);
    bool any;
    if (store->ops->listing != NULL ? store->ops->listing->has(store, key)
                                    : cm_store_size(store, key, NULL, NULL) == CM_OK)
        *out = CM_ENTRY_FILE;
    else if (cm_store_has_any(store, key, &any, NULL) != CM_ENOTFOUND)
        *out = CM_ENTRY_FOLDER;
    return CM_OK;
}

int cm_store_sweep(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                   cm_error *err)
{
    int rc = prefix[0] ? cm_key_check(prefix, err) : CM_OK;
    if (rc == CM_OK)
        rc = check_writable(store, err);
    return rc != CM_OK ? rc : store->ops->write->sweep(store, prefix, judge, context, err);
}

static cm_verdict judge_temporary(void *deep, const char *below, cm_entry_kind kind)
{
    (void)below;
    if (kind == CM_ENTRY_TEMPORARY)
        return CM_REMOVE;
    return kind == CM_ENTRY_FOLDER && *(const bool *)deep ? CM_ENTER : CM_KEEP;
}

int cm_store_sweep_temporaries(cm_store *store, const char *prefix, bool deep, cm_error *err)
{
    return cm_store_sweep(store, prefix, judge_temporary, &deep, err);
}

cm_store_counts cm_store_count(const cm_store *store)
{
    return (cm_store_counts){
        .nget = atomic_load(&store->nget),
        .get_nbytes = atomic_load(&store->get_nbytes),
        .nput = atomic_load(&store->nput),
        .put_nbytes = atomic_load(&store->put_nbytes),
    };
}
