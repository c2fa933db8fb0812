/* A target inside a store: "STORE::group/array". */
#ifndef CM_CONVERT_SINK_STORE_INTO_H
#define CM_CONVERT_SINK_STORE_INTO_H

#include "convert/job.h"

typedef struct cm_into {
    char *root;        /* the store's folder; NULL: there is no target */
    char *node;        /* in it; "": the target is a store of its own */
    char *folder;      /* that of the node */
    size_t nthere;     /* bytes of FOLDER's path that were there before */
    cm_store *store;   /* ROOT; NULL: it is to be made */
    int zarr_format;   /* of the store that is there; else 0 */
    bool consolidates; /* the store that is made has consolidated metadata */
    cm_zarr_tree tree; /* what was written */
    int64_t killed;    /* the process that was writing the target before; 0: none */
} cm_into;

/*
 * "STORE::NODE" in its parts, if TARGET is that; checked against what is there, which stays
 * untouched.
 */
int cm_into_find(const char *target, cm_net *net, cm_into *into, cm_error *err);
/*
 * Before the target is begun, or what is there erased: it is taken out of consolidated metadata.
 * KILLED: the process whose temporaries go, where one was writing the target; 0: none.
 */
int cm_into_begin(cm_into *into, int64_t killed, cm_error *err);
/* When TARGET, the folder as a store, is complete: groups above it, and consolidated metadata. */
int cm_into_finish(cm_into *into, const cm_job *job, cm_store *target, cm_error *err);
/* After the target's folder was removed: those above it that were made. */
void cm_into_discard(cm_into *into);
void cm_into_release(cm_into *into);

#endif
