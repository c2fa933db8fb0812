/*
 * What a kind of store implements.  store.c checks keys, counts, and calls
 * these; a kind never sees a malformed key.
 */
#ifndef CM_STORE_IMPL_H
#define CM_STORE_IMPL_H

#include <stdatomic.h>

#include "store/io.h"

/* What tells an object from the one that took its name. */
typedef struct cm_identity {
    uint64_t nbytes;
    int64_t changed_ns; /* status change; 0 where a kind of store does not know */
    uint64_t inode;
} cm_identity;

typedef struct cm_store_ops {
    bool remote;           /* every call is a request over a network */
    size_t request_nbytes; /* that one takes beside its bytes */
    /* Why nothing is written to this kind, which then has none of put, remove, sync and writer_*:
       a sentence after the store's name.  NULL: it is written to. */
    const char *read_only;
    void (*free)(cm_store *store);
    int (*get)(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf, cm_error *err);
    int (*size)(cm_store *store, const char *key, uint64_t *nbytes, cm_error *err);
    /* NULL: read one by one.  Behind what BUF holds; the keys and ranges were checked. */
    int (*read_many)(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err);
    /*
     * NULL, all three: nothing is read while nobody waits.  read_end frees READING.  What is
     * unwanted and not under way yet ends with CM_ECANCELED.
     */
    int (*read_begin)(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                      cm_store_reading **out, cm_error *err);
    void (*read_unwant)(cm_store_reading *reading);
    int (*read_end)(cm_store_reading *reading, cm_error *err);
    /* NULL: the size is all that is told. */
    int (*tell)(cm_store *store, const char *key, cm_told *out, cm_error *err);
    /* NULL: the size has to do. */
    int (*identity)(cm_store *store, const char *key, cm_identity *out, cm_error *err);
    int (*put)(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err);
    /* NULL, all: nothing changes while nobody waits.  DATA NULL: removed.  The end frees CHANGE. */
    int (*change_begin)(cm_store *store, const char *key, const void *data, size_t nbytes,
                        cm_store_change **out, cm_error *err);
    bool (*change_done)(const cm_store_change *change);
    int (*change_end)(cm_store_change *change, cm_error *err);
    /*
     * NULL: nothing of the kind.  Where nothing is there (TAG NULL), or still what has TAG:
     * CM_EEXIST otherwise; CM_EUNSUPPORTED where the server cannot.
     */
    int (*put_if)(cm_store *store, const char *key, const void *data, size_t nbytes,
                  const cm_object_tag *tag, cm_error *err);
    int (*get_tagged)(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf,
                      cm_object_tag *tag, cm_error *err);
    int (*remove)(cm_store *store, const char *key, cm_error *err);
    int (*list)(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err);
    /* NULL: only by walking the folders. */
    int (*list_below)(cm_store *store, const char *prefix, cm_store_see *see, void *context,
                      cm_error *err);
    /* NULL, both: nothing need be kept of what is there. */
    int (*know)(cm_store *store, cm_error *err);
    void (*forget)(cm_store *store);
    int (*sync)(cm_store *store, cm_error *err);
    /* NULL: a kind without links. */
    int (*is_link)(cm_store *store, const char *key, bool *out, cm_error *err);
    /* NULL: what a listing tells. */
    int (*kind)(cm_store *store, const char *key, cm_entry_kind *out, cm_error *err);
    int (*sweep)(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                 cm_error *err);

    int (*reader_open)(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
    /* NULL: opened as any other.  TOLD has a tag. */
    int (*reader_open_told)(cm_store *store, const char *key, const cm_told *told,
                            cm_object_reader **out, cm_error *err);
    /* NULL: opened, then read.  In place of what BUF holds. */
    int (*reader_open_part)(cm_store *store, const char *key, bool at_end, size_t nbytes,
                            cm_buf *buf, cm_object_reader **out, cm_error *err);
    int (*reader_read)(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err);
    void (*reader_close)(cm_object_reader *reader);

    int (*writer_create)(cm_store *store, const char *key, cm_object_writer **out, cm_error *err);
    /* NULL, all four: how objects are written makes no difference, and nothing of them is kept. */
    int (*writer_create_as)(cm_store *store, const char *key, const cm_object_form *form,
                            cm_object_writer **out, cm_error *err);
    void (*send)(cm_store *store, const cm_store_sending *sending);
    size_t (*writer_nbytes)(const cm_store *store, const cm_object_form *form);
    size_t (*piece_nbytes)(const cm_store *store);
    int (*writer_write)(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                        cm_error *err);
    int (*writer_commit)(cm_object_writer *writer, cm_error *err); /* frees WRITER in any case */
    void (*writer_abort)(cm_object_writer *writer);
} cm_store_ops;

/* The first member of every kind of store. */
struct cm_store {
    const cm_store_ops *ops;
    char *name;
    char tag[24]; /* of temporary names: "" or "p3-" */
    atomic_uint_fast64_t nget, get_nbytes, nput, put_nbytes;
};

/* The first member of what read_begin gives; store.c fills it in. */
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

/* The first member of what change_begin gives; store.c fills it in. */
struct cm_store_change {
    cm_store *store;
    bool puts; /* or removes */
    size_t nbytes;
};

/* The first member of every kind of reader; the kind sets nbytes. */
struct cm_object_reader {
    cm_store *store;
    char *key;
    uint64_t nbytes;
    atomic_bool changed; /* another object has the name by now, and reading failed for that */
    atomic_bool denied;  /* reading failed as the server gives no such object (401, 403, 404) */
};

/* The first member of every kind of writer. */
struct cm_object_writer {
    cm_store *store;
    char *key;
    atomic_uint_fast64_t written; /* bytes */
};

/* CM_ENOTFOUND when absent.  KEY is well-formed. */
int cm_store_identity(cm_store *store, const char *key, cm_identity *out, cm_error *err);

/*
 * Makes BUF longer by NBYTES with room to spare, so that what appends many objects
 * does not copy all of them again and again.
 */
int cm_buf_extend(cm_buf *buf, uint64_t nbytes, cm_error *err);

/* What sweep does where a listing tells everything: no links, no folders without objects. */
int cm_store_sweep_by_list(cm_store *store, const char *prefix, cm_store_judge *judge,
                           void *context, cm_error *err);

/* Of a table of NBUCKETS buckets. */
size_t cm_key_hash(const char *key, size_t nbuckets);

/* The sentence for an object of NBYTES where MAX_NBYTES are allowed; CM_EFORMAT. */
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
/* Sorts, leaves out repetitions, visits.  Stops at the first non-zero answer and returns it. */
int cm_name_list_visit(cm_name_list *list, cm_store_visit *visit, void *context, cm_error *err);
void cm_name_list_release(cm_name_list *list);

#endif
