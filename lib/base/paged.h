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

/* NBYTES of it are going to be read; any thread, while none allocates. */
void cm_paged_touch(cm_paged *p, size_t nbytes);
void cm_paged_let_go(cm_paged *p);

/* NULL is accepted. */
void cm_paged_free(cm_paged *p);

#endif
