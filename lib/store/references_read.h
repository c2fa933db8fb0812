/* Parsing a document into a table; shared by references_read.c and references_files.c. */
#ifndef CM_STORE_REFERENCES_READ_H
#define CM_STORE_REFERENCES_READ_H

#include "base/json.h"
#include "store/references.h"

#include <chunkmill/texts.h>

typedef struct cm_reference_reading {
    const char *path;      /* of the document, or its URL */
    bool remote;           /* it is a URL */
    char *own_folder;      /* with its '/'; "" for the working folder */
    const cm_texts *allow; /* other places that are allowed; NULL: none */
    bool trusted;          /* may refer to anything */
    uint64_t memory;       /* bytes that text, table and trees may take */
    uint64_t text_nbytes;  /* of the document */
    cm_json *templates, *files;
    cm_reference_table *out;
    size_t capacity, file_capacity;
    uint32_t *bucket; /* of urls: number of the file + 1, or 0 */
    char **url;       /* as in the document, one for each file */
    size_t nbuckets;
    uint32_t latest; /* the last number given */
} cm_reference_reading;

/* The number of URL's file, shared by all references to it. */
int cm_reference_file_number(cm_reference_reading *r, const char *url, size_t nbytes, uint32_t *out,
                             cm_error *err);
/* True, and its number, if a reference names URL. */
bool cm_reference_file_find(const cm_reference_reading *r, const char *url, uint32_t *out);
/* Resolves URL, and BELOW, a relative key, to an object of its origin. */
int cm_reference_resolve_remote(cm_reference_reading *r, const char *url, const char *below,
                                cm_reference_file *out, cm_error *err);
/* Checks that the document may refer to FILE: CM_EUNSUPPORTED names the option that permits it. */
int cm_reference_check_place(const cm_reference_reading *r, const cm_reference_file *file,
                             cm_error *err);
void cm_reference_release_file(cm_reference_file *file);
void cm_reference_reading_release(cm_reference_reading *r);

#endif
