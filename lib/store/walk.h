/* Listing of all names below a prefix, for counting what is there. */
#ifndef CM_STORE_WALK_H
#define CM_STORE_WALK_H

#include "store/store.h"

#define CM_WALK_NO_SIZE UINT64_MAX /* the listing does not tell: asking would be a call for each */

/* BELOW is the key of an object relative to the prefix. */
typedef int cm_store_visit_key(void *context, const char *below, uint64_t nbytes, cm_error *err);

/*
 * Lists every object below PREFIX ("": all) once, in any order, temporaries and links to files
 * included: names alone where sizes are not part of a listing.  Links to folders are followed where
 * reading follows them, except back to a folder above.  A VISIT that returns non-zero stops the
 * walk, which returns that value.  Nothing is below a prefix that does not exist.  CM_EUNSUPPORTED
 * if the store cannot be listed.
 */
int cm_store_walk(cm_store *store, const char *prefix, cm_store_visit_key *visit, void *context,
                  cm_error *err);

#endif
