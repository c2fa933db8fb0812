/*
 * Writes flatbuffers (flatbuffers.dev/internals) from front to back: a table first, then what it
 * points to, so that offsets are filled in when their target is there.
 *
 *     [root offset]["Ichk"][vtable][table]...[vector][vtable][table]...
 *
 * Positions are bytes from the beginning of the buffer.  A vtable is written once and shared by
 * all tables of the same shape.
 */
#ifndef CM_FORMAT_ICECHUNK_FLAT_WRITE_H
#define CM_FORMAT_ICECHUNK_FLAT_WRITE_H

#include "base/mem.h"

enum {
    CM_FLAT_SLOTS = 16,           /* fields of a table, at most */
    CM_FLAT_MOST = 0x7fffffff - 8 /* bytes of a buffer: its offsets have 31 bits */
};

/* A field: its slot in the schema, and the bytes it takes in the table. */
typedef struct cm_flat_field {
    uint16_t slot;
    uint8_t nbytes, align;
} cm_flat_field;

/* A field that points to a vector, a string or another table. */
#define CM_FLAT_OFFSET(slot)                                                                       \
    {                                                                                              \
        slot, 4, 4                                                                                 \
    }

/* Where fields lie in a table. */
typedef struct cm_flat_shape {
    uint32_t vtable; /* position */
    uint16_t nbytes; /* of a table */
    uint8_t align;
    uint8_t at[CM_FLAT_SLOTS]; /* by slot; 0: the table does not have it */
} cm_flat_shape;

typedef struct cm_flat_writer {
    cm_buf buf;
    cm_buf vtables; /* positions, uint32_t */
} cm_flat_writer;

/* Begins a buffer with the file identifier ID (4 letters). */
int cm_flat_begin(cm_flat_writer *w, const char *id, cm_error *err);
void cm_flat_release(cm_flat_writer *w); /* zeroed memory accepted */

/* The shape of tables with these N fields; its vtable is written where it is new. */
int cm_flat_shape_of(cm_flat_writer *w, const cm_flat_field *field, size_t n, cm_flat_shape *out,
                     cm_error *err);
/* A table of SHAPE, all zero; *AT is its position. */
int cm_flat_table(cm_flat_writer *w, const cm_flat_shape *shape, uint32_t *at, cm_error *err);
/* Sets the bytes at position AT. */
void cm_flat_set(cm_flat_writer *w, uint32_t at, const void *value, size_t nbytes);
/* Makes the offset at position AT point to TO, which lies behind it. */
void cm_flat_point(cm_flat_writer *w, uint32_t at, uint32_t to);
/* Makes the root offset point to TO. */
void cm_flat_root(cm_flat_writer *w, uint32_t to);

/*
 * A vector of COUNT elements of SIZE bytes aligned to ALIGN, copied from DATA (NULL: zeros); the
 * offset at FROM points to it.  *FIRST, which may be NULL, is the position of its first element.
 */
int cm_flat_vector(cm_flat_writer *w, uint32_t from, const void *data, size_t count, size_t size,
                   size_t align, uint32_t *first, cm_error *err);
/* A string of NBYTES, with the NUL behind it that readers want. */
int cm_flat_string(cm_flat_writer *w, uint32_t from, const char *text, size_t nbytes,
                   cm_error *err);

#endif
