/* How a store in a directory reads, and how much of it is in the page cache. */
#ifndef CM_STORE_IO_H
#define CM_STORE_IO_H

#include "base/stop.h"
#include "store/store.h"

typedef enum cm_io {
    CM_IO_PREAD,
    /*
     * A mapping for each read, copied by the kernel: a truncated file is an error then, not a
     * signal.
     */
    CM_IO_MMAP,
    CM_IO_URING, /* several requests at once through io_uring */
    CM_IO_DIRECT /* O_DIRECT: bypasses the page cache, needs aligned buffers */
} cm_io;

/*
 * cm_store_open_dir with objects read by IO; writing is unchanged.  CM_EUNSUPPORTED, with a
 * sentence, if the kernel or the file system lacks it; no other way is substituted.  If the folder
 * has no file at its root, missing support for O_DIRECT is found only when an object is opened.
 *
 * System calls for a whole object: open, fstat, read, close; with MMAP mmap, copy, munmap and fstat
 * in place of the read; with URING the opens and the reads of many objects take one call each, and
 * every file an fstat, an fcntl and a close.  For a range of an open object: the read alone.
 */
int cm_store_open_dir_io(const char *path, cm_io io, cm_store **out, cm_error *err);

/* One of several reads done at once. */
typedef struct cm_store_read {
    const char *key; /* an object, whole (OFFSET 0, NBYTES UINT64_MAX), when READER is NULL */
    cm_object_reader *reader; /* or a range of an open one */
    uint64_t offset;
    uint64_t nbytes;
    uint64_t max_nbytes; /* of a whole object: more is CM_EFORMAT */
    /* Result: */
    bool absent; /* whole objects: it does not exist */
    size_t at;   /* its place in the buffer */
    size_t got_nbytes;
    uint32_t nrequests; /* to storage; 0: it came with another's, or its bytes were at hand */
} cm_store_read;

/*
 * Reads all N into BUF, replacing its content, one after the other at `at`; behind a network in the
 * order of arrival, with gaps where a request was repeated.  *nrequests counts requests to storage:
 * one for each read, present or not, but for a store that joins them.  When one fails, none is
 * valid.
 */
int cm_store_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                       uint64_t *nrequests, cm_error *err);
/* cm_store_read_many that appends to BUF, and adds to *nrequests. */
int cm_store_read_more(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                       uint64_t *nrequests, cm_error *err);
/* Whether the store reads neighbours by one request. */
bool cm_store_joins_reads(const cm_store *store);
/* Adds the requests of cm_store_read_more to *nrequests, and reads only what tells their places. */
int cm_store_count_requests(cm_store *store, cm_store_read *read, size_t n, uint64_t *nrequests,
                            cm_error *err);

/*
 * cm_store_read_more in two steps, so that a network works meanwhile: READ, the keys and readers in
 * it, and BUF belong to the store until _end, which waits, adds to *nrequests and frees READING.
 * _begin: CM_EUNSUPPORTED if the store cannot.  _cancel cancels requests not sent yet; _end may
 * then give CM_ECANCELED.
 */
typedef struct cm_store_reading cm_store_reading;
bool cm_store_reads_async(const cm_store *store);
int cm_store_read_begin(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                        cm_store_reading **out, cm_error *err);
void cm_store_read_cancel(cm_store_reading *reading);
int cm_store_read_end(cm_store_reading *reading, uint64_t *nrequests, cm_error *err);

/*
 * A store over SLOW (borrowed) that keeps the objects it has read, whole, in the directory PATH,
 * made if missing, up to NBYTES of files; the least recently used are evicted.  Several processes
 * may share the directory, and a crash leaves it usable: an object appears there whole or not at
 * all, with checksums and the identity (path, size, inode, time of change) of its original.
 * Changed or damaged copies are read anew; objects that do not fit are read from SLOW.  Read-only;
 * ranges of objects are read from the copy.  CM_EUNSUPPORTED for a store without times of change
 * (in memory).
 *
 * Reading a whole object from the copy takes fstatat on SLOW, open, fstat, preadv, close, and
 * sometimes a touch; a range of an open one takes a read, of whole blocks of 64 KiB the first time.
 */
int cm_store_open_disk_cache(cm_store *slow, const char *path, uint64_t nbytes, cm_store **out,
                             cm_error *err);

/*
 * Counts of objects, read whole or opened, that were found or missing, and of those evicted by this
 * process; of bytes that copies gave; and of requests to the slow store, those for objects that it
 * lacks included, and their bytes.
 */
typedef struct cm_disk_cache_counts {
    uint64_t hits, misses, evictions, nbytes;
    uint64_t requests, stored_nbytes;
} cm_disk_cache_counts;
/* All zero for a store of another kind. */
cm_disk_cache_counts cm_store_disk_cache_counts(const cm_store *store);

/* ---- the page cache ---- */

/*
 * Of the file PATH, or of all files below the folder: bytes, and how many are in the page cache.
 * Does not follow links to folders below PATH.  Linux gives no answer for files that the user may
 * not write.
 */
typedef struct cm_residency {
    uint64_t nbytes;
    uint64_t asked_nbytes; /* of files with an answer from Linux; the next is part of it */
    uint64_t resident_nbytes;
    uint64_t nfiles;
    bool whole; /* false: time ran out before all files were measured */
} cm_residency;

/*
 * Adds to OUT, which must begin zeroed, with `whole` true.  MAX_NS 0: no limit.  All three
 * functions end early, with CM_ECANCELED, on STOP.
 */
int cm_residency_measure(const char *path, uint64_t max_ns, const cm_stop *stop, cm_residency *out,
                         cm_error *err);
/*
 * Asks the kernel to evict the pages of PATH (after writing them back); measure again for the
 * result.
 */
int cm_residency_evict(const char *path, const cm_stop *stop, cm_error *err);
/* Reads all bytes once. */
int cm_residency_warm(const char *path, const cm_stop *stop, cm_error *err);

#endif
