/* Many reads at once: checked, counted, done by the kind. */
#include <string.h>

#include "store/impl.h"

/* Appends one whole object to BUF, for kinds without read_many. */
static int append_object(cm_store *store, cm_store_read *read, cm_buf *buf, cm_error *err)
{
    cm_object_reader *reader;
    int rc = store->ops->open(store, read->key, &reader, err);
    if (rc != CM_OK)
        return rc;
    uint64_t nbytes = reader->nbytes;
    size_t at = buf->nbytes;
    if (nbytes > read->max_nbytes)
        rc = cm_object_too_long(read->key, nbytes, read->max_nbytes, err);
    if (rc == CM_OK)
        rc = cm_buf_extend(buf, nbytes, err);
    if (rc == CM_OK && nbytes)
        rc = store->ops->read(reader, 0, buf->data + at, (size_t)nbytes, err);
    cm_object_close(reader);
    read->got_nbytes = rc != CM_OK ? 0 : (size_t)nbytes;
    return rc;
}

static int append_range(cm_store *store, cm_store_read *read, cm_buf *buf, cm_error *err)
{
    size_t at = buf->nbytes;
    int rc = cm_buf_extend(buf, read->nbytes, err);
    if (rc == CM_OK && read->nbytes)
        rc =
            store->ops->read(read->reader, read->offset, buf->data + at, (size_t)read->nbytes, err);
    read->got_nbytes = rc != CM_OK ? 0 : (size_t)read->nbytes;
    return rc;
}

int cm_store_read_each(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        read[i].at = buf->nbytes;
        int rc = read[i].reader != NULL ? append_range(store, &read[i], buf, err)
                                        : append_object(store, &read[i], buf, err);
        read[i].absent = rc == CM_ENOTFOUND && read[i].reader == NULL;
        if (rc != CM_OK && !read[i].absent)
            return rc;
    }
    return CM_OK;
}

static int check_reads(const cm_store *store, cm_store_read *read, size_t n, cm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        cm_store_read *r = &read[i];
        r->absent = false;
        r->at = r->got_nbytes = 0;
        r->nrequests = 1;
        if (r->reader == NULL && (r->offset != 0 || r->nbytes != UINT64_MAX))
            return cm_fail(err, CM_EINVAL, "%s: only whole objects are read by key", r->key);
        if (r->reader != NULL && r->reader->store != store)
            return cm_fail(err, CM_EINTERNAL, "%s: was opened in another store", r->reader->key);
        int rc = r->reader != NULL ? cm_object_check_range(r->reader, r->offset, r->nbytes, err)
                                   : cm_key_check(r->key, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

/* Counts reads that ended with RC. */
static int count_reads(cm_store *store, const cm_store_read *read, size_t n, int rc,
                       uint64_t *nrequests)
{
    for (size_t i = 0; i < n; i++) {
        *nrequests += read[i].nrequests;
        if (rc == CM_OK && !read[i].absent)
            cm_store_count_get(store, read[i].got_nbytes);
    }
    return rc;
}

int cm_store_read_more(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                       uint64_t *nrequests, cm_error *err)
{
    int rc = check_reads(store, read, n, err);
    if (rc != CM_OK)
        return rc;
    rc = store->ops->read_many != NULL ? store->ops->read_many(store, read, n, buf, err)
                                       : cm_store_read_each(store, read, n, buf, err);
    return count_reads(store, read, n, rc, nrequests);
}

bool cm_store_joins_reads(const cm_store *store)
{
    return store->ops->count_requests != NULL;
}

int cm_store_count_requests(cm_store *store, cm_store_read *read, size_t n, uint64_t *nrequests,
                            cm_error *err)
{
    int rc = check_reads(store, read, n, err);
    if (rc == CM_OK && store->ops->count_requests != NULL)
        rc = store->ops->count_requests(store, read, n, err);
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        *nrequests += read[i].nrequests;
    return rc;
}

int cm_store_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                       uint64_t *nrequests, cm_error *err)
{
    *nrequests = 0;
    buf->nbytes = 0; /* so that growing copies nothing */
    return cm_store_read_more(store, read, n, buf, nrequests, err);
}

bool cm_store_reads_async(const cm_store *store)
{
    return store->ops->reading != NULL;
}

int cm_store_read_begin(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                        cm_store_reading **out, cm_error *err)
{
    if (store->ops->reading == NULL)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: has no asynchronous reads", store->name);
    int rc = check_reads(store, read, n, err);
    if (rc == CM_OK)
        rc = store->ops->reading->begin(store, read, n, buf, out, err);
    if (rc == CM_OK) {
        (*out)->store = store;
        (*out)->read = read;
        (*out)->n = n;
    }
    return rc;
}

void cm_store_read_cancel(cm_store_reading *reading)
{
    reading->store->ops->reading->cancel(reading);
}

int cm_store_read_end(cm_store_reading *reading, uint64_t *nrequests, cm_error *err)
{
    cm_store *store = reading->store;
    const cm_store_read *read = reading->read;
    const size_t n = reading->n;
    return count_reads(store, read, n, store->ops->reading->end(reading, err), nrequests);
}

int cm_store_get(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf, cm_error *err)
{
    cm_store_read read = {.key = key, .nbytes = UINT64_MAX, .max_nbytes = max_nbytes};
    uint64_t nrequests;
    int rc = cm_store_read_many(store, &read, 1, buf, &nrequests, err);
    if (rc == CM_OK && read.absent)
        rc = cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
    if (rc != CM_OK)
        return rc;
    if (read.at > 0 && read.got_nbytes > 0) /* remove the bytes of an earlier try */
        memmove(buf->data, buf->data + read.at, read.got_nbytes);
    buf->nbytes = read.got_nbytes;
    return CM_OK;
}
