/* The lines of a journal. */
#ifndef CM_CONVERT_BESIDE_JOURNAL_LINE_H
#define CM_CONVERT_BESIDE_JOURNAL_LINE_H

#include <stdbool.h>

#include "base/mem.h"

/* Appends a line that says PAYLOAD, which has no newline. */
int cm_journal_line_append(cm_buf *text, const char *payload, size_t nbytes, cm_error *err);
/* A line for a chunk that was left out, into LINE of CM_JOURNAL_SKIP_SIZE; returns its length. */
#define CM_JOURNAL_SKIP_SIZE 64
size_t cm_journal_line_of_skip(char *line, uint64_t item, uint64_t chunk);
/*
 * The payload of the line at *AT of TEXT, which has NBYTES, NUL-terminated in place
 * of its newline; *AT moves behind it.  NULL at the end, and where a line is not whole.
 */
char *cm_journal_line_next(char *text, size_t nbytes, size_t *at);
/* "ITEM CHUNK", two numbers as they are written and nothing else. */
bool cm_journal_line_skip(const char *payload, uint64_t *item, uint64_t *chunk);

#endif
