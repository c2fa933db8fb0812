/*
 * A repository that grows: its latest snapshot is read as a store, and the commit makes the next
 * one.  The notes beside a store that grows are not needed.
 */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_REPOSITORY_H
#define CM_CONVERT_SINK_GROWTH_APPEND_REPOSITORY_H

#include "convert/sink/growth/append.h"
#include "format/icechunk/commit.h"

typedef struct cm_append_repository {
    char *branch;
    char *node; /* the group that grows; "": all of it */
    cm_ice_base base;
} cm_append_repository;

/* Of A, whose store O names as a repository, and NODE in it. */
int cm_append_begin_repository(cm_append *a, const cm_append_options *o, const char *node,
                               cm_error *err);
/* The tip of the branch: from now on A is read by that snapshot.  A's store is open. */
int cm_append_read_repository(cm_append *a, cm_error *err);
/* CM_EEXIST: parts have a plan that names another snapshot than A is read by. */
int cm_append_check_repository(cm_append *a, cm_error *err);
/* As a sink finds its target: the folder of the repository. */
int cm_append_take_repository(cm_sink *s, cm_error *err);
void cm_append_end_repository(cm_append *a);

#endif
