/*
 * Files for intermediate bytes.
 */
#ifndef CM_BASE_SCRATCH_H
#define CM_BASE_SCRATCH_H

#include <chunkmill/error.h>

/*
 * A file in FOLDER without a name; where the file system cannot make one, its name is taken
 * away at once.
 */
int cm_scratch_open(const char *folder, int *fd, cm_error *err);

#endif
