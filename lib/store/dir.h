/* A directory as a store: what dir.c (objects) and dir_tree.c (folders) share. */
#ifndef CM_STORE_DIR_H
#define CM_STORE_DIR_H

#include "store/impl.h"

typedef struct cm_dir_store {
    cm_store base;
    int root;                       /* every path is relative to this descriptor */
    atomic_uint_fast64_t temporary; /* numbers the temporary names of this process */
} cm_dir_store;

/* True for ".chunkmill-<process>-<number>.tmp". */
bool cm_dir_is_temporary(const char *name);

int cm_dir_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err);
int cm_dir_is_link(cm_store *store, const char *key, bool *out, cm_error *err);
int cm_dir_prune(cm_store *store, const char *prefix, cm_error *err);

#endif
