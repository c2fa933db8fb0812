/*
 * Where a value stands in the text of a JSON document, so that it can be exchanged and every other
 * byte stays: readers of metadata see exactly what others wrote there.
 *
 * The text was parsed before (cm_json_parse): what is here only finds, and gives up on what it
 * does not understand.
 */
#ifndef CM_BASE_JSON_PLACE_H
#define CM_BASE_JSON_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

typedef struct cm_json_place {
    size_t begin, end; /* of a value, without the space around it */
} cm_json_place;

/* The one value of TEXT. */
bool cm_json_place_root(const char *text, size_t nbytes, cm_json_place *out);
/* Member NAME of the object at AT; the last of several, as readers take it. */
bool cm_json_place_member(const char *text, cm_json_place at, const char *name, cm_json_place *out);
/* Element I of the array at AT. */
bool cm_json_place_element(const char *text, cm_json_place at, size_t i, cm_json_place *out);

/* Iterates over members from *cursor = 0; NAME is as written, with its quotes. */
bool cm_json_place_next(const char *text, cm_json_place at, size_t *cursor, cm_json_place *name,
                        cm_json_place *value);
/* The text of the string at AT, unescaped, on the heap; NULL: no memory, or not a string. */
char *cm_json_place_text(const char *text, cm_json_place at, cm_error *err);

typedef struct cm_json_edit {
    cm_json_place at;
    char *text; /* its replacement */
} cm_json_edit;

/* Applies N edits that do not overlap, in any order, to TEXT, and appends the result to OUT. */
int cm_json_edit_apply(const char *text, size_t nbytes, cm_json_edit *edit, size_t n, cm_buf *out,
                       cm_error *err);

#endif
