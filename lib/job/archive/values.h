/* Elements that the join itself knows: coordinates along a joined dimension, re-based times. */
#ifndef CM_JOB_ARCHIVE_VALUES_H
#define CM_JOB_ARCHIVE_VALUES_H

#include "job/archive/fields.h"

/*
 * Chooses the units of times that files count from different dates; what cannot be re-based
 * is a finding.
 */
int cm_join_times(cm_join *j, cm_error *err);

/* What libnetcdf takes integers for that were never written, and NaN; false: no such number. */
bool cm_join_default_fill(const cm_dtype *type, uint8_t *out);

/* A fill value for V, which has none: what no file has is missing to its readers too. */
int cm_join_make_fill(cm_join *j, cm_join_var *v, cm_error *err);

/* Whether variable AT is given by its values, and makes them. */
int cm_join_give_values(cm_join *j, const cm_field_sources *f, uint32_t at, cm_error *err);

#endif
