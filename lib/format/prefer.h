/*
 * A dataset laid over another one, in which variables have lost a dimension: of its elements each
 * keeps the first that is not missing, in an order that the caller says.
 *
 * ERA5 has final and provisional data along a dimension expver, and where one is present the other
 * is missing.  Stored numbers are compared with the fill value, with missing_value and NaN, and
 * are copied as they are; where all are missing, the first stays.
 *
 * Variable I of BELOW is variable I of this dataset.  The coordinate of the dimension is taken.
 */
#ifndef CM_FORMAT_PREFER_H
#define CM_FORMAT_PREFER_H

#include "format/dataset.h"

typedef struct cm_preference {
    const char *dim;
    const uint64_t *index; /* along it, the preferred first */
    size_t nindices;
    const char *access; /* how elements are reached, for people */
} cm_preference;

/*
 * WHAT and BELOW are borrowed, and live until the dataset is closed; as long as it is open,
 * variables of BELOW are prepared by it alone.
 */
int cm_prefer_open(cm_dataset *below, const cm_preference *what, cm_dataset **out, cm_error *err);

#endif
