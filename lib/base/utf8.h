/* UTF-8 (RFC 3629): what is valid, and repairing what is not. */
#ifndef CM_BASE_UTF8_H
#define CM_BASE_UTF8_H

#include "base/mem.h"

/* U+FFFD, the replacement for bytes that are not UTF-8. */
#define CM_UTF8_REPLACEMENT "\xEF\xBF\xBD"

/* Length of the valid sequence at P (of N bytes, N > 0); 0: it is none. */
size_t cm_utf8_length(const uint8_t *p, size_t n);
/*
 * Of bytes at P (N > 0) that are no valid sequence: how many one U+FFFD stands
 * for, the longest start of a sequence that could have become valid and at least
 * one (Unicode 15, chapter 3, "U+FFFD Substitution of Maximal Subparts"; Python's
 * decoder does the same).
 */
size_t cm_utf8_bad_length(const uint8_t *p, size_t n);
bool cm_utf8_is_valid(const void *text, size_t nbytes);
/* Appends TEXT with what is bad replaced. */
int cm_utf8_repair(const void *text, size_t nbytes, cm_buf *out, cm_error *err);
/* Appends TEXT, of which each byte is a character of ISO 8859-1, as UTF-8. */
int cm_utf8_from_latin1(const void *text, size_t nbytes, cm_buf *out, cm_error *err);
/* A copy of TEXT, repaired, on the heap; NULL without memory. */
char *cm_utf8_strdup(const char *text, cm_error *err);

#endif
