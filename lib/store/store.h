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
 * same folder and renamed.
 */
#ifndef CM_STORE_STORE_H
#define CM_STORE_STORE_H

#include "base/mem.h"

typedef struct cm_store cm_store;
typedef struct cm_object_writer cm_object_writer;
typedef struct cm_object_reader cm_object_reader;

/*
 * A directory.  CREATE makes it and its missing parents.
 * Opening what is no directory is CM_ENOTFOUND or CM_EFORMAT with a sentence.
 */
int cm_store_open_dir(const char *path, bool create, cm_store **out, cm_error *err);
/*
 * What a run writes into: the folder PATH, which may itself be a link, as the user
 * named it; but below it nothing is reached through a symbolic link, for reading
 * neither: a link is not followed by reads (CM_EFORMAT) and shown as an object.
 */
int cm_store_open_output(const char *path, bool create, cm_store **out, cm_error *err);
/*
 * The folder PREFIX of an output as an output of its own; CREATE makes it and what is missing
 * above.
 */
int cm_store_open_below(cm_store *store, const char *prefix, bool create, cm_store **out,
                        cm_error *err);
/* In memory; for tests and for measuring everything but the disk. */
int cm_store_open_memory(cm_store **out, cm_error *err);
void cm_store_free(cm_store *store);

/* What the user calls it; for messages. */
const char *cm_store_name(const cm_store *store);
/* Every call is a request over a network: few and large ones, many at once, are the fast way. */
bool cm_store_is_remote(const cm_store *store);

/*
 * Several processes write into one store as parts: temporary names carry the number PART
 * from now on, so that each part can remove its own.  Before anything is written.
 */
void cm_store_be_part(cm_store *store, uint64_t part);
/* Whether the temporary of this path is one of STORE's part; true where it is none. */
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
 * The same in two steps, where a store can: DATA stays until the end was called, which waits.  A
 * failure to begin needs no end.
 */
typedef struct cm_store_change cm_store_change;
bool cm_store_can_send(const cm_store *store);
int cm_store_put_begin(cm_store *store, const char *key, const void *data, size_t nbytes,
                       cm_store_change **out, cm_error *err);
int cm_store_delete_begin(cm_store *store, const char *key, cm_store_change **out, cm_error *err);
/* Whether the end need not wait. */
bool cm_store_change_done(const cm_store_change *change);
int cm_store_change_end(cm_store_change *change, cm_error *err);
/* What tells an object from another that takes its name. */
typedef struct cm_object_tag {
    char text[136];
    int64_t age_s; /* since it was put, by the clock of the store; -1: not known */
} cm_object_tag;

/*
 * Puts where nothing is (TAG NULL), or in place of what get_tagged gave with TAG, in one step:
 * CM_EEXIST when something else is there, CM_EUNSUPPORTED where a store has no such step.  Where
 * an answer was lost, CM_EEXIST may be about what this call put itself.
 */
int cm_store_put_if(cm_store *store, const char *key, const void *data, size_t nbytes,
                    const cm_object_tag *tag, cm_error *err);
/* cm_store_get with the tag; CM_EUNSUPPORTED where a store has none. */
int cm_store_get_tagged(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf,
                        cm_object_tag *tag, cm_error *err);
/* No error when absent. */
int cm_store_delete(cm_store *store, const char *key, cm_error *err);

/* What a store tells of an object without reading it. */
typedef struct cm_told {
    uint64_t nbytes;
    int64_t modified_s; /* since 1970; 0: it is not told */
    char tag[136];      /* as that of a cm_object_tag; "": it is not told */
} cm_told;

/* CM_ENOTFOUND when absent. */
int cm_store_tell(cm_store *store, const char *key, cm_told *out, cm_error *err);

/* An object open for reading ranges by many threads. */
int cm_object_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
/*
 * The object that TOLD is about, where a store need not ask for it again: reading it fails
 * (cm_object_changed) where another has its name by now.
 */
int cm_object_open_told(cm_store *store, const char *key, const cm_told *told,
                        cm_object_reader **out, cm_error *err);
/*
 * The same, with the object's first or (AT_END) last NBYTES, or all that it has, in place of what
 * BUF holds: one request where a store can do both at once.
 */
int cm_object_open_part(cm_store *store, const char *key, bool at_end, size_t nbytes, cm_buf *buf,
                        cm_object_reader **out, cm_error *err);
uint64_t cm_object_nbytes(const cm_object_reader *reader);
/*
 * Whether reading failed because another object has taken the name since: it may be opened again.
 * Of a file that is open the old one is read on.
 */
bool cm_object_changed(const cm_object_reader *reader);
/* Whether reading failed because the server has no such object any more, or does not give it. */
bool cm_object_denied(const cm_object_reader *reader);
/* All NBYTES, or an error: a short object is CM_EFORMAT. */
int cm_object_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                   cm_error *err);
void cm_object_close(cm_object_reader *reader);

/*
 * An object that many threads write piece by piece, at offsets that do not
 * overlap; it takes its name on commit.  Abort, or free before commit, leaves
 * nothing.
 */
int cm_object_create(cm_store *store, const char *key, cm_object_writer **out, cm_error *err);
int cm_object_write(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                    cm_error *err);
int cm_object_commit(cm_object_writer *writer,
                     cm_error *err);            /* frees WRITER, also when it fails */
void cm_object_abort(cm_object_writer *writer); /* NULL accepted */
/* How an object is going to be written; all zero: nobody knows. */
typedef struct cm_object_form {
    uint64_t most_nbytes; /* it should have no more; 0: not known */
    /*
     * Of the bytes that are missing the first are always being written, by somebody who waits for
     * nobody else: an object that is sent in pieces need not have many of them in memory.
     */
    bool in_order;
    size_t head_nbytes; /* but for so many at its beginning, which come last */
} cm_object_form;

int cm_object_create_as(cm_store *store, const char *key, const cm_object_form *form,
                        cm_object_writer **out, cm_error *err);

/*
 * What a store keeps of objects that are being written: nothing, or the pieces in which it sends
 * them.  All is kept below `most_nbytes`: objects for which that has no room, and those that are
 * not written in order, lie in scratch files until they are whole, and are sent by what
 * `ahead_nbytes` allows.
 */
enum {
    CM_STORE_PIECES = 3 /* sizes of a piece; the first is the largest */
};
typedef struct cm_store_sending {
    unsigned pieces; /* < CM_STORE_PIECES */
    size_t
        ahead_nbytes;   /* beyond what each writer needs, of what is on its way; a piece at least */
    size_t most_nbytes; /* with that */
} cm_store_sending;

/* Before anything is written. */
void cm_store_send(cm_store *store, const cm_store_sending *sending);
/* What a writer of FORM needs in memory, beside its names. */
size_t cm_store_writer_nbytes(const cm_store *store, const cm_object_form *form);
/* What a piece takes on its way; 0: the store has none. */
size_t cm_store_piece_nbytes(const cm_store *store);
/* What a thread that asks STORE for something takes beside its own buffers. */
size_t cm_store_request_nbytes(const cm_store *store);

/*
 * The names directly below PREFIX ("" is the root), sorted, one call each;
 * IS_PREFIX tells a folder from an object.  A VISIT that returns non-zero stops
 * and passes its value on.  Temporary names are not shown.  CM_ENOTFOUND when
 * PREFIX is no folder; the root is always one.
 */
typedef int cm_store_visit(void *context, const char *name, bool is_prefix, cm_error *err);
int cm_store_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                  cm_error *err);

/*
 * Every object below PREFIX with what is told of it, its key from there, in the order of keys.
 * CM_EUNSUPPORTED where a store has no such listing; then nothing was visited.
 */
typedef int cm_store_see(void *context, const char *below, const cm_told *told, cm_error *err);
int cm_store_list_below(cm_store *store, const char *prefix, cm_store_see *see, void *context,
                        cm_error *err);

/*
 * From now on nobody but the caller writes into STORE: where each look would be a request over a
 * network, all names are listed once, and asked for no more until cm_store_forget.  For one thread,
 * and for what looks at many names; nothing where looking costs little.
 */
int cm_store_know(cm_store *store, cm_error *err);
void cm_store_forget(cm_store *store); /* NULL accepted */

/* Waits until everything written so far, names included, is on the disk. */
int cm_store_sync(cm_store *store, cm_error *err);

typedef enum cm_entry_kind {
    CM_ENTRY_NONE,
    CM_ENTRY_FILE,
    CM_ENTRY_TEMPORARY,
    CM_ENTRY_FOLDER,
    CM_ENTRY_OTHER
} cm_entry_kind;

/* True when the last name of KEY is a symbolic link, as reading reaches it. */
int cm_store_is_link(cm_store *store, const char *key, bool *out, cm_error *err);
/*
 * What has the name KEY, which is followed through no symbolic link: what is behind one is
 * CM_ENTRY_OTHER.
 */
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
 * Removes the temporaries of runs that were killed: those in PREFIX itself, or with DEEP in the
 * folders below it too.  The caller knows that nobody else writes there.
 */
int cm_store_sweep_temporaries(cm_store *store, const char *prefix, bool deep, cm_error *err);

/* Objects and bytes read and written through STORE so far. */
typedef struct cm_store_counts {
    uint64_t nget, get_nbytes, nput, put_nbytes;
} cm_store_counts;
cm_store_counts cm_store_count(const cm_store *store);

/* CM_OK when KEY is well-formed; callers that build keys from hostile text check them early. */
int cm_key_check(const char *key, cm_error *err);

#endif
