/* The inside of the store of a snapshot, which read_store.h opens. */
#ifndef CM_FORMAT_ICECHUNK_READ_IMPL_H
#define CM_FORMAT_ICECHUNK_READ_IMPL_H

#include "format/icechunk/outside.h"
#include "format/icechunk/shelf.h"
#include "format/icechunk/view.h"
#include "store/impl.h"
#include "store/net/parts.h"

typedef struct cm_ice_store {
    cm_store base;
    cm_store_ops ops;
    cm_store *root;
    bool is_net; /* ROOT is behind a network */
    cm_ice_view view;
    cm_ice_shelf *shelf;
    cm_ice_outside *outside;
} cm_ice_store;

static inline cm_ice_store *cm_ice_store_of(const cm_store *store)
{
    return (cm_ice_store *)(uintptr_t)store;
}

/*
 * The snapshot VERSION of the repository ROOT, which the store takes, also after an error; IS_NET:
 * cm_store_open_remote opened it.
 */
int cm_ice_store_over(cm_store *root, bool is_net, const char *name, const char *version,
                      const cm_store_options *options, cm_store **out, cm_error *err);

/* ---- read_names.c ---- */

/* An object of the store.  Documents lie in the snapshot, INLINE. */
typedef struct cm_ice_found {
    cm_ice_chunk chunk;
    const cm_ice_manifest_view *manifest; /* that CHUNK borrows from, held; NULL: a document */
} cm_ice_found;

/*
 * CM_ENOTFOUND when absent; with AT_HAND, CM_ECANCELED where a manifest would have to be read.
 * Release OUT.
 */
int cm_ice_find(cm_ice_store *s, const char *key, bool at_hand, cm_ice_found *out, cm_error *err);
void cm_ice_found_release(cm_ice_store *s, cm_ice_found *found);

int cm_ice_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err);
int cm_ice_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err);
int cm_ice_walk(cm_store *store, const char *prefix, cm_store_visit_key *visit, void *context,
                cm_error *err);

int cm_ice_list_below(cm_store *store, const char *prefix, cm_store_visit_object *visit,
                      void *context, cm_error *err);

/* ---- source.c ---- */

/* An object that chunks lie in. */
typedef struct cm_ice_source {
    cm_ice_spot spot;
    /* Of one outside the repository: its state when the reference was made; "", 0: unknown. */
    bool is_outside;
    char etag[CM_HTTP_ETAG_SIZE];
    uint32_t modified_s;
} cm_ice_source;

/* Where the bytes of what was FOUND, which is not INLINE, lie; KEY is its name.  Release OUT. */
int cm_ice_source_find(cm_ice_store *s, const char *key, const cm_ice_found *found,
                       cm_ice_source *out, cm_error *err);
void cm_ice_source_release(cm_ice_source *source);
/* Whether two chunks lie in the same object; false where that is not known. */
bool cm_ice_source_is_same(const cm_ice_found *a, const cm_ice_found *b);
/* Opens SOURCE, not behind a network, which must have END bytes. */
int cm_ice_source_open(const cm_ice_source *source, const char *key, uint64_t end,
                       cm_object_reader **out, cm_error *err);
/* The part of SOURCE, behind a network, to be asked for; then what came of it. */
cm_net_part cm_ice_source_part(const cm_ice_source *source, uint64_t offset, uint64_t nbytes);
int cm_ice_source_take(const cm_ice_source *source, const char *key, const cm_net_part *part,
                       int rc, cm_error *err);
/* Reads NBYTES at OFFSET of SOURCE, behind a network. */
int cm_ice_source_read(const cm_ice_source *source, const char *key, uint64_t offset, void *dst,
                       size_t nbytes, cm_error *err);

/* Identifies an object by its bytes, or their place; a file outside the repository is looked up. */
int cm_ice_identity(cm_store *store, const char *key, cm_identity *out, cm_error *err);

/* ---- read_many.c ---- */

int cm_ice_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err);
int cm_ice_count_requests(cm_store *store, cm_store_read *read, size_t n, cm_error *err);
/* In two steps: only where all lies behind a network, and manifests are at hand. */
extern const cm_store_reading_ops cm_ice_reading_ops;

/* ---- read_bytes.c ---- */

typedef struct cm_ice_reader {
    cm_object_reader base;
    cm_ice_found found;
    cm_ice_source source;   /* of one that is not INLINE */
    cm_object_reader *file; /* open, in a folder; NULL: INLINE, or behind a network */
} cm_ice_reader;

int cm_ice_object_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
int cm_ice_object_read(cm_object_reader *base, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err);
void cm_ice_object_close(cm_object_reader *base);

#endif
