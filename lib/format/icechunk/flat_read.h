/* Reads flatbuffers where they lie: every step is checked against the bounds of the buffer. */
#ifndef CM_FORMAT_ICECHUNK_FLAT_READ_H
#define CM_FORMAT_ICECHUNK_FLAT_READ_H

#include "base/mem.h"

typedef struct cm_flatbuf {
    const uint8_t *data;
    size_t nbytes;
} cm_flatbuf;

typedef struct cm_flatbuf_table {
    size_t at, vtable;
    unsigned nslots; /* of the vtable; the last may be absent */
} cm_flatbuf_table;

/* A vector, or a string. */
typedef struct cm_flatbuf_list {
    size_t first; /* position of its first element */
    size_t n;
} cm_flatbuf_list;

bool cm_flatbuf_has(const cm_flatbuf *f, size_t at, size_t nbytes);
/* The position that the offset at AT points to; 0 lets nothing be there. */
bool cm_flatbuf_follow(const cm_flatbuf *f, size_t at, size_t *out);
/* The table at AT, and the table that the offset at AT points to (0: the root). */
bool cm_flatbuf_table_at(const cm_flatbuf *f, size_t at, cm_flatbuf_table *out);
bool cm_flatbuf_table_from(const cm_flatbuf *f, size_t at, cm_flatbuf_table *out);
/* The position of field SLOT, which may lie outside the buffer; 0: it is absent. */
size_t cm_flatbuf_field(const cm_flatbuf *f, const cm_flatbuf_table *t, unsigned slot);
/* The field SLOT, NBYTES of it; NULL: it is absent, or outside the buffer. */
const uint8_t *cm_flatbuf_bytes(const cm_flatbuf *f, const cm_flatbuf_table *t, unsigned slot,
                                size_t nbytes);
/* The elements of SIZE bytes of the vector that the offset at AT points to. */
bool cm_flatbuf_list_from(const cm_flatbuf *f, size_t at, size_t size, cm_flatbuf_list *out);
/* The elements of field SLOT; absent: N is 0, and *THERE, which may be NULL, false. */
bool cm_flatbuf_list_of(const cm_flatbuf *f, const cm_flatbuf_table *t, unsigned slot, size_t size,
                        cm_flatbuf_list *out, bool *there);

#endif
