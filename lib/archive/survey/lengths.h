/* Lengths of dimensions that go by name. */
#ifndef CM_ARCHIVE_SURVEY_LENGTHS_H
#define CM_ARCHIVE_SURVEY_LENGTHS_H

#include "format/dataset.h"

/*
 * CM_EFORMAT where two variables of a group have other lengths along a dimension of one name, as
 * arrays of a store may after one of them was resized.
 */
int cm_lengths_check(const cm_dataset *ds, cm_error *err);

#endif
