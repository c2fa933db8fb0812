/*
 * Reads with O_DIRECT: whole aligned pieces into aligned buffers, pooled, one for each concurrent
 * reader.
 */
#ifndef CM_STORE_DIRECT_H
#define CM_STORE_DIRECT_H

#include "base/mem.h"

typedef struct cm_direct cm_direct;

int cm_direct_create(cm_direct **out, cm_error *err);
void cm_direct_free(cm_direct *direct); /* NULL accepted; no read may be under way */

/* NBYTES at OFFSET of FD, which was opened with O_DIRECT; KEY is for messages. */
int cm_direct_read(cm_direct *direct, int fd, const char *key, uint64_t offset, void *dst,
                   size_t nbytes, cm_error *err);

#endif
