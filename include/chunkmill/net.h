/*
 * Stores behind a network: how they are reached, and what was asked of them.
 *
 * A program makes one cm_net and hands it to its jobs; a job without one reaches folders only.
 * One thread, started with the first request, does all transfers of the process; any thread may
 * ask.
 */
#ifndef CHUNKMILL_NET_H
#define CHUNKMILL_NET_H

#include <stdbool.h>
#include <stdint.h>

#include <chunkmill/error.h>
#include <chunkmill/texts.h>

typedef struct cm_net cm_net;

/* Checksum sent with objects that are written to a bucket, and compared when they are read. */
typedef enum cm_net_checksum {
    CM_CHECKSUM_AUTO, /* CRC32C where the endpoint is one of AWS, else NONE */
    CM_CHECKSUM_NONE,
    CM_CHECKSUM_CRC32C,
    CM_CHECKSUM_MD5
} cm_net_checksum;

/*
 * Texts are the caller's, and stay as long as the net; `variable` is asked when a value is
 * needed.
 */
typedef struct cm_net_settings {
    /* The caller's environment, as getenv() has it (AWS_..., HOME); NULL: there is none. */
    const char *(*variable)(const char *name);
    bool anonymous;  /* nothing is signed, and no credentials are looked for */
    bool absent_403; /* a 403 to a read means that the object is absent */
    cm_net_checksum checksum;
    cm_texts allow; /* "s3://BUCKET/PREFIX", "https://HOST/PATH", "/FOLDER": documents of references
                       may point there, too */
    const char *scratch;  /* folder for files that are fetched whole; NULL: "/tmp" */
    unsigned concurrency; /* requests under way at once; 0: found by their speed */
    double timeout;       /* seconds in which a failing request is repeated; 0: 5 minutes */
    /* Any thread; NULL: never.  What fails is then given up instead of repeated. */
    bool (*canceled)(void *context);
    void *canceled_context;
} cm_net_settings;

int cm_net_create(const cm_net_settings *settings, cm_net **out, cm_error *err);
/* The folder for files that are fetched whole. */
const char *cm_net_scratch(const cm_net *net);
void cm_net_free(cm_net *net); /* NULL accepted; no store of it may be open */
/*
 * Ends all requests, and those that are made from now on, with CM_ECANCELED: what reads through
 * NET is to end, and a server may take minutes to fail.  NULL accepted; any thread.
 */
void cm_net_abandon(cm_net *net);

/*
 * Requests so far, of this process and of those that it forked; bytes are those of bodies, repeated
 * ones included.
 */
typedef struct cm_net_counts {
    uint64_t get, head, put, post, remove, list; /* requests, repeated ones included */
    uint64_t received_nbytes, sent_nbytes;
    uint64_t nretries,
        nthrottled;        /* requests repeated; of them, at the server's wish to slow down */
    uint64_t throttled_ns; /* that requests waited for that */
    uint64_t nconnections;
    uint64_t nsummed,
        nchecked; /* whole objects and parts with a checksum; of them, compared with the server's */
    uint64_t first_byte_ns, ntimed; /* sum of the times to the first byte, of so many requests */
    unsigned concurrency;           /* allowed now, to this process */
} cm_net_counts;
cm_net_counts cm_net_count(cm_net *net);

#endif
