/*
 * Iterates over the members of a JSON object, for documents whose tree would take many times their
 * text.
 */
#ifndef CM_BASE_JSON_SCAN_H
#define CM_BASE_JSON_SCAN_H

#include "base/mem.h"

typedef struct cm_json_slice {
    const char *text;
    size_t nbytes;
} cm_json_slice;

typedef struct cm_json_scan {
    const char *begin, *at, *end;
    bool any; /* a member was returned */
} cm_json_scan;

/* TEXT must be one object, and outlive the scan.  CM_EFORMAT. */
int cm_json_scan_begin(cm_json_scan *s, const void *text, size_t nbytes, cm_error *err);
/*
 * The next member: NAME with its quotes, VALUE without surrounding white space.  *MORE is false at
 * the end.  Only strings and brackets are followed, so a slice must be parsed before it is used.
 */
int cm_json_scan_next(cm_json_scan *s, cm_json_slice *name, cm_json_slice *value, bool *more,
                      cm_error *err);
/* True for a string without escapes: valid UTF-8 between its quotes, and no control character. */
bool cm_json_slice_is_plain(const cm_json_slice *slice);

#endif
