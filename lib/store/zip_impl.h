/* Entries of a zip file: their table, and the store around it. */
#ifndef CM_STORE_ZIP_IMPL_H
#define CM_STORE_ZIP_IMPL_H

#include <pthread.h>
#include <sys/stat.h>

#include "store/impl.h"
#include "store/zip.h"

/* Records and their lengths without what varies. */
#define CM_ZIP_LOCAL     0x04034b50u
#define CM_ZIP_CENTRAL   0x02014b50u
#define CM_ZIP_END       0x06054b50u
#define CM_ZIP_LOCATOR64 0x07064b50u
#define CM_ZIP_END64     0x06064b50u

enum {
    CM_ZIP_LOCAL_NBYTES = 30,
    CM_ZIP_CENTRAL_NBYTES = 46,
    CM_ZIP_END_NBYTES = 22,
    CM_ZIP_LOCATOR64_NBYTES = 20,
    CM_ZIP_END64_NBYTES = 56,
    CM_ZIP_EXTRA64 = 1,   /* id of an extra field */
    CM_ZIP_ENCRYPTED = 1, /* flags */
    CM_ZIP_UTF8 = 1 << 11
};

typedef struct cm_zip_entry {
    uint64_t offset; /* of its header */
    uint64_t nbytes;
    uint64_t order; /* in the directory */
    size_t key;     /* in the table's texts */
    uint32_t crc;
    uint16_t method; /* 0: stored */
    uint16_t flags;
    uint16_t name_nbytes;              /* of the name in the file */
    bool dropped;                      /* a folder, or replaced by a later entry */
    atomic_uint_least32_t head_nbytes; /* from OFFSET to the bytes; 0: not known yet */
} cm_zip_entry;

typedef struct cm_zip_table {
    cm_zip_entry *item;
    size_t n, capacity;
    cm_buf texts;
    uint64_t end; /* all entries lie before */
} cm_zip_table;

static inline const char *cm_zip_key(const cm_zip_table *t, const cm_zip_entry *e)
{
    return (const char *)t->texts.data + e->key;
}

/* Appends an entry with KEY of NBYTES; the caller sets the rest. */
int cm_zip_add(cm_zip_table *t, const char *key, size_t nbytes, cm_zip_entry **out, cm_error *err);
/* Leaves what was not dropped, in the order of keys; of equal ones the last in the directory. */
void cm_zip_sort(cm_zip_table *t);
/* The first entry of a sorted table whose key is not less than KEY. */
size_t cm_zip_lower_bound(const cm_zip_table *t, const char *key);
void cm_zip_release(cm_zip_table *t);

/* The directory of the file FD of NBYTES: a sorted table, also of what cannot be read. */
int cm_zip_read(int fd, uint64_t nbytes, cm_zip_table *out, cm_error *err);

/* State of a store that is written. */
typedef struct cm_zip_writing {
    pthread_mutex_t lock; /* guards the table, the slots and the end */
    uint32_t *slot;       /* hash table: number of an entry and 1; 0: free */
    size_t nslots;
    char *path, *folder, *temporary;
    uint64_t device, inode;
    bool synced;
    bool complete;
} cm_zip_writing;

typedef struct cm_zip_store {
    cm_store base;
    int fd;
    struct stat st; /* of the file when it was opened */
    cm_zip_table table;
    cm_zip_writing *writing; /* NULL: only read */
} cm_zip_store;

static inline cm_zip_store *cm_zip_of(const cm_store *store)
{
    return (cm_zip_store *)(uintptr_t)store;
}

/* The entry of KEY; NULL: there is none.  While others write, it may move: with the lock only. */
cm_zip_entry *cm_zip_find(const cm_zip_store *z, const char *key);
/* Of a store that is being written, when its lock is held; NULL: there is none. */
cm_zip_entry *cm_zip_find_written(const cm_zip_store *z, const char *key);

/* The slot of KEY, or the free one for it. */
uint32_t *cm_zip_slot(const cm_zip_store *z, const char *key);

/* Common to stores that are read and those that are written. */
int cm_zip_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err);
int cm_zip_identify(cm_store *store, const char *key, cm_identity *out, cm_error *err);
int cm_zip_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err);
int cm_zip_reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
int cm_zip_reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err);
void cm_zip_reader_close(cm_object_reader *reader);
void cm_zip_free(cm_store *store);

#define CM_ZIP_READING                                                                             \
    .free = cm_zip_free, .stat = cm_zip_stat, .identity = cm_zip_identify, .list = cm_zip_list,    \
    .open = cm_zip_reader_open, .read = cm_zip_reader_read, .close = cm_zip_reader_close

#endif
