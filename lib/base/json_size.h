/* The memory that the tree of a JSON text takes, before it is parsed: many times the text's. */
#ifndef CM_BASE_JSON_SIZE_H
#define CM_BASE_JSON_SIZE_H

#include "base/json.h"

/* Bytes that parsing TEXT takes at most, besides TEXT itself.  TEXT may be anything. */
uint64_t cm_json_tree_nbytes(const void *text, size_t nbytes);
/* cm_json_parse, but CM_EBUDGET where the tree might take more than MOST bytes. */
int cm_json_parse_within(const void *text, size_t nbytes, uint64_t most, cm_json **out,
                         cm_error *err);

#endif
