/*
 * Parts of objects whose places are known, so that no size is asked for first: what references
 * point to.
 */
#ifndef CM_STORE_NET_PARTS_H
#define CM_STORE_NET_PARTS_H

#include "store/net/http.h"
#include "store/store.h"

typedef struct cm_net_part {
    const char *key;   /* of the store */
    const char *shown; /* what messages call the object */
    const char *etag;  /* what it must have; NULL: any */
    bool whole;        /* all of the object, NBYTES at most */
    uint64_t offset, nbytes;
    uint8_t *dst; /* NULL: behind what the buffer holds */
    /* Set by the call. */
    int rc; /* of this part alone; CM_ENOTFOUND, without a sentence: no such object */
    size_t at, got_nbytes;
    char seen[CM_HTTP_ETAG_SIZE]; /* what the object has; "": nothing that could be compared */
} cm_net_part;

/*
 * All N of STORE, which cm_store_open_remote opened, under way at once.  Returns the first failure;
 * an object that is not there is none.  An object without the part is CM_EFORMAT.
 */
int cm_net_read_parts(cm_store *store, cm_net_part *part, size_t n, cm_buf *buf, cm_error *err);

#endif
