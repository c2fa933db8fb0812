/* One joined dimension: the coordinates of all files as one. */
#ifndef CM_ARCHIVE_AXES_MERGE_H
#define CM_ARCHIVE_AXES_MERGE_H

#include "archive/join.h"
#include "base/number.h"

/* Fills in D's key and n, and the runs of its coordinates; what does not fit is a finding. */
int cm_axis_join(const cm_join_input *in, const cm_join_tables *tables, cm_join_axes *axes,
                 cm_join_findings *findings, cm_join_dim *d, cm_error *err);

/*
 * Whether files are joined in their given order, whatever their coordinates; false where the order
 * only decides which file gives a step that several have.
 */
bool cm_axis_in_order(const cm_join_input *in, const cm_join_dim *d);

/* Whether numbers of all files mean steps of one axis: those of several calendars mean none. */
bool cm_axis_has_steps(const cm_join_tables *tables, const cm_join_axes *axes,
                       const cm_join_dim *d);

/* The runs again, where D's key has changed. */
int cm_axis_find_runs(const cm_join_input *in, cm_join_dim *d, cm_error *err);

/* axes.c: whether values of AT that differ by MOST may be the same points, computed otherwise. */
bool cm_join_is_blurred(const cm_join_tables *tables, uint32_t at, double most);

/* gaps.c: steps that no file has. */
int cm_axis_find_gaps(const cm_join_input *in, const cm_join_tables *tables,
                      const cm_join_axes *axes, cm_join_findings *findings, cm_join_dim *d,
                      cm_archive_axis *report, cm_error *err);

#endif
