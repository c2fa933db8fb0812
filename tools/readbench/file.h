/* Files that appear whole: written under another name, renamed when they are complete. */
#ifndef CM_TOOLS_READBENCH_FILE_H
#define CM_TOOLS_READBENCH_FILE_H

#include <stdio.h>

#include <chunkmill/error.h>

#include "base/json.h"

/* Writes the contents to TO, whose errors the caller looks at. */
typedef int readbench_content(const void *context, FILE *to, cm_error *err);

int readbench_file_write(const char *folder, const char *name, readbench_content *content,
                         const void *context, cm_error *err);

/* The document in the file PATH, to be freed. */
int readbench_file_json(const char *path, cm_json **out, cm_error *err);

/* FOLDER/PREFIXNAME in memory to be freed, or NULL and an error. */
char *readbench_file_path(const char *folder, const char *prefix, const char *name, cm_error *err);

/* In the name of a file while it is written. */
#define READBENCH_PART ".part-"

#endif
