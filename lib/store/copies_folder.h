/*
 * A folder of files that do not outlive the process that makes them.
 *
 * It stays locked while this process or its tidier, a child that waits for its end, lives.  The
 * tidier removes it if this process is killed; if both were killed, whoever makes the next folder
 * beside it removes the unlocked one.
 */
#ifndef CM_STORE_COPIES_FOLDER_H
#define CM_STORE_COPIES_FOLDER_H

#include <sys/types.h>

#include "base/mem.h"

typedef struct cm_copies_folder {
    char *path;
    int fd;       /* of the folder, locked */
    pid_t maker;  /* its children remove nothing */
    pid_t tidier; /* 0: none */
    int alive;    /* our end of a pipe to the tidier, closed when this process ends */
} cm_copies_folder;

/* Makes it in ABOVE.  Its files are named by numbers. */
int cm_copies_folder_make(const char *above, cm_copies_folder *out, cm_error *err);
/* Removes it with all its files. */
void cm_copies_folder_remove(cm_copies_folder *f);

#endif
