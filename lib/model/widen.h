/* A type that holds every value of two. */
#ifndef CM_MODEL_WIDEN_H
#define CM_MODEL_WIDEN_H

#include "model/dtype.h"

/* False where there is none; *OUT may be A or B. */
bool cm_widen(const cm_dtype *a, const cm_dtype *b, cm_dtype *out);

#endif
