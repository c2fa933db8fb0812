/*
 * References: a JSON document that makes objects of byte ranges of other files, as kerchunk and
 * VirtualiZarr write it (fsspec.github.io/kerchunk/spec.html, versions 0 and 1).
 *
 * A document is untrusted.  Its keys are checked like any other; relative paths are below the
 * document's own folder and cannot leave it; paths must name regular files that have the bytes; a
 * document from a network names no local file; a document refers only to its own server or bucket,
 * or if it is local to its own folder and below, unless the settings of the net allow more, or the
 * caller has just written it (`trusted`); "http://", "https://" and "s3://" are read by the rules
 * of a remote store, with its credentials; a template is a text, never an expression; references
 * are not generated.  Anything else is refused by name when the document is opened or, if only the
 * file can tell, when the object is read.
 */
#ifndef CM_STORE_REFERENCES_H
#define CM_STORE_REFERENCES_H

#include "store/impl.h"
#include "store/open.h"

enum {
    CM_REFERENCES_MAX_NBYTES = INT32_MAX, /* of a document */
    CM_REFERENCES_MAX_ORIGINS = 256       /* servers and buckets */
};
#define CM_REFERENCE_INLINE UINT32_MAX /* no file: the bytes are in the document */
#define CM_REFERENCE_LOCAL  UINT32_MAX /* no origin: a local file */

typedef struct cm_reference {
    size_t key;    /* in the table's texts */
    uint32_t file; /* in the table, or CM_REFERENCE_INLINE */
    bool whole;    /* all of the file */
    bool is_base64;
    uint64_t offset; /* in the file; INLINE: in the table's texts */
    uint64_t nbytes;
} cm_reference;

/* A file or object that references point into. */
typedef struct cm_reference_file {
    char *name;      /* its path; or its URL, for messages */
    char *key;       /* of an object of its origin; NULL: a path */
    uint32_t origin; /* in the table, or CM_REFERENCE_LOCAL */
    /* Local files: their state when the references were made, if the document has it. */
    bool known;
    uint64_t nbytes, mtime_ns;
} cm_reference_file;

typedef struct cm_reference_table {
    cm_reference *item; /* by key, in the order of strcmp */
    size_t n;
    cm_reference_file *file;
    size_t nfiles;
    char **origin; /* "https://host:port", "s3://bucket" */
    size_t norigins;
    cm_buf texts; /* keys, each followed by NUL, and inline data */
} cm_reference_table;

enum {
    CM_REFERENCES_HEAD = 64 /* bytes that recognise a document */
};
/* True for a store that is such a document. */
bool cm_store_is_references(const cm_store *store);
/* True when the file PATH begins like a JSON object, unlike any array format. */
bool cm_references_are(const char *path);
/* The same of the first bytes of a file. */
bool cm_references_begin(const char *head, size_t nbytes);

/*
 * Reads the document at PLACE, a path, or a URL reached by OPTIONS' net.  Release OUT even after an
 * error.  CM_EBUDGET: text and table do not fit half of OPTIONS' memory.
 */
int cm_references_read(const char *place, const cm_store_options *options, cm_reference_table *out,
                       cm_error *err);
/* The first reference whose key is not less than KEY. */
size_t cm_reference_lower_bound(const cm_reference_table *t, const char *key);
int cm_reference_find(const cm_reference_table *t, const char *key, const cm_reference **out,
                      cm_error *err);
static inline const char *cm_reference_key(const cm_reference_table *t, const cm_reference *r)
{
    return (const char *)t->texts.data + r->key;
}
void cm_references_release(cm_reference_table *table);

/*
 * A read-only store of the objects of PLACE below NODE, a key or "".  OPTIONS' net may be NULL if
 * nothing is behind a network: CM_EINVAL otherwise.
 */
int cm_store_open_references(const char *place, const char *node, const cm_store_options *options,
                             cm_store **out, cm_error *err);

#endif
