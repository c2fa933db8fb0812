/*
 * Reaches names below a folder without following a symbolic link.
 *
 * A run writes and removes only inside its output, whatever links somebody put there.  PATH is a
 * well-formed key, or "" for ROOT itself.  Errors as from system calls: -1 and errno; ELOOP if any
 * part of PATH, the last one included, is a link.
 */
#ifndef CM_STORE_BENEATH_H
#define CM_STORE_BENEATH_H

#include <sys/types.h>

/* Like openat. */
int cm_beneath_open(int root, const char *path, int flags, mode_t mode);
/* Opens the folder that contains PATH with O_PATH, and sets *NAME to PATH's last name. */
int cm_beneath_parent(int root, const char *path, const char **name);

#endif
