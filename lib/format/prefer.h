/*
 * A dataset laid over another one that removes a dimension: each element is the first along it that
 * is not missing, in an order given by the caller.
 *
 * ERA5 has final and provisional data along a dimension expver, and where one is present the other
 * is missing.  Stored numbers are compared with the fill value, with missing_value and NaN, and are
 * copied as they are; where all are missing, the first is kept.
 *
 * Variable I of BELOW is variable I of this dataset.  The coordinate of the removed dimension is
 * marked as taken.
 */
#ifndef CM_FORMAT_PREFER_H
#define CM_FORMAT_PREFER_H

#include "format/dataset.h"

typedef struct cm_preference {
    const char *dim;
    const uint64_t *index; /* indices along it, most preferred first */
    size_t nindices;
    const char *access; /* how elements are reached, for people */
} cm_preference;

/*
 * WHAT and BELOW are borrowed and must outlive the dataset, which alone prepares variables of BELOW
 * while it is open.
 */
int cm_prefer_open(cm_dataset *below, const cm_preference *what, cm_dataset **out, cm_error *err);

#endif
