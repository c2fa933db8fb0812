/*
 * The thread of a net from inside: loop.c queues and waits, transfer.c speaks with libcurl,
 * verdict.c judges answers.
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
    CM_NET_MAX_CONCURRENCY = 128, /* that is found; more may be asked for */
    CM_NET_FIRST_CONCURRENCY = 16,
    CM_NET_PATIENCE_FIRST = 4, /* tries while nobody has answered yet, and at what makes no sense */
    CM_NET_MAX_SENT_ON = 5     /* how often a request is sent elsewhere */
};

/* One call of cm_http_run, or of cm_http_begin. */
typedef struct cm_http_group {
    sem_t done; /* where somebody waits: who is woken needs no lock, so many may be at once */
    size_t npending;
    cm_error *err; /* the first failure's */
    int rc;
    /* Where nobody waits: */
    cm_http_done *call;
    void *context;
    SLIST_ENTRY(cm_http_group) next; /* of those that are done */
} cm_http_group;

/* A request on its way. */
typedef struct cm_transfer_state {
    cm_net *net;
    cm_http *request;
    cm_http_group *group;
    TAILQ_ENTRY(cm_transfer_state) next;
    CURL *easy;
    char *elsewhere; /* the address that the server gave; NULL: the request's own is asked */
    unsigned nsent_on;
    struct curl_slist *headers;
    char message[CURL_ERROR_SIZE];
    unsigned ntries;
    uint64_t due_ns;      /* when it is tried again */
    uint64_t failing_ns;  /* since when nothing came of it; 0: it does not fail */
    uint64_t begun_ns;    /* this try */
    uint64_t progress_ns; /* its last bytes */
    /* Of this try: */
    size_t nsent;
    size_t header_nbytes;
    uint64_t ngot; /* of the body, wherever it goes */
    bool has_length, has_range, is_xml;
    bool to_text;  /* the body is an error, or no object */
    bool placed;   /* there is room for the object, also for further tries */
    bool too_much; /* more came than was asked for */
    bool enough;   /* of an error's text: the rest was not waited for */
    size_t room;
    cm_buf own; /* an object whose length was not told */
    uint64_t length, range_first, range_last;
    uint64_t retry_after_ns;
    cm_sum_said said;     /* of the object's checksum */
    bool summed, checked; /* it has one; and it was compared */
    char region[40];      /* where a bucket says that it lies */
    bool doubtful;        /* the length said makes no sense: worth another question, not minutes */
    int broken;           /* a status: going on makes no sense */
    cm_error broken_why;
} cm_transfer_state;

TAILQ_HEAD(cm_transfer_list, cm_transfer_state);

struct cm_net {
    cm_net_settings settings;
    pthread_mutex_t lock; /* of all up to the next blank line */
    pthread_t thread;
    atomic_int process; /* whose thread it is; 0: none runs; -1: that is being settled */
    uint64_t timeout_ns;
    bool stopping;
    bool asleep; /* and would begin what comes: it is to be woken */
    struct cm_transfer_list waiting;
    size_t nwaiting;
    cm_net_counts counts;
    unsigned limit;
    struct cm_aws *aws; /* credentials, found when first needed */

    /* The thread's own. */
    CURLM *multi;
    struct cm_transfer_list active, delayed;
    SLIST_HEAD(, cm_http_group) ended; /* to be told */
    size_t nactive;
    CURL **idle;
    size_t nidle, idle_room;
    bool answered; /* somebody has answered since the net was made */
    uint64_t random;
    /* Finding the number of requests under way. */
    bool growing;
    uint64_t window_ns, window_nbytes, window_n, slowed_ns;
    double best_rate;
    unsigned best_limit;
};

/* ---- loop.c ---- */

/* Whether T, which came to nothing, is tried again; then T->due_ns says when. */
bool cm_net_tries_again(cm_net *net, cm_transfer_state *t);

/* ---- transfer.c ---- */

/* Makes ready T->easy for another try.  CM_ENOMEM. */
int cm_transfer_prepare(cm_transfer_state *t, cm_error *err);
/* The next try asks the request's own address. */
void cm_transfer_come_back(cm_transfer_state *t);
/* What a try has needed, but for the easy handle. */
void cm_transfer_release(cm_transfer_state *t);

/* ---- verdict.c ---- */

typedef enum cm_verdict_http {
    CM_HTTP_DONE, /* request->rc says how */
    CM_HTTP_AGAIN,
    CM_HTTP_SLOWER,   /* again, and with fewer at once */
    CM_HTTP_ELSEWHERE /* at once, where T->elsewhere says */
} cm_verdict_http;

/*
 * What the end of a try with RESULT means.  DONE: sets rc, and ERR with it; AGAIN: ERR tells why it
 * was to be repeated, for the case that there is no time.
 */
cm_verdict_http cm_http_judge(cm_transfer_state *t, CURLcode result, cm_error *err);

#endif
