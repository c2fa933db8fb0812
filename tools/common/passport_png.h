/* Small pictures inside a page: PNG as the text of a data URI. */
#ifndef CM_TOOLS_PASSPORT_PNG_H
#define CM_TOOLS_PASSPORT_PNG_H

#include <chunkmill/passport.h>

#include "base/mem.h"

/* Values from LOW to HIGH become colours; what lies beyond has the colour of the end. */
typedef struct passport_scale {
    double low, high;
} passport_scale;

/*
 * P as "data:image/png;base64,...", to be freed; FLIPPED: the last row on top.  Missing values are
 * grey.  NULL: no memory.
 */
char *passport_png(const cm_passport_picture *p, const passport_scale *scale, bool flipped,
                   cm_error *err);
/* The colours from low to high, in one row. */
char *passport_png_scale(cm_error *err);

#endif
