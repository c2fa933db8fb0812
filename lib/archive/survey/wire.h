/*
 * Numbers, texts and digests in a record, which a child process or a cache on disk gives:
 * hostile until checked.
 */
#ifndef CM_ARCHIVE_SURVEY_WIRE_H
#define CM_ARCHIVE_SURVEY_WIRE_H

#include "base/mem.h"
#include "model/digest.h"

/* The first failure is remembered, and later puts do nothing. */
typedef struct cm_wire_out {
    cm_buf *buf;
    int status;
    cm_error *err;
} cm_wire_out;

void cm_wire_put(cm_wire_out *w, const void *data, size_t nbytes);
void cm_wire_put_u8(cm_wire_out *w, uint8_t v);
void cm_wire_put_u32(cm_wire_out *w, uint32_t v);
void cm_wire_put_u64(cm_wire_out *w, uint64_t v);
void cm_wire_put_text(cm_wire_out *w, const char *text); /* NULL is told from "" */
void cm_wire_put_digest(cm_wire_out *w, cm_digest d);

/* Reading past the end gives zeros, and BAD stays set. */
typedef struct cm_wire_in {
    const uint8_t *at, *end;
    bool bad;
} cm_wire_in;

const void *cm_wire_get(cm_wire_in *w, size_t nbytes); /* NULL: not there */
uint8_t cm_wire_get_u8(cm_wire_in *w);
uint32_t cm_wire_get_u32(cm_wire_in *w);
uint64_t cm_wire_get_u64(cm_wire_in *w);
const char *cm_wire_get_text(cm_wire_in *w); /* borrowed, NUL-terminated; NULL */
cm_digest cm_wire_get_digest(cm_wire_in *w);

/* Of DATA, for telling whether it was met before. */
cm_digest cm_wire_digest(const void *data, size_t nbytes);
bool cm_wire_same(cm_digest a, cm_digest b);

#endif
