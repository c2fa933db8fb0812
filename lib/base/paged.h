/*
 * Memory for lists that grow with the number of files of an archive, are made once and read
 * seldom or in order.  What is beyond the first 64 KiB lies in a file without a name, so that its
 * pages need not stay in memory: they are let go again and again while it is made and read.
 */
#ifndef CM_BASE_PAGED_H
#define CM_BASE_PAGED_H

#include "base/mem.h"

typedef struct cm_paged cm_paged;

/* A file without a name in FOLDER (NULL: the system's), or where that cannot be made; or -1. */
int cm_unnamed_file(const char *folder);

/* Its file will lie in FOLDER, or where cm_unnamed_file puts it.  NULL: no memory. */
cm_paged *cm_paged_create(const char *folder, cm_error *err);

/*
 * COUNT zeroed elements of SIZE bytes, aligned to 16; they live as long as P.  Where no file can
 * be had, or its file system is full, this is ordinary memory.
 */
void *cm_paged_calloc(cm_paged *p, size_t count, size_t size, cm_error *err);

/*
 * NBYTES at DATA are going to be read or written; any thread, while none allocates.  Of what lies
 * in the file not much more than 0.5 MiB that were touched are in memory: what is read without
 * being touched stays there until cm_paged_let_go.  Memory that is none of P's is passed over.
 */
void cm_paged_touch(cm_paged *p, const void *data, size_t nbytes);
/* memcpy of what may be long, touched piece by piece. */
void cm_paged_copy(cm_paged *p, void *to, const void *from, size_t nbytes);
void cm_paged_let_go(cm_paged *p);

/* NULL is accepted. */
void cm_paged_free(cm_paged *p);

#endif
