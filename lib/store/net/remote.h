/*
 * The inside of a store behind HTTP: remote.c reads, s3_list.c lists, s3_put.c and s3_write.c
 * write.
 */
#ifndef CM_STORE_NET_REMOTE_H
#define CM_STORE_NET_REMOTE_H

#include <stdatomic.h>

#include "store/impl.h"
#include "store/net.h"
#include "store/net/aws.h"
#include "store/net/http.h"
#include "store/net/s3_memory.h"
#include "store/net/url.h"

typedef struct cm_remote {
    cm_store base;
    cm_net *net;
    cm_aws *aws;   /* NULL unless it is a bucket */
    char *address; /* of the bucket, or of the store on a web server; without '/' at the end */
    char *bucket;
    cm_net_checksum checksum;     /* of objects; never AUTO */
    char *prefix;                 /* of keys in the bucket: "" or "a/b/" */
    struct cm_s3_known *known;    /* the cached listing; NULL: ask the server */
    cm_s3_memory pool;            /* memory of objects being written */
    atomic_bool asked_for_bucket; /* whether it is there, where an object was not */
} cm_remote;

static inline cm_remote *cm_remote_of(const cm_store *store)
{
    return (cm_remote *)(uintptr_t)store;
}

/* The address of KEY, to be freed; QUERY is encoded and sorted, or NULL. */
char *cm_remote_url(const cm_remote *s, const char *key, const char *query, cm_error *err);

/*
 * cm_http_run with the store's signature; renews expired credentials once.  CM_ENOTFOUND is left in
 * its request.
 */
int cm_remote_run(cm_remote *s, cm_http *request, size_t n, cm_error *err);

/* Runs R for KEY, with QUERY if it is not NULL.  R keeps the answer, but not the address. */
int cm_remote_run_key(cm_remote *s, const char *key, const char *query, cm_http *r, cm_error *err);

/*
 * cm_http_begin with the store's signature, by another signer than STALE.  R->url and R->shown must
 * be set, and stay until the call.
 */
int cm_remote_begin(cm_remote *s, cm_http *r, const cm_http_signer *stale, cm_error *why,
                    cm_http_done *done, void *context, cm_error *err);

/* Requests sent together, answered in the order in which they were added. */
typedef struct cm_remote_batch {
    cm_remote *store;
    cm_http *request;
    size_t n;
    const cm_http_signer *signer; /* of the requests that were started */
    cm_http_call *call;
} cm_remote_batch;

int cm_remote_batch_init(cm_remote_batch *b, cm_remote *s, size_t room, cm_error *err);
/* Adds R for KEY; the batch owns its address.  `shown` is KEY unless R sets another name. */
int cm_remote_batch_add(cm_remote_batch *b, const char *key, const cm_http *r, cm_error *err);
int cm_remote_batch_run(cm_remote_batch *b, cm_error *err);
/* Runs the batch in two steps. */
int cm_remote_batch_start(cm_remote_batch *b, cm_error *err);
int cm_remote_batch_wait(cm_remote_batch *b, cm_error *err);
void cm_remote_batch_release(cm_remote_batch *b);

/* ---- remote_read.c ---- */
typedef struct cm_remote_reader {
    cm_object_reader base;
    char etag[CM_HTTP_ETAG_SIZE]; /* "": unknown, or weak */
    int64_t modified;             /* 0: unknown */
} cm_remote_reader;

/* Sets what R, a request for a range, must find: the object that READER opened. */
void cm_remote_expect(cm_http *r, const cm_object_reader *reader);
/* Sets READER's flags from the failed answer to R. */
void cm_remote_note_change(const cm_http *r, cm_object_reader *reader);
int cm_remote_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err);
int cm_remote_read_begin(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                         cm_store_reading **out, cm_error *err);
void cm_remote_read_cancel(cm_store_reading *reading);
int cm_remote_read_end(cm_store_reading *reading, cm_error *err);

/* ---- s3_list.c ---- */
int cm_s3_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
               cm_error *err);
int cm_s3_list_below(cm_store *store, const char *prefix, cm_store_visit_object *visit,
                     void *context, cm_error *err);
/* Lists the bucket into STORE's `known`; does nothing if it is there. */
int cm_s3_cache_listing(cm_store *store, cm_error *err);
/* Called for each unfinished upload below PREFIX: its key, and its id. */
typedef int cm_s3_visit_upload(void *context, const char *key, const char *id, cm_error *err);
int cm_s3_list_uploads(cm_store *store, const char *prefix, cm_s3_visit_upload *visit,
                       void *context, cm_error *err);
/* Uploads of KEY, and of keys that begin with it; always asks the server. */
int cm_s3_list_uploads_of(cm_store *store, const char *key, cm_s3_visit_upload *visit,
                          void *context, cm_error *err);

/* ---- s3_put.c, s3_sweep.c ---- */
int cm_s3_put(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err);
int cm_s3_change_begin(cm_store *store, const char *key, const void *data, size_t nbytes,
                       cm_store_change **out, cm_error *err);
bool cm_s3_change_done(const cm_store_change *change);
int cm_s3_change_end(cm_store_change *change, cm_error *err);
int cm_s3_put_if(cm_store *store, const char *key, const void *data, size_t nbytes,
                 const cm_object_tag *tag, cm_error *err);
int cm_s3_delete(cm_store *store, const char *key, cm_error *err);
int cm_s3_sweep(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                cm_error *err);

/* ---- s3_write.c ---- */
int cm_s3_writer_create(cm_store *store, const char *key, const cm_object_form *form,
                        cm_object_writer **out, cm_error *err);
int cm_s3_writer_write(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                       cm_error *err);
int cm_s3_writer_commit(cm_object_writer *writer, cm_error *err);
void cm_s3_writer_abort(cm_object_writer *writer);

#endif
