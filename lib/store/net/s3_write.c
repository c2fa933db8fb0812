/*
 * Writing objects into a bucket: in one request up to 32 MiB, in parts of 16 MiB above, each sent
 * when it is full.  An object appears when its last request is answered, or not at all.
 *
 * All of this may be sent twice where an answer is lost: the same bytes go to the same name.  Only
 * completing an upload cannot, and then the object itself tells.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "store/net/remote.h"
#include "store/net/xml.h"

enum {
    PART_NBYTES = CM_S3_PART_NBYTES,
    SINGLE_PARTS = 2, /* an object of no more is one request */
    HELD_PARTS = CM_S3_WRITER_NBYTES / PART_NBYTES,
    MAX_PARTS = 10000
};

typedef struct part {
    uint8_t *data; /* NULL: not begun, or sent */
    size_t nbytes; /* written, wherever in it */
    bool sent;
    char etag[CM_HTTP_ETAG_SIZE];
    char sum[CM_SUM_SIZE];
} part;

typedef struct s3_writer {
    cm_object_writer base;
    pthread_mutex_t lock; /* of all below, and of the upload's beginning */
    pthread_cond_t sent;  /* a part was */
    size_t nheld;         /* parts in memory */
    size_t nsending;      /* of them, on their way or about to be */
    part *part;
    size_t nparts, room;
    uint64_t end;
    char *upload; /* NULL: not begun */
} s3_writer;

static s3_writer *writer_of(cm_object_writer *w)
{
    return (s3_writer *)w;
}

/* ---- single requests ---- */

static int put_bytes(cm_remote *s, const char *key, const void *data, size_t nbytes, cm_error *err)
{
    cm_http r = {.method = CM_HTTP_PUT, .body = data, .body_nbytes = nbytes};
    int rc = cm_remote_run_key(s, key, NULL, &r, err);
    if (rc == CM_OK && r.rc == CM_ENOTFOUND)
        rc = cm_fail(err, CM_EIO, "%s: there is no such bucket", s->base.name);
    cm_http_release(&r, 1);
    return rc;
}

int cm_s3_put(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err)
{
    return put_bytes(cm_remote_of(store), key, data, nbytes, err);
}

int cm_s3_put_new(cm_store *store, const char *key, const void *data, size_t nbytes,
                  const cm_object_tag *tag, cm_error *err)
{
    cm_remote *s = cm_remote_of(store);
    cm_http r = {
        .method = CM_HTTP_PUT, .body = data, .body_nbytes = nbytes, .if_none_match = tag == NULL};
    if (tag != NULL)
        memcpy(r.if_match, tag->text, sizeof(r.if_match));
    int rc = cm_remote_run_key(s, key, NULL, &r, err);
    if (rc == CM_OK && r.rc == CM_ENOTFOUND)
        rc = CM_EEXIST; /* what was to be replaced is gone */
    if (rc == CM_EIO && r.status == 412)
        rc = CM_EEXIST;
    /* Of two that come in the same moment one is told so. */
    if (rc == CM_EIO && r.status == 409)
        rc = CM_EEXIST;
    cm_http_release(&r, 1);
    return rc;
}

int cm_s3_remove(cm_store *store, const char *key, cm_error *err)
{
    cm_http r = {.method = CM_HTTP_DELETE};
    int rc = cm_remote_run_key(cm_remote_of(store), key, NULL, &r, err);
    cm_http_release(&r, 1);
    return rc;
}

/*
 * A part's bytes, zeroed.  Not from the heap: once one of this size was freed, glibc keeps the next
 * ones, one in the arena of each thread that ever had one.
 */
static uint8_t *new_pages(cm_error *err)
{
    void *p = mmap(NULL, PART_NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        return p;
    cm_fail(err, CM_ENOMEM, "no memory for a part of an object");
    return NULL;
}

static void free_pages(uint8_t *p)
{
    if (p != NULL)
        munmap(p, PART_NBYTES);
}

/* ---- uploads in parts ---- */

/* Lock held. */
static int begin_upload(s3_writer *w, cm_error *err)
{
    char id[2048];
    /* It becomes the object's own type; libcurl would say that it is a form. */
    cm_http r = {.method = CM_HTTP_POST, .header = {"Content-Type: application/octet-stream"}};
    cm_remote *s = cm_remote_of(w->base.store);
    cm_buf encoded = {0};
    if (s->checksum == CM_CHECKSUM_CRC32C)
        r.header[1] = "x-amz-checksum-algorithm: CRC32C"; /* of the parts to come */
    if (w->upload != NULL)
        return CM_OK;
    int rc = cm_remote_run_key(s, w->base.key, "uploads=", &r, err);
    if (rc == CM_OK &&
        (r.rc != CM_OK || !cm_xml_find(r.text.data, r.text.nbytes,
                                       "InitiateMultipartUploadResult/UploadId", id, sizeof(id))))
        rc = cm_fail(err, CM_EIO, "%s: the server begins no upload", w->base.key);
    if (rc == CM_OK)
        rc = cm_url_encode(&encoded, id, false, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&encoded, "", 1, err);
    if (rc == CM_OK)
        w->upload = cm_strdup((const char *)encoded.data, err);
    cm_buf_release(&encoded);
    cm_http_release(&r, 1);
    return rc == CM_OK && w->upload == NULL ? CM_ENOMEM : rc;
}

/* Sends part I, which nobody writes to any more. */
static int send_part(s3_writer *w, size_t i, cm_error *err)
{
    pthread_mutex_lock(&w->lock);
    int rc = begin_upload(w, err);
    part p = w->part[i];
    pthread_mutex_unlock(&w->lock);
    if (rc != CM_OK)
        return rc;
    cm_http r = {.method = CM_HTTP_PUT, .body = p.data, .body_nbytes = p.nbytes};
    char *query = cm_asprintf(err, "partNumber=%zu&uploadId=%s", i + 1, w->upload);
    rc = query == NULL
             ? CM_ENOMEM
             : cm_remote_run_key(cm_remote_of(w->base.store), w->base.key, query, &r, err);
    if (rc == CM_OK && (r.rc != CM_OK || r.etag[0] == '\0'))
        rc = cm_fail(err, CM_EIO, "%s: the server does not take part %zu", w->base.key, i + 1);
    free(query);
    cm_http_release(&r, 1);
    if (rc != CM_OK)
        return rc;
    pthread_mutex_lock(&w->lock);
    memcpy(w->part[i].etag, r.etag, sizeof(r.etag));
    /* A server that did not look at it does not know it in the list of parts either. */
    if (r.checked)
        memcpy(w->part[i].sum, r.sum, sizeof(r.sum));
    w->part[i].sent = true;
    w->part[i].data = NULL;
    w->nheld--;
    pthread_mutex_unlock(&w->lock);
    free_pages(p.data);
    return CM_OK;
}

static void abort_upload(s3_writer *w)
{
    cm_http r = {.method = CM_HTTP_DELETE};
    char *query = w->upload != NULL ? cm_asprintf(NULL, "uploadId=%s", w->upload) : NULL;
    if (query != NULL)
        (void)cm_remote_run_key(cm_remote_of(w->base.store), w->base.key, query, &r, NULL);
    free(query);
    cm_http_release(&r, 1);
}

static int write_list(const s3_writer *w, cm_buf *xml, cm_error *err)
{
    bool summed = cm_remote_of(w->base.store)->checksum == CM_CHECKSUM_CRC32C;
    int rc = cm_buf_printf(xml, err, "<CompleteMultipartUpload>");
    for (size_t i = 0; rc == CM_OK && i < w->nparts; i++) {
        rc = cm_buf_printf(xml, err, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag>", i + 1,
                           w->part[i].etag);
        if (rc == CM_OK && summed && w->part[i].sum[0] != '\0')
            rc = cm_buf_printf(xml, err, "<ChecksumCRC32C>%s</ChecksumCRC32C>", w->part[i].sum);
        if (rc == CM_OK)
            rc = cm_buf_printf(xml, err, "</Part>");
    }
    return rc == CM_OK ? cm_buf_printf(xml, err, "</CompleteMultipartUpload>") : rc;
}

static int complete_upload(s3_writer *w, cm_error *err)
{
    cm_buf xml = {0};
    cm_store *store = w->base.store;
    /* Servers that take it for a form see no body. */
    cm_http r = {.method = CM_HTTP_POST, .header = {"Content-Type: application/xml"}};
    uint64_t nbytes = 0;
    char *query = cm_asprintf(err, "uploadId=%s", w->upload);
    int rc = query == NULL ? CM_ENOMEM : write_list(w, &xml, err);
    r.body = xml.data;
    r.body_nbytes = xml.nbytes;
    if (rc == CM_OK)
        rc = cm_remote_run_key(cm_remote_of(store), w->base.key, query, &r, err);
    /* An earlier answer may have been lost: then the upload is gone, and the object there. */
    if (rc == CM_OK && r.rc == CM_ENOTFOUND) {
        rc = store->ops->size(store, w->base.key, &nbytes, NULL);
        if (rc != CM_OK || nbytes != w->end)
            rc = cm_fail(err, CM_EIO, "%s: the server has lost an upload", w->base.key);
    }
    cm_http_release(&r, 1);
    cm_buf_release(&xml);
    free(query);
    return rc;
}

/* ---- the writer ---- */

int cm_s3_writer_create(cm_store *store, const char *key, cm_object_writer **out, cm_error *err)
{
    s3_writer *w = cm_calloc(1, sizeof(*w), err);
    if (w == NULL)
        return CM_ENOMEM;
    w->base.store = store;
    if ((w->base.key = cm_strdup(key, err)) == NULL) {
        free(w);
        return CM_ENOMEM;
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->sent, NULL);
    *out = &w->base;
    return CM_OK;
}

static void free_writer(s3_writer *w)
{
    for (size_t i = 0; i < w->nparts; i++)
        free_pages(w->part[i].data);
    free(w->part);
    free(w->upload);
    free(w->base.key);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->sent);
    free(w);
}

static bool is_made(const s3_writer *w, size_t i)
{
    return i < w->nparts && (w->part[i].data != NULL || w->part[i].sent);
}

/*
 * Makes room for part I.  Who writes faster than parts are sent waits for one of them; while none
 * is on its way nobody does, for then others may need a part of their own to fill those that are
 * held.  Lock held, but while it waits.
 */
static int make_part(s3_writer *w, size_t i, cm_error *err)
{
    while (!is_made(w, i) && w->nheld >= HELD_PARTS && w->nsending > 0)
        pthread_cond_wait(&w->sent, &w->lock);
    if (i >= MAX_PARTS)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: has more than %d parts of %d MiB", w->base.key,
                       MAX_PARTS, PART_NBYTES >> 20);
    if (i >= w->room) {
        size_t room = 2 * i + 4;
        part *more = realloc(w->part, room * sizeof(*more));
        if (more == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for a part of an object");
        memset(more + w->room, 0, (room - w->room) * sizeof(*more));
        w->part = more;
        w->room = room;
    }
    if (i >= w->nparts)
        w->nparts = i + 1;
    if (w->part[i].data == NULL && !w->part[i].sent) {
        w->part[i].data = new_pages(err);
        w->nheld += w->part[i].data != NULL;
    }
    return w->part[i].data == NULL ? CM_ENOMEM : CM_OK;
}

/* The full parts that nobody has sent, once the object is long; *N of them in LIST.  Lock held. */
static void take_full(s3_writer *w, size_t *list, size_t *n, size_t most)
{
    *n = 0;
    if (w->end <= (uint64_t)SINGLE_PARTS * PART_NBYTES)
        return;
    for (size_t i = 0; i < w->nparts && *n < most; i++) {
        part *p = &w->part[i];
        if (p->data == NULL || p->nbytes < PART_NBYTES || p->sent)
            continue;
        p->sent = true; /* by this thread, soon */
        w->nsending++;
        list[(*n)++] = i;
    }
}

int cm_s3_writer_write(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                       cm_error *err)
{
    s3_writer *w = writer_of(writer);
    const uint8_t *from = src;
    size_t full[8], nfull;
    int rc = CM_OK;
    pthread_mutex_lock(&w->lock);
    while (rc == CM_OK && nbytes > 0) {
        size_t i = (size_t)(offset / PART_NBYTES), at = (size_t)(offset % PART_NBYTES);
        size_t n = nbytes < PART_NBYTES - at ? nbytes : PART_NBYTES - at;
        if ((rc = make_part(w, i, err)) != CM_OK)
            break;
        memcpy(w->part[i].data + at, from, n);
        w->part[i].nbytes += n;
        from += n;
        offset += n;
        nbytes -= n;
    }
    if (offset > w->end)
        w->end = offset;
    take_full(w, full, &nfull, 8);
    pthread_mutex_unlock(&w->lock);
    for (size_t k = 0; k < nfull; k++) {
        if (rc == CM_OK)
            rc = send_part(w, full[k], err);
        pthread_mutex_lock(&w->lock);
        w->nsending--;
        pthread_cond_broadcast(&w->sent);
        pthread_mutex_unlock(&w->lock);
    }
    return rc;
}

static int send_all(s3_writer *w, cm_error *err)
{
    if (w->end <= (uint64_t)SINGLE_PARTS * PART_NBYTES) {
        /* The parts of a short object lie in two places. */
        uint8_t *all = w->nparts > 1 ? cm_calloc(w->end, 1, err) : NULL;
        if (w->nparts > 1 && all == NULL)
            return CM_ENOMEM;
        for (size_t i = 0; all != NULL && i < w->nparts; i++) {
            size_t at = i * PART_NBYTES, n = (size_t)w->end - at;
            if (w->part[i].data != NULL)
                memcpy(all + at, w->part[i].data, n < PART_NBYTES ? n : PART_NBYTES);
        }
        const void *data = all != NULL ? all : w->nparts == 1 ? w->part[0].data : (uint8_t *)"";
        int rc = put_bytes(cm_remote_of(w->base.store), w->base.key, data, (size_t)w->end, err);
        free(all);
        return rc;
    }
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < w->nparts; i++) {
        part *p = &w->part[i];
        if (p->sent)
            continue;
        if (p->data == NULL)
            rc = make_part(w, i, err);
        p->nbytes = i + 1 < w->nparts ? PART_NBYTES : (size_t)(w->end - i * PART_NBYTES);
        if (rc == CM_OK)
            rc = send_part(w, i, err);
    }
    return rc == CM_OK ? complete_upload(w, err) : rc;
}

int cm_s3_writer_commit(cm_object_writer *writer, cm_error *err)
{
    s3_writer *w = writer_of(writer);
    int rc = send_all(w, err);
    if (rc != CM_OK)
        abort_upload(w);
    free_writer(w);
    return rc;
}

void cm_s3_writer_abort(cm_object_writer *writer)
{
    s3_writer *w = writer_of(writer);
    abort_upload(w);
    free_writer(w);
}
