/*
 * Interface that a kind of store implements.  store.c checks keys, counts, and calls these
 * functions; a kind never sees a malformed key.
 */
#ifndef CM_STORE_IMPL_H
#define CM_STORE_IMPL_H

#include <stdatomic.h>

#include "store/io.h"

/* Distinguishes an object from one that replaced it. */
typedef struct cm_identity {
    uint64_t nbytes;
    int64_t changed_ns; /* status change; 0 if the kind of store does not know it */
    uint64_t inode;
} cm_identity;

typedef struct cm_store_ops {
    bool remote;           /* every call is a request over a network */
    size_t request_nbytes; /* memory for one request besides its bytes */
    /*
     * Read-only kinds: why, a sentence after the store's name; put, remove, sync and writer_* are
     * not set.  NULL: writable.
     */
    const char *read_only;
    void (*free)(cm_store *store);
    int (*get)(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf, cm_error *err);
    int (*size)(cm_store *store, const char *key, uint64_t *nbytes, cm_error *err);
    /* NULL: read one by one.  Appends to BUF; keys and ranges were checked. */
    int (*read_many)(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err);
    /*
     * Asynchronous reads; NULL, all three: not supported.  read_cancel: requests not sent yet end
     * with CM_ECANCELED.  read_end frees READING.
     */
    int (*read_begin)(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                      cm_store_reading **out, cm_error *err);
    void (*read_cancel)(cm_store_reading *reading);
    int (*read_end)(cm_store_reading *reading, cm_error *err);
    /* NULL: only the size is known. */
    int (*stat)(cm_store *store, const char *key, cm_object_stat *out, cm_error *err);
    /* NULL: identified by size alone. */
    int (*identity)(cm_store *store, const char *key, cm_identity *out, cm_error *err);
    int (*put)(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err);
    /*
     * Asynchronous puts and deletes; NULL, all: not supported.  DATA NULL: delete.  change_end
     * frees CHANGE.
     */
    int (*change_begin)(cm_store *store, const char *key, const void *data, size_t nbytes,
                        cm_store_change **out, cm_error *err);
    bool (*change_done)(const cm_store_change *change);
    int (*change_end)(cm_store_change *change, cm_error *err);
    /*
     * Conditional put; NULL: not supported.  Succeeds if KEY is absent (TAG NULL), or still has
     * TAG; otherwise CM_EEXIST.  CM_EUNSUPPORTED if the server cannot.
     */
    int (*put_if)(cm_store *store, const char *key, const void *data, size_t nbytes,
                  const cm_object_tag *tag, cm_error *err);
    int (*get_tagged)(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf,
                      cm_object_tag *tag, cm_error *err);
    int (*remove)(cm_store *store, const char *key, cm_error *err);
    int (*list)(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err);
    /* NULL: the folders must be walked. */
    int (*list_below)(cm_store *store, const char *prefix, cm_store_visit_object *see,
                      void *context, cm_error *err);
    /* NULL, both: no listing need be cached. */
    int (*cache_listing)(cm_store *store, cm_error *err);
    void (*drop_listing)(cm_store *store);
    int (*sync)(cm_store *store, cm_error *err);
    /* NULL: there are no links. */
    int (*is_link)(cm_store *store, const char *key, bool *out, cm_error *err);
    /* NULL: derived from a listing. */
    int (*kind)(cm_store *store, const char *key, cm_entry_kind *out, cm_error *err);
    int (*sweep)(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                 cm_error *err);

    int (*reader_open)(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
    /* NULL: reader_open.  TOLD has a tag. */
    int (*reader_open_stat)(cm_store *store, const char *key, const cm_object_stat *told,
                            cm_object_reader **out, cm_error *err);
    /* NULL: reader_open, then read.  Replaces the content of BUF. */
    int (*reader_open_part)(cm_store *store, const char *key, bool at_end, size_t nbytes,
                            cm_buf *buf, cm_object_reader **out, cm_error *err);
    int (*reader_read)(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err);
    void (*reader_close)(cm_object_reader *reader);

    int (*writer_create)(cm_store *store, const char *key, cm_object_writer **out, cm_error *err);
    /*
     * Writers with limited memory; NULL, all four: the form makes no difference, and writers keep
     * nothing.
     */
    int (*writer_create_as)(cm_store *store, const char *key, const cm_object_form *form,
                            cm_object_writer **out, cm_error *err);
    void (*limit)(cm_store *store, const cm_store_limits *limits);
    size_t (*writer_nbytes)(const cm_store *store, const cm_object_form *form);
    size_t (*piece_nbytes)(const cm_store *store);
    int (*writer_write)(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                        cm_error *err);
    int (*writer_commit)(cm_object_writer *writer, cm_error *err); /* always frees WRITER */
    void (*writer_abort)(cm_object_writer *writer);
} cm_store_ops;

/* First member of every kind of store. */
struct cm_store {
    const cm_store_ops *ops;
    char *name;
    char tag[24]; /* of temporary names: "" or "p3-" */
    atomic_uint_fast64_t nget, get_nbytes, nput, put_nbytes;
};

/* First member of read_begin's result; store.c fills it in. */
struct cm_store_reading {
    cm_store *store;
    cm_store_read *read;
    size_t n;
};

static inline void cm_store_count_put(cm_store *store, uint64_t nbytes)
{
    atomic_fetch_add_explicit(&store->nput, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->put_nbytes, nbytes, memory_order_relaxed);
}

/* First member of change_begin's result; store.c fills it in. */
struct cm_store_change {
    cm_store *store;
    bool puts; /* false: deletes */
    size_t nbytes;
};

/* First member of every kind of reader; the kind sets nbytes. */
struct cm_object_reader {
    cm_store *store;
    char *key;
    uint64_t nbytes;
    atomic_bool changed; /* reading failed because the object was replaced */
    /* Reading failed because the server does not give the object (401, 403, 404). */
    atomic_bool denied;
};

/* First member of every kind of writer. */
struct cm_object_writer {
    cm_store *store;
    char *key;
    atomic_uint_fast64_t written; /* bytes */
};

/* CM_ENOTFOUND when absent.  KEY is well-formed. */
int cm_store_identity(cm_store *store, const char *key, cm_identity *out, cm_error *err);

/*
 * Extends BUF by NBYTES with spare capacity, so that appending many objects does not copy all of
 * them again and again.
 */
int cm_buf_extend(cm_buf *buf, uint64_t nbytes, cm_error *err);

/* Implements sweep by a full listing, for stores without links and empty folders. */
int cm_store_sweep_by_list(cm_store *store, const char *prefix, cm_store_judge *judge,
                           void *context, cm_error *err);

/* Index in a table of NBUCKETS buckets. */
size_t cm_key_hash(const char *key, size_t nbuckets);

/* The error for an object of NBYTES where MAX_NBYTES are allowed; CM_EFORMAT. */
int cm_object_too_long(const char *key, uint64_t nbytes, uint64_t max_nbytes, cm_error *err);

/* Folder F of a key "F/name": its length, 0 at the root. */
size_t cm_key_folder(const char *key);

/* Names collected for a listing, then sorted and handed out. */
typedef struct cm_name_list {
    struct cm_name_item {
        size_t offset; /* of the name in text */
        bool is_prefix;
    } * item;
    size_t n, capacity;
    cm_buf text;
} cm_name_list;

int cm_name_list_add(cm_name_list *list, const char *name, size_t nbytes, bool is_prefix,
                     cm_error *err);
/* Sorts, removes duplicates, visits.  Stops at the first non-zero answer and returns it. */
int cm_name_list_visit(cm_name_list *list, cm_store_visit *visit, void *context, cm_error *err);
void cm_name_list_release(cm_name_list *list);

#endif
