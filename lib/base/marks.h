/*
 * Marks that this project's documents begin with, so that a file can be recognised as one of them
 * before it is replaced.  Every writer of such a document begins it with its mark.
 */
#ifndef CM_BASE_MARKS_H
#define CM_BASE_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CM_MARK_HEAD = 4096 /* bytes of a file that are examined */
};

/* A kind of document written to a file that the user names. */
typedef struct cm_document_kind {
    const char *name; /* "trace" */
    /* Whether a file that begins with these bytes is one; NBYTES is at most CM_MARK_HEAD. */
    bool (*is_ours)(const uint8_t *head, size_t nbytes);
} cm_document_kind;

extern const cm_document_kind CM_KIND_TRACE, CM_KIND_CERTIFICATE, CM_KIND_PLOT;
extern const cm_document_kind CM_KIND_PAGE; /* a passport */
extern const cm_document_kind CM_KIND_REFERENCES;
extern const cm_document_kind CM_KIND_SURVEY; /* records of a survey */
extern const cm_document_kind CM_KIND_REPORT; /* summary.json in a report's folder */

/* First members of a Chrome trace's object, with the comma after them. */
#define CM_MARK_TRACE "\"otherData\":{\"schema\":\"chunkmill-trace-1\"},"
/* First members of a document of references; only the first is checked. */
#define CM_MARK_REFERENCES "\"version\":1,\"made_by\":\"Chunkmill\",\"refs\":{"
/* The first member of a certificate. */
#define CM_MARK_CERTIFICATE "chunkmill-certificate-1"
/* The first line of a survey's records. */
#define CM_MARK_SURVEY "chunkmill-survey-1\n"
/* The first lines of a passport. */
#define CM_MARK_PAGE "<!doctype html>\n<!-- passport by Chunkmill -->\n"
/* The second line of an SVG. */
#define CM_MARK_SVG "<!-- made by Chunkmill -->"

#endif
