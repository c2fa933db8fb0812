/* The inside of the store of references, shared by references.c and references_net.c. */
#ifndef CM_STORE_REFERENCES_IMPL_H
#define CM_STORE_REFERENCES_IMPL_H

#include <stdatomic.h>

#include "store/references.h"

typedef struct cm_reference_store {
    cm_store base;
    cm_reference_table table;
    cm_store **origin;        /* for each of the table's origins */
    _Atomic(char *) *version; /* for each remote file, once it was read; fixed from then on */
} cm_reference_store;

typedef struct cm_reference_reader {
    cm_object_reader base;
    const cm_reference *ref;
    int fd; /* -1: DATA, or behind a network */
    cm_buf data;
} cm_reference_reader;

static inline cm_reference_store *cm_reference_store_of(const cm_store *store)
{
    return (cm_reference_store *)(uintptr_t)store;
}

static inline const cm_reference_file *cm_reference_file_of(const cm_store *store,
                                                            const cm_reference *ref)
{
    return &cm_reference_store_of(store)->table.file[ref->file];
}

static inline bool cm_reference_is_remote(const cm_store *store, const cm_reference *ref)
{
    return ref->file != CM_REFERENCE_INLINE &&
           cm_reference_file_of(store, ref)->origin != CM_REFERENCE_LOCAL;
}

/* ---- references_net.c: what lies behind a network ---- */

/* Opens the stores of all origins, without a request. */
int cm_reference_open_origins(cm_reference_store *s, cm_net *net, cm_error *err);
void cm_reference_free_origins(cm_reference_store *s);

/* Reads NBYTES at OFFSET of REF's object. */
int cm_reference_net_read(cm_store *store, const char *key, const cm_reference *ref,
                          uint64_t offset, void *dst, size_t nbytes, cm_error *err);
/* Identifies REF's object by one request. */
int cm_reference_net_identify(cm_store *store, const char *key, const cm_reference *ref,
                              cm_identity *out, cm_error *err);
int cm_reference_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                           cm_error *err);

#endif
