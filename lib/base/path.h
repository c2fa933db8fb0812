#ifndef CM_BASE_PATH_H
#define CM_BASE_PATH_H

/* The part of PATH behind the last '/': the name of a file, or of a variable in its group. */
const char *cm_path_last(const char *path);

#endif
