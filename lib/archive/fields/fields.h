/* The files that give each variable its elements, and must say the same where several do. */
#ifndef CM_ARCHIVE_FIELDS_FIELDS_H
#define CM_ARCHIVE_FIELDS_FIELDS_H

#include "archive/axes/place.h"

/* Findings where something is missing, or differs as far as the survey can tell. */
int cm_join_fields(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                   cm_join_findings *findings, cm_field_sources *out, cm_error *err);
void cm_field_sources_release(cm_field_sources *f);
/* Two files are compared while data move. */
int cm_field_sources_check(cm_field_sources *f, const cm_multi_check *check, cm_error *err);

#endif
