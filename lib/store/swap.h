/*
 * One object replaced in one step, and only if its content is still what the caller has read.
 *
 * In a bucket this is a conditional put.  In a folder the new file takes the place of the old one
 * by an exchange of the two names; the file that comes out is held against what was read and, where
 * another writer was faster, goes back.  Two exchanges at once need a lock around them.
 */
#ifndef CM_STORE_SWAP_H
#define CM_STORE_SWAP_H

#include "store/store.h"

/* Bytes; data NULL: no object. */
typedef struct cm_content {
    const void *data;
    size_t nbytes;
} cm_content;

/* CM_EEXIST: KEY does not hold OLD, and is left as it is. */
int cm_store_swap(cm_store *store, const char *key, cm_content old, cm_content fresh,
                  cm_error *err);

#endif
