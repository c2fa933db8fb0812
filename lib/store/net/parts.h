/* Reads parts of objects at known offsets, without asking for sizes first, for references. */
#ifndef CM_STORE_NET_PARTS_H
#define CM_STORE_NET_PARTS_H

#include "store/net/http.h"
#include "store/store.h"

typedef struct cm_net_part {
    const char *key;   /* of the store */
    const char *shown; /* the object's name in messages */
    const char *etag;  /* required ETag; NULL: any */
    bool whole;        /* all of the object, NBYTES at most */
    uint64_t offset, nbytes;
    uint8_t *dst; /* NULL: appended to the buffer */
    /* Result: */
    int rc;       /* of this part alone; CM_ENOTFOUND, without a message: no such object */
    bool changed; /* it failed because the object has another ETag */
    size_t at, got_nbytes;
    char seen[CM_HTTP_ETAG_SIZE]; /* the object's ETag; "": none that can be compared */
    int64_t modified_s;           /* the object's last change, since 1970; 0: unknown */
} cm_net_part;

/*
 * Reads all N parts of STORE, opened by cm_store_open_remote, at once.  Returns the first failure;
 * a missing object is not one.  An object without the part is CM_EFORMAT.
 */
int cm_net_read_parts(cm_store *store, cm_net_part *part, size_t n, cm_buf *buf, cm_error *err);

/*
 * cm_net_read_parts in two steps: PART, all that it points to and BUF stay where they are until
 * _end, which waits and frees READING.  UNWANTED is set to cancel requests that were not sent yet.
 */
typedef struct cm_net_reading cm_net_reading;
int cm_net_parts_begin(cm_store *store, cm_net_part *part, size_t n, cm_buf *buf,
                       const atomic_bool *unwanted, cm_net_reading **out, cm_error *err);
int cm_net_parts_end(cm_net_reading *reading, cm_error *err);

#endif
