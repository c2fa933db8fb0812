/* The names and sizes of all objects below a prefix, of one listing: a request for a thousand. */
#ifndef CM_CONVERT_SOURCE_LISTING_H
#define CM_CONVERT_SOURCE_LISTING_H

#include "base/stop.h"
#include "store/store.h"

enum {
    CM_LISTING_MOST = 1 << 20 /* a thousand requests, and their names in the memory */
};

typedef struct cm_listed {
    size_t at; /* of its name in the names */
    uint64_t nbytes;
} cm_listed;

/* Zeroed: nothing was listed. */
typedef struct cm_listing {
    bool read;
    cm_buf names;
    cm_listed *item; /* by name */
    size_t n, room;
} cm_listing;

/*
 * CM_EUNSUPPORTED where STORE has no such listing; CM_ECANCELED when STOP, which may be NULL, wants
 * it.
 */
int cm_listing_read(cm_store *store, const char *prefix, const cm_stop *stop, cm_listing *out,
                    cm_error *err);
void cm_listing_release(cm_listing *l);

/* CM_ENOTFOUND, without a sentence: it was not there.  NAME is the key from the prefix on. */
int cm_listing_find(const cm_listing *l, const char *name, uint64_t *nbytes);

#endif
