/*
 * Patterns for the paths of variables ("ocean/surface/sst"), as shells with
 * globstar and .gitignore files have them:
 *
 *     *       any characters of one part of a path
 *     **      as a part of its own: any parts, or none; as the last one, one at least
 *     ?       one character
 *     [a-z]   one of these; [!a-z] one that is none of these
 *     \c      the character c itself
 *
 * A '[' that nothing closes means itself.
 */
#ifndef CM_OPTIONS_GLOB_H
#define CM_OPTIONS_GLOB_H

#include <stdbool.h>

bool cm_glob_matches(const char *pattern, const char *path);

#endif
