/*
 * A store: keys ("a/b/zarr.json") to objects (bytes).  Knows nothing of arrays.
 *
 * Keys are relative, with '/' between names; a key with an empty name, ".",
 * "..", a leading '/' or a NUL is CM_EFORMAT before anything is touched, so a
 * key read from hostile metadata cannot climb out.  Reading follows symbolic
 * links in a user's store; writing and removing never do (CM_EEXIST), and only
 * regular files are replaced or removed.
 *
 * All calls but open and free may come from many threads at once.  Objects
 * appear whole or not at all: they are written under a temporary name in the
 * same folder and renamed (but see cm_store_set_unread).
 */
#ifndef CM_STORE_STORE_H
#define CM_STORE_STORE_H

#include "base/mem.h"

typedef struct cm_store cm_store;
typedef struct cm_object_writer cm_object_writer;
typedef struct cm_object_reader cm_object_reader;

/*
 * A directory.  CREATE makes it and its missing parents.  Anything but a directory is CM_ENOTFOUND
 * or CM_EFORMAT with a message.
 */
int cm_store_open_dir(const char *path, bool create, cm_store **out, cm_error *err);
/*
 * An output: the folder PATH, which may itself be a link that the user named.  Below it no symbolic
 * link is followed, not even for reading: reading a link is CM_EFORMAT, and it is listed as an
 * object.
 */
int cm_store_open_output(const char *path, bool create, cm_store **out, cm_error *err);
/*
 * The folder PREFIX of an output as an output of its own; CREATE makes it and its missing parents.
 */
int cm_store_open_below(cm_store *store, const char *prefix, bool create, cm_store **out,
                        cm_error *err);
/* In memory; for tests and for measuring without a disk. */
int cm_store_open_memory(cm_store **out, cm_error *err);
void cm_store_free(cm_store *store);

/* The name that the user gave it, for messages. */
const char *cm_store_name(const cm_store *store);
/* True if every call is a request over a network: few, large and concurrent ones are fast. */
bool cm_store_is_remote(const cm_store *store);

/*
 * The user's limit of memory, of which documents of STORE may take half; 0, as it is made: half of
 * what is available.
 */
void cm_store_set_memory(cm_store *store, uint64_t nbytes);
/* Bytes that one document and what it is parsed into may take. */
uint64_t cm_store_document_memory(const cm_store *store);

/*
 * The most that STORE keeps of where its objects lie, besides what opening it read: 0 but for a
 * snapshot of a repository, which keeps manifests.
 */
uint64_t cm_store_index_nbytes(const cm_store *store);

/*
 * For several processes that write one store as parts: temporary names contain the number PART from
 * now on, so that each part can remove its own.  Call it before writing.
 */
void cm_store_set_part(cm_store *store, uint64_t part);
/*
 * UNREAD: STORE has no documents yet, so that no reader believes its objects.  They may then be
 * put under their own names at once, without renaming them.  A crash may leave one cut short, for
 * which whoever goes on has to look; an error leaves none.  Call it while nothing is written.
 */
void cm_store_set_unread(cm_store *store, bool unread);
/* Whether the temporary at this path belongs to STORE's part; true if STORE is not a part. */
bool cm_store_is_own_temporary(const cm_store *store, const char *path);

/*
 * The whole object into BUF (replacing its contents); larger than MAX_NBYTES is CM_EFORMAT.
 * CM_ENOTFOUND when absent.
 */
int cm_store_get(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf, cm_error *err);
/* CM_ENOTFOUND when absent; NBYTES may be NULL. */
int cm_store_size(cm_store *store, const char *key, uint64_t *nbytes, cm_error *err);
int cm_store_put(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err);
/*
 * Asynchronous put and delete, if the store supports them: DATA must stay until
 * cm_store_change_end, which waits.  No end after a failed begin.
 */
typedef struct cm_store_change cm_store_change;
bool cm_store_writes_async(const cm_store *store);
int cm_store_put_begin(cm_store *store, const char *key, const void *data, size_t nbytes,
                       cm_store_change **out, cm_error *err);
int cm_store_delete_begin(cm_store *store, const char *key, cm_store_change **out, cm_error *err);
/* True when cm_store_change_end need not wait. */
bool cm_store_change_done(const cm_store_change *change);
int cm_store_change_end(cm_store_change *change, cm_error *err);
/* Identifies one version of an object. */
typedef struct cm_object_tag {
    char text[136];
    int64_t age_s;     /* age by the clock of the store; -1: unknown */
    int64_t changed_s; /* when it was put, by that clock; 0: unknown */
} cm_object_tag;

/*
 * Puts KEY in one step if it is absent (TAG NULL), or if it still has TAG from get_tagged:
 * CM_EEXIST otherwise, CM_EUNSUPPORTED if the store cannot.  If an answer was lost, CM_EEXIST
 * does not tell whether this call's object was there before another one took its place.
 */
int cm_store_put_if(cm_store *store, const char *key, const void *data, size_t nbytes,
                    const cm_object_tag *tag, cm_error *err);
/* cm_store_get with the tag; CM_EUNSUPPORTED if the store has none. */
int cm_store_get_tagged(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf,
                        cm_object_tag *tag, cm_error *err);
/* No error when absent. */
int cm_store_delete(cm_store *store, const char *key, cm_error *err);

/* Size, time and tag of an object, without its bytes. */
typedef struct cm_object_stat {
    uint64_t nbytes;
    int64_t modified_s; /* since 1970; 0: unknown */
    char tag[136];      /* as in cm_object_tag; "": unknown */
} cm_object_stat;

/* CM_ENOTFOUND when absent. */
int cm_store_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err);

/* An object open for reading ranges by many threads. */
int cm_object_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
/*
 * Opens the object described by TOLD, without a request if the store allows: reading fails
 * (cm_object_changed) if it was replaced since.
 */
int cm_object_open_stat(cm_store *store, const char *key, const cm_object_stat *stat,
                        cm_object_reader **out, cm_error *err);
/*
 * Opens an object with its first or (AT_END) last NBYTES, or all if it has fewer, replacing the
 * content of BUF: one request if the store can do both at once.
 */
int cm_object_open_part(cm_store *store, const char *key, bool at_end, size_t nbytes, cm_buf *buf,
                        cm_object_reader **out, cm_error *err);
uint64_t cm_object_nbytes(const cm_object_reader *reader);
/*
 * Whether reading failed because the object was replaced: it may be opened again.  An open local
 * file continues to give the old object.
 */
bool cm_object_changed(const cm_object_reader *reader);
/* Whether reading failed because the server no longer has the object, or does not give it. */
bool cm_object_denied(const cm_object_reader *reader);
/* All NBYTES, or an error: a short object is CM_EFORMAT. */
int cm_object_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                   cm_error *err);
void cm_object_close(cm_object_reader *reader);

/* How an object will be written; all zero: unknown. */
typedef struct cm_object_form {
    uint64_t most_nbytes; /* maximum size; 0: unknown */
    /*
     * The first missing bytes are always being written, by a thread that waits for no other: an
     * object that is sent in pieces then needs few of them in memory.
     */
    bool in_order;
    size_t head_nbytes; /* except for so many at its beginning, which come last */
} cm_object_form;

/*
 * An object that many threads write piece by piece, at offsets that do not overlap; it takes its
 * name on commit.  Abort, or a crash before commit, leaves no object.  FORM NULL: unknown.
 */
int cm_object_create(cm_store *store, const char *key, const cm_object_form *form,
                     cm_object_writer **out, cm_error *err);
int cm_object_write(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                    cm_error *err);
int cm_object_commit(cm_object_writer *writer, cm_error *err); /* always frees WRITER */
void cm_object_abort(cm_object_writer *writer);                /* NULL accepted */

/*
 * Memory limits of a store for objects being written in pieces; others keep nothing.  The total
 * stays below `most_nbytes`: objects that do not fit, and those not written in order, go to scratch
 * files until they are complete, and are then sent within `ahead_nbytes`.
 */
enum {
    CM_STORE_PIECES = 3 /* possible sizes of a piece; the first is the largest */
};
typedef struct cm_store_limits {
    unsigned pieces; /* < CM_STORE_PIECES */
    size_t
        /* Besides the minimum of each writer, for pieces on their way; at least one piece. */
        ahead_nbytes;
    size_t most_nbytes; /* including those */
} cm_store_limits;

/* Sets the limits; call it before writing. */
void cm_store_limit(cm_store *store, const cm_store_limits *limits);
/* Memory of a writer of FORM, besides its names. */
size_t cm_store_writer_nbytes(const cm_store *store, const cm_object_form *form);
/* Memory of a piece on its way; 0: the store has no pieces. */
size_t cm_store_piece_nbytes(const cm_store *store);
/*
 * Memory of a thread that puts objects, from one to the next: where a store puts several into one
 * file, a thread has a file that it fills.
 */
size_t cm_store_put_nbytes(const cm_store *store);
/* Memory of a thread's request to STORE besides its own buffers. */
size_t cm_store_request_nbytes(const cm_store *store);

/*
 * Lists the names directly below PREFIX ("" is the root), sorted, one call each; IS_PREFIX is true
 * for folders.  A VISIT that returns non-zero stops the listing, which returns that value.
 * Temporary names are left out.  CM_ENOTFOUND when PREFIX is not a folder; the root always is one.
 */
typedef int cm_store_visit(void *context, const char *name, bool is_prefix, cm_error *err);
int cm_store_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                  cm_error *err);
/* Whether a name is below PREFIX; CM_ENOTFOUND as above. */
int cm_store_has_any(cm_store *store, const char *prefix, bool *out, cm_error *err);

/*
 * Lists every object below PREFIX with its size, time and tag, by its key relative to PREFIX, in
 * the order of keys.  CM_EUNSUPPORTED if the store has no such listing; then nothing was visited.
 */
typedef int cm_store_visit_object(void *context, const char *below, const cm_object_stat *stat,
                                  cm_error *err);
int cm_store_list_below(cm_store *store, const char *prefix, cm_store_visit_object *visit,
                        void *context, cm_error *err);

/*
 * Caches one listing of all names, for a store behind a network, until cm_store_drop_listing, while
 * only the caller writes into STORE: then looking up many names needs no requests.  One thread.
 * Does nothing for stores where looking up is cheap.
 */
int cm_store_cache_listing(cm_store *store, cm_error *err);
void cm_store_drop_listing(cm_store *store); /* NULL accepted */

/* Waits until everything written so far, names included, is on the disk. */
int cm_store_sync(cm_store *store, cm_error *err);
/*
 * Everything is written: a store that appears as a whole (zip.h) does so now.  Afterwards it can be
 * read only.  Does nothing for others.
 */
int cm_store_complete(cm_store *store, cm_error *err);

typedef enum cm_entry_kind {
    CM_ENTRY_NONE,
    CM_ENTRY_FILE,
    CM_ENTRY_TEMPORARY,
    CM_ENTRY_FOLDER,
    CM_ENTRY_OTHER
} cm_entry_kind;

/* True when the last name of KEY is a symbolic link, as reading reaches it. */
int cm_store_is_link(cm_store *store, const char *key, bool *out, cm_error *err);
/* The kind of KEY, without following symbolic links: names behind one are CM_ENTRY_OTHER. */
int cm_store_kind(cm_store *store, const char *key, cm_entry_kind *out, cm_error *err);

/*
 * Removing, the only way in which more than one named object goes: JUDGE is asked
 * of every name below PREFIX ("": the root), BELOW being its path from there.
 *
 *     file        REMOVE: it goes
 *     temporary   the same; one of ours, left by a run that was killed
 *     folder      ENTER: its names are judged; REMOVE: they are, and it goes if it is empty then
 *     other       a symbolic link, a device, ...: stays, whatever the answer
 *
 * Names come sorted.  No symbolic link is followed, above PREFIX or below it: a
 * PREFIX behind one counts as absent, which is no error.  PREFIX itself, the root
 * excepted, is asked of last, as a folder with the path "".
 */
typedef enum cm_verdict {
    CM_KEEP,
    CM_ENTER,
    CM_REMOVE
} cm_verdict;

typedef cm_verdict cm_store_judge(void *context, const char *below, cm_entry_kind kind);
int cm_store_sweep(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                   cm_error *err);
/*
 * Removes the temporaries of killed runs: those in PREFIX itself, with DEEP also in the folders
 * below.  The caller makes sure that nobody else writes there.
 */
int cm_store_sweep_temporaries(cm_store *store, const char *prefix, bool deep, cm_error *err);

/* Objects and bytes read and written through STORE so far. */
typedef struct cm_store_counts {
    uint64_t nget, get_nbytes, nput, put_nbytes;
} cm_store_counts;
cm_store_counts cm_store_count(const cm_store *store);

/* CM_OK when KEY is well-formed; callers that build keys from hostile text check them early. */
int cm_key_check(const char *key, cm_error *err);
/* As strcmp compares KEY with the first NBYTES of TEXT: to find it in a sorted list. */
int cm_key_order(const char *key, const char *text, size_t nbytes);

#endif
