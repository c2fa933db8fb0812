/*
 * Names below a folder, reached without going through a symbolic link.
 *
 * What a run writes or removes lies in its output and nowhere else, whatever
 * links somebody put there.  PATH is a well-formed key, or "" for ROOT itself.
 * Like the system calls: -1 and errno; ELOOP where a link is in the way, as any
 * part of PATH, the last one included.
 */
#ifndef CM_STORE_BENEATH_H
#define CM_STORE_BENEATH_H

#include <sys/types.h>

/* Like openat. */
int cm_beneath_open(int root, const char *path, int flags, mode_t mode);
/*
 * The folder that holds PATH, opened as a place to work in (O_PATH), and PATH's last name in
 * *NAME.
 */
int cm_beneath_parent(int root, const char *path, const char **name);

#endif
