/* Fetches objects behind a network before they are read: files are read roughly in order. */
#ifndef CM_FORMAT_MULTI_AHEAD_H
#define CM_FORMAT_MULTI_AHEAD_H

#include "format/multi/multi.h"

typedef struct cm_multi_ahead cm_multi_ahead;

/* FILE is borrowed.  *out stays NULL if all files are local. */
int cm_multi_ahead_create(const cm_multi_file *file, size_t n, cm_multi_ahead **out, cm_error *err);
/* Announces that file I is read now.  Any thread; A may be NULL. */
void cm_multi_ahead_of(cm_multi_ahead *a, uint32_t i);
/* NULL accepted. */
void cm_multi_ahead_free(cm_multi_ahead *a);

#endif
