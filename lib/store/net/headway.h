/*
 * Checks that a listing ends.  A server that repeats pages, or invents names for ever, would keep a
 * run busy without end and take all memory, as names are held until the last page.
 */
#ifndef CM_STORE_NET_HEADWAY_H
#define CM_STORE_NET_HEADWAY_H

#include <stdint.h>

#include <chunkmill/error.h>

/* Far above any real store: tens of millions of names, in pages of a thousand. */
#define CM_HEADWAY_MAX_PAGES  (UINT64_C(1) << 20)
#define CM_HEADWAY_MAX_NBYTES (UINT64_C(8) << 30)
/* Pages without a name in a row: each may stand for a thousand deleted objects. */
#define CM_HEADWAY_MAX_EMPTY 1000

typedef struct cm_headway {
    uint64_t npages, nbytes;
    unsigned nempty; /* pages without a name, since the last that had one */
    struct {         /* of an earlier page */
        char *token;
        uint64_t sum, number;
    } mark;
} cm_headway;

/*
 * Call it after a page with NBYTES of names, whose checksum is SUM, and TOKEN for the next.
 * CM_EIO: a page was repeated, or there are too many.
 */
int cm_headway_check(cm_headway *h, const char *token, uint64_t sum, uint64_t nbytes,
                     const char *shown, cm_error *err);
void cm_headway_release(cm_headway *h);

#endif
