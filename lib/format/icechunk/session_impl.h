/* The state of a session; shared by session.c (the store) and session_check.c (going on). */
#ifndef CM_FORMAT_ICECHUNK_SESSION_IMPL_H
#define CM_FORMAT_ICECHUNK_SESSION_IMPL_H

#include "format/icechunk/pack.h"
#include "format/icechunk/session.h"
#include "store/impl.h"

typedef struct cm_ice_session cm_ice_session;

typedef struct cm_ice_array_chunks {
    cm_ice_session *of;
    char *path;
    size_t index; /* in the session */
    unsigned rank;
    uint64_t shape[CM_MAX_RANK];
    uint64_t base, nchunks; /* numbers of its records */
    cm_store *before;       /* has the chunks that are not written; or NULL */
    cm_buf small;           /* bytes that the places borrow */
    cm_ice_record *record;
    size_t room;
} cm_ice_array_chunks;

struct cm_ice_session {
    cm_store base;
    cm_store_ops ops; /* those below, and what the repository's store is like */
    cm_store *root, *documents;
    cm_ice_records *records;
    cm_ice_packs *packs;
    cm_ice_array_chunks **array;
    cm_ice_array_chunks **sorted; /* by path */
    size_t narrays, capacity, sorted_capacity;
    uint64_t nchunks;
};

static inline cm_ice_session *cm_ice_session_of(const cm_store *store)
{
    return (cm_ice_session *)(uintptr_t)store;
}

#endif
