/* Which elements of a variable the target has, and of which type: view.c and subset.c decide. */
#ifndef CM_CONVERT_SELECT_VIEW_H
#define CM_CONVERT_SELECT_VIEW_H

#include "model/box.h"
#include "model/convert.h"

typedef struct cm_view {
    cm_dtype type;
    bool as_strings; /* variable-length text, moved by strings.c */
    bool typed;      /* the user named the type */
    bool join;       /* characters whose last dimension becomes the text; */
    bool latin1;     /* they are ISO 8859-1 */
    bool converts;   /* by CONVERSION */
    bool heeds_sign; /* the numbers are those that _Unsigned makes of the source's */
    bool one_nodata; /* missing values have become one, the result's fill value or NaN */
    cm_conversion conversion;
    unsigned rank;
    uint64_t shape[CM_MAX_RANK];
    uint64_t start[CM_MAX_RANK]; /* target element i is source element start + step * i */
    uint64_t step[CM_MAX_RANK];
    bool whole; /* all of the source's elements */
} cm_view;

#endif
