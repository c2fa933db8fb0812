/* A target that is an Icechunk repository: "icechunk:PATH". */
#ifndef CHUNKMILL_TOOLS_COMMON_REPOSITORY_H
#define CHUNKMILL_TOOLS_COMMON_REPOSITORY_H

#include <stdbool.h>
#include <stdio.h>

#include <chunkmill/transform.h>

/* PATH behind "icechunk:", or TEXT. */
const char *cm_repository_place(const char *text);
bool cm_is_repository(const char *text); /* NULL accepted */
/*
 * The line of Python that shows the branch of TARGET in xarray, to be freed; NULL: no memory.
 * OUTSIDE: chunks may lie in other files, which readers are to allow.
 */
char *cm_repository_code(const char *target, const char *branch, bool outside);

/* The first NBYTES of TEXT between double quotes as a string of Python. */
void cm_print_python_string(const char *text, size_t nbytes, FILE *to);

#endif
