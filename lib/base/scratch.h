/*
 * Files for intermediate bytes.
 */
#ifndef CM_BASE_SCRATCH_H
#define CM_BASE_SCRATCH_H

#include <chunkmill/error.h>

/*
 * An unlinked file in FOLDER: unlinked right after creation if the file system has no unnamed
 * files.
 */
int cm_scratch_open(const char *folder, int *fd, cm_error *err);

#endif
