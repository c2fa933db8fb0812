/*
 * How a store in a directory reads, and what of it lies in the page cache.
 */
#ifndef CM_STORE_IO_H
#define CM_STORE_IO_H

#include "base/stop.h"
#include "store/store.h"

typedef enum cm_io {
    CM_IO_PREAD,
    CM_IO_MMAP,  /* a mapping for each read, copied out of by the kernel: a file that
                    shrinks is an error then, not a signal */
    CM_IO_URING, /* several requests at once through io_uring */
    CM_IO_DIRECT /* O_DIRECT: past the page cache, aligned buffers */
} cm_io;

/*
 * cm_store_open_dir whose objects are read with IO; writing is as ever.
 * CM_EUNSUPPORTED, with a sentence, where the kernel or the file system does not
 * have it; nothing else is taken instead.  A folder without a file at its root is
 * found out about O_DIRECT only when an object is opened.
 *
 * System calls for an object read whole: open, fstat, read, close; with MMAP mmap,
 * copy, munmap and fstat in place of the read; with URING the opens and the reads of many
 * go in with one call each, and every file costs an fstat, an fcntl and a close.
 * For a range of an open object: the read alone.
 */
int cm_store_open_dir_io(const char *path, cm_io io, cm_store **out, cm_error *err);

/* Several reads that may go to storage at once. */
typedef struct cm_store_read {
    const char *key; /* an object, whole (OFFSET 0, NBYTES UINT64_MAX), when READER is NULL */
    cm_object_reader *reader; /* or a range of an open one */
    uint64_t offset;
    uint64_t nbytes;
    uint64_t max_nbytes; /* of a whole object: more is CM_EFORMAT */
    /* Set by the call. */
    bool absent; /* of a whole object: it is not there */
    size_t at;   /* where it lies in the buffer */
    size_t got_nbytes;
} cm_store_read;

/*
 * Reads all N into BUF, in place of what it held, one after the other at `at`; behind a network in
 * the order in which they come, with gaps where a request was repeated.
 * *nrequests: what storage was asked for, one for each read, absent or not.  When
 * one fails, none is valid.
 */
int cm_store_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                       uint64_t *nrequests, cm_error *err);
/* The same behind what BUF holds; adds to *nrequests. */
int cm_store_read_more(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                       uint64_t *nrequests, cm_error *err);

/*
 * cm_store_read_more in two steps, where a network works while nobody waits: READ, what it names,
 * and BUF are the store's until _end, which waits and frees READING.  _begin: CM_EUNSUPPORTED
 * where a store does not do that.  _unwant: what was not begun is not needed any more; _end may
 * then give CM_ECANCELED.
 */
typedef struct cm_store_reading cm_store_reading;
bool cm_store_can_begin(const cm_store *store);
int cm_store_read_begin(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                        cm_store_reading **out, cm_error *err);
void cm_store_read_unwant(cm_store_reading *reading);
int cm_store_read_end(cm_store_reading *reading, cm_error *err);

/*
 * A store over SLOW (borrowed) that keeps the objects it has read, whole, in the
 * directory PATH, made where it is missing, up to NBYTES of files; the least lately
 * used go first.  Several processes may share the directory, and a crash leaves it
 * usable: an object appears there whole or not at all, with checksums and the
 * identity (path, size, inode, time of change) of what it is a copy of.  What changed
 * or was damaged is read anew; what does not fit is read from SLOW.  Reads only;
 * ranges of objects are read from the copy.  CM_EUNSUPPORTED for a store that does
 * not tell when an object changed (one in memory).
 *
 * An object read whole from the copy costs fstatat on SLOW, open, fstat, preadv,
 * close, and now and then a touch; a range of an open one a read, of whole blocks of
 * 64 KiB the first time.
 */
int cm_store_open_disk_cache(cm_store *slow, const char *path, uint64_t nbytes, cm_store **out,
                             cm_error *err);

/* Objects, read whole or opened, that were found or not, and removed by this process. */
typedef struct cm_disk_cache_counts {
    uint64_t hits, misses, evictions;
} cm_disk_cache_counts;
/* All zero for a store of another kind. */
cm_disk_cache_counts cm_store_disk_cache_counts(const cm_store *store);

/* ---- the page cache ---- */

/*
 * Of the file, or of all files below the folder, PATH: bytes, and how many of them
 * lie in the page cache.  Links to folders below PATH are not followed.  Linux does
 * not tell of files that the user may not write.
 */
typedef struct cm_residency {
    uint64_t nbytes;
    uint64_t asked_nbytes; /* of those that Linux tells about; the next is among them */
    uint64_t resident_nbytes;
    uint64_t nfiles;
    bool whole; /* false: MAX_NS were over, and files, or the rest of one, were left out */
} cm_residency;

/*
 * Adds to OUT, which begins zeroed but for `whole`, which begins true.  MAX_NS 0: no limit.  This
 * and what follows ends early, with CM_ECANCELED, when STOP wants it.
 */
int cm_residency_measure(const char *path, uint64_t max_ns, const cm_stop *stop, cm_residency *out,
                         cm_error *err);
/*
 * Asks the kernel to forget what it holds of PATH (written back first); measure says what came
 * of it.
 */
int cm_residency_evict(const char *path, const cm_stop *stop, cm_error *err);
/* Reads everything once. */
int cm_residency_warm(const char *path, const cm_stop *stop, cm_error *err);

#endif
