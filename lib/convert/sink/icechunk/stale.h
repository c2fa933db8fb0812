/* Statistics in a repository that tell of arrays as they were before a commit. */
#ifndef CM_CONVERT_SINK_ICECHUNK_STALE_H
#define CM_CONVERT_SINK_ICECHUNK_STALE_H

#include "convert/sink/icechunk/repository.h"

typedef struct cm_stale {
    char **path; /* of groups */
    size_t n, capacity;
} cm_stale;

/*
 * Finds the statistics of the target's group, if arrays in it change, and of groups above and below
 * that tell of one of the N arrays ARRAY.  STALE is zeroed.
 */
int cm_stale_find(cm_stale *stale, const cm_repository *r, const cm_sink *s,
                  const cm_repository_array *array, size_t n, cm_error *err);
void cm_stale_release(cm_stale *stale);

#endif
