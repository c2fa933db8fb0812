/* An option that may be repeated. */
#ifndef CHUNKMILL_TEXTS_H
#define CHUNKMILL_TEXTS_H

#include <stddef.h>

typedef struct cm_texts {
    const char *const *text; /* in the order given */
    size_t n;
} cm_texts;

#endif
