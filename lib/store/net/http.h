/*
 * Requests over HTTP: what is asked, what came back, and the thread that carries them.
 *
 * cm_http_run hands requests to the thread and waits.  Whatever may pass (lost connections, bodies
 * cut short, servers that are busy) is repeated there, after a random pause that grows; what is
 * final comes back at once.  A request is sent again as it is: callers see to it that this does no
 * harm.
 *
 * A web server may send a GET or HEAD elsewhere, but never from https to http, and what ~/.netrc
 * holds for it goes to the scheme, host and port that were asked, and nowhere else.
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
     * libcurl allocates both with each transfer.  A block for which the heap asks the system costs
     * more than what is sent: of 256 KiB, a third of the CPU time of writing objects of 64 KiB.
     */
    CM_HTTP_RECEIVE_NBYTES = 64 << 10,
    CM_HTTP_ANSWER_NBYTES = 16 << 10, /* to what is no question for an object */
    CM_HTTP_SEND_NBYTES = 120 << 10,
    /* What a request under way takes beside its body: libcurl's buffers, and those of TLS. */
    CM_HTTP_REQUEST_NBYTES = CM_HTTP_SEND_NBYTES + CM_HTTP_RECEIVE_NBYTES + (128 << 10),
    CM_HTTP_MAX_TEXT = 8 << 20 /* of a listing; of an error less */
};

/* What signs a request; it stays as it is while requests hold it. */
typedef struct cm_http_signer {
    const char *key, *secret, *token; /* token: NULL for none */
    const char *scope;                /* "aws:amz:us-east-1:s3" */
} cm_http_signer;

typedef struct cm_http_range {
    enum {
        CM_HTTP_WHOLE,
        CM_HTTP_RANGE, /* `nbytes` at `offset` */
        CM_HTTP_SUFFIX /* the last `nbytes`, or all there are */
    } kind;
    uint64_t offset, nbytes;
} cm_http_range;

typedef struct cm_http {
    cm_http_method method;
    const char *url;              /* with its query, encoded and sorted */
    const char *shown;            /* what messages call it */
    const cm_http_signer *signer; /* NULL: not signed */
    bool s3;                      /* errors are XML, also inside an answer that says 200 */
    bool listing;                 /* is counted as one */
    const char *secret;           /* goes along, beside what the signer has; NULL: nothing */
    bool credentials;             /* brings some: goes nowhere but to its address */
    cm_http_range range;
    char if_match[CM_HTTP_ETAG_SIZE]; /* "": any */
    bool if_none_match;               /* only where nothing is there */
    /* Goes with the body of a PUT; of an object that is read it is asked for, and compared. */
    cm_net_checksum checksum; /* 0: none */
    char sum[CM_SUM_SIZE];    /* of the body */
    const char *header[4];    /* more, whole lines; NULL ends them */
    const void *body;
    size_t body_nbytes;
    unsigned patience;           /* tries at most; 0: as many as time allows */
    const atomic_bool *unwanted; /* becomes true when nobody wants the answer any more; or NULL */
    uint64_t max_ns;             /* a try may take; 0: as long as bytes come */

    /* Where the bytes of an object go: DST, exactly as many as the range ... */
    uint8_t *dst;
    /* ... or behind what BUF holds, at `at`, MAX_NBYTES at most; or, both NULL, into `text`. */
    cm_buf *buf;
    uint64_t max_nbytes;

    /* What came back.  rc: CM_OK, CM_ENOTFOUND without a sentence, or why not. */
    int rc;
    long status;     /* 0: no answer */
    unsigned nasked; /* how often it was sent, also where libcurl did that by itself */
    size_t at, got_nbytes;
    uint64_t total_nbytes; /* of the object */
    int64_t modified;      /* seconds since 1970; 0: not said */
    int64_t date;          /* of the answer, by the server's clock; the same */
    char etag[CM_HTTP_ETAG_SIZE];
    char code[64];                   /* the server's word for an error, "" for none */
    bool checked;                    /* the server said the same checksum */
    bool expired;                    /* the credentials were too old */
    cm_buf text;                     /* the body where it is no object; cm_http_release frees it */
    struct cm_transfer_state *state; /* the thread's own */
} cm_http;

/*
 * Runs all N, as many at once as the net allows, and waits.  Returns the first failure that is not
 * CM_ENOTFOUND, with its sentence; then the others may not have been tried (CM_ECANCELED).
 */
int cm_http_run(cm_net *net, cm_http *request, size_t n, cm_error *err);
/*
 * The same in two steps: REQUEST and what it points to stay where they are until the call was
 * waited for, which frees it.  Done: there is nothing to wait for.
 */
typedef struct cm_http_call cm_http_call;
int cm_http_start(cm_net *net, cm_http *request, size_t n, cm_http_call **out, cm_error *err);
bool cm_http_is_done(cm_http_call *call);
int cm_http_wait(cm_http_call *call, cm_error *err);
/*
 * The same for one request, without waiting: REQUEST and WHY, its sentence, stay where they are
 * until DONE(CONTEXT) is called, by the net's thread, which must not be made to wait there.  Where
 * this fails, DONE is not called.
 */
typedef void cm_http_done(void *context);
int cm_http_begin(cm_net *net, cm_http *request, cm_error *why, cm_http_done *done, void *context,
                  cm_error *err);
void cm_http_release(cm_http *request, size_t n);

#endif
