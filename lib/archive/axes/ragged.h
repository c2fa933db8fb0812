/*
 * Ragged arrays and lists of indices of the CF Conventions (chapters 8.2 and 9.3): attributes that
 * tie the elements of one dimension to places along another.
 */
#ifndef CM_ARCHIVE_AXES_RAGGED_H
#define CM_ARCHIVE_AXES_RAGGED_H

#include "archive/join.h"

/*
 * Sets `ragged` of the dimensions of contiguous ragged arrays: the elements of a variable with
 * `sample_dimension` count the samples of one row after the other, so that files must follow each
 * other along both dimensions in the same order, whole.  A store that grows would grow along both:
 * an error.  Sets `indexed_by` where a chosen variable has the dimension as `instance_dimension`.
 */
int cm_axis_find_ragged(const cm_join_input *in, cm_join_tables *tables, cm_error *err);

/*
 * A finding for each chosen variable whose values are places along a joined dimension
 * (`instance_dimension`, `compress`), which behind the first file are others, and for rows that do
 * not have all samples of a file.
 */
int cm_axis_check_indices(const cm_join_input *in, const cm_join_tables *tables,
                          cm_join_findings *findings, cm_error *err);

#endif
