/*
 * The inside of a net's thread: loop.c queues and waits, transfer.c calls libcurl, verdict.c judges
 * answers.
 */
#ifndef CM_STORE_NET_LOOP_H
#define CM_STORE_NET_LOOP_H

#include <curl/curl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "store/net/http.h"

enum {
    CM_NET_MAX_CONCURRENCY = 128, /* upper bound for the adapted limit; more may be set */
    CM_NET_FIRST_CONCURRENCY = 16,
    /* Tries while no server has answered yet, and after invalid answers. */
    CM_NET_PATIENCE_FIRST = 4,
    CM_NET_MAX_SENT_ON = 5 /* redirects of a request */
};

/* One call of cm_http_run, or of cm_http_begin. */
typedef struct cm_http_group {
    /* Posted for the waiting caller, without a lock, so that many can be woken at once. */
    sem_t done;
    size_t npending;
    cm_error *err; /* the first failure's */
    int rc;
    /* Asynchronous calls: */
    cm_http_done *call;
    void *context;
    SLIST_ENTRY(cm_http_group) next; /* in the list of finished calls */
} cm_http_group;

/* State of a request. */
typedef struct cm_transfer_state {
    cm_net *net;
    cm_http *request;
    cm_http_group *group;
    TAILQ_ENTRY(cm_transfer_state) next;
    CURL *easy;
    char *elsewhere; /* redirect target; NULL: the request's own address */
    unsigned nsent_on;
    struct curl_slist *headers;
    char message[CURL_ERROR_SIZE];
    unsigned ntries;
    uint64_t due_ns;      /* time of the next try */
    uint64_t failing_ns;  /* since when it has been failing; 0: it is not */
    uint64_t begun_ns;    /* start of this try */
    uint64_t progress_ns; /* its last bytes */
    uint64_t body_ns;     /* the first bytes of its body */
    /* Of this try: */
    size_t nsent;
    size_t header_nbytes;
    uint64_t ngot; /* of the body, wherever they went */
    bool has_length, has_range, is_xml;
    bool to_text;  /* the body is an error, or not an object */
    bool placed;   /* room for the object is reserved, also for further tries */
    bool too_much; /* the server sent more than was asked for */
    bool enough;   /* an error's text was cut: stopped waiting for the rest */
    size_t room;
    cm_buf own; /* an object of unknown length */
    uint64_t length, range_first, range_last;
    uint64_t retry_after_ns;
    cm_sum_said said;     /* checksums in the answer */
    bool summed, checked; /* the object has one; it was compared */
    char region[40];      /* the bucket's region, by the server */
    bool doubtful;        /* the length in the answer is invalid: retry a few times only */
    int broken;           /* a status: the transfer was aborted */
    cm_error broken_why;
} cm_transfer_state;

TAILQ_HEAD(cm_transfer_list, cm_transfer_state);

/* cm_net_counts, of all processes: forked ones share this memory, and may be killed at any time. */
typedef struct cm_net_tally {
    _Atomic uint64_t get, head, put, post, remove, list;
    _Atomic uint64_t received_nbytes, sent_nbytes;
    _Atomic uint64_t nretries, nthrottled, throttled_ns;
    _Atomic uint64_t nconnections;
    _Atomic uint64_t nsummed, nchecked;
    _Atomic uint64_t first_byte_ns, ntimed;
} cm_net_tally;

struct cm_net {
    cm_net_settings settings;
    pthread_mutex_t lock; /* guards everything up to the next blank line */
    pthread_t thread;
    atomic_bool abandoned;
    atomic_int process; /* process that runs the thread; 0: none; -1: being decided */
    uint64_t timeout_ns;
    bool stopping;
    bool asleep; /* idle, and must be woken for new requests */
    struct cm_transfer_list waiting;
    size_t nwaiting;
    unsigned limit;
    cm_net_tally *tally;   /* fixed; needs no lock */
    struct cm_aws *aws;    /* credentials; found when first needed */
    struct cm_aws *google; /* the same for "gs://" */
    const char *trust;     /* bundle of trusted certificates; NULL: libcurl's own; fixed */
    void (*forget_parent)(cm_net *net); /* called in a forked process, for AWS */

    /* Private to the thread: */
    CURLM *multi;
    struct cm_transfer_list active, delayed;
    SLIST_HEAD(, cm_http_group) ended; /* finished, callers not yet told */
    size_t nactive;
    CURL **idle;
    size_t nidle, idle_room;
    bool answered; /* some server has answered since the net was made */
    uint64_t random;
    /* Adapting the number of concurrent requests: */
    bool growing;
    uint64_t window_ns, window_nbytes, window_n, slowed_ns;
    double best_rate;
    unsigned best_limit;
};

/* ---- loop.c ---- */

/* Fills in NET, zeroed but for its settings.  The thread starts with the first request. */
void cm_loop_init(cm_net *net);
void cm_loop_stop(cm_net *net);
/* Has the thread, if there is one, look at net->abandoned. */
void cm_loop_wake(cm_net *net);

/* Whether the failed T is tried again; then sets T->due_ns. */
bool cm_net_tries_again(cm_net *net, cm_transfer_state *t);

/* ---- transfer.c ---- */

/* Prepares T->easy for another try.  CM_ENOMEM. */
int cm_transfer_prepare(cm_transfer_state *t, cm_error *err);
/* The next try uses the request's own address again. */
void cm_transfer_come_back(cm_transfer_state *t);
/* Frees the memory of a try, except for the easy handle. */
void cm_transfer_release(cm_transfer_state *t);

/* ---- verdict.c ---- */

typedef enum cm_verdict_http {
    CM_HTTP_DONE, /* request->rc is the result */
    CM_HTTP_AGAIN,
    CM_HTTP_SLOWER,   /* again, with fewer at once */
    CM_HTTP_ELSEWHERE /* at once, at T->elsewhere */
} cm_verdict_http;

/*
 * Judges the end of a try with RESULT.  DONE: sets rc, and ERR with it; AGAIN: sets ERR to the
 * reason for repeating it, for the case that time runs out.
 */
cm_verdict_http cm_http_judge(cm_transfer_state *t, CURLcode result, cm_error *err);

#endif
