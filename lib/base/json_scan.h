/*
 * The members of a JSON object one after the other, for documents whose tree would take many times
 * their text.
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
    bool any; /* a member was given out */
} cm_json_scan;

/* TEXT is an object and nothing behind it; it stays as long as the scan.  CM_EFORMAT. */
int cm_json_scan_begin(cm_json_scan *s, const void *text, size_t nbytes, cm_error *err);
/*
 * The next member: NAME with its quotes, VALUE without white space around it.  *MORE: there was
 * one.  Strings and brackets are followed, and nothing else of them is looked at: a slice that is
 * used is to be parsed.
 */
int cm_json_scan_next(cm_json_scan *s, cm_json_slice *name, cm_json_slice *value, bool *more,
                      cm_error *err);
/* True for a string without escapes: valid UTF-8 between its quotes, and no control character. */
bool cm_json_slice_is_plain(const cm_json_slice *slice);

#endif
