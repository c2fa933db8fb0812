/*
 * The ledger of a store: which files were taken into it.
 *
 * A file in the folder beside the store, lines as those of a journal.  The first says what it
 * is; every other is a JSON object, {"path", "bytes", "mtime_ns", "xxh128"}, the last being
 * absent where nobody had read the whole file, and "sha256" in lines of earlier versions.  An
 * object behind a network has "etag", too, and its URL for a path.  "end" is where the store's
 * elements along "along" end that are the file's, where that is known: a store that ends before
 * has lost them, or is another one.  Of several lines of one path the last counts.
 * The very last line has the number of those, {"chunkmill", "lines"}: a ledger that was cut short
 * is told from a whole one, and refused.
 */
#ifndef CM_CONVERT_BESIDE_LEDGER_H
#define CM_CONVERT_BESIDE_LEDGER_H

#include "base/json.h"
#include "base/xxh128.h"
#include "convert/beside/beside.h"

#define CM_LEDGER_NAME "ledger"

typedef struct cm_ledger_entry {
    char *path; /* real, without links; or a URL */
    uint64_t nbytes, mtime_ns;
    char xxh128[CM_XXH128_TEXT]; /* of all bytes; "": not known */
    char sha256[65];             /* the same, in lines of earlier versions */
    char tag[136];               /* of an object behind a network; "": there is none */
    const char *along;           /* borrowed; of lines to be written; NULL: none is known */
    uint64_t end;                /* along it; 0: not known */
} cm_ledger_entry;

typedef struct cm_ledger {
    cm_ledger_entry *entry; /* sorted by path */
    size_t n;
} cm_ledger;

/* That of B, which is open or, with B->in NULL, has none.  Ends are those along ALONG, or NULL. */
int cm_ledger_read(const cm_beside *b, const char *along, cm_ledger *out, cm_error *err);
void cm_ledger_release(cm_ledger *l);
/* NULL: it lists no such file. */
const cm_ledger_entry *cm_ledger_find(const cm_ledger *l, const char *path);

/* The identity that the file PATH has now. */
int cm_ledger_look(const char *path, cm_ledger_entry *out, cm_error *err);
/* SAME: the digest of the file PATH is that of ENTRY; false where ENTRY has none. */
int cm_ledger_holds(const cm_ledger_entry *entry, const char *path, bool *same, cm_error *err);

/* ENTRY as the payload of a line. */
int cm_ledger_json(const cm_ledger_entry *entry, cm_json **out, cm_error *err);
/* Lines that are added to the ledger, which is made if need be: it has all of them, or none. */
typedef struct cm_ledger_writer {
    const char *path; /* beside the store; borrowed */
    cm_object_writer *object;
    uint64_t nbytes; /* written */
    uint64_t nlines; /* of files */
    cm_buf lines;    /* that are not */
} cm_ledger_writer;

int cm_ledger_begin(const cm_beside *b, cm_ledger_writer *out, cm_error *err);
int cm_ledger_put(cm_ledger_writer *w, const cm_ledger_entry *entry, cm_error *err);
/* Where RC is CM_OK the lines are added, else nothing changes; returns RC, or why it failed. */
int cm_ledger_end(cm_ledger_writer *w, int rc, cm_error *err);
/*
 * Adds the lines of LIST, an array of such objects, to the ledger, which is made if need be.  They
 * take the place of earlier lines of their paths: a change that is made again after a kill, or
 * every day from the same file, lets no ledger grow.
 */
int cm_ledger_add(const cm_beside *b, const cm_json *list, cm_error *err);

#endif
