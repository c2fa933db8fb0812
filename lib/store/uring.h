/*
 * Opens and reads of files that go to the kernel together, through io_uring.
 *
 * A ring serves one call at a time; a pool makes another one when all are busy,
 * so that threads do not wait for each other.
 */
#ifndef CM_STORE_URING_H
#define CM_STORE_URING_H

#include "base/mem.h"

typedef struct cm_rings cm_rings;

/* CM_EUNSUPPORTED where the kernel lacks io_uring (before 5.6) or forbids it. */
int cm_rings_create(cm_rings **out, cm_error *err);
void cm_rings_free(cm_rings *rings); /* NULL accepted; no call may be under way */

typedef struct cm_ring_request {
    const char *path; /* to open, relative to the folder FD; NULL: read from FD */
    int fd;
    int flags; /* of the open */
    uint8_t *dst;
    uint64_t offset;
    size_t nbytes;
    /* Set by the call. */
    int error;   /* errno, or 0 */
    int opened;  /* the descriptor */
    size_t done; /* bytes read: less than wanted at the end of the file only */
} cm_ring_request;

/* All N of them, as many at once as the ring holds.  Errors of single requests are theirs. */
int cm_rings_run(cm_rings *rings, cm_ring_request *request, size_t n, cm_error *err);

/*
 * Files that a call may have open at once: N or fewer, at least 1, which are to be
 * given back.  All calls together have at most half of what the process may have,
 * or one waits for another.
 */
size_t cm_rings_take_files(cm_rings *rings, size_t n);
void cm_rings_give_files(cm_rings *rings, size_t n);

#endif
