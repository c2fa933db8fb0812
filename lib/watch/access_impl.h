/* Shared by the parts that read a log of accesses; see access.h. */
#ifndef CM_WATCH_ACCESS_IMPL_H
#define CM_WATCH_ACCESS_IMPL_H

#include "watch/access.h"

#define CM_ACCESS_NO_BYTES UINT64_MAX /* the object was not there */

typedef struct cm_access_request {
    size_t key; /* in `text` */
    uint64_t nbytes;
    bool part; /* of the object */
    double at, seconds;
    int64_t pid, thread;
    uint64_t line;
} cm_access_request;

typedef struct cm_access_wanted {
    size_t array; /* its name in `text` */
    size_t box;   /* in `number`: first and end of each dimension */
    unsigned rank;
    double at, seconds;
    int64_t pid;
    uint64_t line, read;
} cm_access_wanted;

typedef struct cm_access_stored { /* how an array was stored */
    size_t array;
    size_t shape; /* in `number`: shape, then chunks */
    unsigned rank;
    uint64_t line;
} cm_access_stored;

struct cm_access_log {
    char *name;
    cm_buf text; /* keys and names, each with its NUL */
    uint64_t *number;
    size_t nnumbers, number_capacity;
    cm_access_request *request;
    size_t nrequests, request_capacity;
    cm_access_wanted *wanted;
    size_t nwanted, wanted_capacity;
    cm_access_stored *stored;
    size_t nstored, stored_capacity;
    size_t *array; /* names of arrays with boxes */
    size_t narrays, array_capacity;
    uint64_t nlines;
};

/* The text at AT of LOG. */
const char *cm_access_text(const cm_access_log *log, size_t at);

/*
 * Coordinates of the chunk that KEY is of array NAME with RANK dimensions: "t2m/c/0/1", "t2m/0.1",
 * "t2m/0/1"; false where it is another object.
 */
bool cm_access_key_coord(const char *key, const char *name, unsigned rank, uint64_t *coord);

#endif
