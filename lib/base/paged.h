/*
 * Memory for lists that grow with the number of files of an archive, are built once and read rarely
 * or in order.  Beyond the first 64 KiB they are in an unlinked mapped file, whose pages are
 * released again and again while the list is built and read.
 */
#ifndef CM_BASE_PAGED_H
#define CM_BASE_PAGED_H

#include "base/mem.h"

typedef struct cm_paged cm_paged;

/* An unlinked file in FOLDER (NULL: the system's), or elsewhere if that fails; or -1. */
int cm_unnamed_file(const char *folder);

/* The file will be in FOLDER, or elsewhere as by cm_unnamed_file.  NULL: no memory. */
cm_paged *cm_paged_create(const char *folder, cm_error *err);

/*
 * COUNT zeroed elements of SIZE bytes, aligned to 16; they live as long as P.  Ordinary memory if
 * no file can be made, or its file system is full.
 */
void *cm_paged_calloc(cm_paged *p, size_t count, size_t size, cm_error *err);

/*
 * Announces reading or writing of NBYTES at DATA; any thread, while none allocates.  About 0.5 MiB
 * of touched pages stay in memory; pages read without touching stay until cm_paged_let_go.  Ignores
 * memory that does not belong to P.
 */
void cm_paged_touch(cm_paged *p, const void *data, size_t nbytes);
/* memcpy of long data, touched piece by piece. */
void cm_paged_copy(cm_paged *p, void *to, const void *from, size_t nbytes);
void cm_paged_let_go(cm_paged *p);

/* NULL is accepted. */
void cm_paged_free(cm_paged *p);

#endif
