/* Reads flexbuffers (flatbuffers.dev/flexbuffers) where they lie, within their bounds. */
#ifndef CM_FORMAT_ICECHUNK_FLEX_READ_H
#define CM_FORMAT_ICECHUNK_FLEX_READ_H

#include "base/mem.h"

/* A value; zeroed: null. */
typedef struct cm_flex {
    const uint8_t *data; /* the buffer */
    size_t nbytes;
    size_t at;      /* of the value, or of the offset to it */
    unsigned width; /* bytes of what lies there */
    unsigned type;
    unsigned own_width; /* bytes of each number in a vector or map */
} cm_flex;

cm_flex cm_flex_root(const void *data, size_t nbytes);
/* The member KEY of a map; null: there is none, or V is none. */
cm_flex cm_flex_member(const cm_flex *v, const char *key);
/* How many values a map has; 0: V is none. */
size_t cm_flex_count(const cm_flex *v);
/* Value I < count of a map; null where it is damaged. */
cm_flex cm_flex_value(const cm_flex *v, size_t i);
/* The bytes of a string, not terminated; NULL: it is none. */
const char *cm_flex_text(const cm_flex *v, size_t *nbytes);

#endif
