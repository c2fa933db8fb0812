/* One document of metadata of a store that grows: its text, and what changes in it. */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_DOCUMENT_H
#define CM_CONVERT_SINK_GROWTH_APPEND_DOCUMENT_H

#include "base/json_place.h"
#include "convert/sink/growth/append_commit.h"

typedef struct cm_grown_document {
    char *key;
    cm_buf text;
    cm_json_edit *edit;
    size_t nedits, capacity;
} cm_grown_document;

void cm_grown_document_release(cm_grown_document *d); /* zeroed memory is fine */

static inline const char *cm_grown_document_text(const cm_grown_document *d)
{
    return (const char *)d->text.data;
}

/* Adds what G changes in the document of its array, which stands at ARRAY. */
int cm_grown_document_edit_array(cm_grown_document *d, cm_json_place array, const cm_growth *g,
                                 cm_error *err);
/* CM_EFORMAT: WHAT of G's array is not where a document has it. */
int cm_grown_document_unexpected(const cm_grown_document *d, const cm_growth *g, const char *what,
                                 cm_error *err);

#endif
