/* Reads many objects behind a network at once, synchronously or not. */
#include <stdlib.h>
#include <string.h>

#include "store/net/s3_known.h"

struct reading {
    cm_store_reading base;
    cm_remote_batch batch;
    atomic_bool unwanted;
};

void cm_remote_expect(cm_http *r, const cm_object_reader *reader)
{
    const cm_remote_reader *opened = (const cm_remote_reader *)reader;
    memcpy(r->if_match, opened->etag, sizeof(r->if_match));
    r->seen = true;
    r->seen_nbytes = reader->nbytes;
    r->seen_modified = opened->modified;
}

void cm_remote_note_change(const cm_http *r, cm_object_reader *reader)
{
    if (r->changed)
        atomic_store(&reader->changed, true);
    if (r->rc != CM_OK && (r->status == 401 || r->status == 403 || r->status == 404))
        atomic_store(&reader->denied, true);
}

static bool is_asked_for(const cm_store_read *read)
{
    return read->reader == NULL ? !read->absent : read->nbytes > 0;
}

static int ask_for(cm_remote_batch *b, const cm_store_read *read, const atomic_bool *unwanted,
                   cm_buf *buf, cm_error *err)
{
    cm_http r = {
        .method = CM_HTTP_GET, .buf = buf, .max_nbytes = read->max_nbytes, .unwanted = unwanted};
    if (read->reader == NULL)
        return cm_remote_batch_add(b, read->key, &r, err);
    r.range = (cm_http_range){CM_HTTP_RANGE, read->offset, read->nbytes};
    r.max_nbytes = read->nbytes;
    cm_remote_expect(&r, read->reader);
    return cm_remote_batch_add(b, read->reader->key, &r, err);
}

static int take(const cm_http *r, cm_store_read *read, cm_error *err)
{
    read->absent = r->rc == CM_ENOTFOUND && read->reader == NULL;
    read->at = r->at;
    read->got_nbytes = read->absent ? 0 : r->got_nbytes;
    if (r->rc == CM_ENOTFOUND && read->reader != NULL)
        atomic_store(&read->reader->denied, true);
    if (r->rc == CM_ENOTFOUND && read->reader != NULL)
        return cm_fail(err, CM_EIO, "%s: is no longer there", read->reader->key);
    return CM_OK;
}

static int ask(cm_remote_batch *b, cm_store *store, cm_store_read *read, size_t n,
               const atomic_bool *unwanted, cm_buf *buf, cm_error *err)
{
    cm_remote *s = cm_remote_of(store);
    int rc = cm_remote_batch_init(b, s, n, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        read[i].at = buf->nbytes;
        read[i].absent = read[i].reader == NULL && cm_s3_known_lacks(s->known, read[i].key);
        if (is_asked_for(&read[i]))
            rc = ask_for(b, &read[i], unwanted, buf, err);
    }
    return rc;
}

/* RC is the result of B's requests. */
static int take_all(const cm_remote_batch *b, cm_store_read *read, size_t n, int rc, cm_error *err)
{
    for (size_t i = 0, k = 0; rc != CM_OK && i < n && k < b->n; i++)
        if (is_asked_for(&read[i]) && read[i].reader != NULL)
            cm_remote_note_change(&b->request[k++], read[i].reader);
        else
            k += is_asked_for(&read[i]);
    for (size_t i = 0, k = 0; rc == CM_OK && i < n; i++)
        if (is_asked_for(&read[i]))
            rc = take(&b->request[k++], &read[i], err);
    return rc;
}

int cm_remote_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err)
{
    cm_remote_batch b;
    int rc = ask(&b, store, read, n, NULL, buf, err);
    if (rc == CM_OK)
        rc = cm_remote_batch_run(&b, err);
    rc = take_all(&b, read, n, rc, err);
    cm_remote_batch_release(&b);
    return rc;
}

/* ---- in two steps ---- */

int cm_remote_read_begin(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                         cm_store_reading **out, cm_error *err)
{
    struct reading *r = cm_calloc(1, sizeof(*r), err);
    if (r == NULL)
        return CM_ENOMEM;
    int rc = ask(&r->batch, store, read, n, &r->unwanted, buf, err);
    if (rc == CM_OK)
        rc = cm_remote_batch_start(&r->batch, err);
    if (rc != CM_OK) {
        cm_remote_batch_release(&r->batch);
        free(r);
        return rc;
    }
    *out = &r->base;
    return CM_OK;
}

void cm_remote_read_cancel(cm_store_reading *reading)
{
    atomic_store(&((struct reading *)reading)->unwanted, true);
}

int cm_remote_read_end(cm_store_reading *reading, cm_error *err)
{
    struct reading *r = (struct reading *)reading;
    int rc = cm_remote_batch_wait(&r->batch, err);
    rc = take_all(&r->batch, reading->read, reading->n, rc, err);
    cm_remote_batch_release(&r->batch);
    free(r);
    return rc;
}
