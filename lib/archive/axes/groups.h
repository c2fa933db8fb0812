/* Files whose steps may lie between those of others. */
#ifndef CM_ARCHIVE_AXES_GROUPS_H
#define CM_ARCHIVE_AXES_GROUPS_H

#include "archive/join.h"

/*
 * Coordinates by the files that have them.  Files of two groups never give the same element: they
 * lie apart along another joined dimension, as stations do, or have other variables.  A coordinate
 * is in each group that has a file of it.
 */
typedef struct cm_axis_groups {
    uint32_t *vec; /* one group after the other */
    size_t *begin; /* N + 1 */
    size_t n;
} cm_axis_groups;

/* Of the NLIST coordinates LIST of D; each group has the order of LIST. */
int cm_axis_group(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
                  const cm_join_dim *d, const uint32_t *list, size_t nlist, cm_axis_groups *out,
                  cm_error *err);
void cm_axis_groups_release(cm_axis_groups *g);

#endif
