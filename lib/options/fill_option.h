/* A fill value as users write it. */
#ifndef CM_OPTIONS_FILL_OPTION_H
#define CM_OPTIONS_FILL_OPTION_H

#include "model/dtype.h"

/* TEXT as an element of T; false: it is none. */
bool cm_fill_parse(const cm_dtype *t, const char *text, uint8_t *out);

#endif
