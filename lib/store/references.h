/*
 * References: a JSON document that says of which bytes of other files objects are made, as
 * kerchunk and VirtualiZarr write it (fsspec.github.io/kerchunk/spec.html, versions 0 and 1).
 *
 * A document is somebody else's word.  Its keys are keys like any other; paths that are not
 * absolute lie below the document's own folder and cannot leave it; what they name must be a
 * regular file that has the bytes; one that came over a network names no file of this machine; it
 * refers to its own server or bucket, and one of this machine to its own folder and what is below,
 * unless the settings of the net allow more, or whoever opens it has just written it (`trusted`);
 * "http://", "https://" and "s3://" are read by the rules of a remote store, with its credentials;
 * a template is a text, never an expression; nothing is generated.  Anything else is refused by
 * name when the document is opened, or, where only the file can tell, when the object is read.
 */
#ifndef CM_STORE_REFERENCES_H
#define CM_STORE_REFERENCES_H

#include "store/impl.h"
#include "store/net.h"

enum {
    CM_REFERENCES_MAX_NBYTES = INT32_MAX, /* of a document */
    CM_REFERENCES_MAX_ORIGINS = 256       /* servers and buckets */
};
#define CM_REFERENCE_INLINE UINT32_MAX /* no file: the bytes stand in the document */
#define CM_REFERENCE_LOCAL  UINT32_MAX /* no origin: a file of this machine */

typedef struct cm_reference {
    size_t key;    /* in the table's texts */
    uint32_t file; /* of the table's, or CM_REFERENCE_INLINE */
    bool whole;    /* all of the file */
    bool is_base64;
    uint64_t offset; /* in the file; INLINE: in the table's texts */
    uint64_t nbytes;
} cm_reference;

/* What references point into. */
typedef struct cm_reference_file {
    char *name;      /* its path; its URL, as messages show it */
    char *key;       /* of an object of its origin; NULL: a path */
    uint32_t origin; /* of the table's, or CM_REFERENCE_LOCAL */
    /* Of a path, what it was when the references were made, where the document says so. */
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
    cm_buf texts; /* keys, each with a NUL, and what stands in the document itself */
} cm_reference_table;

/* True when the file PATH begins as a JSON object does: no format of arrays does. */
bool cm_references_are(const char *path);

/*
 * Reads the document at PLACE, a path, or a URL that NET reaches.  OUT is to be released whatever
 * is returned.
 */
int cm_references_read(const char *place, cm_net *net, bool trusted, cm_reference_table *out,
                       cm_error *err);
static inline const char *cm_reference_key(const cm_reference_table *t, const cm_reference *r)
{
    return (const char *)t->texts.data + r->key;
}
void cm_references_release(cm_reference_table *table);

/*
 * A store of the objects of PLACE below NODE, a key or "", only to read from.  NET may be NULL
 * where nothing lies behind a network: CM_EINVAL otherwise.
 */
int cm_store_open_references(const char *place, const char *node, cm_net *net, bool trusted,
                             cm_store **out, cm_error *err);

#endif
