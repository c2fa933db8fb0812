/* For the picture of a survey: which steps of a joined dimension which variables have. */
#ifndef CM_ARCHIVE_AXES_COVERAGE_H
#define CM_ARCHIVE_AXES_COVERAGE_H

#include "archive/join.h"

/* Joined dimension NUMBER, once its steps and gaps are known. */
int cm_join_cover(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
                  unsigned number, cm_archive_axis *report, cm_error *err);
void cm_coverage_release(cm_archive_axis *report);

#endif
