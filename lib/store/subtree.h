/* Objects below a prefix of a store, as a store that is only read. */
#ifndef CM_STORE_SUBTREE_H
#define CM_STORE_SUBTREE_H

#include "store/store.h"

/* Takes STORE, also when it fails. */
int cm_store_subtree(cm_store *store, const char *prefix, cm_store **out, cm_error *err);

#endif
