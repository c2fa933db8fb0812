/*
 * Interface that a kind of store implements.  store.c checks keys, counts, and calls these
 * functions; a kind never sees a malformed key.
 */
#ifndef CM_STORE_IMPL_H
#define CM_STORE_IMPL_H

#include <stdatomic.h>

#include "store/io.h"
#include "store/walk.h"

/* Distinguishes an object from one that replaced it. */
typedef struct cm_identity {
    uint64_t nbytes;
    int64_t changed_ns; /* status change; 0 if the kind of store does not know it */
    uint64_t inode;
} cm_identity;

/* Writing; all but the last are set. */
typedef struct cm_store_write_ops {
    int (*put)(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err);
    int (*delete)(cm_store *store, const char *key, cm_error *err);
    int (*sweep)(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                 cm_error *err);
    int (*create)(cm_store *store, const char *key, const cm_object_form *form,
                  cm_object_writer **out, cm_error *err);
    int (*write)(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                 cm_error *err);
    int (*commit)(cm_object_writer *writer, cm_error *err); /* always frees WRITER */
    void (*abort)(cm_object_writer *writer);
    /* NULL: objects are visible as they come. */
    int (*complete)(cm_store *store, cm_error *err);
} cm_store_write_ops;

/* Symbolic links. */
typedef struct cm_store_link_ops {
    int (*is_link)(cm_store *store, const char *key, bool *out, cm_error *err);
    int (*kind)(cm_store *store, const char *key, cm_entry_kind *out, cm_error *err);
} cm_store_link_ops;

/* Opening that saves requests. */
typedef struct cm_store_open_ops {
    int (*stat)(cm_store *store, const char *key, const cm_object_stat *stat,
                cm_object_reader **out, cm_error *err); /* STAT has a tag */
    /* Replaces the content of BUF. */
    int (*part)(cm_store *store, const char *key, bool at_end, size_t nbytes, cm_buf *buf,
                cm_object_reader **out, cm_error *err);
} cm_store_open_ops;

/* Asynchronous reads. */
typedef struct cm_store_reading_ops {
    int (*begin)(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                 cm_store_reading **out, cm_error *err);
    void (*cancel)(cm_store_reading *reading); /* requests not sent yet end with CM_ECANCELED */
    int (*end)(cm_store_reading *reading, cm_error *err); /* frees READING */
} cm_store_reading_ops;

/* Asynchronous puts, and deletes: DATA is NULL. */
typedef struct cm_store_change_ops {
    int (*begin)(cm_store *store, const char *key, const void *data, size_t nbytes,
                 cm_store_change **out, cm_error *err);
    bool (*done)(const cm_store_change *change);
    int (*end)(cm_store_change *change, cm_error *err); /* frees CHANGE */
} cm_store_change_ops;

/*
 * Tags and conditional puts.  A put succeeds if KEY is absent (TAG NULL), or still has TAG;
 * otherwise CM_EEXIST, or CM_EUNSUPPORTED if the server cannot.
 */
typedef struct cm_store_tag_ops {
    int (*get)(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf,
               cm_object_tag *tag, cm_error *err);
    int (*put)(cm_store *store, const char *key, const void *data, size_t nbytes,
               const cm_object_tag *tag, cm_error *err);
} cm_store_tag_ops;

/* A cached listing of all names. */
typedef struct cm_store_listing_ops {
    int (*cache)(cm_store *store, cm_error *err);
    void (*drop)(cm_store *store);
    bool (*has)(cm_store *store, const char *key); /* asks the server if nothing is cached */
} cm_store_listing_ops;

/* Memory of objects that are sent in pieces while they are written. */
typedef struct cm_store_memory_ops {
    void (*limit)(cm_store *store, const cm_store_limits *limits);
    size_t (*writer_nbytes)(const cm_store *store, const cm_object_form *form);
    size_t (*piece_nbytes)(const cm_store *store);
    size_t (*put_nbytes)(const cm_store *store); /* NULL: none */
} cm_store_memory_ops;

/* Operations of a kind of store; the tables at the end are optional. */
typedef struct cm_store_ops {
    bool remote;           /* every call is a request over a network */
    size_t request_nbytes; /* memory for one request besides its bytes */
    const char *read_only; /* without `write`: why, a sentence after the store's name */

    void (*free)(cm_store *store);
    /* A wrapper leaves out the next five: the store that it wraps answers. */
    int (*stat)(cm_store *store, const char *key, cm_object_stat *out, cm_error *err);
    /* NULL: not known when an object changed. */
    int (*identity)(cm_store *store, const char *key, cm_identity *out, cm_error *err);
    int (*list)(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err);
    /* NULL: the folders must be walked. */
    int (*list_below)(cm_store *store, const char *prefix, cm_store_visit_object *visit,
                      void *context, cm_error *err);
    /* NULL: by list_below, or list.  CM_ENOTFOUND when PREFIX is no folder. */
    int (*walk)(cm_store *store, const char *prefix, cm_store_visit_key *visit, void *context,
                cm_error *err);
    int (*open)(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
    int (*read)(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes, cm_error *err);
    void (*close)(cm_object_reader *reader);
    /*
     * NULL: read one by one.  Appends to BUF; keys and ranges were checked.  `nrequests` of each
     * read is 1; a kind that joins reads sets it, also in `reading`.
     */
    int (*read_many)(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err);
    /* Sets `nrequests` as read_many does, without reading; NULL: reads are not joined. */
    int (*count_requests)(cm_store *store, cm_store_read *read, size_t n, cm_error *err);
    /* NULL: what was written is on the disk. */
    int (*sync)(cm_store *store, cm_error *err);

    const cm_store_write_ops *write; /* NULL, as for each below: not supported */
    const cm_store_link_ops *links;
    const cm_store_open_ops *opening;
    const cm_store_reading_ops *reading;
    const cm_store_change_ops *changes;
    const cm_store_tag_ops *tags;
    const cm_store_listing_ops *listing;
    const cm_store_memory_ops *memory;
} cm_store_ops;

/* First member of every kind of store. */
struct cm_store {
    const cm_store_ops *ops;
    cm_store *inner; /* of a wrapper: the store whose objects it reads; borrowed */
    char *name;
    char tag[24];          /* of temporary names: "" or "p3-" */
    bool unread;           /* cm_store_set_unread */
    uint64_t memory;       /* cm_store_set_memory */
    uint64_t index_nbytes; /* cm_store_index_nbytes */
    atomic_uint_fast64_t nget, get_nbytes, nput, put_nbytes;
};

/* First member of reading->begin's result; store.c fills it in. */
struct cm_store_reading {
    cm_store *store;
    cm_store_read *read;
    size_t n;
};

/* The part of LIMIT that documents may take: cm_store_document_memory for a limit. */
uint64_t cm_store_half_memory(uint64_t limit);

static inline void cm_store_count_get(cm_store *store, uint64_t nbytes)
{
    atomic_fetch_add_explicit(&store->nget, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->get_nbytes, nbytes, memory_order_relaxed);
}

static inline void cm_store_count_put(cm_store *store, uint64_t nbytes)
{
    atomic_fetch_add_explicit(&store->nput, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->put_nbytes, nbytes, memory_order_relaxed);
}

/* First member of changes->begin's result; store.c fills it in. */
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

/* Whether a store, or the one it wraps, tells when an object changed. */
bool cm_store_has_identity(const cm_store *store);
/* CM_ENOTFOUND when absent.  KEY is well-formed. */
int cm_store_identity(cm_store *store, const char *key, cm_identity *out, cm_error *err);

/*
 * Extends BUF by NBYTES with spare capacity, so that appending many objects does not copy all of
 * them again and again.
 */
int cm_buf_extend(cm_buf *buf, uint64_t nbytes, cm_error *err);

/* Reads one after the other, by open and read of the kind.  Appends to BUF. */
int cm_store_read_each(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err);

/* `sweep` of a kind without folders, by list and delete. */
int cm_store_sweep_listed(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                          cm_error *err);

/* Index in a table of NBUCKETS buckets. */
size_t cm_key_hash(const char *key, size_t nbuckets);

/* CM_EFORMAT for a range that does not lie within the object. */
int cm_object_check_range(const cm_object_reader *reader, uint64_t offset, uint64_t nbytes,
                          cm_error *err);
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
/* Adds the first name of PATH, unless it is that of the folder added last. */
int cm_name_list_add_path(cm_name_list *list, const char *path, cm_error *err);
/*
 * Ends the listing of PREFIX, collected with the result RC, and releases LIST: sorts, removes
 * duplicates, visits.  Stops at the first non-zero answer and returns it; CM_ENOTFOUND if there is
 * no name, unless PREFIX is the root ("").
 */
int cm_name_list_finish(cm_name_list *list, const char *prefix, int rc, cm_store_visit *visit,
                        void *context, cm_error *err);

#endif
