/* Fields without the joined dimension: all files must mean the same by them. */
#ifndef CM_ARCHIVE_FIELDS_STATICS_H
#define CM_ARCHIVE_FIELDS_STATICS_H

#include "archive/fields/fields.h"

/* Findings where values of the survey differ; what it does not have is compared while data move. */
int cm_join_check_static(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                         cm_join_findings *findings, uint32_t at, cm_field_sources *f,
                         cm_error *err);

/* Whether `statics` takes the first file's. */
bool cm_join_takes_first(cm_join_tables *tables, const cm_join_var *v);
/* Whether AT follows `tolerance`: coordinates of two dimensions and more, and bounds of any. */
bool cm_join_is_tolerant(const cm_join_input *in, const cm_join_tables *tables, uint32_t at);

/* Sets the options that decide about variable AT of CHECK, repeated along a joined dimension. */
void cm_join_settle_static(const cm_join_input *in, cm_join_tables *tables,
                           const cm_join_axes *axes, uint32_t at, cm_multi_check *check);

/* Whether both records have the values, in one order of dimensions. */
bool cm_join_is_told(const cm_join_input *in, const cm_join_tables *tables,
                     const cm_surveyed_var *a, const cm_surveyed_var *b);

#endif
