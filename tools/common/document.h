/*
 * The document of --json, filled by a run of puts that needs one check at its end:
 * the first failure is remembered, and later puts go on without harm.
 *
 *     cm_document d = {CM_OK, err};
 *     cm_json *o = cm_json_object();
 *     cm_document_text(&d, o, "schema", "tool/1");
 *     ...
 *     status = cm_document_print(&d, o, stdout);
 */
#ifndef CM_TOOLS_DOCUMENT_H
#define CM_TOOLS_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

typedef struct cm_document {
    int status;    /* of the first put that failed */
    cm_error *err; /* its sentence; or NULL */
} cm_document;

/* Each sets member NAME of OBJECT; VALUE passes to it, also on failure. */
void cm_document_put(cm_document *d, cm_json *object, const char *name, cm_json *value);
void cm_document_null(cm_document *d, cm_json *object, const char *name);
/* A new object, still to be filled, which OBJECT owns; or null unless THERE: then returns NULL. */
cm_json *cm_document_object(cm_document *d, cm_json *object, const char *name, bool there);
void cm_document_text(cm_document *d, cm_json *object, const char *name,
                      const char *text); /* NULL: null */
void cm_document_u64(cm_document *d, cm_json *object, const char *name, uint64_t v);
void cm_document_bool(cm_document *d, cm_json *object, const char *name, bool v);
/* V, or null unless KNOWN. */
void cm_document_known_u64(cm_document *d, cm_json *object, const char *name, uint64_t v,
                           bool known);
void cm_document_double(cm_document *d, cm_json *object, const char *name, double v, bool known);
void cm_document_texts(cm_document *d, cm_json *object, const char *name, char *const *text,
                       size_t n);
/* RANK lengths, or null unless KNOWN. */
void cm_document_shape(cm_document *d, cm_json *object, const char *name, unsigned rank,
                       const uint64_t *shape, bool known);
/* RANK names, null for each that is NULL. */
void cm_document_names(cm_document *d, cm_json *object, const char *name, unsigned rank,
                       char *const *text);
void cm_document_append(cm_document *d, cm_json *array, cm_json *value);

/*
 * The members that every document begins with: schema, version, libraries, outcome
 * (unless it is NULL), and error: null, or the status and the sentence of FAILURE.
 */
void cm_document_head(cm_document *d, cm_json *object, const char *schema, const char *outcome,
                      const cm_error *failure);

/* Prints OBJECT unless a put failed, and frees it.  Returns the first failure's status. */
int cm_document_print(cm_document *d, cm_json *object, FILE *to);

#endif
