/*
 * A folder of files that do not outlive the process that makes them.
 *
 * It is locked while this process or its tidier, a child that waits for its end, lives.  The
 * tidier removes it where this process is killed; a folder that nobody locks, since both were, is
 * removed by whoever makes the next one beside it.
 */
#ifndef CM_STORE_COPIES_FOLDER_H
#define CM_STORE_COPIES_FOLDER_H

#include <sys/types.h>

#include "base/mem.h"

typedef struct cm_copies_folder {
    char *path;
    int fd;       /* of the folder, locked */
    pid_t maker;  /* children of it remove nothing */
    pid_t tidier; /* 0: there is none */
    int alive;    /* that end of a pipe to the tidier which closes with this process */
} cm_copies_folder;

/* In ABOVE.  Its files are named by numbers. */
int cm_copies_folder_make(const char *above, cm_copies_folder *out, cm_error *err);
/* With all files in it. */
void cm_copies_folder_remove(cm_copies_folder *f);

#endif
