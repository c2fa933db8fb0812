/*
 * Opens and reads of files submitted to the kernel together, through io_uring.
 *
 * A ring serves one call at a time; a pool makes another one when all are busy, so that threads do
 * not wait for each other.
 */
#ifndef CM_STORE_URING_H
#define CM_STORE_URING_H

#include "base/mem.h"

typedef struct cm_rings cm_rings;

/* CM_EUNSUPPORTED if the kernel lacks io_uring (before 5.6) or forbids it. */
int cm_rings_create(cm_rings **out, cm_error *err);
void cm_rings_free(cm_rings *rings); /* NULL accepted; no call may be under way */

typedef struct cm_ring_request {
    const char *path; /* to open, relative to the folder FD; NULL: read from FD */
    int fd;
    int flags; /* of the open */
    uint8_t *dst;
    uint64_t offset;
    size_t nbytes;
    /* Result: */
    int error;   /* errno, or 0 */
    int opened;  /* the descriptor */
    size_t done; /* bytes read: fewer than requested only at the end of the file */
} cm_ring_request;

/* Runs all N, as many at once as the ring holds.  Errors of single requests are in them. */
int cm_rings_run(cm_rings *rings, cm_ring_request *request, size_t n, cm_error *err);

/*
 * Reserves N or fewer, at least 1, open files for a call, to be given back.  All calls together get
 * at most half of the process's limit; a call waits if none is left.
 */
size_t cm_rings_take_files(cm_rings *rings, size_t n);
void cm_rings_give_files(cm_rings *rings, size_t n);

#endif
