/*
 * Whether a listing gets on.  A server that goes round, or finds new names for ever, would keep a
 * run for good, and in the end take all memory: its names are held until the last page has come.
 */
#ifndef CM_STORE_NET_HEADWAY_H
#define CM_STORE_NET_HEADWAY_H

#include <stdint.h>

#include <chunkmill/error.h>

/* Far above what any store has: tens of millions of names, on pages of a thousand. */
#define CM_HEADWAY_MAX_PAGES  (UINT64_C(1) << 20)
#define CM_HEADWAY_MAX_NBYTES (UINT64_C(8) << 30)

typedef struct cm_headway {
    uint64_t npages, nbytes;
    struct { /* of an earlier page */
        char *token;
        uint64_t sum, number;
    } mark;
} cm_headway;

/*
 * After a page that goes on with TOKEN and held NBYTES of names, whose checksum is SUM.  CM_EIO:
 * a page comes that came before, or more came than any store has.
 */
int cm_headway_check(cm_headway *h, const char *token, uint64_t sum, uint64_t nbytes,
                     const char *shown, cm_error *err);
void cm_headway_release(cm_headway *h);

#endif
