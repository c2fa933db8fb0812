/*
 * Requests over HTTP: question, answer, and the thread that carries them.
 *
 * cm_http_run hands requests to the thread and waits.  Transient failures (lost connections,
 * truncated bodies, busy servers) are repeated there, after a random pause that grows; permanent
 * ones are returned at once.  A request may be sent twice: callers make sure that this does no
 * harm.
 *
 * A web server may redirect a GET or HEAD, but never from https to http, and a password from
 * ~/.netrc goes only to the scheme, host and port it was meant for.
 */
#ifndef CM_STORE_NET_HTTP_H
#define CM_STORE_NET_HTTP_H

#include <chunkmill/net.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "store/net/sum.h"

typedef enum cm_http_method {
    CM_HTTP_GET,
    CM_HTTP_HEAD,
    CM_HTTP_PUT,
    CM_HTTP_POST,
    CM_HTTP_DELETE
} cm_http_method;

enum {
    CM_HTTP_ETAG_SIZE = 136,
    /*
     * libcurl allocates both for each transfer.  A block so large that the heap asks the system for
     * it costs more than the transfer: with 256 KiB, a third of the CPU time of writing objects of
     * 64 KiB.
     */
    CM_HTTP_RECEIVE_NBYTES = 64 << 10,
    CM_HTTP_ANSWER_NBYTES = 16 << 10, /* for requests without an object */
    CM_HTTP_SEND_NBYTES = 120 << 10,
    CM_HTTP_TOGETHER_NBYTES =
        48 << 10, /* a body sent in one call with its headers: libcurl does it to 64 KiB */
    /* Memory of a request under way besides its body: buffers of libcurl and of TLS. */
    CM_HTTP_REQUEST_NBYTES = CM_HTTP_SEND_NBYTES + CM_HTTP_RECEIVE_NBYTES + (128 << 10),
    CM_HTTP_MAX_TEXT = 8 << 20 /* of a listing; less for errors */
};

/* Signs requests; unchanged while requests refer to it. */
typedef struct cm_http_signer {
    const char *key, *secret, *token; /* token: NULL for none */
    const char *scope;                /* "aws:amz:us-east-1:s3" */
} cm_http_signer;

typedef struct cm_http_range {
    enum {
        CM_HTTP_WHOLE,
        CM_HTTP_RANGE,  /* `nbytes` at `offset` */
        CM_HTTP_PREFIX, /* the first `nbytes`, or all if there are fewer; `offset` is 0 */
        CM_HTTP_SUFFIX  /* the last `nbytes`, or all if there are fewer */
    } kind;
    uint64_t offset, nbytes;
} cm_http_range;

typedef struct cm_http {
    cm_http_method method;
    const char *url;              /* with its query, encoded and sorted */
    const char *shown;            /* its name in messages */
    const cm_http_signer *signer; /* NULL: not signed */
    bool s3;                      /* errors are XML, also inside an answer with status 200 */
    bool listing;                 /* counted as a listing */
    const char *secret;           /* an extra secret that is sent; NULL: none */
    bool credentials;             /* sends some: never redirected */
    cm_http_range range;
    char if_match[CM_HTTP_ETAG_SIZE]; /* "": any */
    /* A range of an object seen before: its length and time then; any other is a failure. */
    bool seen;
    uint64_t seen_nbytes;
    int64_t seen_modified; /* 0: unknown */
    bool if_none_match;    /* put only if absent */
    /* PUT: checksum of the body.  GET: checksum to ask for and compare. */
    cm_net_checksum checksum; /* 0: none */
    char sum[CM_SUM_SIZE];    /* of the body */
    const char *header[4];    /* additional lines; NULL ends them */
    const void *body;
    size_t body_nbytes;
    unsigned patience;           /* maximum number of tries; 0: as time allows */
    const atomic_bool *unwanted; /* set when the answer is no longer needed; or NULL */
    uint64_t max_ns;             /* limit for one try; 0: while bytes arrive */

    /* Destination of an object's bytes: DST, exactly as many as the range ... */
    uint8_t *dst;
    /* ... or appended to BUF, at `at`, MAX_NBYTES at most; or, both NULL, `text`. */
    cm_buf *buf;
    uint64_t max_nbytes;

    /* Result.  rc: CM_OK, CM_ENOTFOUND without a message, or a failure. */
    int rc;
    long status;     /* 0: no answer */
    unsigned nasked; /* times it was sent, libcurl's own retries included */
    size_t at, got_nbytes;
    uint64_t total_nbytes; /* of the object */
    bool sized;            /* HEAD: the server told it */
    bool changed;          /* failed: the object is another than IF_MATCH, or than was seen */
    int64_t modified;      /* seconds since 1970; 0: unknown */
    int64_t date;          /* of the answer, by the server's clock; 0: unknown */
    char etag[CM_HTTP_ETAG_SIZE];
    char code[64];                   /* the server's word for an error, "" for none */
    bool checked;                    /* the server gave the same checksum */
    bool expired;                    /* the credentials had expired */
    cm_buf text;                     /* a body that is not an object; cm_http_release frees it */
    struct cm_transfer_state *state; /* private to the thread */
} cm_http;

/*
 * Runs all N, as many at once as the net allows, and waits.  Returns the first failure other than
 * CM_ENOTFOUND, with its message; then others may not have been tried (CM_ECANCELED).
 */
int cm_http_run(cm_net *net, cm_http *request, size_t n, cm_error *err);
/*
 * cm_http_run in two steps: REQUEST and its members stay where they are until cm_http_wait, which
 * frees the call.  cm_http_is_done: waiting would return at once.
 */
typedef struct cm_http_call cm_http_call;
int cm_http_start(cm_net *net, cm_http *request, size_t n, cm_http_call **out, cm_error *err);
bool cm_http_is_done(cm_http_call *call);
int cm_http_wait(cm_http_call *call, cm_error *err);
/*
 * Sends one request without waiting: REQUEST and WHY, its message, stay where they are until the
 * net's thread calls DONE(CONTEXT), which must not block.  If this fails, DONE is not called.
 */
typedef void cm_http_done(void *context);
int cm_http_begin(cm_net *net, cm_http *request, cm_error *why, cm_http_done *done, void *context,
                  cm_error *err);
void cm_http_release(cm_http *request, size_t n);

#endif
