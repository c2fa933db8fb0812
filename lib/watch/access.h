/*
 * A log of what a program read of a Zarr store, as chunkmill.record writes it (docs/replay.md):
 * lines of JSON, in any order, of any number of processes.
 *
 *     {"chunkmill":"access","version":1,"store":"...",...}     begins what a process wrote
 *     {"array":"t2m","shape":[..],"chunks":[..],...}           how an array was stored then
 *     {"key":"t2m/c/0/0/0","nbytes":N,"time":T,"seconds":S,"pid":P,"thread":I,"read":R}
 *     {"array":"t2m","box":[[0,4],[32,64],[0,64]],"time":T,"seconds":S,"pid":P,"read":R}
 *
 * A request says which object, and which part of it, storage gave; a box says which elements the
 * program wanted.  Where a log has no boxes of an array, chunks stand for them: those of requests
 * that one thread had under way at once are one read if they fill a box, else each is its own.
 *
 * The log is hostile until it was read: numbers are bounded, lines limited, and nothing is
 * allocated by a length that a line claims.
 */
#ifndef CM_WATCH_ACCESS_H
#define CM_WATCH_ACCESS_H

#include "model/box.h"

enum {
    CM_ACCESS_LINE = 65536 /* bytes of a line, at most */
};

typedef struct cm_access_log cm_access_log;

/*
 * Reads the file PATH.  CM_EFORMAT names the line that is wrong, or says that no read is recorded.
 * A last line without its end, which may yet be written, is left out.
 */
int cm_access_log_open(const char *path, cm_access_log **out, cm_error *err);
/* The same of NBYTES of TEXT; NAME is for messages. */
int cm_access_log_parse(const char *name, const char *text, size_t nbytes, cm_access_log **out,
                        cm_error *err);
void cm_access_log_free(cm_access_log *log); /* NULL accepted */

const char *cm_access_log_name(const cm_access_log *log);  /* as it was given */
uint64_t cm_access_log_requests(const cm_access_log *log); /* all, of metadata too */

/* Arrays of which the log has boxes: name I, or NULL past the last. */
const char *cm_access_log_array(const cm_access_log *log, size_t i);

/* An array of the store, now. */
typedef struct cm_access_array {
    const char *name; /* path in the store, "" for its root */
    unsigned rank;
    const uint64_t *shape;
    const uint64_t *chunk; /* of an object: of a shard, where there are shards */
    cm_cuts *const *cuts;  /* of each dimension, where objects are of several lengths; or NULL */
} cm_access_array;

/* Reads of one array, in the order in which they began. */
typedef struct cm_access_reads {
    unsigned rank;
    size_t n;
    uint64_t *box;          /* of each read: the first elements, then the lengths */
    uint64_t nelem;         /* of all boxes; saturates */
    bool wanted;            /* boxes are what the program asked for; false: chunks */
    unsigned together;      /* reads under way at once, at most */
    unsigned nprocesses;    /* that read */
    double seconds;         /* from the first read's beginning to the last one's end */
    uint64_t nrequests;     /* for objects of the array */
    uint64_t nmissing;      /* of these, for objects that were not there */
    uint64_t stored_nbytes; /* that they gave */
    bool rechunked;         /* the log says other chunks than the array has now */
} cm_access_reads;

/*
 * Finds the reads of ARRAY in LOG; n is 0 where there are none.  CM_EINVAL: the array had another
 * shape when the log was written, or a box does not lie in it.  OUT is to be released whatever is
 * returned.
 */
int cm_access_reads_find(const cm_access_log *log, const cm_access_array *array,
                         cm_access_reads *out, cm_error *err);
void cm_access_reads_release(cm_access_reads *reads); /* zeroed memory is fine */

/* Box I of READS. */
void cm_access_box(const cm_access_reads *reads, size_t i, cm_box *out);

/*
 * A request for a whole object of ARRAY that it gave bytes for: the I-th, its key and bytes.  False
 * past the last.  So a caller finds out whether objects are still what they were.
 */
bool cm_access_log_object(const cm_access_log *log, const cm_access_array *array, size_t i,
                          const char **key, uint64_t *nbytes);

#endif
