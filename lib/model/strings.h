/*
 * Variable-length elements in memory: (offset, length) pairs into one arena.
 */
#ifndef CM_MODEL_STRINGS_H
#define CM_MODEL_STRINGS_H

#include "model/box.h"

typedef struct cm_string_ref {
    size_t offset; /* into the arena */
    size_t nbytes; /* no terminating NUL is stored or counted */
} cm_string_ref;

/* Zero-initialise, or cm_strings_init to bound the arena.  Not for concurrent use. */
typedef struct cm_strings {
    cm_string_ref *ref;
    size_t nelem;
    size_t capacity;
    cm_buf arena;
} cm_strings;

void cm_strings_init(cm_strings *s, size_t max_arena_nbytes);
/* NELEM empty strings, arena emptied; memory is kept for reuse. */
int cm_strings_reset(cm_strings *s, size_t nelem, cm_error *err);
/* Sets element I, which was empty, to a copy of TEXT. */
int cm_strings_set(cm_strings *s, size_t i, const void *text, size_t nbytes, cm_error *err);
const char *cm_strings_get(const cm_strings *s, size_t i, size_t *nbytes);
/*
 * FROM holds the strings of BOX, the part of a chunk of GRID that lies inside the
 * array; OUT gets the whole chunk, with empty strings past the array's edge.
 */
int cm_strings_pad(const cm_grid *grid, const cm_box *box, const cm_strings *from, cm_strings *out,
                   cm_error *err);
size_t cm_strings_memory(const cm_strings *s); /* bytes held */
void cm_strings_release(cm_strings *s);

#endif
